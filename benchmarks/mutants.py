"""Mutants: small mistakes made on purpose, one at a time, to see whether the tests of a module notice.

A sample of mutants of every module below is run against the tests of that module only (``TESTS``), in a copy of the
project. A mutant is killed if a test fails or the tests take far longer than they should; it survives if all pass.
Compiled kernels are left out: their slow twins test them. Run with ``make mutants``, or
``python benchmarks/mutants.py [--sample N] [--seed S] [--work FOLDER] [module ...]``; a module is named by the end of
its path, ``certificate/gap.py``, and with ``--sample 0`` all of its mutants are made.
"""

import argparse
import contextlib
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from mutations import Mutation, mutations

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("src", "tests", "benchmarks", "examples", "conftest.py", "pyproject.toml")
PRELOADED = ("numba", "scipy.optimize", "scipy.stats", "sklearn.base", "duckdb", "highspy", "pytest")
TESTS = {
    "certificate/confidence.py": ("certificate", "guarantees", "whole_choices"),
    "certificate/fit_bound.py": ("sharp_certificates", "partition"),
    "certificate/proof.py": ("proof", "partition"),
    "oracles/bounds/pool.py": ("cuts", "proof"),
    "oracles/bounds/exclusions.py": ("cuts", "proof"),
    "oracles/bounds/group_cuts.py": ("cuts",),
    "oracles/bounds/parts.py": ("parts", "proof"),
    "oracles/bounds/rounds.py": ("parts", "proof"),
    "columns/least.py": ("least",),
    "columns/proving.py": ("proving",),
    "streams/proofs.py": ("least", "served"),
    "certificate/gap.py": ("sharp_certificates", "certificate", "solver"),
    "certificate/guarantees.py": ("guarantees",),
    "distances/*.py": ("sharp_parts", "sharp_certificates", "distances", "registry"),
    "learners/*.py": ("sharp_parts", "sharp_certificates", "learners", "guarantees", "registry"),
    "solver/*.py": ("sharp_certificates", "solver", "saddle_points", "chunks"),
    "streams/reweighing.py": ("reweighing",),
    "streams/growth.py": ("growth",),
    "oracles/*.py": ("sharp_parts", "honest_bounds", "oracles", "exact_oracles"),
    "oracles/branch.py": ("honest_bounds", "search"),
    "data/forgetting.py": ("windows", "sharp_parts", "live"),
    "columns/rationality.py": ("sharp_columns", "rationality"),
    "columns/squared.py": ("sharp_columns", "rationality"),
    "columns/revenue.py": ("sharp_columns", "revenue"),
    "columns/search.py": ("sharp_columns", "revenue"),
    "columns/master.py": ("sharp_columns", "revenue"),
    "columns/mle.py": ("sharp_columns", "mle"),
    "columns/*.py": ("sharp_columns", "pricing", "corrective", "column_generation", "mle"),
    "estimation/intervals.py": ("sharp_certificates", "intervals"),
}
"""Which tests are those of a module; a line with its own name goes before one with a star."""
WRAPPERS = ("protocol.py", "milp.py", "wrappers.py", "components.py", "branch.py")
"""The oracles that are not tables filled by kernels."""
PATIENCE = 4.0
"""Times what the tests take without a mutant, and some seconds: then the mutant counts as one that hangs."""


class Fate(NamedTuple):
    """What became of a mutant, and the seconds of computing that it took."""

    module: str
    mutation: Mutation
    word: str
    seconds: float


@dataclass(frozen=True)
class Copy:
    """A copy of the project in which files are broken one at a time."""

    folder: Path

    def source(self, module: str) -> Path:
        """The file of a module."""
        return self.folder / "src" / "rankstream" / module

    def tests(self, module: str) -> list[str]:
        """The test files of a module, and the examples in its docstrings."""
        return [*(f"tests/test_{name}.py" for name in names_of(module)), f"src/rankstream/{module}"]

    @contextlib.contextmanager
    def broken(self, module: str, mutation: Mutation) -> Iterator[None]:
        """The copy with one mutant in it."""
        path = self.source(module)
        before, times = path.read_text(), path.stat()
        path.write_text(mutation.apply(before))
        try:
            yield
        finally:
            path.write_text(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def passes(self, module: str, limit: float) -> tuple[str, float]:
        """Whether the tests pass ("survived", "killed", "hung") and the seconds of computing, which have a limit."""
        child = os.fork()
        if not child:
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))
            signal.alarm(int(20.0 * limit))  # for those that only wait
            os._exit(self._run(self.tests(module)))
        _, status, used = os.wait4(child, 0)
        code = os.waitstatus_to_exitcode(status)
        word = "survived" if code == 0 else "killed" if code > 0 else "hung"
        return word, used.ru_utime + used.ru_stime

    def _run(self, files: list[str]) -> int:
        import pytest

        os.chdir(self.folder)
        sys.path.insert(0, str(self.folder / "src"))
        sys.dont_write_bytecode = True
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        options = ["-x", "-q", "-n0", "--no-cov", "--maxfail=1", "-p", "no:cacheprovider", "-p", "no:randomly"]
        return int(pytest.main([*options, *files]))


