"""What a certificate may claim: with dishonest-looking oracles, exact arithmetic, and duals that prove too little."""

from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import Any

import numpy as np
import pytest

import naive
from rankstream import Assortments, ChoiceCounts, Solver, distances, learners, oracles
from rankstream._core.types import Mask, Vec
from rankstream.certificate import Certificate, certify, confidence_radii, confident_gap
from rankstream.data.counts import Target
from rankstream.distances import KL, L2, Distance, EuclideanPotential
from rankstream.oracles import Answer, LatticeOracle, Oracle
from rankstream.solver.loop import State
from rankstream.solver.runs import Run, chunk

CYCLE = Assortments([("a", "b"), ("b", "c"), ("a", "c")])
IMPOSSIBLE = np.array([0.9, 0.1, 0.9, 0.1, 0.1, 0.9])  # a before b before c before a: no mixture of rankings
OFFERS = Assortments([("a", "b", "x"), ("b", "c", "x"), ("x", "a"), ("c", "x")])
WEIGHTS = (0.5, 2.0, 1.0, 0.25)
NAMES = ["l1", "l1.5", "l2", "l4", "linf", "max-difference", "squared-l2", "squared-l3"]


def play(
    distance: Distance, shares: Vec | ChoiceCounts, rounds: int, offers: Assortments = CYCLE
) -> tuple[Solver, State]:
    learner = learners.DualAveraging()
    solver = Solver(offers, distance, learner, oracles.auto(offers))
    state = solver.init()
    for _ in range(rounds):
        state = solver.step(state, shares)
    return solver, state


class Modest:
    """An exact oracle that answers with the dearest ranking, or with a bound lower than it knows; both are honest."""

    def __init__(self, offers: Assortments, dearest: bool, short: float) -> None:
        self.exact, self.dearest, self.short = oracles.auto(offers), dearest, short

    def cheapest(self, costs: Vec) -> Answer:
        least = self.exact.cheapest(costs)
        most = self.exact.cheapest(-costs)
        ranking, value = (most.ranking, -most.value) if self.dearest else (least.ranking, least.value)
        return Answer(ranking, value, least.value - self.short)


@pytest.mark.parametrize("dearest", [False, True])
@pytest.mark.parametrize("short", [0.0, 0.125])
def test_lower_comes_from_the_bound_and_not_from_the_answer(dearest: bool, short: float) -> None:
    solver, state = play(L2(CYCLE), IMPOSSIBLE, 300)
    proven = solver.certificate(state)
    assert proven.lower > 0.5
    modest: Oracle = Modest(CYCLE, dearest, short)
    found = certify(state.sums, solver.distance, modest, truth=IMPOSSIBLE)
    assert found.lower == pytest.approx(proven.lower - short, abs=1e-12)
    assert found.true_gap == pytest.approx(proven.gap + short, abs=1e-12)
    assert found.oracle_regret == pytest.approx(proven.oracle_regret + short, abs=1e-12)
    assert found.exact == (not dearest and not short)
    best = naive.least_distance("l2", naive.all_vertices(CYCLE), IMPOSSIBLE)
    assert found.lower <= best + 1e-9


def test_lower_holds_in_exact_arithmetic() -> None:
    """Sums of floats can come out too large: what they are off by is taken off the bound, and not much more."""
    random, corners, off = np.random.default_rng(0), naive.all_vertices(CYCLE), 0
    for _ in range(60):
        shares = random.dirichlet([1.0, 1.0], size=3).ravel()
        solver, state = play(L2(CYCLE), shares, 7)
        dual = [Fraction(y) for y in state.sums.mean_dual.tolist()]
        least = min(sum(y for y, one in zip(dual, corner, strict=True) if one) for corner in corners.tolist())
        for at in (shares, random.dirichlet([1.0, 1.0], size=3).ravel()):
            exact = least - sum(y * Fraction(p) for y, p in zip(dual, at.tolist(), strict=True))
            lower = solver.certificate(state, at).mean_dual_lower
            assert lower is not None
            assert Fraction(lower) <= exact
            assert lower > float(exact) - 1e-12
            mean = state.sums.mean_dual
            plain = solver.oracle.cheapest(mean).bound - solver.distance.offset(mean, at)
            off += Fraction(plain) > exact
    assert off > 10  # without the room for rounding some would be wrong


