"""Run the tests of servers and browsers beside busy processes, on a machine that has no time for them.

    python tests/stress.py [--busy 20] [more words for pytest]

Whatever waits for seconds instead of a condition fails here.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ["tests/service", "tests/oracles/test_search.py", "tests/streams/test_stream_input.py"]


@contextmanager
def busy(number: int) -> Iterator[None]:
    """As many processes at normal priority that do nothing but use the processor."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--busy", type=int, default=20, help="how many processes are busy")
    given, words = parser.parse_known_args()
    with busy(given.busy):
        command = [sys.executable, "-m", "pytest", "--quiet", *(words or TESTS)]
        sys.exit(subprocess.run(command, cwd=ROOT, check=False).returncode)
