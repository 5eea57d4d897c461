"""Lifting: turn any ranking into one that respects an order, such as that of price levels.

A ranking that puts a dear level of an item first is *lifted* by putting the cheaper levels in front of it. So every law
over rankings becomes one over rankings that respect chains, and its probabilities follow directly: the *closed* offer
has the offered items and all that must come after them, and the lifted ranking chooses from the chain whose item comes
first there. A lifted Plackett-Luce law predicts like a logit in which the worth of a level is the sum over it and the
dearer levels of its item: demand falls with the price.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.types import Codes, Label, Vec
from rankstream.data.assortments import Assortments
from rankstream.data.order import Pairs

Chains = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class ClosedOffers:
    """Offers, each with all items that must come after one of its own.

    ``of[k]`` is the coordinate of the original offers that is chosen if the k-th member comes first in its closed
    offer. Items that a cheaper level of the same offer always beats have none.
    """

    indptr: Codes
    members: Codes
    owner: Codes
    of: Codes

    def gather(self, shares: Vec, size: int) -> Vec:
        """Sum numbers of the closed offers' members by the coordinate (of ``size``) that they choose."""
        return np.bincount(self.of, shares, minlength=size).astype(np.float64)


def chains_of(offers: Assortments) -> Chains:
    """Return the chains of the order as codes, best first; raise a ValueError for other orders."""
    if offers.chains is None:
        raise ValueError("Maximum entropy needs an order made of chains, one item after another: use 'nearest'.")
    return tuple(tuple(chain.tolist()) for chain in offers.chains)


def closed_offers(indptr: Codes, members: Codes, chains: Chains) -> ClosedOffers:
    """Return the closed offers, whose members follow the chains.

    >>> offers = Assortments([("tea @ 3", "no"), ("tea @ 4", "no")], order=[("tea @ 3", "tea @ 4")])
    >>> closed = closed_offers(offers.indptr, offers.members, chains_of(offers))
    >>> closed.members.tolist(), closed.of.tolist()
    ([0, 2, 1, 2, 1], [0, 0, 1, 2, 3])
    """
    tail = {item: chain[place:] for chain in chains for place, item in enumerate(chain)}
    first = {item: chain[0] for chain in chains for item in chain}
    codes: list[int] = []
    where: list[int] = []
    sizes: list[int] = []
    for start, stop in pairwise(indptr.tolist()):
        best: dict[int, tuple[tuple[int, ...], int]] = {}
        for k in range(start, stop):
            item = int(members[k])
            after, chain = tail.get(item, (item,)), first.get(item, item)
            if chain not in best or len(after) > len(best[chain][0]):
                best[chain] = after, k
        for after, k in best.values():
            codes += after
            where += [k] * len(after)
        sizes.append(len(codes))
    ends, owner = np.array([0, *sizes]), np.repeat(np.arange(len(sizes)), np.diff([0, *sizes]))
    return ClosedOffers(frozen(ends), frozen(codes), frozen(owner), frozen(where))


def lift(orders: Codes, chains: Chains) -> Codes:
    """Lift rankings, one per row: put the items of a chain in their order, each as early as the ones behind it.

    >>> lift(np.array([[2, 3, 0, 1]]), ((0, 1, 2),)).tolist()
    [[0, 1, 2, 3]]
    """
    if not chains:
        return orders
    size = orders.shape[1]
    places = np.argsort(orders, axis=1)
    turn = np.zeros(size, dtype=np.int64)
    for chain in chains:
        codes = np.array(chain, dtype=np.int64)
        # as early as any of those behind it
        places[:, codes] = np.minimum.accumulate(places[:, codes[::-1]], axis=1)[:, ::-1]
        turn[codes] = np.arange(codes.size)
    return np.argsort(places * (size + 1) + turn, axis=1)


def tail_sums(values: Vec, chains: Chains) -> Vec:
    """Return for every item (the last axis) the sum over it and those after it in its chain."""
    sums: Vec = np.array(values, dtype=np.float64)
    for chain in chains:
        sums[..., chain] = np.cumsum(sums[..., chain[::-1]], axis=-1)[..., ::-1]
    return sums


def steps_down(values: Vec, chains: Chains) -> Vec:
    """Return what an item is worth beyond the next one of its chain, at least 0: the inverse of ``tail_sums``."""
    steps: Vec = np.array(values, dtype=np.float64)
    for chain in chains:
        steps[..., chain[:-1]] -= steps[..., chain[1:]]
    return np.maximum(steps, 0.0)


def pairs_of(chains: Chains, items: Sequence[Label]) -> Pairs:
    """Return the neighbours in chains of codes as pairs of labels, for ``Assortments``."""
    return tuple((items[a], items[b]) for chain in chains for a, b in pairwise(chain))


def frozen(codes: ArrayLike) -> Codes:
    """Return a read-only array, like those of Assortments: another kind would compile the kernels again."""
    array = np.ascontiguousarray(codes, dtype=np.int64)
    array.flags.writeable = False
    return array
