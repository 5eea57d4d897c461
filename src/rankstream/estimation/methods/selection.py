"""The protocol of methods, and their selection: by name, or the best for the data."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Literal, Protocol, TypedDict

from rankstream.data import ChoiceCounts
from rankstream.data.attributes import AttributeSource
from rankstream.distances import Distance
from rankstream.estimation.methods.max_entropy import MaxEntropy
from rankstream.estimation.methods.parametric import (
    LatentClass,
    Likelihood,
    Logit,
    MarkovChain,
    PricedClasses,
    PricedLogit,
)
from rankstream.estimation.methods.rankings import Nearest, PrimalDual
from rankstream.estimation.methods.work import affords_max_entropy, predict_work
from rankstream.estimation.task import Task, Weighting
from rankstream.learners import Learner
from rankstream.models import ChoiceModel, RankingLaw
from rankstream.models.entropy.pool import PoolGuide
from rankstream.oracles import Oracle, Ties
from rankstream.solver.runs import Estimate


class Method(Protocol):
    """An estimation method: its settings, its name, and the name of the setting that stops the fit."""

    name: ClassVar[str]
    tolerance: ClassVar[str]

    def fit(self, task: Task) -> Estimate[Any]:
        """Return the fitted model, with its certificate."""

    def model(self, task: Task) -> ChoiceModel:
        """Return the fitted model alone."""


class Settings(TypedDict, total=False):
    """The settings of all methods, so that editors complete them; their classes say which method takes which."""

    distance: str | Distance
    weights: Weighting
    gap: float | None
    max_rankings: int | None
    max_rounds: int
    oracle: Oracle | None
    ties: Ties
    learner: str | Learner[Any]
    smoothing: float | None
    certify_every: int | None
    tolerance_mae: float
    tolerance_nats: float
    prior: RankingLaw | PoolGuide | Literal["held-out", "default", "stacked"]
    trust: float | Literal["auto"] | None
    attributes: AttributeSource | None
    classes: int | Literal["cv"]
    tried: Sequence[int]
    starts: int


METHODS: dict[str, Callable[..., Method]] = {
    kind.name: kind for kind in (MaxEntropy, Nearest, PrimalDual, Logit, LatentClass, MarkovChain, Likelihood)
}
"""Every method by its name, for all data."""
WITH_PRICES: dict[str, Callable[..., Method]] = {kind.name: kind for kind in (PricedLogit, PricedClasses)}
"""Methods that need prices in the items' names."""


def make(method: str | Method, tolerance: float | None = None, **settings: Any) -> Method | None:
    """Return a method from its name and settings; None for ``"auto"``, which depends on the data.

    ``tolerance`` is the setting that stops the fit, in the unit of the method.

    Examples
    --------
    >>> make("nearest", tolerance=1e-6)
    Nearest(distance='l2', weights='observations', gap=1e-06, max_rankings=None, oracle=None, ties='random', ...)
    """
    if not isinstance(method, str):
        if isinstance(method, type) or not hasattr(method, "fit"):
            raise ValueError(f"{method!r} is neither the name of a method nor its settings: see rankstream.methods.")
        extra = next(iter(settings), None if tolerance is None else "tolerance")
        if extra is not None:
            raise ValueError(f"{extra!r} needs the name of a method: set it in {type(method).__name__}(...) instead.")
        return method
    if method == "auto" and "attributes" in settings:
        method = "max-entropy"  # the only method with attributes
    if method == "auto":
        if settings:
            raise ValueError(f"The method 'auto' has no setting {next(iter(settings))!r}: choose a method by its name.")
        return None
    known = METHODS | WITH_PRICES
    if method not in known:
        raise ValueError(f"Unknown method {method!r}: choose one of {', '.join(map(repr, ('auto', *known)))}.")
    kind: Any = known[method]
    names = [field.name for field in fields(kind)]
    for name in settings:
        if name not in names:
            raise ValueError(f"The method {method!r} has no setting {name!r}: choose from {', '.join(names)}.")
    if tolerance is not None and not kind.tolerance:
        raise ValueError(f"The method {method!r} has no tolerance: leave it out.")
    return known[method](**settings | ({} if tolerance is None else {kind.tolerance: tolerance}))


def pick(task: Task, tolerance: float | None = None, budget: float | None = None) -> Method:
    """Pick the method for ``"auto"``; ``explain`` says why.

    - Streams: ``PrimalDual``, which plays a round on the current data.
    - Static data of up to 64 items: ``MaxEntropy``, which predicts new offers best, if its predicted cost is at most
      60 s (with a ``budget`` four times that, and never less than 10 s) and 2 GB. Not if the items have an order that
      is not made of chains, unlike price levels.
    - Larger data with an exact oracle: ``Nearest``, which proves the most with the fewest rankings.
    - Otherwise: ``PrimalDual``, which needs one answer of the oracle at a time.

    The cost is predicted from the sizes of the data, not timed: the same data give the same method everywhere.
    """
    if not task.stands_still:
        name = "primal-dual"
    elif affords_max_entropy(task.counts, budget)[0]:
        name = "max-entropy"
    else:
        name = "nearest" if hasattr(task.oracle, "cheapest_by_first") else "primal-dual"
    picked = make(name, tolerance)
    assert picked is not None
    return picked


def explain(counts: ChoiceCounts, budget: float | None = None) -> str:
    """Explain which method ``"auto"`` picks for these counts and why, with the predicted cost of other methods.

    Examples
    --------
    >>> from rankstream import Assortments
    >>> print(explain(ChoiceCounts(Assortments([("tea", "pie", "no"), ("tea", "no")]), [50, 30, 20, 70, 30])))
    max-entropy: it takes about 0.75 s and 0.01 GB, and may take 60 s.
    Other methods: latent-class about 0.023 s and 0.01 GB; markov-chain about 0.003 s and 0.01 GB; mnl about ...
    nearest, primal-dual and mle improve until their tolerance or their budget is met.
    """
    picked = pick(Task(counts.assortments, counts), budget=budget).name
    why = affords_max_entropy(counts, budget)[1]
    works = predict_work(counts).items()
    others = "; ".join(f"{name} {work}" for name, work in works if name not in (picked, "max-entropy"))
    return (
        f"{picked}: {why if picked == 'max-entropy' else f'not max-entropy, as {why}'}.\n"
        + (f"Other methods: {others}.\n" if others else "")
        + "nearest, primal-dual and mle improve until their tolerance or their budget is met."
    )
