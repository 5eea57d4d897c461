"""The command ``rankstream drift``: what changed between two files of choices, two models, or at a time."""

from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from rankstream._core.terminal import print_json, print_note, print_plain
from rankstream.cli.asking import as_items, by_name, read_offers, require_drawn, shown
from rankstream.cli.options import AsJson, ReadingOptions, choice, reading_options

if TYPE_CHECKING:
    from rankstream._core.types import Label
    from rankstream.cli.asking import Model
    from rankstream.data.counts import ChoiceCounts
    from rankstream.data.drift import Control, DriftReport, ItemMovement
    from rankstream.evaluate.customer_types import TypeChange, TypeChanges

TIMES = {"%Y": "year", "%Y-%m": "month", "%Y-%m-%d": "day", "%Y-%m-%d %H": "hour", "%Y-%m-%d %H:00": "hour"}
WORDS = ("appeared", "vanished", "grew", "shrank")
MOST_ITEMS = 100
"""First favourites that two models are compared by; with thousands of items, all of them take long."""


@reading_options(without=("outside_share",))
def drift(
    before: Annotated[
        Path, typer.Argument(help="Choices (CSV, JSON lines, Parquet, PrefLib, Excel), or a model file.")
    ],
    after: Annotated[Path | None, typer.Argument(help="The same kind of file for a later period.")] = None,
    at: Annotated[
        str | None, typer.Option(help="Instead of a second file: the time that divides the choices, as 2024-05-16.")
    ] = None,
    level: Annotated[float, typer.Option(help="Choices: the probability of a false alarm, as --control says.")] = 0.05,
    control: Annotated[
        str, choice("Choices: holm limits any false alarm, fdr their share among the alarms.", "holm", "fdr")
    ] = "holm",
    by_offer: Annotated[
        bool, typer.Option("--by-offer", help="Choices: also list the offers that moved, are new or no longer seen.")
    ] = False,
    least: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Models: the least change of a share to report.")
    ] = 0.01,
    offers: Annotated[
        Path | None, typer.Option(help="Models: a file of offers; types are who choose alike from these.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="The most lines of each kind.")] = 20,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed for the rankings drawn from max-entropy models, with --offers.")
    ] = 0,
    as_json: AsJson = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Report what changed between two files of choices, or two models.

    Example: rankstream drift may.csv june.csv
    """
    from rankstream.models.files import load_model

    if compares_models(before, after, at) and after is not None:
        models = load_model(before), load_model(after)
        content = of_models(*models, least, None if offers is None else read_offers(offers), seed)
        text = text_of_models(content, top)
    else:
        if offers is not None:
            raise ValueError("--offers is for models: leave it out, and list the offers that moved with --by-offer.")
        report = _report(before, after, at, level, control, reading)
        content, text = of_choices(report), text_of_choices(report, top, by_offer)
    if as_json:
        print_json(content)
    else:
        print_plain(text)


def compares_models(before: Path, after: Path | None, at: str | None) -> bool:
    """Whether two models are named; what cannot be compared is refused."""
    from rankstream.models.files import is_model

    if at is not None and after is None and is_model(before):
        raise ValueError(f"{before} is a model, which has no times: give --at with a file of choices.")
    if (after is None) == (at is None):
        raise ValueError("Name two files to compare, or one file of choices and --at the time that divides it.")
    if after is None or is_model(before) == is_model(after):
        return after is not None and is_model(before)
    model, other = (before, after) if is_model(before) else (after, before)
    if not other.exists():
        raise ValueError(f"There is no file {other} to compare {model} with: name another model file.")
    raise ValueError(f"{model} is a model and {other} is not: compare two models, or two files of choices.")


def _report(
    before: Path, after: Path | None, at: str | None, level: float, control: str, reading: ReadingOptions
) -> "DriftReport":
    """The choices of two files compared, or those of one before and after a time."""
    from rankstream.data.drift import drift_report

    if after is not None and reading.rejects is not None:
        raise ValueError("The rejects of two files would overwrite each other: leave --rejects out.")
    if at is not None:
        periods = _divided(before, at, reading)
    else:
        periods = [reading.read(path).counts for path in (before, after) if path is not None]
    return drift_report(*periods, level=level, control=cast("Control", control))


def _divided(path: Path, at: str, reading: ReadingOptions) -> "list[ChoiceCounts]":
    """The choices before the beginning of a year, month, day or hour, and those from then on."""
    import numpy as np

    from rankstream.data.counts import ChoiceCounts

    period, start = _beginning(at)
    found = reading.read(path, period=period)
    parts: list[ChoiceCounts] = []
    for late in (False, True):
        tallies = [counts.tallies for key, counts in found.groups.items() if (str(key) >= start) == late]
        if not tallies:
            raise ValueError(
                f"{path} has no choices {'from' if late else 'before'} {at}{' on' * late}: name a time within."
            )
        parts.append(ChoiceCounts(found.counts.assortments, np.sum(tallies, axis=0)))
    return parts


def _beginning(at: str) -> tuple[str, str]:
    """What kind of period a time begins, and what that one is called among its kind."""
    from rankstream.data.readers.grouping import PERIODS

    for form, period in TIMES.items():
        with suppress(ValueError):
            return period, datetime.strptime(at.strip().replace("T", " "), form).strftime(PERIODS[period])
    raise ValueError(f"--at is {at!r}: name a year, month, day or hour, such as 2024-05-16 or '2024-05-16 14:00'.")


def of_choices(report: "DriftReport") -> dict[str, Any]:
    """What the data say, as JSON."""
    names = ("before", "after", "p_value", "adjusted", "moved", "item", "change")
    return {
        "compared": "choices",
        "level": report.level,
        "control": report.control,
        "moved": len(report.moved),
        "items": [asdict(one) for one in report.items],
        "offers": [
            {"offer": list(one.offer), **{name: getattr(one, name) for name in names}} for one in report.movements
        ],
        "appeared": [list(offer) for offer in report.appeared],
        "vanished": [list(offer) for offer in report.vanished],
    }


def text_of_choices(report: "DriftReport", top: int, by_offer: bool) -> str:
    """The same in lines: the items that moved, the clearest first; the offers only where they are asked for."""
    moved, way = report.moved, f"{report.control}, level {report.level:g}"
    lines = [f"{len(moved):,} of {_number(len(report.movements))} moved beyond noise ({way})."]
    lines += [f"  {_item_line(one)}" for one in report.items[:top]]
    lines += [f"  and {len(report.items) - top:,} more items"] if len(report.items) > top else []
    if moved and not report.items:
        lines.append("  No item moved the same way over all offers with it.")
    if by_offer:
        lines += ["Offers, with the item that changed most in each:"] if moved else []
        lines += [
            f"  {shown(one.item)} {100 * one.change:+.1f} points in {_joined(one.offer)}: p = {one.adjusted:.2g}"
            for one in moved[:top]
        ]
    for word, offers in (("New", report.appeared), ("No longer seen", report.vanished)):
        lines += [f"{word}: {_number(len(offers))}"] if offers else []
        lines += [f"  {_joined(offer)}" for offer in offers[:top] if by_offer]
    if not by_offer and (moved or report.appeared or report.vanished):
        lines.append("List the offers with --by-offer.")
    return "\n".join(lines)


def _item_line(one: "ItemMovement") -> str:
    where = "the one offer with it" if one.offers == 1 else f"all {one.offers:,} offers with it"
    others = f", {one.moved:,} of which moved each by itself" if one.moved < one.offers else ""
    points = "points" if one.offers == 1 or not others else "points on average"
    return f"{shown(one.item)}: {100 * one.change:+.1f} {points} in {where}{others} (p = {one.p_value:.2g})"


def _number(offers: int) -> str:
    return "1 offer" if offers == 1 else f"{offers:,} offers"


def _joined(offer: "tuple[Label, ...]") -> str:
    return ";".join(map(shown, offer))


def of_models(before: "Model", after: "Model", least: float, offers: list[str] | None, seed: int) -> dict[str, Any]:
    """Which customer types came and went, as JSON."""
    from rankstream.evaluate.customer_types import favourite_changes, type_changes
    from rankstream.models.rankings import RankingModel

    no_choice = _no_choice(before)
    no_choice = no_choice if no_choice == _no_choice(after) else None
    known = set(before.items), set(after.items)
    if offers is None:
        found = favourite_changes(before, after, no_choice, least, MOST_ITEMS)
        if max(len(before.items), len(after.items)) > MOST_ITEMS:
            print_note(f"Compared by customer types that like one of the {MOST_ITEMS} most chosen items best.")
    else:
        wanted = [as_items(text, by_name(before)) for text in offers]
        for model in (before, after):
            require_drawn(model, "--offers")
        sparse = [one if isinstance(one, RankingModel) else one.to_rankings(seed=seed) for one in (before, after)]
        found = type_changes(sparse[0], sparse[1], wanted, least)
    return {
        "compared": "models",
        "types_by": "first two favourites" if offers is None else "choices from the offers",
        "no_choice": None if no_choice is None else str(no_choice),
        "least": least,
        "only_before": [str(item) for item in before.items if item not in known[1]],
        "only_after": [str(item) for item in after.items if item not in known[0]],
        **_lists(found),
    }


def _no_choice(model: "Model") -> "Label | None":
    return None if model.no_choice_code is None else model.items[model.no_choice_code]


def _lists(found: "TypeChanges") -> dict[str, Any]:
    def one(change: "TypeChange") -> dict[str, Any]:
        return {"ranking": [str(item) for item in change.ranking], "before": change.before, "after": change.after}

    return {word: [one(change) for change in getattr(found, word)] for word in WORDS}


def text_of_models(content: dict[str, Any], top: int) -> str:
    """The same in lines."""
    numbers = ", ".join(f"{len(content[word])} {word}" for word in WORDS)
    least = f"{100 * content['least']:g}"
    lines = [f"Customer types by their {content['types_by']}, changes of {least} points or more: {numbers}."]
    for word in WORDS:
        lines += [f"{word.capitalize()}:"] if content[word] else []
        for one in content[word][:top]:
            names = map(
                shown,
                one["ranking"]
                if len(one["ranking"]) > 1 or not content["no_choice"]
                else [*one["ranking"], f"({content['no_choice']})"],
            )
            lines.append(f"  {100 * one['before']:5.1f} % to {100 * one['after']:5.1f} %  {' > '.join(names)}")
    for name, word in (("only_before", "before"), ("only_after", "after")):
        lines += [f"Items known only {word}: {', '.join(map(shown, content[name][:top]))}"] if content[name] else []
    return "\n".join(lines)
