"""Pictures of decisions: value by size, and the offer against its runners-up."""

from typing import TYPE_CHECKING

from rankstream.decide.decision import Decision
from rankstream.plots.models import BLUE, GREY, ORANGE, finish, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def value_by_size(found: Decision, axes: "Axes") -> "Axes":
    """The best value for each number of items: the worth of shelf space; the offer's own size is orange."""
    from matplotlib.ticker import MaxNLocator

    sizes = sorted(found.by_size)
    worth = [found.by_size[size] for size in sizes]
    axes.plot(sizes, worth, color=GREY, linewidth=1, zorder=1)
    for mine, colour, label in ((False, BLUE, "best of its size"), (True, ORANGE, "the offer")):
        picked = [place for place, size in enumerate(sizes) if (size == len(found.offer)) == mine]
        axes.scatter([sizes[p] for p in picked], [worth[p] for p in picked], color=colour, label=label, zorder=2)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False, loc="lower right")
    return finish(axes, xlabel="number of items", ylabel="value per customer", title="The value of shelf space")


def runners_up(found: Decision, axes: "Axes") -> "Axes":
    """The offer and its runners-up as a table of dots, a row each, with their values; orange where they differ from it.

    A full dot is an item in the offer, a small one an item that is not; items in none of them are left out.
    """
    rows = [(found.offer, found.value), *((one.offer, one.value) for one in found.runners_up)]
    used = [item for item in found.problem.items if any(item in offer for offer, _ in rows)]
    names = short_names(found.problem.items)
    for row, (offer, _) in enumerate(rows):
        for column, item in enumerate(used):
            inside, same = item in offer, (item in offer) == (item in found.offer)
            colour = (BLUE if inside else "#cccccc") if same else ORANGE
            face = colour if inside or same else "none"
            axes.scatter(column, row, s=130 if inside or not same else 14, facecolor=face, edgecolor=colour, zorder=2)
    ends = "" if found.interval is None else f" [{found.interval[0]:.3g}, {found.interval[1]:.3g}]"
    labels = [f"{value:.4g}{ends if not row else ''}" for row, (_, value) in enumerate(rows)]
    axes.set_yticks(range(len(rows)), labels)
    axes.set_xticks(range(len(used)), [names[item] for item in used], rotation=45, ha="right", rotation_mode="anchor")
    axes.set_axisbelow(True)
    return finish(
        axes, "x", xlim=(-0.6, len(used) - 0.4), ylim=(len(rows) - 0.5, -0.5), ylabel="value per customer",
        title="The offer, and its runners-up" if found.runners_up else "The offer",
    )  # fmt: skip
