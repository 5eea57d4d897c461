"""The command ``rankstream drift``: what changed between two files of choices, two models, or two periods."""

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from rankstream._core.terminal import plural, print_answer, print_note, shown
from rankstream.cli.markets import MarketOption, market_files, run_each
from rankstream.cli.model_answers import joined
from rankstream.cli.options import AsJson, ReadingOptions, choice, reading_options, shell_words

if TYPE_CHECKING:
    from rankstream.data.counts import ChoiceCounts
    from rankstream.data.drift import Control, DriftReport
    from rankstream.data.item_changes import ItemMovement
    from rankstream.data.readers import Reading
    from rankstream.models.files import Model

TIMES = {"%Y": "year", "%Y-%m": "month", "%Y-%m-%d": "day", "%Y-%m-%d %H": "hour", "%Y-%m-%d %H:00": "hour"}
WORDS = ("appeared", "vanished", "grew", "shrank")
MOST_ITEMS = 100
"""Compare two models by this many first favourites; thousands of items would take long."""


@reading_options(without=("outside_share", "between"))
def drift(
    before: Path,
    after: Annotated[Path | None, typer.Argument(help="A second file of the same kind, for a later period.")] = None,
    at: str | None = None,
    level: Annotated[float, typer.Option(help="With choices: false-alarm rate.")] = 0.05,
    control: Annotated[str, choice("holm", "fdr")] = "holm",
    by_offer: Annotated[bool, typer.Option("--by-offer")] = False,
    least: Annotated[float, typer.Option("--min-change", min=0.0, max=1.0)] = 0.01,
    top: Annotated[int, typer.Option(min=1, help="Maximum number of lines of each kind.")] = 20,
    as_json: AsJson = False,
    by: str | None = None,
    market: MarketOption = None,
    *,
    reading: ReadingOptions,
) -> None:
    """Report what changed between two periods, files of choices, or models.

    Two folders of 'fit --by' are compared market by market.

    Example: rankstream drift may.csv june.csv

    Options:
    before: Choices (CSV, JSON Lines, Parquet, Excel, PrefLib), or a model file.
    at: Instead of a second file: split the choices at this time, such as 2024-05-16.
    control: With choices: correction for many tests. holm limits the chance of any false alarm, fdr their share.
    by_offer: With choices: also list offers that changed, appeared or disappeared.
    least: With models: smallest change of a share to report.
    by: With choices: column of markets to compare one by one, such as store.
    """
    from rankstream.data.drift import drift_report
    from rankstream.models.files import load_model

    def compare(_: str, pair: Any) -> None:
        if isinstance(pair[0], Path):
            content = of_models(load_model(pair[0]), load_model(pair[1]), least)
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
        pairs = _periods(before, after, at, by, market, reading)
    if list(pairs) == [""] or market is not None:
        compare("", next(iter(pairs.values())))
    else:
        run_each(pairs, compare, as_json)


