"""Which parts and groups are looked into, in what order, and by how many threads."""

from queue import Empty, SimpleQueue
from time import perf_counter

import numpy as np

from rankstream._core.threads import crew
from rankstream._core.types import Codes, Vec
from rankstream.data.assortments import Assortments
from rankstream.oracles.bounds.cuts import Cut, GroupCuts
from rankstream.oracles.bounds.part_kernels import Tables
from rankstream.oracles.bounds.parts import ItemParts, empty_tables

# tuned on other seeds than those of benchmarks/proofs.py
MIN_PART_ITEMS, PART_ITEMS_STEP = 8, 2  # items of the first parts, and how many more the later ones have
MAX_ITEMS_IN_ONE_PART = 16  # items of which all are one part from the beginning
MAX_STALE_PASSES = 3  # passes with parts of the largest size that add next to nothing
BATCH_PARTS, MIN_BATCH_PARTS = 32, 4  # parts in a batch: of the smallest size, and of large ones
MIN_RELATIVE_DEPTH, MIN_DEPTH = 1e-3, 1e-5  # cuts of less depth, relative to the bound and at all, are left out
MAX_GROUPED_OFFERS, GROUPING_SECONDS = 1000, 1e-3  # groups need so few offers, and so many seconds per coordinate
NEXT_SIZE_FACTOR = 5.0  # times as long as before, at most, for parts of the next size
MIN_RISE, MIN_RISE_OF_ONE_PART = 2e-3, 1e-5  # relative: what a pass must add to the bound for another one of that size


class PartRounds:
    """Batches of parts around the offers: small ones first, larger ones once small ones add next to nothing.

    A pass takes every offer as a centre, those first whose data are hardest to meet; what else is in a part is drawn
    anew every time. It begins with groups of whole offers, where these do not take long to make. ``finished`` says that
    parts of the largest size have added next to nothing.

    >>> offers = Assortments([("a", "b"), ("b", "c"), ("c", "a")])
    >>> rounds = PartRounds(offers, np.ones(3), items=12)
    >>> shares = np.array([0.9, 0.1, 0.9, 0.1, 0.9, 0.1])
    >>> [cut.where.tolist() for cut in rounds.cuts(shares, np.ones(3), bound=0.0) or []]
    [[0, 1, 2, 3, 4, 5]]
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
        self._groups: GroupCuts | None = None
        self._stale = 0
        self._takes = 0.0  # the most seconds of a part so far

    def cuts(self, point: Vec, mass: Vec, bound: float, until: float = np.inf) -> list[Cut] | None:
        """The cuts of the next batch that a point is beyond; None if there is no time for any, by ``perf_counter``.

        ``mass`` says how hard the data of every offer are to meet, ``bound`` what has been proven so far.
        """
        shallow = max(MIN_DEPTH, MIN_RELATIVE_DEPTH * bound)
        if not self._left:
            self._next_pass(mass, bound)
            if not self.finished and self._may_group(until):
                return self._groups_cuts(point, MIN_DEPTH)
        if self.finished:
            return []
        if perf_counter() + self._takes > until:
            return None
        count = max(MIN_BATCH_PARTS, BATCH_PARTS >> max(0, (self.size - MIN_PART_ITEMS) // PART_ITEMS_STEP))
        batch, self._left = self._left[:count], self._left[count:]
        chosen = [self._chosen(offer, mass) for offer in batch]
        found: list[Cut | None] = [None] * len(batch)

        def work(task: int) -> None:
            began = perf_counter()
            if began + self._takes > until:
                return
            try:
                tables = self._tables.get_nowait()
            except Empty:
                tables = empty_tables(self.size)
            found[task] = self._parts.separate(chosen[task], point, tables, shallow)
            self._tables.put(tables)
            self._takes = max(self._takes, perf_counter() - began)

        with crew(len(batch) > 1) as threads:
            threads.run(work, len(batch))
        return [cut for cut in found if cut is not None]

    def _may_group(self, until: float) -> bool:
        """Whether groups of offers are made, and soon enough: that takes a small part of the time, or nothing."""
        if self._groups is not None:
            return True
        few = self.assortments.n_offers <= MAX_GROUPED_OFFERS
        return few and until - perf_counter() > GROUPING_SECONDS * self.assortments.n_coordinates

    def _groups_cuts(self, point: Vec, shallow: float) -> list[Cut]:
        """The cuts of groups of offers: at the beginning of every pass."""
        if self._groups is None:
            self._groups = GroupCuts(self.assortments)
        return self._groups.violated(point, shallow)

    def _next_pass(self, mass: Vec, bound: float) -> None:
        """All offers as centres again, and larger parts if the last pass has added next to nothing."""
        alone = self.size >= self._all  # all items are one part, the same whatever the centre
        if self._marked is not None and bound <= self._marked * (1.0 + (MIN_RISE_OF_ONE_PART if alone else MIN_RISE)):
            self._stale += self.size >= self._largest
            self.finished = self._stale >= MAX_STALE_PASSES
            if self.size < self._largest:
                self.size = min(self.size + PART_ITEMS_STEP, self._largest)
                self._tables, self._takes = SimpleQueue(), self._takes * NEXT_SIZE_FACTOR
        else:
            self._stale = 0
        self._marked = bound
        order: Codes = np.argsort(-mass, kind="stable")
        self._left = order[: 1 if self.size >= self._all else None].tolist()

    def _chosen(self, offer: int, mass: Vec) -> list[int]:
        """The items of a part around an offer, or around some items of a large one."""
        offers = self.assortments
        centre = self._random.permutation(offers.members[offers.indptr[offer] : offers.indptr[offer + 1]])
        likes = self._random.uniform(0.5, 1.5, offers.n_items)
        return self._parts.around(centre.tolist(), self.size, mass, likes)
