"""The fully corrective engine against programs over all rankings, and its kernels against slow twins."""

from itertools import permutations
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import naive
import rankstream as rs
import strategies
from rankstream import distances, oracles
from rankstream._core.types import Vec
from rankstream.columns import corrective, pricing
from rankstream.columns.linear_master import LinearMaster
from rankstream.columns.pricing import Pricing
from rankstream.data import simulate
from rankstream.distances import Distance
from rankstream.models import wolfe_kernels as corrective_kernels
from rankstream.models import wolfe_kernels as factor_kernels
from rankstream.models.nearest import NearestMixture

OFFERS = rs.Assortments([("tea", "pie"), ("tea", "pie", "nothing")])
IMPOSSIBLE = [0.4, 0.6, 0.5, 0.2, 0.3]  # tea gains when nothing joins
NORMS = ("l1", "l2", "linf")


def least_distance(norm: str, offers: rs.Assortments, target: Vec, weights: Vec) -> float:
    each = weights[offers.owner]
    return naive.least_distance(norm, naive.all_vertices(offers) * each, target * each)


@st.composite
def noisy_problems(draw: st.DrawFn) -> tuple[rs.Assortments, Vec, tuple[float, ...]]:
    offers = draw(strategies.assortments(5, 6))
    weights = draw(st.lists(st.sampled_from([0.3, 1.0, 1.0, 2.5]), min_size=offers.n_offers, max_size=offers.n_offers))
    return offers, draw(strategies.frequencies(offers)), tuple(weights)


