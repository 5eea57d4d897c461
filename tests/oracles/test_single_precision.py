"""Tables of single precision: half of the memory, and never a claim beyond what is true."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import strategies
from oracle_problems import random_problem, rounding_slack
from rankstream import Assortments
from rankstream._core.types import Vec
from rankstream.oracles.tables.dense import DenseOracle


@given(strategies.problems(most_items=6), st.integers(-140, 140))
def test_single_precision_never_claims_more_than_is_true(problem: tuple[Assortments, Vec], power: int) -> None:
    offers, costs = problem
    costs = costs * 2.0**power
    oracle = DenseOracle(offers, precision="single")
    least, size = naive.cheapest_value(offers, costs), float(np.abs(costs).sum())
    answer = oracle.cheapest(costs)
    # sums in another order differ by a part of the size of their terms, which may be tiny or huge here
    assert answer.value == pytest.approx(costs @ naive.vertex(offers, list(answer.ranking)), abs=1e-12 * size)
    assert answer.bound <= least + 1e-13 * size
    assert answer.bound >= least - 1e-4 * size
    assert answer.value <= least + 1e-5 * size


@pytest.mark.parametrize("no_choice", [True, False])
def test_the_margin_of_single_precision_covers_its_rounding(no_choice: bool) -> None:
    shares = []
    for seed in range(30):
        offers, costs = random_problem(13, 120, no_choice, seed)
        # sums of many costs that nearly cancel, all of which single precision rounds the same way
        costs = np.where(np.arange(costs.size) % 2, 1.0, -1.0) * (1.0 + 2.0**-24 - 2.0**-30) if seed % 2 else costs
        least = DenseOracle(offers).cheapest(costs).value
        table = DenseOracle(offers, precision="single")
        ends = table._ends
        margin = table.margin(costs if ends is None else costs - costs[ends])
        bound = table.cheapest(costs).bound
        assert least - 2.0 * margin - rounding_slack(costs) <= bound <= least
        shares.append((least - bound) / margin)
    assert min(shares) < 0.999  # rounding did make the table too high somewhere: without the margin it would be wrong


def test_single_precision_takes_half_of_the_memory_and_says_so() -> None:
    offers, costs = random_problem(13, 40, True)
    single, double = DenseOracle(offers, precision="single"), DenseOracle(offers)
    assert 2 * single._to_go.nbytes == double._to_go.nbytes
    assert "up to single precision" in single.explain()
    again = pickle.loads(pickle.dumps(single))
    assert again.cheapest(costs).bound == single.cheapest(costs).bound
    assert np.array_equal(single.cheapest(costs).ranking, double.cheapest(costs).ranking)
    half: Any = "half"
    with pytest.raises(ValueError, match="'half': choose 'double' or 'single'"):
        DenseOracle(offers, precision=half)
    needed = 4 * 2**12
    with pytest.raises(ValueError, match="bytes in the dense oracle"):
        DenseOracle(offers, precision="single", memory=needed)
