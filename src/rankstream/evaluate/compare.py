"""Compare choice models on held-out choices."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter

import numpy as np

from rankstream._core.arguments import number_between
from rankstream._core.types import Vec
from rankstream._core.watch import Progress
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observations import Holdout, observed, splits
from rankstream.data.prices import PriceLevels
from rankstream.estimation.methods import METHODS, WITH_PRICES, Method, Nearest, PrimalDual, make, pick
from rankstream.estimation.task import Task
from rankstream.evaluate.comparison import Comparison, Score, ranked
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.entropy.ranking_laws import plackett_luce
from rankstream.models.parametric.base import data_log_likelihood
from rankstream.models.protocol import ChoiceModel, Predicts
from rankstream.models.shrinkage import ShrunkModel, tally_facts

Fit = Callable[[ChoiceCounts], ChoiceModel]
UNIFORM = "uniform"  # a guess without data, part of every comparison


def fit_by_method(method: str | Method, counts: ChoiceCounts, *, seed: int = 0) -> ChoiceModel:
    """Fit a method of ``estimate`` to all offers with choices, without a certificate."""
    data = observed(counts)
    task = Task(data.assortments, data, seed)
    return (make(method) or pick(task)).model(task)


EARLIER: dict[str, Method] = {
    "nearest-l1": Nearest(distance="l1", weights="equal", gap=1e-7),
    "nearest-linf": Nearest(distance="linf", weights="equal", gap=1e-7),
    "frank-wolfe": PrimalDual(distance="squared-l2", learner="follow-the-leader", gap=1e-4, max_rounds=2000),
}
"""Earlier methods that differ from ours in settings only (the paper's Appendices B.3 and E)."""
MODELS: dict[str, Callable[..., ChoiceModel]] = {
    name: partial(fit_by_method, method) for name, method in ({name: name for name in METHODS} | EARLIER).items()
}
"""Models that can be compared by name: every method of ``estimate``, and the earlier ones."""
PRICED: dict[str, Callable[..., ChoiceModel]] = {name: partial(fit_by_method, name) for name in WITH_PRICES}
"""Further models for items with prices."""
ORDERLESS = ("mnl", "latent-class", "markov-chain")  # models that support no order of items, such as price levels


def compare(
    counts: ChoiceCounts | Sequence[ChoiceCounts],
    models: Sequence[str] | Mapping[str, Fit] | None = None,
    *,
    holdout: Holdout = "assortments",
    folds: int = 5,
    seed: int = 0,
    epsilon: float = 1e-3,
    watch: Progress | None = None,
) -> Comparison:
    """Fit every model to a part of the choices, score it on the rest, and rank by log-likelihood per choice.

    A uniform guess is always included, under the name "uniform": small data often allow nothing better. If single
    choices are held out, there is also "max-entropy, shrunk": the same model with ``seen="shrink"``.

    Parameters
    ----------
    counts : ChoiceCounts or sequence of them
        The choices; a sequence of periods, oldest first, for ``holdout="time"``.
    models : names, or mapping from names to functions, optional
        Names of ``MODELS`` or, for items with prices, of ``PRICED`` (default: ``names_for`` the counts); or functions
        from counts to a model with ``items``, ``predict`` and ``probabilities``.
    holdout : "assortments", "choices", "person" or "time"
        What to hold out: whole offers, choices from every offer, all choices of a person, or later periods.
    folds : int
        Number of parts, each held out once. Without effect for "time", which tests on every period after the first.
    seed : int
        Seed for the folds and the models' random starts.
    epsilon : float
        The share of a uniform choice mixed into every model, between 1e-12 and 0.5, because a ranking model may give an
        observed choice the probability 0. The raw value, which can be -inf, is also reported.
    watch : callable, optional
        Called before every fit with the model's name and the fraction of all fits that are done.

    Examples
    --------
    >>> from rankstream import Assortments
    >>> offers = Assortments([("a", "b"), ("b", "c"), ("a", "c"), ("a", "b", "c")])
    >>> counts = ChoiceCounts(offers, [60, 40, 60, 40, 70, 30, 47, 32, 21])
    >>> compare(counts, ["mnl", "markov-chain"], folds=2).verdict
    'Too few offers were held out to tell any model from a uniform guess: keep the default method. markov-chain is ...'
    """
    number_between("epsilon", epsilon, 1e-12, 0.5)
    fits = {} if models is None else fits_of(models, seed)
    parts = splits(counts, holdout, folds, seed)
    fits = fits or fits_of(names_for(parts[0][0]), seed)
    scores: dict[str, list[Score]] = {name: [] for name in (UNIFORM, *fits)}
    units = {UNIFORM: ""}
    for number, (fitted, tested) in enumerate(parts):
        if UNIFORM not in fits:
            law = plackett_luce(fitted.assortments.items, np.ones(fitted.assortments.n_items))
            guess = EntropyModel(law, fitted.assortments, np.zeros(fitted.assortments.n_coordinates))
            scores[UNIFORM].append(score(guess, tested, epsilon))
        for place, (name, fit) in enumerate(fits.items()):
            if watch is not None:
                watch(name, (number + place / len(fits)) / len(parts))
            began = perf_counter()
            try:
                model = fit(fitted)
            except ValueError as error:
                raise ValueError(f"The model {name!r} could not be fitted in fold {number + 1}: {error}") from error
            seconds = perf_counter() - began
            size, units[name] = _size(model)
            scores[name].append(score(model, tested, epsilon, seconds, size))
            if holdout == "choices" and isinstance(model, EntropyModel) and name in METHODS:
                shrunk = f"{name}, shrunk"
                units[shrunk] = units[name]
                model.note(**tally_facts(model, fitted))
                scores.setdefault(shrunk, []).append(score(ShrunkModel(model), tested, epsilon, seconds, size))
    tested_counts = [tested for _, tested in parts]
    return Comparison(
        rows=ranked(scores, units),
        holdout=holdout,
        epsilon=epsilon,
        observations=sum(tested.observations for tested in tested_counts),
        uniform=float(np.mean([_per_choice(tested, _uniform(tested)) for tested in tested_counts])),
        hindsight=float(np.mean([_per_choice(tested, tested.frequencies()) for tested in tested_counts])),
    )


def score(model: Predicts, tested: ChoiceCounts, epsilon: float = 1e-3, seconds: float = 0.0, size: int = 0) -> Score:
    """Score a model on counted choices; every offer must have some."""
    offers = tested.assortments
    predicted = model.probabilities(offers)
    if not (predicted.shape == (offers.n_coordinates,) and np.all(predicted >= 0.0)):
        raise ValueError(f"The model {model!r} does not give a probability >= 0 for every coordinate: see ChoiceModel.")
    apart = predicted - tested.frequencies()
    weight = tested.totals[offers.owner]
    return Score(
        log_likelihood=_per_choice(tested, (1.0 - epsilon) * predicted + epsilon * _uniform(tested)),
        raw_log_likelihood=_per_choice(tested, predicted),
        rmse=float(np.sqrt(np.average(apart**2, weights=weight))),
        mae=float(np.average(np.abs(apart), weights=weight)),
        seconds=seconds,
        size=size,
    )


def names_for(counts: ChoiceCounts) -> list[str]:
    """Return all models that can be fitted to the counts; if items have an order, those that support it."""
    offers = counts.assortments
    if not offers.order:
        return list(MODELS)
    priced = PRICED if PriceLevels.from_labels(offers.items) else {}
    return [name for name in MODELS if name not in ORDERLESS] + list(priced)


def fits_of(models: Sequence[str] | Mapping[str, Fit], seed: int) -> dict[str, Fit]:
    """Return the function that fits each model, given names or functions."""
    if isinstance(models, Mapping):
        fits = dict(models)
    else:
        names = [models] if isinstance(models, str) else list(models)
        known = MODELS | PRICED
        for name in names:
            if name not in known:
                raise ValueError(f"Unknown model {name!r}: choose from {', '.join(known)}.")
        fits = {name: partial(known[name], seed=seed) for name in names}
    if not fits:
        raise ValueError("There is no model to compare: give at least one.")
    return fits


def _size(model: ChoiceModel) -> tuple[int, str]:
    if hasattr(model, "n_parameters"):
        return int(model.n_parameters), "parameters"
    if isinstance(model, EntropyModel):
        return model.duals.size, "parameters"
    return (len(model.weights), "rankings") if hasattr(model, "weights") else (0, "")


def _uniform(tested: ChoiceCounts) -> Vec:
    return 1.0 / np.diff(tested.assortments.indptr)[tested.assortments.owner]


def _per_choice(tested: ChoiceCounts, probabilities: Vec) -> float:
    return data_log_likelihood(tested, probabilities) / tested.observations
