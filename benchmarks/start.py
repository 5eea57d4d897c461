"""How long a user waits: import, first fit with an empty compilation cache, first fit with a filled one.

Run with ``python benchmarks/start.py``.
"""

import os
import subprocess
import sys
import tempfile
import time

IMPORT = "import rankstream"
FIT = """
import rankstream as rs
market = rs.simulate.market(0)
assert rs.estimate(market.assortments, market.frequencies()).converged
"""


def seconds(code: str, cache: str) -> float:
    """The time of a new Python process, its start included."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"NUMBA_CACHE_DIR": cache})
    return time.perf_counter() - start


def main() -> None:
    """Print one line per kind of start."""
    with tempfile.TemporaryDirectory() as cache:
        seconds(IMPORT, cache)
        empty = min(seconds("pass", cache) for _ in range(3))
        print(f"import rankstream       {min(seconds(IMPORT, cache) for _ in range(3)) - empty:6.2f} s")
        print(f"first fit, cold cache   {seconds(FIT, cache):6.2f} s")
        print(f"first fit, warm cache   {min(seconds(FIT, cache) for _ in range(3)):6.2f} s")


if __name__ == "__main__":
    main()
