"""The pool of cuts, against enumeration and plain formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import naive_bounds
import strategies
from rankstream import Assortments
from rankstream._core.types import ROUNDING, Vec
from rankstream.oracles.bounds import pool_kernels
from rankstream.oracles.bounds.cuts import Cut, CutPool

SEEDS = st.integers(0, 2**32 - 1)


def some_pool(seed: int, weighted: bool = True) -> tuple[CutPool, Assortments, Vec, Vec, Vec]:
    """A pool over three offers with random cuts that hold all rankings; their vertices, data and weights."""
    random = np.random.default_rng(seed)
    offers = Assortments([("a", "b", "x"), ("b", "c", "x"), ("c", "a"), ("c", "b", "a", "x")])
    data = np.concatenate([random.dirichlet(np.full(len(offer), 0.5)) for offer in offers.offers])
    weights, vertices = random.uniform(0.1, 1.0, offers.n_offers), naive.all_vertices(offers)
    weights = weights if weighted else np.ones(offers.n_offers)
    pool = CutPool(offers, data, weights)
    for _ in range(int(random.integers(1, 30))):
        where = np.flatnonzero(random.random(data.size) < 0.7)
        towards = random.dirichlet(np.ones(len(vertices))) @ vertices - data
        normal = (towards[where] + 0.1 * random.normal(size=where.size)) * 10.0 ** random.integers(-3, 4)
        pool.add(Cut(where, normal, float((vertices[:, where] @ normal).min(initial=np.inf)) if where.size else 0.0))
    return pool, offers, data, weights, vertices


@strategies.examples(40)
@given(SEEDS, st.integers(0, 8))
def test_any_prices_prove_a_bound(seed: int, passes: int) -> None:
    """Whatever the multipliers, levels and lifts are: by the formula, and below the least distance of any model."""
    pool, offers, data, weights, vertices = some_pool(seed)
    scale = weights[offers.owner]
    least = naive.least_distance("l2", vertices * scale, data * scale)
    pool.climb(passes)
    assert 0.0 <= pool.bound() <= least + 1e-9
    random = np.random.default_rng(seed)
    pool.multipliers += random.exponential(size=pool.multipliers.size) * random.choice([0.0, 0.01, 1.0])
    pool._levels += random.normal(size=offers.n_offers) * random.choice([0.0, 0.1])
    pool._lifts += random.exponential(size=data.size) * random.choice([0.0, 0.1])
    total, worth = np.zeros(data.size), 0.0
    for multiplier, where, value, right in zip(pool.multipliers, pool._where, pool._values, pool._right, strict=True):
        total[where] += multiplier * value
        worth -= multiplier * right
    for offer in range(offers.n_offers):
        own = offers.owner == offer
        pulls = pool._levels[offer] - pool._lifts[own]
        total[own] += pulls
        worth -= weights[offer] * max(pulls)
    norm = float(np.linalg.norm(total))
    expected = max(0.0, (worth + float(total @ (data * scale))) / norm) if norm > 0.0 else 0.0
    assert pool.bound() == pytest.approx(expected, abs=1e-9)
    assert pool.bound() <= least + 1e-9


def test_the_margin_for_rounding_covers_what_levels_and_lifts_add() -> None:
    pool, _, data, *_ = some_pool(0)
    pool.multipliers[:] = 0.0
    pool._levels += 1.0
    pool._lifts += np.linspace(0.0, 0.5, data.size)
    total, _, margin = pool._combined()
    assert margin >= ROUNDING * data.size * float(np.abs(total) @ np.abs(pool._data)) > 0.0


def test_the_bound_on_costs_allows_for_their_rounding() -> None:
    pool, offers, data, *_ = some_pool(0)
    costs = np.full(data.size, 1e15)
    total, right, margin = pool._combined()
    left = costs + total
    before = float(np.minimum.reduceat(left, offers.indptr[:-1]).sum()) - right - margin
    assert before - pool.least_cost(costs) == pytest.approx(ROUNDING * data.size * np.abs(left).sum(), rel=0.2)


@strategies.examples(30)
@given(SEEDS)
def test_passes_are_hildreths_method_and_come_to_the_nearest_point(seed: int) -> None:
    pool, offers, data, weights, _ = some_pool(seed)
    rows, scale = pool._cut_rows(), weights[offers.owner]
    dense = np.zeros((len(pool), data.size))
    for number, (where, value) in enumerate(zip(pool._where, pool._values, strict=True)):
        dense[number, where] = value
    ones = np.zeros((offers.n_offers, data.size))
    ones[offers.owner, np.arange(data.size)] = 1.0
    multipliers, point = np.zeros(len(pool)), data * scale
    for _ in range(2):
        multipliers, point = naive_bounds.hildreth(dense, rows.right, multipliers, point)
        for number in range(len(pool)):
            pool_kernels.press(rows, number, pool.multipliers, pool._within)
        np.testing.assert_allclose(pool.multipliers, multipliers, atol=1e-9)
        np.testing.assert_allclose(pool._within, point, atol=1e-9)
    levels, lifts, within = np.zeros(offers.n_offers), np.zeros(data.size), point.copy()
    pool_kernels.level(offers.indptr, weights, levels, lifts, within)
    flat = point - ones.T @ ((ones @ point - weights) / ones.sum(axis=1))
    np.testing.assert_allclose(levels, (ones @ point - weights) / ones.sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(within, np.maximum(flat, 0.0), atol=1e-9)
    np.testing.assert_allclose(lifts, np.maximum(-flat, 0.0), atol=1e-9)
    pool.climb(2000)
    inside = pool.point
    assert (dense @ (inside * scale) <= rows.right + 1e-6).all()
    assert inside.min() >= -1e-6
    np.testing.assert_allclose(ones @ inside, 1.0, atol=1e-6)
    assert pool.bound() == pytest.approx(pool.distance(), abs=1e-5)


@strategies.examples(30)
@given(SEEDS, st.integers(0, 8))
def test_any_prices_prove_a_bound_on_costs(seed: int, passes: int) -> None:
    """Whatever the data were that the multipliers are for: below the least cost of any ranking, by the formula."""
    random = np.random.default_rng(seed)
    pool, offers, _, _, vertices = some_pool(seed, weighted=False)
    costs = random.normal(size=offers.n_coordinates)
    pool.climb(passes)
    pool.retarget(pool.point - costs)
    assert pool.point - pool._data == pytest.approx(-pool._combined()[0], abs=1e-9)  # still what the multipliers pull
    pool.climb(passes)
    bound, least = pool.least_cost(costs), float((vertices @ costs).min())
    assert bound <= least + 1e-9
    total, right, _ = pool._combined()
    by_offer = [float((costs + total)[offers.owner == offer].min()) for offer in range(offers.n_offers)]
    assert bound == pytest.approx(sum(by_offer) - right, abs=1e-9)


def test_cuts_without_a_price_are_forgotten_and_prove_nothing() -> None:
    pool, data = next((pool, data) for pool, _, data, _, _ in map(some_pool, range(99)) if len(pool) > 20)
    pool.climb(50)
    before, count = pool.bound(), len(pool)
    for _ in range(10):
        pool.climb(50)
        pool.forget()
    assert 0 < len(pool) < count
    assert (pool.multipliers > 0.0).all()
    assert pool.bound() >= before - 1e-9
    pool.add(Cut(np.arange(data.size), np.zeros(data.size), 0.0))
    pool.add(Cut(np.arange(data.size), np.ones(data.size), -np.inf))
    assert len(pool._right) == len(pool.multipliers)
