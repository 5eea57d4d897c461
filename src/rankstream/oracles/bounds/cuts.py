"""Cuts: half-spaces that contain every model. A pool of them with the point nearest to the data, and how to find them.

Cuts come from parts of the items, by small dynamic programs on a schedule of their own.
"""

from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import perf_counter

import numpy as np

from rankstream._core.threads import crew
from rankstream._core.types import ROUNDING, Codes, Vec
from rankstream.data.assortments import Assortments
from rankstream.oracles.bounds import part_kernels, pool_kernels
from rankstream.oracles.bounds.corral_kernels import empty_corral
from rankstream.oracles.bounds.part_kernels import Events, Tables
from rankstream.oracles.bounds.pool_kernels import CutRows

# tuned on other seeds than those of benchmarks/proofs.py
MAX_CALLS, MAX_CORNERS = 1000, 600  # dynamic programs for a cut, and rankings that it is found from
MAX_DISTANCE_LEFT = 0.1  # of the distance that a cut may leave
MIN_SHARE = 1e-3  # smaller shares are left out
MIN_GAIN_RATIO = 1e-3  # of the largest gain: smaller ones are left out, and the most is computed without
MIN_PART_ITEMS, PART_ITEMS_STEP = 8, 2  # items of the first parts, and how many more the later ones have
MAX_ITEMS_IN_ONE_PART = 16  # items of which all are one part from the beginning
MAX_STALE_PASSES = 3  # passes with parts of the largest size that add next to nothing
BATCH_PARTS, MIN_BATCH_PARTS = 32, 4  # parts in a batch: of the smallest size, and of large ones
MIN_RELATIVE_DEPTH, MIN_DEPTH = 1e-3, 1e-5  # cuts of less depth, relative to the bound and at all, are left out
REACH = 3.0  # of a step of ``least_cost_bound``, relative to the diameter of the choice probabilities; an estimate
MAX_QUICK_PART_ITEMS = 10  # there; a table of such a part takes less than a millisecond
NEXT_SIZE_FACTOR = 5.0  # times as long as before, at most, for parts of the next size
MIN_RISE, MIN_RISE_OF_ONE_PART = 2e-3, 1e-5  # relative: what a pass must add to the bound for another one of that size
CLIMB_PASSES = 10  # over all multipliers, between two searches for cuts (benchmarks/proofs.py)
MAX_IDLE_CLIMBS = 8  # times that a cut may have no multiplier before it is forgotten (benchmarks/proofs.py)


@dataclass(frozen=True)
class Cut:
    """<``normal``, x at the coordinates ``where``> >= ``least`` for every model x.

    ``depth`` is how far it cuts off the point it was made for.
    """

    where: Codes
    normal: Vec
    least: float
    depth: float = 0.0