def test_regrets_are_of_the_duals_that_were_played() -> None:
    """A certificate about some of the offers silences the dual there; what the players regret has been played."""
    solver, state = play(L2(CYCLE), IMPOSSIBLE, 50)
    played = solver.certificate(state)
    counts = ChoiceCounts(CYCLE, [9, 1, 0, 0, 0, 0])
    part = solver.certificate(state, counts)
    assert part.lower < played.lower - 0.1
    assert part.oracle_regret == pytest.approx(played.oracle_regret, abs=1e-12)
    assert part.dual_regret == pytest.approx(played.dual_regret, abs=1e-12)


def best_value(distance: Distance, shares: Vec, corners: Vec) -> float:
    """As near as many mixtures of rankings come: what no proven bound may exceed."""
    random = np.random.default_rng(5)
    nearest = naive.nearest_l2(OFFERS, shares)
    points = [nearest, *corners, *(random.dirichlet(np.full(len(corners), 0.1)) @ corners for _ in range(20))]
    return min(distance.value(point, shares) for point in points)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("name", NAMES)
def test_no_gap_exceeds_what_the_trivial_dual_proves(name: str, smoothing: float, weights: Any) -> None:
    """After a few rounds the mean dual proves less than nothing; that a norm is not negative is known anyway."""
    if name.startswith("squared") and smoothing:
        return
    form = distances.make(name, OFFERS, smoothing, weights)
    sizes, count = np.diff(OFFERS.indptr), 2.0 * OFFERS.n_coordinates
    known = {"linf": smoothing * log(count), "max-difference": smoothing * float(np.log(sizes).sum())}.get(name, 0.0)
    random, corners, improved = np.random.default_rng(0), naive.all_vertices(OFFERS), 0
    for _ in range(6):
        raw = random.gamma(0.5, size=OFFERS.n_coordinates) + 1e-9
        shares = raw / np.add.reduceat(raw, OFFERS.indptr[:-1])[OFFERS.owner]
        truth = random.dirichlet(np.ones(4)) @ corners[random.integers(len(corners), size=4)]
        solver, state = play(form, shares, 3, OFFERS)
        for at in (None, truth, shares):
            found = solver.certificate(state, at, truth=truth)
            here = shares if at is None else at
            assert found.lower >= known - 1e-12
            assert found.gap <= form.value(state.sums.mean_vertex, here) - known + 1e-12
            assert found.lower <= best_value(form, here, corners) + 1e-9
            assert found.mean_dual_lower is not None
            assert found.lower >= found.mean_dual_lower
            assert found.true_gap is not None
            assert found.true_gap <= form.value(state.sums.mean_vertex, truth) - known + 1e-12
            improved += found.lower > found.mean_dual_lower
    assert improved  # or this test would show nothing


def test_the_trivial_dual_of_unseen_offers() -> None:
    shares = naive.all_vertices(OFFERS)[:4].mean(axis=0)
    counts = ChoiceCounts(OFFERS, [3, 2, 1, *[0] * 7])
    for name in NAMES:
        solver, state = play(distances.make(name, OFFERS), shares, 2, OFFERS)
        found = solver.certificate(state, counts)
        assert 0.0 <= found.gap <= found.upper + 1e-12


class Shifted(L2):
    """The norm less 1: a distance that can be negative, whose start proves -1 and no more."""

    def value(self, vertex: Vec, frequencies: Vec) -> float:
        return super().value(vertex, frequencies) - 1.0

    def offset(self, dual: Vec, frequencies: Vec) -> float:
        return super().offset(dual, frequencies) + 1.0


