"""``read``: count the choices in files and tables, and report what was wrong with the others."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Literal

from rankstream._core.arguments import same_parameters
from rankstream.data.counts import ChoiceCounts
from rankstream.data.prices import PriceLevels
from rankstream.data.readers.account import Account
from rankstream.data.readers.groups import Split, period_of
from rankstream.data.readers.options import check_options, label_of, open_job, translated
from rankstream.data.readers.prices import OCCURRING, Levels, settled
from rankstream.data.readers.problems import Problems
from rankstream.data.readers.results import Key, ReadResult, cells_of, combined, group_of, new_tally
from rankstream.data.readers.roles import Columns, Prices
from rankstream.data.readers.sources.labels import text
from rankstream.data.readers.times import Span
from rankstream.data.readers.unused_columns import UnusedColumn, find_unused
from rankstream.data.uncertain import UncertainCounts

Format = Literal["transactions", "long", "wide", "counts", "rankings"]


@dataclass(frozen=True)
class Reading:
    """The result of ``read``: the counts, the number of records, the problems, and the format of the table.

    Attributes
    ----------
    counts : ChoiceCounts
        The choices of all valid records; ``DecayingCounts`` with a half-life. With a column for the role "person",
        their ``persons`` are the choices of each of up to 50 groups of persons.
    groups, roles : dict
        The counts of each group or period, if requested; and the column of each role.
    times : pair of floats or None
        The first and last time, in seconds since 1970 or in the numbers of the column, if an option needs times.
    slices, slice_times : lists or None
        Counts of equally many choices each, in the order of time, and their first and last times; they do not fade.
        Records of one time stay together, so there may be fewer slices than requested. None if not requested, or if a
        record has no readable time.
    prices : PriceLevels or None
        The price levels, if prices were read.
    unused, notes : tuples
        Columns that were not used, on which the choices may depend; and sentences about columns with an unusual form,
        such as decimal commas.
    account : Account or None
        What ``read_sales`` assumed.
    uncertain, uncertain_groups : UncertainCounts or None, dict
        With ``between="uncertain"``, the choices from offers that are known in part, and those of each group.
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
    time_slices: int | None = None,
    since: Any = None,
    half_life: float | str | timedelta | None = None,
    offers: Any = "pairs",
    ties: str = "split",
    nobody: str = "nobody further",
    memory: str | None = None,
    where: Mapping[str, str] | None = None,
    prices: Prices | None = None,
    price_levels: Levels = OCCURRING,
    decimal: str | None = None,
    dates: str | None = None,
    look: bool = True,
) -> Reading:
    """Count the choices in files (a path, a glob or a list of them) or in a pandas, polars or Arrow table.

    All labels become text. Items and offers are sorted, so that the result does not depend on the format or the order
    of the rows. Times are ISO 8601, or numbers, which are seconds since 1970 if a half-life has a unit.

    Parameters
    ----------
    source : path, glob, list of them, or table
        The records.
    format : "transactions", "long", "wide", "counts" or "rankings", optional
        What a row is; without it, recognised from the columns.
    columns : mapping or str, optional
        The column of each role, as a mapping, JSON, or text such as "observation=case,item=alt,chosen=choice". In a
        mapping, None means that no column has the role. With "person", ``compare`` and ``Bootstrap`` work by person.
    contents : path or table, optional
        The items of each offer, if the records only have the ids of offers.
    items : list of items, optional
        All items in their order; any other item makes a record bad.
    no_choice : str, optional
        The no-purchase option. It is part of every offer, and an empty choice means it was taken.
    outside_share : float or mapping from offers to floats, optional
        The assumed share of customers who bought nothing, if they were not recorded.
    separator : str, optional
        The separator of the items of an offer, or the names of a ranking (default: recognised from the first records).
    encoding : str, optional
        The encoding of text files (default: UTF-8).
    sheet : str, optional
        The sheet of a workbook (default: the only one).
    partitions : names of columns
        Columns given by folder names, such as "store" in store=north/.
    on_error : "stop" or "skip"
        Whether the first bad record is a ValueError, or all are skipped and counted in ``Reading.problems``.
    rejects : path, optional
        A file for the skipped records; needs ``on_error="skip"``.
    by : names of columns
        Also count each group of these columns.
    period : "hour", "day", "week", "month" or "year", optional
        Also count each period.
    time_slices : int, optional
        Also count that many equal slices, in the order of time.
    since : time, optional
        Ignore older records.
    half_life : number, timedelta or str, optional
        Age, relative to the latest record, at which a choice counts half: "30d", in s, min, h, d or w.
    offers : "pairs", "all" or list of offers
        For rankings: the offers that every ballot answers.
    ties : "split" or "skip"
        For rankings: whether a tie at the top splits the vote or leaves it out.
    nobody : str
        For rankings: the choice of a voter who ranked none of an offer.
    memory : str, optional
        Memory limit of DuckDB, such as "1GB"; beyond, it uses the disk.
    where : mapping, optional
        Keep only the records with these values in these columns, such as ``{"store": "York"}``.
    prices : str, list or mapping, optional
        The column of prices of a long table; those of a wide one, ``["price_tea"]`` or ``{"tea": "p1"}``; or "offered"
        where offers contain them, as ``tea@3.50`` or ``{"tea": 3.5}``. Items are then labels such as ``tea @ 3.50``.
    price_levels : PriceLevels, "occurring" or int
        The price levels: given, one for each price, or a number of quantiles.
    decimal : "." or ",", optional
        The decimal mark of prices and counts (default: recognised from the whole column).
    dates : "iso", "dmy" or "mdy", optional
        The order of day, month and year (default: recognised from the whole column).
    look : bool
        Whether to examine the columns that are not used; otherwise ``Reading.unused`` is empty.
    """
    problems, nobody = Problems(on_error, rejects), label_of("nobody", nobody)
    how = check_options(
        format=format, columns=columns, contents=contents, items=items, no_choice=no_choice,
        outside_share=outside_share, separator=separator, encoding=encoding, sheet=sheet, prices=prices,
        price_levels=price_levels, decimal=decimal, dates=dates,
    )  # fmt: skip
    columns_by = (by,) if isinstance(by, str) else tuple(by)
    split = Split((*(where or ()), *columns_by), period_of(period))
    job = open_job(source, split, how, partitions, rejects, (time_slices, since, half_life))
    with problems, translated():
        result = job.run(memory, problems)
    if where is not None:
        result = _only(job.source.name, result, where)
    if result.rows == problems.total:
        found = f"0 records{'' if since is None else f' since {since}'}"
        found += f" of {result.rows} that can be used" if problems.total else ""
        raise ValueError(f"{job.source.name} has {found}: give a file with choices.")
    if job.clock is not None and result.span is not None:
        job.clock.check(result.span)
    levels: PriceLevels | None = None
    if job.layout.has_prices:
        tally, levels = settled(job.source.name, result.tally, how.price_levels)
        result = replace(result, tally=tally)
    each = how.counts(result.tally, job.layout.format, levels, offers=offers, ties=ties, nobody=nobody)
    total, groups, slices = combined(result, each, job.clock, job.split.person is not None)
    groups = groups if columns_by or period else {}
    return Reading(
        total, result.rows, problems, job.layout.format, groups, job.layout.roles, result.span,
        None if result.spans is None else slices, result.spans, levels,
        unused=find_unused(job, result.span) if look else (), notes=job.notes,
    )  # fmt: skip


