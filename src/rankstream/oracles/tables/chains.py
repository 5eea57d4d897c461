"""The exact oracle for chains, such as price levels: a table with one number per combination of progress."""

from math import prod
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core import Bits, Codes, Mask, Vec, number_between
from rankstream.data.assortments import Assortments
from rankstream.oracles.protocol import Answer, TableOracle, Ties, finite_costs
from rankstream.oracles.reductions import Reduced, reduce
from rankstream.oracles.tables import chain_kernels
from rankstream.oracles.tables.chain_kernels import Chains
from rankstream.oracles.walk_kernels import WalkTable

MAX_BLOCK_STATES = 128  # the most states of a block (benchmarks/prices.py times chains)
MAX_STATES = 2**30  # states from which on neither memory nor time will do: 8 GB


class ChainOracle(TableOracle):
    """The dynamic program over progress: a state is the number of unranked levels of every item.

    Levels of an item are ranked cheapest first, so there are prod(levels + 1) states instead of 2**(items * levels).
    Items outside of the order are chains of one; levels that are never chosen are left out. For ``ties`` and ``seed``
    see ``TieRule``; costs tie as in ``DenseOracle``. ``memory`` limits the bytes, 8 per state.

    Examples
    --------
    >>> order = [("tea @ 3.00", "tea @ 4.00")]
    >>> offers = Assortments([("tea @ 3.00", "cake", "nothing"), ("tea @ 4.00", "cake", "nothing")], order=order)
    >>> answer = ChainOracle(offers).cheapest([1.0, 0.0, 0.0, -2.0, 0.5, 0.0])  # tea, but only where it is dear
    >>> [offers.items[code] for code in answer.ranking[:2]], answer.value, answer.exact
    (['tea @ 3.00', 'tea @ 4.00'], -1.0, True)
    """

    def __init__(self, assortments: Assortments, ties: Ties = "random", seed: int = 0, memory: float = 12e9) -> None:
        super().__init__(assortments, ties, seed)
        self.memory = number_between("memory", memory, 0.0)
        self.reduced = reduce(assortments)
        chains = _by_offers(self.reduced, used_chains(self.reduced))
        self.n_states = n_states(chains)
        if 8 * self.n_states > memory or self.n_states > MAX_STATES:
            raise ValueError(
                f"{len(chains)} chains have {self.n_states:,} states of 8 bytes, and {memory:,.0f} bytes may be taken: "
                "use fewer levels, or oracles.auto."
            )
        self._chains = lay_out(self.reduced, chains)
        n_low, block = self._chains.n_low, self._chains.shapes.shape[1]
        n_levels = len(chains) - n_low + 1
        self._work = (
            np.empty((n_levels * len(chains), block)),
            np.zeros((n_levels, len(chains)), dtype=np.int64),
            np.empty(block),
        )
        n_blocks = self.n_states // block
        self._to_go = np.zeros(n_blocks * block + (n_blocks - 1) * chain_kernels.BLOCK_GAP)
        turns = _turns(assortments.n_items, chains)
        self._table = WalkTable(*turns, self._chains.radix, self._chains.stride, self._to_go)
        self._lock = Lock()

    def beginning_with(self, first: list[tuple[int, ...]], costs: ArrayLike) -> list[Answer]:
        """Fill the table once and read the best completion of every beginning from it."""
        vector = finite_costs(self.assortments, costs)
        base = np.where(self.reduced.base_at >= 0, vector[self.reduced.base_at], 0.0)
        # the table has costs above no-choice, without offers that have only one possible choice
        above_end = np.where(self.reduced.entry_at >= 0, vector - base, 0.0)
        with self._lock:  # there is only one table
            self._fill(vector)
            found = self._read(first, vector, above_end, self._table)
        bound = min((value for _, value in found), default=0.0)
        return [Answer(ranking, value, bound) for ranking, value in found]

    def _fill(self, costs: Vec) -> None:
        stop = 0.0 if self._universal >= 0 else np.inf
        if self._chains.radix.size:
            chain_kernels.fill_chains(self.reduced.fold(costs), stop, self._chains, *self._work, self._to_go)

    def explain(self) -> str:
        """Say why this oracle was chosen."""
        chains = self._chains.radix.size
        return f"exact, by {self.n_states:,} states of {chains} chains ({self.reduced.explain()})"

    def __reduce__(self) -> tuple[Any, ...]:
        return ChainOracle, (self.assortments, self.ties, self.seed, self.memory)


def used_chains(reduced: Reduced) -> list[Codes]:
    """Return the chains of the items that can be chosen, best first; items outside of the order are chains of one."""
    offers = reduced.assortments
    if offers.chains is None:
        raise ValueError("The order is not made of chains, one item after another: use oracles.auto.")
    used = np.zeros(offers.n_items, dtype=np.bool_)
    for offer in reduced.offers:
        used[list(offer)] = True
    chains = [chain[used[chain]] for chain in offers.chains]
    used[[item for chain in offers.chains for item in chain.tolist()]] = False
    return [chain for chain in chains if chain.size] + [np.array([item]) for item in np.flatnonzero(used).tolist()]


