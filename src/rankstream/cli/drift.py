"""The command ``rankstream drift``: what changed between two files of choices, two models, or at a time."""

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from rankstream._core.terminal import plural, print_answer, print_note, shown
from rankstream.cli.markets import MarketOption, market_files, run_each
from rankstream.cli.model_answers import joined, read_offers, require_drawn
from rankstream.cli.options import AsJson, ReadingOptions, choice, reading_options

if TYPE_CHECKING:
    from rankstream.data.counts import ChoiceCounts
    from rankstream.data.drift import Control, DriftReport
    from rankstream.data.item_changes import ItemMovement
    from rankstream.models.files import Model

TIMES = {"%Y": "year", "%Y-%m": "month", "%Y-%m-%d": "day", "%Y-%m-%d %H": "hour", "%Y-%m-%d %H:00": "hour"}
WORDS = ("appeared", "vanished", "grew", "shrank")
MOST_ITEMS = 100
"""First favourites that two models are compared by; with thousands of items, all of them take long."""


@reading_options(without=("outside_share",))
def drift(
    before: Path,
    after: Annotated[Path | None, typer.Argument(help="A second file of the same kind, for a later period.")] = None,
    at: str | None = None,
    level: Annotated[float, typer.Option(help="With choices: false-alarm rate.")] = 0.05,
    control: Annotated[str, choice("holm", "fdr")] = "holm",
    by_offer: Annotated[bool, typer.Option("--by-offer")] = False,
    least: Annotated[float, typer.Option(min=0.0, max=1.0)] = 0.01,
    offers: Path | None = None,
    top: Annotated[int, typer.Option(min=1, help="Maximum number of lines of each kind.")] = 20,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    as_json: AsJson = False,
    by: str | None = None,
    market: MarketOption = None,
    *,
    reading: ReadingOptions,
) -> None:
    """Report what changed between two files of choices, or two models.

    Two folders of 'fit --by' are compared market by market.

    Example: rankstream drift may.csv june.csv

    Options:
    before: Choices (CSV, JSON Lines, Parquet, PrefLib, Excel), or a model file.
    at: Instead of a second file: split the choices at this time, such as 2024-05-16.
    control: With choices: how to correct for many tests. holm limits the chance of any false alarm, fdr their
        share.
    by_offer: With choices: also list offers that changed, appeared or disappeared.
    least: With models: smallest change of a share to report.
    offers: With models: a file of offers; customers who choose alike form a type.
    seed: With --offers: random seed for rankings sampled from max-entropy models.
    by: With choices: column of markets to compare one by one, such as store.
    """
    from rankstream.data.drift import drift_report
    from rankstream.models.files import load_model

    def compare(_: str, pair: Any) -> None:
        if isinstance(pair[0], Path):
            models = load_model(pair[0]), load_model(pair[1])
            content = of_models(*models, least, None if offers is None else read_offers(offers), seed)
            text = text_of_models(content, top)
        else:
            report = drift_report(*pair, level=level, control=cast("Control", control))
            content, text = report.to_json(), text_of_choices(report, top, by_offer)
        print_answer(as_json, content, text)

    folders = after is not None and before.is_dir() and after.is_dir() and by is None
    if market is not None and not folders and by is None:
        raise ValueError("--market needs a folder of markets, or choices with --by: leave it out.")
    pairs: dict[str, Any]
    if after is not None and folders:
        pairs = in_both(market_files(before, market), market_files(after, market))
    elif compares_models(before, after, at):
        if by is not None:
            raise ValueError("--by needs files of choices, not models: leave it out.")
        pairs = {"": (before, after)}
    else:
        if offers is not None:
            raise ValueError("--offers needs two models: leave it out. --by-offer lists the offers that changed.")
        pairs = _periods(before, after, at, by, market, reading)
    if list(pairs) == [""] or market is not None:
        compare("", next(iter(pairs.values())))
    else:
        run_each(pairs, compare, as_json)


