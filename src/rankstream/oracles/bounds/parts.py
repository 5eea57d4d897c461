"""Parts: sets of items with what every offer has of them, each small enough for a dynamic program over its sets."""

import numpy as np

from rankstream._core.types import ROUNDING, Codes, Vec
from rankstream.data.assortments import Assortments
from rankstream.oracles.bounds import part_kernels
from rankstream.oracles.bounds.cuts import Cut
from rankstream.oracles.bounds.part_kernels import Corral, Events, Tables

# tuned on other seeds than those of benchmarks/proofs.py
MAX_CALLS, MAX_CORNERS = 1000, 600  # dynamic programs for a cut, and rankings that it is found from
MAX_DISTANCE_LEFT = 0.1  # of the distance that a cut may leave
MIN_SHARE = 1e-3  # smaller shares are left out
MIN_GAIN_RATIO = 1e-3  # of the largest gain: smaller ones are left out, and the most is computed without


def empty_corral(squares: Vec, most: int) -> Corral:
    """Room for that many corners over events of these squared weights."""
    return Corral(
        known=np.zeros(1, dtype=np.int64),
        slots=np.arange(most),
        chosen=np.zeros((most, squares.size + 1), dtype=np.uint32),
        weights=np.zeros(most),
        factor=np.zeros((most, most)),
        sides=np.zeros((2, most)),
        squares=np.append(squares, 1.0),
    )


def empty_tables(items: int) -> Tables:
    """Room for the dynamic program of parts of that many items; only one thread at a time can use it."""
    return Tables(np.zeros((items, 2**items // 2)), np.zeros(2**items), np.zeros(2**items))


class ItemParts:
    """Parts of the items: where no table has all of them, a few make a table of their own.

    In a part, an offer keeps its items inside and no-choice, and a share of one of these is at most the probability
    that it is ranked before the others: another item of the offer may come first whatever the ranking of the part is.
    So cuts by parts hold. ``squares`` are the squared weights of the offers.

    >>> offers = Assortments([("tea", "cake"), ("cake", "pie", "ink"), ("tea", "pie", "ink")])
    >>> parts, shares = ItemParts(offers, np.ones(3)), np.array([0.9, 0.1, 0.8, 0.1, 0.1, 0.1, 0.9, 0.0])
    >>> chosen = parts.around([0], 3, np.ones(3), np.ones(4))
    >>> [offers.items[item] for item in chosen]
    ['tea', 'cake', 'pie']
    >>> cut = parts.separate(chosen, shares, empty_tables(3))     # tea > cake > pie > tea are two of three
    >>> cut.where, (cut.normal / -cut.normal[0]).round(2), round(float(cut.least / -cut.normal[0]), 2)
    (array([0, 2, 6]), array([-1., -1., -1.]), -2.0)
    """

    def __init__(self, assortments: Assortments, squares: Vec) -> None:
        self.assortments, self._squares = assortments, squares
        self._none = -1 if assortments.no_choice_code is None else assortments.no_choice_code
        order = np.argsort(assortments.members, kind="stable")
        self._item_offers: Codes = assortments.owner[order]
        times = np.bincount(assortments.members, minlength=assortments.n_items)
        self._item_ptr: Codes = np.concatenate([[0], np.cumsum(times)])

    def around(self, centre: list[int], size: int, mass: Vec, likes: Vec) -> list[int]:
        """At most ``size`` items around some of them, which share offers of much ``mass``; ``likes`` favours items."""
        chosen = np.zeros(size, dtype=np.int64)
        given = [item for item in centre if item != self._none][:size]
        chosen[: len(given)] = given
        likes = likes.copy()
        if self._none >= 0:
            likes[self._none] = 0.0
        offers = self.assortments
        lists = offers.indptr, offers.members, self._item_ptr, self._item_offers
        count = part_kernels.grow_part(chosen, len(given), *lists, mass, likes)
        return sorted(chosen[:count].tolist())

    def events(self, chosen: list[int], point: Vec) -> Events:
        """The events of a part with shares that are not implied by others at this point."""
        offers = self.assortments
        local = np.full(offers.n_items, -2, dtype=np.int64)
        local[chosen] = np.arange(len(chosen))
        if self._none >= 0:
            local[self._none] = -1
        found = np.empty((offers.n_coordinates, 3), dtype=np.int64)
        alone = int(self._none >= 0)
        count = part_kernels.collect_events(local, offers.indptr, offers.members, point, MIN_SHARE, alone, found)
        found = found[:count]
        order = np.lexsort((-found[:, 1], -point[found[:, 2]]))
        kept = np.empty(count, dtype=np.int64)
        strongest = np.sort(kept[: part_kernels.keep_strongest(found, order, kept)])
        item, inside, where = np.ascontiguousarray(found[strongest].T)
        return Events(len(chosen), item, inside, where)

    def separate(self, chosen: list[int], point: Vec, tables: Tables, shallow: float = 1e-6) -> Cut | None:
        """The cut of a part that a point is deepest beyond, nearly; None if none was met.

        The point is projected on what rankings of the part can do. Any direction on the way has a most value there,
        computed by the dynamic program, so that the cut holds however far the projection has come. It ends early
        where no cut can be deeper than ``shallow``.
        """
        events = self.events(chosen, point)
        if not events.where.size or not events.n_items:
            return None
        aim = point[events.where]
        corral = empty_corral(self._squares[self.assortments.owner[events.where]], MAX_CORNERS)
        gains, near, n_items = np.zeros(aim.size), np.zeros(aim.size), events.n_items
        tables = Tables(
            tables.first[:n_items, : 2**n_items // 2], tables.none[: 2**n_items], tables.to_go[: 2**n_items]
        )
        depth = part_kernels.separate(events, aim, corral, near, tables, gains, MAX_CALLS, MAX_DISTANCE_LEFT, shallow)
        if depth <= shallow:
            return None
        gains[gains < MIN_GAIN_RATIO * gains.max()] = 0.0
        most = part_kernels.most_gain(events, gains, tables)
        most += ROUNDING * (gains.size + 2 * n_items) * float(gains.sum())
        kept = np.flatnonzero(gains)
        return Cut(events.where[kept], -gains[kept], -most, depth)
