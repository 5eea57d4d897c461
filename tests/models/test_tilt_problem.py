"""The smooth problem behind a tilt, with a law of three rankings: values, slopes, gaps and proofs by hand."""

from typing import Any

import numpy as np
import pytest

from rankstream import Assortments, ChoiceCounts
from rankstream.models.entropy import trust
from rankstream.models.entropy.trust import Curvature, TiltProblem, _EnoughError, tilt_weights

pytestmark = pytest.mark.quick
VERTICES = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]])
PRIOR = np.array([0.5, 0.3, 0.2])
FREQUENCIES, WEIGHTS = np.array([0.2, 0.8, 0.7, 0.3]), np.array([4.0, 2.0, 8.0, 1.0])


class Law:
    """A law over three rankings that is tilted by duals."""

    def evaluate(self, duals: Any) -> tuple[float, Any]:
        terms = PRIOR * np.exp(-VERTICES @ duals)
        return float(np.log(terms.sum())), terms @ VERTICES / terms.sum()


def problem(tolerance: float = -1.0, **given: Any) -> TiltProblem:
    return TiltProblem(Law(), FREQUENCIES, WEIGHTS, tolerance, **given)


def height(duals: Any) -> float:
    value, _ = Law().evaluate(duals)
    return value + float(FREQUENCIES @ duals) + 0.5 * float((duals**2 / WEIGHTS).sum())


def test_values_and_slopes_are_those_of_the_dual() -> None:
    duals, step = np.array([0.3, -0.2, 0.1, 0.4]), 1e-6
    found, slope = problem()._value(duals)
    assert found == pytest.approx(height(duals))
    for place in range(4):
        ahead, behind = duals.copy(), duals.copy()
        ahead[place] += step
        behind[place] -= step
        assert slope[place] == pytest.approx((height(ahead) - height(behind)) / (2.0 * step), abs=1e-6)


def test_the_gap_is_between_the_cost_of_a_model_and_the_best_dual_value() -> None:
    duals = np.array([0.3, -0.2, 0.1, 0.4])
    given = problem()
    _, slope = given._value(duals)
    _, shares = Law().evaluate(duals)
    divergence = -float(duals @ shares) - Law().evaluate(duals)[0]  # of the tilted law from the prior
    cost = divergence + 0.5 * float(WEIGHTS @ (FREQUENCIES - shares) ** 2)
    assert given.cost == pytest.approx(cost)
    assert given.bound == pytest.approx(-height(duals))
    assert given.gap == pytest.approx(0.5 * float(WEIGHTS @ slope**2)) == pytest.approx(cost - given.bound)
    assert (given.evaluations, given.duals.tolist()) == (1, duals.tolist())
    assert given.fitted == pytest.approx(shares)


def test_the_best_model_and_the_best_proof_are_kept_apart() -> None:
    given, rng = problem(), np.random.default_rng(3)
    points = [rng.normal(scale=0.5, size=4) for _ in range(12)]
    costs, bounds = [], []
    for point in points:
        given._value(point)
        fresh = problem()
        fresh._value(point)
        costs.append(fresh.cost)
        bounds.append(fresh.bound)
        assert given.cost == min(costs)
        assert given.bound == max(bounds)
        assert given.duals == pytest.approx(points[int(np.argmin(costs))])
        assert given.gap <= given.cost - given.bound + 1e-12
    assert given.evaluations == 12


def test_a_problem_is_solved_until_its_gap_is_small_or_it_is_told() -> None:
    given = problem(1e-9)
    given.solve(np.zeros(4), 200)
    assert given.gap <= 1e-9
    _, shares = Law().evaluate(given.duals)
    assert given.duals == pytest.approx(WEIGHTS * (shares - FREQUENCIES), abs=1e-3)  # where the slope is 0
    told: list[str] = []

    def watch(text: str, _share: float = 1.0) -> bool:
        told.append(text)
        return len(told) == 3

    stopped = problem(watch=watch)
    stopped.solve(np.zeros(4), 200)
    assert (stopped.evaluations, len(told)) == (3, 3)
    assert told[0].startswith("evaluation 1, gap ")
    with pytest.raises(_EnoughError):
        problem(1e9)._value(np.zeros(4))


def test_steps_with_a_curvature_end_sooner() -> None:
    exact = problem(1e-12)
    exact.solve(np.zeros(4), 500)
    sample = np.repeat(VERTICES, (50, 30, 20), axis=0)
    curvature = Curvature(sample, WEIGHTS)
    center = sample - sample.mean(axis=0)
    hessian = np.diag(1.0 / WEIGHTS) + center.T @ center / len(sample)
    slope = np.array([0.5, -1.0, 0.25, 2.0])
    assert curvature.solve(slope) == pytest.approx(np.linalg.solve(hessian, slope))
    near = problem(1e-9)
    near.solve(np.zeros(4), 200, curvature)
    assert near.gap <= 1e-9
    assert near.duals == pytest.approx(exact.duals, abs=1e-3)


def test_newton_goes_on_while_steps_halve_the_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    gaps = iter([8.0, 4.0, 1.9, 1.0, 0.9, 0.1])
    given: Any = problem()
    given.duals = np.zeros(4)

    def value(_: Any) -> tuple[float, Any]:
        given.evaluations += 1
        given.gap = next(gaps)
        return 0.0, np.ones(4)

    monkeypatch.setattr(given, "_value", value)
    curvature: Any = Curvature(VERTICES, WEIGHTS)
    given._newton(np.zeros(4), 99, curvature)
    assert given.evaluations == 4  # 1.0 is more than half of 1.9
    given.evaluations = 0
    gaps = iter([8.0, 4.0, 1.9, 1.0])
    given._newton(np.zeros(4), 2, curvature)
    assert given.evaluations == 2


def test_weights_are_inverse_variances_under_the_prior() -> None:
    class Prior:
        def probabilities(self, _: Any) -> Any:
            return np.array([0.9995, 0.0005, 0.25, 0.75])

    counts = ChoiceCounts(Assortments([("a", "b"), ("b", "c")]), [30, 10, 5, 15])
    prior: Any = Prior()
    expected = 0.1 * np.array([40.0, 40.0, 20.0, 20.0]) / (3.0 * np.array([0.9995, 0.001, 0.25, 0.75]))
    assert tilt_weights(counts, prior, 3.0) == pytest.approx(expected)
    assert trust.MIN_SHARE == 1e-3
