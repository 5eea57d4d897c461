"""The one door: ``read`` takes what people have and gives ChoiceCounts, with an account of what was wrong."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from rankstream._core.arguments import whole_number
from rankstream.data.assortments import Assortments, as_offer
from rankstream.data.counts import ChoiceCounts
from rankstream.data.readers.ballots import choices_from_ballots
from rankstream.data.readers.contents import Contents, listed_contents
from rankstream.data.readers.formats import Layout, recognise
from rankstream.data.readers.grouping import PERIODS, Split
from rankstream.data.readers.job import Job, Key, Tally
from rankstream.data.readers.outside import with_outside
from rankstream.data.readers.problems import Problems
from rankstream.data.readers.records import Choices, order, text
from rankstream.data.readers.roles import Columns
from rankstream.data.readers.sources import open_source
from rankstream.data.readers.tables import Source

Result = TypeVar("Result")
Format = Literal["transactions", "long", "wide", "counts", "rankings"]


@dataclass(frozen=True)
class Reading:
    """What was read: the counts of all good records, how many records there were, and what was wrong with the others.

    ``groups`` are the counts of each group, period or part, in order, where those were asked for.
    """

    counts: ChoiceCounts
    rows: int
    problems: Problems
    format: str
    groups: dict[Key, ChoiceCounts] = field(default_factory=dict)

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
    separator: str = ";",
    on_error: str = "stop",
    rejects: str | os.PathLike[str] | None = None,
    by: str | Sequence[str] = (),
    period: str | None = None,
    parts: int | None = None,
    offers: Any = "pairs",
    ties: str = "split",
    nobody: str = "nobody further",
    seed: int = 0,
    memory: str | None = None,
) -> Reading:
    """Count the choices in files (a path, a glob or a list of them) or in a pandas, polars or Arrow table.

    The format is told by the columns, or by ``format`` and ``columns``: role to name, as a mapping or as text such as
    "observation=case,item=alt,chosen=choice". Where records number their offers, ``contents`` is a table of what each
    holds. All labels become text; items and offers are sorted, so that neither the format nor the order of the rows
    changes the answer. ``items`` fixes the items and their order. ``no_choice`` names the item that is in every offer
    and that an empty choice means; ``outside_share`` is the share of people assumed to have left without a purchase,
    where they were not recorded. ``by``, ``period`` and ``parts`` keep counts apart by columns, by time, or by equal
    parts in the order of rows. ``offers``, ``ties``, ``nobody`` and ``seed`` are for ballots (see
    ``choices_from_ballots``); ``memory``, such as "1GB", caps what DuckDB takes before it goes to disk.
    """
    problems = Problems(on_error, rejects)
    if not isinstance(separator, str) or not separator:
        raise ValueError(f"The separator is {separator!r}: it must be a text, such as ';'.")
    wanted = None if items is None else tuple(map(text, as_offer("The list of items", items)))
    data = _translated(lambda: open_source(source))
    table = None if contents is None else _translated(lambda: open_source(contents))
    files = [path.resolve() for one in (data, table) for path in getattr(one, "paths", ())]
    if rejects is not None and Path(rejects).resolve() in files:
        raise ValueError(f"The rejects would overwrite {rejects}, which is to be read: name another file.")
    split = _split(by, period, parts)
    for column in split.by:
        if column not in data.columns:
            raise ValueError(f"{data.name} has no column {column!r} but {', '.join(map(repr, data.columns))}.")
    layout = recognise(data.name, data.columns, format, columns, split.by, contents is not None)
    if period is not None:
        if "time" not in layout.roles:
            raise ValueError(f"{data.name} has no column 'time' to take the {period} from: name it by columns.")
        split = Split(period=period, time=layout.roles["time"])
    ends = no_choice if outside_share is None else None
    held = _contents(data, layout, table, separator)
    choices = Choices(layout, separator, None if wanted is None else frozenset(wanted), ends, held)
    job = Job(data, layout, split, choices)
    with problems:
        tally, rows = job.quickly(memory) or _translated(lambda: job.slowly(problems))
    good = rows - problems.total
    if good < (parts or 1):
        usable = f" that can be used of {rows}" if problems.total else ""
        needed = f"fewer than the {parts or 1} needed: give a longer file"
        raise ValueError(f"{data.name} has {good} records{usable}, {needed}.")
    if layout.format == "rankings":
        found = choices_from_ballots(tally, items=wanted, offers=offers, seed=seed, ties=ties, nobody=nobody)
    else:
        found = _counted(tally, wanted, ends)
    if outside_share is not None:
        found = {key: with_outside(counts, outside_share, no_choice or "no choice") for key, counts in found.items()}
    total = ChoiceCounts(next(iter(found.values())).assortments, sum(counts.tallies for counts in found.values()))
    apart = split != Split()
    return Reading(total, rows, problems, layout.format, dict(sorted(found.items())) if apart else {})


def read_counts(source: Any, format: Format | None = None, **options: Any) -> ChoiceCounts:  # noqa: A002
    """The counts of ``read`` alone."""
    return read(source, format, **options).counts


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


def _counted(tally: Tally, items: tuple[str, ...] | None, no_choice: str | None) -> dict[Key, ChoiceCounts]:
    offers: set[tuple[str, ...]] = {offer for outcomes in tally.values() for offer, _ in outcomes}
    named = sorted({item for offer in offers for item in offer}, key=order) if items is None else items
    if no_choice is not None and (items is None or no_choice not in items):
        named = [*(item for item in named if item != no_choice), no_choice]
    by_size = sorted(offers, key=lambda offer: (len(offer), list(map(order, offer))))
    assortments = Assortments(by_size, named)
    found = {}
    for key, outcomes in tally.items():
        counts = ChoiceCounts(assortments)
        places = [assortments.places[offer][chosen] for offer, chosen in outcomes]
        counts.observe_coordinates(np.array(places, np.int64), np.array(list(outcomes.values())))
        found[key] = counts
    return found


def _translated(work: Callable[[], Result]) -> Result:
    """What the work gives; an error of DuckDB as one sentence."""
    import duckdb

    try:
        return work()
    except duckdb.Error as error:
        raise ValueError(f"DuckDB cannot read this: {str(error).strip().splitlines()[0]}") from None
