"""Sets of items inside several offers: of the events "chosen there", one per item, at most one can happen."""

from itertools import combinations
from math import comb

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream.data.assortments import Assortments
from rankstream.oracles.bounds import exclusion_kernels
from rankstream.oracles.bounds.pool import Cut

MAX_SETS_TIMES_OFFERS = 1_000_000  # sets times offers that are looked at; larger sets of larger offers are left out
MAX_OFFERS_TIMES_ITEMS = 4_000_000  # offers times items, for sets of any size
MAX_PAIRED_OFFERS = 2_000  # offers, for what any two have in common


class Exclusions:
    """For a set T of items inside several offers: the shares of its items and no-choice, each where it is largest.

    Whoever chooses item i from an offer that contains T ranks i first in T. So these events exclude each other, and
    the sum over T and no-choice of the largest share of each in any offer that contains T is at most 1. Sets of up to
    three items are all looked at, and all that two offers have in common; the worst of them are made larger as long as
    that makes them worse. All sets of events that exclude each other in pairs are of this kind.

    >>> offers = Assortments([("tea", "cake", "nothing"), ("tea", "cake", "pie", "nothing")])
    >>> shares = np.array([0.1, 0.6, 0.3, 0.5, 0.2, 0.3, 0.0])
    >>> [cut.where.tolist() for cut in Exclusions(offers).violated(shares, 1)]     # cake here, tea there, nothing here
    [[1, 2, 3]]
    """

    def __init__(self, assortments: Assortments, largest: int = 3) -> None:
        self.assortments = assortments
        self._none = -1 if assortments.no_choice_code is None else assortments.no_choice_code
        self._tables = [table for size in range(1, largest + 1) if (table := self._table(size)) is not None]
        self._paired = assortments.n_offers * assortments.n_items <= MAX_OFFERS_TIMES_ITEMS
        self._place: Codes = np.full((assortments.n_offers if self._paired else 0, assortments.n_items), -1)
        if self._paired:
            self._place[assortments.owner, assortments.members] = np.arange(assortments.n_coordinates)
        self._room = np.empty(assortments.n_offers, dtype=np.int64)

    def _table(self, size: int) -> tuple[Codes, Codes, Codes] | None:
        """The sets of a size that two offers contain or more: their items, where their rows begin, and the rows."""
        offers = self.assortments
        sizes, keys, rows, left = np.diff(offers.indptr), [], [], MAX_SETS_TIMES_OFFERS
        for n_members in np.unique(sizes):
            begins = offers.indptr[:-1][sizes == n_members]
            left -= comb(int(n_members), size) * begins.size
            if left < 0:  # from the smallest offers on
                break
            seats = begins[:, np.newaxis] + np.arange(n_members)
            nones = np.full(begins.size, -1)
            if self._none >= 0:
                is_none = offers.members[seats] == self._none
                nones = seats[is_none]
                seats = seats[~is_none].reshape(begins.size, n_members - 1)
            # items in ascending order, so that a set has one key
            seats = np.take_along_axis(seats, offers.members[seats].argsort(axis=1), axis=1)
            picks = np.array(list(combinations(range(seats.shape[1]), size)), dtype=np.int64).reshape(-1, size)
            chosen = seats[:, picks].reshape(-1, size)
            keys.append(offers.members[chosen] @ offers.n_items ** np.arange(size)[::-1])
            rows.append(np.column_stack([chosen, np.repeat(nones, picks.shape[0])]))
        if not keys:
            return None
        key, row = np.concatenate(keys), np.concatenate(rows)
        _, number, times = np.unique(key, return_inverse=True, return_counts=True)
        order = np.argsort(number, kind="stable")
        order = order[times[number[order]] > 1]
        ptr = np.concatenate([[0], np.cumsum(times[times > 1])])
        row = np.ascontiguousarray(row[order])
        return (offers.members[row[ptr[:-1], :size]], ptr, row) if order.size else None

    def violated(self, point: Vec, most: int, excess: float = 1e-6) -> list[Cut]:
        """The cuts of the ``most`` worst sets, each adding up to more than 1 + ``excess``: worst first."""
        found = [*self._small(point, most, 1.0 + excess), *self._common(point, most, 1.0 + excess)]
        found.sort(key=lambda one: -one[0])
        cuts: dict[bytes, Cut] = {}
        for _, items in found[:most]:
            where = self._largest(point, self._widened(point, items))
            depth = (float(point[where].sum()) - 1.0) / np.sqrt(where.size)
            cuts[where.tobytes()] = Cut(where, -np.ones(where.size), -1.0, depth)
        return list(cuts.values())

    def _small(self, point: Vec, most: int, above: float) -> list[tuple[float, Codes]]:
        """The worst sets of up to three items, with the sums of their largest shares."""
        found: list[tuple[float, Codes]] = []
        for items, ptr, seats in self._tables:
            scores = np.empty(items.shape[0])
            exclusion_kernels.score_sets(ptr, seats, point, scores)
            worst = np.argsort(-scores, kind="stable")[:most]
            found += [(float(scores[number]), items[number]) for number in worst[scores[worst] > above].tolist()]
        return found

    def _common(self, point: Vec, most: int, above: float) -> list[tuple[float, Codes]]:
        """The worst sets of all that two offers have in common, however many that is."""
        offers = self.assortments
        if offers.n_offers > MAX_PAIRED_OFFERS or not self._paired:
            return []
        pairs, scores = np.empty((4 * most, 2), dtype=np.int64), np.empty(4 * most)
        lists = self._place, offers.indptr, offers.members
        count = exclusion_kernels.score_pairs(*lists, point, above, pairs, scores)
        worst = np.argsort(-scores[:count], kind="stable")[:most].tolist()
        common = (self._place[pairs[:count, 0]] >= 0) & (self._place[pairs[:count, 1]] >= 0)
        if self._none >= 0:
            common[:, self._none] = False
        return [(float(scores[k]), np.flatnonzero(common[k])) for k in worst if common[k].any()]

    def _widened(self, point: Vec, items: Codes) -> Codes:
        """A larger set, if one is worse."""
        if not self._paired:
            return items
        chosen = np.full(self.assortments.n_items, -1, dtype=np.int64)
        chosen[: items.size] = items
        count = exclusion_kernels.widen(self._place, point, chosen, items.size, self._none, self._room)
        return chosen[:count]

    def _largest(self, point: Vec, items: Codes) -> Codes:
        """Where the shares of some items and no-choice are largest, in the offers that contain all of them."""
        offers = self.assortments
        inside = np.isin(offers.members, items)
        whole = np.add.reduceat(inside.astype(np.int64), offers.indptr[:-1]) == items.size
        kinds = items if self._none < 0 else np.append(items, self._none)
        seats = np.flatnonzero(whole[offers.owner] & (inside | (offers.members == self._none)))
        seats = seats[np.argsort(-point[seats], kind="stable")]
        first = np.unique(offers.members[seats], return_index=True)[1]
        assert first.size == kinds.size  # every one of them is in every one of these offers
        return np.sort(seats[first])
