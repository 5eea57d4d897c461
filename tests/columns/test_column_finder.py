"""Columns and a bound from one run of an oracle, whatever the oracle can tell."""

from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import naive
import rankstream as rs
from oracle_problems import OneColumn
from rankstream import oracles
from rankstream._core.types import ROUNDING, Vec
from rankstream.columns import corrective
from rankstream.columns import data as finder
from rankstream.columns.data import ColumnFinder
from rankstream.columns.master import Ball
from rankstream.columns.plausible import RangeSearch
from rankstream.data import simulate

pytestmark = pytest.mark.quick

OFFERS = rs.Assortments([("tea", "pie"), ("tea", "pie", "nothing")])


@pytest.mark.parametrize("make", [oracles.LatticeOracle, oracles.DenseOracle])
def test_columns_are_the_cheapest_for_their_first_item(make: Any) -> None:
    market = simulate.market(seed=7, n_items=5, n_test=5, n_offers=9)
    offers, oracle = market.assortments, make(market.assortments)
    costs = np.random.default_rng(0).normal(size=offers.n_coordinates)
    found = ColumnFinder(oracle, offers)(costs)
    assert found.exact
    assert found.bound == pytest.approx(naive.cheapest_value(offers, costs))
    values = {int(row[0]): float(costs @ offers.vertex(row)) for row in found.rankings[-offers.n_items :]}
    for first in range(offers.n_items):
        orders = [order for order in naive.all_rankings(offers) if order[0] == first]
        assert values[first] == pytest.approx(min(float(costs @ naive.vertex(offers, order)) for order in orders))


