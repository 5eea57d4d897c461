"""Mutants: small mistakes made on purpose, one at a time, to see whether the tests notice.

A sample of all mistakes that can be made in the package (``mutations``), kernels included, is drawn anew with every
seed. Each is made in a private copy of the project, and the tests that run its line (``relevance``), the most focused
first, run until one fails or their time is up. A mutant is killed if a test fails that passes without it, or takes far
longer; it survives if none does. Files with compiled code run uncompiled. Run with ``make mutants``, or
``python benchmarks/mutants.py [--seed S] [--only N] [--seconds S] [--limit S] [--work FOLDER] [module ...]``; a module
is named by the end of its path, ``certificate/gap.py``. After Ctrl-C the same command goes on where it was.
"""

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from mutations import Mutation, mutations
from relevance import Relevance

ROOT = Path(__file__).resolve().parents[1]
COPIED = (
    "src",
    "tests",
    "benchmarks",
    "examples",
    "docs",
    "experiments",
    "conftest.py",
    "pyproject.toml",
    "README.md",
    "Makefile",
)
PRELOADED = ("scipy.optimize", "scipy.stats", "sklearn.base", "duckdb", "highspy", "pytest")
"""Not numba: whether it compiles is decided before it is imported."""
QUICK = ["-x", "-q", "-p", "no:cacheprovider"]
STAGES = (8, 32, 160)  # tests at a time, as every file with one has to be read before any runs
FAR_LONGER = 4.0  # times what a test takes without a mutant: then the mutant hangs it
LEAST_PER_PACKAGE = 2


@dataclass(frozen=True)
class Mutant:
    """A mistake in a module."""

    module: str
    mutation: Mutation

    @property
    def package(self) -> str:
        """The folder of the package that it is in."""
        return self.module.partition("/")[0] if "/" in self.module else "(top)"

    @property
    def key(self) -> str:
        """What it is remembered by: it is another one when the module has changed."""
        return f"{self.module}:{self.mutation.line}:{self.mutation.start}: {self.change}"

    @property
    def change(self) -> str:
        """The text before and after, on one line."""
        before, after = (" ".join(text.split()) for text in (self.mutation.before, self.mutation.after))
        return f"{before} -> {after}"


@dataclass(frozen=True)
class Fate:
    """What became of a mutant: killed, hung or survived; by which test, of how many, in how many CPU seconds."""

    key: str
    package: str
    word: str
    by: str
    tests: int
    seconds: float


@dataclass
class Outcome:
    """How some tests went in a child: its exit code, the test that failed or ran last, and CPU seconds of each."""

    code: int
    failed: str = ""
    last: str = ""
    seconds: float = 0.0
    took: dict[str, float] = field(default_factory=dict)


