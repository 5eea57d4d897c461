"""How long a user waits: import, first fit with an empty and with a filled compilation cache, and the quick commands.

For the commands: CPU seconds of a new process, start of Python included, the modules of ours that it loads, and which
of the heavy packages. Run with ``python benchmarks/start.py``.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import rankstream as rs

IMPORT = "import rankstream"
FIT = """
import rankstream as rs
market = rs.simulate.market(0)
assert rs.estimate(market.assortments, market.frequencies(), method="primal-dual").converged
"""
COMMAND = """
import sys, rankstream.cli
try:
    rankstream.cli.main({words!r})
finally:
    ours = sum(name.split(".")[0] == "rankstream" for name in sys.modules)
    heavy = [name for name in {heavy!r} if name in sys.modules]
    print(ours, *heavy, file=sys.stderr)
"""
HEAVY = ("numba", "scipy.optimize", "sklearn", "matplotlib", "duckdb")


def seconds(code: str, cache: str) -> float:
    """The time of a new Python process, its start included."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"NUMBA_CACHE_DIR": cache})
    return time.perf_counter() - start


def cpu_seconds(code: str) -> tuple[float, str]:
    """The CPU time of a new Python process, and the last line that it wrote to standard error."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, (done.stderr.strip().splitlines() or [""])[-1]


def main() -> None:
    """Print one line per kind of start."""
    with tempfile.TemporaryDirectory() as cache:
        seconds(IMPORT, cache)
        empty = min(seconds("pass", cache) for _ in range(3))
        print(f"import rankstream       {min(seconds(IMPORT, cache) for _ in range(3)) - empty:6.2f} s")
        print(f"first fit, cold cache   {seconds(FIT, cache):6.2f} s")
        print(f"first fit, warm cache   {min(seconds(FIT, cache) for _ in range(3)):6.2f} s")
        market = rs.simulate.market(0)
        sparse, dense = Path(cache) / "sparse.json", Path(cache) / "dense.json"
        rs.estimate(market.assortments, market.frequencies(), method="primal-dual").model.save(sparse)
        rs.estimate(market.assortments, market.frequencies(), method="max-entropy").model.save(dense)
        offer = ";".join(map(str, market.assortments.offers[0]))
        everything, _ = min(cpu_seconds("import numba, scipy.optimize, sklearn, matplotlib, duckdb") for _ in range(3))
        print(f"importing {', '.join(HEAVY)}: {everything:.2f} CPU s; and of that")
        for name, words in (
            ("predict, rankings", ["predict", str(sparse), "--offer", offer]),
            ("predict, max-entropy", ["predict", str(dense), "--offer", offer]),
            ("show, rankings", ["show", str(sparse)]),
            ("show, max-entropy", ["show", str(dense)]),
            ("--help", ["--help"]),
        ):
            used, loaded = min(cpu_seconds(COMMAND.format(words=words, heavy=HEAVY)) for _ in range(3))
            number, *heavy = loaded.split()
            print(
                f"{name:<22}{used:6.2f} CPU s ({used / everything:4.0%}), {number} modules of ours, "
                f"{' and '.join(heavy) or 'none of these'}"
            )


if __name__ == "__main__":
    main()
