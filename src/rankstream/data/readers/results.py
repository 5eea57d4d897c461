"""Convert tallies of outcomes to counts over the same assortments: in total, by group, and by slice of time.

From a ballot, a voter chooses the candidate of every offer that is ranked best, or "nobody further".
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from rankstream._core.types import Vec
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.decay import MIN_OFFER_WEIGHT, DecayingCounts
from rankstream.data.prices import PriceLevels
from rankstream.data.readers.problems import BadRecordError, shown
from rankstream.data.readers.roles import listed_names
from rankstream.data.readers.sources.labels import is_list, order, parts_of, text
from rankstream.data.readers.times import Clock, Span

Ballot = tuple[tuple[str, ...], ...]
MAX_CANDIDATES = 12  # 4,083 subsets of two or more; one candidate more doubles them
MAX_BALLOT_CELLS = 2_000_000  # candidates in all offers together; about half a gigabyte
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


def ballot_of(
    value: Any, items: frozenset[str] | None = None, separator: str = ">", others: Sequence[str] = ()
) -> Ballot:
    """Parse a ballot into tiers of tied candidates, best first; in a list, inner lists are ties.

    ``others`` are separators that a text must not contain in place of ``separator``, so that a whole ranking is not
    mistaken for one candidate.

    >>> ballot_of("tea > pie = cake"), ballot_of("tea;pie", separator=";")
    ((('tea',), ('cake', 'pie')), (('tea',), ('pie',)))
    """
    for mark in others if isinstance(value, str) else ():
        if mark in value and (separator not in value or mark == ">"):
            raise BadRecordError(
                "ranking",
                f"the ranking {value!r} contains {mark!r}: set separator={mark!r} if that separates its "
                f"names, or separator={separator!r} if it does not.",
            )
    parts = [part if is_list(part) else text(part).split("=") for part in parts_of(value, separator)]
    tiers = [[text(name) for name in part] for part in parts]
    names = [name for tier in tiers for name in tier]
    if not any(names):
        raise BadRecordError("empty", "the ranking is empty: list at least one candidate.")
    if "" in names or not all(tiers):
        remedy = f"write it as {f' {separator} '.join('abc')!r}"
        raise BadRecordError("ranking", f"the ranking {value!r} has an empty place: {remedy}.")
    if len(set(names)) < len(names):
        raise BadRecordError("repeated item", f"the ranking {value!r} lists a candidate twice: list each once.")
    for name in names:
        if items is not None and name not in items:
            raise BadRecordError("unknown item", f"the item {name!r} is not among the {len(items)} items: add it.")
    return tuple(tuple(sorted(tier, key=order)) for tier in tiers)


def choices_from_ballots(
    ballots: Mapping[Any, Mapping[Ballot, float]],
    *,
    items: Sequence[str] | None = None,
    offers: Any = "pairs",
    ties: str = "split",
    nobody: str = "nobody further",
) -> dict[Any, ChoiceCounts]:
    """Return the counts of each group: what its voters choose from every offer.

    ``offers`` are "pairs", "all" (of two candidates or more), or a list. A voter who ranked none of an offer chooses
    ``nobody``, which is in every offer if some ballot is incomplete. A tie at the top splits the vote ("split") or
    leaves it out ("skip"). Each voter answers all offers, so choices from different offers are not independent.

    >>> votes = {(("tea",), ("pie",), ("cake",)): 3.0, (("pie", "cake"),): 1.0}
    >>> counts = choices_from_ballots({"": votes}, offers=[("tea", "pie")])[""]
    >>> counts.assortments.offers[0], counts.tallies
    (('pie', 'tea', 'nobody further'), array([1., 3., 0.]))
    """
    if ties not in ("split", "skip"):
        raise ValueError(f"ties is {ties!r}: it must be 'split' or 'skip'.")
    named = {name for votes in ballots.values() for ballot in votes for tier in ballot for name in tier}
    candidates = sorted(named, key=order) if items is None else list(items)
    short = any(sum(map(len, ballot)) < len(candidates) for votes in ballots.values() for ballot in votes)
    if short and nobody in candidates:
        raise ValueError(f"{nobody!r} is also the label for an exhausted ballot: pass another nobody=.")
    menus = [(*menu, nobody) if short else menu for menu in _menus(candidates, offers, short)]
    assortments = Assortments(menus, (*candidates, nobody) if short else candidates)
    return {
        group: ChoiceCounts(assortments, _tallies(assortments, votes, ties, len(candidates)))
        for group, votes in ballots.items()
    }


def _menus(candidates: list[str], offers: Any, short: bool) -> list[tuple[str, ...]]:
    if len(candidates) < 2:
        raise ValueError(f"There is only the candidate {shown(candidates[0])}: a choice needs two.")
    if not isinstance(offers, Iterable) or (isinstance(offers, str) and offers not in ("pairs", "all")):
        raise ValueError(f"offers is {offers!r}: it must be 'pairs', 'all', or a list of offers.")
    if not isinstance(offers, str):
        place = {name: number for number, name in enumerate(candidates)}
        menus = [tuple(map(str, menu)) for menu in offers]
        for name in (name for menu in menus for name in menu):
            if name not in place:
                known = listed_names(candidates)
                raise ValueError(f"An offer contains {shown(name)}, who is in no ballot: choose among {known}.")
        return list(dict.fromkeys(tuple(sorted(menu, key=place.__getitem__)) for menu in menus))
    cells = comb(len(candidates), 2) * (2 + short)
    if offers == "pairs" and cells > MAX_BALLOT_CELLS:
        raise ValueError(
            f"All pairs of {len(candidates):,} candidates, such as {shown(candidates[-1])}, have {cells:,} cells, "
            f"beyond {MAX_BALLOT_CELLS:,}: set separator if these are whole rankings, or give a list of offers."
        )
    if offers == "all" and len(candidates) > MAX_CANDIDATES:
        raise ValueError(f"All subsets of {len(candidates)} candidates are too many: give a list of offers.")
    sizes = range(2, 3 if offers == "pairs" else len(candidates) + 1)
    return [menu for size in sizes for menu in combinations(candidates, size)]


def _tallies(assortments: Assortments, votes: Mapping[Ballot, float], ties: str, n_candidates: int) -> Vec:
    """Return the votes for every coordinate; "nobody" ranks below all candidates on the ballot, above all others."""
    tallies = np.zeros(assortments.n_coordinates)
    ballots, batch_size = list(votes), max(1, MAX_BALLOT_CELLS // assortments.n_items)
    for first in range(0, len(ballots), batch_size):
        batch = ballots[first : first + batch_size]
        weights = np.array([votes[ballot] for ballot in batch], dtype=np.float64)
        ranks = np.full((len(batch), assortments.n_items), n_candidates + 1)
        for row, ballot in enumerate(batch):
            for place, tier in enumerate(ballot):
                ranks[row, [assortments.code(name) for name in tier]] = place
        ranks[:, n_candidates:] = n_candidates
        for start, end in zip(assortments.indptr[:-1], assortments.indptr[1:], strict=True):
            offered = ranks[:, assortments.members[start:end]]
            best = offered == offered.min(axis=1, keepdims=True)
            tied = best.sum(axis=1)
            share = weights / tied if ties == "split" else np.where(tied == 1, weights, 0.0)
            tallies[start:end] += share @ best
    return tallies
