"""Pictures of a model that goes on: its error and certified gap record by record, and changes that were noticed."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rankstream.plots.models import BLUE, GREY, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 60
"""Points up to which each is marked."""


def course(
    rows: Sequence[tuple[int, float | None, float | None]], alarms: Sequence[Mapping[str, int]], axes: "Axes"
) -> "Axes":
    """Distance and gap by the number of records, from rows of the three; changes that were noticed are vertical lines.

    The grey band before such a line goes back to where the change is estimated to have begun.
    """
    from matplotlib.ticker import EngFormatter

    lines = (("distance", BLUE, "-", "o"), ("certified gap", ORANGE, "--", "x"))
    for place, (name, colour, line, mark) in enumerate(lines, start=1):
        known = [(row[0], value) for row in rows if (value := row[place]) is not None]
        axes.plot(
            *zip(*known, strict=True) if known else ([], []), color=colour, linestyle=line, label=name,
            marker=mark if len(rows) <= FEW else "", markersize=5, clip_on=False,
        )  # fmt: skip
    for number, alarm in enumerate(alarms):
        axes.axvspan(alarm["since"], alarm["choice"], color=GREY, alpha=0.2, linewidth=0)
        axes.axvline(alarm["choice"], color=GREY, linestyle=":", label="change noticed" if not number else None)
    axes.set(xlabel="records", ylabel="weighted l2", title="Error, certificate and changes")
    highest = max((value for row in rows for value in row[1:] if value is not None), default=1.0)
    axes.set_ylim(0.0, 1.1 * max(highest, 1e-3))
    axes.set_xlim(0.0, 1.02 * max((row[0] for row in rows), default=1))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return axes
