"""Tests that are collected once and run in forks: a mutant costs what its tests cost, and no start of pytest.

``Collection`` starts this file in a process of its own, which imports and collects the tests and then answers requests.
For each it forks; the child changes the functions of a broken module in place, and runs the tests that were asked for.
Tests that start processes of their own see the broken file itself.
"""

import ast
import builtins
import gc
import json
import os
import resource
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

from footprints import NOTE, Blocks

OPTIONS = ["-q", "-p", "no:cacheprovider", "-m", "not browser"]
FOLDERS = ["tests", "src"]
CANNOT_CHANGE = 70  # exit code of a fork whose functions could not be changed in place
MAX_TRACED_EXAMPLES, MAX_TRACED_SECONDS = 3, 0.4  # which blocks a test runs shows soon
MAX_CASE_SECONDS = 0.1  # of a test with parameters: one more case is traced after one that takes longer
MAX_TRACED_WAIT = 30  # seconds by the clock: one that was ended may leave threads for which the next one waits


@dataclass
class Outcome:
    """How some tests went in a fork: its exit code, the test that failed or ran last, and CPU seconds of each."""

    code: int
    failed: str = ""
    last: str = ""
    seconds: float = 0.0
    took: dict[str, float] = field(default_factory=dict)


class Collection:
    """The tests of a project in a process that has imported them.

    Parameters
    ----------
    folder : Path
        The project.
    compiled : bool
        Whether kernels are compiled.
    tests : sequence of str
        Files or tests; all of them without any.

    """

    def __init__(self, folder: Path, compiled: bool, tests: Sequence[str] = ()) -> None:
        self.folder, self.compiled = folder, compiled
        self._notes = folder / f"notes-{os.getpid()}-{'compiled' if compiled else 'uncompiled'}.txt"
        names = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(folder / "src")}
        names |= {} if compiled else {"NUMBA_DISABLE_JIT": "1"}
        command = [sys.executable, str(Path(__file__).resolve()), *tests]
        self._process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **names}, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        answer = self._answer()
        self.tests: list[str] = answer["tests"]
        self.long = set[str](answer["long"])  # slow tests, and those that start servers
        self.random = set[str](answer["random"])  # those with random examples

    def run(self, tests: Sequence[str], limit: float, broken: Path | None = None, trace: Path | None = None) -> Outcome:
        """Run tests until the first failure or the end of their CPU seconds; all of them if they are traced.

        ``broken`` is a file whose functions have changed since it was imported, ``trace`` a file for the blocks run.
        """
        self._notes.write_text("")
        request = {"tests": list(tests), "limit": limit, "notes": str(self._notes)}
        request |= {"broken": str(broken) if broken else "", "trace": str(trace) if trace else ""}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return Outcome(**self._answer(), **_read_notes(self._notes))

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            raise ImportError(f"The tests of {self.folder} could not be collected: run 'make test' first.")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        with self._process:
            pass  # which closes its input and waits for its end


def _read_notes(notes: Path) -> dict[str, Any]:
    read: dict[str, Any] = {"failed": "", "last": "", "took": {}}
    for line in notes.read_text().splitlines():
        word, seconds, node = line.split(" ", 2)
        if word != "start":
            read["took"][node] = float(seconds)
        read["last"] = node
        read["failed"] = node if word == "failed" and not read["failed"] else read["failed"]
    return read


def can_change_in_place(source: str, start: int) -> bool:
    r"""Whether a byte of a source is in the body of a function: what is outside runs when the file is imported.

    >>> [can_change_in_place("LIMIT = 3\ndef f(x=1):\n    return x + 1\n", start) for start in (8, 18, 36)]
    [False, False, True]
    """
    lines = source.encode().splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first, last = node.body[0], node.body[-1]
            stop = starts[(last.end_lineno or last.lineno) - 1] + (last.end_col_offset or 0)
            if starts[first.lineno - 1] + first.col_offset <= start < stop:
                return True
    return False


