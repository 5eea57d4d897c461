"""The compiled loops over unions of offers, hard and soft, against twins on frozensets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import naive_sets
import strategies
from rankstream import Assortments
from rankstream._core.types import Codes, Vec
from rankstream.models.entropy import soft_kernels
from rankstream.oracles import LatticeOracle, Ties
from rankstream.oracles.protocol import TIE_RULES
from rankstream.oracles.tables import lattice_kernels
from rankstream.oracles.tables.lattice import unions


def room(costs: Vec) -> float:
    return 1e-12 * (1.0 + float(np.abs(costs).sum()))


def tables(oracle: LatticeOracle) -> tuple[Codes, Codes, Codes, Codes, Vec, Vec]:
    """The components' full states, transitions by state, their items and next states, and costs of both."""
    numbers, shape, _, work, _ = oracle.tables
    _, n_components, n_states, n_transitions, n_entries = numbers[:5].tolist()
    sizes = [n_components, n_states + 1, n_transitions, n_transitions]
    tops, first, items, following = np.split(shape[shape.size - sum(sizes) :], np.cumsum(sizes[:-1]))
    costs_of, to_go = np.split(work[n_entries + 1 :], [n_transitions])
    return tops, first, items, following, costs_of, to_go


@given(strategies.problems(), st.sampled_from(list(TIE_RULES)))
def test_lattice_tables_equal_their_twin(problem: tuple[Assortments, Vec], ties: Ties) -> None:
    compare_tables(*problem, ties)


@strategies.examples(10)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_lattice_tables_of_more_offers_than_bits_in_a_word(seed: int, ends: bool) -> None:
    random = np.random.default_rng(seed)
    picked = random.choice(np.arange(1, 127), size=int(random.integers(60, 100)), replace=False).tolist()
    offers = Assortments([[*naive_sets.items_of(one), *[7] * ends] for one in picked], items=range(8))
    compare_tables(offers, random.normal(size=offers.n_coordinates), "first")


def compare_tables(offers: Assortments, costs: Vec, ties: Ties) -> None:
    oracle = LatticeOracle(offers, ties)
    oracle.cheapest(costs)
    tops, first, items, following, costs_of, to_go = tables(oracle)
    family, full, state, transition = naive_sets.family(offers, costs), list[int](), 0, 0
    assert [frozenset(offer) for offer in oracle.reduced.offers] == list(family)
    for component in oracle.reduced.components:
        sets = [frozenset(oracle.reduced.offers[number]) for number in component]
        least = naive_sets.cost_to_go({one: family[one] for one in sets}, offers.no_choice_code is not None)
        places = {one: state + number for number, one in enumerate(naive_sets.unions(sets))}
        assert [float(to_go[place]) for place in places.values()] == pytest.approx(
            [least[one] for one in places], abs=room(costs)
        )
        for here, item, decided, left in naive_sets.transitions(sets):
            assert first[places[here]] <= transition < first[places[here] + 1]
            assert (items[transition], following[transition]) == (item, places[left])
            cost = sum(family[sets[number]][item] for number in decided)
            assert costs_of[transition] == pytest.approx(cost, abs=room(costs))
            transition += 1
        state += len(places)
        full.append(state - 1)
    assert full == tops.tolist()
    assert (state, transition) == (oracle.n_states, oracle.n_transitions)


@strategies.examples(40)
@given(strategies.problems(most_items=5), st.integers(1, 2), st.data())
def test_columns_begin_as_they_must_and_are_the_cheapest(
    problem: tuple[Assortments, Vec], length: int, data: st.DataObject
) -> None:
    offers, costs = problem
    orders = data.draw(st.lists(st.permutations(range(offers.n_items)), max_size=4))
    beginnings = np.array(orders, dtype=np.int64).reshape(len(orders), offers.n_items)[:, :length].copy()
    rankings = np.empty((1 + len(orders), offers.n_items), dtype=np.int64)
    tables = LatticeOracle(offers).tables
    least = lattice_kernels.columns_on_lattice(costs, *tables, beginnings, rankings)
    assert least == pytest.approx(naive.cheapest_value(offers, costs), abs=room(costs))
    for ranking, beginning in zip(rankings.tolist(), [[], *beginnings.tolist()], strict=True):
        assert sorted(ranking) == list(range(offers.n_items))
        assert ranking[: len(beginning)] == beginning
        expected = naive_sets.cheapest_beginning(offers, costs, tuple(beginning))
        assert naive_sets.ranking_cost(offers, costs, ranking) == pytest.approx(expected, abs=room(costs))
    assert np.isnan(lattice_kernels.columns_on_lattice(costs + np.inf, *tables, beginnings, rankings))


