"""Methods as settings: a frozen class per way of fitting, with exactly the options that apply to it.

``estimate`` takes one of these, or its name: ``"max-entropy"``, ``"nearest"``, ``"primal-dual"``, ``"mnl"``,
``"latent-class"``, ``"markov-chain"``, ``"mle"``; ``"auto"`` lets ``pick`` choose among the first three. For items with
prices there are also ``"mnl-price"`` and ``"latent-class-price"``.
"""

from rankstream.estimation.methods.choosing import METHODS, WITH_PRICES, make, pick
from rankstream.estimation.methods.max_entropy import MaxEntropy
from rankstream.estimation.methods.nearest import Nearest
from rankstream.estimation.methods.parametric import (
    LatentClass,
    Likelihood,
    Logit,
    MarkovChain,
    PricedClasses,
    PricedLogit,
)
from rankstream.estimation.methods.primal_dual import PrimalDual
from rankstream.estimation.methods.protocol import Method

__all__ = [
    "METHODS",
    "WITH_PRICES",
    "LatentClass",
    "Likelihood",
    "Logit",
    "MarkovChain",
    "MaxEntropy",
    "Method",
    "Nearest",
    "PricedClasses",
    "PricedLogit",
    "PrimalDual",
    "make",
    "pick",
]
