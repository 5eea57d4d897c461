"""Run the tests of servers and browsers beside busy processes, on a machine that has no time for them.

    python tests/stress.py [--busy 20] [more words for pytest]

Whatever waits for seconds instead of a condition fails here. The other processes start when the tests are collected.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = ["-m", "browser or server", "tests"]
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"  # and no longer than the tests


class Load:
    """A plugin of pytest: as many processes at normal priority that do nothing but use the processor."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.processes: list[subprocess.Popen[bytes]] = []

    def pytest_collection_finish(self) -> None:
        """Start them: importing every test beside them would take longer than the tests."""
        self.processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(self.number)]

    def pytest_sessionfinish(self) -> None:
        """End them."""
        for process in self.processes:
            process.kill()
            process.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--busy", type=int, default=20, help="how many processes are busy")
    given, words = parser.parse_known_args()
    os.chdir(ROOT)
    sys.path[0] = str(ROOT)  # the folders of tests have names of modules
    sys.exit(pytest.main(["--durations", "10", *(words or TESTS)], plugins=[Load(given.busy)]))
