"""Pictures in files that are there whole or not at all, and inside a page: SVG in its own colours, light or dark."""

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankstream._core.files import check_target, whole_file
from rankstream._core.terminal import isolated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = (".png", ".svg", ".pdf", ".jpg", ".jpeg")
"""What a picture's name may end in."""
INK = "#010203"
"""What is drawn in the colour of the page's text: a colour that no picture has, and that is replaced."""
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "rankstream",
    "font.family": ["DejaVu Sans"],
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"), INK
    ),
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.titlesize": "medium",
    "axes.titlelocation": "left",
    "axes.unicode_minus": False,
}
"""Settings of matplotlib for pictures in a page; the browser's own letters are narrower than those that fill a line."""


def check_picture(path: Path) -> None:
    """Refuse what would fail only after the work is done."""
    check_target(path, "the picture")
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"{path.name} is not the name of an image: use one that ends in .png, .svg, .pdf or .jpg.")


def save_picture(figure: "Figure", path: Path) -> None:
    """Write a figure as a whole file; the format follows from the ending."""
    with whole_file(path) as temporary:
        figure.savefig(temporary, format=path.suffix.lstrip(".").lower(), dpi=150)


def inline_svg(draw: "Callable[[Figure], object]", width: float, height: float, mark: str) -> str:
    """What ``draw`` puts on a figure of that size, in inches, as an SVG element that scales.

    The same picture gives the same text. Ids begin with ``mark``, so that pictures in one page do not share any.

    Parameters
    ----------
    draw : callable
        Takes the empty figure; it may change its size.
    width, height : float
        The size, in inches; a letter is 10/72 of an inch high.
    mark : str
        Letters and digits, different for every picture of a page.

    >>> text = inline_svg(lambda figure: figure.text(0.5, 0.5, "<b>"), 2.0, 1.0, "a")
    >>> text.startswith("<svg "), "&lt;b&gt;" in text, "currentColor" in text, "<b>" in text
    (True, True, True, False)

    """
    from matplotlib.figure import Figure

    written = StringIO()
    with _styled():
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    text = written.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text[text.index("<svg") :], flags=re.DOTALL)
    return re.sub(r"<[^>]+>|[^<]+", lambda part: _own(part[0], mark), text).strip()


def _own(tag: str, mark: str) -> str:
    """A tag with ids of its own, in the page's letters and ink; in what is written between tags, names keep apart."""
    if not tag.startswith("<"):
        return isolated(tag)
    tag = re.sub(r'\sstyle="([^"]*)"', lambda style: _attributes(style[1]), tag)
    tag = re.sub(r"(\sid=\"|href=\"#|url\(#)", rf"\g<1>{mark}-", tag)
    tag = re.sub(r"(\d\.\d\d)\d+", r"\1", tag)  # a hundredth of a point is finer than any screen
    return tag.replace("'DejaVu Sans'", "sans-serif").replace(INK, "currentColor")


def _attributes(style: str) -> str:
    """What a style says as attributes, which a page takes that forbids styles within its text.

    >>> print(_attributes("fill: none; font: 700 9.5px 'DejaVu Sans'"))
     fill="none" font-weight="700" font-size="9.5px" font-family="'DejaVu Sans'"
    """
    said = dict(part.strip().split(":", 1) for part in style.split(";") if ":" in part)
    font = re.fullmatch(r"\s*(italic\s+|oblique\s+)?(bold\s+|\d+\s+)?([\d.]+px)\s+(.+)", said.pop("font", ""))
    if font is not None:
        names = ("font-style", "font-weight", "font-size", "font-family")
        said |= {name: value for name, value in zip(names, font.groups(), strict=True) if value}
    return "".join(f' {name.strip()}="{value.strip()}"' for name, value in said.items())


@contextmanager
def _styled() -> Iterator[None]:
    """The settings; letters that matplotlib's own font lacks are no matter, as the browser has more."""
    from matplotlib import rc_context

    with rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield
