"""The public names; `lazy_loader` imports each when it is first used."""

from .answers import Segment as Segment
from .answers import Substitution as Substitution
from .base import Model as Model
from .entropy.fit import EntropyFit as EntropyFit
from .entropy.fit import fit_max_entropy as fit_max_entropy
from .entropy.model import EntropyModel as EntropyModel
from .entropy.ranking_laws import RankingLaw as RankingLaw
from .entropy.ranking_laws import markov_chain as markov_chain
from .entropy.ranking_laws import mix as mix
from .entropy.ranking_laws import plackett_luce as plackett_luce
from .files import load_model as load_model
from .parametric.attribute_logit import PricedModel as PricedModel
from .parametric.latent_class import LatentClassModel as LatentClassModel
from .parametric.markov_chain import MarkovChainModel as MarkovChainModel
from .parametric.mnl import LogitModel as LogitModel
from .protocol import ChoiceModel as ChoiceModel
from .rankings import RankingModel as RankingModel
from .sparse import Frontier as Frontier

__all__: list[str]
