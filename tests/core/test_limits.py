"""Settings at their limits: the last value that is allowed is taken, and the next one is refused by its name."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rankstream as rs
from rankstream import (
    Assortments,
    ChoiceCounts,
    DecayingCounts,
    PriceLevels,
    RankingModel,
    distances,
    methods,
    simulate,
    with_outside,
)
from rankstream._core.arguments import number_between, whole_number
from rankstream.certificate import Proof
from rankstream.certificate.guarantees import data_error_rate, guaranteed_gap, rounds_needed
from rankstream.columns.corrective import fit_nearest
from rankstream.columns.mle import fit_mle
from rankstream.columns.plausible import revenue_range
from rankstream.columns.rationality import rationality
from rankstream.data.drift import drift_report
from rankstream.data.observations import splits
from rankstream.data.readers.options import check_options
from rankstream.decide.problem.offers import make_problem
from rankstream.distances.selection import optimal_smoothing
from rankstream.estimation.intervals import _quantile
from rankstream.evaluate.compare import compare
from rankstream.evaluate.customer_types import favourite_changes
from rankstream.learners import DualAveraging, MirrorDescent
from rankstream.models.entropy.fit import fit_max_entropy
from rankstream.models.parametric.latent_class import fit_latent_class
from rankstream.models.parametric.markov_chain import fit_markov_chain
from rankstream.models.parametric.mnl import fit_mnl
from rankstream.oracles import DenseOracle, SearchOracle
from rankstream.plots.models import wilson
from rankstream.solver.loop import Solver
from rankstream.solver.runs import Run
from rankstream.streams.live_settings import DetectorSettings, LiveSettings

pytestmark = pytest.mark.quick

OFFERS = Assortments([("a", "b", "n"), ("b", "c", "n"), ("a", "c", "n")])
COUNTS = ChoiceCounts(OFFERS, range(1, 10))
MODEL = RankingModel("abcn", [("a", "b", "c", "n"), ("n", "c", "b", "a")], [0.5, 0.5])
ITEMS: dict[Any, float] = {"a": 1.0, "b": 2.0, "c": 1.5}
MARGINS: dict[Any, float] = {**ITEMS, "n": 0.0}
ALMOST_1 = 1.0 - 1e-6


def of_solver(**settings: Any) -> Any:
    return Run(Solver(OFFERS, distances.L2(OFFERS), MirrorDescent(), DenseOracle(OFFERS)), **settings)


def entropy(**settings: Any) -> Any:
    return fit_max_entropy(COUNTS, **{"prior": "default", "trust": 1.0, "max_rounds": 2, **settings})


def ended(**settings: Any) -> Any:
    return revenue_range(COUNTS, ("a", "b", "n"), MARGINS, **settings)


def estimator(**settings: Any) -> Any:
    return rs.RankingEstimator("mnl", **settings).fit([[1, 1], [1, 1], [1, 1]], [0, 1, 1])


LIMITS: list[tuple[Callable[[Any], Any], str, Any, Any]] = [
    (lambda x: wilson(np.array([0.5]), np.array([4.0]), x), "interval", 1e-6, 0.0),
    (lambda x: wilson(np.array([0.5]), np.array([4.0]), x), "interval", ALMOST_1, 1.0),
    (_quantile, "interval", 1e-6, 0.0),
    (_quantile, "interval", ALMOST_1, 1.0),
    (lambda x: compare(COUNTS, ["mnl"], folds=2, epsilon=x), "epsilon", 1e-12, 0.0),
    (lambda x: compare(COUNTS, ["mnl"], folds=2, epsilon=x), "epsilon", 0.5, 0.6),
    (lambda x: favourite_changes(MODEL, MODEL, least=x), "least", 0.0, -0.1),
    (lambda x: favourite_changes(MODEL, MODEL, least=x), "least", 1.0, 1.1),
    (lambda x: guaranteed_gap("mirror-descent", "l2", OFFERS, rounds=x), "rounds", 1, 0),
    (lambda x: rounds_needed("mirror-descent", "l2", OFFERS, epsilon=x), "epsilon", 1.0, 0.0),
    (data_error_rate, "The decay", 1e-300, 0.0),
    (lambda x: Proof(OFFERS, COUNTS.frequencies(), items=x), "items", 0, -1),
    (lambda x: Proof(OFFERS, COUNTS.frequencies()).advance(budget=x), "budget", 0.0, -0.1),
    (lambda x: Proof(OFFERS, COUNTS.frequencies()).advance(rounds=x), "rounds", 0, -1),
    (lambda x: rs.next_offer(COUNTS, MARGINS, "ucb", method="mnl", redraws=x), "redraws", 2, 1),
    (lambda x: rs.next_offer(COUNTS, MARGINS, "ucb", method="mnl", optimism=x), "optimism", 0.0, -0.1),
    (lambda x: rs.next_offer(COUNTS, MARGINS, method="mnl", seed=x), "seed", 0, -1),
    (lambda x: rs.safe_offer(COUNTS, MARGINS, model=MODEL, accuracy=x), "accuracy", 1e-9, 0.0),
    (lambda x: rs.safe_offer(COUNTS, MARGINS, region="l1", model=MODEL, tolerance=x), "tolerance", 10.0, -0.1),
    (lambda x: rs.safe_offer(COUNTS, MARGINS, model=MODEL, max_scenarios=x), "max_scenarios", 1, 0),
    (lambda x: rs.safe_offer(COUNTS, MARGINS, model=MODEL, budget=x), "budget", 0.0, -0.1),
    (lambda x: rs.best_offer(MODEL, MARGINS, top=x), "top", 1, 0),
    (lambda x: rs.best_offer(MODEL, MARGINS, top=x), "top", 1000, 1001),
    (lambda x: rs.best_offer(MODEL, MARGINS, budget=x), "budget", 0.0, -0.1),
    (lambda x: make_problem(MODEL, MARGINS, at_least=x), "at_least", 0, -1),
    (lambda x: make_problem(MODEL, ITEMS, no_choice="n", at_most=x), "at_most", 0, -1),
    (lambda x: make_problem(MODEL, ITEMS, no_choice="n", space={"a": 1.0}, capacity=x), "capacity", 0.0, -0.1),
    (lambda x: make_problem(MODEL, MARGINS, present=["a"], changes=x), "changes", 0, -1),
    (lambda x: DenseOracle(OFFERS, seed=x), "seed", 0, -1),
    (lambda x: SearchOracle(OFFERS, budget=x), "budget", 0.0, -0.1),
    (lambda x: SearchOracle(OFFERS, rounds=x), "rounds", 1, 0),
    (lambda x: SearchOracle(OFFERS, sweeps=x), "sweeps", 0, -1),
    (lambda x: MirrorDescent(horizon=x), "horizon", 1, 0),
    (lambda x: MirrorDescent(step=x), "step", 1e-300, 0.0),
    (lambda x: MirrorDescent(step=x), "step", 1e300, 1e301),
    (lambda x: MirrorDescent(power=x), "The averaging power", 0.0, -0.1),
    (lambda x: MirrorDescent(power=x), "The averaging power", 30.0, 30.1),
    (lambda x: MirrorDescent(weighting=lambda _: x).round_weight(1), "The weight of round 1", 1e-300, 0.0),
    (lambda x: MirrorDescent(weighting=lambda _: x).round_weight(1), "The weight of round 1", 1e300, 1e301),
    (lambda x: DualAveraging(scale=x), "scale", 1e-300, 0.0),
    (lambda x: DualAveraging(scale=x), "scale", 1e300, 1e301),
    (lambda x: distances.norm(x, OFFERS), "q", 1.0, 0.9),
    (lambda x: optimal_smoothing(distances.L2(OFFERS), x), "horizon", 1, 0),
    (lambda x: of_solver(tolerance=x), "tolerance", 0.0, -0.1),
    (lambda x: of_solver(certify_every=x), "certify_every", 1, 0),
    (lambda x: MODEL.sparsify(tolerance=x, assortments=OFFERS), "tolerance", 0.0, -0.1),
    (lambda x: MODEL.sparsify(max_rankings=x, assortments=OFFERS), "max_rankings", 1, 0),
    (lambda x: fit_mnl(COUNTS, smoothing=x), "smoothing", 1e-9, 0.0),
    (lambda x: fit_mnl(COUNTS, max_rounds=x), "max_rounds", 1, 0),
    (lambda x: fit_markov_chain(COUNTS, smoothing=x, max_rounds=2), "smoothing", 1e-9, 0.0),
    (lambda x: fit_markov_chain(COUNTS, tolerance=x, max_rounds=2), "tolerance", 0.0, -0.1),
    (lambda x: fit_markov_chain(COUNTS, max_rounds=x), "max_rounds", 1, 0),
    (lambda x: fit_markov_chain(COUNTS, starts=x, max_rounds=2), "starts", 1, 0),
    (lambda x: fit_latent_class(COUNTS, classes=2, smoothing=x, max_rounds=2), "smoothing", 1e-9, 0.0),
    (lambda x: fit_latent_class(COUNTS, classes=2, tolerance=x, max_rounds=2), "tolerance", 0.0, -0.1),
    (lambda x: fit_latent_class(COUNTS, classes=2, starts=x, max_rounds=2), "starts", 1, 0),
    (lambda x: fit_latent_class(COUNTS, classes=2, max_rounds=x), "max_rounds", 1, 0),
    (lambda x: fit_latent_class(COUNTS, classes=x, max_rounds=2), "classes", 1, 0),
    (lambda x: fit_latent_class(COUNTS, classes="cv", tried=[x]), "A number of classes to try", 1, 0),
    (lambda x: fit_latent_class(COUNTS, classes="cv", folds=x, max_rounds=2), "folds", 2, 1),
    (lambda x: entropy(trust=x), "trust", 1e-9, 0.0),
    (lambda x: entropy(tolerance=x), "tolerance", 0.0, -0.1),
    (lambda x: entropy(max_rounds=x), "max_rounds", 1, 0),
    (lambda x: entropy().model.to_rankings(x), "size", 1, 0),
    (lambda x: splits(COUNTS, "choices", x), "folds", 2, 1),
    (lambda x: splits(COUNTS, "choices", 2, x), "seed", 0, -1),
    (lambda x: simulate.market(x, 4, n_offers=2, n_test=2), "seed", 0, -1),
    (lambda x: simulate.market(1, 4, segments=x, n_offers=2, n_test=2), "segments", 1, 0),
    (lambda x: simulate.market(1, 4, n_offers=x, n_test=2), "n_offers", 1, 0),
    (lambda x: simulate.market(1, 4, n_offers=2, n_test=x), "n_test", 1, 0),
    (lambda x: simulate.market(1, 4, spread=x, n_offers=2, n_test=2), "spread", 0.0, -0.1),
    (lambda x: with_outside(COUNTS, x, no_choice="z"), "The share", 0.0, -0.1),
    (lambda x: with_outside(COUNTS, x, no_choice="z"), "The share", 0.999, 1.0),
    (lambda x: with_outside(COUNTS, dict.fromkeys(OFFERS.offers, x), no_choice="z"), "The share of", 0.999, 1.0),
    (lambda x: with_outside(COUNTS, dict.fromkeys(OFFERS.offers, x), no_choice="z"), "The share of", 0.0, -0.1),
    (lambda x: check_options(prices="price", price_levels=x), "price_levels", 1, 0),
    (lambda x: DecayingCounts(OFFERS, x), "half_life", 1e-300, 0.0),
    (lambda x: DecayingCounts(OFFERS, x), "half_life", 1e300, 1e301),
    (lambda x: drift_report(COUNTS, COUNTS, level=x), "level", 1e-9, 0.0),
    (lambda x: drift_report(COUNTS, COUNTS, level=x), "level", 1.0 - 1e-9, 1.0),
    (lambda x: PriceLevels.occurring({"a": [2.0, 2.0]}, most=x), "most", 1, 0),
    (lambda x: PriceLevels.quantiles({"a": [2.0, 3.0]}, x), "n", 1, 0),
    (lambda x: ended(region="l1", tolerance=x), "tolerance", 10.0, -0.1),
    (lambda x: ended(accuracy=x), "accuracy", 0.0, -0.1),
    (lambda x: ended(budget=x), "budget", 0.0, -0.1),
    (lambda x: fit_mle(COUNTS, tolerance=x, max_rounds=3), "tolerance", 0.0, -0.1),
    (lambda x: fit_mle(COUNTS, max_rounds=x), "max_rounds", 1, 0),
    (lambda x: fit_nearest(OFFERS, COUNTS.target(), distances.L2(OFFERS), max_rounds=x), "max_rounds", 1, 0),
    (lambda x: fit_nearest(OFFERS, COUNTS.target(), distances.L2(OFFERS), tolerance=x), "tolerance", 0.0, -0.1),
    (lambda x: rationality(COUNTS, samples=x), "samples", 0, -1),
    (lambda x: rs.Bootstrap(COUNTS, "mnl", x), "replicates", 2, 1),
    (lambda x: rs.Bootstrap(COUNTS, "mnl", 2, x), "seed", 0, -1),
    (lambda x: rs.estimate(COUNTS, method="mnl", seed=x), "seed", 0, -1),
    (lambda x: rs.estimate(COUNTS, method=methods.Nearest(max_rankings=x)), "max_rankings", 1, 0),
    (lambda x: rs.estimate(COUNTS, method=methods.Nearest(gap=x)), "gap", 0.0, -0.1),
    (lambda x: rs.estimate(COUNTS, method=methods.PrimalDual(max_rounds=x)), "max_rounds", 1, 0),
    (lambda x: rs.estimate(COUNTS, method=methods.PrimalDual(max_rounds=2, gap=x)), "gap", 0.0, -0.1),
    (lambda x: rs.estimate(COUNTS, method=methods.PrimalDual(max_rounds=2, tolerance_mae=x)), "tolerance_mae", 0.0, -1),
    (lambda x: estimator(memory=x), "memory", 1, 0),
    (lambda x: estimator(rounds_per_batch=x), "rounds_per_batch", 1, 0),
    (lambda x: estimator(epsilon=x), "epsilon", 0.0, -0.1),
    (lambda x: estimator(epsilon=x), "epsilon", 1.0, 1.1),
    (lambda x: estimator(half_life=x), "half_life", 1e-300, 0.0),
    (lambda x: estimator().log_likelihood([[1, 1]], [0], x), "epsilon", 0.0, -0.1),
    (lambda x: estimator().log_likelihood([[1, 1]], [0], x), "epsilon", 1.0, 1.1),
    (lambda x: rs.fit_within(COUNTS, x), "budget", 0.0, -0.1),
    (lambda x: rs.fit_within(COUNTS, timeout=x), "timeout", 0.0, -0.1),
    (lambda x: DetectorSettings(half_life=x), "half_life", 1e-300, 0.0),
    (lambda x: DetectorSettings(threshold=x), "threshold", 0.0, -0.1),
    (lambda x: DetectorSettings(block=x), "block", 1, 0),
    (lambda x: LiveSettings.of(window=x), "window", 1, 0),
    (lambda x: LiveSettings.of(rounds=x), "rounds", 1, 0),
    (lambda x: LiveSettings.of(seed=x), "seed", 0, -1),
]
"""What takes the setting, its name in the error, the last value that is allowed, and one beyond it."""


@pytest.mark.parametrize(("take", "name", "allowed", "refused"), LIMITS)
@pytest.mark.filterwarnings("ignore")
def test_settings_are_taken_up_to_their_limit(
    take: Callable[[Any], Any], name: str, allowed: Any, refused: Any
) -> None:
    take(allowed)
    with pytest.raises(ValueError, match=rf"^{re.escape(name)}.* is {re.escape(repr(refused))}: it must "):
        take(refused)


@pytest.mark.parametrize("value", [True, "1", None, [1.0], 1j])
def test_a_number_is_a_number(value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^x is {re.escape(repr(value))}: it must be a number\.$"):
        number_between("x", value, 0.0, 2.0)


@pytest.mark.parametrize("value", [1.0, "1", None, [1], 1j])
def test_a_whole_number_is_one(value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^x is {re.escape(repr(value))}: it must be a whole number\.$"):
        whole_number("x", value)
