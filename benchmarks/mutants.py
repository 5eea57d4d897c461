"""Mutants: small mistakes made on purpose, one at a time, to see whether the tests notice.

A sample of all mistakes that can be made in the package (``mutations``), kernels included, is drawn anew with every
seed. Each is made in a private copy of the project, and the tests that run its line (``relevance``), the quickest and
most focused first, run in forks (``forks``) until one fails or their time is up; then slow tests and those with
servers. A mutant is killed if a test fails that passes without it, or takes far longer; it survives if none does.
Files with compiled code run uncompiled. Run with
``make mutants``, or ``python benchmarks/mutants.py [--seed S] [--only N] [--seconds S] [--limit S] [--long S] [--work
FOLDER] [--measuring S] [module ...]``; a module is named by a part of its path, ``certificate/gap.py``. After Ctrl-C
the same command goes on where it was. Tests not seen within ``--measuring`` are picked by the names that they mention;
with 0, it begins to judge at once, and more mutants survive.
"""

import argparse
import contextlib
import json
import math
import os
import random
import resource
import shutil
import signal
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from forks import CANNOT_CHANGE, Collection, Outcome, can_change_in_place, is_compiled
from mutations import Mutation, mutations
from relevance import Mentions, Relevance, uncompiled_runs

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
MAX_TESTS_OF_A_START = 20  # where a mutant needs processes of its own, as every file with a test has to be read there
FAR_LONGER = 4.0  # times what a test takes without a mutant: then the mutant hangs it
LEAST_PER_PACKAGE = 2
CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE)  # compiled code wrote where it may not


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
    """What became of a mutant: killed, hung or survived; by which test, of how many, in how many CPU seconds.

    Where tests that were picked did not all run, because their time was up, the mutant may survive without reason.
    """

    key: str
    package: str
    word: str
    by: str
    tests: int
    ran: int
    seconds: float


class Copy:
    """A private copy of the project in which files are broken one at a time, and what is known of its tests."""

    def __init__(self, folder: Path, limit: float, long_limit: float = 10.0, measuring: float = math.inf) -> None:
        self.folder, self.limit, self.long_limit, self.measuring = folder.resolve(), limit, long_limit, measuring
        self.usual: dict[tuple[str, bool], Outcome] = {}
        self._broken = 0
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.pyc"))
            else:
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)

    @cached_property
    def relevance(self) -> Mapping[bool, Relevance | Mentions]:
        """Which tests run a line, for compiled code and uncompiled."""
        kept = self.folder.parent / "lines"
        if not self.measuring:
            return {compiled: Mentions(self.tests[compiled]) for compiled in self.tests}
        return {compiled: Relevance(self.tests[compiled], kept, self.measuring) for compiled in self.tests}

    @cached_property
    def tests(self) -> dict[bool, Collection]:
        """The tests of the copy, for compiled code and uncompiled."""
        kernels = [test for tests in uncompiled_runs(ROOT) for test in tests]
        some = {True: Collection(self.folder, True)}
        return some | ({False: Collection(self.folder, False, kernels)} if kernels else {})

    @contextlib.contextmanager
    def _with(self, mutant: Mutant) -> Iterator[None]:
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

    def run(self, tests: Sequence[str], compiled: bool, limit: float, mutant: Mutant | None = None) -> Outcome:
        """Run tests, on the copy as it is or with a mutant in it, until the first failure or the end of their time."""
        if mutant is None:
            return self.tests[compiled].run(tests, limit)
        path = self.folder / "src" / "rankstream" / mutant.module
        in_place = can_change_in_place(path.read_text(), mutant.mutation.start)
        with self._with(mutant):
            if in_place:
                outcome = self.tests[compiled].run(tests, limit, broken=path)
                if outcome.code != CANNOT_CHANGE:
                    return outcome
            before = _children_seconds()
            some = list(tests[:MAX_TESTS_OF_A_START])
            try:
                started = Collection(self.folder, compiled, some)
            except ImportError:
                return Outcome(1, failed=some[0], seconds=_children_seconds() - before)
            outcome = started.run(started.tests, limit)
            started.close()
            outcome.seconds = _children_seconds() - before
            return outcome

    def passes(self, test: str, compiled: bool) -> Outcome:
        """How a test goes without any mutant; looked at once."""
        if (test, compiled) not in self.usual:
            self.usual[test, compiled] = self.run([test], compiled, 2.0 * max(self.limit, self.long_limit))
        return self.usual[test, compiled]

    @property
    def seconds(self) -> float:
        """CPU seconds to see which tests run which lines, and that they pass without a mutant."""
        measuring = sum(one.seconds for one in self.relevance.values())
        return measuring + sum(one.seconds for one in self.usual.values())

    def close(self) -> None:
        """End the processes that have the tests."""
        for collection in self.tests.values():
            collection.close()


def every_mutant(names: Sequence[str] = ()) -> list[Mutant]:
    """All mistakes that can be made in the package, or in some of its modules."""
    package = ROOT / "src" / "rankstream"
    modules = [path.relative_to(package).as_posix() for path in sorted(package.rglob("*.py"))]
    chosen = [module for module in modules if not names or any(name in module for name in names)]
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


