"""The kernels of EM against their slow twins and a linear solver."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import strategies
from random_laws import random_chain
from rankstream import Assortments, ChoiceCounts
from rankstream._core.types import Vec
from rankstream.models.lifts import frozen
from rankstream.models.parametric import em_kernels as kernels
from rankstream.models.parametric.base import climb
from rankstream.models.parametric.climb_kernels import climb_mixture

pytestmark = pytest.mark.quick


@given(strategies.assortments(), st.integers(1, 4), st.integers(0, 99))
def test_mixture_step_is_that_of_its_twin(offers: Assortments, classes: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    tallies = ChoiceCounts(offers, generator.poisson(1.5, size=offers.n_coordinates)).tallies
    mixture = generator.dirichlet(np.ones(classes))
    attraction = generator.uniform(0.01, 1.0, size=(offers.n_items, classes))
    top, bottom = np.zeros_like(attraction), np.zeros_like(attraction)
    value = kernels.mixture_step(offers.indptr, offers.members, tallies, mixture, attraction, top, bottom)
    slow_top, slow_bottom, slow_value = naive.mixture_step(offers, tallies, mixture, attraction)
    assert value == pytest.approx(slow_value, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(top, slow_top, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(bottom, slow_bottom, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("seed", range(4))
def test_the_compiled_climb_takes_the_steps_of_the_general_one(seed: int) -> None:
    generator = np.random.default_rng(seed)
    offers, classes, smoothing = Assortments([(0, 1, 2, 3), (0, 1, 3), (1, 2), (0, 2, 3)]), 2, 0.1
    tallies = generator.poisson(20.0, size=offers.n_coordinates).astype(np.float64)
    mixture, attraction = generator.dirichlet(np.ones(classes)), generator.uniform(0.1, 1.0, (offers.n_items, classes))

    def normalised(point: Vec) -> Vec:
        parts = point[:classes], point[classes:].reshape(attraction.shape)
        return np.concatenate([parts[0] / parts[0].sum(), (parts[1] / parts[1].sum(axis=0)).ravel()])

    def step(point: Vec) -> tuple[Vec, float]:
        parts = point[:classes], point[classes:].reshape(attraction.shape)
        top, bottom, value = naive.mixture_step(offers, tallies, *parts)
        following = (top + smoothing) / (bottom + smoothing * offers.n_items)
        point_after = np.concatenate([top.sum(axis=0) + smoothing, following.ravel()])
        return normalised(point_after), value + smoothing * float(np.log(point).sum())

    slow = climb(step, normalised, normalised(np.concatenate([mixture, attraction.ravel()])), 0.0, 18)
    attraction /= attraction.sum(axis=0)
    longest, heights = 1.0, np.empty((3, 4))
    for chunk in heights:
        data = offers.indptr, offers.members, frozen([]), tallies
        used, longest, done = climb_mixture(*data, smoothing, 0.0, mixture, attraction, longest, chunk)
        assert (used, done) == (chunk.size, False)
    np.testing.assert_allclose(heights.ravel(), slow.heights, rtol=1e-12)
    np.testing.assert_allclose(np.concatenate([mixture, attraction.ravel()]), slow.point, rtol=1e-7)


@given(strategies.assortments(), st.integers(0, 99))
def test_chain_kernels_are_those_of_their_twins(offers: Assortments, seed: int) -> None:
    generator = np.random.default_rng(seed)
    tallies = ChoiceCounts(offers, generator.poisson(1.5, size=offers.n_coordinates)).tallies
    arrival, transitions = random_chain(offers.n_items, seed)
    shares = np.empty(offers.n_coordinates)
    kernels.chain_shares(offers.indptr, offers.members, arrival, transitions, shares)
    np.testing.assert_allclose(shares, naive.chain_shares(offers, arrival, transitions), rtol=1e-9)
    np.testing.assert_allclose(np.add.reduceat(shares, offers.indptr[:-1]), 1.0, rtol=1e-12)
    first, moves = np.zeros(offers.n_items), np.zeros((offers.n_items, offers.n_items))
    value = kernels.chain_step(offers.indptr, offers.members, tallies, arrival, transitions, first, moves)
    slow_first, slow_moves, slow_value = naive.chain_step(offers, tallies, arrival, transitions)
    assert value == pytest.approx(slow_value, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(first, slow_first, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(moves, slow_moves, rtol=1e-8, atol=1e-12)


@given(st.integers(2, 7), st.integers(0, 99))
def test_elimination_solves_both_ways(n_items: int, seed: int) -> None:
    _, transitions = random_chain(n_items, seed)
    offer = np.random.default_rng(seed).permutation(n_items)[: 1 + seed % (n_items - 1)]
    held, outside = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    size = kernels.absent(frozen([0, len(offer)]), frozen(offer), 0, held, outside)
    assert outside[:size].tolist() == [item for item in range(n_items) if item not in offer.tolist()]
    work, pivots = np.empty((n_items, n_items)), np.empty(n_items)
    kernels.factorise(transitions, held, outside, size, work, pivots)
    inner = np.eye(size) - transitions[np.ix_(outside[:size], outside[:size])]
    right = np.random.default_rng(seed + 1).uniform(size=size)
    visits, worth = right.copy(), right.copy()
    kernels.expected_visits(work, pivots, size, visits)
    kernels.expected_worth(work, pivots, size, worth)
    np.testing.assert_allclose(visits, np.linalg.solve(inner.T, right), rtol=1e-8)
    np.testing.assert_allclose(worth, np.linalg.solve(inner, right), rtol=1e-8)


def test_a_nearly_closed_chain_keeps_its_digits() -> None:
    tiny = 1e-30  # I - rho is singular in floats: 1 - (1 - tiny) is 0
    transitions = np.array([[0.0, 1.0, tiny, 3 * tiny], [1.0, 0.0, tiny, 3 * tiny], [0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0]])
    shares = np.empty(2)
    kernels.chain_shares(frozen([0, 2]), frozen([2, 3]), np.array([1.0, 0, 0, 0]), transitions, shares)
    np.testing.assert_allclose(shares, [0.25, 0.75], rtol=1e-14)
