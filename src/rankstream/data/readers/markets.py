"""Read many markets with one GROUP BY; a bad record fails its own market only."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any

from rankstream.data.readers.groups import Records, Split
from rankstream.data.readers.job import Job
from rankstream.data.readers.options import ReadOptions, open_job, translated
from rankstream.data.readers.prices import PricedChoices, in_both_ways
from rankstream.data.readers.problems import BadRecordError, Problems, shown
from rankstream.data.readers.results import COUNTED, ReadResult
from rankstream.data.readers.sources.files import JSON_ENDINGS
from rankstream.data.readers.sources.tables import partition_values
from rankstream.data.readers.tallies import Market, Tallies, check_number
from rankstream.data.readers.unused_columns import UnusedColumn, find_unused

ENDINGS = (".parquet", ".pq", ".csv", ".tsv", ".txt", *JSON_ENDINGS)
"""Endings of the files in a folder of partitions, with or without .gz."""


def read_markets(
    source: Any,
    by: Sequence[str],
    how: ReadOptions,
    on_error: str = "stop",
    partitions: Sequence[str] = (),
    look: bool = True,
) -> Tallies:
    """Return the choices of all markets in a source that ``read`` takes; ``by`` are the columns that name a market.

    A bad record fails only its own market, which is then listed in ``Tallies.failed`` with the reason; with
    ``on_error="skip"`` the record is skipped. A record without a market is a ValueError. ``look`` is as in ``read``.
    """
    job = open_job(source, Split(tuple(by)), how, partitions)
    if job.split.person is not None:
        raise ValueError("Many markets do not use a column of persons: leave 'person' out of columns.")
    work = _MarketJob(job.source, job.layout, job.split, job.choices, job.clock, job.others)
    work.how, work.problems = how, _MarketProblems(work, on_error)
    work.read()
    if isinstance(work.choices, PricedChoices) and work.choices.levels is None:
        work.choices.required = in_both_ways({(COUNTED, "", 0): dict.fromkeys(work.found.outcomes, 1.0)})
        if work.choices.required:  # records that lack the price of such an item are bad
            work.known.clear()
            work.read()
    tallies = work.found
    tallies.failed |= work.problems.failed
    tallies.skipped = work.problems.total
    tallies.unused, tallies.notes = find_unused(job) if look else (), job.notes
    if not tallies.markets and not tallies.failed:
        raise ValueError(f"{job.source.name} has no usable records: correct it, or give another file.")
    return tallies


class _MarketJob(Job):
    """A reading whose groups are markets: ``found`` has their tallies, and ``problems`` the bad records by market."""

    how: ReadOptions
    problems: "_MarketProblems"
    found: Tallies

    def read(self) -> None:
        """Read all markets, with a GROUP BY or else row by row.

        Of a long table, all rows are searched for items first, because bad records are not read again.
        """
        if self._try_grouped(None, None) is None:
            self._begin()
            with translated():
                tally = self.slowly(self.problems).tally
            for (_, key, _), outcomes in tally.items():
                for outcome, weight in outcomes.items():
                    self.found.add(self.market(key), outcome, weight)

    def _begin(self) -> None:
        self.found = Tallies(self.split.by, self.how, self.layout.format)
        self.problems.reset()

    def _tallied(self, records: Records, span: Any, spans: Any) -> ReadResult | None:
        self._begin()
        rows = 0
        for group in records.groups([], 0.0):
            if not group.good:
                return None  # the count or the observation is wrong: read row by row to find its place
            market = self.market(self.split.label(group.key))
            rows += group.records
            try:
                self.found.add(market, self.outcome(group.raw), group.weight)
            except BadRecordError as bad:
                self.problems.note(market, self.source.name, bad, group.records)
        return ReadResult({}, rows)

    def market(self, label: Any) -> Market:
        """Return the market of a group label; an empty part is a ValueError."""
        market = label if isinstance(label, tuple) else (label,)
        for column, part in zip(self.split.by, market, strict=True):
            if part == "":
                raise ValueError(
                    f"{self.source.name} has records without a value in {column!r}: fill it in, or remove them."
                )
        return market


class _MarketProblems(Problems):
    """Bad records; unless they are skipped, each fails its own market."""

    def __init__(self, job: _MarketJob, on_error: str) -> None:
        super().__init__(on_error)
        self.job = job
        self.reset()

    def reset(self) -> None:
        """Forget all problems, before the source is read again."""
        self.failed: dict[Market, str] = {}
        self.by_kind.clear()

    def note(self, market: Market, place: str, bad: BadRecordError, records: int = 1) -> None:
        """Record a problem with some records of a market."""
        if self.on_error == "stop":
            self.failed.setdefault(market, f"{place}: {bad}")
            check_number(len(self.failed), market, self.job.split.by)
        else:
            super().add(place, bad, (), records)

    def add(self, place: str, bad: BadRecordError, record: Sequence[Any], lines: int = 1) -> None:
        """As ``Problems.add``; a line that is not a row has no market, and stops the reading."""
        job, is_long = self.job, self.job.layout.format == "long"
        try:  # the market is that of the row, or of the first row of an observation
            cells = record[0] if is_long and record and isinstance(record[0], tuple) else record
            market = job.market(job.split.label([cells[job.source.columns.index(column)] for column in job.split.by]))
        except (IndexError, TypeError, BadRecordError):
            super().add(place, bad, record, lines)
            return
        self.note(market, place, bad, lines)


@dataclass(frozen=True)
class Partition:
    """Files that are read together; ``values`` are the values of the ``partitions`` in the names of their folders."""

    paths: tuple[Path, ...]
    partitions: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    def market(self, by: Sequence[str]) -> Market:
        """Return the market of the files, with "*" for columns that the folders do not determine."""
        values = dict(zip(self.partitions, self.values, strict=True))
        return tuple(values.get(column, "*") for column in by)

    def read(self, by: Sequence[str], how: ReadOptions, on_error: str) -> Tallies:
        """Return the markets in these files; if they cannot be read, record that as the failure of their market."""
        try:
            names = [escape(str(path)) for path in self.paths]
            return read_markets(names, by, how, on_error, self.partitions, look=False)
        except (ValueError, OSError) as error:
            tallies = Tallies(tuple(by), how, "")
            tallies.failed[self.market(by)] = str(error)
            return tallies


def unused_in_parts(parts: Sequence[Partition], by: Sequence[str], how: ReadOptions) -> tuple[UnusedColumn, ...]:
    """Return the columns that no file uses; none if the columns of the files differ or a file cannot be read."""
    names = [escape(str(path)) for part in parts for path in part.paths]
    with suppress(ValueError, OSError):
        return find_unused(open_job(names, Split(tuple(by)), how, parts[0].partitions))
    return ()


def parts_of_folder(folder: str | os.PathLike[str], by: Sequence[str]) -> list[Partition]:
    """Group the files below a folder by their key=value folders; only columns of ``by`` are keys.

    >>> parts_of_folder("examples/no such folder", ["store"])
    Traceback (most recent call last):
    ValueError: There are no files of choices in examples/no such folder: give a folder with Parquet or CSV files.
    """
    paths = list(_files(Path(folder)))
    if not paths:
        raise ValueError(f"There are no files of choices in {folder}: give a folder with Parquet or CSV files.")
    keys = tuple(column for column in by if any(f"{column}=" in str(path.relative_to(folder)) for path in paths))
    by_values: dict[tuple[str, ...], list[Path]] = {}
    for path in paths:
        values = partition_values(path, keys)
        for column, value in zip(keys, values, strict=True):
            if value == "":
                raise ValueError(f"{path} is in a folder {column}=... without a value: rename it, or leave it out.")
        by_values.setdefault(values, []).append(path)
        check_number(len(by_values), values, keys)
    return [Partition(tuple(files), keys, values) for values, files in by_values.items()]


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
        if not hidden and path.name.lower().removesuffix(".gz").endswith(ENDINGS) and path.is_file():
            yield path


def spill_relation(source: Any, path: Path) -> None:
    """Write a relation to a Parquet file through its own connection, so that it need not fit into memory."""
    try:
        with translated():
            source.write_parquet(str(path))
    except ValueError as error:
        raise ValueError(f"The relation cannot be read ({shown(str(error))}): run its query alone first.") from None
