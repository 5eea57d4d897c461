"""Models with a fixed number of parameters, and the likeliest ranking model, as methods: what people use instead."""

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

from rankstream._core.old_names import old_keywords
from rankstream.columns.mle import MaximumLikelihood, fit_mle
from rankstream.data.order import refuse_order
from rankstream.estimation.model_certificate import estimate_of
from rankstream.estimation.task import Task
from rankstream.models.parametric import latent_class, markov_chain, mnl, price_logit
from rankstream.models.parametric.base import Fitted
from rankstream.models.protocol import ChoiceModel
from rankstream.oracles import Ties
from rankstream.solver.runs import Estimate


class _FittedMethod(ABC):
    """What the methods with parameters share: a model of the counts, certified like any other."""

    name: ClassVar[str]
    function: ClassVar[Callable[..., Fitted]]  # whose keywords are the settings, without the unit in their names
    prices: ClassVar[bool] = False  # whether it reads the prices of its items

    def fit(self, task: Task) -> Estimate[Any]:
        """Return the fitted model, with its certificate."""
        found = self.model(task)
        return estimate_of(found, task, found.iterations, found.converged)

    def model(self, task: Task) -> Fitted:
        """Return the fitted model alone."""
        task.require_still(self.name)
        order = task.assortments.order
        if not self.prices:
            instead = "use 'nearest' or 'mle', for prices also 'mnl-price', or leave out the order"
            refuse_order(order, f"The method {self.name!r}", instead)
        return self._model(task)

    def _model(self, task: Task) -> Fitted:
        """The fit itself, to choices that stand still."""
        settings = {name.removesuffix("_nats"): value for name, value in vars(self).items()}
        return type(self).function(task.counts, **settings, seed=task.seed, watch=task.watch)


@old_keywords(max_steps="max_rounds")
@dataclass(frozen=True, kw_only=True)
class Logit(_FittedMethod):
    """One multinomial logit: every item has one attraction. Hard to beat with few choices of one kind of customer.

    ``smoothing`` is in imaginary choices of every item; ``max_rounds`` are Newton steps.
    """

    name: ClassVar[str] = "mnl"
    tolerance: ClassVar[str] = ""
    smoothing: float = mnl.SMOOTHING
    max_rounds: int = 200

    def _model(self, task: Task) -> Fitted:
        return mnl.fit_mnl(task.counts, smoothing=self.smoothing, max_rounds=self.max_rounds, seed=task.seed)


@old_keywords(max_steps="max_rounds")
@dataclass(frozen=True, kw_only=True)
class LatentClass(_FittedMethod):
    """A mixture of logits, one for each kind of customer.

    Parameters
    ----------
    classes : int, "cv" or "bic"
        How many kinds; or the number among ``tried`` with the highest likelihood of held-out offers ("cv"), or with the
        least Bayesian information criterion ("bic"), which prefers fewer.
    tried : sequence of int
        The numbers to try, until two in a row were worse.
    starts : int
        How many random starts; the likeliest end counts. One while "cv" tries numbers.
    smoothing : float
        In each class every item gets this many imaginary choices from an offer of all items, and each class as many
        customers.
    tolerance_nats : float
        A start ends when three steps gain less than this per choice.
    max_rounds : int
        The most steps of a start.
    """

    name: ClassVar[str] = "latent-class"
    function: ClassVar[Callable[..., Fitted]] = latent_class.fit_latent_class
    tolerance: ClassVar[str] = "tolerance_nats"
    classes: int | Literal["bic", "cv"] = "cv"
    tried: Sequence[int] = latent_class.TRIED_CLASSES
    starts: int = 3
    smoothing: float = latent_class.SMOOTHING
    tolerance_nats: float = 1e-8
    max_rounds: int = 3000


@old_keywords(max_steps="max_rounds")
@dataclass(frozen=True, kw_only=True)
class MarkovChain(_FittedMethod):
    """Customers who miss their favourite move on until they meet something on offer.

    ``starts``, ``tolerance_nats`` and ``max_rounds`` are as for latent classes. For each item, ``smoothing`` imaginary
    moves follow the logit's: there are many transitions, and what the data leave open is then as in the logit.
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
    """One logit with a constant per item and a price coefficient; prices are those of labels such as ``tea @ 3.50``.

    The coefficient is above 0: nobody prefers to pay more. ``smoothing`` is in imaginary choices of every item.
    """

    name: ClassVar[str] = "mnl-price"
    function: ClassVar[Callable[..., Fitted]] = partial(price_logit.fit_priced_class, classes=1)
    tolerance: ClassVar[str] = ""
    prices: ClassVar[bool] = True
    smoothing: float = latent_class.SMOOTHING


@old_keywords(max_steps="max_rounds")
@dataclass(frozen=True, kw_only=True)
class PricedClasses(LatentClass):
    """Latent classes of logits, each with constants and a price coefficient of its own.

    The parameters are those of ``LatentClass``; ``tolerance_nats`` is what one step gains.
    """

    name: ClassVar[str] = "latent-class-price"
    function: ClassVar[Callable[..., Fitted]] = price_logit.fit_priced_class
    prices: ClassVar[bool] = True
    tolerance_nats: float = 1e-9
    max_rounds: int = 500


@old_keywords(max_iterations="max_rounds")
@dataclass(frozen=True, kw_only=True)
class Likelihood:
    """The distribution over rankings of maximum likelihood, proven up to ``tolerance_nats`` per choice (Appendix B.2).

    ``ties`` says which of the rankings that choose alike is kept; ``max_rounds`` are steps of the interior point.
    """

    name: ClassVar[str] = "mle"
    tolerance: ClassVar[str] = "tolerance_nats"
    tolerance_nats: float = 1e-4
    ties: Ties = "random"
    max_rounds: int = 2000

    def fit(self, task: Task) -> Estimate[Any]:
        """Return the fitted model, with its certificate."""
        found = self._fit(task)
        return estimate_of(found.model, task, found.iterations, found.proven)

    def model(self, task: Task) -> ChoiceModel:
        """Return the fitted model alone."""
        return self._fit(task).model

    def _fit(self, task: Task) -> MaximumLikelihood:
        task.require_still(self.name)
        return fit_mle(
            task.counts, tolerance=self.tolerance_nats, max_rounds=self.max_rounds, ties=self.ties,
            seed=task.seed, watch=task.watch,
        )  # fmt: skip