def n_states(chains: list[Codes]) -> int:
    """Return the number of combinations of progress in all chains."""
    return prod(chain.size + 1 for chain in chains)


def _by_offers(reduced: Reduced, chains: list[Codes]) -> list[Codes]:
    """Sort the chains by their number of offers: rare ones become low digits, so that rows change rarely."""
    counts = np.zeros(reduced.assortments.n_items)
    for offer in reduced.offers:
        counts[list(offer)] += 1.0
    return sorted(chains, key=lambda chain: float(counts[chain].sum()))


def lay_out(reduced: Reduced, chains: list[Codes]) -> Chains:
    """Return the digits, fields and blocks of the chains, and the offers in their order of arrival."""
    radix = np.array([chain.size + 1 for chain in chains], dtype=np.int64)
    stride = np.cumprod(np.append(1, radix))
    n_low = min(max(1, int(np.searchsorted(stride, MAX_BLOCK_STATES, side="right")) - 1), len(chains))
    chain_of, rest = _turns(reduced.assortments.n_items, chains)
    need = np.zeros((len(reduced.offers), len(chains)), dtype=np.int64)
    for j, offer in enumerate(reduced.offers):
        need[j, chain_of[list(offer)]] = rest[list(offer)]
    field, spare, words = _words(radix, need, n_low)
    order, first = _arrivals(need[:, n_low:], int(radix.max(initial=1)))
    starts, nothing = np.cumsum([0, *(len(offer) for offer in reduced.offers)]), np.zeros(0, dtype=np.int64)
    ptr = np.append(0, np.cumsum(np.diff(starts)[order]))
    chain = np.concatenate([nothing, *(chain_of[list(reduced.offers[j])] for j in order)])
    # masks by the low part of an offer's needs: first those of high chains, then those of each low one
    low = np.repeat((need[:, :n_low] @ stride[:n_low])[order], np.diff(ptr))
    size = int(stride[n_low])
    return Chains(
        radix=radix,
        stride=np.append(stride[:n_low], stride[n_low:-1] // size * (size + chain_kernels.BLOCK_GAP)),
        field=field,
        spare=spare,
        n_low=n_low,
        first=first,
        needs=words[order],
        ptr=ptr,
        entry=np.concatenate([nothing, *(np.arange(starts[j], starts[j + 1]) for j in order)]),
        chain=chain,
        shape=low + size * np.where(chain < n_low, chain + 1, 0),
        shapes=_shapes(radix[:n_low], stride[:n_low], size),
    )


def _arrivals(high: Codes, most: int) -> tuple[Codes, Codes]:
    """Sort the offers by the lowest high chain they need (their level) and how much of it; return where parts begin.

    Offers that need no high chain arrive at the last level.
    """
    n_offers, n_high = high.shape
    padded = np.append(high, np.ones((n_offers, 1), dtype=np.int64), axis=1)
    level = (padded > 0).argmax(axis=1)
    digit = np.where(level < n_high, padded[np.arange(n_offers), level], 0)
    order = np.lexsort((digit, level))
    place = level[order] * (most + 1) + digit[order]
    wanted = np.arange(n_high + 1)[:, np.newaxis] * (most + 1) + np.arange(most + 1)
    return order, np.searchsorted(place, wanted)


def _turns(n_items: int, chains: list[Codes]) -> tuple[Codes, Codes]:
    """Return the chain of each item (-1: none), and how much of the chain is left at the item's turn."""
    chain_of, rest = np.full(n_items, -1, dtype=np.int64), np.zeros(n_items, dtype=np.int64)
    for number, chain in enumerate(chains):
        chain_of[chain], rest[chain] = number, np.arange(chain.size, 0, -1)
    return chain_of, rest


def _words(radix: Codes, need: Codes, n_low: int) -> tuple[Bits, np.uint64, Bits]:
    """Return a bit field for each high digit with a spare bit on top, the spare bits, and the offers' packed needs."""
    field, spare, at = [0] * n_low, 0, 0
    words = np.zeros(len(need), dtype=np.uint64)
    for chain in range(n_low, radix.size):
        width = int(radix[chain] - 1).bit_length()
        field.append((2**width - 1) << at)
        spare |= 1 << (at + width)
        words |= need[:, chain].astype(np.uint64) << np.uint64(at)
        at += width + 1
    return np.array(field, dtype=np.uint64), np.uint64(spare), words


def _shapes(radix: Codes, stride: Codes, size: int) -> Vec:
    """Return which places of a block have at least the digits of another; and for each low chain, the same digit."""
    digits = np.arange(size)[:, np.newaxis] // stride % radix
    least = digits[:, np.newaxis]
    fits: Mask = np.logical_and.reduce(digits >= least, axis=2)
    exact = (digits == least).transpose(2, 0, 1) & fits
    return np.concatenate([fits[np.newaxis], exact]).reshape(-1, size).astype(np.float64)
