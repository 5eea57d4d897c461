import subprocess
import sys
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog

import naive
import rankstream as rs
import strategies
from odd_data import odd_data
from rankstream._core.types import Vec
from rankstream.columns import column_generation, corrective
from rankstream.data import simulate
from rankstream.oracles.milp import MilpOracle


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


@given(data(), st.sampled_from(["l1", "linf"]))
@settings(max_examples=60)
def test_agrees_with_one_program_over_all_rankings(problem: tuple[rs.Assortments, Vec], norm: Any) -> None:
    offers, p = problem
    found = column_generation.fit_column_generation(p, offers, norm=norm)
    best = nearest(offers, p, norm)
    assert found.proven
    assert found.bound <= best + 1e-7
    assert found.value == pytest.approx(best, abs=1e-6)
    residual = np.abs(found.model.probabilities(offers) - p)
    assert (residual.sum() if norm == "l1" else residual.max()) == pytest.approx(found.value, abs=1e-9)


@given(data(), st.integers(1, 4))
@settings(max_examples=30)
def test_the_bound_holds_wherever_it_stops(problem: tuple[rs.Assortments, Vec], iterations: int) -> None:
    offers, p = problem
    found = column_generation.fit_column_generation(p, offers, max_iterations=iterations)
    assert found.bound <= nearest(offers, p, "l1") + 1e-9 <= found.value + 2e-9
    assert found.gap >= 0.0
    assert found.iterations <= iterations


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_weights_follow_the_observations(norm: Any) -> None:
    offers = rs.Assortments([("a", "b"), ("a", "b", "c"), ("b", "c"), ("a", "c")])
    counts = rs.ChoiceCounts(offers, [40, 60, 5, 2, 3, 100, 30, 1, 9])
    found = column_generation.fit_column_generation(counts, norm=norm, weighted=True)
    weights = np.array(rs.distances.observation_weights(counts))
    assert found.proven
    assert found.value == pytest.approx(nearest(offers, counts.frequencies(), norm, weights), abs=1e-7)


def test_another_oracle_gives_the_same_answer() -> None:
    market = simulate.market(seed=2, n_items=5, n_offers=8, n_test=1)
    counts = next(market.stream(first=200))
    ours = column_generation.fit_column_generation(counts)
    other = column_generation.fit_column_generation(counts, oracle=MilpOracle)
    assert ours.value == pytest.approx(other.value, abs=1e-6)
    assert ours.seconds.keys() == {"start", "master", "pricing", "total"}
    assert all(0.0 <= ours.seconds[part] <= ours.seconds["total"] + 1e-3 for part in ours.seconds)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_it_is_the_corrective_engine(norm: Any, weighted: bool) -> None:
    """The same rounds, rankings and bounds as ``fit_nearest`` on the offers that were seen."""
    market = simulate.market(seed=5, n_items=6, n_offers=12, n_test=1)
    counts = next(market.stream(first=400))
    found = column_generation.fit_column_generation(counts, norm=norm, weighted=weighted, tolerance=1e-7, seed=4)
    weights = rs.distances.observation_weights(counts) if weighted else None
    distance = rs.distances.make(norm, counts.assortments, weights=weights)
    same = corrective.fit_nearest(counts.assortments, counts, distance, tolerance=1e-7, seed=4)
    assert (found.value, found.bound) == (same.certificate.upper, same.certificate.lower)
    assert found.iterations == same.rounds
    orders = {tuple(order) for order in found.model.orders.tolist()}
    assert orders == {tuple(order) for order in same.model.orders.tolist()}
    assert found.columns >= len(orders)
    assert found.seconds["master"] > 0.0 < found.seconds["pricing"]


def test_a_deadline_ends_it_with_a_bound_that_holds() -> None:
    market = simulate.market(seed=0, n_items=8, n_offers=40, n_test=1)
    counts = next(market.stream(first=2000))
    early = column_generation.fit_column_generation(counts, max_seconds=0.0)
    late = column_generation.fit_column_generation(counts)
    assert not early.proven
    assert early.iterations == 1
    assert early.bound <= late.value <= early.value


def test_another_use_of_highs_with_more_threads_does_not_matter() -> None:
    script = """
import highspy, rankstream as rs
from rankstream.columns import column_generation
other = highspy.Highs()
other.setOptionValue("output_flag", False)
other.setOptionValue("threads", 2)
other.addVar(0.0, 1.0)
other.run()
print(column_generation.fit_column_generation([0.5, 0.5], rs.Assortments([("a", "b")])).proven)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_a_market_is_fitted_exactly() -> None:
    market = simulate.market(seed=0, n_items=7, n_offers=12, n_test=1)
    found = column_generation.fit_column_generation(market.frequencies(), market.assortments)
    assert found.proven
    assert found.value <= 1e-7
    assert np.abs(found.model.probabilities(market.assortments) - market.frequencies()).sum() <= 1e-6


@pytest.mark.parametrize("about", odd_data())
@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_survives_odd_data(about: str, norm: Any) -> None:
    counts = odd_data()[about]
    found = column_generation.fit_column_generation(counts, norm=norm, weighted=True)
    assert found.proven
    assert found.model.items == counts.assortments.items
    assert sum(found.model.predict(counts.assortments.offers[0]).values()) == pytest.approx(1.0)


def test_refusals() -> None:
    offers = rs.Assortments([("a", "b")])
    with pytest.raises(ValueError, match="assortments= as well"):
        column_generation.fit_column_generation([0.5, 0.5])
    with pytest.raises(ValueError, match="no observations yet"):
        column_generation.fit_column_generation(rs.ChoiceCounts(offers))
    with pytest.raises(ValueError, match="leave those out"):
        column_generation.fit_column_generation(rs.ChoiceCounts(offers, [1, 1]), rs.Assortments([("a", "c")]))
    with pytest.raises(ValueError, match="'l1' or 'linf'"):
        column_generation.fit_column_generation([0.5, 0.5], offers, norm="l2")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="give ChoiceCounts to weigh"):
        column_generation.fit_column_generation([0.5, 0.5], offers, weighted=True)
