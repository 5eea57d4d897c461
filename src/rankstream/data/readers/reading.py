"""The one door: ``read`` takes what people have and gives ChoiceCounts, with an account of what was wrong."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Literal

from rankstream._core.arguments import same_parameters, whole_number
from rankstream.data.counts import ChoiceCounts
from rankstream.data.prices import PriceLevels
from rankstream.data.readers.account import Account
from rankstream.data.readers.groups import PERIODS, Split
from rankstream.data.readers.options import check_options, label_of, open_job, translated
from rankstream.data.readers.prices import OCCURRING, Levels, settled
from rankstream.data.readers.problems import Problems
from rankstream.data.readers.results import Key, ReadResult, combined, new_tally
from rankstream.data.readers.roles import Columns, Prices
from rankstream.data.readers.sources.labels import text
from rankstream.data.readers.times import Span
from rankstream.data.readers.unused_columns import UnusedColumn, find_unused
from rankstream.data.uncertain import UncertainCounts

Format = Literal["transactions", "long", "wide", "counts", "rankings"]


@dataclass(frozen=True)
class Reading:
    """What was read: the counts of all good records, how many records there were, and what was wrong with the others.

    ``groups`` are the counts of each group, period or part, in order, where those were asked for, and ``roles`` says
    which column was read as what. ``times`` are the first and last time, in seconds since 1970 (or in the numbers of
    the column), where anything was asked about time. ``slices`` are counts over the same assortments of as many
    choices each, in the order of time, and ``slice_times`` their first and last times; records of one time stay
    together, so that there may be fewer slices than asked for. They are None where none were asked for, without a
    column of times, and where a record has no time that can be read. With a half-life ``counts`` and ``groups`` are
    ``DecayingCounts``, and the slices are not weighted. ``prices`` are the levels, where prices were read.
    ``unused`` are the columns that were not used, each with what a look at it shows: prices, times or groups that the
    choices may depend on. ``notes`` are sentences on columns that were read in the manner of a till: decimal commas,
    dates such as 02.03.2026, quantities. ``account`` says what ``read_sales`` assumed, and with
    ``between="uncertain"`` its choices from offers that are known in part are ``uncertain``, by group
    ``uncertain_groups``.
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
    prices: PriceLevels | None = None
    unused: tuple[UnusedColumn, ...] = ()
    notes: tuple[str, ...] = ()
    account: Account | None = None
    uncertain: UncertainCounts | None = None
    uncertain_groups: dict[Key, UncertainCounts] = field(default_factory=dict)

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
    where: Mapping[str, str] | None = None,
    prices: Prices | None = None,
    price_levels: Levels = OCCURRING,
    decimal: str | None = None,
    dates: str | None = None,
    look: bool = True,
) -> Reading:
    """Count the choices in files (a path, a glob or a list of them) or in a pandas, polars or Arrow table.

    All labels become text; items and offers are sorted, so that neither the format nor the order of the rows changes
    the answer. Times are ISO 8601, or numbers, which are seconds since 1970 if a half-life has a unit.

    Parameters
    ----------
    source : path, glob, list of them, or table
        What to read.
    format : "transactions", "long", "wide", "counts" or "rankings", optional
        What a row is; without it, recognised from the columns.
    columns : mapping or str, optional
        Roles and the columns that play them, as text such as "observation=case,item=alt,chosen=choice", or as JSON.
        In a mapping, None says that no column plays a role.
    contents : path or table, optional
        Which items each offer contains, where the records only number their offers.
    items : list of items, optional
        All items in their order; any other item makes a record bad.
    no_choice : str, optional
        The item that is in every offer, and that an empty choice means.
    outside_share : float or mapping from offers to floats, optional
        The share of people assumed to have left without a purchase, where they were not recorded.
    separator : str, optional
        What joins the items of an offer, or the names of a ranking; without it, recognised from the first records.
    encoding : str, optional
        The encoding of text files; without it UTF-8.
    sheet : str, optional
        The sheet of a workbook; without it the first.
    partitions : names of columns
        Columns that are folders, such as "store" in store=north/.
    on_error : "stop" or "skip"
        Whether the first bad record is a ValueError, or all are skipped and counted in ``Reading.problems``.
    rejects : path, optional
        A file for the skipped records; needs ``on_error="skip"``.
    by : names of columns
        Keep the counts of each group apart. Only one of ``by``, ``period`` and ``parts`` can be given.
    period : "hour", "day", "week", "month" or "year", optional
        Keep the counts of each period apart.
    parts : int, optional
        Keep that many equal parts apart, in the order of the rows.
    time_slices : int, optional
        Also count that many equal slices, in the order of time.
    since : time, optional
        Leave out what is older.
    half_life : number, timedelta or str, optional
        A choice weighs half as much when it is this much older than the latest: "30d", in s, min, h, d or w.
    offers : "pairs", "all", int or list of offers
        For rankings: which offers every ballot answers, at random for a number.
    ties : "split" or "skip"
        For rankings: whether equals at the top share the vote, or the vote is left out.
    nobody : str
        For rankings: the label for who ranked none of an offer.
    seed : int
        For rankings: seed of the random offers.
    memory : str, optional
        What DuckDB may take before it goes to disk, such as "1GB".
    where : mapping, optional
        Keep only the records with these values in these columns, such as ``{"store": "York"}``.
    prices : str, list or mapping, optional
        The column of prices of a long table; those of a wide one, ``["price_tea"]`` or ``{"tea": "p1"}``; or "offered"
        where offers contain them, as ``tea@3.50`` or ``{"tea": 3.5}``. Items are then labels such as ``tea @ 3.50``.
    price_levels : PriceLevels, "occurring" or int
        The levels that prices belong to: given, one for each price, or as many quantiles.
    decimal : "." or ",", optional
        What prices and counts are written with; without it, recognised from the whole column.
    dates : "iso", "dmy" or "mdy", optional
        The order of day, month and year; without it, recognised from the whole column.
    look : bool
        Whether to look at the columns that are not used; without it ``Reading.unused`` is empty.
    """
    problems, nobody = Problems(on_error, rejects), label_of("nobody", nobody)
    how = check_options(
        format=format, columns=columns, contents=contents, items=items, no_choice=no_choice,
        outside_share=outside_share, separator=separator, encoding=encoding, sheet=sheet, prices=prices,
        price_levels=price_levels, decimal=decimal, dates=dates,
    )  # fmt: skip
    split = _split(by if where is None else [*where, *([by] if isinstance(by, str) else by)], period, parts)
    job = open_job(source, split, how, partitions, rejects, (time_slices, since, half_life))
    data, layout, clock = job.source, job.layout, job.clock
    with problems, translated():
        found = job.run(memory, problems)
    if where is not None:
        found = _only(data.name, found, where)
    good = found.rows - problems.total
    if good < (parts or 1):
        usable = f" of {found.rows} that can be used" if problems.total else ""
        since_then = "" if since is None else f" since {since}"
        needed = f"but at least {parts or 1} are needed: give a longer file"
        raise ValueError(f"{data.name} has {good} records{since_then}{usable}, {needed}.")
    if clock is not None and found.span is not None:
        clock.check(found.span)
    levels: PriceLevels | None = None
    if layout.has_prices:
        tally, levels = settled(data.name, found.tally, how.price_levels)
        found = replace(found, tally=tally)
    each = how.counts(found.tally, layout.format, levels, offers=offers, ties=ties, nobody=nobody, seed=seed)
    total, groups, slices = combined(found, each, clock)
    unused = find_unused(job, found.span) if look else ()
    return Reading(
        total,
        found.rows,
        problems,
        layout.format,
        groups if job.split != Split(tuple(where or ())) else {},
        layout.roles,
        found.span,
        None if found.spans is None else slices,
        found.spans,
        levels,
        unused,
        job.notes,
    )


