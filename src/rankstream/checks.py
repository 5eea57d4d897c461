"""Conformance tests for your own distance, learner or oracle. Each raises an AssertionError that explains the problem.

>>> from rankstream import Assortments, distances, learners, oracles
>>> offers = Assortments([("tea", "cake", "nothing"), ("tea", "pie", "nothing")])
>>> check_distance(distances.L2(offers), offers)
>>> check_learner(learners.DualAveraging(), distances.L2(offers), offers)
>>> check_oracle(oracles.auto(offers), offers)
"""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np

from rankstream import oracles
from rankstream._core.types import Vec
from rankstream.data.assortments import Assortments
from rankstream.distances import Distance
from rankstream.learners import Learner
from rankstream.oracles import Oracle
from rankstream.solver.loop import Solver

__all__ = ["check_distance", "check_learner", "check_oracle"]

SLACK = 1e-7  # relative tolerance of inequalities, for rounding


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def _about(value: float, expected: float) -> bool:
    return abs(value - expected) <= SLACK * (1.0 + abs(expected))


class _Samples:
    """Random duals, model points and frequencies to try a distance on."""

    def __init__(self, distance: Distance, assortments: Assortments, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.assortments = assortments
        size = distance.start().size
        self.slopes = [self.random.normal(size=size) * scale for scale in (0.1, 1.0, 1.0, 10.0, 100.0)]
        self.duals = [distance.start(), *(distance.prox(slope) for slope in self.slopes)]
        self.potentials = [distance.potential(dual) for dual in self.duals]
        self.points = [self.model_point() for _ in range(4)]
        self.frequencies = [*(self.model_point() for _ in range(2)), *(self.shares() for _ in range(3))]

    def model_point(self) -> Vec:
        """Choice probabilities of a few random rankings."""
        weights = self.random.dirichlet(np.ones(4))
        rankings = [self.random.permutation(self.assortments.n_items) for _ in weights]
        point: Vec = weights @ np.array([self.assortments.vertex(ranking) for ranking in rankings])
        return point

    def shares(self) -> Vec:
        """Frequencies that need not come from rankings."""
        raw = self.random.gamma(0.5, size=self.assortments.n_coordinates) + 1e-9
        shares: Vec = raw / np.add.reduceat(raw, self.assortments.indptr[:-1])[self.assortments.owner]
        return shares


def check_distance(distance: Distance, assortments: Assortments, seed: int = 0) -> None:
    """Check that a distance satisfies ``distances.Distance``, on random duals, models and frequencies."""
    samples = _Samples(distance, assortments, seed)
    _check_potential(distance, samples)
    for frequencies in samples.frequencies:
        for point in samples.points:
            _check_payoff(distance, samples, point, frequencies)
    _check_reasonable(distance, samples)
    _check_data(distance, samples)


def _check_potential(distance: Distance, samples: _Samples) -> None:
    start, least, width = samples.duals[0], samples.potentials[0], distance.width
    most = distance.largest_potential * (1 + SLACK) + SLACK
    for slope, nearest, potential in zip(samples.slopes, samples.duals[1:], samples.potentials[1:], strict=True):
        value = float(slope @ nearest) + potential
        gradient = slope + distance.mirror(nearest)
        slack = SLACK * (1.0 + float(np.abs(slope).max()) + abs(value))
        for dual, dual_potential in zip(samples.duals, samples.potentials, strict=True):
            better = float(slope @ dual) + dual_potential
            _require(value <= better + slack, f"prox is not optimal: {value} where {better} is possible.")
            if distance.mirror_bound < np.inf:
                _require(float(gradient @ (dual - nearest)) >= -slack, "prox is not optimal to first order.")
    for dual, value in zip(samples.duals, samples.potentials, strict=True):
        _require(value >= least - SLACK, "start is not a dual of least potential.")
        _require(value - least <= width * (1 + SLACK) + SLACK, f"width {width} is less than {value - least}.")
        _require(abs(value) <= most, "largest_potential is not the largest.")
        mirror = distance.mirror(dual)
        _require(np.allclose(distance.prox(-mirror), dual, atol=1e-6), "prox does not invert mirror.")
        for other, potential in zip(samples.duals, samples.potentials, strict=True):
            bregman = potential - value - float(mirror @ (other - dual))
            _require(bregman >= -SLACK * (1 + abs(value)), "mirror is not the gradient of a convex potential.")
    mixed = 0.25 * start + 0.75 * samples.duals[-1]
    together = 0.25 * distance.costs(start) + 0.75 * distance.costs(samples.duals[-1])
    _require(np.allclose(distance.costs(mixed), together), "costs is not linear in the dual.")


def _check_payoff(distance: Distance, samples: _Samples, point: Vec, frequencies: Vec) -> None:
    def payoff(dual: Vec) -> float:
        return float(distance.costs(dual) @ point) - distance.offset(dual, frequencies)

    value, best = distance.value(point, frequencies), distance.respond(point, frequencies)
    _require(_about(payoff(best), value), f"respond pays {payoff(best)}, but value is {value}.")
    _require(np.allclose(distance.prox(-distance.mirror(best)), best, atol=1e-6), "respond leaves the dual domain.")
    duals = [*samples.duals, best]
    every = [*zip(duals, map(payoff, duals), [*samples.potentials, distance.potential(best)], strict=True)]
    for dual, pays, potential in every[:-1]:
        mirror = distance.mirror(dual)
        _require(pays <= value + SLACK * (1 + abs(value)), f"a dual pays {pays}, more than value {value}.")
        pull = distance.pull(point, dual, frequencies)
        gradient = pull - distance.smoothing * mirror if distance.smoothing else pull
        for other, reached, raised in every:
            step = other - dual
            ahead = pays + float(gradient @ step)
            _require(reached <= ahead + SLACK * (1 + abs(ahead)), "pull - smoothing * mirror is not a gradient.")
            apart = raised - potential - float(mirror @ step)
            reach = distance.grad_bound * np.sqrt(2.0 * max(apart, 0.0))
            _require(float(pull @ step) <= reach + SLACK * (1 + reach), "grad_bound does not bound the pull.")
            if distance.mirror_bound < np.inf:
                reach = distance.mirror_bound * np.sqrt(2.0 * max(apart, 0.0))
                _require(abs(float(mirror @ step)) <= reach + SLACK * (1 + reach), "mirror_bound is too small.")


def _check_reasonable(distance: Distance, samples: _Samples) -> None:
    for truth in samples.frequencies[:2]:
        for point in samples.points:
            value, first = distance.value(point, truth), samples.points[0]
            middle = distance.value(0.5 * (point + first), truth)
            mean = 0.5 * (value + distance.value(first, truth))
            _require(middle <= mean + SLACK, "value is not convex in the model.")
            near = distance.value(0.98 * truth + 0.02 * point, truth)
            best = distance.value(truth, truth)
            _require(best <= min(value, near) + SLACK, "a model equal to the data is not the nearest one.")


def _check_data(distance: Distance, samples: _Samples) -> None:
    before, after = samples.frequencies[-2:]
    radii = np.add.reduceat(np.abs(before - after), samples.assortments.indptr[:-1])
    size = distance.data_norm(before - after)
    _require(size <= distance.data_radius(radii) * (1 + SLACK), "data_radius is less than a data_norm inside it.")
    duals = [*samples.duals, distance.respond(before, after), distance.respond(after, before)]
    changes = np.array([distance.offset(dual, before) - distance.offset(dual, after) for dual in duals])
    most = 2.0 * distance.lipschitz * size
    _require(float(np.ptp(changes)) <= most * (1 + SLACK) + SLACK, f"lipschitz {distance.lipschitz} is too small.")
    largest = distance.data_change(before, after)
    _require(float(changes.max()) <= largest + SLACK, "data_change is not the largest change.")
    if not distance.affine:
        return
    for dual in duals:
        middle = 0.5 * (distance.offset(dual, before) + distance.offset(dual, after))
        _require(_about(distance.offset(dual, 0.5 * (before + after)), middle), "the offset is not affine.")
    seen = (np.arange(samples.assortments.n_offers) % 2 == 0)[samples.assortments.owner]
    for dual in samples.duals:
        silent = distance.silence(dual, seen)
        _require(np.allclose(distance.prox(-distance.mirror(silent)), silent, atol=1e-6), "silence leaves the domain.")
        earned = distance.costs(silent)[~seen] @ (before - after)[~seen]
        _require(abs(float(earned)) <= SLACK, "silence still prices offers that were not seen.")


def check_learner(
    learner: Learner[Any], distance: Distance, assortments: Assortments, rounds: int = 60, seed: int = 0
) -> None:
    """Check that a learner stays in the dual domain, is deterministic, and meets its regret bound on moving data.

    Parameters
    ----------
    learner : Learner
        The learner to check.
    distance : Distance
        The distance it plays against.
    assortments : Assortments
        The offers; a few small ones are enough.
    rounds : int
        Length of each of the three streams of data.
    seed : int
        Seed of the data and of ties.
    """
    samples = _Samples(distance, assortments, seed)
    first, second = samples.frequencies[:2]
    corner = assortments.vertex(range(assortments.n_items))
    opposite = assortments.vertex(range(assortments.n_items - 1, -1, -1))
    streams: list[Callable[[int], Vec]] = [
        lambda _: first,
        lambda t: first + (second - first) / t,
        lambda t: corner if t % 2 else opposite,
    ]
    solver = Solver(assortments, distance, learner, oracles.auto(assortments, seed=seed))
    for shares in streams:
        state, twin = solver.init(), solver.init()
        for t in range(1, rounds + 1):
            dual = learner.play(state.learner)
            _require(bool(np.isfinite(dual).all()), f"round {t} plays a dual that is not finite.")
            inside = distance.prox(-distance.mirror(dual))
            _require(np.allclose(inside, dual, atol=1e-6), f"round {t} plays a dual outside the domain.")
            _require(learner.round_weight(t) > 0.0, f"round {t} has no positive weight.")
            before = dual.copy()
            state = solver.step(state, shares(t))
            twin = solver.step(twin, shares(t))
            _require(np.array_equal(before, dual), "update changes a dual that was already played.")
            _require(np.array_equal(state.sums.dual, twin.sums.dual), "the same rounds do not give the same duals.")
            if t % 5 == 0 or t < 4:
                regret = solver.certificate(state).dual_regret
                bound = learner.regret_bound(distance, t, constant=shares is streams[0])
                _require(regret is None or regret <= bound + SLACK, f"the dual regret {regret} exceeds {bound}.")


def check_oracle(oracle: Oracle, assortments: Assortments, seed: int = 0) -> None:
    """Check that an oracle's answers are rankings with their true cost and a valid bound (up to 7 items)."""
    random = np.random.default_rng(seed)
    size = assortments.n_coordinates
    trials = [np.zeros(size), *random.normal(size=(5, size)), *random.integers(-2, 3, size=(5, size)).astype(float)]
    for costs in [*trials, 1e6 * trials[1], 1e-6 * trials[1]]:
        original = costs.copy()
        answer = oracle.cheapest(costs)
        _require(np.array_equal(costs, original), "the oracle modifies the costs.")
        ranking = np.asarray(answer.ranking).tolist()
        _require(sorted(ranking) == list(range(assortments.n_items)), f"{ranking} is not a ranking of all items.")
        true = float(costs @ assortments.vertex(answer.ranking))
        slack = 1e-9 * (1e-9 + float(np.abs(costs).sum()))
        _require(abs(answer.value - true) <= slack, f"the value is {answer.value}, but the ranking costs {true}.")
        _require(answer.bound <= answer.value, f"the bound {answer.bound} exceeds the value {answer.value}.")
        if assortments.n_items <= 7:
            least = min(float(costs @ assortments.vertex(order)) for order in permutations(range(assortments.n_items)))
            _require(answer.bound <= least + slack, f"the bound {answer.bound} exceeds the minimum {least}.")
        _require(oracle.cheapest(costs).value == answer.value, "the same costs have another value the second time.")
