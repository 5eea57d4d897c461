"""The exact oracle for small problems: a dynamic program over subsets of unranked items."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankstream import kernels
from rankstream.assortments import Assortments
from rankstream.oracles.protocol import Answer
from rankstream.oracles.ties import TIE_RULES, Ties, check_ties

MOST_BITS = 20


class SubsetOracle:
    """Ranks from the top: placing an item next costs what it takes from the offers still untouched.

    Items that are offered in exactly the same assortments share one bit of the state, and the one item of every offer
    (no-choice) ends the ranking. Among exact ties, ``ties`` decides: ``"first"`` takes items in their order and the
    no-choice item as late as possible, ``"last"`` that item as soon as possible and the others in reverse order,
    ``"random"`` draws uniformly from a hash of the seed and the vertex, so that the same costs always get the same
    answer, equal vertices are completed alike, and different ones independently.

    >>> oracle = SubsetOracle(Assortments([("tea", "cake", "nothing"), ("tea", "pie", "nothing")]))
    >>> answer = oracle.cheapest([-1.0, 2.0, 0.0, 1.5, -1.0, 0.0])
    >>> answer.ranking[:2], answer.value, answer.exact
    (array([3, 0]), -2.0, True)
    """

    def __init__(self, assortments: Assortments, ties: Ties = "random", seed: int = 0) -> None:
        check_ties(ties, seed)
        self.assortments = assortments
        self.ties = ties
        self.seed = seed
        self._universal = -1 if assortments.no_choice is None else assortments.no_choice
        bit_of, offer_sets, n_bits = _item_bits(assortments, self._universal)
        if n_bits > MOST_BITS:
            raise ValueError(
                f"{n_bits} items with different availability are too many for the subset oracle, which takes "
                f"{MOST_BITS}: leave out rare items, or merge items that are always offered together."
            )
        self._bit_of = np.array(bit_of, dtype=np.uint64)
        self._offer_sets = np.array(offer_sets, dtype=np.uint64)
        self._placing = np.zeros((assortments.n_items, 2 ** max(n_bits - 1, 0)))
        self._to_go = np.zeros(2**n_bits)

    def cheapest(self, costs: ArrayLike) -> Answer:
        """The cheapest ranking, proven: bound and value are equal."""
        vector = np.ascontiguousarray(costs, dtype=np.float64)
        if vector.shape != (self.assortments.n_coordinates,):
            raise ValueError(
                f"There must be {self.assortments.n_coordinates} costs, one per coordinate; got {vector.shape}."
            )
        ranking = np.empty(self.assortments.n_items, dtype=np.int64)
        value = kernels.cheapest(
            vector,
            self.assortments.indptr,
            self.assortments.members,
            self._offer_sets,
            self._bit_of,
            self._universal,
            TIE_RULES[self.ties],
            self.seed,
            self._placing,
            self._to_go,
            ranking,
        )
        if value != value:
            raise ValueError("The costs hold NaN or infinity: every cost must be a finite number.")
        return Answer(ranking, value, value)

    def explain(self) -> str:
        """Why this oracle, in words."""
        return f"exact, by all {self._to_go.size:,} subsets of items"

    def __reduce__(self) -> tuple[Any, ...]:
        return SubsetOracle, (self.assortments, self.ties, self.seed)


def _item_bits(assortments: Assortments, universal: int) -> tuple[list[int], list[int], int]:
    """The state bit of each item (0: none), the union of bits of each offer, and the number of bits."""
    offered_in: list[list[int]] = [[] for _ in assortments.items]
    for offer, item in zip(assortments.owner.tolist(), assortments.members.tolist(), strict=True):
        offered_in[item].append(offer)
    bits: dict[tuple[int, ...], int] = {}
    bit_of = [0] * assortments.n_items
    offer_sets = [0] * assortments.n_offers
    for item, offers in enumerate(offered_in):
        if offers and item != universal:
            bit_of[item] = bits.setdefault(tuple(offers), 1 << len(bits))
            for offer in offers:
                offer_sets[offer] |= bit_of[item]
    return bit_of, offer_sets, len(bits)
