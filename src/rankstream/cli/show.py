"""The command ``rankstream show``: what is in a saved model."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from rankstream._core.terminal import console, print_json, print_plain
from rankstream.cli.asking import kind_of, words_of
from rankstream.cli.options import AsJson, ModelFile

if TYPE_CHECKING:
    from rankstream.cli.asking import Model

DRAWN = 1000


def show(
    model: ModelFile,
    top: Annotated[int, typer.Option(min=1, max=1000, help="How many customer types.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="The types drawn from a model that is not one of few rankings.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Show customer types, shares, and who gains when an item goes.

    Example: rankstream show model.json --top 5
    """
    from rankstream.models.files import load_model

    content = describe_model(load_model(model), top, seed)
    if as_json:
        print_json(content)
    else:
        print_tables(content)


def describe_model(model: "Model", top: int, seed: int = 0) -> dict[str, Any]:
    """What ``show`` tells, as what JSON can hold; the types of a model of all rankings are drawn with the seed."""
    from rankstream.models.rankings import RankingModel

    if len(model.items) < 2:
        raise ValueError("The model knows one item only: there is nothing to show.")
    moves = model.substitution()
    types = model.segments(top) if isinstance(model, RankingModel) else model.segments(top, DRAWN, seed)
    return {
        "kind": kind_of(model),
        "about": model.about,
        "rankings": len(model.weights) if isinstance(model, RankingModel) else None,
        "no_choice": None if model.no_choice_code is None else str(model.no_choice),
        "segments": [{"ranking": [str(item) for item in segment.ranking], "share": segment.share} for segment in types],
        "items": [
            {
                "item": str(item),
                "share": float(share),
                "gains": {str(other): part for other, part in moves.gains(item).items()},
            }
            for item, share in zip(moves.items, moves.before, strict=True)
        ],
    }


def print_tables(content: dict[str, Any]) -> None:
    """The customer types, the shares from everything, and who gains when an item goes."""
    rankings = content["rankings"]
    kind = words_of(content["kind"], rankings)
    drawn = f", among {DRAWN:,} customers drawn" if rankings is None else ""
    print_plain(f"A model of {len(content['items'])} items: {kind}.\n\nThe largest customer types{drawn}:")
    last = [] if content["no_choice"] is None else [f"({content['no_choice']})"]
    for segment in content["segments"]:
        print_plain(f"  {100 * segment['share']:5.1f} %  {' > '.join([*segment['ranking'], *last])}")
    table = Table(box=None, pad_edge=False)
    for head in ("item", "share of everything", "who gains when it is gone"):
        table.add_column(head)
    for row in content["items"]:
        gains = ", ".join(f"{name} {100 * share:.0f} %" for name, share in list(row["gains"].items())[:3] if share > 0)
        table.add_row(row["item"], f"{100 * row['share']:.1f} %", gains)
    print_plain("")
    console().print(table)
