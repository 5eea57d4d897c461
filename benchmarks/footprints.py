"""Which blocks of the package a test runs: a mark at the beginning of each tells, at a part of what coverage costs.

A block is the body of a function, or of a branch, loop or handler in it. ``marked`` gives a source whose blocks note
their number in a set whenever they are run. Line and block are told apart only where a block is left in its middle.
"""

import ast
from collections.abc import Iterator

NOTE = "_note_block_"  # a builtin while tests are traced
BODIES = ("body", "orelse", "finalbody")


class Blocks:
    r"""The blocks of a source: their lines, and the source with marks.

    >>> blocks = Blocks("def f(x):\n    if x:\n        return 1\n    return 2\n")
    >>> blocks.ranges
    [(2, 4), (3, 3)]
    >>> blocks.around(3), blocks.around(4), blocks.around(1)
    (1, 0, None)

    """

    def __init__(self, source: str, first: int = 0) -> None:
        self.first = first
        self.tree = ast.parse(source)
        self.ranges: list[tuple[int, int]] = []
        for node in self.tree.body:
            self._mark_functions(node)
        ast.fix_missing_locations(self.tree)

    def _mark_functions(self, node: ast.AST) -> None:
        """Mark the blocks of every function in a node that is none."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._mark(node.body)
        else:
            for inner in ast.iter_child_nodes(node):
                self._mark_functions(inner)

    def _mark(self, body: list[ast.stmt]) -> None:
        """Mark a body, and those inside of it."""
        number = self.first + len(self.ranges)
        self.ranges.append((body[0].lineno, max(one.end_lineno or one.lineno for one in body)))
        for inner in _bodies(body):
            self._mark(inner)
        call = ast.Call(ast.Name(NOTE, ast.Load()), [ast.Constant(number)], [])
        body.insert(0, ast.copy_location(ast.Expr(ast.copy_location(call, body[0])), body[0]))

    def around(self, line: int) -> int | None:
        """The innermost block that holds a line."""
        found = [(last - start, number) for number, (start, last) in enumerate(self.ranges) if start <= line <= last]
        return self.first + min(found)[1] if found else None


def _bodies(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """The bodies that statements hold, the outermost alone."""
    for node in body:
        for name in BODIES:
            if isinstance(inner := getattr(node, name, None), list) and inner and isinstance(inner[0], ast.stmt):
                yield from [inner] if not isinstance(node, ast.ClassDef) else _bodies(inner)
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            yield part.body
