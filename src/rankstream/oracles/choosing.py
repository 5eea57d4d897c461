"""Which oracle: the fastest exact one for the offers at hand, or beyond those a search with a proven bound."""

from rankstream.data.assortments import Assortments
from rankstream.oracles.components import ComponentsOracle
from rankstream.oracles.dense import DenseOracle
from rankstream.oracles.laminar import LaminarOracle
from rankstream.oracles.lattice import MOST_STATES, LatticeOracle, TooManyUnionsError
from rankstream.oracles.protocol import Explained
from rankstream.oracles.reductions import item_bits, reduce
from rankstream.oracles.search import SearchOracle
from rankstream.oracles.ties import Ties

SMALL = 20
DENSE_FROM = 13
DENSE_TO = 26


def auto(assortments: Assortments, ties: Ties = "random", seed: int = 0) -> Explained:
    """The fastest exact oracle for these assortments, or beyond those a search with a proven bound; see ``.explain()``.

    >>> oracle = auto(Assortments([("tea", "pie", "nothing"), ("cake", "pie", "nothing"), ("tea", "nothing")]))
    >>> oracle.explain()
    'exact, by 5 unions of offers (3 of 3 offers matter; 3 items; general family)'
    """
    reduced = reduce(assortments)
    if reduced.is_laminar and assortments.n_offers > SMALL:
        return LaminarOracle(assortments, ties, seed)
    n_parts, n_items = len(reduced.components), item_bits(assortments, reduced.no_choice)[2]
    prefers_dense = n_parts == 1 and DENSE_FROM <= n_items <= DENSE_TO
    try:
        return LatticeOracle(assortments, ties, seed, 2**n_items // 6 if prefers_dense else MOST_STATES)
    except TooManyUnionsError:
        if reduced.is_laminar:
            return LaminarOracle(assortments, ties, seed)
        if n_parts > 1:
            return ComponentsOracle(assortments, auto, ties, seed)
        return (DenseOracle if n_items <= DENSE_TO else SearchOracle)(assortments, ties, seed)
