import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import naive
import rankstream as rs
import strategies
from milp_oracle import MilpOracle
from odd_data import odd_data
from rankstream._core.types import Vec
from rankstream.columns import mle
from rankstream.columns.data import observe
from rankstream.data import simulate
from rankstream.models.parametric.latent_class import fit_latent_class
from waits import Ticks

LOPSIDED: list[tuple[list[tuple[int, ...]], list[int]]] = [  # found by search: full steps never end on these
    (
        [(4,), (2, 1, 4), (1, 2), (3, 4, 0, 1, 2), (3, 4, 2, 0, 1), (3, 1, 0, 2, 4)],
        [11, 0, 0, 2, 21, 0, 0, 0, 0, 0, 1724, 0, 0, 3, 0, 1, 0, 0, 0, 0, 5],
    ),
    (
        [(1, 2, 3, 0), (2, 0), (1, 0, 2, 3), (2, 3)],
        [0, 0, 349, 1543, 68, 43456, 99300, 0, 42, 2, 54, 135919],
    ),
]


def best_log_likelihood(counts: rs.ChoiceCounts, rounds: int = 20_000) -> float:
    """By EM over all rankings: monotone, so it never exceeds the maximum."""
    chosen = counts.tallies > 0.0
    corners = np.unique(naive.all_vertices(counts.assortments)[:, chosen], axis=0)
    shares = counts.tallies[chosen] / counts.observations
    weights = np.full(len(corners), 1.0 / len(corners))
    for _ in range(rounds):
        weights *= corners @ (shares / (weights @ corners))
    return float(counts.observations * (shares @ np.log(weights @ corners)))


@st.composite
def tallies(draw: st.DrawFn, most_items: int = 5) -> rs.ChoiceCounts:
    offers = draw(strategies.assortments(most_items))
    numbers = st.integers(0, 30) | st.just(0) | st.just(10**9)
    size = offers.n_coordinates
    drawn = draw(st.lists(numbers, min_size=size, max_size=size))
    drawn[0] += 1
    return rs.ChoiceCounts(offers, drawn)


@given(tallies())
@settings(max_examples=60)
def test_gap_is_met_and_every_number_is_that_of_the_model(counts: rs.ChoiceCounts) -> None:
    found = mle.fit_mle(counts, tolerance=1e-6)
    assert found.proven
    assert 0.0 <= found.gap <= 1e-6
    chosen = counts.tallies > 0.0
    point = found.model.probabilities(counts.assortments)[chosen]
    assert found.log_likelihood == pytest.approx(float(counts.tallies[chosen] @ np.log(point)), rel=1e-9, abs=1e-9)
    shares = counts.tallies[chosen] / counts.observations
    assert found.value == pytest.approx(float(shares @ np.log(counts.frequencies()[chosen] / point)), abs=1e-9)


@given(tallies(most_items=4))
@settings(max_examples=15)
def test_agrees_with_em_over_all_rankings(counts: rs.ChoiceCounts) -> None:
    found = mle.fit_mle(counts, tolerance=1e-9)
    slow = best_log_likelihood(counts, rounds=2000)
    assert slow <= found.log_likelihood + counts.observations * (found.gap + 1e-12)


def test_agrees_with_long_em() -> None:
    market = simulate.market(seed=4, n_items=4, n_offers=8, n_test=1)
    counts = next(market.stream(first=150))
    found = mle.fit_mle(counts, tolerance=1e-9)
    assert found.log_likelihood == pytest.approx(best_log_likelihood(counts), abs=1e-3)


def logit_log_likelihood(counts: rs.ChoiceCounts, rounds: int = 3000) -> float:
    """The multinomial logit's, by Hunter's MM updates of the attractions."""
    offers = counts.assortments
    chosen = np.bincount(offers.members, weights=counts.tallies, minlength=offers.n_items)
    attraction = np.ones(offers.n_items)
    for _ in range(rounds):
        sums = np.add.reduceat(attraction[offers.members], offers.indptr[:-1])
        shown = np.bincount(offers.members, weights=(counts.totals / sums)[offers.owner], minlength=offers.n_items)
        attraction = np.maximum(chosen, 1e-9) / np.maximum(shown, 1e-300)
        attraction /= attraction.sum()
    sums = np.add.reduceat(attraction[offers.members], offers.indptr[:-1])
    return float(counts.tallies @ np.log(attraction[offers.members] / sums[offers.owner]))


