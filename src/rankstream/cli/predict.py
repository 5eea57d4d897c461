"""The command ``rankstream predict``: choice shares of a saved model for offers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankstream._core.terminal import print_answer, progress, shown
from rankstream.cli.markets import per_market
from rankstream.cli.model_answers import read_offers, refitted
from rankstream.cli.options import AsJson, Behind, ModelFile, ReadingOptions, Replicates, reading_options, shell_words
from rankstream.models.item_names import offer_in
from rankstream.reports.origin import warning_lines

if TYPE_CHECKING:
    from rankstream._core.types import Label
    from rankstream.data.readers import Reading

RANGE_ACCURACY = 1e-3  # of a share, as they are printed with one decimal of a percent
MAX_UNCOMPILED_STEPS = 500_000  # a third of a second; loading numba and its caches takes longer (benchmarks/start.py)


@per_market(takes_choices=lambda named: named["interval"] is not None or named["wide"] is not None)
@reading_options()
def predict(
    model: ModelFile,
    offer: list[str] | None = None,
    offers: Annotated[Path | None, typer.Option(help="Text file with one offer per line.")] = None,
    interval: float | None = None,
    wide: Annotated[float | None, typer.Option("--range")] = None,
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
    offer: Offer to predict, separated by ';': 'tea;cake', with prices 'tea@3.50;cake@4', or a JSON list; repeat for
        several.
    interval: Add intervals at this confidence level, such as 0.95 (needs --data).
    wide: Confidence level, such as 0.95. Instead of intervals, print the lowest and highest share among all ranking
        models in that confidence region of the data. Needs --data. Works for uncertain offers ('fit --between'), too.
    forced: Predict as if customers must buy: do not add the no-purchase option.
    """
    from rankstream._core import number_between, uncompiled
    from rankstream.models.answers import prediction_to_json
    from rankstream.models.files import load_model

    if bool(offer) == (offers is not None):
        raise ValueError("Give the offers to predict with --offer (repeat for several) or --offers FILE.")
    if (interval is None and wide is None) != (data is None):
        what = "Intervals need the choices the model was fitted to: add --data FILE."
        raise ValueError(what if data is None else "--data is for intervals: add --interval 0.95 or --range 0.95.")
    if wide is not None and (interval is not None or items is not None):
        raise ValueError("--range cannot be combined with --interval or --items: leave it out.")
    known = load_model(model)
    loaded = known if items is None else known.with_items(items)
    texts = (offer or []) if offers is None else read_offers(offers)
    wanted = [offer_in(text, loaded) for text in texts]
    one_model = data is None and "market" not in known.about
    with uncompiled(MAX_UNCOMPILED_STEPS // max(1, len(wanted)) if one_model else 0):
        predictions: list[dict[Label, Any]] = [loaded.predict(each, forced=forced) for each in wanted]
    if interval is not None:
        number_between("--interval", interval, 1e-6, 1.0 - 1e-6)
        many: Any = refitted(known, data, reading, replicates, seed)
        many = many if items is None else many.with_items(items, seed)
        predictions = [many.predict(each, interval, forced=forced) for each in wanted]
    contents = [prediction_to_json(loaded, *pair) for pair in zip(wanted, predictions, strict=True)]
    if wide is not None and data is not None:
        for content, shares in zip(contents, predictions, strict=True):
            content["intervals"] = ranges(reading.as_fitted(loaded).read(data), list(shares), wide)
    lines = [shell_words(line) for line in warning_lines(loaded.about)]
    for text, each, content in zip(texts, wanted, contents, strict=True):
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
        near = loaded.nearness(each)
        if near is not None and near.is_extrapolation:
            lines.append(f"  {near.sentence}")
    print_answer(as_json, contents, "\n".join(lines))


def ranges(choices: "Reading", offer: "list[Label]", confidence: float) -> dict[str, list[float]]:
    """Return the lowest and highest share of each item of an offer in all ranking models that fit the choices."""
    from rankstream.columns.plausible import probability_range

    counts = choices.counts if choices.uncertain is None else choices.uncertain
    fits: Any = {"region": "confidence", "confidence": confidence, "accuracy": RANGE_ACCURACY}
    with progress("searching for ranges"):
        found = {str(item): probability_range(counts, offer, item, **fits) for item in offer}
    return {item: [max(0.0, bounds.low), min(1.0, bounds.high)] for item, bounds in found.items()}