def test_the_trivial_dual_is_evaluated_and_not_assumed() -> None:
    solver, state = play(Shifted(OFFERS), naive.all_vertices(OFFERS)[:4].mean(axis=0), 3, OFFERS)
    found = solver.certificate(state)
    assert found.lower == pytest.approx(-1.0)
    assert found.mean_dual_lower is not None
    assert found.mean_dual_lower < -1.0


class Tilted(L2):
    """The norm with a dual that is not trivial at all; it is one of the ball, so what it proves still holds."""

    def trivial_dual(self) -> Vec:
        return np.where(np.arange(self.assortments.n_coordinates) % 2 == 0, 0.3, -0.3)


def test_a_trivial_dual_that_is_none_still_proves_nothing_wrong() -> None:
    corners = naive.all_vertices(CYCLE)
    for shares in (*corners, IMPOSSIBLE):
        solver, state = play(Tilted(CYCLE), shares, 2)
        assert solver.certificate(state).lower <= naive.least_distance("l2", corners, shares) + 1e-9


@dataclass(frozen=True)
class Overshoot(EuclideanPotential):
    """Somebody's own distance: too much counts twice as much as too little."""

    @property
    def width(self) -> float:
        return 2.0 * self.assortments.n_coordinates

    @property
    def lipschitz(self) -> float:
        return 2.0

    def project(self, point: Vec) -> Vec:
        return np.clip(point, -1.0, 2.0)

    def farthest(self, lifted: Vec) -> Vec:
        return np.where(lifted > 0.0, 2.0, -1.0)

    def data_norm(self, change: Vec) -> float:
        return float(np.abs(change).sum())

    def data_radius(self, l1_radii: Vec) -> float:
        return float(l1_radii.sum())


class Bare:
    """A distance of somebody who has never heard of trivial duals."""

    def __init__(self, inner: Distance) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        if name == "trivial_dual":
            raise AttributeError(name)
        return getattr(self.inner, name)


def test_other_distances_prove_what_their_mean_dual_proves() -> None:
    shares = naive.all_vertices(OFFERS)[:4].mean(axis=0)
    bare: Any = Bare(L2(OFFERS))
    for form in (bare, KL(OFFERS), KL(OFFERS, floor=0.3)):
        solver, state = play(form, shares, 3, OFFERS)
        found = solver.certificate(state)
        assert found.lower == found.mean_dual_lower
        assert found.lower < -0.01
    solver, state = play(
        Overshoot(OFFERS), shares, 3, OFFERS
    )  # whose start, the dual 0, proves that it is not negative
    assert solver.certificate(state).lower == pytest.approx(0.0, abs=1e-9)


def test_a_floored_divergence_can_be_negative_and_its_bound_knows() -> None:
    """Below the floor the tangent makes probability cheaper than its logarithm does: 0 is no bound."""
    offers = Assortments([("a", "b", "c", "d")])
    shares, form = np.array([0.9, 0.05, 0.04, 0.01]), KL(offers, floor=0.5)
    point = np.array([0.95, 0.05, 0.0, 0.0])
    assert form.value(point, shares) < 0.0
    solver, state = play(form, shares, 200, offers)
    assert solver.certificate(state).lower <= form.value(point, shares)


def test_sampling_error_counts_twice() -> None:
    """Both the model's distance and the least one can be off, in opposite directions: here they are.

    The same offer twice, of which customers take all of a or all of b: every model is at l1 distance 2, and the one
    that takes a has gap 0. Where in truth the first offer is a radius away from a, it is two radii worse than the best.
    """
    offers = Assortments([("a", "b"), ("b", "a")])
    distance = distances.L1(offers)
    counts = ChoiceCounts(offers, [40, 0, 4 * 10**9, 0])
    radii = confidence_radii(counts)
    assert radii[1] < 0.01 * radii[0]
    model, moved = np.array([1.0, 0.0, 0.0, 1.0]), 0.5 * radii[0]
    truth = np.array([1.0 - moved, moved, 1.0, 0.0])
    here = Certificate(distance.value(model, counts.frequencies()), 2.0, 0.0, 0.0, True)
    assert here.gap == pytest.approx(0.0)
    best = naive.least_distance("l1", naive.all_vertices(offers), truth)
    worse = distance.value(model, truth) - best
    assert worse == pytest.approx(2.0 * radii[0])
    assert worse <= confident_gap(here, distance, counts)
    assert confident_gap(here, distance, counts) == pytest.approx(2.0 * radii.sum())


