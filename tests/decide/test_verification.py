"""Wrong answers of an engine are errors: each check from both sides of its tolerance."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rankstream._core.watch import unwatched
from rankstream.decide import offer_values
from rankstream.decide.engines import selection
from rankstream.decide.moves import MIN_RELATIVE_GAIN, least_gain
from rankstream.decide.offer_values import WrongAnswerError, tolerance_of, verify_answer, verify_feasible, verify_order
from rankstream.models.rankings import DenseModel

pytestmark = pytest.mark.quick
TEA, PIE = np.array([True, False]), np.array([False, True])


def problem(margins: tuple[float, ...] = (2.0, -4.0), costs: tuple[float, ...] = (0.0, 0.5)) -> Any:
    return SimpleNamespace(
        margins=np.array(margins),
        costs=np.array(costs),
        is_feasible=lambda mask: bool(mask[0]),
        labels=lambda mask: str(mask),
    )


def test_values_agree_up_to_a_millionth_of_the_largest_number() -> None:
    assert tolerance_of(problem()) == pytest.approx(4e-6)
    assert tolerance_of(problem(costs=(0.0, -8.0))) == pytest.approx(8e-6)
    assert tolerance_of(problem((0.0, 0.0), (0.0, 0.0))) == pytest.approx(1e-306)


def test_numbers_in_order() -> None:
    verify_order(1.0, 1.0, 0.0, "x", "engine")
    verify_order(1.5, 1.0, 0.5, "x", "engine")
    for low, high, close in ((1.25, 1.0, 0.125), (1.0, 0.5, 0.0), (float("nan"), 1.0, 1.0)):
        with pytest.raises(WrongAnswerError, match=r"x: .* is more than"):
            verify_order(low, high, close, "x", "engine")


def test_offers_are_there_once_and_feasible() -> None:
    verify_feasible(problem(), [TEA], "engine")
    for offers, message in (
        ([], "there is no offer"),
        ([TEA, TEA.copy()], "one offer twice"),
        ([TEA, PIE], "breaks a constraint"),
    ):
        with pytest.raises(WrongAnswerError, match=message):
            verify_feasible(problem(), offers, "engine")


@pytest.mark.parametrize(
    ("worths", "bound", "proven", "message"),
    [
        ((1.0, 0.5), 1.0, True, ""), ((1.0 + 3e-6, 0.5), 1.0, True, ""),
        ((1.0 + 5e-6, 0.5), 1.0, True, "is worth 1 by the model"),
        ((1.0, 0.5 - 5e-6), 1.0, True, "is worth 0.5 by the model"), ((1.0, 0.5), 1.0 - 3e-6, True, ""),
        ((1.0, 0.5), 1.0 - 5e-6, True, "the bound"), ((1.0, 0.5), 1.0 - 5e-6, False, "the bound"),
        ((1.0, 0.5), 1.0 + 5e-6, True, "the bound"), ((1.0, 0.5), 1.0 + 3e-6, True, ""), ((1.0, 0.5), 9.0, False, ""),
        ((1.0, 0.5), float("nan"), False, "the bound"), ((float("nan"), 0.5), 1.0, False, "is worth 1 by the model"),
    ],
)  # fmt: skip
def test_answers_fit_the_model_and_their_bound(
    monkeypatch: pytest.MonkeyPatch, worths: tuple[float, ...], bound: float, proven: bool, message: str
) -> None:
    monkeypatch.setattr(offer_values, "values", lambda *_: np.array([1.0, 0.5]))
    both = problem()
    both.is_feasible = lambda _: True

    def check() -> None:
        verify_answer(both, [TEA, PIE], worths, bound, proven, "engine")

    expect(check, message)


def test_runners_up_are_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    both = problem()
    both.is_feasible = lambda _: True
    for second, message in ((1.0 + 3e-6, ""), (1.0 + 5e-6, "a runner-up is worth more")):
        monkeypatch.setattr(offer_values, "values", lambda *_, second=second: np.array([1.0, second]))
        expect(partial(verify_answer, both, [TEA, PIE], (1.0, second), 1.0, False, "engine"), message)


def expect(check: Callable[[], None], message: str) -> None:
    if message:
        with pytest.raises(WrongAnswerError, match=message):
            check()
    else:
        check()


def test_a_gain_counts_relative_to_the_largest_margin() -> None:
    for margins, largest in (((0.25, -0.5), 0.5), ((8.0, 2.0), 8.0)):
        assert least_gain(problem(margins)) == pytest.approx(MIN_RELATIVE_GAIN * largest)
    assert least_gain(problem((0.0, 0.0))) > 0.0


@pytest.mark.parametrize(("wanted", "drawn"), [(299, 300), (300, 300), (301, 400), (1, 100)])
def test_rankings_are_drawn_by_the_hundred_until_there_are_enough(
    wanted: int, drawn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "N_DRAWN_RANKINGS", wanted)
    asked: list[int] = []

    class Known(DenseModel):
        items, no_choice_code, about = ("tea", "pie"), None, {}

        def __init__(self) -> None: ...

        def draw_orders(self, size: int, _: Any) -> Any:
            asked.append(size)
            return np.tile([[0, 1], [1, 0], [1, 0], [1, 0]], (size // 4, 1))

    Known.__abstractmethods__ = frozenset()
    known: Any = Known
    problem: Any = SimpleNamespace(model=known())
    model, number = selection.draw(problem, 0, unwatched)
    assert (number, sum(asked)) == (drawn, drawn)
    assert model.weights.tolist() == [0.25, 0.75]
    stopped, number = selection.draw(problem, 0, lambda *_: True)
    assert number == 100
    assert stopped.weights.tolist() == [0.25, 0.75]
