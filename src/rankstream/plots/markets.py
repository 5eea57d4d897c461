"""Charts of many markets: the shares of each side by side, and a map of how they differ."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from rankstream._core.types import Label, Vec
from rankstream.estimation.many.markets import name_of
from rankstream.plots.models import BLUE, GREY, ORANGE, finish, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rankstream.estimation.many.results import Markets

COLUMNS = 4  # of small multiples, so that names can be read
MAX_NAMED_MARKETS = 8
"""Number of markets with a name on the map: those farthest from the centre."""


def market_shares(markets: "Markets", figure: "Figure", keys: Iterable[Any] | None = None, most: int = 12) -> "Figure":
    """Draw the shares of each market as small multiples, if all items are offered.

    Grey marks the mean over the drawn markets: those of ``keys``, else the ``most`` with the most choices.
    """
    chosen = list(markets) if keys is None else [markets.row(key).key for key in keys]
    if keys is None:
        chosen = sorted(sorted(chosen, key=lambda key: -(markets.row(key).choices or 0.0))[:most])
    items, table = share_table(markets, chosen)
    names = short_names(items)
    columns = min(COLUMNS, len(chosen))
    grid = figure.subplots(-(-len(chosen) // columns), columns, sharex=True, sharey=True, squeeze=False).ravel()
    places = np.arange(len(items))
    middle = np.nanmean(table, axis=0)
    for axes, key, shares in zip(grid, chosen, table, strict=False):
        axes.barh(places, np.nan_to_num(100.0 * shares), color=BLUE, zorder=2)
        axes.scatter(100.0 * middle, places, color=GREY, marker="|", s=90, zorder=3)
        choices = markets.row(key).choices or 0.0
        axes.set_title(f"{name_of(key)} ({choices:,.12g})", fontsize="medium", parse_math=False)
        axes.set_yticks(places, [names[item] for item in items])
        axes.grid(alpha=0.3, axis="x")
    grid[0].invert_yaxis()
    for axes in grid[len(chosen) :]:
        axes.set_visible(False)
    figure.supxlabel("share of customers, %, if everything is on offer; in brackets: choices")
    return figure


def market_map(markets: "Markets", axes: "Axes", differing: Iterable[Any] = ()) -> "Axes":
    """Draw a map of all markets: near each other if their customers choose alike when all items are offered.

    The axes are the first two principal components of the square roots of all shares, so distances approximate
    Hellinger distances. ``differing`` markets are orange, such as those of ``Markets.compare``.
    """
    keys = list(markets)
    _, table = share_table(markets, keys)
    roots = np.sqrt(np.nan_to_num(table))
    left, sizes, right = np.linalg.svd(roots - roots.mean(axis=0), full_matrices=False)
    points = np.zeros((len(keys), 2))
    for way in range(min(2, len(sizes))):
        sign = 1.0 if right[way][np.abs(right[way]).argmax()] > 0.0 else -1.0
        points[:, way] = sign * left[:, way] * sizes[way]
    marked = {markets.row(key).key for key in differing}
    choices = np.array([markets.row(key).choices or 1.0 for key in keys])
    area = 15.0 + 85.0 * np.sqrt(choices / choices.max())
    colours = [ORANGE if key in marked else BLUE for key in keys]
    axes.scatter(points[:, 0], points[:, 1], s=area, c=colours, alpha=0.7, linewidth=0, zorder=2)
    for number in np.argsort(-np.hypot(*points.T), kind="stable")[:MAX_NAMED_MARKETS].tolist():
        style: dict[str, Any] = {"textcoords": "offset points", "fontsize": "small", "parse_math": False}
        axes.annotate(name_of(keys[number]), points[number], xytext=(4, 4), **style)
    total = float((sizes**2).sum()) or 1.0
    shown = [100.0 * float(size) ** 2 / total for size in sizes[:2]] + [0.0, 0.0]
    first, second = f"first direction ({shown[0]:.0f} % of all differences)", f"second direction ({shown[1]:.0f} %)"
    return finish(axes, xlabel=first, ylabel=second, title="Markets by how they differ")


def share_table(markets: "Markets", keys: Iterable[Any]) -> tuple[tuple[Label, ...], Vec]:
    """Return a row per market: the share of each item if all of its items are offered; NaN for items it lacks."""
    rows = [markets.model(key).predict(markets.model(key).items) for key in keys]
    if not rows:
        raise ValueError("There is no market with a model to draw: see Markets.failed.")
    items = tuple(dict.fromkeys(item for row in rows for item in row))
    return items, np.array([[row.get(item, np.nan) for item in items] for row in rows])
