"""The parts of growth, against slow twins: sums of choices, lists of coordinates, the quick search, and lookups."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import naive_search
import strategies
from rankstream import Assortments
from rankstream._core.types import Vec
from rankstream.data.vertex_kernels import add_choices
from rankstream.oracles import QuickOracle, Ties
from rankstream.oracles.search import local
from rankstream.streams.runs import growth
from rankstream.streams.runs.growth import extend_rankings


@given(strategies.assortments(), st.data())
def test_choices_are_added_as_whole_vertices_are(offers: Assortments, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, offers.n_offers - 1))
    rankings = np.array([data.draw(st.permutations(range(offers.n_items))) for _ in range(4)], dtype=np.int64)
    weights = np.array(data.draw(st.lists(st.floats(0.1, 9.0), min_size=4, max_size=4)))
    out = np.zeros(offers.n_coordinates - int(offers.indptr[first]))
    add_choices(rankings, weights, offers.indptr[first:], offers.members, out)
    slow: Vec = np.zeros(offers.n_coordinates)
    for ranking, weight in zip(rankings.tolist(), weights.tolist(), strict=True):
        slow += weight * naive.vertex(offers, ranking)
    assert out.tobytes() == slow[offers.indptr[first] :].tobytes()


@given(strategies.assortments())
def test_every_item_has_the_list_of_its_coordinates(offers: Assortments) -> None:
    index = local.index_offers(offers)
    begins, listed = index.item_ptr, index.item_coordinates
    for item in range(offers.n_items):
        assert listed[begins[item] : begins[item + 1]].tolist() == np.flatnonzero(offers.members == item).tolist()


@given(strategies.assortments(), st.sampled_from(["first", "last", "random"]), st.data())
def test_the_quick_search_bounds_the_least_cost_from_both_sides(
    offers: Assortments, ties: Ties, data: st.DataObject
) -> None:
    costs = data.draw(strategies.costs(offers.n_coordinates))
    oracle = QuickOracle(offers, ties, seed=3)
    least, room = naive.cheapest_value(offers, costs), 1e-9 * (1.0 + np.abs(costs).sum())
    values = []
    for _ in range(4):
        answer = oracle.cheapest(costs)
        assert answer.value == pytest.approx(float(naive.vertex(offers, answer.ranking.tolist()) @ costs), abs=room)
        assert answer.bound <= least + room
        assert least <= answer.value + room
        assert oracle.cheapest(costs).ranking.tolist() == answer.ranking.tolist()
        values.append(answer.value)
        oracle.follow()
    assert all(later <= earlier + room for earlier, later in pairwise(values))


@given(strategies.assortments(), st.data())
def test_with_enough_work_no_insertion_is_left_that_saves(offers: Assortments, data: st.DataObject) -> None:
    costs = data.draw(strategies.costs(offers.n_coordinates))
    answer = QuickOracle(offers).cheapest(costs)
    ranking, room = answer.ranking.tolist(), 1e-9 * (1.0 + np.abs(costs).sum())
    for item in range(offers.n_items):
        assert min(naive_search.slot_costs(offers, costs, ranking, item)) >= answer.value - room


def test_the_work_of_a_quick_search_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(2)
    offers = Assortments([random.permutation(12)[:6].tolist() for _ in range(40)], range(12))
    costs = random.normal(size=(20, offers.n_coordinates))
    monkeypatch.setattr(local, "MIN_LOOKS", 0)
    totals = []
    for work in (0, 1, 1_000):
        monkeypatch.setattr(local, "LOOKS_PER_COORDINATE", work)
        totals.append(sum(QuickOracle(offers).cheapest(one).value for one in costs))
    assert totals[0] > totals[1] > totals[2]


@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 5), st.integers(0, 99))
def test_items_put_in_at_once_leave_the_others_in_their_order(n: int, before: int, new: int, seed: int) -> None:
    rankings = np.array([np.random.default_rng(seed + k).permutation(before) for k in range(n)])
    wider = growth._scatter(rankings, before + new, seed)
    assert (np.sort(wider, axis=1) == np.arange(before + new)).all()
    for ranking, longer in zip(rankings.tolist(), wider.tolist(), strict=True):
        assert [code for code in longer if code < before] == ranking


def test_many_items_are_put_in_at_once_and_uniformly() -> None:
    rankings = np.array([np.random.default_rng(number).permutation(9) for number in range(4000)])
    wider = extend_rankings(rankings, 12, "random", 1)
    assert wider.tolist() == growth._scatter(rankings, 12, 1).tolist()
    tallies = np.bincount(np.argmax(wider == 11, axis=1), minlength=12)
    assert ((tallies - 4000 / 12) ** 2 / (4000 / 12)).sum() < 31.3  # the 99.9 % quantile with 11 degrees of freedom
    assert extend_rankings(rankings, 12, "random", 2).tolist() != wider.tolist()


@given(st.lists(st.frozensets(st.integers(-2, 4), min_size=1), min_size=1, max_size=12), st.data())
def test_numbers_are_those_of_the_first_offer_with_the_same_items(
    sets: list[frozenset[int]], data: st.DataObject
) -> None:
    offers = tuple(tuple(sorted(items)) for items in sets)
    cut = data.draw(st.integers(1, len(offers)))
    base = Assortments(offers[:cut])
    for known in (base, base.extend(offers[cut:]), base.extend([(7,)]), base.extend([(7, 8), (7, 9)])):
        for items in {*sets, *map(frozenset, ({7}, {-1}, {7, 8}, {7, 9}))}:
            expected = next((k for k, offer in enumerate(known.offers) if frozenset(offer) == items), None)
            assert known.number(items) == expected


def test_assortments_that_go_their_own_ways_know_their_own_offers_alone() -> None:
    base = Assortments([("tea", "pie")])
    one, other = base.extend([("tea", "ice")]), base.extend([("pie", "cake"), ("ice", "tea")])
    assert (base.number(("ice", "tea")), one.number(("ice", "tea")), other.number(("ice", "tea"))) == (None, 1, 2)
    assert other.coordinate(("tea", "ice"), "ice") == 4
    with pytest.raises(ValueError, match="is not among the 1 assortments"):
        base.coordinate(("pie", "tea", "tea2")[:1], "pie")
    assert one == Assortments([("tea", "pie"), ("tea", "ice")])
