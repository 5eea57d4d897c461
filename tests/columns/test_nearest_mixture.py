"""Wolfe's method over rankings: the nearest mixture, its factor and its minor cycles against slow twins."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import naive
import rankstream as rs
import strategies
from rankstream import oracles
from rankstream._core.types import Vec
from rankstream.data import simulate
from rankstream.models.nearest import NearestMixture
from rankstream.oracles.bounds import corral_kernels as kernels
from rankstream.oracles.bounds.corral_kernels import empty_corral
from strategies import noisy_problems


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


def test_an_offer_without_weight_needs_no_frequencies() -> None:
    offers = rs.Assortments([("a", "b"), ("b", "c"), ("a", "c")])
    nearest = NearestMixture(offers, np.array([np.nan, np.nan, 0.25, 0.75, 0.5, 0.5]), np.array([0.0, 1.0, 1.0]))
    assert nearest.squared_distance == pytest.approx(0.25**2 + 0.75**2 + 2 * 0.5**2)
    assert nearest.take(np.array([[2, 1, 0], [0, 1, 2], [1, 0, 2]]))
    assert nearest.squared_distance == pytest.approx(2 * (0.25**2 + 0.25**2) / 4)


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
    kernels.winners(rankings, offers.indptr, offers.members, chosen)
    assert np.array_equal(chosen, naive.winners(offers, orders))
    squares = np.arange(1.0, offers.n_offers + 1.0)
    size = len(orders)
    corral = empty_corral(squares, size)._replace(chosen=chosen)
    slots, factor, sides = corral.slots, corral.factor, corral.sides
    linear = np.linspace(-1.0, 2.0, size)
    for row in range(size):
        count = corral.known[0]
        slots[count], slots[row] = slots[row], slots[count]
        assert kernels.append(corral, linear[slots[count]]) == (corral.known[0] > count)
    while count := int(corral.known[0]):
        products = naive.inner_products(chosen[slots[:count]], squares)
        upper = np.triu(factor[:count, :count])
        assert np.allclose(upper.T @ upper, products)
        assert np.allclose(upper.T @ sides[0, :count], linear[slots[:count]])
        assert np.allclose(upper.T @ sides[1, :count], 1.0)
        out = np.empty(count)
        kernels.nearest_in_span(corral, out)
        assert np.allclose(out, naive.nearest_in_span(products, linear[slots[:count]]), atol=1e-6)
        kernels.remove(corral, data.draw(st.integers(0, count - 1)))
        assert corral.known[0] == count - 1


@settings(max_examples=60, deadline=None)
@given(offers=strategies.assortments(6, 8), seed=st.integers(0, 10**6))
def test_settling_is_that_of_its_slow_twin(offers: rs.Assortments, seed: int) -> None:
    random = np.random.default_rng(seed)
    rankings = np.array([random.permutation(offers.n_items) for _ in range(10)])
    chosen = np.empty((10, offers.n_offers), dtype=np.uint32)
    kernels.winners(rankings, offers.indptr, offers.members, chosen)
    target, squares = random.dirichlet(np.ones(offers.n_coordinates)), random.uniform(0.5, 2.0, offers.n_offers)
    corral = empty_corral(squares, 10)._replace(chosen=chosen)
    slots = corral.slots
    for row in range(10):
        count = corral.known[0]
        slots[count], slots[row] = slots[row], slots[count]
        kernels.append(corral, kernels.linear_term(chosen[slots[count]], target, squares))
    start = slots[: corral.known[0]].copy()
    products = naive.inner_products(chosen[start], squares)
    terms = np.array([kernels.linear_term(chosen[slot], target, squares) for slot in start])
    expected = naive.settle(products, terms)
    kernels.settle(corral, np.empty(offers.n_coordinates))
    count = int(corral.known[0])
    found = dict(zip(slots[:count].tolist(), corral.weights[:count].tolist(), strict=True))
    assert found == pytest.approx({int(start[k]): weight for k, weight in expected.items()}, abs=1e-7)


@settings(max_examples=40, deadline=None)
@given(problem=noisy_problems(), seed=st.integers(0, 10**6))
def test_another_aim_changes_weights_alone(problem: tuple[rs.Assortments, Vec, tuple[float, ...]], seed: int) -> None:
    """From some target to another: as near as the same rankings can be, and the first mixture stays as it was."""
    offers, target, weights = problem
    random, squares = np.random.default_rng(seed), np.array(weights) ** 2
    nearest = NearestMixture(offers, target, squares)
    nearest.take(np.array([random.permutation(offers.n_items) for _ in range(8)]))
    held, before = nearest.orders.copy(), (nearest.weights, nearest.point.copy(), nearest.squared_distance)
    aim = random.normal(size=offers.n_coordinates)
    other, each = nearest.aimed_at(aim), np.array(weights)[offers.owner]
    corners = np.array([naive.vertex(offers, order) for order in held.tolist()])
    best = naive.least_distance("l2", corners * each, aim * each)
    assert np.sqrt(other.squared_distance) == pytest.approx(best, abs=1e-6)
    assert {tuple(order) for order in other.orders.tolist()} <= {tuple(order) for order in held.tolist()}
    other.take(np.array([random.permutation(offers.n_items) for _ in range(8)]))
    assert np.array_equal(nearest.orders, held)
    assert np.array_equal(nearest.weights, before[0])
    assert np.array_equal(nearest.point, before[1])
    assert nearest.squared_distance == before[2]
    again = nearest.aimed_at(aim)
    assert np.sqrt(again.squared_distance) == pytest.approx(best, abs=1e-6)
    back = nearest.aimed_at(target)
    np.testing.assert_allclose(back.point, nearest.point, atol=1e-9)
