"""Convert tallies of outcomes to counts over the same assortments: in total, by group, and by slice of time."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankstream._core.types import Vec
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.decay import MIN_OFFER_WEIGHT, DecayingCounts
from rankstream.data.prices import PriceLevels
from rankstream.data.readers.sources.labels import order
from rankstream.data.readers.times import Clock, Span

Key = Any
COUNTED, FADED, SQUARED = "counted", "faded", "squared"
Tally = dict[tuple[str, Key, int], dict[Any, float]]  # by kind of sum, group and slice of time: outcomes and sums
MAX_GROUPS = 1_000_000  # with more, a column most likely numbers the records; not tuned
MAX_GROUP_CELLS = 50_000_000  # in all groups together: 400 MB
ALL, SLICE, PERSONS = "all", "slice", "persons"
Parts = dict[tuple[str, Key, int], ChoiceCounts]


@dataclass(frozen=True)
class ReadResult:
    """The result of a reading: the tally, how many records there were, and the times of all and of each slice."""

    tally: Tally
    rows: int
    span: Span | None = None
    spans: list[Span] | None = None


def new_tally() -> Tally:
    """Return an empty tally."""
    return defaultdict(lambda: defaultdict(float))


def cells_of(key: Key) -> tuple[Any, ...]:
    """Return the parts of the name of a group."""
    return key if isinstance(key, tuple) else (key,)


def group_of(cells: Sequence[Any]) -> Key:
    """Return the name of a group from its parts: a single part stands alone."""
    return cells[0] if len(cells) == 1 else tuple(cells)


def check_groups(number: int) -> None:
    """Raise a ValueError if there are too many groups."""
    if number > MAX_GROUPS:
        raise ValueError(f"There are more than {MAX_GROUPS:,} groups: choose columns with fewer values.")


def counted(
    tally: Tally, items: tuple[str, ...] | None, no_choice: str | None, levels: PriceLevels | None = None
) -> Parts:
    """Return the counts of each part of a tally of offers and choices, with items at price ``levels`` if given."""
    offers: set[tuple[str, ...]] = {offer for outcomes in tally.values() for offer, _ in outcomes}
    known = {} if levels is None else {label: levels.of(label) for label in levels.labels}

    def place(label: str) -> tuple[Any, ...]:
        item, price = known.get(label, (label, None))
        return (*order(str(item)), -1.0 if price is None else price)

    named = sorted({*known, *(item for offer in offers for item in offer)}, key=place)
    if items is not None:
        named = []
        for item in items:
            named += [label for label, (of_item, _) in known.items() if of_item == item] or [item]
    if no_choice is not None and (items is None or no_choice not in items):
        named = [*(item for item in named if item != no_choice), no_choice]
    by_size = sorted(offers, key=lambda offer: (len(offer), list(map(place, offer))))
    assortments = Assortments(by_size, named, None if levels is None else levels.order)
    groups, size = len(tally), assortments.n_coordinates
    if groups * size > MAX_GROUP_CELLS:
        raise ValueError(
            f"{groups:,} groups over {size:,} pairs of an offer and an item are {groups * size:,} cells, beyond "
            f"{MAX_GROUP_CELLS:,}: use fewer groups."
        )
    parts, places = {}, {offer: assortments.place(offer) for offer in by_size}
    for key, outcomes in tally.items():
        parts[key] = ChoiceCounts(assortments)
        where = [places[offer][chosen] for offer, chosen in outcomes]
        parts[key].observe_coordinates(np.array(where, np.int64), np.array(list(outcomes.values())))
    return parts


def combined(
    result: ReadResult, parts: Parts, clock: Clock | None, by_person: bool = False
) -> tuple[ChoiceCounts, dict[Key, ChoiceCounts], list[ChoiceCounts]]:
    """Return the total counts, those of each group in order, and those of each slice.

    If the last part of each key is a group of persons (``by_person``), the total knows these groups.
    """
    assortments = next(iter(parts.values())).assortments
    sums: dict[tuple[str, Any], Vec] = defaultdict(lambda: np.zeros(assortments.n_coordinates))
    for (kind, key, number), counts in parts.items():
        group = key
        if by_person:
            *cells, person = cells_of(key)
            group = group_of(cells)
            sums[PERSONS, person] += counts.tallies
        sums[kind, ALL] += counts.tallies
        sums[kind, (group,)] += counts.tallies
        if kind == COUNTED:
            sums[SLICE, number] += counts.tallies

    def counts_of(key: Any) -> ChoiceCounts:
        if clock is None or clock.half_life is None or result.span is None:
            return ChoiceCounts(assortments, sums[COUNTED, key])
        faded, squares = (ChoiceCounts(assortments, sums[kind, key]) for kind in (FADED, SQUARED))
        return _decaying(faded, squares, clock.half_life, result.span[1])

    named = {key for _, key, _ in parts}
    named = {group_of(cells_of(key)[:-1]) for key in named} if by_person else named
    groups = {group: counts_of((group,)) for group in sorted(named)}
    slices = [ChoiceCounts(assortments, sums[SLICE, number]) for number in range(len(result.spans or []))]
    total = counts_of(ALL)
    if by_person:
        total.persons = np.array([sums[key] for key in sorted(key for key in sums if key[0] == PERSONS)])
    return total, groups, slices


def _decaying(faded: ChoiceCounts, squares: ChoiceCounts, half_life: float, latest: float) -> DecayingCounts:
    """Return the counts that result from observing every choice at its time; forgotten offers have none."""
    counts = DecayingCounts(faded.assortments, half_life, by="time")
    totals, squared = faded.totals, squares.totals
    lost = (totals < MIN_OFFER_WEIGHT) | (squared == 0.0)
    tallies = np.where(lost[faded.assortments.owner], 0.0, faded.tallies)
    totals, squared = np.where(lost, 0.0, totals), np.where(lost, 0.0, squared)
    counts.remember({"tallies": tallies, "totals": totals, "squares": squared, "now": np.array(latest)})
    return counts
