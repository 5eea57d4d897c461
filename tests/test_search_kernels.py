"""The compiled loops of the local search and of branch and bound against their slow twins."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive
import naive_bounds
import naive_prices
import naive_search
import naive_sets
import strategies
from rankstream import Assortments
from rankstream._core.types import Codes, Vec
from rankstream.oracles import Ties, branch_kernels, reinsert_kernels, search_kernels
from rankstream.oracles.bounds.group_kernels import find
from rankstream.oracles.branch import BranchOracle
from rankstream.oracles.search import index_offers
from rankstream.oracles.ties import TIE_RULES

RULES = st.sampled_from(list[Ties](["first", "last", "random"]))
SEEDS = st.integers(0, 2**64 - 1)


def room(costs: Vec) -> float:
    return 1e-12 * (1.0 + float(np.abs(costs).sum()))


def places(order: list[int]) -> Codes:
    return np.argsort(np.array(order, dtype=np.int64))


def inner_sets(offers: Assortments) -> list[frozenset[int]]:
    codes = [frozenset(offers.code(item) for item in offer) for offer in offers.offers]
    return [one - {offers.no_choice_code} for one in codes] if offers.no_choice_code is not None else codes


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


@settings(max_examples=60)
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


@settings(max_examples=60)
@given(st.one_of(strategies.problems(), naive_prices.problems()), st.data())
def test_reinsertions_equal_all_of_them(problem: tuple[Assortments, Vec], data: st.DataObject) -> None:
    offers, costs = problem
    assume(offers.n_items >= reinsert_kernels.BLOCK)
    order = np.array(data.draw(st.permutations(range(offers.n_items))), dtype=np.int64)
    position, arrays = np.argsort(order), index_offers(offers)
    search_kernels.put_in_order(arrays.pairs, order, position)
    size = data.draw(st.integers(reinsert_kernels.BLOCK, offers.n_items))
    space = reinsert_kernels.make_space(offers.n_items, offers.n_offers, size)
    for _ in range(2):  # the second in the same space
        removed = np.array(data.draw(st.permutations(range(offers.n_items)))[:size], dtype=np.int64)
        before, least = order.tolist(), naive_search.reinsert_best(offers, costs, order.tolist(), removed.tolist())
        saved = reinsert_kernels.reinsert(costs, arrays, order, position, removed, space)
        assert naive_sets.ranking_cost(offers, costs, order.tolist()) == pytest.approx(least, abs=room(costs))
        assert naive_sets.ranking_cost(offers, costs, before) - saved == pytest.approx(least, abs=room(costs))
        assert [item for item in order if item not in removed] == [item for item in before if item not in removed]
        assert sorted(order) == list(range(offers.n_items))
        assert position.tolist() == np.argsort(order).tolist()
        assert not offers.order or offers.precedence.respects(order).all()


@given(st.one_of(strategies.problems(), naive_prices.problems()), SEEDS, st.integers(3, 6), st.data())
def test_moves_of_neighbours_save_what_they_say(
    problem: tuple[Assortments, Vec], seed: int, size: int, data: st.DataObject
) -> None:
    offers, costs = problem
    order = np.array(data.draw(st.permutations(range(offers.n_items))), dtype=np.int64)
    arrays = index_offers(offers)
    search_kernels.put_in_order(arrays.pairs, order, np.argsort(order))
    moved, again = order.copy(), order.copy()
    saved = reinsert_kernels.reinsert_neighbours(costs, arrays, moved, size, np.uint64(seed), 3)
    assert saved == reinsert_kernels.reinsert_neighbours(costs, arrays, again, size, np.uint64(seed), 3)
    assert moved.tolist() == again.tolist()
    assert sorted(moved) == list(range(offers.n_items))
    assert saved >= -room(costs)
    after = naive_sets.ranking_cost(offers, costs, order.tolist()) - saved
    assert naive_sets.ranking_cost(offers, costs, moved.tolist()) == pytest.approx(after, abs=room(costs))
    assert not offers.order or offers.precedence.respects(moved).all()


@given(st.permutations(range(12)), SEEDS, st.integers(3, 12))
def test_neighbours_stand_in_a_row_of_twice_as_many(order: list[int], seed: int, size: int) -> None:
    removed = np.full(size, -1, dtype=np.int64)
    reinsert_kernels.pick_neighbours(np.array(order, dtype=np.int64), np.uint64(seed), removed)
    assert len(set(removed)) == size
    rows = ({order[(start + k) % 12] for k in range(min(2 * size, 12))} for start in range(12))
    assert set(removed) <= set(range(12))
    assert any(row.issuperset(removed) for row in rows)


@given(strategies.assortments(), st.integers(0, 63))
def test_closures_and_components_equal_their_twins(offers: Assortments, number: int) -> None:
    sets = [frozenset(offers.code(item) for item in offer) for offer in offers.offers]
    masks = np.array([naive_sets.bits(one) for one in sets], dtype=np.uint64)
    closed = naive_sets.closure(sets, naive_sets.items_of(number))
    assert int(branch_kernels.closure(masks, np.uint64(number))) == naive_sets.bits(closed)
    if closed:
        part = branch_kernels.component(masks, np.uint64(naive_sets.bits(closed)))
        assert int(part) == naive_sets.bits(naive_sets.component(sets, closed))


@given(st.lists(st.tuples(st.one_of(st.integers(0, 5), SEEDS), st.integers(-9, 9)), max_size=20))
def test_the_memo_is_a_dictionary_with_little_room(entries: list[tuple[int, int]]) -> None:
    size = 16
    memo = branch_kernels.Memo(
        keys=np.zeros(size, dtype=np.uint64),
        used=np.full(size, -1, dtype=np.int64),
        value=np.zeros(size),
        status=np.zeros(size, dtype=np.int64),
        item=np.zeros(size, dtype=np.int64),
        filled=np.zeros(1, dtype=np.int64),
    )
    known: dict[int, int] = {}
    for key, value in entries:
        fits = key in known or 2 * len(known) < size
        assert branch_kernels.remember(memo, np.uint64(key), float(value), branch_kernels.EXACT, value) == fits
        if fits:
            known[key] = value
    assert memo.filled[0] == len(known)
    for key, value in known.items():
        place = find(memo.keys, memo.used, np.uint64(key))
        assert (memo.used[place], memo.value[place], memo.item[place]) == (1, value, value)
    if 99 not in known:
        assert memo.used[find(memo.keys, memo.used, np.uint64(99))] == -1


@settings(max_examples=40)
@given(strategies.problems(most_items=5), st.integers(2, 12), st.data())
def test_bounds_of_branch_and_bound_equal_their_twins(
    problem: tuple[Assortments, Vec], states: int, data: st.DataObject
) -> None:
    offers, costs = problem
    oracle = BranchOracle(offers, states=states)
    oracle.splitting.lower(costs, 1)
    groups, shares, table = oracle.splitting.groups, oracle.splitting.shares, oracle._problem(costs)
    codes = [item for item in range(offers.n_items) if item != offers.no_choice_code]
    order = data.draw(st.permutations(codes))
    gone, depth = set(order[: data.draw(st.integers(0, len(order)))]), data.draw(st.integers(0, 2))
    table.at[depth] = table.at[0]

    def bound(ranked: set[int]) -> float:
        return sum(naive_bounds.above_no_choice(groups, k, ranked, shares) for k in range(len(groups.offers)))

    assert branch_kernels.groups_bound(table, depth) == pytest.approx(bound(set()), abs=room(costs))
    left = branch_kernels.restrict(table, np.uint64(naive_sets.bits(gone)), depth)
    assert left == pytest.approx(bound(gone), abs=room(costs))
    items = naive_sets.closure(inner_sets(offers), frozenset(codes) - gone)
    branch_kernels.weigh_items(table, np.uint64(naive_sets.bits(items)), depth + 1)
    for item in range(offers.n_items):
        if item in items:
            placing = naive_sets.placing_cost(offers, costs, items, item)
            total = placing + bound(gone | {item})
            assert table.cost[depth + 1, item] == pytest.approx(placing, abs=room(costs))
            assert table.estimate[depth + 1, item] == pytest.approx(total, abs=room(costs))
        else:
            assert table.estimate[depth + 1, item] == np.inf


@given(strategies.problems(most_items=6), st.integers(2, 6), st.sampled_from([0, 2, 10**6]), st.data())
def test_exploring_equals_the_recursion_on_sets(
    problem: tuple[Assortments, Vec], states: int, nodes: int, data: st.DataObject
) -> None:
    offers, costs = problem
    explore_all(offers, costs, states, nodes, naive.cheapest_value(offers, costs), data)


@given(strategies.problems(most_items=4), strategies.problems(most_items=4), st.data())
def test_exploring_what_falls_apart_adds_up(
    one: tuple[Assortments, Vec], other: tuple[Assortments, Vec], data: st.DataObject
) -> None:
    sides = [
        [tuple((side, item) for item in offer) for offer in own.offers] for side, (own, _) in enumerate((one, other))
    ]
    offers, costs = Assortments([*sides[0], *sides[1]]), np.concatenate([one[1], other[1]])
    least = naive.cheapest_value(*one) + naive.cheapest_value(*other)
    explore_all(offers, costs, 2, 10**6, least, data)


def explore_all(offers: Assortments, costs: Vec, states: int, nodes: int, cheapest: float, data: st.DataObject) -> None:
    """Explore all items with some limit: exact below it, and a bound that reaches it where the nodes last."""
    oracle = BranchOracle(offers, states=states, memory=256)
    oracle.splitting.lower(costs, 1)
    table, memo = oracle._problem(costs), oracle._memo()
    table.nodes[0] = nodes
    everything = np.uint64(branch_kernels.closure(oracle._sets, np.uint64(2**64 - 1)))
    least = cheapest - float(costs[oracle._none].sum())
    limit = data.draw(st.sampled_from([np.inf, least + 1.0, least, least - 1.0]))
    value = branch_kernels.explore(table, memo, everything, limit, 0)
    if table.status[0] == branch_kernels.EXACT:
        assert value == pytest.approx(least, abs=room(costs))
    else:
        assert value <= least + room(costs)
        assert nodes < 10**6 or value >= limit - room(costs)
