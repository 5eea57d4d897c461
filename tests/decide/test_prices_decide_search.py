"""Branch and bound over items at price levels, where sums over the offer are limited."""

from unittest.mock import patch

import numpy as np
import pytest

from rankstream import PriceLevels, RankingModel
from rankstream.decide.engines.branch import Branching, Node
from rankstream.decide.engines.lists import make_lists
from rankstream.decide.engines.tables import scan, table_of
from rankstream.decide.problem.offers import OfferProblem, make_problem
from rankstream.models.lifts import lift


def problem_of(seed: int, changes: int) -> OfferProblem:
    """Six items at three levels, half of them on offer, of which a few may change."""
    random = np.random.default_rng(seed)
    levels = PriceLevels({f"item {item}": [1.0, 2.0, 3.0] for item in range(6)})
    items = (*levels.labels, "no")
    chains = tuple(tuple(range(first, first + 3)) for first in range(0, 18, 3))
    orders = lift(np.array([random.permutation(19) for _ in range(40)]), chains)
    model = RankingModel.from_codes(items, orders, random.dirichlet(np.ones(40)), 18)
    present = {f"item {item}": 2.0 for item in range(3)}
    return make_problem(model, None, costs=0.5, present=present, changes=changes, requires=[("item 1", "item 2")])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("table", [0, 20])
def test_the_search_finds_what_the_table_has(seed: int, table: int) -> None:
    problem = problem_of(seed, seed)
    with patch("rankstream.decide.engines.branch.MAX_TABLE_ITEMS", table):
        search = Branching(make_lists(problem.model, problem), problem)
        assert search.run()
    assert search.bound == pytest.approx(scan(table_of(problem), problem).values[0], abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_offers_that_break_a_row_pay_for_it_and_the_bound_holds(seed: int) -> None:
    problem = problem_of(seed, 1)
    lists = make_lists(problem.model, problem)
    search, n = Branching(lists, problem), lists.margin.size
    search.run()
    root = Node(
        np.zeros(n, dtype=np.int8), np.arange(n), lists.arrays,
        np.zeros(lists.item.size), -lists.fixed_cost, np.inf,
    )  # fmt: skip
    charged = search._charged(root)
    search.row_price = np.zeros_like(search.row_price)
    assert scan(table_of(problem), problem).values[0] <= charged + 1e-9
    assert charged < search._charged(root) - 0.01