def names_of(module: str) -> tuple[str, ...]:
    """Which tests are those of a module."""
    return next(names for pattern, names in sorted(TESTS.items(), key=_is_general) if Path(module).match(pattern))


def _is_general(entry: tuple[str, tuple[str, ...]]) -> bool:
    return "*" in entry[0]


def modules(names: list[str]) -> list[str]:
    """The modules that the table names, or those of them that were asked for."""
    house = ROOT / "src" / "rankstream"
    found = {path.relative_to(house).as_posix(): path.name for pattern in TESTS for path in sorted(house.glob(pattern))}
    kept = [module for module, file in found.items() if not file.endswith("_kernels.py")]
    kept = [module for module in kept if not module.startswith("oracles/") or module.endswith(WRAPPERS)]
    return [module for module in kept if not names or module.endswith(tuple(names))]


def chosen(path: Path, module: str, sample: int, seed: int) -> list[Mutation]:
    """A sample of a module's mutants, the same for the same seed and source; 0 for all."""
    found = mutations(path.read_text())
    if not sample or len(found) <= sample:
        return found
    return sorted(random.Random(f"{seed} {module}").sample(found, sample))


def run(copy: Copy, module: str, sample: int, seed: int, usual: dict[tuple[str, ...], float]) -> list[Fate]:
    """The fates of a module's mutants; survivors are printed as they come. ``usual`` is what tests take without one."""
    picked = chosen(copy.source(module), module, sample, seed)
    names = names_of(module)
    if picked and names not in usual:
        word, usual[names] = copy.passes(module, 600.0)
        if word != "survived":
            sys.exit(f"The tests of {module} do not pass without a mutant ({word}): mend them first.")
    fates = []
    for mutation in picked:
        with copy.broken(module, mutation):
            fate = Fate(module, mutation, *copy.passes(module, 10.0 + PATIENCE * usual[names]))
        fates.append(fate)
        if fate.word == "survived":
            print(f"    {module}:{mutation.line}: {mutation.before!r} -> {mutation.after!r}", flush=True)
    lost = sum(fate.word == "survived" for fate in fates)
    took = sum(fate.seconds for fate in fates)
    print(
        f"{module:<32}{len(fates):>6} mutants {len(fates) - lost:>6} killed {lost:>4} survived {took:>7.0f} s",
        flush=True,
    )
    return fates


def main() -> None:
    """Run the sample and print the share of mutants that were killed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="*", help="ends of their paths; all of the table without any")
    parser.add_argument("--sample", type=int, default=8, help="mutants per module; 0 for all")
    parser.add_argument("--seed", type=int, default=0, help="which mutants are in the sample")
    parser.add_argument("--work", type=Path, help="a folder for the copy, which is kept; else a temporary one")
    given = parser.parse_args()
    for name in PRELOADED:
        import_module(name)
    with contextlib.ExitStack() as stack:
        folder = given.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True)
            else:
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        copy, usual = Copy(folder), dict[tuple[str, ...], float]()
        named = modules(given.modules)
        fates = [fate for module in named for fate in run(copy, module, given.sample, given.seed, usual)]
    lost = sum(fate.word == "survived" for fate in fates)
    hung = sum(fate.word == "hung" for fate in fates)
    took = sum(fate.seconds for fate in fates)
    share = 1.0 - lost / max(1, len(fates))
    print(
        f"{len(fates)} mutants, {len(fates) - lost} killed ({share:.1%}, {hung} of them by time), {took / 60:.0f} min"
    )


if __name__ == "__main__":
    main()
