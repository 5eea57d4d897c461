"""How much memory a process may still take."""

import os
from pathlib import Path

UNKNOWN_MEMORY = 4e9  # what is assumed where the system does not say
MEMINFO = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")
MEMORY_VARIABLE = "RANKSTREAM_MEMORY"
"""The environment variable of the most bytes that a process may count as free, for tables that could be smaller."""


def available_memory() -> float:
    """About how many bytes can be taken without pushing anything else out; less where a container has a limit.

    >>> available_memory() > 0.0
    True
    """
    return min(_free(), _left_in_group(), float(os.environ.get(MEMORY_VARIABLE, "inf")))


def resident_memory() -> float:
    """Bytes that this process has in memory; 0 where the system does not say."""
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
    try:  # elsewhere half of all that there is
        return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return UNKNOWN_MEMORY


def _left_in_group() -> float:
    """What a control group (version 2) leaves; infinite without a limit."""
    try:
        most = (GROUP / "memory.max").read_text(encoding="ascii").strip()
        used = (GROUP / "memory.current").read_text(encoding="ascii").strip()
        return float("inf") if most == "max" else max(float(most) - float(used), 0.0)
    except (OSError, ValueError):
        return float("inf")
