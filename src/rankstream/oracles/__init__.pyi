"""The public names; `lazy_loader` imports each when it is first used."""

from .protocol import Answer as Answer
from .protocol import Explained as Explained
from .protocol import Oracle as Oracle
from .protocol import Ties as Ties
from .search.local import QuickOracle as QuickOracle
from .search.local import SearchOracle as SearchOracle
from .selection import ComponentsOracle as ComponentsOracle
from .selection import auto as auto
from .selection import explain as explain
from .tables.chains import ChainOracle as ChainOracle
from .tables.dense import DenseOracle as DenseOracle
from .tables.laminar import LaminarOracle as LaminarOracle
from .tables.lattice import LatticeOracle as LatticeOracle

__all__: list[str]
