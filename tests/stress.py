"""Run tests of servers and browsers beside busy processes, on a machine that has no time for them.

    python tests/stress.py [--part 1] [--busy 20] [--minutes 12] [more words for pytest]

A part is every third of these tests, in the order of their files; three parts are all of them. Whatever waits for
seconds instead of a condition fails here. The busy processes start when the tests are collected, and end with the tests
or when the time is over; the stack of every thread then says which test hung, and where.
"""

import argparse
import faulthandler
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Timer
from time import monotonic  # tests replace that of the module

import pytest

ROOT = Path(__file__).parents[1]
MARKS = "browser or server"
SIGNS = re.compile(r"mark\.(browser|server)|import browser_pages|from browser_pages")
PARTS = 3  # each takes about 50 CPU seconds, of which a load of 20 leaves a tenth of a core to a process
GRACE_SECONDS = 60.0  # to end servers and browsers after the interrupt
BUSY = """
import os, sys, time
parent, end = os.getppid(), time.monotonic() + float(sys.argv[1])
while os.getppid() == parent and time.monotonic() < end: pass
"""


class Load:
    """A plugin of pytest: as many processes at normal priority that do nothing but use the processor, and a limit."""

    def __init__(self, number: int, seconds: float, part: int) -> None:
        self.number, self.seconds, self.part = number, seconds, part
        self.processes: list[subprocess.Popen[bytes]] = []
        self.timers: list[Timer] = []
        self.began = monotonic()
        self.processes_of = import_module("start").processes_of  # of benchmarks/; loaded before anything hangs
        self.terminal = os.dup(2)  # pytest captures standard error while a test runs

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the tests of the part."""
        kept = items[self.part - 1 :: PARTS]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept

    def pytest_collection_finish(self) -> None:
        """Start them: importing every test beside them would take longer than the tests."""
        words = [sys.executable, "-c", BUSY, str(self.seconds + GRACE_SECONDS)]
        self.began = monotonic()
        self.processes = [subprocess.Popen(words) for _ in range(self.number)]
        self.timers = [Timer(self.seconds, self.interrupt), Timer(self.seconds + GRACE_SECONDS, self.give_up)]
        for timer in self.timers:
            timer.daemon = True
            timer.start()

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Say after every test how long it took, and how much of the time has passed."""
        if report.when != "call" or not report.passed:
            return None
        passed = monotonic() - self.began
        return "passed", ".", f"PASSED {report.duration:.0f} s, {passed:.0f} of {self.seconds:.0f} s"

    def interrupt(self) -> None:
        """Show where the tests are, and end them as Ctrl-C does."""
        os.write(self.terminal, f"\n{self.seconds:.0f} seconds are over. Every thread is here:\n".encode())
        faulthandler.dump_traceback(self.terminal)
        os.kill(os.getpid(), signal.SIGINT)

    def give_up(self) -> None:
        """End what does not react, and all that it has started, such as servers and browsers."""
        for process in self.processes_of(os.getpid()).keys() - {os.getpid()}:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        os._exit(3)

    def pytest_sessionfinish(self) -> None:
        """End the busy processes."""
        for timer in self.timers:
            timer.cancel()
        for process in self.processes:
            process.kill()
            process.wait()


def marked_files() -> Iterator[str]:
    """The files with tests of servers or browsers; importing the others takes longer than these tests."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if SIGNS.search(path.read_text(encoding="utf-8")):
            yield str(path.relative_to(ROOT))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--busy", type=int, default=20, help="how many processes are busy")
    parser.add_argument("--part", type=int, choices=range(1, PARTS + 1), default=1, help="which of the parts")
    parser.add_argument("--minutes", type=float, default=12.0, help="when tests that still run are ended")
    given, words = parser.parse_known_args()
    os.chdir(ROOT)
    sys.path[:1] = [str(ROOT), str(ROOT / "benchmarks")]  # not tests/, whose folders have names of modules
    words = words or ["-m", MARKS, *marked_files()]
    load = Load(given.busy, 60.0 * given.minutes, given.part)
    sys.exit(pytest.main(["--verbose", "--durations", "10", *words], plugins=[load]))
