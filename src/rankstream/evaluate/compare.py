"""Comparing choice models on choices that they were not fitted to, with words for what the numbers allow to say."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from rankstream._core.arguments import number_between
from rankstream._core.types import Vec
from rankstream.baselines import FITS
from rankstream.baselines import fit as fit_by_name
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observed import observed
from rankstream.data.splits import Holdout, splits
from rankstream.estimation.estimate import Estimate, estimate
from rankstream.evaluate.comparison import Comparison, Score, ranked
from rankstream.models.entropy import fit as entropy
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.parametric.fitted import data_log_likelihood
from rankstream.models.protocol import ChoiceModel
from rankstream.models.rankings import RankingModel

Fit = Callable[[ChoiceCounts], ChoiceModel]
Watch = Callable[[str, int, int], None]


def fit_mirror_descent(counts: ChoiceCounts, *, seed: int = 0, **options: Any) -> RankingModel:
    """The ranking model of ``estimate`` for all offers that have choices."""
    data = observed(counts)
    found: Estimate[RankingModel] = estimate(data.assortments, data, seed=seed, **options)
    return found.model


def fit_max_entropy(counts: ChoiceCounts, *, seed: int = 0, **options: Any) -> ChoiceModel:
    """The model of maximum entropy for all offers that have choices."""
    return entropy.fit(counts, seed=seed, **options).model


def fit_baseline(name: str, counts: ChoiceCounts, *, seed: int = 0, **options: Any) -> ChoiceModel:
    """What people use instead, by name (``baselines.FITS``)."""
    return fit_by_name(name, counts, seed=seed, **options)


MODELS: dict[str, Callable[..., ChoiceModel]] = {
    "max-entropy": fit_max_entropy,
    "mirror-descent": fit_mirror_descent,
    **{name: partial(fit_baseline, name) for name in FITS},
}


def compare(
    counts: ChoiceCounts | Sequence[ChoiceCounts],
    models: Sequence[str] | Mapping[str, Fit] | None = None,
    *,
    holdout: Holdout = "assortments",
    folds: int = 5,
    seed: int = 0,
    epsilon: float = 1e-3,
    watch: Watch | None = None,
) -> Comparison:
    """Fit every model to a part of the choices, score it on the rest, and rank by log-likelihood per choice.

    ``models`` are names of ``MODELS`` (all without it), or a mapping from names to functions that take counts and
    return a model with ``items``, ``predict`` and ``probabilities``. See ``splits`` for what ``holdout`` and ``folds``
    mean. A ranking model may give something that happened the probability 0, so a share ``epsilon`` of a uniform choice
    is mixed into every model alike; the raw value, which can be -inf, is reported too. ``watch`` is told before every
    fit: the name, how many fits are done and how many there are.

    >>> from rankstream import Assortments
    >>> offers = Assortments([("a", "b"), ("b", "c"), ("a", "c"), ("a", "b", "c")])
    >>> counts = ChoiceCounts(offers, [60, 40, 60, 40, 70, 30, 47, 32, 21])
    >>> compare(counts, ["mnl", "markov-chain"], folds=2).verdict
    'markov-chain is ahead, but mnl (0.00... ± 0.0...) is within noise of it.'
    """
    number_between("epsilon", epsilon, 1e-12, 0.5)
    fits = _named(models, seed)
    parts = splits(counts, holdout, folds, seed)
    scores: dict[str, list[Score]] = {name: [] for name in fits}
    units: dict[str, str] = {}
    for number, (fitted, tested) in enumerate(parts):
        for place, (name, fit) in enumerate(fits.items()):
            if watch is not None:
                watch(name, number * len(fits) + place, len(parts) * len(fits))
            began = perf_counter()
            try:
                model = fit(fitted)
            except ValueError as error:
                raise ValueError(f"The model {name!r} could not be fitted in fold {number + 1}: {error}") from error
            seconds = perf_counter() - began
            size, units[name] = _size(model)
            scores[name].append(score(model, tested, epsilon, seconds, size))
    tested_counts = [tested for _, tested in parts]
    return Comparison(
        rows=ranked(scores, units),
        holdout=holdout,
        epsilon=epsilon,
        observations=sum(tested.observations for tested in tested_counts),
        uniform=float(np.mean([_per_choice(tested, _uniform(tested)) for tested in tested_counts])),
        hindsight=float(np.mean([_per_choice(tested, tested.frequencies()) for tested in tested_counts])),
    )


def score(
    model: ChoiceModel, tested: ChoiceCounts, epsilon: float = 1e-3, seconds: float = 0.0, size: int = 0
) -> Score:
    """How well a model predicts counted choices; every offer must have some."""
    offers = tested.assortments
    predicted = model.probabilities(offers)
    if not (predicted.shape == (offers.n_coordinates,) and np.all(predicted >= 0.0)):
        raise ValueError(f"The model {model!r} does not give one probability >= 0 for every coordinate.")
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


def _named(models: Sequence[str] | Mapping[str, Fit] | None, seed: int) -> dict[str, Fit]:
    if isinstance(models, Mapping):
        fits = dict(models)
    else:
        names = list(MODELS) if models is None else [models] if isinstance(models, str) else list(models)
        for name in names:
            if name not in MODELS:
                raise ValueError(f"There is no model {name!r}: choose from {', '.join(MODELS)}.")
        fits = {name: partial(MODELS[name], seed=seed) for name in names}
    if not fits:
        raise ValueError("There is no model to compare: name at least one.")
    return fits


def _size(model: ChoiceModel) -> tuple[int, str]:
    if hasattr(model, "n_parameters"):
        return int(model.n_parameters), "parameters"
    if isinstance(model, EntropyModel):
        return model.duals.size, "duals"
    return (len(model.weights), "rankings") if hasattr(model, "weights") else (0, "")


def _uniform(tested: ChoiceCounts) -> Vec:
    shares: Vec = 1.0 / np.diff(tested.assortments.indptr)[tested.assortments.owner]
    return shares


def _per_choice(tested: ChoiceCounts, probabilities: Vec) -> float:
    return data_log_likelihood(tested, probabilities) / tested.observations
