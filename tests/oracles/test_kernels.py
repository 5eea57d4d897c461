import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import strategies
from rankstream import Assortments
from rankstream._core.types import Vec
from rankstream.data.order import NO_PAIRS
from rankstream.oracles import tie_kernels as kernels
from rankstream.oracles.protocol import TIE_RULES, Ties

pytestmark = pytest.mark.quick


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
    assert int(kernels.hashed(np.uint64(state), np.uint64(word))) == naive.mix(state, word)


@given(strategies.problems(), st.sampled_from(list(TIE_RULES)), st.integers(0, 2**63 - 1), st.data())
def test_kept_rankings_equal_their_twin(
    problem: tuple[Assortments, Vec], ties: Ties, seed: int, data: st.DataObject
) -> None:
    offers, costs = problem
    ranking = data.draw(st.permutations(range(offers.n_items)))
    kept = np.array(ranking, dtype=np.int64)
    universal = -1 if offers.no_choice_code is None else offers.no_choice_code
    rule = kernels.TieBreak(universal, TIE_RULES[ties], seed, NO_PAIRS)
    value = kernels.keep_by_rule(costs, offers.indptr, offers.members, rule, True, kept)
    assert kept.tolist() == naive.keep_by_rule(offers, list(ranking), ties, seed)
    assert np.array_equal(offers.vertex(kept), offers.vertex(ranking))
    assert value == pytest.approx(float(costs @ offers.vertex(ranking)))
    again = kept.copy()
    assert kernels.keep_by_rule(costs, offers.indptr, offers.members, rule, False, again) == value
    assert np.array_equal(again, kept)
