"""The compiled loops of Wolfe's method, each by itself; ``test_nearest_mixture`` and ``test_parts`` join them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import strategies
from rankstream import Assortments
from rankstream.models.nearest import winning_coordinates
from rankstream.oracles.bounds import corral_kernels as kernels
from rankstream.oracles.bounds.corral_kernels import empty_corral

SEEDS = st.integers(0, 2**32 - 1)


@given(strategies.assortments(), SEEDS)
def test_sums_over_vertices_equal_those_of_vectors(offers: Assortments, seed: int) -> None:
    random = np.random.default_rng(seed)
    orders = [random.permutation(offers.n_items) for _ in range(4)]
    chosen, corners = (
        winning_coordinates(offers, np.array(orders)),
        np.array([naive.vertex(offers, order.tolist()) for order in orders]),
    )
    squares, target = random.uniform(0.1, 2.0, offers.n_offers), random.normal(size=offers.n_coordinates)
    weighted = squares[offers.owner] * corners
    assert kernels.agreement(chosen[0], chosen[1], squares) == pytest.approx(float(corners[0] @ weighted[1]))
    assert kernels.linear_term(chosen[0], target, squares) == pytest.approx(float(weighted[0] @ target))
    assert kernels.dot(target, corners[0]) == pytest.approx(float(target @ corners[0]))
    slots, weights, out = np.array([2, 0, 3, 1]), random.uniform(size=4), np.empty(offers.n_coordinates)
    corral = empty_corral(squares, 4)._replace(known=np.array([3]), slots=slots, chosen=chosen, weights=weights)
    kernels.mixture(corral, out)
    np.testing.assert_allclose(out, weights[:3] @ corners[slots[:3]], atol=1e-12)


@given(st.floats(0.0, 7.0), st.integers(0, 5), SEEDS)
def test_turns_are_rotations(angle: float, size: int, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(2, size))
    cosine, sine = float(np.cos(angle)), float(np.sin(angle))
    expected = np.array([[cosine, sine], [-sine, cosine]]) @ rows
    kernels.turn(cosine, sine, rows[0], rows[1])
    np.testing.assert_allclose(rows, expected, atol=1e-12)


@given(st.integers(1, 6), SEEDS)
def test_triangular_systems_are_solved(size: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    factor, right = random.uniform(0.5, 1.0, (size, size)), random.normal(size=size)
    expected = np.linalg.solve(np.triu(factor).T, right)
    kernels.solve_transposed(size, factor, right)
    np.testing.assert_allclose(right, expected, atol=1e-9)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.integers(0, 63), SEEDS)
def test_what_is_no_coordinate_counts_for_nothing(drawn: list[int], gone: int, seed: int) -> None:
    """Sums over a corner that chooses nothing from some slots, and has one that all share."""
    random, missing = np.random.default_rng(seed), [bool(gone >> slot & 1) for slot in range(len(drawn))]
    column = [kernels.SHARED_SLOT + 1 if skip else one for one, skip in zip(drawn, missing, strict=True)]
    corner = np.array([*column, kernels.SHARED_SLOT], dtype=np.uint32)
    squares, target, out = random.uniform(0.1, 2.0, corner.size), random.normal(size=5), np.empty(5)
    kept = [slot for slot, skip in enumerate(missing) if not skip]
    assert kernels.squared_length(corner, squares) == pytest.approx(float(squares[[*kept, -1]].sum()))
    linear = sum(float(squares[slot] * target[drawn[slot]]) for slot in kept)
    assert kernels.linear_term(corner, target, squares) == pytest.approx(linear)
    corral = empty_corral(squares, 1)._replace(known=np.ones(1, dtype=np.int64), chosen=corner[np.newaxis])
    corral.weights[0] = 0.5
    kernels.mixture(corral, out)
    np.testing.assert_allclose(out, [0.5 * sum(drawn[slot] == k for slot in kept) for k in range(5)])


@strategies.examples(60)
@given(strategies.assortments(), SEEDS)
def test_a_factor_from_scratch_drops_what_depends(offers: Assortments, seed: int) -> None:
    random, size = np.random.default_rng(seed), 8
    chosen = winning_coordinates(offers, np.array([random.permutation(offers.n_items) for _ in range(size)]))
    target, squares = random.normal(size=offers.n_coordinates), random.uniform(0.5, 2.0, offers.n_offers)
    slots, weights = random.permutation(size), random.uniform(0.1, 1.0, size)
    weight_of = dict(zip(slots.tolist(), weights.tolist(), strict=True))
    expected = list[int]()
    for slot in slots.tolist():
        products = naive.inner_products(chosen[[*expected, slot]], squares)
        if np.linalg.matrix_rank(products) == len(products):
            expected.append(slot)
    factor, sides = np.full((size, size), np.nan), np.full((2, size), np.nan)
    corral = kernels.Corral(np.array([size]), slots, chosen, weights, factor, sides, squares)
    kernels.refactor(corral, target)
    count = int(corral.known[0])
    assert slots[:count].tolist() == expected
    assert sorted(slots.tolist()) == list(range(size))
    kept = np.array([weight_of[slot] for slot in expected])
    np.testing.assert_allclose(weights[:count], kept / kept.sum())
    upper, held = np.triu(factor[:count, :count]), chosen[expected]
    np.testing.assert_allclose(upper.T @ upper, naive.inner_products(held, squares), atol=1e-9)
    np.testing.assert_allclose(upper.T @ sides[0, :count], (squares * target[held]).sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(upper.T @ sides[1, :count], 1.0, atol=1e-9)


@given(st.sampled_from([0.0, 0.3]), SEEDS)
def test_settling_from_any_weights_is_that_of_its_slow_twin(without: float, seed: int) -> None:
    random, size = np.random.default_rng(seed), 14
    offers = Assortments([random.permutation(7)[:4].tolist() for _ in range(9)], items=range(7))
    chosen = winning_coordinates(offers, np.array([random.permutation(offers.n_items) for _ in range(size)]))
    target, squares = random.dirichlet(np.ones(offers.n_coordinates)), random.uniform(0.5, 2.0, offers.n_offers)
    corral = empty_corral(squares, size)._replace(known=np.array([size]), chosen=chosen, weights=np.ones(size))
    kernels.refactor(corral, target)
    count, slots, weights = int(corral.known[0]), corral.slots, corral.weights
    weights[:count] = random.uniform(0.1, 1.0, count) * (random.uniform(size=count) >= without)
    weights[0] += 0.1
    weights[:count] /= weights[:count].sum()
    held = slots[:count].copy()
    linear = np.array([kernels.linear_term(chosen[slot], target, squares) for slot in held])
    expected = naive.settle(naive.inner_products(chosen[held], squares), linear, weights[:count].copy())
    kernels.settle(corral, np.empty(offers.n_coordinates))
    left = int(corral.known[0])
    found = dict(zip(slots[:left].tolist(), weights[:left].tolist(), strict=True))
    assert found == pytest.approx({int(held[k]): weight for k, weight in expected.items()}, abs=1e-7)


@strategies.examples(60)
@given(strategies.assortments(most_items=5), st.integers(0, 3), SEEDS)
def test_columns_lead_as_near_as_all_rankings_can(offers: Assortments, known: int, seed: int) -> None:
    """Offered every ranking again and again, from some start, ``correct`` comes to the nearest mixture of all."""
    random = np.random.default_rng(seed)
    rankings = np.array(naive.all_rankings(offers))
    columns, size = winning_coordinates(offers, rankings), 2 * len(rankings) + 2
    squares, target = random.uniform(0.5, 2.0, offers.n_offers), random.dirichlet(np.ones(offers.n_coordinates))
    corral, point = empty_corral(squares, size), np.zeros(offers.n_coordinates)
    orders = np.zeros((size, offers.n_items), dtype=np.int64)
    roots = np.sqrt(squares)[offers.owner]
    before = np.inf
    for some in ([known], *[range(len(rankings))] * 30):
        batch = [row % len(rankings) for row in some]
        kernels.correct(corral, columns[batch], rankings[batch], target, offers.owner, orders, point)
        count = int(corral.known[0])
        corners = np.array([naive.vertex(offers, order) for order in orders[corral.slots[:count]].tolist()])
        np.testing.assert_allclose(corral.weights[:count] @ corners, point, atol=1e-9)
        distance = float(np.linalg.norm(roots * (point - target)))
        assert distance <= before + 1e-9
        before = distance
    best = naive.least_distance("l2", naive.all_vertices(offers) * roots, target * roots)
    assert before == pytest.approx(best, abs=1e-6)