class CutPool:
    """Cuts <normal, x> >= least that hold for every model x, and the lower bound that they prove.

    Hildreth's method finds the point nearest to the data that satisfies all cuts. Its ``multipliers`` prove a bound at
    any time: with Y the sum of normals times multipliers and h that of the least values, no model is nearer to the data
    p than (h - <Y, p>) / |Y|, in the dual of the weighted norm. ``weights`` has one number > 0 per offer; internally,
    coordinates are multiplied by it, so that the norm is Euclidean.

    >>> pool = CutPool(Assortments([("tea", "pie"), ("pie", "tea")]), np.array([0.9, 0.1, 0.6, 0.4]), np.ones(2))
    >>> pool.add(Cut(np.array([0, 2]), np.array([-1.0, -1.0]), -1.0))   # tea here and pie there exclude each other
    >>> pool.climb(20)
    >>> round(pool.bound(), 6), pool.point.round(3)
    (0.5, array([0.65, 0.35, 0.35, 0.65]))
    """

    def __init__(self, assortments: Assortments, data: Vec, weights: Vec) -> None:
        self.assortments, self._weights = assortments, weights
        self._scale: Vec = weights[assortments.owner]
        self._data: Vec = data * self._scale
        self._levels: Vec = np.zeros(assortments.n_offers)
        self._lifts: Vec = np.zeros(data.size)
        self._within: Vec = self._data.copy()
        self._where: list[Codes] = []
        self._values: list[Vec] = []
        self._right: list[float] = []
        self.multipliers: Vec = np.zeros(0)
        self._idle: Codes = np.zeros(0, dtype=np.int64)
        self._rows: CutRows | None = None

    def __len__(self) -> int:
        return len(self._right)

    @property
    def point(self) -> Vec:
        """The point of the current multipliers: at their optimum, the nearest one that satisfies all cuts."""
        return self._within / self._scale

    def distance(self) -> float:
        """Return the distance of the point from the data: the limit of the bound without more cuts."""
        return float(np.linalg.norm(self._within - self._data))

    def misfits(self) -> Vec:
        """Return how far the point is from the data in each offer; equal numbers while it is still the data."""
        apart = np.sqrt(np.add.reduceat((self._within - self._data) ** 2, self.assortments.indptr[:-1]))
        return apart + (0.1 * float(apart.mean()) or 1.0)

    def retarget(self, data: Vec) -> None:
        """Take other data, with the same cuts and multipliers."""
        moved = data * self._scale
        self._within, self._data = self._within + moved - self._data, moved

    def add(self, cut: Cut) -> None:
        """Add a cut, unless its normal is zero."""
        # rows are scaled to about 1: very different lengths would lose digits
        size = float(np.abs(cut.normal).max(initial=0.0))
        if size > 0.0 and np.isfinite(cut.least):
            self._where.append(cut.where)
            self._values.append(-cut.normal / size / self._scale[cut.where])
            self._right.append(-cut.least / size)
            self._rows = None

    def _cut_rows(self) -> CutRows:
        if self._rows is None:
            ptr = np.concatenate([[0], np.cumsum([where.size for where in self._where])]).astype(np.int64)
            where = np.concatenate([*self._where, np.zeros(0, dtype=np.int64)])
            value = np.concatenate([*self._values, np.zeros(0)])
            square = np.array([float(value @ value) for value in self._values])
            fresh = len(self) - self.multipliers.size
            self.multipliers = np.concatenate([self.multipliers, np.zeros(fresh)])
            self._idle = np.concatenate([self._idle, np.zeros(fresh, dtype=np.int64)])
            self._rows = CutRows(ptr, where, value, np.array(self._right), square)
        return self._rows

    def climb(self, passes: int, between: int = 4) -> None:
        """Make passes of Hildreth's method over all cuts, each followed by some over cuts with a multiplier."""
        rows = self._cut_rows()
        simplices = self.assortments.indptr, self._weights, self._levels, self._lifts
        pool_kernels.climb(rows, self.multipliers, *simplices, self._within, passes, between)
        self._idle = np.where(self.multipliers > 0.0, 0, self._idle + 1)

    def forget(self) -> None:
        """Drop cuts without a multiplier for a while: they contribute nothing."""
        self._cut_rows()
        kept = np.flatnonzero((self._idle < MAX_IDLE_CLIMBS) | (self.multipliers > 0.0)).tolist()
        if len(kept) < len(self):
            self._where = [self._where[k] for k in kept]
            self._values = [self._values[k] for k in kept]
            self._right = [self._right[k] for k in kept]
            self.multipliers, self._idle = self.multipliers[kept], self._idle[kept]
            self._rows = None

    def _combined(self) -> tuple[Vec, float, float]:
        """Return the sum Y of all normals times their multipliers, as <Y, x> <= right, and a margin for rounding."""
        rows = self._cut_rows()
        terms = np.repeat(self.multipliers, np.diff(rows.ptr)) * rows.value
        total: Vec = np.bincount(rows.where, terms, self._data.size).astype(np.float64, copy=False)
        right = float(self.multipliers @ rows.right)
        size = float(self.multipliers @ np.abs(rows.right) + np.abs(terms).sum())
        pulls = self._levels[self.assortments.owner] - self._lifts
        total += pulls
        largest = np.maximum.reduceat(pulls, self.assortments.indptr[:-1])
        right += float(largest @ self._weights)
        size += float(np.abs(pulls) @ self._scale) + float(np.abs(total) @ np.abs(self._data))
        return total, right, ROUNDING * (self._data.size + len(self)) * size

    def bound(self) -> float:
        """Return the bound of the multipliers, minus a margin for rounding; never below 0."""
        total, right, rounding = self._combined()
        norm = float(np.linalg.norm(total))
        if norm == 0.0:
            return 0.0
        return max(0.0, (float(total @ self._data) - right - rounding) / (norm * (1.0 + ROUNDING * self._data.size)))

    def normal(self) -> Vec:
        """Return the normal of the combined cut, whose depth is the bound."""
        return -self._combined()[0] * self._scale

    def least_cost(self, costs: Vec) -> float:
        """Return a lower bound on the costs of any model, for weights of 1: what the combined cut leaves of them."""
        total, right, rounding = self._combined()
        left = costs + total
        rounding += ROUNDING * left.size * float(np.abs(left).sum())
        return float(np.minimum.reduceat(left, self.assortments.indptr[:-1]).sum()) - right - rounding


