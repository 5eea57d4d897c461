"""The paper's figures from our runs: bars grouped as there, with standard errors, for colour and for print."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.settings import StudyPart
from experiments.tables import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7")
HATCHES = ("", "//", "..", "xx", "\\\\", "--")
NORM_NAMES = {"l1": "$\\ell_1$", "l2": "$\\ell_2$", "linf": "$\\ell_\\infty$"}
METHOD_NAMES = {
    "MD_ns": "MD$_{ns}$",
    "MD_smth": "MD$_{smth}$",
    "MD_sq": "MD$_{sq}$",
    "FW_dyn": "FW$_{dyn}$",
    "FW_naive": "FW$_{naive}$",
    "FW_sq": "FW$_{sq}$",
}
METRIC_NAMES = {
    "test_mae": "test MAE",
    "rankings": "rankings",
    "rounds": "rounds",
    "seconds": "seconds",
    "oracle_ms": "oracle: ms per call",
}


def new(width: float, height: float, rows: int, columns: int) -> "tuple[Figure, Any]":
    """An empty figure and its axes, drawn without a screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def bars(axes: "Axes", results: Results, across: str, within: str, metric: str) -> None:
    """Groups of bars: one group per entry of ``across``, one bar per entry of ``within``, with standard errors."""
    groups, kinds = results.values(across), _in_order(results, within)
    width = 0.8 / len(kinds)
    for place, kind in enumerate(kinds):
        cells = [results.where(**{across: group, within: kind}) for group in groups]
        where = np.arange(len(groups)) + (place - (len(kinds) - 1) / 2) * width
        axes.bar(
            where,
            [cell.mean(metric) for cell in cells],
            0.92 * width,
            yerr=[cell.error(metric) for cell in cells],
            label=_name(kind),
            color=COLOURS[place % len(COLOURS)],
            hatch=HATCHES[place % len(HATCHES)],
            edgecolor="white",
            error_kw={"elinewidth": 0.8, "capsize": 2, "ecolor": "#333333"},
        )
    axes.set_xticks(range(len(groups)), [_name(group) for group in groups])
    axes.set_ylabel(METRIC_NAMES.get(metric, metric))
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _in_order(results: Results, name: str) -> list[Any]:
    order = list(METHOD_NAMES)
    return sorted(results.values(name), key=lambda value: (order.index(value) if value in order else -1, value))


def _name(value: Any) -> str:
    return METHOD_NAMES.get(value, NORM_NAMES.get(value, f"{value:g}" if isinstance(value, float) else str(value)))


def dynamic(results: Results) -> "Figure":
    """Figure 1: test error and rounds for every method and number of observations per round."""
    figure, axes = new(10, 3.6, 1, 2)
    for place, metric in enumerate(("test_mae", "rounds")):
        bars(axes[0, place], results, "per_round", "method", metric)
        axes[0, place].set_xlabel("observations per round")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=6, frameon=False)
    return figure


def profile(results: Results) -> "Figure":
    """Figure 2: errors against the number of observations seen, one line per number of observations a round."""
    figure, axes = new(10, 3.8, 1, 2)
    panels = (("mae", "training MAE (against the averaged data)"), ("test_mae", "test MAE"))
    for place, (metric, title) in enumerate(panels):
        for number, per_round in enumerate(results.values("per_round")):
            line = results.where(per_round=per_round)
            axes[0, place].plot(
                line.column("mark"),
                line.column(metric),
                color=COLOURS[number % len(COLOURS)],
                marker="os^Dvx"[number % 6],
                markersize=4,
                label=f"{per_round} a round",
            )
        axes[0, place].set(xlabel="observations", ylabel=title, yscale="log")
        axes[0, place].grid(alpha=0.3, which="both")
        axes[0, place].yaxis.set_major_formatter("{x:g}")
        axes[0, place].yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
        axes[0, place].xaxis.set_major_formatter("{x:,.0f}")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)
    return figure


def static(results: Results, columns: str, letter: str) -> "Figure":
    """Figures 3 to 6: test error, rankings and rounds, by norm and method, for several segments or offers."""
    heads = results.values(columns)
    figure, axes = new(10, 7, 3, len(heads))
    for row, metric in enumerate(("test_mae", "rankings", "rounds")):
        top = 0.0
        for column, head in enumerate(heads):
            bars(axes[row, column], results.where(**{columns: head}), "norm", "method", metric)
            top = max(top, axes[row, column].get_ylim()[1])
            if row == 0:
                axes[row, column].set_title(f"{letter} = {head}")
        for column in range(len(heads)):
            axes[row, column].set_ylim(0, top)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure


def times(results: Results) -> "Figure":
    """Figure 7: seconds of a fit, and milliseconds of an oracle call."""
    figure, axes = new(10, 3.6, 1, 2)
    for place, metric in enumerate(("seconds", "oracle_ms")):
        bars(axes[0, place], results, "norm", "method", metric)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure


def draw(part: StudyPart, results: Results) -> "Figure | None":
    """The figure of a part; None where a table says it all."""
    kinds = {cell["kind"] for cell in part.cells}
    if kinds == {"dynamic"}:
        return dynamic(results)
    if kinds == {"profile"}:
        return profile(results)
    if kinds != {"static"} or _varies(results, ("power", "step", "smoothing", "ties")):
        return None
    if results.setting("timed"):
        return times(results)
    return static(results, "offers", "m") if len(results.values("offers")) > 1 else static(results, "segments", "K")


def _varies(results: Results, names: Sequence[str]) -> bool:
    return any(len(results.values(name)) > 1 for name in names)
