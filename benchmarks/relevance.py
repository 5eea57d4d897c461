"""Which tests run a line of the package: measured by coverage of the whole suite, test by test.

The suite runs once, and the tests of kernels once more uncompiled, as ``make test`` runs them: compiled code leaves no
trace. What was measured is kept in a folder, for the sources and tests as they are.
"""

import ast
import os
import re
import resource
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

from coverage import CoverageData

SUITE = ["-q", "-p", "no:cacheprovider", "--numprocesses", "2", "--dist", "worksteal", "-m", "not browser"]
TRACED = ["--cov", "--cov-context=test", "--cov-report=", "--cov-fail-under=0"]


def uncompiled_runs(root: Path) -> list[list[str]]:
    """Tests that ``make test`` also runs uncompiled: for each run the files, or single tests of them."""
    text = (root / "Makefile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if "NUMBA_DISABLE_JIT=1" in line]
    return [re.findall(r"tests/\w+/test_\w+\.py(?:::\w+)?", line) for line in lines]


class Relevance:
    """What each test runs, as measured in ``folder``; measured first where it was not.

    Parameters
    ----------
    root : Path
        The project.
    folder : Path
        Where measurements are kept.
    digest : str
        What names the sources and tests as they are.

    """

    def __init__(self, root: Path, folder: Path, digest: str) -> None:
        self.root, self.folder, self.digest = root, folder, digest
        self.seconds = 0.0
        runs = [[], *uncompiled_runs(root)]
        paths = [self._measured(number, tests) for number, tests in enumerate(runs)]
        self.compiled, self.uncompiled = [_read(path) for path in paths[:1]], [_read(path) for path in paths[1:]]

    def _measured(self, number: int, tests: list[str]) -> Path:
        path = self.folder / f"coverage-{self.digest}-{number}"
        if not path.exists():
            partial = path.with_suffix(".partial")
            partial.unlink(missing_ok=True)
            names = {"COVERAGE_FILE": str(partial), "PYTHONPATH": str(self.root / "src")}
            names |= {"NUMBA_DISABLE_JIT": "1"} if number else {}
            before = _children_seconds()
            command = [sys.executable, "-m", "pytest", *SUITE, *TRACED, *tests]
            done = subprocess.run(command, cwd=self.root, env={**os.environ, **names}, check=False)
            if done.returncode not in (0, 1):  # a test that fails is seen to fail without a mutant, too
                sys.exit(f"The tests could not be run (exit code {done.returncode}): run 'make test' first.")
            self.seconds += _children_seconds() - before
            partial.rename(path)
        return path

    def pick(self, module: str, line: int, compiled: bool) -> list[str]:
        """The tests that run a line, those that run least beside it first."""
        source = self.root / "src" / "rankstream" / module
        sizes: dict[str, int] = {}
        for data in self.compiled if compiled else self.uncompiled:
            of_tests = _sizes(data)
            for file, numbers in self._lines(source, line).items():
                contexts = data.contexts_by_lineno(str(file))
                tests = {test for number in numbers for test in contexts.get(number, ()) if test}
                sizes |= {node_of(test): of_tests[node_of(test)] for test in tests}
        return sorted(sizes, key=lambda test: (sizes[test], test))

    def _lines(self, source: Path, line: int) -> dict[Path, list[int]]:
        """The lines to look for: those of the statement, or, of a module's constant, those that name it."""
        tree = ast.parse(source.read_text())
        if any(isinstance(node, ast.FunctionDef) and _holds(node, line) for node in ast.walk(tree)):
            around = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and _holds(node, line)]
            inner = max(around, key=lambda node: node.lineno)
            return {source: list(range(inner.lineno, line + 1))}
        names = {
            target.id
            for node in tree.body
            if _holds(node, line) and isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        if not names:
            return {source: list(range(1, len(source.read_text().splitlines()) + 1))}
        pattern = re.compile(rf"\b({'|'.join(names)})\b")
        return {
            path: [number for number, text in enumerate(path.read_text().splitlines(), 1) if pattern.search(text)]
            for path in (self.root / "src").rglob("*.py")
            if pattern.search(path.read_text())
        }


def node_of(context: str) -> str:
    """A test as pytest calls it, from the name that coverage gives it.

    >>> node_of("tests/data/test_counts.py::test_sums[3]|run")
    'tests/data/test_counts.py::test_sums[3]'
    """
    return context.rpartition("|")[0] or context


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _read(path: Path) -> CoverageData:
    data = CoverageData(str(path))
    data.read()
    return data


@cache
def _sizes(data: CoverageData) -> Counter[str]:
    """How many lines each test runs."""
    sizes: Counter[str] = Counter()
    for file in data.measured_files():
        for contexts in data.contexts_by_lineno(file).values():
            sizes.update({node_of(test) for test in contexts})
    return sizes


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
