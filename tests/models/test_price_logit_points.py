"""Where a logit with prices begins: classes with given worths, as constants of items and slopes in money."""

import numpy as np
import pytest

from rankstream import Assortments, ChoiceCounts
from rankstream.models.parametric.price_logit import PricedProblem

pytestmark = pytest.mark.quick
OFFERS = Assortments([("t3", "p", "n"), ("t5", "p", "n"), ("t4", "n")], ("t3", "t4", "t5", "p", "n"))
OWNER, PRICES = np.array([0, 0, 0, 1, 2]), np.array([3.0, 4.0, 5.0, 2.0, 0.0])


def likelihood(classes: int = 2, smoothing: float = 6.0) -> PricedProblem:
    return PricedProblem(ChoiceCounts(OFFERS, [3, 2, 5, 1, 4, 5, 6, 4]), OWNER, PRICES, classes, smoothing)


def test_money_is_measured_by_its_spread_and_imagined_choices_are_shared_by_levels() -> None:
    found = likelihood()
    assert found.scale == pytest.approx(np.std([3.0, 4.0, 5.0, 2.0]))
    assert found.money == pytest.approx(PRICES / found.scale)
    assert found.observations == 30.0
    assert found.imagined == pytest.approx(np.array([2.0, 2.0, 2.0, 6.0, 6.0]) / 30.0)
    assert found.offers[2] == pytest.approx(np.array([3, 2, 5, 1, 4, 5, 6, 4]) / 30.0)


def test_worths_that_fall_with_the_price_are_found_again() -> None:
    found = likelihood()
    constants, slopes = np.array([[1.0, 0.5, 0.0], [-1.0, 2.0, 0.25]]), np.array([0.75, 1.5])
    worth = np.exp(constants[:, OWNER] - np.outer(slopes, found.money))
    point = found.point_of(np.array([0.25, 0.75]), worth)
    assert point[:2] == pytest.approx(np.log([0.25, 0.75]))
    assert point[2:-2].reshape(2, 3) == pytest.approx(constants)
    assert np.exp(point[-2:]) == pytest.approx(slopes)


def test_slopes_are_least_squares_and_never_below_a_millionth() -> None:
    found = likelihood(1)
    logs = np.array([[0.3, -0.2, -0.1, 0.7, 0.0]])
    money = found.money[:3] - found.money[:3].mean()
    slope = -(logs[0, :3] @ money) / (money @ money)
    point = found.point_of(np.array([1.0]), np.exp(logs))
    assert np.exp(point[-1]) == pytest.approx(slope)
    rising = found.point_of(np.array([1.0]), np.exp(-logs))
    assert np.exp(rising[-1]) == pytest.approx(1e-6)
    assert point[1:-1] == pytest.approx(
        [(logs[0, :3] + slope * found.money[:3]).mean(), 0.7 + slope * found.money[3], 0.0]
    )
