"""Oracles: the cheapest ranking for given costs. ``auto`` picks one for the assortments at hand."""

from rankstream.assortments import Assortments
from rankstream.oracles.branch import BranchOracle
from rankstream.oracles.dense import DenseOracle
from rankstream.oracles.laminar import LaminarOracle
from rankstream.oracles.lattice import MOST_STATES, LatticeOracle, TooManyUnionsError
from rankstream.oracles.protocol import Answer, Oracle
from rankstream.oracles.reductions import reduce
from rankstream.oracles.search import SearchOracle
from rankstream.oracles.ties import Ties
from rankstream.oracles.wrappers import CachingOracle, CountingOracle, LazyOracle

__all__ = [
    "Answer",
    "BranchOracle",
    "CachingOracle",
    "CountingOracle",
    "DenseOracle",
    "LaminarOracle",
    "LatticeOracle",
    "LazyOracle",
    "Oracle",
    "SearchOracle",
    "Ties",
    "auto",
]


SMALL = 20
DENSE_FROM = 13
DENSE_TO = 26


def auto(
    assortments: Assortments, ties: Ties = "random", seed: int = 0
) -> LatticeOracle | LaminarOracle | DenseOracle | SearchOracle:
    """The fastest exact oracle for these assortments, or beyond those a search with a proven bound; see ``.explain()``.

    >>> oracle = auto(Assortments([("tea", "pie", "nothing"), ("cake", "pie", "nothing"), ("tea", "nothing")]))
    >>> oracle.explain()
    'exact, by 5 unions of offers (3 of 3 offers matter; 3 items; general family)'
    """
    reduced = reduce(assortments)
    if reduced.is_laminar and assortments.n_offers > SMALL:
        return LaminarOracle(assortments, ties, seed)
    largest = max((len(reduced.items_of(component)) for component in reduced.components), default=0)
    most = MOST_STATES if largest < DENSE_FROM else min(MOST_STATES, 2**largest // 6)
    try:
        return LatticeOracle(assortments, ties, seed, most)
    except TooManyUnionsError:
        if largest <= DENSE_TO:
            return DenseOracle(assortments, ties, seed)
        return SearchOracle(assortments, ties, seed)
