"""The compiled loops over groups and parts against their slow twins; ``test_corral_kernels`` has those of corrals."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import naive_bounds
import naive_sets
import strategies
from rankstream import Assortments
from rankstream._core.types import Vec
from rankstream.oracles.bounds import cost_splits, dykstra_kernels, group_kernels, part_kernels
from rankstream.oracles.bounds.cost_splits import Relaxation
from rankstream.oracles.bounds.group_kernels import collect_unions
from rankstream.oracles.bounds.groups import Groups

SEEDS = st.integers(0, 2**32 - 1)


def room(costs: Vec) -> float:
    return 1e-12 * (1.0 + float(np.abs(costs).sum()))


def seats(relaxation: Relaxation, group: int) -> tuple[int, int, list[naive_bounds.Corner]]:
    """The first seat of a group and the one after its last, and its corners."""
    lattices = relaxation.groups.lattices
    start, stop = (int(lattices.seat_ptr[lattices.slot_ptr[group + k]]) for k in (0, 1))
    return start, stop, naive_bounds.corners_of(naive_bounds.slots_of(relaxation.groups, group))


@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, 2**64 - 1)), max_size=8, unique=True))
def test_the_hash_table_is_a_dictionary(given_keys: list[int]) -> None:
    keys, used = np.zeros(16, dtype=np.uint64), np.full(16, -1, dtype=np.int64)
    for number, key in enumerate(given_keys):
        place = group_kernels.find(keys, used, np.uint64(key))
        assert used[place] == -1
        keys[place], used[place] = key, number
    for number, key in enumerate(given_keys):
        assert used[group_kernels.find(keys, used, np.uint64(key))] == number


@given(st.lists(st.integers(0, 2**7 - 1), min_size=1, max_size=6), st.sampled_from([3, 8, 200]))
def test_states_are_what_items_leave(takes: list[int], most: int) -> None:
    states = np.zeros(most, dtype=np.uint64)
    count = collect_unions(np.array(takes, dtype=np.uint64), states)
    expected = naive_sets.reachable(takes, 2**7 - 1)
    assert count == (len(expected) if len(expected) <= most else -1)
    assert count < 0 or set((np.uint64(2**7 - 1) ^ states[:count]).tolist()) == expected


@strategies.examples(60)
@given(strategies.assortments(most_items=5), st.integers(2, 20), st.data())
def test_groups_are_solved_like_by_enumeration(offers: Assortments, states: int, data: st.DataObject) -> None:
    relaxation = Relaxation(Groups(offers, states, overlap=2))
    lattices, n_groups = relaxation.groups.lattices, len(relaxation.groups.offers)
    costs, out = data.draw(strategies.costs(lattices.where.size)), np.empty(n_groups)
    group_kernels.least_costs(lattices, costs, relaxation.sums, relaxation.to_go, out)
    chosen = np.empty(lattices.none.size, dtype=np.int64)
    for group in range(n_groups):
        _, _, corners = seats(relaxation, group)
        assert out[group] == pytest.approx(naive_bounds.least(corners, costs), abs=room(costs))
        group_kernels.choose(lattices, group, relaxation.sums, relaxation.to_go, chosen)
        corner = tuple(chosen[lattices.slot_ptr[group] : lattices.slot_ptr[group + 1]].tolist())
        assert corner in corners
        assert costs[list(corner)].sum() == pytest.approx(out[group], abs=room(costs))


def test_a_full_table_of_corners_makes_place() -> None:
    offers = Assortments([(0, 1, 2), (0, 2, 3), (1, 2, 3), (0, 1, 3)])
    costs = np.random.default_rng(3).normal(size=offers.n_coordinates)
    with patch.object(cost_splits, "MAX_CORNERS", 2):
        splitting = cost_splits.SplittingBound(offers, 40)
    assert splitting.lower(costs, sweeps=6, calls=5) <= naive.cheapest_value(offers, costs) + room(costs)
    assert splitting.relaxation.corners.known.max() == 2


def known_corners(relaxation: Relaxation, group: int, random: np.random.Generator) -> Vec:
    """Give a group some of its corners, one of them without weight, and return them as vectors."""
    start, stop, corners = seats(relaxation, group)
    slots = slice(*relaxation.groups.lattices.slot_ptr[group : group + 2].tolist())
    picked = [corners[k] for k in random.permutation(len(corners))[:6]]
    relaxation.corners.known[group] = len(picked)
    relaxation.corners.chosen[slots, : len(picked)] = np.array(picked).T
    relaxation.corners.weight[group, : len(picked)] = random.uniform(0.1, 1.0, len(picked))
    if len(picked) > 1:
        relaxation.corners.weight[group, 0] = 0.0
    return naive_bounds.as_vectors(picked, stop - start, start)


@strategies.examples(60)
@given(strategies.assortments(most_items=5), SEEDS)
def test_weights_of_corners_equal_their_twins(offers: Assortments, seed: int) -> None:
    random = np.random.default_rng(seed)
    relaxation = Relaxation(Groups(offers, 20, overlap=2))
    lattices, corners = relaxation.groups.lattices, relaxation.corners
    group = int(random.integers(len(relaxation.groups.offers)))
    start, stop, _ = seats(relaxation, group)
    vectors = known_corners(relaxation, group, random)
    weights = corners.weight[group, : len(vectors)].copy()
    others = np.delete(corners.point, np.arange(start, stop))
    dykstra_kernels.refresh_point(lattices, group, corners)
    np.testing.assert_allclose(corners.weight[group, : len(vectors)], weights / weights.sum())
    np.testing.assert_allclose(corners.point[start:stop], weights @ vectors / weights.sum(), atol=1e-12)
    assert np.array_equal(np.delete(corners.point, np.arange(start, stop)), others)
    dykstra_kernels.forget_corners(lattices, group, corners)
    kept = weights > 0.0
    slots = slice(*lattices.slot_ptr[group : group + 2].tolist())
    assert corners.known[group] == kept.sum()
    np.testing.assert_allclose(corners.weight[group, : kept.sum()], weights[kept] / weights.sum())
    left = naive_bounds.as_vectors(corners.chosen[slots, : kept.sum()].T, stop - start, start)
    np.testing.assert_array_equal(left, vectors[kept])
    aim = random.normal(size=lattices.where.size)
    slope = corners.point - aim
    dykstra_kernels.balance(lattices, group, corners, slope, 1e-9, 10_000)
    np.testing.assert_allclose(slope[start:stop], (corners.point - aim)[start:stop], atol=1e-9)
    np.testing.assert_allclose(corners.weight[group, : len(left)] @ left, corners.point[start:stop], atol=1e-9)
    np.testing.assert_allclose(corners.point[start:stop], naive_bounds.nearest(left, aim[start:stop]), atol=1e-4)


@strategies.examples(60)
@given(strategies.assortments(most_items=5, most_offers=6), st.integers(2, 20), SEEDS)
def test_sweeps_are_rounds_of_dykstras_method(offers: Assortments, states: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    relaxation = Relaxation(Groups(offers, states, overlap=2))
    relaxation.pulls[:] = random.normal(size=relaxation.pulls.size)
    aim = random.normal(size=offers.n_coordinates)
    pulls, expected = naive_bounds.dykstra_round(relaxation.groups, relaxation.pulls, aim - relaxation.total())
    point = relaxation.sweep(aim, calls=60)
    np.testing.assert_allclose(point, expected, atol=5e-4)
    np.testing.assert_allclose(relaxation.pulls, pulls, atol=5e-4)


@given(st.integers(1, 6), st.data())
def test_sets_without_an_item_are_numbered_in_order(n_items: int, data: st.DataObject) -> None:
    item, items = data.draw(st.integers(0, n_items - 1)), data.draw(st.integers(0, 2**n_items - 1))
    others = [number for number in range(2**n_items) if not number >> item & 1]
    assert part_kernels.without(items, item) == others.index(items & ~(1 << item))
    values = np.array(data.draw(st.lists(st.integers(-9, 9), min_size=2**n_items, max_size=2**n_items)), dtype=float)
    sums = values.copy()
    part_kernels.add_over_subsets(sums)
    assert sums.tolist() == naive_sets.subset_sums(values)


@given(strategies.assortments(most_items=5), st.integers(2, 20))
def test_tables_have_room_for_every_group(offers: Assortments, states: int) -> None:
    """Compiled code writes past the end of a table that is too short, and nobody sees it."""
    relaxation = Relaxation(Groups(offers, states, overlap=2))
    lattices = relaxation.groups.lattices
    assert relaxation.to_go.size == lattices.state_ptr.max()
    assert relaxation.sums.size == lattices.entry_ptr.max()
    assert relaxation.pulls.size == relaxation.corners.point.size == lattices.seat_ptr.max()
    assert relaxation.corners.known.tolist() == [1] * len(relaxation.groups.offers)
    for group in range(len(relaxation.groups.offers)):
        _, _, corners = seats(relaxation, group)
        slots = slice(*lattices.slot_ptr[group : group + 2].tolist())
        assert tuple(relaxation.corners.chosen[slots, 0].tolist()) in corners
        assert relaxation.corners.weight[group].tolist() == [1.0] + [0.0] * (cost_splits.MAX_CORNERS - 1)
