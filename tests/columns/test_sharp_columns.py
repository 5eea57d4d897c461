"""Bounds of column generation that is stopped early, or whose oracle proves less than it knows: against brute force."""

from collections.abc import Hashable
from dataclasses import replace
from math import lgamma, log
from typing import Any

import numpy as np
import pytest

import brute
import naive
from rankstream import (
    Assortments,
    Certificate,
    ChoiceCounts,
    distances,
    estimate,
    methods,
    oracles,
    probability_range,
    rationality,
    revenue_range,
)
from rankstream._core.types import Vec
from rankstream._core.watch import Deadline
from rankstream.columns.corrective import ColumnSearch, Goal, fit_nearest
from rankstream.columns.data import observe
from rankstream.columns.master import Ball, ball
from rankstream.columns.mle import KullbackLeibler, _Interior, fit_mle
from rankstream.columns.plausible import End, PlausibleModels
from rankstream.columns.rationality import SquaredSearch
from rankstream.oracles import Answer

OFFERS = Assortments([("a", "b"), ("b", "c"), ("a", "c"), ("a", "b", "c", "d"), ("c", "d")])
TALLIES = np.array([90.0, 10, 27, 3, 4, 36, 10, 20, 30, 40, 1, 9])  # a before b before c before a
COUNTS = ChoiceCounts(OFFERS, TALLIES)
GIVEN = brute.problem(list(OFFERS.offers), TALLIES)
EQUAL = brute.problem(list(OFFERS.offers), TALLIES, "equal")
PRICES: dict[Hashable, float] = {"a": 5.0, "c": 1.0, "d": 3.0}
CORNERS = naive.all_vertices(OFFERS)


def least(name: str, given: brute.Problem) -> float:
    return brute.least(lambda point: brute.value(name, point, given), name, given, CORNERS)


class Modest:
    """An exact oracle that answers with one ranking, and proves less than it knows by ``short``."""

    def __init__(self, offers: Assortments, short: float) -> None:
        self.exact, self.short = oracles.auto(offers), short

    def cheapest(self, costs: Vec) -> Answer:
        found = self.exact.cheapest(costs)
        return Answer(found.ranking, found.value, found.value - self.short)


def fit_norm(norm: str, weighted: bool, rounds: int, make: Any) -> brute.ProvenFit:
    """The nearest model, as the other fits answer."""
    distance = distances.make(norm, OFFERS, weights=distances.observation_weights(COUNTS) if weighted else None)
    oracle = None if make is None else make(OFFERS)
    fit = fit_nearest(OFFERS, COUNTS, distance, oracle, tolerance=1e-7, max_rounds=rounds)
    bounds = fit.certificate
    return brute.ProvenFit(fit.model, bounds.upper, bounds.lower, fit.converged, fit.rounds, {})


def fit_squares(rounds: int, make: Any) -> brute.ProvenFit:
    """Frank-Wolfe; its distance is half the squares, each offer weighted by its share times their number."""
    oracle = None if make is None else make(OFFERS)
    settings = methods.PrimalDual(
        distance="squared-l2", learner="follow-the-leader", oracle=oracle, gap=1e-9, max_rounds=rounds
    )
    fit = estimate(COUNTS, method=settings)
    upper, lower = (2.0 * end / OFFERS.n_offers for end in (fit.certificate.upper, fit.certificate.lower))
    return brute.ProvenFit(fit.model, upper, lower, fit.converged, fit.rounds, {})


FITS: dict[str, tuple[str, brute.Problem, Any]] = {
    "l1": ("l1", EQUAL, lambda rounds, oracle: fit_norm("l1", False, rounds, oracle)),
    "weighted linf": ("linf", GIVEN, lambda rounds, oracle: fit_norm("linf", True, rounds, oracle)),
    "squares": ("squares", GIVEN, fit_squares),
    "likelihood": ("likelihood", GIVEN, lambda rounds, oracle: fit_mle(COUNTS, max_rounds=rounds, oracle=oracle)),
}


@pytest.mark.parametrize("name", FITS)
def test_bounds_hold_whenever_one_stops(name: str) -> None:
    loss, given, fit = FITS[name]
    best = least(loss, given)
    opened = 0
    for rounds in (1, 2, 3, 5, 300):
        found = fit(rounds, None)
        point = brute.of_model(found.model, given.offers)
        assert found.bound <= best + 1e-7 <= found.value + 2e-7
        assert found.value == pytest.approx(brute.value(loss, point, given), abs=1e-9)
        assert found.gap == found.value - found.bound
        assert found.iterations <= rounds
        opened += found.gap > 1e-3
    assert opened
    assert found.gap < 0.02
    assert best > 1e-3  # so that no bound is good because it is 0