@pytest.mark.parametrize("make", [oracles.LatticeOracle, oracles.DenseOracle])
def test_expensive_programs_are_read_for_pairs(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    market = simulate.market(seed=9, n_items=5, n_test=5, n_offers=9)
    offers, p = market.assortments, next(market.stream(first=180)).target().frequencies
    few = corrective.fit_nearest(offers, p, oracle=make(offers))
    monkeypatch.setattr(finder, "MIN_STATES_FOR_PAIRS", 1)
    rankings = ColumnFinder(make(offers), offers)(-p).rankings
    assert {(int(row[0]), int(row[1])) for row in rankings} == set(permutations(range(6), 2))
    many = corrective.fit_nearest(offers, p, oracle=make(offers))
    assert many.converged
    assert many.certificate.upper == pytest.approx(few.certificate.upper, abs=2e-6)


@pytest.mark.parametrize("make", [oracles.LatticeOracle, oracles.DenseOracle])
def test_of_many_pairs_the_cheapest_are_kept(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    market = simulate.market(seed=9, n_items=5, n_test=5, n_offers=9)
    offers, oracle = market.assortments, make(market.assortments)
    costs = np.random.default_rng(0).normal(size=offers.n_coordinates)
    monkeypatch.setattr(finder, "MIN_STATES_FOR_PAIRS", 1)
    everything = ColumnFinder(oracle, offers)(costs)
    monkeypatch.setattr(finder, "PAIRS_PER_ITEM", 2)
    some = ColumnFinder(oracle, offers)(costs)
    values = sorted(naive.vertex(offers, list(row)) @ costs for row in everything.rankings)
    assert len(some.rankings) == 2 * offers.n_items < len(everything.rankings)
    kept = [float(naive.vertex(offers, list(row)) @ costs) for row in some.rankings]
    assert kept == pytest.approx(values[: len(kept)])
    assert (some.bound, some.exact) == (everything.bound, everything.exact)


class Hurried:
    """An oracle that finds the best ranking for each first item, but proves less than it finds for one of them."""

    def __init__(self, offers: rs.Assortments, short: float) -> None:
        self.oracle, self.short = oracles.DenseOracle(offers), short

    def cheapest(self, costs: Vec) -> oracles.Answer:
        return min(self.cheapest_by_first(costs), key=lambda answer: answer.value)

    def cheapest_by_first(self, costs: Vec) -> list[oracles.Answer]:
        found = sorted(self.oracle.cheapest_by_first(costs), key=lambda answer: answer.value)
        return [*found[:-1], oracles.Answer(found[-1].ranking, found[-1].value, found[0].value - self.short)]


def test_what_one_first_item_leaves_open_stays_open() -> None:
    costs = np.array([0.0, 1.0, 0.0, 1.0, 2.0])
    for short, exact in ((0.0, True), (0.5, False)):
        found = ColumnFinder(Hurried(OFFERS, short), OFFERS)(costs)
        assert found.bound == pytest.approx(naive.cheapest_value(OFFERS, costs) - short)
        assert found.exact == exact
        sorted_out = ColumnFinder(Hurried(OFFERS, short), OFFERS).cheapest(costs)
        assert sorted_out.bound <= found.bound
        assert sorted_out.value == pytest.approx(naive.cheapest_value(OFFERS, costs))


@pytest.mark.parametrize("make", [oracles.LatticeOracle, oracles.DenseOracle, OneColumn])
def test_columns_come_cheapest_first(make: Any) -> None:
    market = simulate.market(seed=7, n_items=5, n_test=5, n_offers=9)
    offers, costs = market.assortments, np.random.default_rng(1).normal(size=market.assortments.n_coordinates)
    columns = ColumnFinder(make(offers), offers)
    everything = columns.cheapest(costs)
    values = [float(costs @ offers.vertex(ranking)) for ranking in everything.rankings]
    assert values == sorted(values)
    assert values[0] == pytest.approx(everything.value) == pytest.approx(naive.cheapest_value(offers, costs))
    some = columns.cheapest(costs, below=float(np.mean(values)))
    assert len(some.rankings) == sum(value < np.mean(values) for value in values)
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="contain NaN or infinity"):
            columns(np.where(np.arange(costs.size) == 3, bad, costs))


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_the_bound_on_columns_allows_for_rounding_of_all_costs(size: float) -> None:
    costs = size * np.array([1.0, -2.0, 0.5, 0.25, -1.0])
    columns = ColumnFinder(oracles.LatticeOracle(OFFERS), OFFERS)
    allowance = columns(costs).bound - columns.cheapest(costs).bound
    assert allowance == pytest.approx(ROUNDING * 5 * (1.0 + 4.75 * size), rel=0.1, abs=0.0)


def test_the_radius_of_a_ball_is_the_largest_share_of_a_budget() -> None:
    """Deviations 0.1 and 0.2 in a group with 0.5, 0.1 in one with 0.25; what has no budget does not count."""
    residual = np.array([0.1, -0.2, 0.1, 5.0])
    inside = Ball(np.array([0, 0, 1, 2]), np.array([0.5, 0.25, 0.0]))
    assert inside.distance(residual) == pytest.approx(0.6)
    above = Ball(inside.groups, inside.budgets, np.array([1, 1, 1, 1]))
    assert above.distance(residual) == pytest.approx(0.4)
    assert inside.distance(np.zeros(4)) == above.distance(-np.ones(4)) == 0.0
    assert inside.width(np.array([1.0, -3.0, 2.0, 7.0])) == pytest.approx(0.5 * 3.0 + 0.25 * 2.0)
    assert above.clip(np.array([1.0, -3.0, 2.0, -7.0])).tolist() == [0.0, -3.0, 0.0, -7.0]


def test_a_bound_on_the_radius_is_the_slack_over_the_width() -> None:
    """<dual, frequencies> + the least cost, over the ball's width; a dual of 0 says that it is at least 0."""
    observed: Any = SimpleNamespace(frequencies=np.array([0.25, 0.75]), spread=lambda dual: dual)
    finder: Any = SimpleNamespace(cheapest=lambda _: SimpleNamespace(rankings=["some"], bound=0.125))
    master: Any = SimpleNamespace(ball=Ball(np.zeros(2, dtype=np.int64), np.array([0.5])))
    columns: Any = None
    search: Any = RangeSearch(observed, master, finder, columns, np.zeros(1))
    assert search._find_columns(np.array([1.0, -0.5])) == (["some"], pytest.approx((0.25 - 0.375 + 0.125) / 0.5))
    assert search._find_columns(np.array([0.5, 1.0])) == (["some"], pytest.approx((0.125 + 0.75 + 0.125) / 0.5))
    assert search._find_columns(np.zeros(2)) == (["some"], 0.0)
    search.radius = 0.5  # within it: the least value of an offer
    assert search._find_columns(np.array([0.5, 1.0])) == (["some"], pytest.approx(1.0 - 0.5 * 0.5))
