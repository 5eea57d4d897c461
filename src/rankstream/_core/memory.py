"""How much memory is available, and how much this process uses."""

import os
from pathlib import Path

UNKNOWN_MEMORY = 4e9  # bytes to assume where the system does not report any
MEMINFO = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")
MEMORY_VARIABLE = "RANKSTREAM_MEMORY"
"""Environment variable: an upper limit, in bytes, on the memory that large tables may count as available."""


def available_memory() -> float:
    """Return about how many bytes can be allocated without swapping, within the limit of a container.

    >>> available_memory() > 0.0
    True
    """
    return min(_free(), _free_in_group(), float(os.environ.get(MEMORY_VARIABLE, "inf")))


def resident_memory() -> float:
    """Return the resident set size of this process in bytes; 0 where the system does not report it."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (AttributeError, OSError, ValueError, IndexError):
        return 0.0


def _free() -> float:
    try:
        for line in MEMINFO.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    try:  # no /proc/meminfo: half of the physical memory
        return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return UNKNOWN_MEMORY


def _free_in_group() -> float:
    """Return the bytes left in the control group (version 2); infinite without a limit."""
    try:
        limit = (GROUP / "memory.max").read_text(encoding="ascii").strip()
        used = (GROUP / "memory.current").read_text(encoding="ascii").strip()
        return float("inf") if limit == "max" else max(float(limit) - float(used), 0.0)
    except (OSError, ValueError):
        return float("inf")
