"""The compiled loops over unions and parts against their slow twins; ``test_corral_kernels`` has those of corrals."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import naive_sets
from rankstream.oracles.bounds import part_kernels
from rankstream.oracles.tables.program_kernels import collect_unions, find_key


@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, 2**64 - 1)), max_size=8, unique=True))
def test_the_hash_table_is_a_dictionary(given_keys: list[int]) -> None:
    keys, used = np.zeros(16, dtype=np.uint64), np.full(16, -1, dtype=np.int64)
    for number, key in enumerate(given_keys):
        place = find_key(keys, used, np.uint64(key))
        assert used[place] == -1
        keys[place], used[place] = key, number
    for number, key in enumerate(given_keys):
        assert used[find_key(keys, used, np.uint64(key))] == number


@given(st.lists(st.integers(0, 2**7 - 1), min_size=1, max_size=6), st.sampled_from([3, 8, 200]))
def test_states_are_what_items_leave(takes: list[int], most: int) -> None:
    states = np.zeros(most, dtype=np.uint64)
    count = collect_unions(np.array(takes, dtype=np.uint64), states)
    expected = naive_sets.reachable(takes, 2**7 - 1)
    assert count == (len(expected) if len(expected) <= most else -1)
    assert count < 0 or set((np.uint64(2**7 - 1) ^ states[:count]).tolist()) == expected


@given(st.integers(1, 6), st.data())
def test_sets_without_an_item_are_numbered_in_order(n_items: int, data: st.DataObject) -> None:
    item, items = data.draw(st.integers(0, n_items - 1)), data.draw(st.integers(0, 2**n_items - 1))
    others = [number for number in range(2**n_items) if not number >> item & 1]
    assert part_kernels.without(items, item) == others.index(items & ~(1 << item))
    values = np.array(data.draw(st.lists(st.integers(-9, 9), min_size=2**n_items, max_size=2**n_items)), dtype=float)
    sums = values.copy()
    part_kernels.add_over_subsets(sums)
    assert sums.tolist() == naive_sets.subset_sums(values)
