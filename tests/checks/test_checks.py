from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from milp_oracle import MilpOracle
from rankstream import Assortments, checks, learners, oracles
from rankstream._core.types import Vec
from rankstream.distances import KL, L1, L2, MaxDifference
from rankstream.learners.players import Moved
from rankstream.oracles import Answer
from rankstream.solver.loop import Solver

pytestmark = pytest.mark.quick

OFFERS = Assortments([("a", "b", "x"), ("b", "c", "x"), ("c", "d", "x")])


def test_the_librarys_oracles_conform() -> None:
    for oracle in (oracles.auto(OFFERS), oracles.auto(OFFERS, "first"), oracles.auto(OFFERS, "last")):
        checks.check_oracle(oracle, OFFERS)
    small = Assortments([("a", "b"), ("b", "c")])
    checks.check_oracle(MilpOracle(small), small)


class ShortProx(L2):
    def prox(self, slope: Vec) -> Vec:
        return 0.9 * super().prox(slope)


class WrongValue(L2):
    def value(self, vertex: Vec, frequencies: Vec) -> float:
        return 0.5 * super().value(vertex, frequencies)


class WrongResponse(L2):
    def respond(self, vertex: Vec, frequencies: Vec) -> Vec:
        return -super().respond(vertex, frequencies)


class Askew(L2):
    """The distance from half of the shares, which is consistent, and not least where a model equals the data."""

    def offset(self, dual: Vec, frequencies: Vec) -> float:
        return super().offset(dual, 0.5 * frequencies)

    def pull(self, vertex: Vec, dual: Vec, frequencies: Vec) -> Vec:
        return super().pull(vertex, dual, 0.5 * frequencies)

    def respond(self, vertex: Vec, frequencies: Vec) -> Vec:
        return super().respond(vertex, 0.5 * frequencies)

    def value(self, vertex: Vec, frequencies: Vec) -> float:
        return super().value(vertex, 0.5 * frequencies)


class SmallWidth(L2):
    width = 0.1


class SmallBound(L2):
    grad_bound = 0.1


class SmallLipschitz(MaxDifference):
    lipschitz = 0.01


class WrongPull(L2):
    def pull(self, vertex: Vec, dual: Vec, frequencies: Vec) -> Vec:
        return -super().pull(vertex, dual, frequencies)


class WrongMirror(L2):
    def mirror(self, dual: Vec) -> Vec:
        return 2.0 * dual


class CurvedCosts(L2):
    def costs(self, dual: Vec) -> Vec:
        return dual**2


class WideResponse(L2):
    def respond(self, vertex: Vec, frequencies: Vec) -> Vec:
        return 2.0 * super().respond(vertex, frequencies)

    def value(self, vertex: Vec, frequencies: Vec) -> float:
        return 2.0 * super().value(vertex, frequencies)


class NotSilent(L2):
    def silence(self, dual: Vec, _: Any) -> Vec:
        return dual


class LoudSilence(L2):
    """Silent about the right offers, but half as far again from 0 as a dual may be."""

    def silence(self, dual: Vec, seen: Any) -> Vec:
        silent = super().silence(dual, seen)
        return 1.5 * silent / max(1e-9, float(np.linalg.norm(silent)))


class HalfChange(L2):
    def data_change(self, frequencies: Vec, other: Vec) -> float:
        return 0.5 * super().data_change(frequencies, other)


class FalselyAffine(KL):
    affine = True


class SmallMirrorBound(L2):
    mirror_bound = 0.01


class SmallRadius(L2):
    def data_radius(self, l1_radii: Vec) -> float:
        return 0.1 * super().data_radius(l1_radii)


class SlightlySmallRadius(L1):
    """In l1, the sum of the radii is the norm itself: one percent less is too little."""

    def data_radius(self, l1_radii: Vec) -> float:
        return 0.99 * super().data_radius(l1_radii)


