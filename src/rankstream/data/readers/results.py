"""From tallies of outcomes to counts over one set of assortments: all together, by group, and by slice of time."""

from collections import defaultdict
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
MAX_GROUP_CELLS = 50_000_000  # of all groups together; as many as take 400 MB
ALL, SLICE = "all", "slice"
Parts = dict[tuple[str, Key, int], ChoiceCounts]


@dataclass(frozen=True)
class ReadResult:
    """The result of a reading: the tally, how many records there were, and the times of all and of each slice."""

    tally: Tally
    rows: int
    span: Span | None = None
    spans: list[Span] | None = None


def new_tally() -> Tally:
    """A tally to be added to."""
    return defaultdict(lambda: defaultdict(float))


def check_groups(number: int) -> None:
    """That the groups are not too many to be kept apart."""
    if number > MAX_GROUPS:
        raise ValueError(f"There are more than {MAX_GROUPS:,} groups: choose columns with fewer values.")


def counted(
    tally: Tally, items: tuple[str, ...] | None, no_choice: str | None, levels: PriceLevels | None = None
) -> Parts:
    """The counts of each part of a tally of offers and choices; with ``levels`` of items at these, in their order."""
    offers: set[tuple[str, ...]] = {offer for outcomes in tally.values() for offer, _ in outcomes}
    known = {} if levels is None else {label: levels.of(label) for label in levels.labels}

    def place(label: str) -> tuple[Any, ...]:
        item, price = known.get(label, (label, None))
        return (*order(str(item)), -1.0 if price is None else price)

    named = sorted({*known, *(item for offer in offers for item in offer)}, key=place)
    if items is not None:  # each at its levels, if it has some
        named = [label for item in items for label in [one for one in known if known[one][0] == item] or [item]]
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
    found, places = {}, {offer: assortments.place(offer) for offer in by_size}
    for key, outcomes in tally.items():
        counts = ChoiceCounts(assortments)
        where = [places[offer][chosen] for offer, chosen in outcomes]
        counts.observe_coordinates(np.array(where, np.int64), np.array(list(outcomes.values())))
        found[key] = counts
    return found


def combined(
    found: ReadResult, parts: Parts, clock: Clock | None
) -> tuple[ChoiceCounts, dict[Key, ChoiceCounts], list[ChoiceCounts]]:
    """The counts of all, of each group in order, and of each slice."""
    assortments = next(iter(parts.values())).assortments
    sums: dict[tuple[str, Any], Vec] = defaultdict(lambda: np.zeros(assortments.n_coordinates))
    for (kind, group, number), counts in parts.items():
        for key in ((kind, ALL), (kind, (group,)), *([(SLICE, number)] if kind == COUNTED else [])):
            sums[key] += counts.tallies

    def settled(key: Any) -> ChoiceCounts:
        if clock is None or clock.half_life is None or found.span is None:
            return ChoiceCounts(assortments, sums[COUNTED, key])
        left, squares = (ChoiceCounts(assortments, sums[kind, key]) for kind in (FADED, SQUARED))
        return _faded(left, squares, clock.half_life, found.span[1])

    groups = {group: settled((group,)) for group in sorted({group for _, group, _ in parts})}
    slices = [ChoiceCounts(assortments, sums[SLICE, number]) for number in range(len(found.spans or []))]
    return settled(ALL), groups, slices


def _faded(left: ChoiceCounts, squares: ChoiceCounts, half_life: float, latest: float) -> DecayingCounts:
    """Counts that fade with time, as if every choice had been observed at its own; what is forgotten is not there."""
    counts = DecayingCounts(left.assortments, half_life, by="time")
    totals, squared = left.totals, squares.totals
    lost = (totals < MIN_OFFER_WEIGHT) | (squared == 0.0)
    tallies = np.where(lost[left.assortments.owner], 0.0, left.tallies)
    totals, squared = np.where(lost, 0.0, totals), np.where(lost, 0.0, squared)
    counts.remember({"tallies": tallies, "totals": totals, "squares": squared, "now": np.array(latest)})
    return counts