def soft_tables(offers: Assortments) -> tuple[Codes, Codes, Codes, Codes, list[int]]:
    """The states, transitions and entries that the maximum-entropy model is computed on, counted and then written."""
    sets = np.array([naive_sets.bits(offers.code(item) for item in offer) for offer in offers.offers], dtype=np.uint64)
    where = np.full((offers.n_offers, offers.n_items), -1, dtype=np.int64)
    where[offers.owner, offers.members] = np.arange(offers.n_coordinates)
    states, nothing = unions(sets, 2**10), np.zeros(0, dtype=np.int64)
    first = np.zeros(states.size + 1, dtype=np.int64)
    arguments = states, sets, where, first
    size = soft_kernels.write_transitions(*arguments, nothing, nothing, nothing, np.zeros(0, dtype=np.uint32))
    items, following, first_entry = (np.zeros(int(first[-1]) + more, dtype=np.int64) for more in (0, 0, 1))
    entries = np.zeros(size, dtype=np.uint32)
    assert soft_kernels.write_transitions(*arguments, items, following, first_entry, entries) == size
    return first, items, following, first_entry, entries.tolist()


@given(strategies.assortments())
def test_soft_transitions_equal_their_twin(offers: Assortments) -> None:
    first, items, following, first_entry, entries = soft_tables(offers)
    sets = [frozenset(offers.code(item) for item in offer) for offer in offers.offers]
    places = {one: number for number, one in enumerate(naive_sets.unions(sets))}
    expected = naive_sets.transitions(sets)
    assert len(expected) == items.size
    for number, (state, item, decided, left) in enumerate(expected):
        assert first[places[state]] <= number < first[places[state] + 1]
        assert (items[number], following[number]) == (item, places[left])
        label = offers.items[item]
        coordinates = [int(offers.indptr[offer]) + offers.offers[offer].index(label) for offer in decided]
        assert entries[first_entry[number] : first_entry[number + 1]] == coordinates
    duals, flow = np.arange(1.0, offers.n_coordinates + 1), np.arange(1.0, items.size + 1)
    costs, out = np.empty(items.size), np.zeros(offers.n_coordinates)
    decides = np.zeros((items.size, offers.n_coordinates))
    for number in range(items.size):
        decides[number, entries[first_entry[number] : first_entry[number + 1]]] = 1.0
    soft_kernels.transition_costs(duals, first_entry, np.array(entries, dtype=np.uint32), costs)
    soft_kernels.collect(flow, first_entry, np.array(entries, dtype=np.uint32), out)
    np.testing.assert_allclose(costs, decides @ duals)
    np.testing.assert_allclose(out, flow @ decides)


@given(strategies.assortments(), st.integers(0, 2**32 - 1))
def test_where_chains_hit_equals_absorption(offers: Assortments, seed: int) -> None:
    random, n_items = np.random.default_rng(seed), offers.n_items
    moves = random.uniform(0.05, 1.0, (n_items, n_items))
    moves /= moves.sum(axis=1, keepdims=True)
    arrival = random.dirichlet(np.ones(n_items))
    first, items, *_ = soft_tables(offers)
    sets = [frozenset(offers.code(item) for item in offer) for offer in offers.offers]
    states = naive_sets.unions(sets)
    hits = np.full((n_items + 1) * items.size, np.nan)
    numbers = np.array([naive_sets.bits(state) for state in states], dtype=np.uint64)
    soft_kernels.hitting(numbers, arrival, moves, first, items, hits)
    for number, state in enumerate(states[1:], start=1):
        inside = sorted(state)
        ends = naive.absorption(inside, moves)[:, inside]
        expected = np.vstack([ends, arrival @ ends])
        expected[inside] = 0.0
        own = hits[(n_items + 1) * first[number] : (n_items + 1) * first[number + 1]]
        np.testing.assert_allclose(own, expected.ravel(), atol=1e-9)


def test_a_lattice_is_asked_again_from_scratch() -> None:
    offers = Assortments([("a", "b", "n"), ("a", "n"), ("b", "c", "n")])
    oracle, costs = LatticeOracle(offers), np.arange(8.0) - 3.0
    first = oracle.cheapest(costs).value
    assert oracle.cheapest(costs).value == first
    assert oracle.cheapest(-costs).value == LatticeOracle(offers).cheapest(-costs).value
