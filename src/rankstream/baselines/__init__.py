"""What people use instead of a distribution over rankings, one file each."""

from rankstream.baselines.latent_class import LatentClass, fit_latent_class
from rankstream.baselines.markov_chain import MarkovChain, fit_markov_chain
from rankstream.baselines.mnl import MNL, fit_mnl
from rankstream.baselines.parametric import ChoiceModel, Fitted, observed, restrict

__all__ = [
    "MNL",
    "ChoiceModel",
    "Fitted",
    "LatentClass",
    "MarkovChain",
    "fit_latent_class",
    "fit_markov_chain",
    "fit_mnl",
    "observed",
    "restrict",
]