@same_parameters(read)
def read_counts(*arguments: Any, **options: Any) -> ChoiceCounts:
    """Return the counts of ``read`` alone; it takes the same arguments."""
    return read(*arguments, **{"look": False} | options).counts


def _only(name: str, found: ReadResult, where: Mapping[str, str]) -> ReadResult:
    """The records whose group begins with these values, without them."""
    values, tally = tuple(map(text, where.values())), new_tally()
    for (kind, key, number), outcomes in found.tally.items():
        cells = key if isinstance(key, tuple) else (key,)
        if cells[: len(values)] == values:
            rest = cells[len(values) :]
            tally[kind, rest[0] if len(rest) == 1 else rest, number] = outcomes
    if not tally:
        said = ", ".join(f"{column} {value!r}" for column, value in where.items())
        raise ValueError(f"{name} has no records with {said}: correct the values, or give other choices.")
    return replace(found, tally=tally)


def _split(by: str | Sequence[str], period: str | None, parts: int | None) -> Split:
    columns = (by,) if isinstance(by, str) else tuple(by)
    if parts is not None and (columns or period is not None):
        raise ValueError("parts cannot be combined with by or period: use one or the other.")
    if period is not None and period not in PERIODS:
        raise ValueError(f"Unknown period {period!r}: the periods are {', '.join(PERIODS)}.")
    return Split(columns, period, None, None if parts is None else whole_number("The number of parts", parts, 1))