def change_in_place(functions: Sequence[FunctionType], path: Path, before: str, after: str) -> None:
    """Give the functions of an imported file the code of another version that has the same functions.

    An error if none of those that differ was found: tests would see no mistake.
    """
    old, new = (_functions(compile(text, str(path), "exec")) for text in (before, after))
    codes = {(code.co_qualname, code.co_firstlineno): other for code, other in zip(old, new, strict=True)}
    changed = 0
    for function in functions:
        key = function.__code__.co_qualname, function.__code__.co_firstlineno
        if function.__code__.co_filename == str(path) and key in codes:
            changed += function.__code__ != codes[key]
            function.__code__ = codes[key]
    if not changed:
        raise LookupError(f"No function of {path} has changed.")


def all_blocks(package: Path, compiled: bool) -> dict[str, Blocks]:
    """The blocks of all files whose Python code is run, numbered through."""
    found, first = {}, 0
    for path in sorted(package.rglob("*.py")):
        source = path.read_text()
        if not (compiled and is_compiled(source)):
            found[str(path)] = Blocks(source, first)
            first += len(found[str(path)].ranges)
    return found


def is_compiled(source: str) -> bool:
    """Whether a source has compiled functions."""
    return "rankstream._core.compilation import" in source


def _functions(code: CodeType) -> list[CodeType]:
    """The functions and methods of a module, in the order of the source; what is inside of one is part of its code."""
    found = []
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and "<" not in inner.co_name:
            found += [inner] if inner.co_flags & CO_OPTIMIZED else _functions(inner)
    return found


class _Server:
    """A plugin that runs tests in forks, as they are asked for, instead of all of them."""

    def __init__(self) -> None:
        self.requests, self.answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
        self.notes, self.began, self.has_failed = Path(os.devnull), 0.0, False
        self.sources: dict[str, str] = {}
        self.functions: list[FunctionType] = []
        self.marked: dict[tuple[str, str, int], CodeType] = {}
        self.ran: set[int] = set()
        self.ran_before: defaultdict[str, set[int]] = defaultdict(set)  # by the fixtures that several tests share

    def pytest_runtestloop(self, session: Any) -> bool:
        """Answer requests until there are no more."""
        if session.testsfailed:
            return True  # some file could not be imported
        _load_kernels()
        _import_all(Path.cwd() / "src")
        items = {item.nodeid: item for item in session.items}
        package = Path.cwd() / "src" / "rankstream"
        self.sources = {str(path): path.read_text() for path in package.rglob("*.py")}
        gc.unfreeze()  # conftest hides what is imported from the garbage collector
        self.functions = [one for one in gc.get_objects() if type(one) is FunctionType and one.__module__]
        gc.freeze()
        long = [name for name, item in items.items() if any(map(item.get_closest_marker, ("slow", "server")))]
        random = [name for name, item in items.items() if getattr(getattr(item, "obj", None), "is_hypothesis_test", 0)]
        self._answer({"tests": list(items), "long": long, "random": random})
        for line in self.requests:
            request = json.loads(line)
            if request["trace"] and not self.marked:
                self._mark(package)
            child = os.fork()
            if not child:
                code = CANNOT_CHANGE
                try:
                    code = self._run(session, items, request)
                finally:
                    os._exit(code)
            _, status, used = os.wait4(child, 0)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
            seconds = used.ru_utime + used.ru_stime
            self._answer({"code": os.waitstatus_to_exitcode(status), "seconds": seconds})
        return True

    def _answer(self, answer: dict[str, Any]) -> None:
        self.answers.write(json.dumps(answer) + "\n")
        self.answers.flush()

    def _mark(self, package: Path) -> None:
        """Compile every function with marks in its blocks."""
        for path, blocks in all_blocks(package, os.environ.get("NUMBA_DISABLE_JIT") != "1").items():
            for code in _functions(compile(blocks.tree, path, "exec")):
                self.marked[path, code.co_qualname, code.co_firstlineno] = code

    def _trace(self) -> None:
        """Let every function note the blocks that it runs."""
        setattr(builtins, NOTE, self.ran.add)
        for function in self.functions:
            code = function.__code__
            if other := self.marked.get((code.co_filename, code.co_qualname, code.co_firstlineno)):
                function.__code__ = other

    def _run(self, session: Any, items: dict[str, Any], request: dict[str, Any]) -> int:
        os.setpgid(0, 0)
        soft = max(1, round(request["limit"]))
        resource.setrlimit(resource.RLIMIT_CPU, (soft, soft + 5))
        signal.alarm(int(20.0 * request["limit"]) + 60)  # for those that only wait
        self.notes = Path(request["notes"])
        if request["broken"]:
            path = Path(request["broken"])
            change_in_place(self.functions, path, self.sources[str(path)], path.read_text())
        tracing = Path(request["trace"]) if request["trace"] else None
        signal.signal(signal.SIGPROF, _end_test)
        if tracing:
            self._trace()
            signal.signal(signal.SIGALRM, _end_test)
        tests = [items[name] for name in request["tests"] if name in items]
        for item, following in self._in_turn(tests) if tracing else zip(tests, [*tests[1:], None], strict=True):
            _set_examples(item, bool(tracing))
            self.ran.clear()
            if tracing:
                signal.setitimer(signal.ITIMER_PROF, MAX_TRACED_SECONDS)
                signal.alarm(MAX_TRACED_WAIT)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            session.shouldfail = session.shouldstop = False
            if tracing:
                blocks = self.ran.union(*(self.ran_before[name] for name in item.fixturenames))
                with tracing.open("a") as out:
                    out.write(json.dumps([item.nodeid, sorted(blocks)]) + "\n")
            elif self.has_failed:
                return 1
        return int(self.has_failed)

    def _in_turn(self, tests: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Tests with those that follow, without cases of a test of which one has taken long."""
        item, long = tests[0], set[str]()
        for following in (*tests[1:], None):
            if following is None or following.nodeid.partition("[")[0] not in long:
                yield item, following
                if _cpu() - self.began > MAX_CASE_SECONDS:
                    long.add(item.nodeid.partition("[")[0])
                item = following

    def _note(self, word: str, node: str) -> None:
        with self.notes.open("a") as out:
            out.write(f"{word} {_cpu() - self.began:.3f} {node}\n")

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        """A fixture is made: what it runs is run for every test that shares it."""
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self.ran_before[fixturedef.argname] |= self.ran

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self.began = _cpu()
        self._note("start", nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A part of a test has ended."""
        self.has_failed |= report.failed
        if report.failed or report.when == "teardown":
            self._note("failed" if report.failed else "passed", report.nodeid)


def _import_all(source: Path) -> None:
    """Import the whole package, so that what tests import later can be changed in place as well."""
    for path in sorted((source / "rankstream").rglob("*.py")):
        if path.stem != "__main__":
            with suppress(ImportError):
                import_module(".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"))