def in_both(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the values of each market before and after; print a note on markets of one period only."""
    for word, names in (("earlier", before.keys() - after.keys()), ("later", after.keys() - before.keys())):
        if names:
            print_note(f"Only in the {word} period, so not compared: {', '.join(map(shown, sorted(names)))}.")
    both = {name: (before[name], after[name]) for name in before if name in after}
    if not both:
        raise ValueError("No market occurs in both periods, so nothing could be compared: choose other files.")
    return both


def compares_models(before: Path, after: Path | None, at: str | None) -> bool:
    """Return whether two models are to be compared; raise a ValueError for files that cannot be compared."""
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
    """Return the choices of both periods by market, or under an empty name without markets."""
    from rankstream.data.observations import observed
    from rankstream.estimation.many.markets import find_market, name_of

    if after is not None and reading.rejects is not None:
        raise ValueError("The rejects of two files would overwrite each other: leave --rejects out.")
    columns = [] if by is None else [name.strip() for name in by.split(",")]
    if at is not None:
        parts = _divided(before, at, columns, reading)
    else:
        readings = [reading.read(path, by=columns, look=True) for path in (before, after) if path is not None]
        warn(*readings)
        parts = [choices.groups if columns else {("",): choices.counts} for choices in readings]
    named = [{key if isinstance(key, tuple) else (key,): part[key] for key in part} for part in parts]
    chosen = None if market is None else find_market(market, [*named[0], *named[1]])
    first, second = (
        {name_of(key): observed(counts) for key, counts in part.items() if chosen in (None, key)} for part in named
    )
    return in_both(first, second)


def _divided(path: Path, at: str, by: list[str], reading: ReadingOptions) -> "list[dict[Any, ChoiceCounts]]":
    """Split choices at the start of a year, month, day or hour; return the counts by market before and after."""
    from rankstream.data.readers.groups import PERIODS

    for form, name in TIMES.items():
        with suppress(ValueError):
            start, period = datetime.strptime(at.strip().replace("T", " "), form).strftime(PERIODS[name]), name
            break
    else:
        raise ValueError(f"--at is {at!r}: give a year, month, day or hour, such as 2024-05-16 or '2024-05-16 14:00'.")
    choices = reading.read(path, by=by, period=period, look=True)
    warn(choices)
    parts: list[dict[Any, ChoiceCounts]] = []
    for late in (False, True):
        found: dict[Any, ChoiceCounts] = {}
        for key, counts in choices.groups.items():
            *names, time = key if by else ("", key)
            if (str(time) >= start) == late:
                known = found.get(tuple(names))
                found[tuple(names)] = counts if known is None else known + counts
        if not found:
            when = f"from {at} on" if late else f"before {at}"
            raise ValueError(f"{path} has no choices {when}: choose a time in its range.")
        parts.append(found)
    return parts


def warn(*readings: "Reading") -> None:
    """Warn about columns that choices depend on and that the comparison ignores: they may look like changed tastes."""
    warnings = [column.warning for choices in readings for column in choices.unused if column.warning]
    for warning in dict.fromkeys(warnings):
        words = warning.replace("fit again", "compare again").replace("fit one model for each", "compare each")
        print_note(f"Warning: {shell_words(words)}")


def text_of_choices(report: "DriftReport", top: int, by_offer: bool) -> str:
    """Return a drift report as text: the items that changed, largest first, and optionally the offers."""
    from rankstream.data.drift import LISTED_ITEMS

    moved, way = report.moved, f"{report.control}, {100 * report.level:g} % false-alarm rate"
    lines = [shown(report.verdict)]
    if report.tested:
        lines.append(f"{len(moved):,} of {plural(report.tested, 'offer')} changed significantly ({way}).")
    lines += [f"  {_item_line(movement, report.given_offers)}" for movement in report.items[:top]]
    if len(report.items) > top:
        lines.append(f"  and {plural(len(report.items) - top, 'more item')}")
    lines += [LISTED_ITEMS] if len(report.items) > 1 else []
    if by_offer and moved:
        lines.append("Offers, with the item that changed most in each:")
        for movement in moved[:top]:
            change = f"{shown(movement.item)} {100 * movement.change:+.1f} points"
            lines.append(f"  {change} in {joined(movement.offer)}: p = {movement.adjusted:.2g}")
    for word, offers in (("New", report.appeared), ("No longer seen", report.vanished)):
        if offers:
            lines.append(f"{word}: {plural(len(offers), 'offer')}")
        lines += [f"  {joined(offer)}" for offer in offers[:top] if by_offer]
    if not by_offer and (moved or report.appeared or report.vanished):
        lines.append("List the offers with --by-offer.")
    return "\n".join(lines)


def _item_line(item: "ItemMovement", given_offers: bool) -> str:
    change, p_value = f"{shown(item.item)}: {100 * item.change:+.1f}", f"(p = {item.p_value:.2g})"
    if given_offers:
        rest = f"; {100 * item.overall:+.1f} points overall, the rest because offers and prices differ"
        return f"{change} points on the same offers{rest} {p_value}"
    where = "the one offer with it" if item.offers == 1 else f"all {item.offers:,} offers with it"
    others = f", {item.moved:,} of which changed significantly alone" if item.moved < item.offers else ""
    points = "points" if item.offers == 1 or not others else "points on average"
    return f"{change} {points} in {where}{others} {p_value}"


def of_models(before: "Model", after: "Model", least: float) -> dict[str, Any]:
    """Return the customer types that changed between two models, for JSON."""
    from rankstream.evaluate.customer_types import favourite_changes

    no_choice = before.no_choice if before.no_choice == after.no_choice else None
    known = set(before.items), set(after.items)
    changes = favourite_changes(before, after, no_choice, least, MOST_ITEMS)
    if max(len(before.items), len(after.items)) > MOST_ITEMS:
        print_note(f"Compared: customer types whose favourite is one of the {MOST_ITEMS} most chosen items.")
    return {
        "compared": "models",
        "types_by": "first two favourites",
        "no_choice": None if no_choice is None else str(no_choice),
        "least": least,
        "only_before": [str(item) for item in before.items if item not in known[1]],
        "only_after": [str(item) for item in after.items if item not in known[0]],
        **changes.to_json(),
    }


def text_of_models(content: dict[str, Any], top: int) -> str:
    """Return the result of ``of_models`` as text."""
    numbers = ", ".join(f"{len(content[word])} {word}" for word in WORDS)
    least = f"{100 * content['least']:g}"
    lines = [f"Customer types by their {content['types_by']}, changes of {least} points or more: {numbers}."]
    for word in WORDS:
        if content[word]:
            lines.append(f"{word.capitalize()}:")
        for change in content[word][:top]:
            names = list(change["ranking"])
            if len(names) < 2 and content["no_choice"]:
                names.append(f"({content['no_choice']})")
            shares = f"{100 * change['before']:5.1f} % to {100 * change['after']:5.1f} %"
            lines.append(f"  {shares}  {' > '.join(map(shown, names))}")
    for word in ("before", "after"):
        items = content[f"only_{word}"]
        lines += [f"Items only {word}: {', '.join(map(shown, items[:top]))}"] if items else []
    return "\n".join(lines)
