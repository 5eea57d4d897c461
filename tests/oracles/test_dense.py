import os
import pickle
import subprocess
import sys
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import naive_sets
import strategies
from oracle_problems import TIES, random_problem, rounding_slack
from rankstream import Assortments, checks
from rankstream._core.types import Vec
from rankstream.oracles import LatticeOracle, Ties, walk_kernels
from rankstream.oracles.tables import dense_kernels
from rankstream.oracles.tables.dense import DenseOracle, table_bytes


@given(strategies.problems(most_items=6), st.sampled_from(TIES), st.integers(0, 2**63 - 1))
def test_oracle_equals_brute_force(problem: tuple[Assortments, Vec], ties: Ties, seed: int) -> None:
    offers, costs = problem
    answer = DenseOracle(offers, ties, seed).cheapest(costs)
    assert sorted(answer.ranking) == list(range(offers.n_items))
    assert answer.value == pytest.approx(naive.cheapest_value(offers, costs), abs=rounding_slack(costs))
    assert answer.value == pytest.approx(costs @ naive.vertex(offers, list(answer.ranking)), abs=rounding_slack(costs))
    assert answer.exact


@settings(max_examples=20)
@given(strategies.problems(most_items=7), st.sampled_from(TIES))
def test_oracle_equals_brute_force_at_seven_items(problem: tuple[Assortments, Vec], ties: Ties) -> None:
    offers, costs = problem
    value = DenseOracle(offers, ties).cheapest(costs).value
    assert value == pytest.approx(naive.cheapest_value(offers, costs), abs=rounding_slack(costs))


@given(strategies.assortments(), st.sampled_from(TIES), st.integers(0, 2**32 - 1))
def test_ties_are_broken_as_by_the_lattice_oracle(offers: Assortments, ties: Ties, seed: int) -> None:
    costs = np.random.default_rng(seed).integers(-1, 2, size=offers.n_coordinates).astype(np.float64)
    ranking = DenseOracle(offers, ties, seed).cheapest(costs).ranking
    assert ranking.tolist() == LatticeOracle(offers, ties, seed).cheapest(costs).ranking.tolist()


@pytest.mark.parametrize("n", [2, 8, 10, 12])
@pytest.mark.parametrize("no_choice", [True, False])
def test_oracle_equals_the_recursion_on_sets(n: int, no_choice: bool) -> None:
    offers, costs = random_problem(n, 12, no_choice)
    distinct = Assortments({frozenset(offer): offer for offer in offers.offers}.values(), range(n))
    costs = costs[: distinct.n_coordinates]
    expected = naive.cheapest_value_by_sets(distinct, costs)
    assert DenseOracle(distinct).cheapest(costs).value == pytest.approx(expected, abs=rounding_slack(costs))


@settings(max_examples=30)
@given(st.integers(2, 10), st.integers(1, 30), st.booleans(), st.booleans(), st.integers(0, 99))
def test_table_holds_the_cost_to_go_of_every_set(n: int, m: int, no_choice: bool, copied: bool, seed: int) -> None:
    offers, costs = random_problem(n, m, no_choice, seed)
    if copied:  # items that are offered alike share a bit
        copies = {item: (0,) if no_choice and item == n - 1 else (0, 1) for item in offers.items}
        offers = Assortments([[(item, k) for item in offer for k in copies[item]] for offer in offers.offers])
        costs = np.random.default_rng(seed).normal(size=offers.n_coordinates)
    oracle = DenseOracle(offers)
    oracle.cheapest(costs)
    above_end = costs if oracle._ends is None else costs - costs[oracle._ends]
    expected = naive_sets.all_sets_to_go(offers, oracle._problem.bit_of.tolist(), above_end)
    np.testing.assert_allclose(oracle._to_go[: len(expected)], expected, atol=rounding_slack(costs))


@given(strategies.problems(), st.data())
def test_ways_to_go_on_equal_their_twins(problem: tuple[Assortments, Vec], data: st.DataObject) -> None:
    offers, costs = problem
    oracle = DenseOracle(offers)
    oracle.cheapest(costs)
    above_end = costs if oracle._ends is None else costs - costs[oracle._ends]
    bits, reach = oracle._problem.bit_of.tolist(), np.full(offers.n_items, np.inf)
    left = data.draw(st.integers(0, 2 ** len({bit for bit in bits if bit}) - 1))
    items = frozenset(item for item, bit in enumerate(bits) if bit & left)
    table = naive_sets.all_sets_to_go(offers, bits, above_end)
    for item in items:
        reach[item] = naive_sets.placing_cost(offers, costs, items, item) + table[left ^ bits[item]]
    unranked = np.array(data.draw(st.lists(st.booleans(), min_size=offers.n_items, max_size=offers.n_items)))
    unranked[list(items)] = True
    universal = -1 if offers.no_choice_code is None else offers.no_choice_code
    if universal >= 0:
        unranked[universal] = data.draw(st.booleans())
    ended = universal < 0 or not unranked[universal]
    ways = {item: float(reach[item]) for item in items}
    tied = naive_sets.ties(ways, np.flatnonzero(unranked).tolist(), universal, ended)
    free = np.where([item in items for item in range(offers.n_items)], 0, -1)
    for last in (False, True):
        found = walk_kernels.next_item((~unranked).astype(np.int64), free, universal, last, reach)
        assert found == (tied[-1 if last else 0] if tied else -1)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_lowest_bit_is_that_of_the_digits(one: int, other: int) -> None:
    number = one & other & -(one & other) if one % 2 else one & other  # often with few bits
    digits = f"{number:b}"[::-1]
    assert dense_kernels.lowest_bit(np.uint64(number), 99) == (digits.index("1") if number else 99)


