"""The one door: ``read`` takes what people have and gives ChoiceCounts, with an account of what was wrong."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypeVar

from rankstream._core.arguments import whole_number
from rankstream.data.assortments import as_offer
from rankstream.data.counts import ChoiceCounts
from rankstream.data.readers.ballots import choices_from_ballots
from rankstream.data.readers.contents import Contents, listed_contents
from rankstream.data.readers.formats import Layout, recognise
from rankstream.data.readers.grouping import PERIODS, Split
from rankstream.data.readers.job import Job
from rankstream.data.readers.labels import text_or_nothing
from rankstream.data.readers.outside import with_outside
from rankstream.data.readers.problems import Problems
from rankstream.data.readers.records import SEPARATORS, Choices
from rankstream.data.readers.results import combined, counted
from rankstream.data.readers.roles import Columns, listed_names
from rankstream.data.readers.separators import separator_of
from rankstream.data.readers.sources import open_source
from rankstream.data.readers.tables import Source
from rankstream.data.readers.times import Span, clock_of
from rankstream.data.readers.walk import Found, Key

Result = TypeVar("Result")
Format = Literal["transactions", "long", "wide", "counts", "rankings"]


@dataclass(frozen=True)
class Reading:
    """What was read: the counts of all good records, how many records there were, and what was wrong with the others.

    ``groups`` are the counts of each group, period or part, in order, where those were asked for, and ``roles`` tells
    which column was read as what. ``times`` are the first and last time, in seconds since 1970 (or in the numbers of
    the column), where anything was asked about time. ``slices`` are counts over the same assortments of as many
    choices each, in the order of time, and ``slice_times`` their first and last times; records of one time stay
    together, so that there may be fewer slices than asked for. They are None where none were asked for, without a
    column of times, and where a record has no time that can be read. With a half-life ``counts`` and ``groups`` are
    ``DecayingCounts``, and the slices are not weighted.
    """

    counts: ChoiceCounts
    rows: int
    problems: Problems
    format: str
    groups: dict[Key, ChoiceCounts] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    times: Span | None = None
    slices: list[ChoiceCounts] | None = None
    slice_times: list[Span] | None = None

    def __repr__(self) -> str:
        bad = f", {self.problems.total} skipped" if self.problems.total else ""
        return f"Reading({self.counts} in {self.rows} records of format {self.format}{bad})"


def read(
    source: Any,
    format: Format | None = None,  # noqa: A002
    *,
    columns: Columns | str | None = None,
    contents: Any = None,
    items: Iterable[Any] | None = None,
    no_choice: str | None = None,
    outside_share: float | Mapping[Any, float] | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    partitions: str | Sequence[str] = (),
    on_error: str = "stop",
    rejects: str | os.PathLike[str] | None = None,
    by: str | Sequence[str] = (),
    period: str | None = None,
    parts: int | None = None,
    time_slices: int | None = None,
    since: Any = None,
    half_life: float | str | timedelta | None = None,
    offers: Any = "pairs",
    ties: str = "split",
    nobody: str = "nobody further",
    seed: int = 0,
    memory: str | None = None,
) -> Reading:
    """Count the choices in files (a path, a glob or a list of them) or in a pandas, polars or Arrow table.

    The format is told by the columns, or by ``format`` and ``columns``: role to name, as a mapping or as text such as
    "observation=case,item=alt,chosen=choice", or as JSON. Where records number their offers, ``contents`` is a table of
    what each holds. All labels become text; items and offers are sorted, so that neither the format nor the order of
    the rows changes the answer. ``items`` fixes the items and their order. ``no_choice`` names the item that is in
    every offer and that an empty choice means; ``outside_share`` is the share of people assumed to have left without a
    purchase, where they were not recorded.

    ``separator`` joins the items of an offer or the names of a ranking; without it the first records tell.
    ``encoding`` is that of text files, ``sheet`` the sheet of a workbook, and ``partitions`` are columns that folders
    tell, as "store" in store=north/. ``by``, ``period`` and ``parts`` keep counts apart by columns, by time, or by
    equal parts in the order of rows; ``time_slices`` by equal slices in the order of time. ``since`` leaves out what
    is older, and by ``half_life``, such as "30d", a choice weighs half as much when it is that much older than the
    latest. Times are of ISO 8601, or numbers, which are seconds since 1970 if a half-life has a unit (s, min, h, d, w).

    ``offers``, ``ties``, ``nobody`` and ``seed`` are for ballots (see ``choices_from_ballots``); ``memory``, such as
    "1GB", caps what DuckDB takes before it goes to disk.
    """
    problems, nobody = Problems(on_error, rejects), _named("nobody", nobody)
    if separator is not None and not (isinstance(separator, str) and separator):
        raise ValueError(f"The separator is {separator!r}: it must be a text, such as ';'.")
    wanted = None if items is None else tuple(_named("An item", one) for one in as_offer("The list of items", items))
    ends = None if no_choice is None else _named("no_choice", no_choice)
    data = _translated(lambda: open_source(source, partitions=partitions, encoding=encoding, sheet=sheet))
    table = None if contents is None else _translated(lambda: open_source(contents, encoding=encoding))
    _check_rejects(rejects, data, table)
    split = _split(by, period, parts)
    for column in split.by:
        if column not in data.columns:
            raise ValueError(f"{data.name} has no column {column!r} but {listed_names(data.columns)}.")
    besides = (*split.by, *getattr(data, "partitions", ()))
    layout = recognise(data.name, data.columns, format, columns, besides, contents is not None)
    time = layout.roles.get("time")
    if period is not None and time is None:
        raise ValueError(f"{data.name} has no column 'time' to take the {period} from: name it by columns.")
    split = split if period is None else Split(period=period, time=time)
    clock = clock_of(data.name, time, time_slices, since, half_life)
    mark, others = (separator, ()) if separator else _translated(lambda: separator_of(data, layout))
    held = _contents(data, layout, table, separator or SEPARATORS[0])
    inside = ends if outside_share is None else None
    choices = Choices(layout, mark, None if wanted is None else frozenset(wanted), inside, held)
    job = Job(data, layout, split, choices, clock, others)
    with problems:
        found = job.quickly(memory) or _translated(lambda: job.slowly(problems))
    _check_enough(data.name, found, problems, parts, since)
    if clock is not None and found.span is not None:
        clock.check(found.span)
    if layout.format == "rankings":
        each = choices_from_ballots(found.tally, items=wanted, offers=offers, seed=seed, ties=ties, nobody=nobody)
    else:
        each = counted(found.tally, wanted, inside)
    if outside_share is not None:
        each = {key: with_outside(counts, outside_share, ends or "no choice") for key, counts in each.items()}
    total, groups, slices = combined(found, each, clock)
    return Reading(
        total,
        found.rows,
        problems,
        layout.format,
        groups if split != Split() else {},
        layout.roles,
        found.span,
        None if found.spans is None else slices,
        found.spans,
    )


def read_counts(source: Any, format: Format | None = None, **options: Any) -> ChoiceCounts:  # noqa: A002
    """The counts of ``read`` alone."""
    return read(source, format, **options).counts


def _named(option: str, value: Any) -> str:
    """A label that an option gives."""
    label = text_or_nothing(value)
    if label == "":
        raise ValueError(f"{option} is {value!r}: give it a name of plain text.")
    return label


def _check_rejects(rejects: str | os.PathLike[str] | None, *sources: Source | None) -> None:
    files = [path.resolve() for one in sources for path in getattr(one, "paths", ())]
    if rejects is not None and Path(rejects).resolve() in files:
        raise ValueError(f"The rejects would overwrite {rejects}, which is to be read: name another file.")


def _check_enough(name: str, found: Found, problems: Problems, parts: int | None, since: Any) -> None:
    good = found.rows - problems.total
    if good >= (parts or 1):
        return
    usable = f" that can be used of {found.rows}" if problems.total else ""
    since_then = "" if since is None else f" since {since}"
    needed = f"fewer than the {parts or 1} needed: give a longer file"
    raise ValueError(f"{name} has {good} records{since_then}{usable}, {needed}.")


def _split(by: str | Sequence[str], period: str | None, parts: int | None) -> Split:
    columns = (by,) if isinstance(by, str) else tuple(by)
    if (len(columns) > 0) + (period is not None) + (parts is not None) > 1:
        raise ValueError("The counts can be kept apart in one way only: give one of by, period and parts.")
    if period is not None and period not in PERIODS:
        raise ValueError(f"There is no period {period!r}: the periods are {', '.join(PERIODS)}.")
    return Split(columns, period, None, None if parts is None else whole_number("The number of parts", parts, 1))


def _contents(data: Source, layout: Layout, table: Source | None, separator: str) -> Contents | None:
    """What each offer holds, where the records only number them and do not tell it themselves."""
    if table is None and not layout.by_id:
        return None
    if not layout.by_id:
        raise ValueError(f"{data.name} has no numbers of offers to look up: say which column has them by columns.")
    if table is not None:
        return _translated(lambda: listed_contents(table, layout.raw[0], separator))
    if layout.format != "counts":
        raise ValueError(
            f"{data.name} only numbers its offers: say by contents, a table of offers and items, what they hold."
        )
    return None


def _translated(work: Callable[[], Result]) -> Result:
    """What the work gives; an error of DuckDB as one sentence."""
    import duckdb

    try:
        return work()
    except (duckdb.Error, UnicodeError) as error:
        raise ValueError(f"DuckDB cannot read this: {str(error).strip().splitlines()[0]}") from None
