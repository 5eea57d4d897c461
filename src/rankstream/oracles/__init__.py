"""Oracles: the cheapest ranking for given costs. ``auto`` picks one for the assortments at hand."""

from rankstream.assortments import Assortments
from rankstream.oracles.protocol import Answer, Oracle
from rankstream.oracles.subset import SubsetOracle, Ties

__all__ = ["Answer", "Oracle", "SubsetOracle", "Ties", "auto"]


def auto(assortments: Assortments, ties: Ties = "random", seed: int = 0) -> Oracle:
    """The fastest exact oracle for these assortments.

    >>> auto(Assortments([("tea", "pie")])).cheapest([1.0, 0.0]).ranking
    array([1, 0])
    """
    return SubsetOracle(assortments, ties, seed)
