"""Parts of items: their dynamic program, projections and bounds against enumeration."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive
import strategies
from rankstream import Assortments
from rankstream.models.parametric.fitted import frozen
from rankstream.oracles.bounds import part_kernels
from rankstream.oracles.bounds.corral_kernels import Corral, add_corner, renew
from rankstream.oracles.bounds.parts import Parts


def grown(offers: Assortments, items: int, count: int = 1) -> Parts:
    parts = Parts(offers, items)
    for _ in range(count):
        parts.grow(np.ones(offers.n_coordinates))
    return parts


@settings(max_examples=40)
@given(st.data(), strategies.assortments(most_items=6), st.integers(2, 5))
def test_parts_are_solved_like_by_enumeration(data: st.DataObject, offers: Assortments, items: int) -> None:
    parts = grown(offers, items)
    assume(parts.pieces)
    part = parts.pieces[0].part
    costs = data.draw(strategies.costs(part.item.size))
    room = 1e-12 * (1.0 + float(np.abs(costs).sum()))
    value = part_kernels.solve_part(part, costs, parts._sums, parts._to_go)
    assert value == pytest.approx(naive.part_least(part, costs), abs=room)
    chosen = np.empty(part.inside.size, dtype=np.int64)
    part_kernels.choose_part(part, costs, parts._sums, parts._to_go, chosen)
    assert costs[chosen[chosen >= 0]].sum() == pytest.approx(value, abs=room)


@settings(max_examples=25)
@given(st.data(), strategies.assortments(most_items=6), st.integers(2, 4))
def test_parts_cost_no_more_than_the_cheapest_ranking(data: st.DataObject, offers: Assortments, items: int) -> None:
    parts = grown(offers, items, 3)
    assume(parts.pieces)
    for piece in parts.pieces:
        piece.pull = data.draw(strategies.costs(piece.pull.size))
    costs = -parts.total()
    assert parts.least() <= naive.cheapest_value(offers, costs) + 1e-12 * (1.0 + float(np.abs(costs).sum()))


def test_all_items_in_one_part_give_the_nearest_model() -> None:
    generator = np.random.default_rng(1)
    offers = Assortments([(0, 1, 5), (1, 2, 3, 5), (0, 2, 4, 5), (1, 3, 4, 5), (0, 3, 5)], items=range(6))
    shares = np.concatenate([generator.dirichlet(np.ones(len(offer))) for offer in offers.offers])
    parts = grown(offers, 8)
    assert parts.items == [[0, 1, 2, 3, 4]]
    point = shares.copy()
    parts.sweep(point, 200, 1e-12)
    np.testing.assert_allclose(point, naive.nearest_l2(offers, shares), atol=1e-6)


def test_a_renewed_inverse_is_the_inverse() -> None:
    generator = np.random.default_rng(0)
    corners = generator.integers(-1, 3, size=(6, 12)) + np.where(np.arange(12) > 5, 3, 0)
    corral = Corral(np.zeros(1, dtype=np.int64), np.full((6, 12), -1, dtype=np.int64), np.zeros(6), np.zeros((6, 6)))
    assert all(add_corner(corral, corner.astype(np.int64)) for corner in corners)
    assert not add_corner(corral, corral.chosen[0].copy())
    products = 1.0 + np.array([[np.sum((a == b) & (a >= 0)) for a in corral.chosen] for b in corral.chosen])
    np.testing.assert_allclose(corral.inverse @ products, np.eye(6), atol=1e-9)
    corral.inverse[:] += 0.01
    renew(corral)
    np.testing.assert_allclose(corral.inverse @ products, np.eye(6), atol=1e-9)


@given(st.lists(st.floats(-3.0, 3.0), min_size=5, max_size=5))
def test_nearest_shares_are_nearest(values: list[float]) -> None:
    vector, out = np.array(values), np.empty(5)
    part_kernels.nearest_shares(frozen([0, 2, 5]), vector, out)
    for begin, end in ((0, 2), (2, 5)):
        assert out[begin:end].sum() == pytest.approx(1.0)
        assert (out[begin:end] >= 0.0).all()
        for corner in np.eye(end - begin):
            assert (vector - out)[begin:end] @ (corner - out[begin:end]) <= 1e-9


def test_bad_sizes_are_refused_and_nothing_grows_from_nothing() -> None:
    offers = Assortments([("a", "b"), ("b", "c"), ("a", "c")])
    with pytest.raises(ValueError, match="items is -1"):
        Parts(offers, -1)
    assert not Parts(offers, 0).grow(np.ones(6))
    assert not Parts(offers).grow(np.zeros(6))
    parts = Parts(offers)
    assert parts.grow(np.ones(6))
    assert not parts.grow(np.ones(6))
