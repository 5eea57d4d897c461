"""Pictures of prices: demand curves, with intervals where they are known."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rankstream.plots.decisions import COLOURS
from rankstream.plots.models import short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curve = Mapping[float, Any]


def demand(curves: Mapping[Any, Curve], axes: "Axes") -> "Axes":
    """The share of each item by its own price, as ``model.demand`` or ``Bootstrap.demand`` gave it.

    Dots are price levels; lines between them are what the model predicts there, and bands are intervals.
    """
    names = short_names(curves)
    for number, (item, curve) in enumerate(curves.items()):
        prices = sorted(curve)
        rows = [_row(curve[price]) for price in prices]
        colour = COLOURS[(number + 1) % len(COLOURS)]
        axes.plot(prices, [100.0 * row[0] for row in rows], "o-", color=colour, label=names[item])
        if all(len(row) == 3 for row in rows):
            low, high = ([100.0 * row[place] for row in rows] for place in (1, 2))
            axes.fill_between(prices, low, high, color=colour, alpha=0.2, linewidth=0)
            axes.vlines(prices, low, high, color=colour, linewidth=1)
    axes.set(xlabel="price", ylabel="share, %", title="Demand by price")
    axes.set_ylim(bottom=0.0)
    axes.grid(alpha=0.3)
    if len(curves) > 1:
        axes.legend(frameon=False)
    else:
        axes.set_title(f"Demand for {next(iter(names.values()))} by its price")
    return axes


def _row(value: float | Sequence[float]) -> Sequence[float]:
    return value if isinstance(value, Sequence) else (value,)
