"""Which small mistakes can be made in a source file: each replaces one expression or statement by another."""

import ast
from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

SWAPPED: dict[type[ast.AST], Any] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
NAMES = {"max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum", "any": "all", "all": "any"}
NAMES |= {"argmin": "argmax", "argmax": "argmin", "bound": "value", "lower": "upper", "upper": "lower"}
QUIET = ("__repr__", "__str__", "explain", "__reduce__")
"""Functions whose words nobody's proof rests on."""


class Mutation(NamedTuple):
    """One mistake: the text from ``start`` to ``stop`` becomes another."""

    start: int
    stop: int
    line: int
    before: str
    after: str

    def apply(self, source: str) -> str:
        """The source with the mistake."""
        raw = source.encode()
        return (raw[: self.start] + self.after.encode() + raw[self.stop :]).decode()


def mutations(source: str) -> list[Mutation]:
    """All mistakes that are known here, in the order of the source."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = set()
    for node, after in _everywhere(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        stop = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        before = source.encode()[start:stop].decode()
        found.add(Mutation(start, stop, node.lineno, before, after))
    return sorted(found)


def _everywhere(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Every mistake in a tree: not in annotations, decorators, messages, docstrings and what only describes."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or _is_quiet(node):
                continue
            if isinstance(node, ast.expr):
                yield from ((node, f"({ast.unparse(other)})") for other in _expressions(node))
            elif isinstance(node, ast.stmt):
                yield from ((part, text) for part, text in _statements(node))
            yield from _everywhere(node)


def _is_quiet(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name in QUIET or _is_declared(node)
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
    return isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom)


def _is_declared(node: ast.FunctionDef) -> bool:
    """Whether a function has a docstring and nothing else, as in a protocol."""
    return len(node.body) == 1 and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    """What an expression may be mistaken for."""
    other = copy(node)  # what is replaced below is an attribute of its own
    if isinstance(other, ast.BinOp | ast.BoolOp) and type(other.op) in SWAPPED:
        if not isinstance(other, ast.BinOp) or not _joins_texts(other):
            other.op = SWAPPED[type(other.op)]()
            yield other
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
                yield node.left  # a term or a factor is forgotten
            elif isinstance(node, ast.BoolOp):
                yield node.values[0] if len(node.values) == 2 else ast.BoolOp(node.op, node.values[:-1])
    elif isinstance(other, ast.Compare) and type(other.ops[0]) in SWAPPED:
        other.ops = [SWAPPED[type(other.ops[0])](), *other.ops[1:]]
        yield other
    elif isinstance(other, ast.UnaryOp) and isinstance(other.op, ast.Not | ast.USub):
        yield other.operand
    elif isinstance(other, ast.Constant) and isinstance(other.value, bool | int | float):
        yield ast.Constant(_another(other.value))
    elif isinstance(other, ast.Attribute) and isinstance(other.ctx, ast.Load) and other.attr in NAMES:
        other.attr = NAMES[other.attr]
        yield other
    elif isinstance(other, ast.Name) and isinstance(other.ctx, ast.Load) and other.id in NAMES:
        other.id = NAMES[other.id]
        yield other
    elif isinstance(other, ast.IfExp):
        yield other.body
        yield other.orelse


def _another(value: float) -> float:
    """The other truth value, or a number that is larger by 1; twice as large where that makes no difference."""
    if isinstance(value, bool):
        return not value
    return value + 1 if value + 1 != value else 2 * value


def _joins_texts(node: ast.BinOp) -> bool:
    sides = node.left, node.right
    return any(isinstance(side, ast.JoinedStr | ast.List | ast.Tuple) or _is_text(side) for side in sides)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _statements(node: ast.stmt) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Checks and early ends that are left out, answers that are always yes, and things that are not done."""
    if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise | ast.Return | ast.Continue | ast.Break):
        yield node.test, "(False)"
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Compare | ast.BoolOp):
        yield node.value, "(True)"
    elif isinstance(node, ast.Assign):
        if all(isinstance(one, ast.Attribute | ast.Subscript) for one in node.targets):
            yield node, "pass"
    elif isinstance(node, ast.AugAssign):
        yield node, "pass"
        yield node, f"{ast.unparse(node.target)} = {ast.unparse(node.value)}"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield node, "pass"