def in_both(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What is known of each market before and after; markets of one period only are reported."""
    for word, names in (("before", before.keys() - after.keys()), ("after", after.keys() - before.keys())):
        if names:
            print_note(f"Only {word}, so not compared: {', '.join(map(shown, sorted(names)))}.")
    both = {name: (before[name], after[name]) for name in before if name in after}
    if not both:
        raise ValueError("No market occurs in both periods, so nothing could be compared: choose other files.")
    return both


def compares_models(before: Path, after: Path | None, at: str | None) -> bool:
    """Whether two models are named; what cannot be compared is refused."""
    from rankstream.models.files import is_model

    if at is not None and after is None and is_model(before):
        raise ValueError(f"{before} is a model, which has no times: give --at with a file of choices.")
    if (after is None) == (at is None):
        raise ValueError("Give two files to compare, or one file of choices and the time to split it at (--at).")
    if after is None or is_model(before) == is_model(after):
        return after is not None and is_model(before)
    model, other = (before, after) if is_model(before) else (after, before)
    if not other.exists():
        raise ValueError(f"There is no file {other} to compare {model} with: give another model file.")
    raise ValueError(f"{model} is a model and {other} is not: compare two models, or two files of choices.")


def _periods(
    before: Path, after: Path | None, at: str | None, by: str | None, market: str | None, reading: ReadingOptions
) -> "dict[str, tuple[ChoiceCounts, ChoiceCounts]]":
    """The choices of two files, or those of one before and after a time; of each market, or of all under no name."""
    from rankstream.data.observations import observed
    from rankstream.estimation.many.markets import find_market, name_of

    if after is not None and reading.rejects is not None:
        raise ValueError("The rejects of two files would overwrite each other: leave --rejects out.")
    columns = [] if by is None else [name.strip() for name in by.split(",")]
    if at is not None:
        parts = _divided(before, at, columns, reading)
    else:
        whole = [reading.read(path, by=columns) for path in (before, after) if path is not None]
        parts = [one.groups if columns else {("",): one.counts} for one in whole]
    named = [{key if isinstance(key, tuple) else (key,): part[key] for key in part} for part in parts]
    chosen = None if market is None else find_market(market, [*named[0], *named[1]])
    first, second = (
        {name_of(key): observed(counts) for key, counts in part.items() if chosen in (None, key)} for part in named
    )
    return in_both(first, second)


def _divided(path: Path, at: str, by: list[str], reading: ReadingOptions) -> "list[dict[Any, ChoiceCounts]]":
    """The choices before the beginning of a year, month, day or hour, and those from then on."""
    import numpy as np

    from rankstream.data.counts import ChoiceCounts
    from rankstream.data.readers.groups import PERIODS

    for form, name in TIMES.items():
        with suppress(ValueError):
            start, period = datetime.strptime(at.strip().replace("T", " "), form).strftime(PERIODS[name]), name
            break
    else:
        raise ValueError(f"--at is {at!r}: give a year, month, day or hour, such as 2024-05-16 or '2024-05-16 14:00'.")
    found = reading.read(path, by=by, period=period)
    parts: list[dict[Any, ChoiceCounts]] = []
    for late in (False, True):
        tallies: dict[Any, list[Any]] = {}
        for key, counts in found.groups.items():
            *names, time = key if by else ("", key)
            if (str(time) >= start) == late:
                tallies.setdefault(tuple(names), []).append(counts.tallies)
        if not tallies:
            raise ValueError(
                f"{path} has no choices {'from' if late else 'before'} {at}{' on' * late}: choose a time in its range."
            )
        offers = found.counts.assortments
        parts.append({names: ChoiceCounts(offers, np.sum(own, axis=0)) for names, own in tallies.items()})
    return parts


def text_of_choices(report: "DriftReport", top: int, by_offer: bool) -> str:
    """The same in lines: the items that moved, the clearest first; the offers only where they are asked for."""
    moved, way = report.moved, f"{report.control}, {100 * report.level:g} % false-alarm rate"
    lines = [shown(report.verdict)]
    if report.tested:
        lines.append(f"{len(moved):,} of {plural(report.tested, 'offer')} changed significantly ({way}).")
    lines += [f"  {_item_line(one, report.given_offers)}" for one in report.items[:top]]
    lines += [f"  and {plural(len(report.items) - top, 'more item')}"] if len(report.items) > top else []
    if by_offer:
        lines += ["Offers, with the item that changed most in each:"] if moved else []
        lines += [
            f"  {shown(one.item)} {100 * one.change:+.1f} points in {joined(one.offer)}: p = {one.adjusted:.2g}"
            for one in moved[:top]
        ]
    for word, offers in (("New", report.appeared), ("No longer seen", report.vanished)):
        lines += [f"{word}: {plural(len(offers), 'offer')}"] if offers else []
        lines += [f"  {joined(offer)}" for offer in offers[:top] if by_offer]
    if not by_offer and (moved or report.appeared or report.vanished):
        lines.append("List the offers with --by-offer.")
    return "\n".join(lines)


def _item_line(one: "ItemMovement", given_offers: bool) -> str:
    if given_offers:
        rest = f"; {100 * one.overall:+.1f} points overall, the rest because offers and prices differ"
        return f"{shown(one.item)}: {100 * one.change:+.1f} points at equal offers{rest} (p = {one.p_value:.2g})"
    where = "the one offer with it" if one.offers == 1 else f"all {one.offers:,} offers with it"
    others = f", {one.moved:,} of which changed significantly alone" if one.moved < one.offers else ""
    points = "points" if one.offers == 1 or not others else "points on average"
    return f"{shown(one.item)}: {100 * one.change:+.1f} {points} in {where}{others} (p = {one.p_value:.2g})"


def of_models(before: "Model", after: "Model", least: float, offers: list[str] | None, seed: int) -> dict[str, Any]:
    """Which customer types came and went, as JSON."""
    from rankstream.evaluate.customer_types import favourite_changes, type_changes
    from rankstream.models.item_names import by_name, items_in
    from rankstream.models.rankings import RankingModel

    no_choice = before.no_choice if before.no_choice == after.no_choice else None
    known = set(before.items), set(after.items)
    if offers is None:
        found = favourite_changes(before, after, no_choice, least, MOST_ITEMS)
        if max(len(before.items), len(after.items)) > MOST_ITEMS:
            print_note(f"Compared: customer types whose favourite is one of the {MOST_ITEMS} most chosen items.")
    else:
        wanted = [items_in(text, by_name(before)) for text in offers]
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
        **found.to_json(),
    }


def text_of_models(content: dict[str, Any], top: int) -> str:
    """The same in lines."""
    numbers = ", ".join(f"{len(content[word])} {word}" for word in WORDS)
    least = f"{100 * content['least']:g}"
    lines = [f"Customer types by their {content['types_by']}, changes of {least} points or more: {numbers}."]
    for word in WORDS:
        lines += [f"{word.capitalize()}:"] if content[word] else []
        for one in content[word][:top]:
            leaves = len(one["ranking"]) < 2 and content["no_choice"]
            names = [*one["ranking"], *([f"({content['no_choice']})"] if leaves else [])]
            shares = f"{100 * one['before']:5.1f} % to {100 * one['after']:5.1f} %"
            lines.append(f"  {shares}  {' > '.join(map(shown, names))}")
    for name, word in (("only_before", "before"), ("only_after", "after")):
        lines += [f"Items only {word}: {', '.join(map(shown, content[name][:top]))}"] if content[name] else []
    return "\n".join(lines)