class RadiusOfOneOffer(L1):
    """Without the radii of all other offers."""

    def data_radius(self, l1_radii: Vec) -> float:
        return float(l1_radii[0])


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (ShortProx, "prox is not optimal"),
        (WrongValue, "value is"),
        (WrongResponse, "respond pays"),
        (Askew, "a model equal to the data is not the nearest one"),
        (SmallWidth, "width"),
        (SmallBound, "grad_bound does not bound"),
        (SmallLipschitz, "lipschitz"),
        (WrongPull, "not a gradient"),
        (WrongMirror, "prox is not optimal to first order"),
        (CurvedCosts, "costs is not linear"),
        (SmallRadius, "data_radius"),
        (SlightlySmallRadius, "data_radius"),
        (RadiusOfOneOffer, "data_radius"),
        (WideResponse, "respond leaves the dual domain"),
        (NotSilent, "silence still prices"),
        (LoudSilence, "silence leaves the domain"),
        (HalfChange, "data_change is not the largest"),
        (FalselyAffine, "not affine"),
        (SmallMirrorBound, "mirror_bound is too small"),
    ],
)
def test_broken_distances_are_caught(broken: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        checks.check_distance(broken(OFFERS), OFFERS)


@dataclass(frozen=True)
class Runaway(learners.MirrorDescent):
    def update(self, _: Any, state: Moved, played: Any) -> Moved:
        return state._replace(dual=state.dual + played.vertex)


@dataclass(frozen=True)
class Stubborn(learners.MirrorDescent):
    def update(self, _: Any, state: Moved, __: Any) -> Moved:
        return state

    def regret_bound(self, _: Any, __: int, constant: bool = False) -> float:
        return 0.01 + constant


@dataclass(frozen=True)
class Scribbler(learners.MirrorDescent):
    def update(self, distance: Any, state: Moved, played: Any) -> Moved:
        found = super().update(distance, state, played)
        state.dual[:] = found.dual
        return state


@dataclass(frozen=True)
class Weightless(learners.MirrorDescent):
    def round_weight(self, number: int) -> float:
        return 1.0 if number < 3 else 0.0


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Runaway, "outside the domain"),
        (Stubborn, "the dual regret .* exceeds"),
        (Scribbler, "changes a dual"),
        (Weightless, "no positive weight"),
    ],
)
def test_broken_learners_are_caught(broken: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        checks.check_learner(broken(horizon=60), L2(OFFERS), OFFERS)


class Broken:
    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.inner = oracles.auto(OFFERS)
        self.calls = 0

    def cheapest(self, costs: Vec) -> Answer:
        self.calls += 1
        if self.fault == "careless":
            answer = self.inner.cheapest(-costs)
            value = float(costs @ OFFERS.vertex(answer.ranking))
            return Answer(answer.ranking, value, value)
        answer = self.inner.cheapest(costs)
        if self.fault == "short":
            return answer._replace(ranking=answer.ranking[:-1])
        if self.fault == "boasting":
            return answer._replace(value=answer.value - 1.0, bound=answer.value - 1.0)
        if self.fault == "overbound":
            return answer._replace(bound=answer.value + 1.0)
        if self.fault == "moody" and self.calls % 2:
            worst = self.inner.cheapest(-costs)
            return Answer(worst.ranking, float(costs @ OFFERS.vertex(worst.ranking)), answer.bound)
        if self.fault == "scribbling":
            costs += 1.0
        return answer


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("careless", "exceeds the minimum"),
        ("short", "not a ranking of all items"),
        ("boasting", "but the ranking costs"),
        ("overbound", "exceeds the value"),
        ("moody", "another value the second time"),
        ("scribbling", "modifies the costs"),
    ],
)
def test_broken_oracles_are_caught(fault: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        checks.check_oracle(Broken(fault), OFFERS)


def test_checks_are_silent_about_what_is_right() -> None:
    checks.check_distance(L2(OFFERS), OFFERS, seed=5)
    checks.check_learner(learners.MirrorDescent(horizon=60), L2(OFFERS), OFFERS, seed=5)
    assert np.isfinite(L2(OFFERS).width)


def test_learners_are_tried_on_data_that_rest_that_come_to_rest_and_that_swing(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Vec] = []

    def step(solver: Any, state: Any, shares: Vec) -> Any:
        seen.append(shares)
        return usual(solver, state, shares)

    usual = Solver.step
    monkeypatch.setattr(Solver, "step", step)
    checks.check_learner(learners.MirrorDescent(horizon=60), L2(OFFERS), OFFERS, rounds=6)
    rounds = np.array(seen[::2]).reshape(3, 6, -1)  # each round is made twice
    assert (rounds[0] == rounds[0, 0]).all()
    lengths = np.abs(np.diff(rounds[1], axis=0)).sum(axis=1)
    assert (lengths[1:] < lengths[:-1]).all()
    assert lengths[-1] > 0.0
    forth, back = OFFERS.vertex(range(OFFERS.n_items)), OFFERS.vertex(range(OFFERS.n_items - 1, -1, -1))
    assert (rounds[2] == np.array([forth, back] * 3)).all()
