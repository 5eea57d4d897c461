"""The command ``rankstream show``: describe a saved model."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.cells import cell_len, set_cell_size

from rankstream._core.terminal import as_time, plural, print_answer, shown
from rankstream.cli.markets import per_market
from rankstream.cli.model_answers import as_rows, demand_lines, describe_levels, ends_of, refitted
from rankstream.cli.options import AsJson, Behind, ModelFile, ReadingOptions, Replicates, reading_options, shell_words
from rankstream.models.files import kind_of, words_of
from rankstream.models.fit_warnings import interval_words
from rankstream.reports.origin import origin_lines, prediction_lines, warning_lines

if TYPE_CHECKING:
    from rankstream.estimation.intervals import Bootstrap
    from rankstream.models.files import Model

ENDS = ("expected", "earliest", "latest")
MOST_PLACES = 12  # items of a ranking in a line


@per_market()
@reading_options()
def show(
    model: ModelFile,
    top: Annotated[int, typer.Option(min=1, max=1000, help="Number of customer types to show.")] = 10,
    data: Behind = None,
    replicates: Replicates = 50,
    sell_outs: Annotated[bool, typer.Option("--sell-outs", help="With --data: show when items sold out.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for intervals.")] = 0,
    as_json: AsJson = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Show customer types, shares, and what sells instead when an item is gone.

    Example: rankstream show model.json --top 5
    """
    from rankstream.models.files import load_model

    loaded = load_model(model)
    if len(loaded.items) < 2:
        raise ValueError("The model has only one item: there is nothing to show.")
    if sell_outs:
        rows = sold_out(loaded, data, reading)
        lines = [("store", "item", *ENDS), *([str(cell) for cell in row.values()] for row in rows)]
        text = "\n".join([*aligned(lines), "90 % of sell-outs are expected between earliest and latest."])
        print_answer(as_json, {"sell_outs": rows}, text)
        return
    content = describe_model(loaded, top, refitted(loaded, data, reading, replicates, seed))
    print_answer(as_json, content, as_text(content, data is None))


def sold_out(model: "Model", data: Path | None, reading: ReadingOptions) -> list[dict[str, Any]]:
    """Return when items sold out between snapshots, as estimated by a model, in the order of time."""
    from rankstream.estimation.uncertain import availability

    counts = None if data is None else reading.as_fitted(model).read(data).uncertain
    if counts is None:
        raise ValueError("--sell-outs needs --data with receipts, and a model of 'fit --between uncertain'.")
    found = sorted(availability(counts, model), key=lambda one: one.earliest)
    return [
        {"store": one.place, "item": one.item} | {name: as_time(time) for name, time in zip(ENDS, one[2:], strict=True)}
        for one in found
    ]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, whose columns are as wide as their widest cell.

    >>> aligned([("item", "share"), ("tea", "5 %")])
    ['item  share', 'tea   5 %']
    """
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(set_cell_size, row, widths)).rstrip() for row in rows]


def describe_model(model: "Model", top: int, many: "Bootstrap | None" = None) -> dict[str, Any]:
    """Return the output of ``show`` for JSON."""
    from rankstream.models.prices import usual_prices
    from rankstream.models.rankings import RankingModel
    from rankstream.reports.answers import Answers

    answers = Answers.of(model, many)
    prices: dict[str, Any] = {}
    if model.price_levels is not None:
        usual = {str(item): price for item, price in usual_prices(model).items()}
        prices = {"prices": describe_levels(model.price_levels), "usual_offer": usual}
        prices["demand"] = as_rows(answers.curves())
    return {
        "kind": kind_of(model),
        "about": {name: fact for name, fact in model.about.items() if name not in ("errors", "seen")},  # they are long
        "rankings": len(model.weights) if isinstance(model, RankingModel) else None,
        "no_choice": None if model.no_choice is None else str(model.no_choice),
        **answers.to_json(top),
        **prices,
    }


def as_text(content: dict[str, Any], stored: bool = True) -> str:
    """Return the output of ``show`` as text."""
    rankings, items = content["rankings"], content["items"]
    at = " at price levels" if "prices" in content else ""
    prices, about = demand_lines(content) if "prices" in content else [], content["about"]
    number = len(items) - (content["no_choice"] is not None)
    lines = [f"A model of {plural(number, 'item')}{at}: {words_of(content['kind'], rankings)}."]
    lines += [*map(shell_words, warning_lines(about)), *origin_lines(about), *prediction_lines(about)]
    if content["replicates"]:
        refits = f"{content['replicates']} refits"
        source = f"standard errors stored by 'fit' ({refits}; --data makes more)" if stored else refits
        how = f" by their first two choices, with {interval_words(about)} from {source}"
    else:
        how = "" if content["segments_by"] == "whole rankings" else " by their first two choices"
    lines.append(f"\nThe largest customer types{' at usual prices' if prices else ''}{how}:")
    lines += [f"  {100 * row['share']:5.1f} %{ends_of(row)}  {_ranking(row, content)}" for row in content["segments"]]
    nothing = f"({shown(content['no_choice'])})"
    if any(line.endswith(nothing) for line in lines):
        lines.append(f"{nothing}: these customers buy nothing if the items before it are missing.")
    shown_items = [row for row in items if row["gains"] is not None]
    rows = [("item", "share at usual prices" if prices else "share if all offered", "what sells instead (top 3)")]
    for row in shown_items:
        goes = {} if row["item"] == content["no_choice"] else row["gains"]  # leaving is never out of stock
        parts = [(name, share) for name, share in list(goes.items())[:3] if share > 0]
        gains = ", ".join(_gain(name, share, row.get("gains_intervals")) for name, share in parts)
        rows.append((shown(row["item"]), f"{100 * row['share']:.1f} %{ends_of(row)}", gains))
    lines += ["", *aligned(rows)]
    if any("])" in gains for _, _, gains in rows):
        lines.append("A gain in parentheses, in the last column, may be chance: its interval starts at 0.")
    if not content["replicates"]:
        lines.append("No intervals: the model stores none. Add --data with its choices, or its folder of markets.")
    if len(shown_items) < len(items):
        lines.append(f"Only the {len(shown_items)} most chosen of {len(items):,} items are shown; --json lists all.")
    return "\n".join([*lines, *prices])


def _ranking(segment: dict[str, Any], content: dict[str, Any]) -> str:
    """Return a ranking as text, truncated if it is long; it ends with the no-purchase option."""
    names = [shown(name) for name in segment["ranking"]]
    if content["no_choice"] is not None and (content["segments_by"] == "whole rankings" or len(names) < 2):
        names.append(f"({shown(content['no_choice'])})")
    more = len(names) - MOST_PLACES
    return " > ".join(names if more <= 0 else [*names[:MOST_PLACES], f"{more:,} more"])


def _gain(name: str, share: float, intervals: dict[str, list[float]] | None) -> str:
    """Return an item and its gain; in parentheses if the interval, as shown, starts at 0."""
    text = f"{shown(name)} {100 * share:.0f} %"
    if intervals is None:
        return text
    low, high = intervals[name]
    text += f" [{100 * low:.0f}, {100 * high:.0f}]"
    return text if round(100 * low) > 0 else f"({text})"
