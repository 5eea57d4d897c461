"""Precedence: a partial order of the items that rankings must respect, such as cheaper price levels first."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.types import Codes, Label, Mask

Order = Iterable[tuple[Label, Label]]
Pairs = tuple[tuple[Label, Label], ...]
NO_ORDER: Mask = np.zeros((0, 0), dtype=np.bool_)
NO_PAIRS: Codes = np.zeros((0, 2), dtype=np.int64)
NO_PAIRS.flags.writeable = False


@dataclass(frozen=True, eq=False)
class Precedence:
    """A partial order of item codes: item a must come before b where ``above[a, b]``; ``pairs`` are its neighbours.

    ``sequence`` is a list of all items that respects the order. Rankings that do are called admissible. Without any
    pair, ``above`` is empty.
    """

    above: Mask
    sequence: Codes

    @cached_property
    def pairs(self) -> Codes:
        """The neighbours, one row each, ascending: a comes before b, and nothing has to come between."""
        return neighbours(self.above) if self.above.size else NO_PAIRS

    @cached_property
    def chains(self) -> tuple[Codes, ...] | None:
        """The items of each chain, best first, if any two connected items are comparable; else None."""
        firsts, seconds = (set(column) for column in self.pairs.T.tolist())
        if len(firsts) < len(self.pairs) or len(seconds) < len(self.pairs):
            return None  # an item has two successors or two predecessors
        following = dict(self.pairs.tolist())
        chains = []
        for first in sorted(firsts - seconds):
            chain = [first]
            while chain[-1] in following:
                chain.append(following[chain[-1]])
            chains.append(np.array(chain, dtype=np.int64))
        return tuple(chains)

    @cached_property
    def _before(self) -> list[list[int]]:
        """For every item the ones that must come before it, in an admissible sequence."""
        place = np.argsort(self.sequence)
        return [sorted(np.flatnonzero(column).tolist(), key=place.__getitem__) for column in self.above.T]

    def wider(self, n_items: int) -> "Precedence":
        """Return the same order for more items; the new ones are unordered.

        >>> precedence({"a": 0, "b": 1}, [("b", "a")]).wider(3).sequence.tolist()
        [1, 0, 2]
        """
        more = n_items - self.sequence.size
        if not more:
            return self
        above, sequence = np.pad(self.above, (0, more)), np.append(self.sequence, np.arange(n_items - more, n_items))
        for array in (above, sequence):
            array.flags.writeable = False
        return Precedence(above, sequence)

    def lift(self, ranking: Iterable[int]) -> Codes:
        """Make a ranking admissible: move the items that must precede an item directly before it.

        The choices stay the same if no moved item wins an offer at its new place.
        """
        lifted: dict[int, None] = {}
        for item in ranking:
            lifted.update(dict.fromkeys(self._before[item]))
            lifted[item] = None
        return np.array(list(lifted), dtype=np.int64)

    def settle(self, rankings: Codes, n_old: int) -> Codes:
        """Make rankings admissible: the first ``n_old`` items keep their sequence, others stay near their place.

        Among themselves, the old items must respect the order already.
        """
        settled = []
        for ranking in rankings.tolist():
            old = [item for item in ranking if item < n_old]
            place = {item: at for at, item in enumerate(ranking)}
            before = {item: set(self._before[item]) for item in ranking}
            for first, second in pairwise(old):
                before[second].add(first)
            order: dict[int, None] = {}
            while before:
                ready = [item for item, needed in before.items() if needed <= order.keys()]
                item = min(ready, key=place.__getitem__)
                del before[item]
                order[item] = None
            settled.append(list(order))
        return np.array(settled, dtype=np.int64).reshape(rankings.shape)

    def respects(self, orders: ArrayLike) -> Mask:
        """Return which rankings (rows of codes) are admissible.

        >>> order = precedence({"a": 0, "b": 1, "c": 2}, [("a", "c")])
        >>> order.respects([[1, 0, 2], [2, 1, 0]])
        array([ True, False])
        """
        places = np.argsort(np.atleast_2d(np.asarray(orders, dtype=np.int64)), axis=1)
        respected: Mask = np.logical_and.reduce(places[:, self.pairs[:, 0]] < places[:, self.pairs[:, 1]], axis=1)
        return respected

    def check(self, orders: Codes) -> None:
        """Raise a ValueError if a ranking (a row of codes) is not admissible."""
        if self.above.size and orders.size and not self.respects(orders).all():
            wrong = orders[int(np.argmin(self.respects(orders)))].tolist()
            raise ValueError(f"The ranking {wrong} violates the order: use an oracle that keeps it (oracles.auto).")

    def among(self, codes: Codes) -> list[list[int]]:
        """Return the neighbours of the order restricted to some of the items."""
        return codes[neighbours(self.above[np.ix_(codes, codes)])].tolist() if self.above.size else []

    def closed(self, members: Iterable[int]) -> list[int]:
        """Return the items and all that must come after any of them, ascending."""
        items = list(members)
        return sorted({*items, *np.flatnonzero(self.above[items].any(axis=0)).tolist()})

    def best(self, members: Iterable[int]) -> list[int]:
        """Return the items that no other of them must precede: only these can be chosen from an offer of all."""
        items = list(members)
        return [item for item in items if not self.above[items, item].any()]


def precedence(code: Mapping[Label, int], order: Order) -> Precedence:
    """Return the partial order of item codes that pairs of labels generate; a cycle is a ValueError.

    >>> order = precedence({"a": 0, "b": 1, "c": 2}, [("c", "b"), ("b", "a"), ("c", "a")])
    >>> order.pairs.tolist(), order.chains
    ([[1, 0], [2, 1]], (array([2, 1, 0]),))
    """
    after: list[set[int]] = [set() for _ in code]
    for first, second in check_pairs(order):
        for item in (first, second):
            if item not in code:
                raise ValueError(f"The order names {item!r}, which is not among the items: add it.")
        after[code[first]].add(code[second])
    sequence = _topological_order(after, list(code))
    size = len(after) if any(after) else 0
    above = np.zeros((size, size), dtype=np.bool_)
    for item in reversed(sequence):
        for later in after[item]:
            above[item] |= above[later]
            above[item, later] = True
    codes = np.array(sequence, dtype=np.int64)
    for array in (above, codes):
        array.flags.writeable = False
    return Precedence(above, codes)


def neighbours(above: Mask) -> Codes:
    """Return the pairs of a transitive order that have no item between them, ascending."""
    used = np.flatnonzero(above.any(axis=0) | above.any(axis=1))
    part = above[np.ix_(used, used)].astype(np.float32)
    pairs = np.argwhere((part > 0.0) & (part @ part == 0.0))
    codes: Codes = np.ascontiguousarray(used[pairs], dtype=np.int64).reshape(-1, 2)
    codes.flags.writeable = False
    return codes


def check_pairs(order: Any) -> list[tuple[Label, Label]]:
    """Return the pairs of an order as tuples of two different labels, or raise a ValueError."""
    if isinstance(order, str) or not isinstance(order, Iterable):
        raise ValueError(f"The order is {order!r}: give pairs of items, such as [('tea @ 3.00', 'tea @ 3.50')].")
    pairs = []
    for pair in order:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise ValueError(f"The order contains {pair!r}: give pairs of items, the better one first.")
        if pair[0] == pair[1]:
            raise ValueError(f"The order puts {pair[0]!r} before itself: use two different items in every pair.")
        pairs.append((pair[0], pair[1]))
    return pairs


def same_order(first: Mask, second: Mask, size: int) -> bool:
    """Return whether two orders, each empty or of ``size`` items or more, agree on the first ``size`` items."""
    free = np.zeros((size, size), dtype=np.bool_)
    one, two = (above[:size, :size] if above.size else free for above in (first, second))
    return np.array_equal(one, two)


def refuse_order(order: Pairs, name: str, instead: str) -> None:
    """Raise a ValueError if there is an order, for methods without support for one; ``instead`` is the remedy."""
    if order:
        low, high = order[0]
        raise ValueError(f"{name} does not support an order of the items, such as {low!r} before {high!r}: {instead}.")


def _topological_order(after: list[set[int]], labels: list[Label]) -> list[int]:
    """Return all items in a sequence that respects the pairs, small codes first; a cycle is a ValueError."""
    sorter = TopologicalSorter(dict.fromkeys(range(len(after)), ()))
    for item, successors in enumerate(after):
        for successor in successors:
            sorter.add(successor, item)
    try:
        sorter.prepare()
    except CycleError as error:
        circle = " before ".join(repr(labels[item]) for item in error.args[1])
        raise ValueError(f"The order has a cycle, {circle}: remove one of these pairs.") from None
    sequence, ready = list[int](), list[int]()
    while sorter.is_active():
        ready += sorted(sorter.get_ready(), reverse=True)
        sequence.append(ready.pop())
        sorter.done(sequence[-1])
    return sequence
