"""The public names; `lazy_loader` imports each when it is first used."""

from .best import best_offer as best_offer
from .context import Context as Context
from .context import Nearness as Nearness
from .decision import Decision as Decision
from .decision import Lead as Lead
from .decision import RunnerUp as RunnerUp
from .decision import Units as Units
from .moves import OfferChange as OfferChange
from .next import NextOffer as NextOffer
from .next import next_offer as next_offer
from .offer_values import WrongAnswerError as WrongAnswerError
from .offer_values import value as value
from .safe import SafeOffer as SafeOffer
from .safe import safe_offer as safe_offer

__all__: list[str]
