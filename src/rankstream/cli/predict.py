"""The command ``rankstream predict``: what a saved model says of offers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankstream._core.terminal import print_json, print_plain, progress
from rankstream.cli.asking import as_items, method_of, read_offers
from rankstream.cli.options import AsJson, ModelFile, ReadingOptions, reading_options

if TYPE_CHECKING:
    from rankstream._core.types import Label
    from rankstream.cli.asking import Model


@reading_options()
def predict(
    model: ModelFile,
    offer: Annotated[
        list[str] | None, typer.Option(help="Items joined by ';', or a JSON list; may be given again.")
    ] = None,
    offers: Annotated[Path | None, typer.Option(help="A text file with an offer in every line.")] = None,
    interval: Annotated[float | None, typer.Option(help="Also intervals, such as 0.95; needs --data.")] = None,
    data: Annotated[Path | None, typer.Option(help="The choices that the model was fitted to.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The simulated choices behind intervals.")] = 0,
    as_json: AsJson = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Predict how likely each item of an offer is to be chosen.

    Example: rankstream predict model.json --offer "tea;pie;nothing"
    """
    from rankstream.models.files import load_model

    if bool(offer) == (offers is not None):
        raise ValueError("Name the offers to predict either with --offer (once or more) or with --offers FILE.")
    if (interval is None) != (data is None):
        raise ValueError("Intervals need the choices the model was fitted to: give --interval and --data together.")
    loaded = load_model(model)
    texts = (offer or []) if offers is None else read_offers(offers)
    by_name = _names(loaded)
    wanted = [as_items(text, by_name) for text in texts]
    found: list[dict[Label, tuple[float, ...]]]
    if interval is None or data is None:
        found = [{item: (share,) for item, share in loaded.predict(items).items()} for items in wanted]
    else:
        found = with_intervals(loaded, data, wanted, interval, seed, reading)
    if as_json:
        print_json([_as_content(text, shares) for text, shares in zip(texts, found, strict=True)])
        return
    for text, shares in zip(texts, found, strict=True):
        print_plain(text)
        for item, (share, *ends) in sorted(shares.items(), key=lambda pair: -pair[1][0]):
            margin = f" [{100 * ends[0]:5.1f}, {100 * ends[1]:5.1f} ]" if ends else ""
            print_plain(f"  {100 * share:5.1f} %{margin}  {item}")


def with_intervals(
    model: "Model", data: Path, offers: "list[list[Label]]", interval: float, seed: int, reading: ReadingOptions
) -> "list[dict[Label, tuple[float, ...]]]":
    """Shares with the ends of their intervals, from a bootstrap on the data that the model was fitted to.

    The data must be read as they were then. Progress goes to standard error, and only on a terminal.
    """
    from rankstream._core.arguments import number_between
    from rankstream.estimation.intervals import Bootstrap

    number_between("--interval", interval, 1e-6, 1.0 - 1e-6)
    counts = reading.read(data).counts
    with progress("refitting") as tell:
        found = Bootstrap(
            counts, method_of(model), seed=seed, model=model,
            watch=lambda done, total: tell("refitting", done, total),
        )  # fmt: skip
    return [dict(found.predict(offer, interval).items()) for offer in offers]


def _as_content(text: str, shares: "dict[Label, tuple[float, ...]]") -> dict[str, Any]:
    content: dict[str, Any] = {"offer": text, "shares": {str(item): row[0] for item, row in shares.items()}}
    if all(len(row) == 3 for row in shares.values()):
        content["intervals"] = {str(item): list(row[1:]) for item, row in shares.items()}
    return content


def _names(model: "Model") -> "dict[str, Label]":
    by_name: dict[str, Label] = {}
    for item in model.items:
        if by_name.setdefault(str(item).strip(), item) is not item:
            raise ValueError(f"The model has two items that read {item!s}: ask it from Python, where they differ.")
    return by_name