@pytest.mark.parametrize(("n", "m"), [(14, 1), (14, 40), (14, 300), (16, 50), (16, 200)])
@pytest.mark.parametrize("no_choice", [True, False])
def test_oracle_equals_the_lattice_oracle(n: int, m: int, no_choice: bool) -> None:
    offers, costs = random_problem(n, m, no_choice)
    whole = np.round(2.0 * costs)
    sparse = np.where(np.abs(costs) < 1.0, 0.0, costs)
    wild = costs * 10.0 ** np.random.default_rng(n).integers(-9, 9, size=costs.size)
    for ties in TIES:
        dense, subset = DenseOracle(offers, ties, 5), LatticeOracle(offers, ties, 5)
        for vector in (costs, whole, sparse, wild, 1e200 * costs, 1e-200 * costs, np.zeros_like(costs)):
            ours, theirs = dense.cheapest(vector), subset.cheapest(vector)
            assert ours.value == pytest.approx(theirs.value, rel=1e-12, abs=1e-12 * float(np.abs(vector).sum()))
        for vector in (whole, np.zeros_like(costs)):
            assert dense.cheapest(vector).ranking.tolist() == subset.cheapest(vector).ranking.tolist()


def test_huge_costs_that_are_avoided_do_not_blur_the_others() -> None:
    offers, costs = random_problem(12, 40, no_choice=True)
    unwanted = (offers.members % 4 == 0) & (offers.members < 11)
    punished = np.where(unwanted, 1e15, costs)
    ours, theirs = DenseOracle(offers).cheapest(punished), LatticeOracle(offers).cheapest(punished)
    assert ours.value == pytest.approx(theirs.value, rel=1e-12)
    assert ours.value < 0.0


@pytest.mark.parametrize("no_choice", [True, False])
def test_items_offered_alike_share_a_bit_of_the_state(no_choice: bool) -> None:
    small, _ = random_problem(11, 25, no_choice)
    copies = {item: [item] if item == 10 else [item, f"{item} again", f"{item} once more"] for item in small.items}
    offers = Assortments([[label for item in offer for label in copies[item]] for offer in small.offers])
    costs = np.random.default_rng(0).normal(size=offers.n_coordinates)
    value = DenseOracle(offers).cheapest(costs).value
    assert value == pytest.approx(LatticeOracle(offers).cheapest(costs).value, abs=rounding_slack(costs))


def test_odd_families_of_offers() -> None:
    families: dict[str, list[tuple[int, ...]]] = {
        "single items": [(item,) for item in range(9)],
        "all equal": [tuple(range(9))] * 5,
        "one offer": [tuple(range(9))],
        "one item": [(0,)],
        "no-choice alone": [(0,), (0, 1), (0, 2)],
        "nested": [tuple(range(size)) for size in range(1, 12)],
    }
    for name, family in families.items():
        offers = Assortments(family)
        for seed in range(3):
            costs = np.random.default_rng(seed).normal(size=offers.n_coordinates)
            value = DenseOracle(offers).cheapest(costs).value
            assert value == pytest.approx(LatticeOracle(offers).cheapest(costs).value, abs=rounding_slack(costs)), name


@given(strategies.problems(most_items=5), st.sampled_from(TIES))
def test_forced_beginnings_equal_brute_force(problem: tuple[Assortments, Vec], ties: Ties) -> None:
    offers, costs = problem
    oracle = DenseOracle(offers, ties)
    least = oracle.cheapest(costs).value
    by_first, by_pair = oracle.cheapest_by_first(costs), oracle.cheapest_by_first_pair(costs)
    for length, answers in ((1, by_first), (2, by_pair)):
        starts = list(permutations(range(offers.n_items), length))
        assert min(answer.value for answer in answers) == pytest.approx(least, abs=rounding_slack(costs))
        assert any(answer.exact for answer in answers)
        for answer, start in zip(answers, starts, strict=True):
            assert sorted(answer.ranking) == list(range(offers.n_items))
            assert tuple(answer.ranking[: len(start)]) == start
            rankings = [order for order in naive.all_rankings(offers) if tuple(order[: len(start)]) == start]
            best = min(float(costs @ naive.vertex(offers, order)) for order in rankings)
            assert answer.value == pytest.approx(best, abs=rounding_slack(costs))
            assert answer.value == pytest.approx(
                costs @ naive.vertex(offers, list(answer.ranking)), abs=rounding_slack(costs)
            )
            assert answer.bound <= answer.value