@pytest.mark.parametrize("seed", range(4))
def test_is_at_least_as_likely_as_any_logit(seed: int) -> None:
    counts = next(simulate.market(seed, n_items=7, n_offers=15, n_test=1).stream(first=500))
    found = mle.fit_mle(counts)
    assert found.log_likelihood + counts.observations * found.gap >= logit_log_likelihood(counts)
    assert found.log_likelihood >= logit_log_likelihood(counts)


@pytest.mark.parametrize("classes", [1, 2, 4])
def test_is_at_least_as_likely_as_latent_classes(classes: int) -> None:
    market = simulate.market(seed=3, n_items=6, n_offers=12, n_test=1)
    counts = next(market.stream(first=1500))
    mixture = fit_latent_class(counts, classes=classes, smoothing=1e-6)
    assert mle.fit_mle(counts, tolerance=1e-7).log_likelihood >= mixture.log_likelihood - 1e-3


def test_is_at_least_as_likely_as_the_truth() -> None:
    market = simulate.market(seed=1)  # a mixture of logits is a ranking model
    counts = next(market.stream())
    found = mle.fit_mle(counts)
    truth = float(counts.tallies @ np.log(market.frequencies()))
    assert found.proven
    assert found.log_likelihood + counts.observations * found.gap >= truth


@given(tallies(), st.integers(1, 5))
@settings(max_examples=30)
def test_the_bound_holds_wherever_it_stops(counts: rs.ChoiceCounts, iterations: int) -> None:
    early = mle.fit_mle(counts, max_rounds=iterations, tolerance=0.0)
    late = mle.fit_mle(counts, tolerance=1e-9)
    assert early.bound <= late.value + 1e-12
    assert late.bound <= early.value + 1e-12


def test_other_pricing_changes_nothing() -> None:
    market = simulate.market(seed=2, n_items=5, n_offers=8, n_test=1)
    counts = next(market.stream(first=300))
    plain = mle.fit_mle(counts, tolerance=1e-7)
    other = mle.fit_mle(counts, tolerance=1e-7, oracle=MilpOracle)
    assert other.value == pytest.approx(plain.value, abs=2e-7)
    assert plain.seconds.keys() == {"start", "master", "pricing", "total"}


@pytest.mark.parametrize("case", LOPSIDED)
def test_lopsided_counts_do_not_make_it_swing(case: tuple[list[tuple[int, ...]], list[int]]) -> None:
    offers, numbers = case
    found = mle.fit_mle(rs.ChoiceCounts(rs.Assortments(offers), numbers), tolerance=1e-7)
    assert found.proven
    assert found.iterations < 50


@pytest.mark.parametrize("about", odd_data())
def test_survives_odd_data(about: str) -> None:
    counts = odd_data()[about]
    found = mle.fit_mle(counts, tolerance=1e-8)
    assert found.proven
    seen = observe(counts)
    shares: Vec = found.model.probabilities(seen.assortments)
    assert np.allclose(np.add.reduceat(shares, seen.assortments.indptr[:-1]), 1.0)
    assert found.model.items == counts.assortments.items
    offer = counts.assortments.offers[0]
    assert sum(found.model.predict(offer).values()) == pytest.approx(1.0)


def test_refuses_bare_frequencies() -> None:
    with pytest.raises(ValueError, match="A likelihood needs ChoiceCounts"):
        mle.fit_mle([0.5, 0.5])  # type: ignore[arg-type]


def test_the_seconds_of_all_steps_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mle, "perf_counter", Ticks(1.0))
    counts = rs.ChoiceCounts(rs.Assortments([("a", "b"), ("b", "c"), ("a", "c")]), [7, 3, 6, 4, 2, 8])
    short, long = (mle.fit_mle(counts, tolerance=0.0, max_rounds=rounds) for rounds in (3, 8))
    assert long.seconds["master"] > short.seconds["master"] > 1.0
