"""The command ``rankstream drift``: what changed between two files of choices, two models, or at a time."""

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import numpy as np

from rankstream._core.terminal import print_json, print_plain
from rankstream._core.types import Label
from rankstream.choice_files import read_choices
from rankstream.data.counts import ChoiceCounts
from rankstream.data.drift import Control, DriftReport, drift_report
from rankstream.data.readers.grouping import PERIODS
from rankstream.evaluate.customer_types import TypeChange, TypeChanges, favourite_changes, type_changes
from rankstream.model_commands import Model, as_items, read_offers
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.files import is_model, load_model

TIMES = {"%Y": "year", "%Y-%m": "month", "%Y-%m-%d": "day", "%Y-%m-%d %H": "hour", "%Y-%m-%d %H:00": "hour"}
WORDS = ("appeared", "vanished", "grew", "shrank")


def run(
    before: Path,
    after: Path | None,
    at: str | None,
    level: float,
    control: str,
    least: float,
    offers: Path | None,
    top: int,
    seed: int,
    as_json: bool,
    **reading: Any,
) -> None:
    """Read, compare, print; a change is no failure, so that nothing but bad input ends differently."""
    if (after is None) == (at is None):
        raise ValueError("Name two files to compare, or one file of choices and --at the time that divides it.")
    if after is not None and is_model(before) != is_model(after):
        one, other = (before, after) if is_model(before) else (after, before)
        raise ValueError(f"{one} is a model and {other} is not: compare two models, or two files of choices.")
    if after is not None and is_model(before):
        models = load_model(before), load_model(after)
        content = of_models(*models, least, None if offers is None else read_offers(offers), seed)
        text = text_of_models(content, top)
    else:
        if offers is not None:
            raise ValueError("Choices are compared offer by offer as they are: leave --offers out.")
        if after is not None and reading.get("rejects") is not None:
            raise ValueError("The rejects of two files would overwrite each other: leave --rejects out.")
        files = [path for path in (before, after) if path is not None]
        periods = _divided(before, at, reading) if at else [read_choices(path, **reading).counts for path in files]
        report = drift_report(*periods, level=level, control=cast(Control, control))
        content, text = of_choices(report), text_of_choices(report, top)
    if as_json:
        print_json(content)
    else:
        print_plain(text)


def _divided(path: Path, at: str, reading: dict[str, Any]) -> list[ChoiceCounts]:
    """The choices before the beginning of a year, month, day or hour, and those from then on."""
    period, start = _beginning(at)
    found = read_choices(path, period=period, **reading)
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
    for form, period in TIMES.items():
        with suppress(ValueError):
            return period, datetime.strptime(at.strip().replace("T", " "), form).strftime(PERIODS[period])
    raise ValueError(f"--at is {at!r}: name a year, month, day or hour, such as 2024-05-16 or '2024-05-16 14:00'.")


def of_choices(report: DriftReport) -> dict[str, Any]:
    """What the data say, as what JSON can hold."""
    names = ("before", "after", "p_value", "adjusted", "moved", "item", "change")
    return {
        "compared": "choices",
        "level": report.level,
        "control": report.control,
        "moved": len(report.moved),
        "offers": [
            {"offer": list(one.offer), **{name: getattr(one, name) for name in names}} for one in report.movements
        ],
        "appeared": [list(offer) for offer in report.appeared],
        "vanished": [list(offer) for offer in report.vanished],
    }


def text_of_choices(report: DriftReport, top: int) -> str:
    """The same in lines, the most significant first."""
    moved, way = report.moved, f"{report.control}, level {report.level:g}"
    lines = [f"{len(moved):,} of {len(report.movements):,} offers moved beyond noise ({way})."]
    lines += [
        f"  {one.item} {100 * one.change:+.1f} points in {_joined(one.offer)}: p = {one.adjusted:.2g}"
        for one in moved[:top]
    ]
    for word, offers in (("New", report.appeared), ("No longer seen", report.vanished)):
        lines += [f"{word}: {len(offers):,} offers"] if offers else []
        lines += [f"  {_joined(offer)}" for offer in offers[:top]]
    return "\n".join(lines)


def _joined(offer: tuple[Label, ...]) -> str:
    return ";".join(map(str, offer))


def of_models(before: Model, after: Model, least: float, offers: list[str] | None, seed: int) -> dict[str, Any]:
    """Which customer types came and went, as what JSON can hold."""
    no_choice = _no_choice(before)
    no_choice = no_choice if no_choice == _no_choice(after) else None
    if offers is None:
        found = favourite_changes(before, after, no_choice, least)
    else:
        wanted = [as_items(text, {str(item): item for item in before.items}) for text in offers]
        sparse = [one.to_rankings(seed=seed) if isinstance(one, EntropyModel) else one for one in (before, after)]
        found = type_changes(sparse[0], sparse[1], wanted, least)
    return {
        "compared": "models",
        "types_by": "first two favourites" if offers is None else "choices from the offers",
        "no_choice": None if no_choice is None else str(no_choice),
        "least": least,
        "only_before": [str(item) for item in before.items if item not in after.items],
        "only_after": [str(item) for item in after.items if item not in before.items],
        **_lists(found),
    }


def _no_choice(model: Model) -> Label | None:
    return None if model.no_choice_code is None else model.items[model.no_choice_code]


def _lists(found: TypeChanges) -> dict[str, Any]:
    def one(change: TypeChange) -> dict[str, Any]:
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
            names = (
                one["ranking"]
                if len(one["ranking"]) > 1 or not content["no_choice"]
                else [*one["ranking"], f"({content['no_choice']})"]
            )
            lines.append(f"  {100 * one['before']:5.1f} % to {100 * one['after']:5.1f} %  {' > '.join(names)}")
    for name, word in (("only_before", "before"), ("only_after", "after")):
        lines += [f"Items known only {word}: {', '.join(content[name])}"] if content[name] else []
    return "\n".join(lines)