def judge(copy: Copy, mutant: Mutant) -> Fate:
    """Break the copy, and run the tests of the line until one notices or their time is up."""
    compiled = not is_compiled((ROOT / "src" / "rankstream" / mutant.module).read_text())
    fate = Fate(mutant.key, mutant.package, "survived", "", 0, 0, 0.0)
    if compiled in copy.relevance:
        relevance, line = copy.relevance[compiled], mutant.mutation.line
        fate = _try(copy, mutant, fate, relevance.pick(mutant.module, line), compiled, copy.limit)
        if fate.word == "survived" and copy.long_limit:
            fate = _try(copy, mutant, fate, relevance.pick_long(mutant.module, line), compiled, copy.long_limit)
    return fate


def _try(copy: Copy, mutant: Mutant, before: Fate, tests: list[str], compiled: bool, limit: float) -> Fate:
    """What becomes of a mutant with these tests, in so many CPU seconds, after others did not notice it."""
    seconds, word, by, picked, ran = 0.0, "survived", "", len(tests), 0
    while tests and seconds < limit - 1.0:
        found = copy.run(tests, compiled, limit - seconds, mutant)
        copy.relevance[compiled].took.update(found.took)
        seconds += found.seconds
        ran = max(ran, len(found.took))
        by = found.failed or (found.last if found.code < 0 else "")
        word = verdict(copy, found, by, compiled) if by else "survived"
        if word != "unsound":
            break
        tests = [one for one in tests if one != by]  # it fails, or takes as long, without the mutant
    word = "survived" if word == "unsound" else word
    by = "" if word == "survived" else by
    return replace(
        before, word=word, by=by, tests=before.tests + picked, ran=before.ran + ran, seconds=before.seconds + seconds
    )


def verdict(copy: Copy, found: Outcome, suspect: str, compiled: bool) -> str:
    """What an outcome says of a mutant: killed, hung or survived; unsound where the test fails without any."""
    usual = copy.passes(suspect, compiled)
    if usual.code:
        return "unsound"
    if found.failed or -found.code in CRASHES:
        return "killed"
    others = sum(seconds for test, seconds in found.took.items() if test != suspect)
    slow = found.seconds - others > FAR_LONGER * usual.took.get(suspect, copy.limit) + 1.0
    return "hung" if slow or found.code == -signal.SIGALRM else "survived"


def report(fates: Sequence[Fate]) -> str:
    """The score, package by package, and the survivors."""
    lines = []
    by_package = defaultdict(list)
    for fate in fates:
        by_package[fate.package].append(fate)
    for package, some in sorted(by_package.items()):
        lost = [fate for fate in some if fate.word == "survived"]
        lines.append(f"{package:<14}{len(some):>4} mutants {len(some) - len(lost):>4} killed {len(lost):>4} survived")
        lines += [
            f"    {fate.key} ({fate.ran} of {fate.tests} tests)" for fate in sorted(lost, key=lambda fate: fate.key)
        ]
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


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Judge the sample and print the share of mutants that were killed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="*", help="parts of their paths; all modules without any")
    parser.add_argument("--seed", type=int, default=0, help="which mutants are drawn")
    parser.add_argument("--only", type=int, default=300, help="how many")
    parser.add_argument("--seconds", type=float, default=3600.0, help="CPU seconds in all")
    parser.add_argument("--limit", type=float, default=12.0, help="CPU seconds for the tests of one")
    parser.add_argument("--long", type=float, default=10.0, help="CPU seconds for slow tests of one, after the others")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "mutants", help="a folder for copy and results")
    parser.add_argument("--measuring", type=float, default=900.0, help="CPU seconds to see what tests run, 0 for none")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    results = given.work / f"fates-{given.seed}-{_digest()}.jsonl"
    known = _known(results)
    sample = draw(every_mutant(given.modules), given.only, given.seed)
    copy = Copy(given.work / "copy", given.limit, given.long, given.measuring)
    fates = [known[mutant.key] for mutant in sample if mutant.key in known]
    spent = sum(fate.seconds for fate in fates)
    with contextlib.suppress(KeyboardInterrupt), results.open("a") as out:
        for mutant in sample:
            if mutant.key in known:
                continue
            if spent + copy.seconds >= given.seconds:
                print(f"Out of time after {len(fates)} of {len(sample)} mutants: raise --seconds to go on.")
                break
            fate = judge(copy, mutant)
            fates.append(fate)
            spent += fate.seconds
            out.write(json.dumps(asdict(fate)) + "\n")
            out.flush()
            print(f"{len(fates):>4} {fate.word:<9}{fate.seconds:>6.1f} s  {fate.key[:140]}", flush=True)
    copy.close()
    print(report(fates))
    print(f"{copy.seconds / 60.0:.1f} CPU minutes more to see which tests run which lines, and that these tests pass.")


if __name__ == "__main__":
    main()
