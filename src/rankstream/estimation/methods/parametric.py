"""Parametric models, and the ranking model of maximum likelihood, as methods."""

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

from rankstream.columns.mle import MaximumLikelihood, fit_mle
from rankstream.data.order import refuse_order
from rankstream.estimation.task import Task, estimate_of
from rankstream.models.parametric import attribute_logit, latent_class, markov_chain, mnl
from rankstream.models.parametric.base import Fitted
from rankstream.models.protocol import ChoiceModel
from rankstream.oracles import Ties
from rankstream.solver.runs import Estimate


class _FittedMethod(ABC):
    name: ClassVar[str]
    function: ClassVar[Callable[..., Fitted]]  # takes the settings as keywords, without the unit in their names
    prices: ClassVar[bool] = False  # whether it uses the prices in labels

    def fit(self, task: Task) -> Estimate[Any]:
        """Return the fitted model, with its certificate."""
        model = self.model(task)
        return estimate_of(model, task, model.iterations, model.converged)

    def model(self, task: Task) -> Fitted:
        """Return the fitted model alone."""
        task.require_still(self.name)
        order = task.assortments.order
        if not self.prices:
            instead = "use 'nearest' or 'mle', for prices also 'mnl-price', or leave out the order"
            refuse_order(order, f"The method {self.name!r}", instead)
        return self._model(task)

    def _model(self, task: Task) -> Fitted:
        settings = {name.removesuffix("_nats"): value for name, value in vars(self).items()}
        return type(self).function(task.counts, **settings, seed=task.seed, watch=task.watch)


@dataclass(frozen=True, kw_only=True)
class Logit(_FittedMethod):
    """One multinomial logit, with an attraction for every item. Hard to beat with few choices of similar customers.

    ``smoothing`` is a number of pseudo-choices of every item; ``max_rounds`` are Newton steps.
    """

    name: ClassVar[str] = "mnl"
    tolerance: ClassVar[str] = ""
    smoothing: float = mnl.SMOOTHING
    max_rounds: int = 200

    def _model(self, task: Task) -> Fitted:
        return mnl.fit_mnl(task.counts, smoothing=self.smoothing, max_rounds=self.max_rounds)


@dataclass(frozen=True, kw_only=True)
class LatentClass(_FittedMethod):
    """A mixture of logits, one for each class of customers.

    Parameters
    ----------
    classes : int or "cv"
        Number of classes; or the number among ``tried`` with the highest likelihood of held-out offers ("cv").
    tried : sequence of int
        The numbers to try, until two in a row are worse.
    starts : int
        Number of random starts, of which the most likely result counts; one while "cv" tries numbers.
    smoothing : float
        Pseudo-choices of every item in each class, from an offer of all items; and pseudo-customers of each class.
    tolerance_nats : float
        A start ends when three steps gain less than this per choice.
    max_rounds : int
        Maximum number of steps of a start.
    """

    name: ClassVar[str] = "latent-class"
    function: ClassVar[Callable[..., Fitted]] = latent_class.fit_latent_class
    tolerance: ClassVar[str] = "tolerance_nats"
    classes: int | Literal["cv"] = "cv"
    tried: Sequence[int] = latent_class.TRIED_CLASSES
    starts: int = 3
    smoothing: float = latent_class.SMOOTHING
    tolerance_nats: float = 1e-8
    max_rounds: int = 3000


@dataclass(frozen=True, kw_only=True)
class MarkovChain(_FittedMethod):
    """The Markov chain choice model: customers whose favourite is missing move on until they reach an offered item.

    ``starts``, ``tolerance_nats`` and ``max_rounds`` are as for latent classes. Each item has ``smoothing``
    pseudo-transitions by the logit, so that transitions without data are those of the logit.
    """

    name: ClassVar[str] = "markov-chain"
    function: ClassVar[Callable[..., Fitted]] = markov_chain.fit_markov_chain
    tolerance: ClassVar[str] = "tolerance_nats"
    starts: int = 2
    smoothing: float = markov_chain.SMOOTHING
    tolerance_nats: float = 1e-8
    max_rounds: int = 3000


@dataclass(frozen=True, kw_only=True)
class PricedLogit(_FittedMethod):
    """One logit with a constant per item and a price coefficient; labels such as ``tea @ 3.50`` have the prices.

    Demand always falls with the price. ``smoothing`` is a number of pseudo-choices of every item.
    """

    name: ClassVar[str] = "mnl-price"
    function: ClassVar[Callable[..., Fitted]] = partial(attribute_logit.fit_attribute_logit, classes=1)
    tolerance: ClassVar[str] = ""
    prices: ClassVar[bool] = True
    smoothing: float = latent_class.SMOOTHING


@dataclass(frozen=True, kw_only=True)
class PricedClasses(LatentClass):
    """Latent classes of logits, each with its own constants and price coefficient.

    The parameters are those of ``LatentClass``; a start ends when one step gains less than ``tolerance_nats``.
    """

    name: ClassVar[str] = "latent-class-price"
    function: ClassVar[Callable[..., Fitted]] = attribute_logit.fit_attribute_logit
    prices: ClassVar[bool] = True
    tolerance_nats: float = 1e-9
    max_rounds: int = 500


@dataclass(frozen=True, kw_only=True)
class Likelihood:
    """The distribution over rankings of maximum likelihood, proven up to ``tolerance_nats`` per choice (Appendix B.2).

    ``ties`` is the rule among rankings with the same choices; ``max_rounds`` are steps of the interior-point method.
    """

    name: ClassVar[str] = "mle"
    tolerance: ClassVar[str] = "tolerance_nats"
    tolerance_nats: float = 1e-4
    ties: Ties = "random"
    max_rounds: int = 2000

    def fit(self, task: Task) -> Estimate[Any]:
        """Return the fitted model, with its certificate."""
        fit = self._fit(task)
        return estimate_of(fit.model, task, fit.iterations, fit.proven)

    def model(self, task: Task) -> ChoiceModel:
        """Return the fitted model alone."""
        return self._fit(task).model

    def _fit(self, task: Task) -> MaximumLikelihood:
        task.require_still(self.name)
        return fit_mle(
            task.counts, tolerance=self.tolerance_nats, max_rounds=self.max_rounds, ties=self.ties,
            seed=task.seed, watch=task.watch,
        )  # fmt: skip
