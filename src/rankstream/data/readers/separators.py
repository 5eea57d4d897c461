"""What joins the items of an offer or the names of a ranking: as the user says, or as in the first records."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from rankstream.data.readers.formats import Layout
from rankstream.data.readers.records import SEPARATORS
from rankstream.data.readers.sources.labels import list_in, text_or_nothing
from rankstream.data.readers.sources.tables import Source

SAMPLED_ROWS = 1000
BETTER = ">"
MARKS = (BETTER, *SEPARATORS)
DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d+\s*(?:[;|,]|$))")


def separator_of(source: Source, layout: Layout) -> tuple[str, tuple[str, ...]]:
    """The separator of a table's offers or rankings, and what a ranking must not have, since it may join names, too."""
    usual = BETTER if layout.format == "rankings" else SEPARATORS[0]
    if layout.format not in ("rankings", "transactions", "counts") or layout.by_id or layout.always is not None:
        return usual, ()
    places = [source.columns.index(column) for column in layout.raw]
    rows = [row.cells for row in source.rows(layout.raw, SAMPLED_ROWS) if row.wrong is None]
    records = [[text_or_nothing(cells[place]) for place in places] for cells in rows if _is_joined(cells[places[0]])]
    if layout.format != "rankings":
        return _of_offers([(offered, chosen) for offered, chosen in records], layout.has_prices), ()
    found = _of_rankings([ranking for (ranking, *_) in records])
    if found is None:
        return usual, SEPARATORS
    return found, MARKS[: MARKS.index(found)]


def _is_joined(cell: Any) -> bool:
    return isinstance(cell, str) and list_in(cell.strip()) is None


def _of_offers(records: Iterable[tuple[str, str]], priced: bool = False) -> str:
    """The separator by which most choices are in their offers; items may have prices, as in tea@3.50 or tea@3,50.

    >>> _of_offers([("tea|pie", "tea"), ("Jam, Strawberry|tea", "Jam, Strawberry"), ("tea", "tea")])
    '|'
    """
    known = [record for record in records if record[1] != ""]
    explained = {mark: sum(_holds(offered, mark, chosen, priced) for offered, chosen in known) for mark in SEPARATORS}
    return max(SEPARATORS, key=lambda mark: explained[mark])


def _holds(offered: str, mark: str, chosen: str, priced: bool) -> bool:
    parts = [part.strip() for part in offered.split(mark)]
    if priced and mark == "," and chosen not in parts:
        offered = DECIMAL_COMMA.sub(".", offered)
        parts = offered.split(mark)
    if priced:
        parts += [part.rpartition("@")[0].strip() for part in parts]
    return mark in offered and chosen in parts


def _of_rankings(rankings: Sequence[str]) -> str | None:
    """The separator of rankings: ">", or else what occurs; a comma only where it is sure not to be part of a name.

    >>> _of_rankings(["tea > pie", "cake"]), _of_rankings(["tea;pie", "pie"]), _of_rankings(["Smith, Ann", "Ray, Bob"])
    ('>', ';', None)
    """
    for mark in MARKS:
        joined = [ranking for ranking in rankings if mark in ranking]
        if joined and (mark != "," or _change_places(joined)):
            return mark
    return None


def _change_places(joined: Iterable[str]) -> bool:
    """Whether a name stands at different places in different rankings, as "Smith" of "Smith, Ann" never does."""
    places: dict[str, set[int]] = defaultdict(set)
    for ranking in joined:
        for place, name in enumerate(ranking.split(",")):
            places[name.strip()].add(place)
    return any(len(found) > 1 for found in places.values())
