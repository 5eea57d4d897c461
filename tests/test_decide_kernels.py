"""Kernels of decisions against slow twins: subset sums, single changes, and bounds at any prices."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from naive_decide import decomposed_bound, list_earns, offers_of_bits
from rankstream._core.types import Codes, Vec
from rankstream.decide import branch_kernels, list_kernels, table_kernels
from strategies import compiled_only


def random_lists(random: np.random.Generator, n: int) -> tuple[Codes, Codes, Vec, Vec, Vec]:
    """Start, item, weight, end and margin of up to six random lists."""
    rows = [random.permutation(n)[: int(random.integers(0, n + 1))] for _ in range(int(random.integers(1, 7)))]
    start = np.concatenate([[0], np.cumsum([row.size for row in rows])]).astype(np.int64)
    item = np.concatenate(rows).astype(np.int64)
    return start, item, random.dirichlet(np.ones(len(rows))), random.uniform(0, 1, len(rows)), random.uniform(-1, 3, n)


@compiled_only
@pytest.mark.parametrize("bits", [15, 16, 17])
def test_subset_sums_beyond_a_block(bits: int) -> None:
    table = np.random.default_rng(bits).normal(size=2**bits)
    wanted = table.copy()
    for bit in range(bits):
        view = wanted.reshape(-1, 2, 2**bit)
        view[:, 1] += view[:, 0]
    table_kernels.subset_sums(table, bits)
    assert table == pytest.approx(wanted)


def test_half_sums_are_sums_over_sets() -> None:
    numbers = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    assert table_kernels.half_sums(numbers, 2, 3).tolist() == [0, 4, 8, 12, 16, 20, 24, 28]


@settings(max_examples=60)
@given(st.integers(2, 5), st.integers(0, 10**6))
def test_changes_are_those_of_single_moves(n: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    lists = random_lists(random, n)
    held = random.integers(0, 2, n).astype(np.int8)
    add, drop, swap = np.zeros(n), np.zeros(n), np.zeros((n, n))
    now = list_kernels.changes(*lists, held, add, drop, swap)
    assert now == pytest.approx(list_earns(lists, held))
    assert now == pytest.approx(list_kernels.earned(*lists, held))
    for i in range(n):
        after = held.copy()
        after[i] ^= 1
        change = list_earns(lists, after) - now
        assert (drop if held[i] else add)[i] == pytest.approx(change)
        for k in range(n):
            if held[i] and not held[k]:
                both = after.copy()
                both[k] = 1
                assert drop[i] + add[k] + swap[i, k] == pytest.approx(list_earns(lists, both) - now)


@settings(max_examples=60)
@given(st.integers(2, 5), st.integers(0, 10**6), st.booleans())
def test_at_any_prices_the_bound_holds_with_and_without_every_item(n: int, seed: int, narrow: bool) -> None:
    random = np.random.default_rng(seed)
    lists = random_lists(random, n)
    cost, space = random.uniform(0, 0.3, n), random.integers(0, 4, n).astype(np.float64)
    slots, room = int(random.integers(1, n + 1)), float(random.integers(1, 6)) if narrow else np.inf
    price = random.normal(scale=random.choice([0.0, 0.2, 1.0]), size=lists[1].size)
    into, out = np.zeros(n), np.zeros(n)
    bound = branch_kernels.penalties(*lists, cost, space, slots, room, price, into, out)
    best = -np.inf
    best_with, best_without = np.full(n, -np.inf), np.full(n, -np.inf)
    for held in offers_of_bits(n):
        if held.sum() <= slots and float(space @ held) <= room:
            worth = list_earns(lists, held) - float(cost @ held)
            best = max(best, worth)
            best_with[held > 0] = np.maximum(best_with[held > 0], worth)
            best_without[held == 0] = np.maximum(best_without[held == 0], worth)
    assert bound >= best - 1e-9
    assert (into >= best_with - 1e-9).all()
    assert (out >= best_without - 1e-9).all()
    assert (np.maximum(into, out) <= bound + 1e-9).all()
    if not narrow:
        assert bound == pytest.approx(decomposed_bound(lists, price, cost, slots))
        assert into.tolist() == pytest.approx([decomposed_bound(lists, price, cost, slots, i, -1) for i in range(n)])
        assert out.tolist() == pytest.approx([decomposed_bound(lists, price, cost, slots, -1, i) for i in range(n)])
    better, offer = np.empty_like(price), np.zeros(n)
    lower = branch_kernels.descend(*lists, cost, space, slots, room, best, 40, 0.3, price, better, offer)
    assert best - 1e-9 <= lower <= bound + 1e-9
    again = branch_kernels.penalties(*lists, cost, space, slots, room, better, into, out)
    assert again == pytest.approx(lower)
