import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from rankstream import Assortments, distances
from rankstream._types import Vec
from rankstream.distances import L2


def random_dual(size: int, generator: np.random.Generator) -> Vec:
    """A point of the unit ball."""
    direction = generator.normal(size=size)
    point: Vec = direction / np.linalg.norm(direction) * generator.uniform() ** (1.0 / size)
    return point


cases = given(strategies.assortments(), st.sampled_from([0.0, 0.01, 0.5, 2.0]), st.integers(0, 2**32 - 1))


@cases
def test_value_is_the_maximum_payoff_and_the_response_attains_it(offers: Assortments, alpha: float, seed: int) -> None:
    generator = np.random.default_rng(seed)
    distance = L2(offers, alpha)
    residual = generator.normal(size=offers.n_coordinates)

    def payoff(dual: Vec) -> float:
        return float(distance.lift(residual) @ dual) - alpha * distance.potential(dual)

    best = distance.respond(residual)
    assert np.linalg.norm(best) <= 1.0 + 1e-12
    assert payoff(best) == pytest.approx(distance.value(residual))
    for _ in range(5):
        assert payoff(random_dual(residual.size, generator)) <= distance.value(residual) + 1e-12


@cases
def test_prox_is_optimal_and_inside_the_ball(offers: Assortments, alpha: float, seed: int) -> None:
    generator = np.random.default_rng(seed)
    distance = L2(offers, alpha)
    slope = generator.normal(size=offers.n_coordinates) * generator.choice([0.01, 1.0, 10.0])
    found = distance.prox(slope)
    assert np.linalg.norm(found) <= 1.0 + 1e-12
    least = slope @ found + distance.potential(found)
    for _ in range(5):
        other = random_dual(slope.size, generator)
        assert least <= slope @ other + distance.potential(other) + 1e-12
    gradient = slope + distance.mirror(found)
    assert gradient @ found == pytest.approx(-np.linalg.norm(gradient), abs=1e-9)  # least over the whole ball


@cases
def test_constants_bound_and_maps_are_adjoint(offers: Assortments, alpha: float, seed: int) -> None:
    generator = np.random.default_rng(seed)
    distance = L2(offers, alpha)
    dual = random_dual(offers.n_coordinates, generator)
    start = distance.start()
    assert 0.0 <= distance.potential(dual) - distance.potential(start) <= distance.width
    x = offers.vertex(generator.permutation(offers.n_items))
    p = offers.vertex(generator.permutation(offers.n_items))
    gradient = distance.lift(x - p) - alpha * distance.mirror(dual)
    assert np.linalg.norm(gradient) <= distance.grad_bound + 1e-12
    change = generator.normal(size=offers.n_coordinates)
    assert abs(distance.lift(change) @ dual) <= distance.lipschitz * np.linalg.norm(change)
    assert distance.lift(change) @ dual == pytest.approx(change @ distance.costs(dual))
    assert distance.unsmoothed(change) == pytest.approx(np.linalg.norm(change))


@cases
def test_smoothing_error_is_bounded(offers: Assortments, alpha: float, seed: int) -> None:
    residual = np.random.default_rng(seed).normal(size=offers.n_coordinates)
    plain, smooth = L2(offers).value(residual), L2(offers, alpha).value(residual)
    assert plain - alpha / 2 - 1e-12 <= smooth <= plain + 1e-12


def test_distance_of_nothing_is_zero() -> None:
    offers = Assortments([("a", "b")])
    assert L2(offers).value(np.zeros(2)) == 0.0
    assert L2(offers).respond(np.zeros(2)).tolist() == [0.0, 0.0]


def test_distances_by_name() -> None:
    offers = Assortments([("a", "b")])
    assert distances.make("l2", offers) == L2(offers)
    assert distances.make(L2(offers, 0.5), offers) == L2(offers, 0.5)
    with pytest.raises(ValueError, match="no distance 'l3000': choose one of 'l2'"):
        distances.make("l3000", offers)
    with pytest.raises(ValueError, match="smoothing -1"):
        L2(offers, -1.0)
