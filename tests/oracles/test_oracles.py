import pickle
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import strategies
from milp_oracle import MilpOracle
from rankstream import Assortments, oracles
from rankstream._core.types import Vec
from rankstream.oracles import Ties

pytestmark = pytest.mark.quick

TIES: list[Ties] = ["first", "last", "random"]


@given(strategies.problems(most_items=6), st.sampled_from(TIES), st.integers(0, 2**63 - 1))
def test_oracle_equals_brute_force(problem: tuple[Assortments, Vec], ties: Ties, seed: int) -> None:
    offers, costs = problem
    answer = oracles.auto(offers, ties, seed).cheapest(costs)
    assert sorted(answer.ranking) == list(range(offers.n_items))
    scale = 1e-12 * (1.0 + np.abs(costs).sum())
    assert answer.value == pytest.approx(naive.cheapest_value(offers, costs), abs=scale)
    assert answer.value == pytest.approx(costs @ naive.vertex(offers, list(answer.ranking)), abs=scale)
    assert answer.exact
    assert answer.bound == answer.value


@strategies.examples(20)
@given(strategies.problems(most_items=7), st.sampled_from(TIES))
def test_oracle_equals_brute_force_at_seven_items(problem: tuple[Assortments, Vec], ties: Ties) -> None:
    offers, costs = problem
    value = oracles.auto(offers, ties).cheapest(costs).value
    assert value == pytest.approx(naive.cheapest_value(offers, costs), abs=1e-12 * (1.0 + np.abs(costs).sum()))


@pytest.mark.parametrize("n", [8, 10, 12])
@pytest.mark.parametrize("no_choice", [True, False])
def test_oracle_equals_the_recursion_on_sets(n: int, no_choice: bool) -> None:
    generator = np.random.default_rng(n)
    subsets = [s for size in range(1, 5) for s in combinations(range(n), size)]
    picked = generator.choice(len(subsets), size=12, replace=False)
    offers = Assortments([(*subsets[k], "nothing") if no_choice else subsets[k] for k in picked])
    costs = generator.normal(size=offers.n_coordinates)
    assert oracles.auto(offers).cheapest(costs).value == pytest.approx(naive.cheapest_value_by_sets(offers, costs))


@strategies.examples(25)
@given(strategies.assortments(most_items=6), st.integers(0, 2**32 - 1))
def test_integer_program_equals_the_dynamic_program(offers: Assortments, seed: int) -> None:
    costs = np.random.default_rng(seed).normal(size=offers.n_coordinates)
    program = MilpOracle(offers)
    for vector in (costs, -costs):
        answer = program.cheapest(vector)
        assert answer.value == pytest.approx(oracles.auto(offers).cheapest(vector).value, abs=1e-6)
        assert answer.bound <= answer.value


def test_same_costs_get_the_same_answer_whatever_came_between() -> None:
    offers = Assortments([("a", "b", "c", "x"), ("c", "d", "x")])
    oracle = oracles.auto(offers, seed=7)
    first = oracle.cheapest(np.zeros(7))
    oracle.cheapest(np.arange(7.0))
    again = oracle.cheapest(np.zeros(7))
    copied = pickle.loads(pickle.dumps(oracle)).cheapest(np.zeros(7))
    assert first.ranking.tolist() == again.ranking.tolist() == copied.ranking.tolist()


def test_ties_first_and_last_follow_the_items_and_the_no_choice_item() -> None:
    offers = Assortments([("a", "b", "nothing"), ("c", "nothing")], items=["a", "nothing", "b", "c", "d"])
    assert oracles.auto(offers, "first").cheapest(np.zeros(5)).ranking.tolist() == [0, 2, 3, 4, 1]
    assert oracles.auto(offers, "last").cheapest(np.zeros(5)).ranking.tolist() == [1, 4, 3, 2, 0]


@pytest.mark.slow
@strategies.compiled_only
def test_random_completions_are_uniform_over_seeds() -> None:
    offers = Assortments([("a", "nothing")], items=["a", "nothing", "p", "q"])
    found = Counter(
        tuple(oracles.auto(offers, "random", seed).cheapest(np.array([-1.0, 0.0])).ranking.tolist())
        for seed in range(4000)
    )
    assert all(ranking.index(0) < ranking.index(1) for ranking in found)
    assert len(found) == 12
    first = Counter(ranking[0] for ranking in found.elements())  # a, p or q, each with the same chance
    chi_square = sum((first[item] - 4000 / 3) ** 2 / (4000 / 3) for item in (0, 2, 3))
    assert chi_square < 14  # 2 degrees of freedom: beyond this with probability 0.001


@given(strategies.problems(most_items=6), st.sampled_from(TIES))
def test_equal_vertices_are_completed_alike(problem: tuple[Assortments, Vec], ties: Ties) -> None:
    offers, costs = problem
    oracle = oracles.auto(offers, ties, seed=9)
    kept: dict[bytes, list[int]] = {}
    for vector in (costs, 2.0 * costs, costs + 1.0, np.round(costs), -costs, np.zeros_like(costs)):
        ranking = oracle.cheapest(vector).ranking
        assert kept.setdefault(offers.vertex(ranking).tobytes(), ranking.tolist()) == ranking.tolist()


def test_items_offered_alike_share_a_bit_of_the_state() -> None:
    offers = Assortments([tuple(range(40)), tuple(range(20))])
    costs = np.random.default_rng(0).normal(size=60)
    value = oracles.auto(offers).cheapest(costs).value
    both = [costs[i] + costs[40 + i] for i in range(20)]
    apart = costs[20:40].min() + costs[40:60].min()
    assert value == pytest.approx(min(*both, apart))


@strategies.compiled_only
def test_too_many_items_are_searched_with_a_proven_bound() -> None:
    offers = Assortments([(i, (i + 1) % 40) for i in range(40)] + [(i, (i + 2) % 40) for i in range(40)])
    oracle = oracles.auto(offers)
    assert isinstance(oracle, oracles.SearchOracle)
    assert "local search" in oracle.explain()
    answer = oracle.cheapest(np.random.default_rng(0).normal(size=offers.n_coordinates))
    assert answer.bound <= answer.value
    with pytest.raises(ValueError, match=r"40 items .* bytes .*: leave out"):
        oracles.DenseOracle(offers)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_costs_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="NaN or infinity"):
        oracles.auto(Assortments([("a", "b")])).cheapest(np.array([0.0, bad]))


def test_bad_options_are_refused() -> None:
    offers = Assortments([("a", "b")])
    with pytest.raises(ValueError, match="must be 2 costs"):
        oracles.auto(offers).cheapest(np.zeros(3))
    with pytest.raises(ValueError, match="Unknown tie rule 'middle'"):
        oracles.auto(offers, ties="middle")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="seed is -1"):
        oracles.auto(offers, seed=-1)
