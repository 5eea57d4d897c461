"""The command ``rankstream predict``: what a saved model says of offers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankstream._core.terminal import print_json, print_plain
from rankstream.cli.asking import read_offers, shown
from rankstream.cli.options import AsJson, Behind, ModelFile, ReadingOptions, Replicates, reading_options
from rankstream.cli.pricing import as_asked, between_levels, between_lines
from rankstream.cli.refitting import refitted

if TYPE_CHECKING:
    from rankstream._core.types import Label


@reading_options()
def predict(
    model: ModelFile,
    offer: Annotated[
        list[str] | None,
        typer.Option(help="Items joined by ';', or a JSON list; with prices as tea@3.50; may be given again."),
    ] = None,
    offers: Annotated[Path | None, typer.Option(help="A text file with an offer in every line.")] = None,
    interval: Annotated[
        float | None, typer.Option(help="Add intervals that cover as often as this, such as 0.95; needs --data.")
    ] = None,
    data: Behind = None,
    replicates: Replicates = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed for the simulated choices behind intervals.")] = 0,
    as_json: AsJson = False,
    market: Annotated[
        str | None, typer.Option(help='Which market, such as "York;tea", where the model is a folder of markets.')
    ] = None,
    *,
    reading: ReadingOptions,
) -> None:
    """Predict how likely each item of an offer is to be chosen.

    Example: rankstream predict model.json --offer "tea;pie;nothing"
    """
    from rankstream._core.arguments import number_between
    from rankstream.cli.markets import load_one

    if bool(offer) == (offers is not None):
        raise ValueError("Name the offers to predict either with --offer (once or more) or with --offers FILE.")
    if (interval is None) != (data is None):
        raise ValueError("Intervals need the choices the model was fitted to: give --interval and --data together.")
    if interval is not None and model.is_dir():
        raise ValueError("--interval is not for a folder of markets: leave it out, or name the model file of a market.")
    loaded = load_one(model, market)
    texts = (offer or []) if offers is None else read_offers(offers)
    wanted = [as_asked(text, loaded) for text in texts]
    found: list[dict[Label, tuple[float, ...]]]
    if interval is None or data is None:
        found = [{item: (share,) for item, share in loaded.predict(items).items()} for items in wanted]
    else:
        number_between("--interval", interval, 1e-6, 1.0 - 1e-6)
        many = refitted(loaded, data, reading, replicates, seed)
        found = [dict(many.predict(items, interval).items()) for items in wanted]
    if as_json:
        asked = zip(texts, wanted, found, strict=True)
        print_json([_as_content(text, shares) | between_levels(loaded, items) for text, items, shares in asked])
        return
    for text, items, shares in zip(texts, wanted, found, strict=True):
        print_plain(shown(text))
        for item, (share, *ends) in sorted(shares.items(), key=lambda pair: -pair[1][0]):
            margin = f" [{100 * ends[0]:5.1f}, {100 * ends[1]:5.1f} ]" if ends else ""
            print_plain(f"  {100 * share:5.1f} %{margin}  {shown(item)}")
        for line in between_lines(between_levels(loaded, items)):
            print_plain(line)


def _as_content(text: str, shares: "dict[Label, tuple[float, ...]]") -> dict[str, Any]:
    content: dict[str, Any] = {"offer": text, "shares": {str(item): row[0] for item, row in shares.items()}}
    if all(len(row) == 3 for row in shares.values()):
        content["intervals"] = {str(item): list(row[1:]) for item, row in shares.items()}
    return content