@pytest.mark.parametrize("name", FITS)
def test_bounds_are_the_oracles_own(name: str) -> None:
    """What an oracle does not prove is missing in the bound, and a fit that rests on it is not called proven."""
    fit = FITS[name][2]
    found = fit(300, lambda offers: Modest(offers, 0.05))
    exact = fit(300, None)
    assert found.bound < exact.bound - 1e-4
    assert found.value <= exact.value + 0.02
    assert not found.proven


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_nearest_models_of_a_modest_oracle(norm: str) -> None:
    exact = fit_nearest(OFFERS, EQUAL.frequencies, norm, tolerance=1e-7)
    assert exact.certificate.lower == pytest.approx(least(norm, EQUAL), abs=1e-6)
    assert exact.certificate.exact
    modest = fit_nearest(OFFERS, EQUAL.frequencies, norm, Modest(OFFERS, 0.125), tolerance=1e-7, max_rounds=200)
    assert modest.certificate.lower <= exact.certificate.lower - 0.1
    assert modest.certificate.upper <= exact.certificate.upper + 0.05
    assert not modest.certificate.exact
    assert not modest.converged


def test_squares_of_bounds_are_bounds_of_squares() -> None:
    observed = observe(COUNTS)
    search = SquaredSearch(observed, observed.finder(None, "random", 0))
    best, gaps = least("squares", GIVEN), []
    for rounds in (1, 2, 3):
        found = search.run(observed.frequencies, 1e-12, max_rounds=rounds)
        gaps.append(found.value - found.bound)
        assert 0.0 <= found.bound <= best + 1e-9 <= found.value + 2e-9
        assert found.value == pytest.approx(brute.value("squares", found.mixture.point, GIVEN))
    assert gaps[0] > 1e-4  # or nothing would be open
    below = search.run(observed.frequencies, 1e-12, against=100.0 * best)
    assert below.value < 100.0 * best
    assert below.iterations < search.run(observed.frequencies, 1e-12).iterations


def test_either_bound_is_squared(monkeypatch: pytest.MonkeyPatch) -> None:
    observed = observe(COUNTS)
    claimed = Certificate(upper=3.0, lower=2.0, oracle_regret=0.0, dual_regret=0.0, exact=True)
    monkeypatch.setattr(ColumnSearch, "certificate", lambda *_: claimed)
    found = SquaredSearch(observed, observed.finder(None, "random", 0)).run(observed.frequencies, 1e-6)
    assert (found.value, found.bound) == (9.0, 4.0)


def test_rationality_encloses_both_losses() -> None:
    report = rationality(COUNTS, samples=0)
    assert report.lower <= least("squares", GIVEN) + 1e-9 <= report.upper + 2e-9
    assert report.divergence[0] <= least("likelihood", GIVEN) + 1e-7 <= report.divergence[1] + 2e-7
    assert report.statistic == pytest.approx(TALLIES.sum() * report.upper)
    assert report.stretch == pytest.approx(2.0 * (TALLIES.sum() / 5) ** 0.25)


@pytest.mark.parametrize("region", ["l1", "linf"])
@pytest.mark.parametrize("radius", [0.0, 0.4, 2.0])
def test_ranges_are_those_of_a_linear_program(region: Any, radius: float) -> None:
    offer = ("a", "c", "d")
    gains = np.array([5.0, 1.0, 3.0])
    found = revenue_range(COUNTS, offer, PRICES, radius, region=region)
    smallest = least(region, EQUAL)
    assert found.feasible == (radius >= smallest)
    assert found.tolerance == pytest.approx(max(radius, smallest), abs=1e-6)
    low, high = brute.extremes(EQUAL, offer, gains, region, found.tolerance + 1e-7, list("abcd"))
    assert [found.low, found.high] == pytest.approx([low, high], abs=1e-4)
    assert found.low <= found.predicted + 1e-6 <= found.high + 2e-6
    assert found.width == found.high - found.low
    share = probability_range(COUNTS, offer, "c", radius, region=region)
    ends = brute.extremes(EQUAL, offer, np.array([0.0, 1.0, 0.0]), region, share.tolerance + 1e-7, list("abcd"))
    assert [share.low, share.high] == pytest.approx(ends, abs=1e-4)


def test_ranges_of_a_modest_oracle_are_wider() -> None:
    offer = ("a", "c", "d")
    exact = revenue_range(COUNTS, offer, PRICES, 2.0)
    modest = revenue_range(COUNTS, offer, PRICES, 2.0, oracle=lambda offers: Modest(offers, 0.02))
    assert exact.proven
    assert not modest.proven
    assert modest.low <= exact.low - 0.05
    assert modest.high >= exact.high + 0.05


def test_when_it_is_enough() -> None:
    assert Goal("mae", 0.1).is_met(0.1, 9.0, 0.0)
    assert not Goal("mae", 0.1).is_met(0.11, 0.0, 0.0)
    assert Goal("gap", 0.25).is_met(9.0, 1.0, 0.75)
    assert not Goal("gap", 0.25).is_met(0.0, 1.0, 0.5)
    squared = Goal("squared-gap", 0.5, against=4.0)
    assert squared.is_met(9.0, 1.0, 0.8)
    assert squared.is_met(9.0, 1.5, 0.0)  # 2.25 is below
    assert squared.is_met(9.0, 3.0, 2.0)  # 4 is not
    assert not squared.is_met(9.0, 3.0, 1.9)
    assert not Goal("squared-gap", 0.5).is_met(0.0, 3.0, 2.9)


