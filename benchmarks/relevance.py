"""Which tests run a line of the package: the blocks that a test runs are noted (``footprints``), test by test.

All but slow tests and servers run once, for a part of a second, and the tests of kernels once more uncompiled, as
``make test`` runs them: compiled code leaves no trace. What was measured stays in a folder, file by file, and is
measured again when the sources or that file change. ``Mentions`` goes by the names that tests mention: it orders tests,
and adds those that need longer to get to a line, or run it in a process of their own.
"""

import ast
import json
import re
from collections import Counter, defaultdict
from hashlib import sha256
from pathlib import Path

import numpy as np

from footprints import Blocks
from forks import Collection, all_blocks

MAX_SECONDS_OF_A_FILE = 900.0
MAX_TRACED_CASES = 200  # of one test with parameters
MAX_NAMED_CASES = 6  # of one test with parameters, where nothing is measured
NOT_TRACED = "tests/project/"  # tests of documents, names and the package, which run a bit of everything
RING_WEIGHTS = (4.0, 2.0, 1.0, 0.5)  # of a function that a test mentions, by how many calls it is from the line
MAX_NAMESAKES = 2  # functions of one name up to which a call may mean any of them, imported or not
MAX_CALLERS = 40  # with more, that a test mentions one says little
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
STEPS_OF_EFFORT = (0.05, 0.3, 2.0)  # CPU seconds: quick tests run first, and the most focused first among those
LEAST_FOCUSED_SCORE = 3.0  # of a test that names the function, or whose file imports the module