def test_forced_beginnings_are_consistent_beyond_one_block() -> None:
    offers, costs = random_problem(12, 40, no_choice=True)
    oracle = DenseOracle(offers)
    least = oracle.cheapest(costs).value
    by_first, by_pair = oracle.cheapest_by_first(costs), oracle.cheapest_by_first_pair(costs)
    pairs = list(permutations(range(12), 2))
    for item, answer in enumerate(by_first):
        assert answer.bound == pytest.approx(least)
        second = min(pair.value for pair, (first, _) in zip(by_pair, pairs, strict=True) if first == item)
        assert answer.value == pytest.approx(second)
        assert answer.value == pytest.approx(costs @ offers.vertex(answer.ranking))


def test_same_costs_get_the_same_answer_whatever_came_between() -> None:
    offers, costs = random_problem(10, 12, no_choice=True)
    oracle = DenseOracle(offers, seed=7, memory=1e6)
    first = oracle.cheapest(np.zeros_like(costs))
    oracle.cheapest(costs)
    again = oracle.cheapest(np.zeros_like(costs))
    copy = pickle.loads(pickle.dumps(oracle))
    assert (copy.ties, copy.seed, copy.memory) == ("random", 7, 1e6)
    copied = copy.cheapest(np.zeros_like(costs))
    assert first.ranking.tolist() == again.ranking.tolist() == copied.ranking.tolist()


def test_oracle_conforms() -> None:
    for no_choice in (True, False):
        for n in (2, 5, 7, 11):
            offers, _ = random_problem(n, 6, no_choice)
            for ties in TIES:
                checks.check_oracle(DenseOracle(offers, ties), offers)


def ring(n: int) -> Assortments:
    return Assortments([(i, (i + 1) % n) for i in range(n)])


def test_too_little_memory_is_refused_before_it_is_taken() -> None:
    with pytest.raises(ValueError, match=r"40 items .* need 8,796,0\d\d,\d{3},\d{3} bytes .* may take 12,000,000,000:"):
        DenseOracle(ring(40))
    with pytest.raises(ValueError, match=r"20 items .* need 8,\d{3},\d{3} bytes .* may take 8,000,000: leave out"):
        DenseOracle(ring(20), memory=8e6)
    with pytest.raises(ValueError, match=r"63 items .* need 2\*\*66 bytes"):
        DenseOracle(ring(63), memory=np.inf)
    with pytest.raises(ValueError, match=r"300 items .* need 2\*\*303 bytes"):
        DenseOracle(ring(300))


@pytest.mark.parametrize("n", [3, 7, 8, 10])
def test_the_table_takes_the_memory_that_is_told_in_advance(n: int) -> None:
    offers = Assortments([(item, (item + 1) % n) for item in range(n)])
    oracle = DenseOracle(offers)
    taken = sum(array.nbytes for array in (oracle._to_go, *oracle._space[0]))
    assert oracle._n_bits == n
    assert table_bytes(n, n) - 8 * dense_kernels.LOW_BITS == taken  # all rows may need a number, and these few do not


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_costs_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="NaN or infinity"):
        DenseOracle(Assortments([("a", "b")])).cheapest(np.array([0.0, bad]))


def test_bad_options_are_refused() -> None:
    offers = Assortments([("a", "b")])
    with pytest.raises(ValueError, match="must be 2 costs"):
        DenseOracle(offers).cheapest(np.zeros(3))
    with pytest.raises(ValueError, match="Unknown tie rule 'middle'"):
        DenseOracle(offers, ties="middle")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="seed is -1"):
        DenseOracle(offers, seed=-1)
    with pytest.raises(ValueError, match="too large"):
        DenseOracle(offers, seed=2**63)
    with pytest.raises(ValueError, match="memory is -1"):
        DenseOracle(offers, memory=-1)


def test_oracle_works_uncompiled() -> None:
    code = """
import numpy as np
from rankstream import Assortments
from rankstream.oracles import LatticeOracle
from rankstream.oracles.tables.dense import DenseOracle, table_bytes
for end in ((), (9,)):
    offers = Assortments([(i, (i + 1) % 9, *end) for i in range(9)])
    costs = np.random.default_rng(0).normal(size=offers.n_coordinates)
    ours, theirs = DenseOracle(offers).cheapest(costs), LatticeOracle(offers).cheapest(costs)
    assert abs(ours.value - theirs.value) < 1e-12, (ours, theirs)
"""
    uncompiled = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, env=uncompiled, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("held", [[(0, 1), (0, 2)], [(0, 1, 2), (0, 1), (0, 2)], [(0, 3, 1), (0, 2, 3), (0, 1, 2)]])
def test_the_no_choice_item_may_be_the_first(held: list[tuple[int, ...]]) -> None:
    offers = Assortments(held, items=range(max(map(max, held)) + 1))
    assert offers.no_choice_code == 0
    for seed in range(5):
        costs = np.random.default_rng(seed).normal(size=offers.n_coordinates)
        least = min(float(costs @ offers.vertex(order)) for order in permutations(range(offers.n_items)))
        assert DenseOracle(offers).cheapest(costs).value == pytest.approx(least, abs=1e-9)
