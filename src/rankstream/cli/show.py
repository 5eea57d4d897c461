"""The command ``rankstream show``: what is in a saved model."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.cells import cell_len, set_cell_size

from rankstream._core.terminal import print_json, print_plain
from rankstream.cli.asking import can_be_drawn, kind_of, shown, words_of
from rankstream.cli.options import AsJson, Behind, ModelFile, ReadingOptions, Replicates, reading_options
from rankstream.cli.origin import origin_lines, prediction_lines
from rankstream.cli.pricing import demand_lines, describe_demand
from rankstream.cli.refitting import refits_of

if TYPE_CHECKING:
    from rankstream.cli.asking import Model
    from rankstream.estimation.intervals import Bootstrap
    from rankstream.models.answers import Substitution

DRAWN = 1000
MOST_ITEMS = 100
"""Items for which it is said who gains; with thousands of items, all of them take long."""
MOST_PLACES = 12
"""Places of a ranking that a line shows."""


@reading_options()
def show(
    model: ModelFile,
    top: Annotated[int, typer.Option(min=1, max=1000, help="How many customer types.")] = 10,
    data: Behind = None,
    replicates: Replicates = 50,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed for types drawn from a model that is not of few rankings, and intervals.")
    ] = 0,
    as_json: AsJson = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Show customer types, shares, and who gains when an item goes.

    Example: rankstream show model.json --top 5
    """
    from rankstream.models.files import load_model

    loaded = load_model(model)
    if len(loaded.items) < 2:
        raise ValueError("The model knows one item only: there is nothing to show.")
    many = refits_of(loaded, data, reading, replicates, seed)
    content = describe_model(loaded, top, seed, many)
    if as_json:
        print_json(content)
    else:
        print_tables(content)


def describe_model(model: "Model", top: int, seed: int = 0, many: "Bootstrap | None" = None) -> dict[str, Any]:
    """What ``show`` reports, as JSON; the types of a model of all rankings are drawn with the seed.

    With refits, types are those of first and second choices: of whole rankings the data cannot say how many there are.
    Of a model with prices, types and who gains are those where every item is at its middle level.
    """
    from rankstream.models.answers import favourites, most_chosen
    from rankstream.models.rankings import RankingModel

    gone = most_chosen(model, MOST_ITEMS)
    moves = model.substitution(None, gone) if many is None else many.substitution(gone=gone)
    whole = many is None and can_be_drawn(model)
    if whole:
        types = model.segments(top) if isinstance(model, RankingModel) else model.segments(top, DRAWN, seed)
        segments = [{"ranking": [str(item) for item in one.ranking], "share": one.share} for one in types]
    elif many is None:
        known = list(favourites(moves, model.no_choice).items())[:top]
        segments = [{"ranking": [str(item) for item in key], "share": share} for key, share in known]
    else:
        pairs = list(many.favourites(model.no_choice, gone=gone).items())[:top]
        segments = [{"ranking": [str(item) for item in key], **share._asdict()} for key, share in pairs]
    return {
        "kind": kind_of(model),
        "about": model.about,
        "rankings": len(model.weights) if isinstance(model, RankingModel) else None,
        "no_choice": None if model.no_choice_code is None else str(model.no_choice),
        "segments_by": "whole rankings" if whole else "first two choices",
        "replicates": None if many is None else len(many.models),
        "segments": segments,
        "items": describe_items(moves, set(gone), many),
        **({} if model.price_levels is None else describe_demand(model, many)),
    }


def describe_items(moves: "Substitution", gone: set[Any], many: "Bootstrap | None") -> list[dict[str, Any]]:
    """Each item's share of everything and who gains when it is gone; of many items, only of the most chosen."""
    ends = {} if many is None else many.predict(moves.items)
    rows: list[dict[str, Any]] = []
    for place, item in enumerate(moves.items):
        row: dict[str, Any] = {"item": str(item), "share": float(moves.before[place]), "gains": None}
        if item in gone:
            row["gains"] = {str(other): part for other, part in moves.gains(item).items()}
        if many is not None:
            row |= {"low": ends[item].low, "high": ends[item].high, "gains_intervals": None}
        if item in gone and moves.low is not None and moves.high is not None:
            pairs = zip(moves.items, moves.low[place].tolist(), moves.high[place].tolist(), strict=True)
            row["gains_intervals"] = {str(other): [low, high] for other, low, high in pairs if other != item}
        rows.append(row)
    return rows


def print_tables(content: dict[str, Any]) -> None:
    """Where the model comes from, the customer types, the shares from everything, and who gains when an item goes."""
    rankings, items = content["rankings"], content["items"]
    at = " at price levels" if "prices" in content else ""
    print_plain(f"A model of {len(items):,} items{at}: {words_of(content['kind'], rankings)}.")
    prices = demand_lines(content) if "prices" in content else []
    for line in (*origin_lines(content["about"]), *prediction_lines(content["about"])):
        print_plain(line)
    if content["replicates"]:
        how = f" by their first two choices, with 95 % intervals from {content['replicates']} refits"
    elif content["segments_by"] == "whole rankings":
        how = f", among {DRAWN:,} customers drawn" if rankings is None else ""
    else:
        how = " by their first two choices"
    print_plain(f"\nThe largest customer types{' at middle prices' if prices else ''}{how}:")
    for segment in content["segments"]:
        print_plain(f"  {100 * segment['share']:5.1f} %{_interval(segment)}  {_ranking(segment, content)}")
    asked = [row for row in items if row["gains"] is not None]
    rows = [("item", "share at middle prices" if prices else "share of everything", "who gains when it is gone")]
    for row in asked:
        gains = ", ".join(
            f"{shown(name)} {100 * share:.0f} %{_ends(row.get('gains_intervals'), name)}"
            for name, share in list(row["gains"].items())[:3]
            if share > 0
        )
        rows.append((shown(row["item"]), f"{100 * row['share']:.1f} %{_interval(row)}", gains))
    first, second = (max(cell_len(row[place]) for row in rows) for place in (0, 1))
    print_plain("")
    for item, share, gains in rows:
        print_plain(f"{set_cell_size(item, first)}  {share:<{second}}  {gains}".rstrip())
    if len(asked) < len(items):
        print_plain(f"These are the {len(asked)} items chosen most; all {len(items):,} have a share in --json.")
    for line in prices:
        print_plain(line)


def _ranking(segment: dict[str, Any], content: dict[str, Any]) -> str:
    """A ranking in a line, with the no-choice item where it ends; of a long one, the beginning."""
    names = [shown(name) for name in segment["ranking"]]
    ends = content["segments_by"] == "whole rankings" or len(names) < 2
    if content["no_choice"] is not None and ends:
        names.append(f"({shown(content['no_choice'])})")
    more = len(names) - MOST_PLACES
    return " > ".join(names if more <= 0 else [*names[:MOST_PLACES], f"{more:,} more"])


def _interval(row: dict[str, Any]) -> str:
    return f" [{100 * row['low']:.1f}, {100 * row['high']:.1f}]" if "low" in row else ""


def _ends(intervals: dict[str, list[float]] | None, name: str) -> str:
    return "" if intervals is None else f" [{100 * intervals[name][0]:.0f}, {100 * intervals[name][1]:.0f}]"
