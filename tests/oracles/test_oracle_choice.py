"""Which oracle is chosen, and the ones that wrap, divide or share others."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import strategies
from oracle_problems import TIES, rounding_slack
from rankstream import Assortments, oracles
from rankstream._core.types import Vec
from rankstream.data import simulate
from rankstream.oracles import (
    ComponentsOracle,
    DenseOracle,
    LaminarOracle,
    LatticeOracle,
    Ties,
)


@strategies.compiled_only
def test_auto_picks_by_the_reduced_size() -> None:
    random = np.random.default_rng(0)
    items = [str(k) for k in range(15)]
    sparse = Assortments(simulate.random_offers(items, 20, random))
    dense = Assortments(simulate.random_offers(items, 300, random))
    nested = Assortments([(*range(size), "x") for size in range(1, 40)])
    for offers, kind, words in (
        (sparse, LatticeOracle, "unions of offers"),
        (dense, DenseOracle, "sets of items"),
        (nested, LaminarOracle, "linear time"),
    ):
        oracle = oracles.auto(offers)
        assert isinstance(oracle, kind)
        assert words in oracle.explain()
        costs = random.normal(size=offers.n_coordinates)
        assert oracle.cheapest(costs).value == pytest.approx(costs @ offers.vertex(oracle.cheapest(costs).ranking))


@strategies.compiled_only
def test_offers_that_fall_apart_are_solved_part_by_part() -> None:
    random = np.random.default_rng(0)
    for no_choice in (("x",), ()):
        rows = [(*(random.choice(18, 5, replace=False) + 18 * (k % 2)).tolist(), *no_choice) for k in range(400)]
        offers = Assortments([*rows, (36, *no_choice)], [*range(37), *no_choice])
        oracle = oracles.auto(offers)
        assert isinstance(oracle, ComponentsOracle)
        assert "DenseOracle" in oracle.explain()
        costs = random.normal(size=offers.n_coordinates)
        answer = oracle.cheapest(costs)
        assert answer.exact
        expected = 0.0
        for part in (0, 1):
            own = Assortments(rows[part::2], [*range(18 * part, 18 * part + 18), *no_choice])
            where = np.isin(offers.owner, range(part, 400, 2))
            expected += DenseOracle(own).cheapest(costs[where]).value
        rest = costs[offers.owner == 400]
        expected += min(rest) if no_choice else rest[0]
        assert answer.value == pytest.approx(expected)
        copied = pickle.loads(pickle.dumps(oracle))
        assert copied.cheapest(costs).ranking.tolist() == answer.ranking.tolist()


@given(strategies.problems(most_items=6), st.sampled_from(TIES))
def test_part_by_part_equals_brute_force(problem: tuple[Assortments, Vec], ties: Ties) -> None:
    offers, costs = problem
    answer = ComponentsOracle(offers, oracles.auto, ties).cheapest(costs)
    assert answer.value == pytest.approx(naive.cheapest_value(offers, costs), abs=rounding_slack(costs))
    whole = np.round(costs)
    one, other = (
        ComponentsOracle(offers, oracles.auto, ties).cheapest(whole),
        LatticeOracle(offers, ties).cheapest(whole),
    )
    assert one.value == other.value
    if offers.vertex(one.ranking).tolist() == offers.vertex(other.ranking).tolist():
        assert one.ranking.tolist() == other.ranking.tolist()


@strategies.compiled_only
def test_auto_never_refuses() -> None:
    random = np.random.default_rng(1)
    nested = Assortments([(*range(size), "none") for size in range(10, 101, 10)])
    assert isinstance(oracles.auto(nested), LaminarOracle)
    assert isinstance(oracles.auto(Assortments([tuple(range(70))])), LaminarOracle)
    rows = [tuple((random.choice(13, 4, replace=False) + 13 * (k % 5)).tolist()) for k in range(300)]
    answer = oracles.auto(Assortments(rows)).cheapest(random.normal(size=1200))
    assert answer.exact


@strategies.compiled_only
def test_threads_may_share_a_dense_oracle() -> None:
    random = np.random.default_rng(0)
    offers = Assortments([(*random.choice(10, 4, replace=False).tolist(), "n") for _ in range(40)])
    oracle = DenseOracle(offers)
    costs = [random.normal(size=offers.n_coordinates) for _ in range(300)]
    alone = [oracle.cheapest(vector).value for vector in costs]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda vector: oracle.cheapest(vector).value, costs))
    assert together == alone