def empty_tables(items: int) -> Tables:
    """Allocate tables for the dynamic program of parts of so many items, for one thread at a time."""
    return Tables(np.zeros((items, 2**items // 2)), np.zeros(2**items), np.zeros(2**items))


class ItemParts:
    """Cuts from parts of the items, for problems with too many items for one table.

    In a part, an offer keeps its items inside the part and no-choice. The share of such an item is at most the
    probability that it is ranked before the others in the part, because an item outside may be chosen instead. So cuts
    from parts are valid. ``squares`` are the squared weights of the offers.

    >>> offers = Assortments([("tea", "cake"), ("cake", "pie", "ink"), ("tea", "pie", "ink")])
    >>> parts, shares = ItemParts(offers, np.ones(3)), np.array([0.9, 0.1, 0.8, 0.1, 0.1, 0.1, 0.9, 0.0])
    >>> chosen = parts.around([0], 3, np.ones(3), np.ones(4))
    >>> [offers.items[item] for item in chosen]
    ['tea', 'cake', 'pie']
    >>> cut = parts.separate(chosen, shares, empty_tables(3))     # at most two of tea > cake > pie > tea can hold
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
        """Grow a part of up to ``size`` items that share offers of large ``mass``; ``likes`` weights the items."""
        chosen = np.zeros(size, dtype=np.int64)
        first = [item for item in centre if item != self._none][:size]
        chosen[: len(first)] = first
        likes = likes.copy()
        if self._none >= 0:
            likes[self._none] = 0.0
        offers = self.assortments
        lists = offers.indptr, offers.members, self._item_ptr, self._item_offers
        count = part_kernels.grow_part(chosen, len(first), *lists, mass, likes)
        return sorted(chosen[:count].tolist())

    def events(self, chosen: list[int], point: Vec) -> Events:
        """Return the events of a part whose shares are not implied by others at this point."""
        offers = self.assortments
        local = np.full(offers.n_items, -2, dtype=np.int64)
        local[chosen] = np.arange(len(chosen))
        if self._none >= 0:
            local[self._none] = -1
        events = np.empty((offers.n_coordinates, 3), dtype=np.int64)
        alone = int(self._none >= 0)
        count = part_kernels.collect_events(local, offers.indptr, offers.members, point, MIN_SHARE, alone, events)
        events = events[:count]
        order = np.lexsort((-events[:, 1], -point[events[:, 2]]))
        numbers = np.empty(count, dtype=np.int64)
        strongest = np.sort(numbers[: part_kernels.keep_strongest(events, order, numbers)])
        item, inside, where = np.ascontiguousarray(events[strongest].T)
        return Events(len(chosen), item, inside, where)

    def separate(self, chosen: list[int], point: Vec, tables: Tables, shallow: float = 1e-6) -> Cut | None:
        """Return nearly the deepest cut of a part at a point; None if there is none deeper than ``shallow``.

        The point is projected onto the polytope of the part's rankings. The dynamic program computes the maximum of
        any direction on the way, so the cut is valid however far the projection gets.
        """
        events = self.events(chosen, point)
        if not events.where.size or not events.n_items:
            return None
        aim = point[events.where]
        squares = self._squares[self.assortments.owner[events.where]]
        corral = empty_corral(np.append(squares, 1.0), MAX_CORNERS)  # with the slot that all corners share
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
        used = np.flatnonzero(gains)
        return Cut(events.where[used], -gains[used], -most, depth)


class PartRounds:
    """Batches of parts around the offers: small parts first, larger ones when small ones add next to nothing.

    A pass uses every offer as a centre, worst fit first, and draws the other items at random. ``finished`` is set when
    parts of the largest size add next to nothing.

    >>> offers = Assortments([("a", "b"), ("b", "c"), ("c", "a")])
    >>> rounds = PartRounds(offers, np.ones(3), items=12)
    >>> shares = np.array([0.9, 0.1, 0.9, 0.1, 0.9, 0.1])
    >>> [cut.where.tolist() for cut in rounds.cuts(shares, np.ones(3), bound=0.0) or []]
    [[0, 2, 4]]
    """

    def __init__(self, assortments: Assortments, squares: Vec, items: int) -> None:
        self.assortments = assortments
        offered = np.unique(assortments.members).size - (assortments.no_choice_code is not None)
        self._all = offered
        self._largest = min(items, offered)
        self.size = min(offered if offered <= min(MAX_ITEMS_IN_ONE_PART, items) else MIN_PART_ITEMS, self._largest)
        self.finished = self.size < 1
        self._parts = ItemParts(assortments, squares)
        self._tables: SimpleQueue[Tables] = SimpleQueue()
        self._random = np.random.default_rng(0)
        self._left: list[int] = []
        self._marked: float | None = None
        self._stale = 0
        self._part_seconds = 0.0  # of the slowest part so far

    def cuts(self, point: Vec, mass: Vec, bound: float, until: float = np.inf) -> list[Cut] | None:
        """Return the cuts of the next batch that a point violates; None if there is no time left (``perf_counter``).

        ``mass`` is the misfit of every offer, ``bound`` the lower bound so far.
        """
        shallow = max(MIN_DEPTH, MIN_RELATIVE_DEPTH * bound)
        if not self._left:
            self._next_pass(mass, bound)
        if self.finished:
            return []
        if perf_counter() + self._part_seconds > until:
            return None
        count = max(MIN_BATCH_PARTS, BATCH_PARTS >> max(0, (self.size - MIN_PART_ITEMS) // PART_ITEMS_STEP))
        batch, self._left = self._left[:count], self._left[count:]
        chosen = [self._items_around(offer, mass) for offer in batch]
        cuts: list[Cut | None] = [None] * len(batch)

        def work(task: int) -> None:
            began = perf_counter()
            if began + self._part_seconds > until:
                return
            try:
                tables = self._tables.get_nowait()
            except Empty:
                tables = empty_tables(self.size)
            cuts[task] = self._parts.separate(chosen[task], point, tables, shallow)
            self._tables.put(tables)
            self._part_seconds = max(self._part_seconds, perf_counter() - began)

        with crew(len(batch) > 1) as threads:
            threads.run(work, len(batch))
        return [cut for cut in cuts if cut is not None]

    def _next_pass(self, mass: Vec, bound: float) -> None:
        """Start a pass over all offers, with larger parts if the last pass added next to nothing."""
        alone = self.size >= self._all  # connected items are one part, the same whatever the centre
        if self._marked is not None and bound <= self._marked * (1.0 + (MIN_RISE_OF_ONE_PART if alone else MIN_RISE)):
            self._stale += self.size >= self._largest
            self.finished = self._stale >= MAX_STALE_PASSES
            if self.size < self._largest:
                self.size = min(self.size + PART_ITEMS_STEP, self._largest)
                self._tables, self._part_seconds = SimpleQueue(), self._part_seconds * NEXT_SIZE_FACTOR
        else:
            self._stale = 0
        self._marked = bound
        order: Codes = np.argsort(-mass, kind="stable")
        self._left = order.tolist() if self.size < self._all else self._apart(order, mass)

    def _apart(self, order: Codes, mass: Vec) -> list[int]:
        """Return the first offer of each group without common items, whose parts are the same whatever the centre."""
        offers, left, known = self.assortments, list[int](), set[int]()
        for offer in order.tolist():
            if known.isdisjoint(offers.members[offers.indptr[offer] : offers.indptr[offer + 1]].tolist()):
                left.append(offer)
                known.update(self._items_around(offer, mass))
        return left

    def _items_around(self, offer: int, mass: Vec) -> list[int]:
        """Return the items of a part around an offer, or around some items of a large one."""
        offers = self.assortments
        centre = self._random.permutation(offers.members[offers.indptr[offer] : offers.indptr[offer + 1]])
        likes = self._random.uniform(0.5, 1.5, offers.n_items)
        return self._parts.around(centre.tolist(), self.size, mass, likes)


def least_cost_bound(assortments: Assortments, costs: Vec, rounds: int) -> float:
    """Return a lower bound on the cost of any ranking, which is the same whatever was asked before.

    Without rounds, every offer takes its cheapest item. A round adds the cuts of a batch of parts that the current
    point violates. Points follow the proximal method: each is the nearest one that satisfies all cuts to the last one
    minus the scaled costs. The multipliers of the cuts prove a bound at any time. It holds for all rankings, and so for
    those that respect an order.

    >>> offers = Assortments([("tea", "pie"), ("pie", "ink"), ("ink", "tea")])
    >>> [round(least_cost_bound(offers, np.array([-1.0, 0.0] * 3), rounds), 3) for rounds in (0, 2)]
    [-3.0, -2.0]
    """
    starts, norm = assortments.indptr[:-1], float(np.linalg.norm(costs))
    best = float(np.minimum.reduceat(costs, starts).sum())
    if norm == 0.0:
        return best
    scale = REACH * np.sqrt(assortments.n_offers) / norm
    aim, ones = costs * scale, np.ones(assortments.n_offers)
    point: Vec = (1.0 / np.diff(assortments.indptr))[assortments.owner]
    pool, parts = CutPool(assortments, point - aim, ones), PartRounds(assortments, ones, MAX_QUICK_PART_ITEMS)
    for _ in range(rounds):
        for cut in parts.cuts(pool.point, pool.misfits(), pool.bound()) or []:
            pool.add(cut)
        pool.climb(CLIMB_PASSES)
        pool.forget()
        best = max(best, float(pool.least_cost(aim) / scale))
        if parts.finished:
            break
        pool.retarget(pool.point - aim)
    return best
