"""What people use instead: the estimators of the literature and of practice, on the same data (Appendix B)."""

from rankstream.baselines.rationality import rationality
from rankstream.baselines.registry import FITS, fit
from rankstream.baselines.revenue import probability_range, revenue_range
from rankstream.baselines.revenue_approximations import revenue_by_relaxation, revenue_by_sampling
from rankstream.data.observed import observed, restrict
from rankstream.models.parametric.fitted import Fitted
from rankstream.models.parametric.latent_class import LatentClass, fit_latent_class
from rankstream.models.parametric.markov_chain import MarkovChain, fit_markov_chain
from rankstream.models.parametric.mnl import MNL, fit_mnl
from rankstream.models.protocol import ChoiceModel

__all__ = [
    "FITS",
    "MNL",
    "ChoiceModel",
    "Fitted",
    "LatentClass",
    "MarkovChain",
    "fit",
    "fit_latent_class",
    "fit_markov_chain",
    "fit_mnl",
    "observed",
    "probability_range",
    "rationality",
    "restrict",
    "revenue_by_relaxation",
    "revenue_by_sampling",
    "revenue_range",
]
