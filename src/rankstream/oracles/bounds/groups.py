"""Overlapping groups of offers, each small enough for an exact dynamic program."""

from collections import Counter

import numpy as np

from rankstream._core.arguments import whole_number
from rankstream._core.types import Bits, Codes, Vec
from rankstream.data.assortments import Assortments
from rankstream.oracles.bounds.group_kernels import MAX_GROUP_OFFERS, Lattices, collect_unions, link

MAX_COORDINATES = 100_000  # beyond, every offer is a group of its own: overlaps would take minutes to find
MAX_OFFERS = 6_000  # whose pairs take three tables of 0.3 GB; with 20,000, numpy's product of them ends the process


class Groups:
    """A cover of the offers by groups of offers with many items in common.

    The state of a group is the set of its offers without a ranked item. A group grows offer by offer while at most
    ``states`` of its states can be reached, so it has many rare items or few common ones. Every offer is in at least
    ``overlap`` groups, unless one group contains everything it is connected with; with 1 the groups are nearly a
    partition. Beyond 100,000 coordinates or 6,000 offers every offer is its own group: a weak bound at little cost.

    >>> groups = Groups(Assortments([("tea", "cake", "nothing"), ("tea", "pie", "nothing"), ("ink", "nothing")]))
    >>> groups.offers
    [[0, 1], [2]]
    """

    def __init__(self, assortments: Assortments, states: int = 2000, overlap: int = 3) -> None:
        whole_number("states", states, least=2)
        whole_number("overlap", overlap, least=1)
        self.assortments = assortments
        self._universal = -1 if assortments.no_choice_code is None else assortments.no_choice_code
        self._sets = [
            frozenset(offer) - {self._universal}
            for offer in np.split(assortments.members, assortments.indptr[1:-1].tolist())
        ]
        self.offers = self._cover(states, overlap)
        self.lattices = self._lattices(states)
        self.copies: Codes = np.bincount(self.lattices.where, minlength=assortments.n_coordinates)

    def _cover(self, states: int, overlap: int) -> list[list[int]]:
        """Grow groups around the least covered offers, preferring pairs of offers that share no group yet."""
        n_offers = self.assortments.n_offers
        if self.assortments.n_coordinates > MAX_COORDINATES or n_offers > MAX_OFFERS:
            return [[offer] for offer in range(n_offers)]
        holds = np.zeros((n_offers, self.assortments.n_items))
        holds[self.assortments.owner, self.assortments.members] = 1.0
        if self._universal >= 0:
            holds[:, self._universal] = 0.0
        shared = holds @ holds.T
        ties = 0.5 * shared * (shared + 1.0)
        np.fill_diagonal(ties, 0.0)
        together = np.zeros_like(ties)
        covered = np.zeros(n_offers)
        groups: list[list[int]] = []
        while covered.min() < overlap:
            seed = int(covered.argmin())
            group, whole = self._grow(seed, ties, together, states)
            covered[group] += float(overlap) if whole else 1.0
            together[np.ix_(group, group)] += 1.0
            groups.append(sorted(group))
        return groups

    def _grow(self, seed: int, ties: Vec, together: Vec, states: int) -> tuple[list[int], bool]:
        """Return the seed with the offers that share most items with it, and whether no other offer shares any.

        Scores are computed for the group's own offers only: all pairs of thousands of offers would take far longer
        than the groups themselves.
        """
        group, score, refused = [seed], ties[seed] / (1.0 + together[seed]) ** 2, 0
        connected = ties[seed] > 0.0
        free = np.ones(score.size, dtype=bool)
        free[seed] = False
        while len(group) < MAX_GROUP_OFFERS and refused < 4:
            candidates = np.where(free, score, 0.0)
            best = int(candidates.argmax())
            if candidates[best] <= 0.0:
                break
            free[best] = False
            if self._states([*group, best], states) is None:
                refused += 1
                continue
            group.append(best)
            score += ties[best] / (1.0 + together[best]) ** 2
            connected |= ties[best] > 0.0
        connected[group] = False
        return group, not connected.any()

    def _takes(self, group: list[int]) -> tuple[list[int], Bits]:
        """Return the items of a group, and for each the offers that contain it as bits."""
        masks: dict[int, int] = {}
        for slot, offer in enumerate(group):
            for item in sorted(self._sets[offer]):
                masks[int(item)] = masks.get(int(item), 0) | 1 << slot
        return list(masks), np.array(list(masks.values()), dtype=np.uint64)

    def _states(self, group: list[int], most: int) -> Bits | None:
        """Return the states of a group in ascending order, so that steps lead to earlier ones; None if too many."""
        unions, full = np.empty(most, dtype=np.uint64), np.uint64((1 << len(group)) - 1)
        count = collect_unions(self._takes(group)[1], unions)
        return None if count < 0 else np.sort(full ^ unions[:count])

    def _lattices(self, most: int) -> Lattices:
        slots = [offer for group in self.offers for offer in group]
        sizes = np.diff(self.assortments.indptr)[slots]
        seat_ptr = np.concatenate([[0], np.cumsum(sizes)])
        first = self.assortments.indptr[:-1][slots] - seat_ptr[:-1]
        slot_of = np.repeat(np.arange(len(slots)), sizes)
        where = np.arange(seat_ptr[-1]) + first[slot_of]
        none = np.full(len(slots), -1, dtype=np.int64)
        ending = np.flatnonzero(self.assortments.members[where] == self._universal)
        none[slot_of[ending]] = ending
        slot_ptr = np.concatenate([[0], np.cumsum([len(group) for group in self.offers])])
        states, step_counts, steps, entries = [0], [], [], [0]
        chains = []
        for number, group in enumerate(self.offers):
            starts = seat_ptr[slot_ptr[number] : slot_ptr[number + 1]]
            group_counts, group_steps, group_entries = self._link(group, starts, most)
            steps.append(group_steps + np.array([entries[-1], states[-1]]))
            chains.append(group_entries + np.array([entries[-1], 0]))
            step_counts.append(group_counts)
            states.append(states[-1] + group_counts.size)
            entries.append(entries[-1] + group_entries.shape[0])
        entry, target = np.ascontiguousarray(np.concatenate(steps).T)
        parent, seat = np.ascontiguousarray(np.concatenate(chains).T)
        step_ptr = np.concatenate([[0], np.cumsum(np.concatenate(step_counts))])
        ends = np.array(states), step_ptr, entry, target, np.array(entries), parent, seat
        return Lattices(slot_ptr, seat_ptr, none, slot_of, where, *ends)

    def _link(self, group: list[int], starts: Codes, most: int) -> tuple[Codes, Codes, Codes]:
        """Return the number of steps of each state of a group, the steps (entry, target), and the entries."""
        items, takes = self._takes(group)
        states = self._states(group, most)
        assert states is not None  # groups grow only while their states are few enough
        seat_of = np.zeros((len(items), len(group)), dtype=np.int64)
        local = {item: k for k, item in enumerate(items)}
        for slot, offer in enumerate(group):
            begin, end = self.assortments.indptr[offer : offer + 2].tolist()
            for k in range(begin, end):
                item = int(self.assortments.members[k])
                if item != self._universal:
                    seat_of[local[item], slot] = starts[slot] + k - begin
        alike = Counter(takes.tolist())  # items of the same offers
        met = {take: np.unique(states & np.uint64(take)).size * take.bit_count() for take in alike}
        size = 1 + sum(times * met[take] for take, times in alike.items())
        step_ptr = np.empty(states.size + 1, dtype=np.int64)
        steps = np.empty((states.size * len(items), 2), dtype=np.int64)
        entries = np.empty((size, 2), dtype=np.int64)
        count = link(takes, seat_of, states, step_ptr, steps, entries)
        return np.diff(step_ptr), steps[: step_ptr[-1]], entries[:count]