def test_balls_by_hand() -> None:
    residual, dual = np.array([0.1, -0.3, 0.2]), np.array([2.0, -1.0, 0.5])
    grouped = Ball(np.array([0, 0, 1]), np.array([0.5, 2.0]))
    assert grouped.distance(residual) == pytest.approx(max(0.4 / 0.5, 0.2 / 2.0))
    assert grouped.width(dual) == pytest.approx(0.5 * 2.0 + 2.0 * 0.5)
    assert Ball(np.array([0, 0, 1]), np.array([0.0, 2.0])).distance(residual) == pytest.approx(0.1)
    assert ball(3, "l1").distance(residual) == pytest.approx(0.6)
    assert ball(3, "linf").distance(residual) == pytest.approx(0.3)
    sided = ball(3, "linf", np.array([1, -1, -1]))
    assert sided.distance(residual) == pytest.approx(0.3)
    assert sided.distance(-residual) == pytest.approx(0.2)
    assert sided.clip(dual).tolist() == [0.0, 0.0, 0.5]


def test_losses_by_hand() -> None:
    observed = observe(COUNTS)
    divergence, point = KullbackLeibler(observed), np.full(OFFERS.n_coordinates, 0.3)
    assert divergence.value(point[divergence.places]) == pytest.approx(brute.value("likelihood", point, GIVEN))
    assert divergence.slack(-3.0) == pytest.approx(log(3.0))
    assert divergence.slack(-0.5) == 0.0
    small, here = 1e-6, point[divergence.places]
    up, down = here.copy(), here.copy()
    up[2], down[2] = here[2] + small, here[2] - small
    change = (divergence.value(up) - divergence.value(down)) / (2.0 * small)
    assert divergence.slope(here)[2] == pytest.approx(change, rel=1e-4)


def test_columns_that_are_alike_get_a_heavier_diagonal() -> None:
    interior = object.__new__(_Interior)
    interior.slack, interior.weights = np.zeros(3), np.full(3, 1.0 / 3.0)
    matrix, curvature = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.full(2, 2.0**20)
    solved = interior._solve(matrix, curvature, np.ones((3, 1)))  # the system itself is singular, exactly
    np.testing.assert_allclose((matrix * curvature) @ matrix.T @ solved, 1.0, atol=1e-6)


def test_a_range_is_proven_if_both_of_its_ends_are(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = PlausibleModels.end
    for unproven in (1.0, -1.0):

        def end(
            self: PlausibleModels, search: Any, nearest: Any, gains: Vec, limits: Any, sign: float = unproven
        ) -> End:
            found = exact(self, search, nearest, gains, limits)
            return replace(found, gap=1.0) if sign * gains.sum() > 0.0 else found

        monkeypatch.setattr(PlausibleModels, "end", end)
        assert not revenue_range(COUNTS, ("a", "c", "d"), PRICES).proven


@pytest.mark.parametrize("option", ["accuracy", "budget"])
@pytest.mark.parametrize("wrong", [-1.0, float("nan")])
def test_limits_of_a_range_are_checked(option: str, wrong: float) -> None:
    options: dict[str, Any] = {option: wrong}
    with pytest.raises(ValueError, match=option):
        revenue_range(COUNTS, ("a", "c", "d"), PRICES, **options)


def test_evidence_is_lost_to_optimisation_by_a_hundredth_of_a_nat() -> None:
    counts = ChoiceCounts(OFFERS, 20.0 * TALLIES)
    mixture = 0.0
    for offer in range(OFFERS.n_offers):
        tallies = counts.tallies[OFFERS.owner == offer]
        mixture += lgamma(0.5 * tallies.size) - lgamma(tallies.sum() + 0.5 * tallies.size)
        mixture += sum(lgamma(tally + 0.5) - lgamma(0.5) for tally in tallies.tolist())
    evidence = mixture - fit_mle(counts, tolerance=1e-8).log_likelihood
    found = -log(rationality(counts, samples=0).anytime_p_value)
    assert evidence - 0.012 <= found <= evidence
    assert evidence > 50.0


@pytest.mark.parametrize("wrong", [{"tolerance": -1.0}, {"max_rounds": 0}])
def test_limits_of_a_fit_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        fit_mle(COUNTS, **wrong)


@pytest.mark.parametrize("wrong", [{"tolerance": -1.0}, {"max_rounds": 0}])
def test_limits_of_the_nearest_model_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        fit_nearest(OFFERS, COUNTS, **wrong)


def test_a_long_time_is_no_limit_and_none_is_one() -> None:
    free, long, none = (fit_mle(COUNTS, watch=Deadline(seconds)) for seconds in (np.inf, 1000.0, 0.0))
    assert (long.value, long.bound, long.iterations) == (free.value, free.bound, free.iterations)
    assert none.iterations < free.iterations
    assert 0.0 <= free.seconds["start"] < free.seconds["total"] < 1000.0
    assert free.seconds["master"] + free.seconds["pricing"] < free.seconds["total"]
