"""What answers with probabilities: rankings, maximum entropy, logit, classes, chain; and what can be asked."""

from typing import TYPE_CHECKING

from rankstream._core.lazy import importer

if TYPE_CHECKING:
    from rankstream.models.answers import Segment, Substitution
    from rankstream.models.base import Model
    from rankstream.models.entropy.completion import redraw
    from rankstream.models.entropy.fit import EntropyFit, fit_max_entropy
    from rankstream.models.entropy.laws import Prior, markov_chain, mix, plackett_luce
    from rankstream.models.entropy.model import EntropyModel
    from rankstream.models.entropy.priors import fit_prior, stacked_prior
    from rankstream.models.files import load_model
    from rankstream.models.parametric.latent_class import LatentClassModel
    from rankstream.models.parametric.markov_chain import MarkovChainModel
    from rankstream.models.parametric.mnl import LogitModel
    from rankstream.models.parametric.priced import PricedModel
    from rankstream.models.protocol import ChoiceModel
    from rankstream.models.rankings import RankingModel
    from rankstream.models.sparse import Frontier

__all__ = [
    "ChoiceModel",
    "EntropyFit",
    "EntropyModel",
    "Frontier",
    "LatentClassModel",
    "LogitModel",
    "MarkovChainModel",
    "Model",
    "PricedModel",
    "Prior",
    "RankingModel",
    "Segment",
    "Substitution",
    "fit_max_entropy",
    "fit_prior",
    "load_model",
    "markov_chain",
    "mix",
    "plackett_luce",
    "redraw",
    "stacked_prior",
]
__getattr__ = importer(
    __name__,
    {
        "ChoiceModel": "protocol",
        **dict.fromkeys(("EntropyFit", "fit_max_entropy"), "entropy.fit"),
        "EntropyModel": "entropy.model",
        "Frontier": "sparse",
        "LatentClassModel": "parametric.latent_class",
        "LogitModel": "parametric.mnl",
        "MarkovChainModel": "parametric.markov_chain",
        "Model": "base",
        "PricedModel": "parametric.priced",
        **dict.fromkeys(("Prior", "markov_chain", "mix", "plackett_luce"), "entropy.laws"),
        "RankingModel": "rankings",
        **dict.fromkeys(("Segment", "Substitution"), "answers"),
        **dict.fromkeys(("fit_prior", "stacked_prior"), "entropy.priors"),
        "load_model": "files",
        "redraw": "entropy.completion",
    },
)
