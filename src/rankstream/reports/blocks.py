"""What pages are made of, as data: sentences, tables, and charts that are tables as well."""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rankstream._core.terminal import isolated, shown

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_ROWS = 100
"""Rows of a table in a page; a sentence below it says how many there are."""


@dataclass(frozen=True)
class TableBlock:
    """Rows below headings; the first column names them, and all others from ``numbers`` on are numbers.

    Of more than ``most`` rows only these are shown; ``which`` says in a word which ones they are.
    """

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]
    numbers: int = 1
    most: int = MOST_ROWS
    which: str = "first"


@dataclass(frozen=True)
class Chart:
    """Numbers that ``charts.js`` draws in a browser, in the way that ``kind`` names; and the same in a table."""

    kind: str
    title: str
    values: Any
    table: TableBlock


def presented(values: Any) -> Any:
    """Values as a page may have them: names cannot turn others around, and numbers have five digits."""
    if isinstance(values, str):
        return label(values)
    if isinstance(values, float):
        return round(values, 5)
    if isinstance(values, Mapping):
        return {label(name): presented(value) for name, value in values.items()}
    return [presented(value) for value in values] if isinstance(values, list | tuple) else values


@dataclass(frozen=True)
class Section:
    """A heading with sentences, and tables and charts below them."""

    name: str
    title: str
    sentences: tuple[str, ...] = ()
    parts: tuple[TableBlock | Chart, ...] = ()


def label(value: Any) -> str:
    r"""How an item reads in a page: directions and control characters are written out, and no name turns others around.

    >>> label("tea\u202e")
    'tea\\u202e'
    """
    return isolated(shown(value))


def spoken(text: Any, is_number: bool = False) -> str:
    r"""A sentence or a cell as people write it: prices after "at", and a number with a true minus.

    >>> spoken("tea @ 3.00"), spoken("-1.5", is_number=True) == "\u22121.5"
    ('tea at 3.00', True)
    """
    words = re.sub(r" @ (?=\d)", " at ", label(text))
    return re.sub(r"(?<!\w)-(?=\d)", "\u2212", words) if is_number else words


def brief(value: Any, most: int = 40) -> str:
    """The beginning and the end of a long name, where many stand together: names often differ at the end.

    >>> brief("tea"), brief("Olive oil from Crete, no. 7", 14)
    ('tea', 'Olive oi…no. 7')
    """
    text, tail = str(value), max(0, 2 * most // 5)
    return text if len(text) <= most else f"{text[: most - 1 - tail].rstrip()}…{text[len(text) - tail :].lstrip()}"


def share_and_ends(share: Any) -> tuple[float, tuple[float, float] | None]:
    """A share, and the ends of its interval where it has any."""
    return (share.share, (share.low, share.high)) if hasattr(share, "low") else (float(share), None)


def percent(share: float, ends: Sequence[float] | None = None) -> str:
    """A share, with the ends of its interval where they are known.

    >>> percent(0.25), percent(0.25, (0.2, 0.3))
    ('25.0 %', '25.0 % [20.0, 30.0]')
    """
    known = "" if ends is None else f" [{100 * ends[0]:z.1f}, {100 * ends[1]:z.1f}]"
    return f"{100 * share:z.1f} %{known}"


def ago(seconds: float) -> str:
    """How long ago something was, in the largest unit of which that is more than two.

    >>> ago(45.2), ago(600.0), ago(400_000.0)
    ('45 s', '10 min', '5 d')
    """
    units = (("d", 172_800.0, 86_400.0), ("h", 7_200.0, 3_600.0), ("min", 120.0, 60.0), ("s", 0.0, 1.0))
    return next(f"{seconds / one:,.0f} {unit}" for unit, most, one in units if seconds >= most)


def static(name: str) -> str:
    """Return a file that pages load, and that reports have within them."""
    return (files(__package__) / "static" / name).read_text(encoding="utf-8")


@cache
def templates(*packages: str) -> "Environment":
    """Return the templates of this package, behind those of the given ones; whatever they are given is escaped."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in (*packages, "rankstream.reports")]),
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "label": label,
        "spoken": spoken,
        "brief": brief,
        "percent": percent,
        "presented": presented,
    }
    library = static("vendor/d3.min.js") + "\n" + static("vendor/plot.umd.min.js")
    texts = {"style": static("style.css"), "library": library, "charts": static("charts.js")}  # within every report
    digests = {name: b64encode(sha256(text.encode()).digest()).decode() for name, text in texts.items()}
    environment.globals |= {"digests": digests, **{name: Markup(text) for name, text in texts.items()}}
    return environment


def render(name: str, *packages: str, **content: Any) -> str:
    """Fill in a template: one of this package, or of those named."""
    return templates(*packages).get_template(name).render(**content)
