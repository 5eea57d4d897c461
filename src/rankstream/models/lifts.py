"""Rankings that respect an order, made of any rankings: before every item comes what must come before it.

A ranking of items at price levels that puts a dear level of an item first is *lifted* by putting the cheaper levels in
front of it. So every law over rankings becomes one over rankings that respect chains, and nothing of it has to be
summed again: from an offer, the lifted ranking chooses from the chain whose item comes first, in the ranking as it was,
among the offered items and all that must come after them. These are the *closed* offer. A Plackett-Luce law, lifted,
predicts like a logit in which a level is worth what it and the dearer levels of its item are worth together: one whose
demand falls with the price.
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
    """Offers with all items that must come after one of theirs.

    ``of[k]`` is the coordinate, among those of the offers as they were, that is chosen when the k-th member comes first
    of its closed offer. Coordinates of items that a cheaper level of the same offer always beats are not among them.
    """

    indptr: Codes
    members: Codes
    owner: Codes
    of: Codes

    def gather(self, shares: Vec, size: int) -> Vec:
        """Numbers of the closed offers' members, summed over what they choose among ``size`` coordinates."""
        return np.bincount(self.of, shares, minlength=size).astype(np.float64)


def chains_of(offers: Assortments) -> Chains:
    """The chains of the order as codes, best first; a ValueError where the order is not made of chains."""
    if offers.chains is None:
        raise ValueError("Maximum entropy needs an order made of chains, one item after another: use 'nearest'.")
    return tuple(tuple(chain.tolist()) for chain in offers.chains)


def closed_offers(indptr: Codes, members: Codes, chains: Chains) -> ClosedOffers:
    """The closed offers, whose members follow the chains.

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
    """Rankings, one per row, with every item of a chain preceded by those before it; else as they are.

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
        # as soon as any of those behind it
        places[:, codes] = np.minimum.accumulate(places[:, codes[::-1]], axis=1)[:, ::-1]
        turn[codes] = np.arange(codes.size)
    return np.argsort(places * (size + 1) + turn, axis=1)


def tail_sums(values: Vec, chains: Chains) -> Vec:
    """For every item (the last axis) the sum over it and those after it in its chain."""
    sums: Vec = np.array(values, dtype=np.float64)
    for chain in chains:
        sums[..., chain] = np.cumsum(sums[..., chain[::-1]], axis=-1)[..., ::-1]
    return sums


def steps_down(values: Vec, chains: Chains) -> Vec:
    """What an item is worth more than the next one of its chain, at least 0: the inverse of ``tail_sums``."""
    steps: Vec = np.array(values, dtype=np.float64)
    for chain in chains:
        steps[..., chain[:-1]] -= steps[..., chain[1:]]
    return np.maximum(steps, 0.0)


def pairs_of(chains: Chains, items: Sequence[Label]) -> Pairs:
    """The neighbours of chains of codes as pairs of labels, as ``Assortments`` takes them."""
    return tuple((items[a], items[b]) for chain in chains for a, b in pairwise(chain))


def frozen(codes: ArrayLike) -> Codes:
    """An array that cannot be written to, as those of Assortments: kernels are compiled anew for any other kind."""
    array = np.ascontiguousarray(codes, dtype=np.int64)
    array.flags.writeable = False
    return array
