"""The public names; `lazy_loader` imports each when it is first used."""

from .max_entropy import MaxEntropy as MaxEntropy
from .parametric import LatentClass as LatentClass
from .parametric import Likelihood as Likelihood
from .parametric import Logit as Logit
from .parametric import MarkovChain as MarkovChain
from .parametric import PricedClasses as PricedClasses
from .parametric import PricedLogit as PricedLogit
from .rankings import Nearest as Nearest
from .rankings import PrimalDual as PrimalDual
from .selection import METHODS as METHODS
from .selection import WITH_PRICES as WITH_PRICES
from .selection import Method as Method
from .selection import explain as explain
from .selection import make as make
from .selection import pick as pick

__all__: list[str]
