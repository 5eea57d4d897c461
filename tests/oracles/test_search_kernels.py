"""The compiled loops of the local search against their slow twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_search
import naive_sets
import strategies
from rankstream import Assortments
from rankstream._core.types import Codes, Vec
from rankstream.oracles import Ties
from rankstream.oracles.protocol import TIE_RULES
from rankstream.oracles.search import local_kernels as search_kernels
from rankstream.oracles.search.local import index_offers

RULES = st.sampled_from(list[Ties](["first", "last", "random"]))
SEEDS = st.integers(0, 2**64 - 1)


def room(costs: Vec) -> float:
    return 1e-12 * (1.0 + float(np.abs(costs).sum()))


def places(order: list[int]) -> Codes:
    return np.argsort(np.array(order, dtype=np.int64))


@given(SEEDS, st.integers(1, 100))
def test_numbers_are_read_off_a_hash(state: int, number: int) -> None:
    assert search_kernels.below(np.uint64(state), number) == naive_search.below(state, number)


@given(st.permutations(range(6)), st.integers(0, 5), st.integers(0, 6))
def test_moves_are_those_of_a_list(order: list[int], item: int, slot: int) -> None:
    moved, position = np.array(order, dtype=np.int64), places(order)
    search_kernels.move(moved, position, item, slot)
    assert moved.tolist() == naive_search.insert(order, item, slot)
    assert position.tolist() == places(moved.tolist()).tolist()


@given(strategies.problems(), st.data())
def test_costs_of_rankings_and_slots_equal_their_twins(problem: tuple[Assortments, Vec], data: st.DataObject) -> None:
    offers, costs = problem
    orders = data.draw(st.lists(st.permutations(range(offers.n_items)), min_size=1, max_size=4))
    pool = np.array([places(order) for order in orders])
    found = search_kernels.pool_costs(costs, index_offers(offers), pool)
    expected = [naive_sets.ranking_cost(offers, costs, order) for order in orders]
    assert found.tolist() == pytest.approx(expected, abs=room(costs))
    item, change = data.draw(st.integers(0, offers.n_items - 1)), np.empty(offers.n_items + 1)
    search_kernels.weigh_slots(costs, index_offers(offers), pool[0], item, change)
    tried = naive_search.slot_costs(offers, costs, orders[0], item)
    assert change[:-1].tolist() == pytest.approx((-np.diff(tried)).tolist(), abs=room(costs))


@given(strategies.problems(), RULES, SEEDS, st.data())
def test_best_insertions_equal_their_twin(
    problem: tuple[Assortments, Vec], ties: Ties, seed: int, data: st.DataObject
) -> None:
    offers, costs = problem
    order = data.draw(st.permutations(range(offers.n_items)))
    item = data.draw(st.integers(0, offers.n_items - 1))
    expected, saved = naive_search.insert_best(offers, costs, order, item, ties, seed, room(costs))
    moved, position, change = np.array(order, dtype=np.int64), places(order), np.empty(len(order) + 1)
    arrays = costs, index_offers(offers), moved, position, item
    gain = search_kernels.insert_best(*arrays, TIE_RULES[ties], np.uint64(seed), room(costs), change)
    assert moved.tolist() == expected
    assert position.tolist() == places(expected).tolist()
    assert gain == pytest.approx(saved, abs=room(costs))


@given(strategies.problems(most_items=5), RULES, SEEDS, st.data())
def test_descents_and_noise_equal_their_twins(
    problem: tuple[Assortments, Vec], ties: Ties, seed: int, data: st.DataObject
) -> None:
    offers, costs = problem
    order = data.draw(st.permutations(range(offers.n_items)))
    drawn, position = np.array(order, dtype=np.int64), places(order)
    state = search_kernels.shuffle(drawn, position, np.uint64(seed))
    assert (drawn.tolist(), int(state)) == naive_search.shuffle(order, seed)
    assert position.tolist() == places(drawn.tolist()).tolist()
    universal, noisy = -1 if offers.no_choice_code is None else offers.no_choice_code, np.empty_like(costs)
    state = search_kernels.wobble(costs, index_offers(offers), universal, 0.5, np.uint64(seed), noisy)
    expected, after = naive_search.wobble(offers, costs, 0.5, seed)
    assert noisy.tolist() == pytest.approx(expected.tolist())
    assert int(state) == after
    slow = naive_search.descend(offers, expected, drawn.tolist(), ties, seed, room(noisy))
    change = np.empty(len(order) + 1)
    arrays = noisy, index_offers(offers), drawn, position
    search_kernels.descend(*arrays, TIE_RULES[ties], np.uint64(seed), room(noisy), change)
    assert drawn.tolist() == slow


@strategies.examples(60)
@given(strategies.problems(most_items=5), RULES, SEEDS, st.sampled_from([0, 20]), st.booleans(), st.data())
def test_the_search_equals_its_twin(
    problem: tuple[Assortments, Vec], ties: Ties, seed: int, stale: int, fresh: bool, data: st.DataObject
) -> None:
    offers, costs = problem
    noise = data.draw(st.sampled_from([0.3, 1.0]))
    order = data.draw(st.permutations(range(offers.n_items)))
    held = np.inf if fresh else naive_sets.ranking_cost(offers, costs, order)
    # not exactly what the ranking costs, which either of the two may undercut by rounding
    enough = data.draw(st.sampled_from([-np.inf, naive_sets.ranking_cost(offers, costs, order) - room(costs)]))
    expected = naive_search.search(offers, costs, order, order, held, stale, ties, seed, 8, noise, enough)
    best, current = np.array([order, order], dtype=np.int64)
    universal = -1 if offers.no_choice_code is None else offers.no_choice_code
    start = costs, index_offers(offers), universal, best, current, held, stale
    value, idle = search_kernels.search(*start, TIE_RULES[ties], np.uint64(seed), 8, noise, enough)
    assert (best.tolist(), current.tolist()) == expected[:2]
    assert value == pytest.approx(expected[2], abs=room(costs))
    assert idle == expected[3]