class Copy:
    """A private copy of the project in which files are broken one at a time, and what is known of its tests."""

    def __init__(self, folder: Path, limit: float) -> None:
        self.folder, self.limit = folder, limit
        self.usual: dict[tuple[str, bool], Outcome] = {}
        self._broken = 0
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.pyc"))
            else:
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)

    @contextlib.contextmanager
    def broken(self, mutant: Mutant) -> Iterator[None]:
        """The copy with one mutant in it."""
        path = self.folder / "src" / "rankstream" / mutant.module
        before, times = path.read_text(), path.stat()
        path.write_text(mutant.mutation.apply(before))
        self._broken += 1
        os.utime(path, (times.st_atime, times.st_mtime + 10.0 * self._broken))  # bytecode is known by whole seconds
        try:
            yield
        finally:
            path.write_text(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def run(self, tests: Sequence[str], compiled: bool, limit: float) -> Outcome:
        """Run tests in a child, until the first failure or the end of its CPU seconds."""
        told = self.folder / "told.txt"
        told.write_text("")
        child = os.fork()
        if not child:
            os.setpgid(0, 0)
            soft = max(1, int(limit))
            resource.setrlimit(resource.RLIMIT_CPU, (soft, soft + 5))
            signal.alarm(int(20.0 * limit) + 60)  # for those that only wait
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            os._exit(self._play(tests, compiled, told))
        try:
            _, status, used = os.wait4(child, 0)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
        outcome = Outcome(os.waitstatus_to_exitcode(status), seconds=used.ru_utime + used.ru_stime)
        for line in told.read_text().splitlines():
            word, seconds, node = line.split(" ", 2)
            outcome.took[node] = outcome.seconds - float(seconds) if word == "start" else float(seconds)
            outcome.last = node
            outcome.failed = node if word == "failed" else outcome.failed
        return outcome

    def _play(self, tests: Sequence[str], compiled: bool, told: Path) -> int:
        os.chdir(self.folder)
        if not compiled:
            os.environ["NUMBA_DISABLE_JIT"] = "1"
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # which takes longer than most tests
        os.environ["PYTHONPATH"] = str(self.folder / "src")
        sys.path.insert(0, str(self.folder / "src"))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        import pytest

        return int(pytest.main([*QUICK, *tests], plugins=[_Reporter(told)]))

    def passes(self, test: str, compiled: bool) -> Outcome:
        """How a test goes without any mutant; looked at once."""
        if (test, compiled) not in self.usual:
            self.usual[test, compiled] = self.run([test], compiled, 2.0 * self.limit)
        return self.usual[test, compiled]


class _Reporter:
    """A plugin that writes when a test begins, and how it ended."""

    def __init__(self, path: Path) -> None:
        self.path, self.began = path, 0.0

    def _tell(self, word: str, seconds: float, node: str) -> None:
        with self.path.open("a") as out:
            out.write(f"{word} {seconds:.3f} {node}\n")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self.began = _cpu()
        self._tell("start", self.began, nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A part of a test has ended."""
        if report.failed or report.when == "teardown":
            self._tell("failed" if report.failed else "passed", _cpu() - self.began, report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        """A module cannot even be imported."""
        if report.failed:
            self._tell("failed", _cpu() - self.began, report.nodeid)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def every_mutant(names: Sequence[str] = ()) -> list[Mutant]:
    """All mistakes that can be made in the package, or in some of its modules."""
    package = ROOT / "src" / "rankstream"
    modules = [path.relative_to(package).as_posix() for path in sorted(package.rglob("*.py"))]
    chosen = [module for module in modules if not names or module.endswith(tuple(names))]
    return [Mutant(module, one) for module in chosen for one in mutations((package / module).read_text())]


def draw(mutants: Sequence[Mutant], number: int, seed: int) -> list[Mutant]:
    """A random sample in random order, some of every package first; the shorter is the beginning of the longer."""
    shuffled = random.Random(f"mutants {seed}").sample(list(mutants), len(mutants))
    seen: Counter[str] = Counter()
    first: list[Mutant] = []
    others: list[Mutant] = []
    for mutant in shuffled:
        seen[mutant.package] += 1
        (first if seen[mutant.package] <= LEAST_PER_PACKAGE else others).append(mutant)
    return [*first, *others][:number]


def is_compiled(path: Path) -> bool:
    """Whether a file has compiled functions."""
    return "rankstream._core.compilation import" in path.read_text()


def judge(copy: Copy, mutant: Mutant, relevance: Relevance) -> Fate:
    """Break the copy, and run the tests of the line until one notices or their time is up."""
    compiled = not is_compiled(ROOT / "src" / "rankstream" / mutant.module)
    picked = relevance.pick(mutant.module, mutant.mutation.line, compiled)
    seconds, number, word, by = 0.0, 0, "survived", ""
    for size in STAGES:
        tests, picked = picked[:size], picked[size:]
        number += len(tests)
        while tests and word == "survived" and seconds < copy.limit - 1.0:
            with copy.broken(mutant):
                found = copy.run(tests, compiled, copy.limit - seconds)
            seconds += found.seconds
            by = found.failed or (found.last if found.code < 0 else "")
            word = verdict(copy, found, tests, compiled)
            if word == "survived" or not by:
                break
            # it fails, or takes as long, without the mutant: another one may tell
            tests = tests if word != "unsound" else [one for one in tests if one != by]
            word = "survived" if word == "unsound" else word
    return Fate(mutant.key, mutant.package, word, "" if word == "survived" else by, number, seconds)


def verdict(copy: Copy, found: Outcome, tests: Sequence[str], compiled: bool) -> str:
    """What an outcome says of a mutant: killed, hung or survived; unsound where a test fails without any."""
    suspect = found.failed or (found.last if found.code < 0 else "")
    if not suspect:
        if found.code in (0, 5) or found.code < 0:
            return "survived"
        if copy.passes(tests[-1], compiled).code:
            sys.exit(f"{tests[-1]} does not pass in {copy.folder} without a mutant: mend that first.")
        return "killed"  # pytest could not even begin
    usual = copy.passes(suspect, compiled)
    if usual.code:
        return "unsound"
    if found.failed:
        return "killed"
    slow = found.took.get(suspect, 0.0) > FAR_LONGER * usual.took.get(suspect, copy.limit) + 1.0
    return "hung" if slow else "survived"


def report(fates: Sequence[Fate]) -> str:
    """The score, package by package, and the survivors."""
    lines = []
    by_package = defaultdict(list)
    for fate in fates:
        by_package[fate.package].append(fate)
    for package, some in sorted(by_package.items()):
        lost = [fate for fate in some if fate.word == "survived"]
        lines.append(f"{package:<14}{len(some):>4} mutants {len(some) - len(lost):>4} killed {len(lost):>4} survived")
        lines += [f"    {fate.key}" for fate in sorted(lost, key=lambda fate: fate.key)]
    words = Counter(fate.word for fate in fates)
    total, minutes = max(1, len(fates)), sum(fate.seconds for fate in fates) / 60.0
    share = 1.0 - words["survived"] / total
    lines.append(
        f"{len(fates)} mutants, {share:.1%} killed ({words['hung']} of them by time), {words['survived']} survived, "
        f"{minutes:.1f} CPU minutes"
    )
    return "\n".join(lines)


def _digest() -> str:
    """What the fates of a sample depend on: the sources and the tests."""
    whole = sha256()
    for folder in ("src", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            whole.update(path.read_bytes())
    return whole.hexdigest()[:12]


def _known(path: Path) -> dict[str, Fate]:
    if not path.exists():
        return {}
    fates = [Fate(**json.loads(line)) for line in path.read_text().splitlines() if line.endswith("}")]
    return {fate.key: fate for fate in fates}


def main() -> None:
    """Judge the sample and print the share of mutants that were killed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="*", help="ends of their paths; all modules without any")
    parser.add_argument("--seed", type=int, default=0, help="which mutants are drawn")
    parser.add_argument("--only", type=int, default=300, help="how many")
    parser.add_argument("--seconds", type=float, default=3600.0, help="CPU seconds in all")
    parser.add_argument("--limit", type=float, default=20.0, help="CPU seconds for the tests of one")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "mutants", help="a folder for copy and results")
    given = parser.parse_args()
    for name in PRELOADED:
        import_module(name)
    given.work.mkdir(parents=True, exist_ok=True)
    results = given.work / f"fates-{given.seed}-{_digest()}.jsonl"
    known = _known(results)
    sample = draw(every_mutant(given.modules), given.only, given.seed)
    copy, relevance = Copy(given.work.resolve() / "copy", given.limit), Relevance(ROOT, given.work, _digest())
    fates = [known[mutant.key] for mutant in sample if mutant.key in known]
    spent = sum(fate.seconds for fate in fates)
    with contextlib.suppress(KeyboardInterrupt), results.open("a") as out:
        for mutant in sample:
            if mutant.key in known:
                continue
            if spent >= given.seconds:
                print(f"Out of time after {len(fates)} of {len(sample)} mutants: raise --seconds to go on.")
                break
            fate = judge(copy, mutant, relevance)
            fates.append(fate)
            spent += fate.seconds
            out.write(json.dumps(asdict(fate)) + "\n")
            out.flush()
            print(f"{len(fates):>4} {fate.word:<9}{fate.seconds:>6.1f} s  {fate.key[:140]}", flush=True)
    checks = sum(one.seconds for one in copy.usual.values())
    print(report(fates))
    print(f"{checks / 60.0:.1f} CPU minutes to see the same tests pass without a mutant.")
    print(f"{relevance.seconds / 60.0:.1f} CPU minutes to measure which tests run which lines (kept in {given.work}).")


if __name__ == "__main__":
    main()
