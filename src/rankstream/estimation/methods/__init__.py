"""Methods as settings: a frozen class per way of fitting, with exactly the options that apply to it.

``estimate`` takes one of these, or its name: ``"max-entropy"``, ``"nearest"``, ``"primal-dual"``, ``"mnl"``,
``"latent-class"``, ``"markov-chain"``, ``"mle"``; ``"auto"`` lets ``pick`` choose among the first three.
"""

from rankstream.estimation.methods.choosing import METHODS, make, pick
from rankstream.estimation.methods.max_entropy import MaxEntropy
from rankstream.estimation.methods.nearest import Nearest
from rankstream.estimation.methods.parametric import LatentClass, Likelihood, Logit, MarkovChain
from rankstream.estimation.methods.primal_dual import PrimalDual
from rankstream.estimation.methods.protocol import Method

__all__ = [
    "METHODS",
    "LatentClass",
    "Likelihood",
    "Logit",
    "MarkovChain",
    "MaxEntropy",
    "Method",
    "Nearest",
    "PrimalDual",
    "make",
    "pick",
]
