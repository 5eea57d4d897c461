"""Opening a source: how its records are read, and the job that reads them, before anything is counted."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import partial
from typing import Any

from rankstream._core.files import same_file
from rankstream.data.assortments import as_offer
from rankstream.data.counts import ChoiceCounts
from rankstream.data.prices import PriceLevels
from rankstream.data.readers.ballots import choices_from_ballots
from rankstream.data.readers.dialect import check_dialect, open_dialect, rewrite, unfit_columns
from rankstream.data.readers.formats import Layout, recognise
from rankstream.data.readers.groups import Split
from rankstream.data.readers.job import Job
from rankstream.data.readers.outside import with_outside
from rankstream.data.readers.prices import OCCURRING, Levels, PricedChoices, checked_levels, plain_cell
from rankstream.data.readers.records import SEPARATORS, Choices, Contents, listed_contents
from rankstream.data.readers.results import counted
from rankstream.data.readers.roles import Columns, Prices, listed_names
from rankstream.data.readers.sources.files import open_source
from rankstream.data.readers.sources.labels import text_or_nothing
from rankstream.data.readers.sources.tables import Source
from rankstream.data.readers.times import clock_of


@dataclass(frozen=True)
class ReadOptions:
    """How records are read, whatever they are kept apart by: checked options of ``read``."""

    format: str | None
    columns: Columns | str | None
    contents: Any
    items: tuple[str, ...] | None
    no_choice: str | None
    outside_share: float | Mapping[Any, float] | None
    separator: str | None
    encoding: str | None
    sheet: str | None
    prices: Prices | None = None
    price_levels: Levels = OCCURRING
    decimal: str | None = None
    dates: str | None = None

    @property
    def inside(self) -> str | None:
        """The no-choice item where it is recorded, not assumed."""
        return self.no_choice if self.outside_share is None else None

    def counts(
        self, tally: Mapping[Any, Any], form: str, levels: PriceLevels | None = None, **rankings: Any
    ) -> dict[Any, ChoiceCounts]:
        """The counts of each part of a tally, over one set of assortments; with ``levels`` of items at these.

        Options of ``rankings`` are those of ``choices_from_ballots``.
        """
        if form == "rankings":
            each = choices_from_ballots(tally, items=self.items, **rankings)
        else:
            each = counted(dict(tally), self.items, self.inside, levels)
        if self.outside_share is None:
            return each
        share, ends = self.outside_share, self.no_choice or "no choice"
        return {key: with_outside(counts, share, ends) for key, counts in each.items()}


def check_options(**options: Any) -> ReadOptions:
    """The options of ``read`` that say what a record is, checked; an unknown one is a ValueError."""
    known: dict[str, Any] = dict.fromkeys(field.name for field in fields(ReadOptions)) | {"price_levels": OCCURRING}
    for name in options:
        if name not in known:
            raise ValueError(f"Unknown reading option {name!r}: choose one of {', '.join(known)}.")
    said = known | options
    separator, items, no_choice = said["separator"], said["items"], said["no_choice"]
    if separator is not None and not (isinstance(separator, str) and separator):
        raise ValueError(f"The separator is {separator!r}: it must be text, such as ';'.")
    if items is not None:
        said["items"] = tuple(label_of("An item", one) for one in as_offer("The list of items", items))
    if no_choice is not None:
        said["no_choice"] = label_of("no_choice", no_choice)
    check_dialect(said["decimal"], said["dates"])
    said["price_levels"] = checked_levels(said["price_levels"])
    if said["prices"] is None and said["price_levels"] != OCCURRING:
        raise ValueError("price_levels needs prices: add the column that has them, such as prices='price'.")
    return ReadOptions(**said)


def open_job(
    source: Any,
    split: Split,
    how: ReadOptions,
    partitions: str | Sequence[str] = (),
    rejects: str | os.PathLike[str] | None = None,
    times: tuple[int | None, Any, float | str | timedelta | None] = (None, None, None),
) -> Job:
    """A source with its layout recognised, ready to be read; ``times`` are slices, since and half-life of ``read``."""
    with translated():
        data = open_source(source, partitions=partitions, encoding=how.encoding, sheet=how.sheet)
        table = None if how.contents is None else open_source(how.contents, encoding=how.encoding)
    check_rejects(rejects, data, table)
    for column in split.by:
        if column not in data.columns:
            raise ValueError(
                f"{data.name} has no column {column!r} (it has {listed_names(data.columns)}): use one of these."
            )
    besides = (*split.by, *getattr(data, "partitions", ()))
    with translated():
        layout = _recognised(data, how, besides, table is not None)
        data, mark, others, in_offers, notes = open_dialect(data, layout, how.separator, how.decimal, how.dates)
        held = _contents(data, layout, table, how.separator or SEPARATORS[0])
    time = layout.roles.get("time")
    if split.period is not None and time is None:
        raise ValueError(f"{data.name} has no column 'time' for the {split.period}: map it with columns='time=...'.")
    split = split if split.period is None else Split(split.by, split.period, time)
    clock = clock_of(data.name, time, *times)
    choices = Choices(layout, mark, None if how.items is None else frozenset(how.items), how.inside, held)
    if layout.has_prices:
        given = how.price_levels if isinstance(how.price_levels, PriceLevels) else None
        number = plain_cell if in_offers is None else partial(rewrite, in_offers)
        choices = PricedChoices(layout, mark, choices.items, how.inside, held, levels=given, number=number)
    return Job(data, layout, split, choices, clock, others, notes)


def _recognised(data: Source, how: ReadOptions, besides: Sequence[str], by_id: bool) -> Layout:
    """The layout by the names of columns; without those whose values show that they are something else."""
    options = (how.format, how.columns, besides, by_id, how.prices)
    layout = recognise(data.name, data.columns, *options)
    if layout.format not in ("long", "wide") or how.columns is not None:
        return layout
    names, other = list(data.columns), layout
    with suppress(ValueError):
        while unfit := unfit_columns(data, other):
            names = [name for name in names if name not in unfit]
            other = recognise(data.name, names, *options)
        return other if other.format == layout.format else layout
    return layout


def label_of(option: str, value: Any) -> str:
    """A label that an option gives."""
    label = text_or_nothing(value)
    if label == "":
        raise ValueError(f"{option} is {value!r}: use plain text.")
    return label


def check_rejects(rejects: str | os.PathLike[str] | None, *sources: Source | None) -> None:
    """Refuse to write the rejects over a file that is to be read."""
    files = [path for one in sources for path in getattr(one, "paths", ())]
    if rejects is not None and any(same_file(rejects, path) for path in files):
        raise ValueError(f"The rejects would overwrite {rejects}, which is an input: choose another file.")


def _contents(data: Source, layout: Layout, table: Source | None, separator: str) -> Contents | None:
    """What is in each offer, where the records only number them."""
    if table is not None:
        if layout.by_id:
            return listed_contents(table, layout.raw[0], separator)
        raise ValueError(f"contents needs a column in {data.name} that identifies the offer: columns='offer_id=...'.")
    if layout.by_id and layout.format != "counts":
        raise ValueError(f"{data.name} has only the ids of its offers: add contents=..., a table of offers and items.")
    return None


@contextmanager
def translated() -> Iterator[None]:
    """Say an error of DuckDB in one sentence."""
    import duckdb

    try:
        yield
    except (duckdb.Error, UnicodeError) as error:
        raise ValueError(f"DuckDB cannot read this: {str(error).strip().splitlines()[0]}") from None
