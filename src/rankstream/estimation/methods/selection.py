"""What a method is, and which one: by name, or the best for the data at hand."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar, Protocol

from rankstream.data.counts import ChoiceCounts
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
from rankstream.estimation.task import Task
from rankstream.models.protocol import ChoiceModel
from rankstream.solver.runs import Estimate


class Method(Protocol):
    """A way of fitting: its settings, its name, and which of the settings says when the fit is good enough."""

    name: ClassVar[str]
    tolerance: ClassVar[str]

    def fit(self, task: Task) -> Estimate[Any]:
        """Return the fitted model, with its certificate."""

    def model(self, task: Task) -> ChoiceModel:
        """Return the fitted model alone."""


METHODS: dict[str, Callable[..., Method]] = {
    kind.name: kind for kind in (MaxEntropy, Nearest, PrimalDual, Logit, LatentClass, MarkovChain, Likelihood)
}
"""Every method by its name, for all data."""
WITH_PRICES: dict[str, Callable[..., Method]] = {kind.name: kind for kind in (PricedLogit, PricedClasses)}
"""Methods that need prices in the items' names."""


def make(method: str | Method, tolerance: float | None = None, **settings: Any) -> Method | None:
    """Return a method from its name and settings; None for ``"auto"``, which is picked when the data are known.

    ``tolerance`` is the setting that stops the fit, whatever its unit is.

    Examples
    --------
    >>> make("nearest", tolerance=1e-6)
    Nearest(distance='l2', weights='observations', gap=1e-06, max_rankings=None, oracle=None, ties='random', ...)
    """
    if not isinstance(method, str):
        if isinstance(method, type) or not hasattr(method, "fit"):
            raise ValueError(f"{method!r} is neither the name of a method nor its settings: see rankstream.methods.")
        if given := [*settings, *(["tolerance"] if tolerance is not None else [])]:
            raise ValueError(
                f"{given[0]!r} needs the name of a method: set it in {type(method).__name__}(...) instead."
            )
        return method
    if method == "auto":
        if settings:
            raise ValueError(f"The method 'auto' has no setting {next(iter(settings))!r}: choose a method by its name.")
        return None
    known = METHODS | WITH_PRICES
    if method not in known:
        raise ValueError(f"Unknown method {method!r}: choose one of {', '.join(map(repr, ('auto', *known)))}.")
    kind: Any = known[method]
    if unknown := [name for name in settings if name not in (names := [field.name for field in fields(kind)])]:
        raise ValueError(f"The method {method!r} has no setting {unknown[0]!r}: choose from {', '.join(names)}.")
    if tolerance is not None and not kind.tolerance:
        raise ValueError(f"The method {method!r} has no tolerance: leave it out.")
    return known[method](**settings | ({} if tolerance is None else {kind.tolerance: tolerance}))


def pick(task: Task, tolerance: float | None = None, budget: float | None = None) -> Method:
    """Pick the method for ``"auto"``; ``explain`` says why.

    - Data that keep moving: ``PrimalDual``, which plays a round on whatever has come.
    - Data that stand still, of up to 64 items: ``MaxEntropy``, which predicts unseen offers best, where it is predicted
      to take at most 60 s and 2 GB; with a ``budget`` four times that, and never less than 10 s. Not where the items
      have an order that is not made of chains, as price levels are.
    - Larger data with an exact oracle: ``Nearest``, which proves the most with the fewest rankings.
    - Beyond that: ``PrimalDual``, which needs one answer of the oracle at a time.

    Seconds are predicted from the sizes of the data, and never timed: the same data give the same method everywhere.
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
    """Which method ``"auto"`` picks for these counts, why, and the work that other methods are predicted to be.

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
