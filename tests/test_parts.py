"""Parts of items: their dynamic program, projections and bounds against enumeration."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive
import naive_bounds
import strategies
from rankstream import Assortments
from rankstream._core.types import Vec
from rankstream.models.parametric.fitted import frozen
from rankstream.oracles.bounds import corral_kernels, part_kernels
from rankstream.oracles.bounds.parts import ItemParts, empty_corral


def grown(offers: Assortments, items: int, count: int = 1) -> ItemParts:
    parts = ItemParts(offers, items)
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


@settings(max_examples=40)
@given(st.integers(1, 7), st.integers(2, 6), st.integers(0, 10**6))
def test_corners_that_choose_nothing_share_nothing(count: int, n_slots: int, seed: int) -> None:
    """Corners as vectors with one more coordinate of 1: their products, their factor, and what they aim at."""
    random = np.random.default_rng(seed)
    drawn = random.integers(-1, 3, size=(count, n_slots))
    corners = np.where(drawn >= 0, drawn + 3 * np.arange(n_slots), -1)
    aim, other = random.normal(size=(2, 3 * n_slots))
    corral, taken = empty_corral(n_slots, count + 1), list[Vec]()
    for corner in corners:
        vector = np.ones(3 * n_slots + 1)
        vector[:-1] = np.isin(np.arange(3 * n_slots), corner)
        fresh = np.linalg.matrix_rank(np.array([*taken, vector])) > len(taken)
        assert part_kernels.add_corner(corral, corner, aim) == fresh
        taken += [vector] if fresh else []
    lifted, size = np.array(taken), len(taken)
    assert corral.known[0] == size
    held = corral.slots, corral.chosen, corral.weights, corral.factor, corral.sides

    def is_right(aimed: Vec) -> None:
        upper, vectors = np.triu(corral.factor[:size, :size]), lifted[corral.slots[:size]]
        np.testing.assert_allclose(upper.T @ upper, vectors @ vectors.T, atol=1e-9)
        np.testing.assert_allclose(upper.T @ corral.sides[0, :size], vectors[:, :-1] @ aimed, atol=1e-9)
        np.testing.assert_allclose(upper.T @ corral.sides[1, :size], 1.0, atol=1e-9)

    is_right(aim)
    corral_kernels.retarget(size, other, corral.squares, *held[:2], *held[3:])
    is_right(other)
    corral.factor[:] += 0.01
    assert corral_kernels.refactor(size, aim, corral.squares, *held) == size
    is_right(aim)
    point = np.empty(3 * n_slots)
    part_kernels.balance_corners(corral, point)
    np.testing.assert_allclose(point, naive_bounds.nearest(lifted[:, :-1], aim), atol=1e-5)
    assert corral.weights[: corral.known[0]].sum() == pytest.approx(1.0)


def test_a_full_corral_takes_no_more() -> None:
    corral = empty_corral(2, 1)
    assert part_kernels.add_corner(corral, frozen([0, 2]), np.zeros(4))
    assert not part_kernels.add_corner(corral, frozen([1, 3]), np.zeros(4))
    assert corral.known[0] == 1


def test_bad_sizes_are_refused_and_nothing_grows_from_nothing() -> None:
    offers = Assortments([("a", "b"), ("b", "c"), ("a", "c")])
    with pytest.raises(ValueError, match="items is -1"):
        ItemParts(offers, -1)
    assert not ItemParts(offers, 0).grow(np.ones(6))
    assert not ItemParts(offers).grow(np.zeros(6))
    parts = ItemParts(offers)
    assert parts.grow(np.ones(6))
    assert not parts.grow(np.ones(6))
