"""The compiled loops of distances against bisection, and against the distances that Python computes."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import naive_distances
import strategies
from rankstream import Assortments
from rankstream.distances import L1, L2, LInf, MaxDifference, domain_kernels

OFFERS = Assortments([("a", "b", "x"), ("b", "c", "d", "x"), ("x", "a"), ("d", "x")])
WEIGHTS = (0.5, 2.0, 1.0, 0.25)
SEEDS = st.integers(0, 2**32 - 1)


@given(st.floats(0.0, 30.0), st.floats(0.0, 1e3), st.floats(2.001, 20.0))
def test_shrinking_equals_bisection(size: float, price: float, power: float) -> None:
    assert domain_kernels.shrink(size, price, power) == pytest.approx(
        naive_distances.shrink(size, price, power), rel=1e-9, abs=1e-12
    )


@strategies.examples(20)
@given(st.floats(2.01, 12.0), st.integers(1, 4), SEEDS, st.sampled_from([0.1, 1.0, 5.0]))
def test_projection_onto_power_balls_equals_bisection(power: float, size: int, seed: int, scale: float) -> None:
    point, out = np.random.default_rng(seed).normal(size=size) * scale, np.empty(size)
    domain_kernels.project_onto_power_ball(point, power, out)
    np.testing.assert_allclose(out, naive_distances.project_onto_power_ball(point, power), atol=1e-9)


@given(strategies.assortments(), st.sampled_from([0.1, 3.0]), st.sampled_from([-1e4, 0.0, 1e4, 1e20]), SEEDS)
def test_proxes_are_the_same_however_high_the_scores(
    offers: Assortments, factor: float, shift: float, seed: int
) -> None:
    scores = factor * np.random.default_rng(seed).normal(size=offers.n_coordinates)
    room = 1e-9 + 1e-12 * abs(shift)
    if shift < 1e20:  # beyond, rounding takes all differences
        softmax = MaxDifference(offers).prox(-scores - shift)
        np.testing.assert_allclose(softmax, naive.softmax_by_offer(offers, scores), atol=room)
    assert np.isfinite(MaxDifference(offers).prox(-scores - shift)).all()


def entrance(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A way in from Python to an inner kernel, which has none."""
    found: Callable[..., Any] = numba.njit(lambda *values: kernel(*values))
    return found


euclidean, lift, largest, towards, potential_of = (
    entrance(getattr(domain_kernels, name)) for name in ("euclidean", "lift", "largest", "towards", "potential_of")
)
DOMAINS = {domain_kernels.BALL: L2, domain_kernels.BOX: L1, domain_kernels.SIMPLEX: LInf}


@given(st.sampled_from(sorted(DOMAINS)), st.sampled_from([0.0, 0.05, 1.5]), st.booleans(), st.booleans(), SEEDS)
def test_domain_kernels_equal_the_distances(
    domain: int, smoothing: float, weighted: bool, met: bool, seed: int
) -> None:
    random = np.random.default_rng(seed)
    distance = DOMAINS[domain](OFFERS, smoothing, WEIGHTS if weighted else None)
    point, frequencies = random.uniform(size=(2, OFFERS.n_coordinates))
    scale = np.ones(point.size) if distance.scale is None else distance.scale
    lifted, dual = np.empty((2, distance.start().size))
    lift(domain, point, frequencies, scale, lifted)
    np.testing.assert_allclose(lifted, distance.lift(point - frequencies))
    if met:  # no error at all, so that everything ties
        lifted[:] = 0.0
    assert euclidean(lifted) == pytest.approx(float(np.linalg.norm(lifted)))
    value = largest(domain, lifted, smoothing, 1.0)
    assert value == pytest.approx(distance.largest(lifted, smoothing), abs=1e-12)
    for sign in (1.0, -1.0):
        towards(domain, sign * lifted, sign, smoothing, 1.0, dual)
        np.testing.assert_allclose(dual, distance.best_dual(lifted), atol=1e-12)
        potential = potential_of(domain, dual)
        assert potential == pytest.approx(distance.potential(dual), abs=1e-12)