@same_parameters(read)
def read_counts(*arguments: Any, **options: Any) -> ChoiceCounts:
    """Return the counts of ``read`` alone; it takes the same arguments."""
    return read(*arguments, **{"look": False} | options).counts


def _only(name: str, result: ReadResult, where: Mapping[str, str]) -> ReadResult:
    """Keep the records whose group starts with these values, and drop the values from the names of groups."""
    values, tally = tuple(map(text, where.values())), new_tally()
    for (kind, key, number), outcomes in result.tally.items():
        cells = cells_of(key)
        if cells[: len(values)] == values:
            tally[kind, group_of(cells[len(values) :]), number] = outcomes
    if not tally:
        condition = ", ".join(f"{column} {value!r}" for column, value in where.items())
        raise ValueError(f"{name} has no records with {condition}: correct the values, or give other choices.")
    return replace(result, tally=tally)


def coarser(choices: Reading, most: int) -> Reading:
    """Return the same choices in at most ``most`` slices of time, each of equally many of theirs."""
    if choices.slices is None or choices.slice_times is None:
        return choices
    size = -(-len(choices.slices) // most)
    places = range(0, len(choices.slices), size)
    parts, spans = (
        [choices.slices[at : at + size] for at in places],
        [choices.slice_times[at : at + size] for at in places],
    )
    slices, times = [sum(part[1:], part[0]) for part in parts], [(span[0][0], span[-1][1]) for span in spans]
    return replace(choices, slices=slices, slice_times=times)
