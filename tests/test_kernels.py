import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import strategies
from rankstream import Assortments, kernels


@given(strategies.assortments(), st.data())
def test_vertex_equals_its_twin(offers: Assortments, data: st.DataObject) -> None:
    ranking = data.draw(st.permutations(range(offers.n_items)))
    assert np.array_equal(offers.vertex(ranking), naive.vertex(offers, list(ranking)))


@pytest.mark.parametrize("ranking", [[0, 0], [0, 2], [-1, 0], [0], [0, 1, 2]])
def test_vertex_refuses_what_is_no_ranking(ranking: list[int]) -> None:
    with pytest.raises(ValueError, match="must order all 2 item codes"):
        Assortments([("a", "b")]).vertex(ranking)


@given(st.integers(0, 6), st.integers(0, 2**32 - 1))
def test_sum_over_subsets_equals_its_twin(n_bits: int, seed: int) -> None:
    table = np.random.default_rng(seed).integers(-9, 9, size=2**n_bits).astype(np.float64)
    expected = naive.sum_over_subsets(table)
    kernels.sum_over_subsets(table)
    assert np.array_equal(table, expected)


@given(st.integers(0, 2**40 - 1), st.integers(0, 39))
def test_squeeze_takes_out_one_place(subset: int, place: int) -> None:
    assert int(kernels.squeeze(np.uint64(subset), np.uint64(1 << place))) == naive.squeeze(subset, 1 << place)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_mix_equals_its_twin(state: int, word: int) -> None:
    assert int(kernels.mix(np.uint64(state), np.uint64(word))) == naive.mix(state, word)


@given(st.integers(0, 2**63 - 1), st.lists(st.booleans(), min_size=1, max_size=20))
def test_hash_of_a_vertex_mixes_its_coordinates(seed: int, chosen: list[bool]) -> None:
    expected = seed
    for k, one in enumerate(chosen):
        expected = naive.mix(expected, k) if one else expected
    assert int(kernels.hash_of(np.array(chosen, dtype=np.float64), np.uint64(seed))) == expected
