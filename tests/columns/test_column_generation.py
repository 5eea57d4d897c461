import subprocess
import sys

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog

import naive
import rankstream as rs
import strategies
from milp_oracle import MilpOracle
from odd_data import odd_data
from rankstream._core.types import Vec
from rankstream._core.watch import Deadline
from rankstream.columns.corrective import fit_nearest
from rankstream.data import simulate
from rankstream.evaluate.compare import MODELS


def nearest(offers: rs.Assortments, p: Vec, norm: str, weights: Vec | None = None) -> float:
    """The least distance by one linear program over all rankings."""
    corners = np.unique(naive.all_vertices(offers), axis=0)
    each = np.ones(p.size) if weights is None else weights[offers.owner]
    k, size = len(corners), p.size
    n_errors = size if norm == "l1" else 1
    shape = np.diag(1.0 / each) if norm == "l1" else (1.0 / each)[:, None]
    above = np.hstack((corners.T, -shape))
    below = np.hstack((-corners.T, -shape))
    found = linprog(
        np.concatenate((np.zeros(k), np.ones(n_errors))),
        A_ub=np.vstack((above, below)),
        b_ub=np.concatenate((p, -p)),
        A_eq=np.concatenate((np.ones(k), np.zeros(n_errors)))[None, :],
        b_eq=[1.0],
    )
    return float(found.fun)


@st.composite
def data(draw: st.DrawFn) -> tuple[rs.Assortments, Vec]:
    offers = draw(strategies.assortments(most_items=5))
    return offers, draw(strategies.frequencies(offers))


def weighted(counts: rs.ChoiceCounts, norm: str) -> rs.distances.Distance:
    return rs.distances.make(norm, counts.assortments, weights=rs.distances.observation_weights(counts))


@given(data(), st.sampled_from(["l1", "linf"]))
@settings(max_examples=60)
def test_agrees_with_one_program_over_all_rankings(problem: tuple[rs.Assortments, Vec], norm: str) -> None:
    offers, p = problem
    found = fit_nearest(offers, p, norm, tolerance=1e-7)
    best = nearest(offers, p, norm)
    assert found.converged
    assert found.certificate.lower <= best + 1e-7
    assert found.certificate.upper == pytest.approx(best, abs=1e-6)
    residual = np.abs(found.model.probabilities(offers) - p)
    value = residual.sum() if norm == "l1" else residual.max()
    assert value == pytest.approx(found.certificate.upper, abs=1e-9)


@given(data(), st.integers(1, 4))
@settings(max_examples=30)
def test_the_bound_holds_wherever_it_stops(problem: tuple[rs.Assortments, Vec], rounds: int) -> None:
    offers, p = problem
    found = fit_nearest(offers, p, "l1", tolerance=1e-7, max_rounds=rounds)
    assert found.certificate.lower <= nearest(offers, p, "l1") + 1e-9 <= found.certificate.upper + 2e-9
    assert found.certificate.gap >= 0.0
    assert found.rounds <= rounds


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_weights_follow_the_observations(norm: str) -> None:
    offers = rs.Assortments([("a", "b"), ("a", "b", "c"), ("b", "c"), ("a", "c")])
    counts = rs.ChoiceCounts(offers, [40, 60, 5, 2, 3, 100, 30, 1, 9])
    found = fit_nearest(offers, counts, weighted(counts, norm), tolerance=1e-7)
    weights = np.array(rs.distances.observation_weights(counts))
    assert found.converged
    least = nearest(offers, counts.frequencies(), norm, weights)
    assert found.certificate.upper == pytest.approx(least, abs=1e-7)


def test_another_oracle_gives_the_same_answer() -> None:
    market = simulate.market(seed=2, n_items=5, n_offers=8, n_test=1)
    counts = next(market.stream(first=200))
    ours = fit_nearest(counts.assortments, counts, "l1", tolerance=1e-7)
    other = fit_nearest(counts.assortments, counts, "l1", MilpOracle(counts.assortments), tolerance=1e-7)
    assert ours.certificate.upper == pytest.approx(other.certificate.upper, abs=1e-6)


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_the_name_in_comparisons_is_the_nearest_method(norm: str) -> None:
    market = simulate.market(seed=5, n_items=6, n_offers=12, n_test=1)
    counts = next(market.stream(first=400))
    model = MODELS[f"nearest-{norm}"](counts, seed=4)
    method = rs.methods.Nearest(distance=norm, weights="equal", gap=1e-7)
    same = rs.estimate(counts, method=method, seed=4).model
    np.testing.assert_allclose(model.probabilities(counts.assortments), same.probabilities(counts.assortments))


def test_a_deadline_ends_it_with_a_bound_that_holds() -> None:
    market = simulate.market(seed=0, n_items=8, n_offers=40, n_test=1)
    counts = next(market.stream(first=2000))
    early = fit_nearest(counts.assortments, counts, "l1", watch=Deadline(0.0))
    late = fit_nearest(counts.assortments, counts, "l1", tolerance=1e-7)
    assert not early.converged
    assert early.rounds == 1
    assert early.certificate.lower <= late.certificate.upper <= early.certificate.upper


def test_another_use_of_highs_with_more_threads_does_not_matter() -> None:
    script = """
import highspy, rankstream as rs
other = highspy.Highs()
other.setOptionValue("output_flag", False)
other.setOptionValue("threads", 2)
other.addVar(0.0, 1.0)
other.run()
counts = rs.ChoiceCounts(rs.Assortments([("tea", "pie"), ("tea", "pie", "nothing")]), [4, 6, 5, 2, 3])
fit = rs.estimate(counts, method=rs.methods.Nearest(distance="l1", gap=1e-7))
print(fit.converged, fit.certificate.lower > 0.1)
print(rs.probability_range(counts, ("tea", "nothing"), "tea").proven)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "True"]


def test_a_market_is_fitted_exactly() -> None:
    market = simulate.market(seed=0, n_items=7, n_offers=12, n_test=1)
    found = fit_nearest(market.assortments, market.frequencies(), "l1", tolerance=1e-7)
    assert found.converged
    assert found.certificate.upper <= 1e-7
    assert np.abs(found.model.probabilities(market.assortments) - market.frequencies()).sum() <= 1e-6


@pytest.mark.parametrize("about", odd_data())
@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_survives_odd_data(about: str, norm: str) -> None:
    counts = odd_data()[about]
    found = fit_nearest(counts.assortments, counts, weighted(counts, norm), tolerance=1e-7)
    assert found.converged
    assert found.model.items == counts.assortments.items
    assert sum(found.model.predict(counts.assortments.offers[0]).values()) == pytest.approx(1.0)
