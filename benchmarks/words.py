"""Every sentence that rankstream shows at run time, with its place: to be read from top to bottom.

``python benchmarks/words.py`` lists errors, warnings, help, progress, HTTP answers, and texts of pages and reports.
``--first`` lists the first line of every docstring instead, ``--long 25`` only texts of more than 25 words.
Names, types, SQL and patterns are left out. ``{name}`` stands for what is filled in.
"""

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "rankstream"
TEMPLATE_SYNTAX = re.compile(r"{%.*?%}|{#.*?#}|<style.*?</style>|<[^>]+>", re.DOTALL)
WORD = re.compile(r"\b[A-Za-z][a-z'-]*(?![\w(])")
NOT_SENTENCES = re.compile(r"SELECT |CASE |COPY |PRAGMA|WHERE |INSERT |[a-z]\[[A-Z]|\\[sd.]|^[\w.:/%-]+$")
MIN_WORDS = 3


class Sentences(ast.NodeVisitor):
    """Collects strings that are not docstrings, each as one text even if it is written in parts."""

    def __init__(self) -> None:
        self.texts: list[tuple[int, str]] = []

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave out docstrings."""
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Note a plain string."""
        if isinstance(node.value, str):
            self.texts.append((node.lineno, node.value))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Note an f-string as it is written, and the strings inside of its braces."""
        parts: list[str] = []
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                parts.append(f"{{{ast.unparse(value.value)}}}")
                self.visit(value.value)
            elif isinstance(value, ast.Constant):
                parts.append(str(value.value))
        self.texts.append((node.lineno, "".join(parts)))


def read_module(path: Path, *, first: bool) -> Iterator[tuple[int, str]]:
    """Return the texts of a module, or the first lines of its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if first:
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        for node in ast.walk(tree):
            if isinstance(node, documented) and (text := ast.get_docstring(node)):
                yield getattr(node, "lineno", 1), f"{getattr(node, 'name', '(module)')}: {text.partition(chr(10))[0]}"
        return
    sentences = Sentences()
    sentences.visit(tree)
    yield from sorted(sentences.texts)


def read_template(path: Path) -> Iterator[tuple[int, str]]:
    """Return the lines of a template without its tags."""
    blanked = TEMPLATE_SYNTAX.sub(lambda tag: "\n" * tag[0].count("\n"), path.read_text(encoding="utf-8"))
    yield from enumerate(blanked.splitlines(), 1)


def main() -> None:
    """Print the list."""
    parser = argparse.ArgumentParser(description="Print every sentence that rankstream shows, with its place.")
    parser.add_argument("--first", action="store_true", help="the first line of every docstring instead")
    parser.add_argument("--long", type=int, default=0, help="only texts of more words than this")
    parser.add_argument(
        "places", nargs="*", type=Path, default=[SOURCE], help="files or folders (default: src/rankstream)"
    )
    options = parser.parse_args()
    for place in options.places:
        files = sorted(place.rglob("*")) if place.is_dir() else [place]
        for path in files:
            if path.suffix == ".py":
                texts = read_module(path, first=options.first)
            elif path.suffix == ".html" and not options.first:
                texts = read_template(path)
            else:
                continue
            for line, text in texts:
                words = len(WORD.findall(re.sub(r"{[^}]*}", "", text)))
                if words >= MIN_WORDS and words > options.long and not NOT_SENTENCES.search(text):
                    shown = path.relative_to(SOURCE) if path.is_relative_to(SOURCE) else path
                    print(f"{shown}:{line}: {' '.join(text.split())}")


if __name__ == "__main__":
    main()