def test_seen_marks_belong_to_the_round() -> None:
    """Once every offer has been seen, no mark is left: neither by single rounds nor by compiled ones."""
    seen: Mask = np.arange(6) < 2
    for compiled in (False, True):
        solver = Solver(CYCLE, L2(CYCLE), learners.DualAveraging(), LatticeOracle(CYCLE))
        assert chunk(solver) is not None
        run: Any = Run(solver, tolerance=0.0)
        run.advance(Target(np.where(seen, IMPOSSIBLE, np.nan), seen))
        assert np.array_equal(run.state.seen, seen)
        if compiled:
            run.advance_many(Target(IMPOSSIBLE), 20)
        else:
            run.advance(Target(IMPOSSIBLE))
        assert run.state.seen is None
        residual = np.abs(run.state.sums.mean_vertex - run.state.sums.mean_frequencies)
        assert run.state.mae == pytest.approx(residual.mean())
        assert run.last["mae"] == pytest.approx(residual.mean())


@pytest.mark.parametrize("weights", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("kind", [distances.LInf, distances.MaxDifference])
@pytest.mark.parametrize("smoothing", [0.0, 0.05, 0.5])
def test_offers_that_nobody_has_seen_do_not_count(kind: Any, smoothing: float, weights: bool) -> None:
    """The certificate beside unseen offers is about the seen ones alone; its bound holds for every ranking model."""
    random = np.random.default_rng(3)
    alone = Assortments([("a", "b", "c"), ("b", "c", "d")], tuple("abcd"))
    beside = Assortments([("a", "d"), ("a", "b", "c"), ("b", "c", "d"), ("a", "b", "d")], tuple("abcd"))
    corners = naive.all_vertices(alone)
    sizes = (0.5, 2.0) if weights else (1.0, 1.0)
    few, many = kind(alone, smoothing, sizes), kind(beside, smoothing, (1.5, *sizes, 0.7))
    for number in range(4):
        tallies = random.integers(1, 9, 6) if number else np.full(6, 3)
        shares = ChoiceCounts(alone, tallies).frequencies()
        counts = ChoiceCounts(beside, [0, 0, *tallies, 0, 0, 0])
        solver, state = play(many, counts, 200, beside)
        seen = counts.target().seen
        found = solver.certificate(state, counts)
        assert found.upper == pytest.approx(few.value(state.sums.mean_vertex[seen], shares), abs=1e-12)
        mixtures = [naive.nearest_l2(alone, shares), *corners, *(random.dirichlet(np.full(24, 0.2), 200) @ corners)]
        assert found.lower <= min(few.value(point, shares) for point in mixtures) + 1e-12
        assert found.lower >= found.upper - 0.2  # a bound that says something
        assert found.lower >= few.largest(few.lift(np.zeros(6)), smoothing) - 1e-9  # as near as no error at all
        assert solver.certificate(state).upper == pytest.approx(found.upper, abs=1e-12)


def test_a_perfect_fit_is_as_near_beside_unseen_offers() -> None:
    alone, beside = (
        Assortments([("a", "b"), ("b", "c")]),
        Assortments([("a", "b"), ("b", "c"), ("a", "c"), ("c", "a", "b")]),
    )
    counts = ChoiceCounts(beside, [5, 5, 5, 5, 0, 0, 0, 0, 0])
    for make in (distances.LInf, distances.MaxDifference):
        run = Run(Solver(beside, make(beside, 0.1), learners.DualAveraging(), oracles.auto(beside)))
        for _ in range(100):
            run.advance(counts)
        shares = np.full(4, 0.5)
        assert run.result().history.distance[-1] == pytest.approx(make(alone, 0.1).value(shares, shares), abs=1e-3)