def uncompiled_runs(root: Path) -> list[list[str]]:
    """Tests that ``make test`` also runs uncompiled: for each run the files, or single tests of them."""
    text = (root / "Makefile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if "NUMBA_DISABLE_JIT=1" in line]
    return [re.findall(r"tests/\w+/test_\w+\.py(?:::\w+)?", line) for line in lines]


class Relevance:
    """What each test of a collection runs, as measured in a folder; measured first where it was not.

    Parameters
    ----------
    tests : Collection
        The tests, of a project that does not change.
    folder : Path
        Where measurements stay.
    budget : float
        CPU seconds after which no further file is measured, quick ones first; their tests go by what they mention.

    """

    def __init__(self, tests: Collection, folder: Path, budget: float = np.inf) -> None:
        self.root, self.seconds = tests.folder, 0.0
        self.took: dict[str, float] = {}
        self._random = tests.random
        self._blocks = all_blocks(self.root / "src" / "rankstream", tests.compiled)
        self._runners: defaultdict[int, list[str]] = defaultdict(list)  # of each block
        self._effort: dict[str, tuple[float, int]] = {}
        self._cases: defaultdict[str, list[str]] = defaultdict(list)
        folder.mkdir(parents=True, exist_ok=True)
        self._mentions = Mentions(tests)
        by_file = defaultdict(list)
        for test in tests.tests:
            if test in tests.long or test.startswith(NOT_TRACED):
                continue
            name = test.partition("::")[0]
            self._cases[test.partition("[")[0]].append(test)
            if len(self._cases[test.partition("[")[0]]) <= MAX_TRACED_CASES:
                by_file[Path(name).parent.as_posix() if name.startswith("src/") else name].append(test)
        sources = self._digest("src", "conftest.py")
        for name, some in sorted(by_file.items(), key=lambda entry: not self._mentions.is_quick(entry[0])):
            mode = "" if tests.compiled else "-uncompiled"
            path = folder / f"{re.sub('[/.]', '-', name)}{mode}-{sources}-{self._digest(name)}.json"
            if not path.exists() and self.seconds >= budget:
                continue
            if not path.exists():
                path.write_text(json.dumps(self._measured(tests, some, path.with_suffix(".part"))))
                print(f"{self.seconds:6.0f} s of measuring: {name}{mode}", flush=True)
            for test, (seconds, blocks) in json.loads(path.read_text()).items():
                self._effort[test] = seconds, len(blocks)
                for block in blocks:
                    self._runners[block].append(test)

    def _digest(self, *names: str) -> str:
        """A name for the content of files and folders."""
        whole = sha256()
        for name in names:
            path = self.root / name
            for file in sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.exists() else []:
                whole.update(file.read_bytes())
        return whole.hexdigest()[:12]

    def _measured(self, tests: Collection, some: list[str], path: Path) -> dict[str, tuple[float, list[int]]]:
        """Run the tests of a file; for each that passes its CPU seconds, and the blocks that it runs."""
        path.write_text("")
        outcome = tests.run(some, MAX_SECONDS_OF_A_FILE, trace=path)
        self.seconds += outcome.seconds
        found = dict(json.loads(line) for line in path.read_text().splitlines())
        path.unlink()
        return {test: (outcome.took[test], blocks) for test, blocks in found.items() if outcome.took.get(test, -1) >= 0}

    def pick(self, module: str, line: int) -> list[str]:
        """The tests that run a line, quick ones and those of its own package first; then those that mention it."""
        source = self.root / "src" / "rankstream" / module
        blocks = {
            block
            for path, numbers in self._lines(source, line).items()
            for number in numbers
            for block in self._around(path, number)
        }
        found = {test for block in blocks or self._all(source) for test in self._runners[block]}
        scores, decided = self._mentions.scores(module, line), self._decided(source, line)
        picked = sorted(
            found,
            key=lambda test: self._cost(test, module, scores.get(test.partition("[")[0], 0.0), test in decided),
        )
        tests = dict.fromkeys(test.partition("[")[0] for test in picked)
        cases = (case for test in tests for case in self._cases[test])
        return list(dict.fromkeys([*picked, *cases, *self._mentions.pick(module, line)]))

    def pick_long(self, module: str, line: int) -> list[str]:
        """Slow tests and those that start servers, by what they mention."""
        return self._mentions.pick_long(module, line)

    def _cost(self, test: str, module: str, score: float, is_decided: bool) -> tuple[int, int, str]:
        """What a test is sorted by: long ones and those of other packages come later, those that name it sooner."""
        seconds, blocks = self._effort[test]
        path = Path(test.partition("::")[0])
        is_own = path.parent.name == module.partition("/")[0] or path.as_posix().endswith(module)
        tier = sum(seconds > step for step in STEPS_OF_EFFORT) - (score >= LEAST_FOCUSED_SCORE) - is_decided
        return tier + (not is_own) * (1 + (test in self._random)), blocks, test

    def _decided(self, path: Path, line: int) -> set[str]:
        """The tests that take the rarer way where the line decides between two, as when a check fails."""
        blocks, ways = self._blocks.get(str(path), Blocks("")), []
        for node in ast.walk(blocks.tree):
            if isinstance(node, ast.If | ast.For | ast.While) and node.lineno <= line < node.body[0].lineno:
                ways += [blocks.around(body[0].lineno) for body in (node.body, node.orelse) if body]
        runners = [set(self._runners[block]) for block in ways if block is not None and self._runners[block]]
        return min(runners, key=len, default=set())

    def _lines(self, source: Path, line: int) -> dict[Path, list[int]]:
        """The lines to look for: those of the statement, or, of a module's constant, those that name it."""
        tree = ast.parse(source.read_text())
        if any(isinstance(node, DEFINITIONS[:2]) and _holds(node, line) for node in ast.walk(tree)):
            return {source: [line]}
        names = {
            target.id
            for node in tree.body
            if _holds(node, line) and isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        if not names:
            return {}
        pattern = re.compile(rf"\b({'|'.join(names)})\b")
        return {
            path: [number for number, text in enumerate(path.read_text().splitlines(), 1) if pattern.search(text)]
            for path in (self.root / "src").rglob("*.py")
            if pattern.search(path.read_text())
        }

    def _around(self, path: Path, line: int) -> list[int]:
        """The block that holds a line; of the head of a function, the function's."""
        blocks = self._blocks.get(str(path), Blocks(""))
        if (found := blocks.around(line)) is not None:
            return [found]
        heads = (node for node in ast.walk(blocks.tree) if isinstance(node, DEFINITIONS[:2]) and _holds(node, line))
        return [block for node in heads if (block := blocks.around(node.body[-1].lineno)) is not None]

    def _all(self, path: Path) -> range:
        """All blocks of a file."""
        blocks = self._blocks.get(str(path), Blocks(""))
        return range(blocks.first, blocks.first + len(blocks.ranges))


class Mentions:
    """Which tests may notice a mistake, by what they mention: quick to tell, though some that run its line are missed.

    A test counts by the functions and classes around the line that it names, or that call those, directly or through
    others (``CallGraph``); by an import of the module in its file; and by its folder, which is that of the module's
    package. Helpers of a test in its file or in ``tests/helpers`` are part of it. Tests known to take long come later.
    """

    seconds = 0.0

    def __init__(self, tests: Collection, calls: "CallGraph | None" = None) -> None:
        self.root, self._long = tests.folder, tests.long
        self.took: dict[str, float] = {}
        self._calls = calls or CallGraph(self.root / "src" / "rankstream")
        self._texts: dict[str, str] = {}
        self._words: dict[str, set[str]] = {}
        self._quick: set[str] = set()
        self._tests: defaultdict[str, list[str]] = defaultdict(list)
        for test in tests.tests:
            if len(self._tests[test.partition("[")[0]]) < MAX_NAMED_CASES:
                self._tests[test.partition("[")[0]].append(test)
        helpers = {path.stem: _bodies(path.read_text()) for path in (self.root / "tests" / "helpers").glob("*.py")}
        shared = {name: words for bodies in helpers.values() for name, words in bodies.items()}
        for name in {test.partition("::")[0] for test in self._tests}:
            self._texts[name] = (self.root / name).read_text()
            own = {} if name.startswith("src/") else _bodies(self._texts[name])
            self._quick |= {name} if "pytest.mark.quick" in self._texts[name] else set()
            for test, words in own.items():
                for _ in range(2):  # helpers of helpers as well
                    words = words | set[str]().union(*(own.get(word) or shared.get(word, set()) for word in words))
                self._words[f"{name}::{test}"] = words

    def pick(self, module: str, line: int) -> list[str]:
        """The tests, those that mention most first."""
        return [test for test in self._ranked(module, line, 1.0) if test not in self._long]

    def pick_long(self, module: str, line: int) -> list[str]:
        """Slow tests and those that start servers: what these mention, and then the others of the package's folder."""
        return [test for test in self._ranked(module, line, 0.5) if test in self._long]

    def is_quick(self, name: str) -> bool:
        """Whether a file's tests are of the quick tier, or examples in docstrings."""
        return name in self._quick or name.startswith("src/")

    def scores(self, module: str, line: int) -> dict[str, float]:
        """How much each test mentions what is around a line."""
        rings = self._calls.around(module, line)
        dotted = module.removesuffix(".py").replace("/", ".")
        above, _, last = f"rankstream.{dotted}".rpartition(".")
        imported = re.compile(rf"rankstream\.{re.escape(dotted)}\b|from {re.escape(above)} import [^\n]*\b{last}\b")
        imports = {name for name, text in self._texts.items() if imported.search(text)}
        scores = {}
        for test in self._tests:
            name, _, own = test.partition("::")
            if name.startswith("src/"):
                scores[test] = 10.0 * name.endswith(module) + (own.rpartition(".")[2] in rings[0] | rings[1])
                continue
            words = self._words.get(test, set())
            score = sum(weight * min(2, len(words & ring)) for weight, ring in zip(RING_WEIGHTS, rings, strict=True))
            score += (3.0 + (name in self._quick)) * (name in imports)
            is_own = Path(name).parent.name == module.partition("/")[0]
            scores[test] = score + is_own if score else 0.5 * is_own
        return scores

    def _ranked(self, module: str, line: int, least: float) -> list[str]:
        """The tests whose score is not below the least, best first."""
        scores = self.scores(module, line)
        order = sorted(
            (test for test in scores if scores[test] >= least), key=lambda test: self._rank(test, scores[test])
        )
        return [case for test in order for case in self._tests[test]]

    def _rank(self, test: str, score: float) -> float:
        seconds = self.took.get(self._tests[test][0], 0.0)
        return sum(seconds > step for step in STEPS_OF_EFFORT) - score


class CallGraph:
    """Which functions of a package call which, by their names: those that may run a line, the nearest first."""

    def __init__(self, package: Path) -> None:
        self._trees = {
            path.relative_to(package).as_posix(): ast.parse(path.read_text()) for path in package.rglob("*.py")
        }
        self._functions: list[tuple[str, str, set[str]]] = []  # module, name, and the names that it mentions
        self._imports: dict[str, set[str]] = {}
        for module, tree in self._trees.items():
            self._imports[module] = {
                name.asname or name.name
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom)
                for name in node.names
            }
            for node in ast.walk(tree):
                if isinstance(node, DEFINITIONS):
                    self._functions.append((module, node.name, {_name(part) for part in ast.walk(node)} - {""}))
        self._times = Counter(name for _, name, _ in self._functions)

    def around(self, module: str, line: int) -> list[set[str]]:
        """The functions and classes around a line, or a constant there; then those that use them, and so on."""
        tree = self._trees[module]
        inner = {node.name for node in ast.walk(tree) if isinstance(node, DEFINITIONS) and _holds(node, line)}
        if not inner:
            named = [name for node in tree.body if _holds(node, line) for name in ast.walk(node)]
            inner = {name.id for name in named if isinstance(name, ast.Name)}
        rings, known, ring = [inner], set(inner), {(module, name) for name in inner}
        for _ in RING_WEIGHTS[1:]:
            ring = {
                (other, name)
                for other, name, used in self._functions
                if name not in known and any(called in used and self._reaches(other, at, called) for at, called in ring)
            }
            ring = ring if len(ring) <= MAX_CALLERS else set()
            rings.append({name for _, name in ring})
            known |= rings[-1]
        return rings

    def _reaches(self, other: str, module: str, called: str) -> bool:
        """Whether a name in one module can mean a function of another: imported, or one of few of that name."""
        return other == module or called in self._imports[other] or self._times[called] <= MAX_NAMESAKES


def _bodies(text: str) -> dict[str, set[str]]:
    """The words in each function, class or constant of a file."""
    lines, bodies = text.splitlines(), {}
    for node in ast.parse(text).body:
        words = set(re.findall(r"\w+", " ".join(lines[node.lineno - 1 : node.end_lineno])))
        if isinstance(node, DEFINITIONS):
            bodies[node.name] = words
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            bodies |= {target.id: words for target in targets if isinstance(target, ast.Name)}
    return bodies


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _name(node: ast.AST) -> str:
    return str(getattr(node, "id", getattr(node, "attr", "")))
