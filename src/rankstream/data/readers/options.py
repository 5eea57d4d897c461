"""Options of ``read``, checked, and the job that they define for a source."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from functools import partial
from typing import Any

from rankstream._core.files import same_file
from rankstream.data.assortments import as_offer
from rankstream.data.counts import ChoiceCounts, with_outside
from rankstream.data.prices import PriceLevels
from rankstream.data.readers.dialect import check_dialect, open_dialect, rewrite, unfit_columns
from rankstream.data.readers.formats import Layout, recognise
from rankstream.data.readers.groups import Split
from rankstream.data.readers.job import Job
from rankstream.data.readers.prices import OCCURRING, Levels, PricedChoices, checked_levels, plain_cell
from rankstream.data.readers.records import SEPARATORS, Choices, Contents, listed_contents
from rankstream.data.readers.results import choices_from_ballots, counted
from rankstream.data.readers.roles import Columns, Prices, listed_names
from rankstream.data.readers.sources.files import open_source
from rankstream.data.readers.sources.labels import text_or_nothing
from rankstream.data.readers.sources.tables import Source
from rankstream.data.readers.times import clock_of


@dataclass(frozen=True)
class ReadOptions:
    """The checked options of ``read`` that say what a record is; those for grouping records are in ``Split``."""

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
        """The no-purchase option, if it is recorded and not assumed."""
        return self.no_choice if self.outside_share is None else None

    def counts(
        self, tally: Mapping[Any, Any], form: str, levels: PriceLevels | None = None, **rankings: Any
    ) -> dict[Any, ChoiceCounts]:
        """Return the counts of each part of a tally over the same assortments, with items at price ``levels`` if given.

        ``rankings`` are options of ``choices_from_ballots``.
        """
        if form == "rankings":
            each = choices_from_ballots(tally, items=self.items, **rankings)
        else:
            each = counted(dict(tally), self.items, self.inside, levels)
        if self.outside_share is None:
            return each
        share, ends = self.outside_share, self.no_choice or "no choice"
        if all(ends in offer for offer in next(iter(each.values())).assortments.offers):
            raise ValueError(f"Every offer has {ends!r} already: leave out outside_share, or give another no_choice.")
        return {key: with_outside(counts, share, ends) for key, counts in each.items()}


def check_options(**options: Any) -> ReadOptions:
    """Return the options as ``ReadOptions``; an unknown or invalid one is a ValueError."""
    known: dict[str, Any] = dict.fromkeys(field.name for field in fields(ReadOptions)) | {"price_levels": OCCURRING}
    for name in options:
        if name not in known:
            raise ValueError(f"Unknown reading option {name!r}: choose one of {', '.join(known)}.")
    values = known | options
    separator, items, no_choice = values["separator"], values["items"], values["no_choice"]
    if separator is not None and not (isinstance(separator, str) and separator):
        raise ValueError(f"The separator is {separator!r}: it must be text, such as ';'.")
    if items is not None:
        values["items"] = tuple(label_of("An item", item) for item in as_offer("The list of items", items))
    if no_choice is not None:
        values["no_choice"] = label_of("no_choice", no_choice)
    check_dialect(values["decimal"], values["dates"])
    values["price_levels"] = checked_levels(values["price_levels"])
    if values["prices"] is None and values["price_levels"] != OCCURRING:
        raise ValueError("price_levels needs prices: add the column that has them, such as prices='price'.")
    return ReadOptions(**values)


def open_job(
    source: Any,
    split: Split,
    how: ReadOptions,
    partitions: str | Sequence[str] = (),
    rejects: str | os.PathLike[str] | None = None,
    times: tuple[int | None, Any, float | str | timedelta | None] = (None, None, None),
) -> Job:
    """Open a source and recognise its layout; ``times`` are slices, since and half-life of ``read``."""
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
        contents = _contents(data, layout, table, how.separator or SEPARATORS[0])
    time = layout.roles.get("time")
    if split.period is not None and time is None:
        raise ValueError(f"{data.name} has no column 'time', which periods need: set columns='time=YOUR_COLUMN'.")
    split = replace(split, time=None if split.period is None else time, person=layout.roles.get("person"))
    if split.person is not None and times[2] is not None:
        raise ValueError("Choices that fade have no persons: leave out the half-life, or 'person' in columns.")
    clock = clock_of(data.name, time, *times)
    items = None if how.items is None else frozenset(how.items)
    if layout.has_prices:
        levels = how.price_levels if isinstance(how.price_levels, PriceLevels) else None
        number = plain_cell if in_offers is None else partial(rewrite, in_offers)
        choices = PricedChoices(layout, mark, items, how.inside, contents, levels=levels, number=number)
        return Job(data, layout, split, choices, clock, others, notes)
    return Job(data, layout, split, Choices(layout, mark, items, how.inside, contents), clock, others, notes)


def _recognised(data: Source, how: ReadOptions, besides: Sequence[str], by_id: bool) -> Layout:
    """Recognise the layout by the names of columns, without those whose values do not fit."""
    options = (how.format, how.columns, besides, by_id, how.prices)
    layout = recognise(data.name, data.columns, *options)
    if layout.format not in ("long", "wide") or how.columns is not None:
        return layout
    names, reduced = list(data.columns), layout
    with suppress(ValueError):
        while unfit := unfit_columns(data, reduced):
            names = [name for name in names if name not in unfit]
            reduced = recognise(data.name, names, *options)
        return reduced if reduced.format == layout.format else layout
    return layout


def label_of(option: str, value: Any) -> str:
    """Return the value of an option as a label, or raise a ValueError."""
    label = text_or_nothing(value)
    if label == "":
        raise ValueError(f"{option} is {value!r}: use plain text.")
    return label


def check_rejects(rejects: str | os.PathLike[str] | None, *sources: Source | None) -> None:
    """Raise a ValueError if the rejects would overwrite an input file."""
    files = [path for source in sources for path in getattr(source, "paths", ())]
    if rejects is not None and any(same_file(rejects, path) for path in files):
        raise ValueError(f"The rejects would overwrite {rejects}, which is an input: choose another file.")


def _contents(data: Source, layout: Layout, table: Source | None, separator: str) -> Contents | None:
    """Return the items of each offer, if the records have only the ids of offers."""
    if table is not None:
        if layout.by_id:
            return listed_contents(table, layout.raw[0], separator)
        raise ValueError(f"contents needs the ids of offers in {data.name}: set columns='offer_id=YOUR_COLUMN'.")
    if layout.by_id and layout.format != "counts":
        raise ValueError(f"{data.name} has only the ids of its offers: add contents=..., a table of offers and items.")
    return None


@contextmanager
def translated() -> Iterator[None]:
    """Raise errors of DuckDB as a ValueError of one sentence."""
    import duckdb

    try:
        yield
    except (duckdb.Error, UnicodeError) as error:
        raise ValueError(f"DuckDB cannot read this: {str(error).strip().splitlines()[0]}") from None
