"""Pictures inside a page: SVG whose text is text, in the page's own colours, light or dark."""

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    "axes.unicode_minus": False,
}
"""Settings of matplotlib for pictures in a page; the browser's own letters are narrower than those that fill a line."""


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
    return re.sub(r"<[^>]+>", lambda tag: _own(tag[0], mark), text).strip()


def _own(tag: str, mark: str) -> str:
    """A tag with ids of its own, in the page's letters and ink; what is written between tags stays as it is."""
    tag = re.sub(r"(\sid=\"|href=\"#|url\(#)", rf"\g<1>{mark}-", tag)
    tag = re.sub(r"(\d\.\d\d)\d+", r"\1", tag)  # a hundredth of a point is finer than any screen
    return tag.replace("'DejaVu Sans'", "sans-serif").replace(INK, "currentColor")


@contextmanager
def _styled() -> Iterator[None]:
    """The settings; letters that matplotlib's own font lacks are no matter, as the browser has more."""
    from matplotlib import rc_context

    with rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield
