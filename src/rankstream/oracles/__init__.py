"""Oracles: the cheapest ranking for given costs. ``auto`` picks one for the assortments at hand."""

from typing import TYPE_CHECKING

from rankstream._core.lazy import importer

if TYPE_CHECKING:
    from rankstream.oracles.branch import BranchOracle
    from rankstream.oracles.chains import ChainOracle
    from rankstream.oracles.choosing import auto, explain
    from rankstream.oracles.components import ComponentsOracle
    from rankstream.oracles.dense import DenseOracle
    from rankstream.oracles.laminar import LaminarOracle
    from rankstream.oracles.lattice import LatticeOracle
    from rankstream.oracles.milp import MilpOracle
    from rankstream.oracles.protocol import Answer, Explained, Oracle
    from rankstream.oracles.quick import QuickOracle
    from rankstream.oracles.search import SearchOracle
    from rankstream.oracles.ties import Ties
    from rankstream.oracles.wrappers import CachingOracle, CountingOracle, LazyOracle

__all__ = [
    "Answer",
    "BranchOracle",
    "CachingOracle",
    "ChainOracle",
    "ComponentsOracle",
    "CountingOracle",
    "DenseOracle",
    "Explained",
    "LaminarOracle",
    "LatticeOracle",
    "LazyOracle",
    "MilpOracle",
    "Oracle",
    "QuickOracle",
    "SearchOracle",
    "Ties",
    "auto",
    "explain",
]
__getattr__ = importer(
    __name__,
    {
        **dict.fromkeys(("Answer", "Explained", "Oracle"), "protocol"),
        **dict.fromkeys(("CachingOracle", "CountingOracle", "LazyOracle"), "wrappers"),
        "BranchOracle": "branch",
        "ChainOracle": "chains",
        "ComponentsOracle": "components",
        "DenseOracle": "dense",
        "LaminarOracle": "laminar",
        "LatticeOracle": "lattice",
        "MilpOracle": "milp",
        "QuickOracle": "quick",
        "SearchOracle": "search",
        "Ties": "ties",
        **dict.fromkeys(("auto", "explain"), "choosing"),
    },
)
