"""The command ``rankstream predict``: choice shares of a saved model for offers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankstream._core.terminal import print_answer, shown
from rankstream.cli.markets import per_market
from rankstream.cli.model_answers import read_offers, refitted
from rankstream.cli.options import AsJson, Behind, ModelFile, ReadingOptions, Replicates, reading_options, shell_words
from rankstream.models.item_names import offer_in
from rankstream.reports.origin import warning_lines

if TYPE_CHECKING:
    from rankstream._core.types import Label


@per_market(takes_choices=lambda named: named["interval"] is not None)
@reading_options()
def predict(
    model: ModelFile,
    offer: list[str] | None = None,
    offers: Annotated[Path | None, typer.Option(help="Text file with one offer per line.")] = None,
    interval: float | None = None,
    data: Behind = None,
    replicates: Replicates = 100,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for intervals.")] = 0,
    as_json: AsJson = False,
    forced: Annotated[bool, typer.Option("--forced")] = False,
    items: Annotated[Path | None, typer.Option(help="CSV table of new items, for a model with attributes.")] = None,
    *,
    reading: ReadingOptions,
) -> None:
    """Predict how likely each item of an offer is to be chosen.

    Example: rankstream predict model.json --offer "tea;pie;nothing"

    Options:
    offer: Offer to predict, such as 'tea;cake', with prices 'tea@3.50;cake@4', or a JSON list; repeat for several.
    interval: Add intervals at this confidence level, such as 0.95 (needs --data).
    forced: Predict as if customers must buy: do not add the no-purchase option.
    """
    from rankstream._core.arguments import number_between
    from rankstream.models.answers import prediction_to_json
    from rankstream.models.files import load_model

    if bool(offer) == (offers is not None):
        raise ValueError("Give the offers to predict with --offer (repeat for several) or --offers FILE.")
    if (interval is None) != (data is None):
        raise ValueError("Intervals need the choices the model was fitted to: give --interval and --data together.")
    known = load_model(model)
    loaded = known if items is None else known.with_items(items)
    texts = (offer or []) if offers is None else read_offers(offers)
    wanted = [offer_in(text, loaded) for text in texts]
    predictions: list[dict[Label, Any]]
    if interval is not None:
        number_between("--interval", interval, 1e-6, 1.0 - 1e-6)
    many = refitted(known, data, reading, replicates, seed)
    many = many if many is None or items is None else many.with_items(items, seed)
    if interval is None or many is None:
        predictions = [loaded.predict(one, forced=forced) for one in wanted]
    else:
        predictions = [many.predict(one, interval, forced=forced) for one in wanted]
    contents = [prediction_to_json(loaded, *pair) for pair in zip(wanted, predictions, strict=True)]
    lines = [shell_words(line) for line in warning_lines(loaded.about)]
    for text, content in zip(texts, contents, strict=True):
        lines.append(shown(text))
        ends = content.get("intervals", {})
        for item, share in sorted(content["shares"].items(), key=lambda pair: -pair[1]):
            margin = " [{:5.1f}, {:5.1f} ]".format(*(100 * end for end in ends[item])) if ends else ""
            lines.append(f"  {100 * share:5.1f} %{margin}  {shown(item)}")
        between = [shown(name) for name in content.get("between_levels", ())]
        if between:
            which = "is between two price levels" if len(between) == 1 else "are between two price levels each"
            lines.append(f"  ({', '.join(between)} {which}: shares are interpolated linearly between them.)")
        for item in map(shown, content["added"]):
            lines += [f"  ('{item}' was added: it is in every offer of the data. --forced leaves it out.)"]
    print_answer(as_json, contents, "\n".join(lines))