@pytest.mark.parametrize("norm", NORMS)
@settings(max_examples=40, deadline=None)
@given(problem=noisy_problems())
def test_bounds_enclose_the_optimum_over_all_rankings(
    norm: str, problem: tuple[rs.Assortments, Vec, tuple[float, ...]]
) -> None:
    offers, target, weights = problem
    for chosen in (None, weights):
        distance = distances.make(norm, offers, weights=chosen)
        fit = corrective.fit(offers, target, distance, tolerance=1e-7)
        assert fit.converged
        best = least_distance(norm, offers, target, np.ones(offers.n_offers) if chosen is None else np.array(chosen))
        assert fit.certificate.lower <= best + 1e-7  # the optimum itself is found only to the solver's accuracy
        assert best <= fit.certificate.upper + 1e-7
        reached = distance.value(fit.model.probabilities(offers), target)
        assert reached == pytest.approx(fit.certificate.upper, abs=1e-9)
        assert 0.0 <= fit.certificate.gap <= 1e-7
        assert fit.certificate.regret_sum == pytest.approx(fit.certificate.gap, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(problem=noisy_problems(), rounds=st.integers(1, 4), norm=st.sampled_from(NORMS))
def test_bounds_hold_wherever_it_stops(
    problem: tuple[rs.Assortments, Vec, tuple[float, ...]], rounds: int, norm: str
) -> None:
    offers, target, _ = problem
    fit = corrective.fit(offers, target, norm, max_rounds=rounds, tolerance=0.0)
    best = least_distance(norm, offers, target, np.ones(offers.n_offers))
    assert fit.rounds <= rounds
    assert fit.certificate.lower <= best + 1e-7
    assert best <= fit.certificate.upper + 1e-7
    assert np.all(np.diff(fit.history.distance) <= 1e-9) or norm != "l2"


@pytest.mark.parametrize("norm", NORMS)
def test_data_of_a_ranking_model_are_matched(norm: str) -> None:
    market = simulate.market(seed=3, n_items=6, n_test=5, n_offers=10)
    fit = corrective.fit(market.assortments, market.frequencies(), norm)
    assert fit.converged
    assert fit.certificate.upper <= 1e-6
    error = np.abs(fit.model.probabilities(market.assortments) - market.frequencies()).max()
    assert error <= 1e-6


@strategies.compiled_only
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("noisy", [False, True])
def test_certified_gap_on_simulated_markets(seed: int, noisy: bool) -> None:
    market = simulate.market(seed)
    data = next(market.stream()) if noisy else market.frequencies()
    fit = rs.estimate(market.assortments, data, learner="fully-corrective", stop="gap", tolerance=1e-6)
    assert fit.converged
    assert fit.certificate.gap <= 1e-6
    assert fit.certificate.exact
    assert (fit.certificate.upper > 0.01) == noisy
    assert fit.rounds == len(fit.history.gap) < 60
    assert fit.history.gap[-1] == pytest.approx(fit.certificate.gap, abs=1e-12)
    assert len(fit.model.weights) == fit.history.rankings[-1]
    slow = rs.estimate(market.assortments, data, stop="gap", tolerance=0.0, max_rounds=500)
    assert fit.certificate.upper <= slow.certificate.upper
    assert slow.certificate.lower <= fit.certificate.upper
    assert len(fit.model.weights) < len(slow.model.weights)


def test_mean_absolute_error_stops_it_sooner() -> None:
    market = simulate.market(seed=4, n_items=6, n_test=5, n_offers=12)
    p = market.frequencies()
    rough = rs.estimate(market.assortments, p, learner="fully-corrective", tolerance=0.02)
    fine = rs.estimate(market.assortments, p, learner="fully-corrective", tolerance=1e-6, stop="gap")
    assert rough.converged
    assert rough.history.mae[-1] <= 0.02 < rough.history.mae[-2]
    assert rough.rounds < fine.rounds
    assert 0.0 <= rough.certificate.lower <= fine.certificate.upper <= rough.certificate.upper
    for norm in NORMS:
        fit = rs.estimate(market.assortments, p, learner="fully-corrective", tolerance=0.02, distance=norm)
        assert fit.converged
        assert fit.history.gap[-1] == fit.certificate.gap


def test_an_error_that_cannot_be_reached_ends_at_the_optimum() -> None:
    fit = rs.estimate(OFFERS, IMPOSSIBLE, learner="fully-corrective", tolerance=1e-9)
    assert not fit.converged
    assert fit.rounds < 20
    assert fit.certificate.gap <= 1e-12


def test_offers_nobody_has_seen_are_left_out() -> None:
    grown = OFFERS.extend([("pie", "cake"), ("tea", "cake", "nothing")])
    counts = rs.ChoiceCounts(grown)
    counts.observe_coordinates(range(5), [40, 60, 50, 20, 30])
    for norm in NORMS:
        some = corrective.fit(grown, counts, norm)
        same = corrective.fit(OFFERS, IMPOSSIBLE, norm)
        assert some.converged
        assert some.certificate.upper == pytest.approx(same.certificate.upper, abs=1e-9)
        assert some.history.mae[-1] == pytest.approx(np.abs(same.model.probabilities(OFFERS) - IMPOSSIBLE).mean())


def test_names_and_numbers_of_items_do_not_matter() -> None:
    market = simulate.market(seed=5, n_items=5, n_test=5, n_offers=8)
    counts = next(market.stream(first=300))
    p, offers = counts.target().frequencies, market.assortments
    renamed = rs.Assortments(offers.offers, items=offers.items[::-1])
    for norm in NORMS:
        one, other = corrective.fit(offers, p, norm), corrective.fit(renamed, p, norm)
        assert one.certificate.upper == pytest.approx(other.certificate.upper, abs=2e-6)


def test_rankings_follow_the_tie_rule_and_the_seed() -> None:
    market = simulate.market(seed=6, n_items=6, n_test=5, n_offers=8)
    p, offers = market.frequencies(), market.assortments
    one, again, other = (corrective.fit(offers, p, seed=seed).model for seed in (0, 0, 1))
    assert one == again
    assert one != other
    oracle = oracles.auto(offers)
    for order in one.orders:
        vertex = offers.vertex(order)
        assert np.array_equal(oracle.cheapest(-vertex).ranking, order)


class OneColumn:
    """An oracle that can only be asked for the cheapest ranking."""

    def __init__(self, offers: rs.Assortments) -> None:
        self.oracle = oracles.auto(offers)

    def cheapest(self, costs: Vec) -> oracles.Answer:
        return self.oracle.cheapest(costs)


def test_any_oracle_will_do() -> None:
    market = simulate.market(seed=8, n_items=5, n_test=5, n_offers=10)
    p = next(market.stream(first=200)).target().frequencies
    one = corrective.fit(market.assortments, p, oracle=OneColumn(market.assortments))
    many = corrective.fit(market.assortments, p)
    assert one.converged
    assert one.certificate.upper == pytest.approx(many.certificate.upper, abs=2e-6)
    assert one.rounds > many.rounds


def came_back(offers: rs.Assortments, target: Vec) -> bool:
    """Whether a ranking is dropped and taken in again on the way to the nearest mixture, one column at a time."""
    nearest, oracle = NearestMixture(offers, target, np.ones(offers.n_offers)), oracles.auto(offers)
    held: set[bytes] = set()
    gone: set[bytes] = set()
    again = False
    while nearest.take(oracle.cheapest(nearest.point - target).ranking[np.newaxis]):
        now = {order.tobytes() for order in nearest.orders}
        again |= bool(now & gone)
        gone = (gone | (held - now)) - now
        held = now
    slope = nearest.point - target
    assert oracle.cheapest(slope).value >= slope @ nearest.point - 1e-9
    return again


def test_dropped_rankings_come_back_where_they_help() -> None:
    found = 0
    for seed in range(10):
        market = simulate.market(seed, n_items=6, n_test=5, n_offers=20)
        found += came_back(market.assortments, next(market.stream(first=400)).target().frequencies)
    assert found > 0


@settings(max_examples=40, deadline=None)
@given(problem=noisy_problems(), data=st.data())
def test_nearest_mixture_is_that_of_its_slow_twin(
    problem: tuple[rs.Assortments, Vec, tuple[float, ...]], data: st.DataObject
) -> None:
    offers, target, weights = problem
    squares = np.array(weights) ** 2
    nearest, taken = NearestMixture(offers, target, squares), []
    for _ in range(3):
        batch = data.draw(st.lists(st.permutations(range(offers.n_items)), min_size=1, max_size=6))
        nearest.take(np.array(batch, dtype=np.int64))
        taken += [row.tolist() for row in nearest.orders]
        assert nearest.weights.sum() == pytest.approx(1.0)
        assert np.all(nearest.weights > 0.0)
        corners = np.array([naive.vertex(offers, list(order)) for order in nearest.orders])
        assert np.allclose(nearest.weights @ corners, nearest.point)
        each = np.array(weights)[offers.owner]
        best = naive.least_distance("l2", corners * each, target * each)
        assert np.sqrt(nearest.squared_distance) == pytest.approx(best, abs=1e-6)
        slopes = corners @ (squares[offers.owner] * (nearest.point - target))
        assert np.ptp(slopes) <= 1e-9
        before = nearest.point.copy()
        nearest.refresh()
        assert np.allclose(before, nearest.point)


@settings(max_examples=40, deadline=None)
@given(offers=strategies.assortments(6, 8), data=st.data())
def test_factor_grows_and_shrinks_like_one_from_scratch(offers: rs.Assortments, data: st.DataObject) -> None:
    orders = data.draw(st.lists(st.permutations(range(offers.n_items)), min_size=1, max_size=9))
    rankings = np.array(orders, dtype=np.int64)
    chosen = np.empty((len(orders), offers.n_offers), dtype=np.uint32)
    corrective_kernels.winners(rankings, offers.indptr, offers.members, chosen)
    assert np.array_equal(chosen, naive.winners(offers, orders))
    squares = np.arange(1.0, offers.n_offers + 1.0)
    size = len(orders)
    slots, weights = np.arange(size), np.zeros(size)
    factor, sides = np.zeros((size, size)), np.zeros((2, size))
    linear, count = np.linspace(-1.0, 2.0, size), 0
    for row in range(size):
        slots[count], slots[row] = slots[row], slots[count]
        count += factor_kernels.append(count, slots, chosen, linear[slots[count]], squares, factor, sides)
    while count:
        products = naive.inner_products(chosen[slots[:count]], squares)
        upper = np.triu(factor[:count, :count])
        assert np.allclose(upper.T @ upper, products)
        assert np.allclose(upper.T @ sides[0, :count], linear[slots[:count]])
        assert np.allclose(upper.T @ sides[1, :count], 1.0)
        out = np.empty(count)
        factor_kernels.nearest_in_span(count, factor, sides, out)
        assert np.allclose(out, naive.nearest_in_span(products, linear[slots[:count]]), atol=1e-6)
        factor_kernels.remove(count, data.draw(st.integers(0, count - 1)), slots, weights, factor, sides)
        count -= 1


@settings(max_examples=60, deadline=None)
@given(offers=strategies.assortments(6, 8), seed=st.integers(0, 10**6))
def test_settling_is_that_of_its_slow_twin(offers: rs.Assortments, seed: int) -> None:
    random = np.random.default_rng(seed)
    rankings = np.array([random.permutation(offers.n_items) for _ in range(10)])
    chosen = np.empty((10, offers.n_offers), dtype=np.uint32)
    corrective_kernels.winners(rankings, offers.indptr, offers.members, chosen)
    target, squares = random.dirichlet(np.ones(offers.n_coordinates)), random.uniform(0.5, 2.0, offers.n_offers)
    slots, weights, count = np.arange(10), np.eye(10)[0], 0
    factor, sides = np.zeros((10, 10)), np.zeros((2, 10))
    for row in range(10):
        slots[count], slots[row] = slots[row], slots[count]
        linear = corrective_kernels.linear_term(chosen[slots[count]], target, squares)
        count += factor_kernels.append(count, slots, chosen, linear, squares, factor, sides)
    start = slots[:count].copy()
    products = naive.inner_products(chosen[start], squares)
    terms = np.array([corrective_kernels.linear_term(chosen[slot], target, squares) for slot in start])
    expected = naive.settle(products, terms)
    count = corrective_kernels.settle(count, slots, weights, factor, sides)
    found = dict(zip(slots[:count].tolist(), weights[:count].tolist(), strict=True))
    assert found == pytest.approx({int(start[k]): weight for k, weight in expected.items()}, abs=1e-7)


@pytest.mark.parametrize("make", [oracles.LatticeOracle, oracles.DenseOracle])
def test_columns_are_the_cheapest_for_their_first_item(make: Any) -> None:
    market = simulate.market(seed=7, n_items=5, n_test=5, n_offers=9)
    offers, oracle = market.assortments, make(market.assortments)
    costs = np.random.default_rng(0).normal(size=offers.n_coordinates)
    priced = Pricing(oracle, offers.n_items)(costs)
    assert priced.exact
    assert priced.bound == pytest.approx(naive.cheapest_value(offers, costs))
    found = {int(row[0]): float(costs @ offers.vertex(row)) for row in priced.rankings[-offers.n_items :]}
    for first in range(offers.n_items):
        orders = [order for order in naive.all_rankings(offers) if order[0] == first]
        assert found[first] == pytest.approx(min(float(costs @ naive.vertex(offers, order)) for order in orders))


@pytest.mark.parametrize("make", [oracles.LatticeOracle, oracles.DenseOracle])
def test_expensive_programs_are_read_for_pairs(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    market = simulate.market(seed=9, n_items=5, n_test=5, n_offers=9)
    offers, p = market.assortments, next(market.stream(first=180)).target().frequencies
    few = corrective.fit(offers, p, oracle=make(offers))
    monkeypatch.setattr(pricing, "PAIRS_FROM", 1)
    rankings = Pricing(make(offers), 6)(-p).rankings
    assert {(int(row[0]), int(row[1])) for row in rankings} == set(permutations(range(6), 2))
    many = corrective.fit(offers, p, oracle=make(offers))
    assert many.converged
    assert many.certificate.upper == pytest.approx(few.certificate.upper, abs=2e-6)


@pytest.mark.parametrize(
    "offers",
    [
        [tuple(range(size)) for size in range(2, 25)],
        [(2 * k, 2 * k + 1, 60) for k in range(10)],
        [(0, 1, 2), (1, 2), (3, 4, 5), (4, 5), (3, 5), (0, 2)],
    ],
)
def test_special_families_are_fitted_too(offers: list[tuple[int, ...]]) -> None:
    family = rs.Assortments(offers)
    random = np.random.default_rng(1)
    shares = np.concatenate([random.dirichlet(np.ones(len(offer))) for offer in offers])
    for norm in NORMS:
        fit = corrective.fit(family, shares, norm)
        assert fit.converged, (norm, fit.certificate)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (IMPOSSIBLE, {"distance": "l3"}, "not for this HighNorm"),
        (IMPOSSIBLE, {"distance": "squared-l2"}, "without smoothing"),
        (IMPOSSIBLE, {"distance": "kl"}, "not for this KL"),
        (IMPOSSIBLE, {"smoothing": 0.1}, "takes no smoothing"),
        (IMPOSSIBLE, {"stop": "time"}, "no stopping rule"),
        (IMPOSSIBLE, {"oracle": "auto"}, "has no method cheapest"),
        (IMPOSSIBLE, {"tolerance": -1.0}, "tolerance is -1"),
        ([IMPOSSIBLE, IMPOSSIBLE], {}, "not for a stream"),
        (rs.ChoiceCounts(OFFERS), {}, "no observations yet"),
    ],
)
def test_what_it_cannot_do_is_refused(data: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rs.estimate(OFFERS, data, learner="fully-corrective", **options)


def test_only_estimate_takes_it() -> None:
    with pytest.raises(ValueError, match="use it with estimate"):
        rs.RankingChoiceModel(learner="fully-corrective").fit([[1, 1], [1, 0]], [0, 0])


def test_the_linear_master_says_when_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LinearMaster, "_status", lambda _: "Infeasible")
    with pytest.raises(RuntimeError, match="says 'Infeasible'"):
        corrective.fit(OFFERS, IMPOSSIBLE, "l1")


def test_weights_must_leave_something_to_fit() -> None:
    counts = rs.ChoiceCounts(OFFERS)
    counts.observe(("tea", "pie"), "tea")
    distance: Distance = distances.L2(OFFERS, weights=(0.0, 1.0))
    with pytest.raises(ValueError, match="No offer with a positive weight"):
        corrective.fit(OFFERS, counts, distance)
    others = rs.Assortments([("tea", "pie")])
    for other in ({"distance": distances.L1(others)}, {"oracle": oracles.auto(others)}):
        with pytest.raises(ValueError, match="was made for other assortments"):
            corrective.fit(OFFERS, IMPOSSIBLE, **other)
    with pytest.raises(ValueError, match="must be an Assortments"):
        corrective.fit([("tea", "pie")], IMPOSSIBLE)  # type: ignore[arg-type]


def test_an_offer_without_weight_does_not_count() -> None:
    for norm in NORMS:
        distance = distances.make(norm, OFFERS, weights=(1.0, 0.0))
        assert corrective.fit(OFFERS, IMPOSSIBLE, distance).certificate.upper <= 1e-6
