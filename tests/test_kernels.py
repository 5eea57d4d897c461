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


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_mix_equals_its_twin(state: int, word: int) -> None:
    assert int(kernels.mix(np.uint64(state), np.uint64(word))) == naive.mix(state, word)


@given(st.integers(0, 2**63 - 1), st.lists(st.booleans(), min_size=1, max_size=20))
def test_hash_of_a_vertex_mixes_its_coordinates(seed: int, chosen: list[bool]) -> None:
    expected = seed
    for k, one in enumerate(chosen):
        expected = naive.mix(expected, k) if one else expected
    assert int(kernels.hash_of(np.array(chosen, dtype=np.float64), np.uint64(seed))) == expected