def _load_kernels() -> None:
    """Load compiled code that many tests run, so that not every fork does."""
    with suppress(ImportError, AttributeError):  # a project of another name, as in tests
        import rankstream as rs

        counts = rs.ChoiceCounts(rs.Assortments([("a", "b", "n"), ("b", "c", "n"), ("a", "c", "n")]), range(1, 10))
        models = [rs.estimate(counts, method=name).model for name in ("nearest", "max-entropy", "latent-class")]
        for model in models:
            rs.best_offer(model, 1.0)


def _end_test(_: int, frame: FrameType | None) -> None:
    while frame:  # whoever ends a compilation has it again in the next test
        if f"{os.sep}numba{os.sep}" in frame.f_code.co_filename:
            signal.setitimer(signal.ITIMER_PROF, MAX_TRACED_SECONDS)
            return
        frame = frame.f_back
    raise TimeoutError("This test has run long enough to see which blocks it runs.")


def _set_examples(item: Any, is_traced: bool) -> None:
    """Look for no smaller example of a failure; of a test whose lines are traced, see only some examples."""
    from hypothesis import Phase, settings

    name = "_hypothesis_internal_use_settings"
    test = getattr(getattr(item, "obj", None), "__func__", getattr(item, "obj", None))
    if usual := getattr(test, name, None):
        number = min(usual.max_examples, MAX_TRACED_EXAMPLES) if is_traced else usual.max_examples
        setattr(test, name, settings(usual, max_examples=number, phases=(Phase.explicit, Phase.generate)))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    below = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime + below.ru_utime + below.ru_stime


def main() -> None:
    """Collect the tests that are named, or all of them, and answer requests."""
    server = _Server()
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(quiet, stream)
    sys.exit(pytest.main([*OPTIONS, *(sys.argv[1:] or FOLDERS)], plugins=[server]))


if __name__ == "__main__":
    main()
