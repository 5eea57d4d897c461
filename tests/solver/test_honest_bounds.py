"""Oracles that claim no more than they know: at every scale of the costs, unfinished, and asked nonsense."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import naive
from milp_oracle import MilpOracle
from rankstream import Assortments, oracles
from rankstream.oracles import (
    ComponentsOracle,
    DenseOracle,
    LatticeOracle,
    Oracle,
    SearchOracle,
)
from rankstream.oracles.protocol import meet

OFFERS = Assortments([("a", "b", "c"), ("a", "b"), ("b", "c"), ("a", "c")])
COSTS = np.array([0.0, 0, 2, 0, -2, 1, 4, 3, -2])  # the least cost of a ranking is -3


@pytest.mark.parametrize("scale", [1e-310, 1e-100, 1e-8, 1e-3, 1.0, 1e9, 1e300])
def test_the_integer_program_is_right_at_every_scale(scale: float) -> None:
    answer = MilpOracle(OFFERS).cheapest(scale * COSTS)
    assert answer.exact
    assert answer.value == pytest.approx(-3.0 * scale, rel=1e-9, abs=0.0)


def test_the_integer_program_knows_a_minimum_to_its_precision() -> None:
    random, oracle, corners = np.random.default_rng(0), MilpOracle(OFFERS), naive.all_vertices(OFFERS)
    for _ in range(60):
        costs = random.normal(size=9) * 10.0 ** random.integers(-12, 1, size=9) * 10.0 ** random.integers(-12, 12)
        answer, room = oracle.cheapest(costs), 1e-9 * float(np.abs(costs).sum())
        assert answer.bound <= float((corners @ costs).min()) + room <= answer.value + 2.0 * room


class Interrupted:
    """The solver, with a bound that is lower than it could be by 1 where its objective is scaled to about 1,000."""

    def __init__(self, highs: Any) -> None:
        self.highs = highs

    def __getattr__(self, name: str) -> Any:
        return getattr(self.highs, name)

    def getInfo(self) -> Any:  # noqa: N802
        return SimpleNamespace(mip_dual_bound=self.highs.getInfo().mip_dual_bound - 1.0)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_an_integer_program_without_a_proof_is_not_exact(scale: float) -> None:
    oracle = MilpOracle(OFFERS)
    oracle._highs = Interrupted(oracle._highs)
    answer = oracle.cheapest(scale * COSTS)
    assert not answer.exact
    assert 1e-4 * scale < answer.value - answer.bound < 0.1 * scale


MADE: dict[str, Callable[[Assortments], Oracle]] = {
    "milp": MilpOracle,
    "components": lambda offers: ComponentsOracle(offers, oracles.auto),
    "lattice": LatticeOracle,
    "laminar": oracles.LaminarOracle,
    "dense": DenseOracle,
    "search": SearchOracle,
    "auto": oracles.auto,
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_every_oracle_refuses_costs_that_are_not_finite(name: str, bad: float) -> None:
    for offers in ([("a",), ("b",), ("c",), ("d",)], [("a", "b"), ("c", "d"), ("a",)], [("a", "b"), ("c",), ("d",)]):
        oracle = MADE[name](Assortments(offers))
        size = sum(map(len, offers))
        oracle.cheapest(np.zeros(size))
        for place in range(size):
            costs = np.zeros(size)
            costs[place] = bad
            with pytest.raises(ValueError, match="contain NaN or infinity: every cost must be a finite number"):
                oracle.cheapest(costs)


@pytest.mark.parametrize("name", ["milp", "components", "search"])
def test_costs_that_overflow_together_are_refused(name: str) -> None:
    oracle = MADE[name](Assortments([("a", "b"), ("c", "d")]))
    with pytest.raises(ValueError, match="contain NaN or infinity"):
        oracle.cheapest(np.full(4, 1.7e308))


def test_only_rounding_lets_a_bound_meet_its_value() -> None:
    """Ten costs that add up to 10 in size are summed to some 1e-14: 1e-10 is more than that, 1e-15 is less."""
    costs = np.where(np.arange(10) % 2 == 0, 1.0, -1.0)
    assert meet(0.5 - 1e-15, 0.5, costs) == 0.5
    assert meet(0.5 + 1e-15, 0.5, costs) == 0.5
    for short in (1e-12, 1e-10, 1.0):
        assert meet(0.5 - short, 0.5, costs) == 0.5 - short
    assert meet(0.5e-30 - 1e-40, 0.5e-30, 1e-30 * costs) == 0.5e-30 - 1e-40  # whatever the scale
