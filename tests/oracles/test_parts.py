"""Parts of items: their events, dynamic program, projections and cuts against enumeration."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import naive
import naive_bounds
import strategies
from rankstream import Assortments
from rankstream._core.types import Vec
from rankstream.models.lifts import frozen
from rankstream.oracles.bounds import corral_kernels, part_kernels
from rankstream.oracles.bounds.corral_kernels import Corral
from rankstream.oracles.bounds.cuts import MIN_SHARE, ItemParts, PartRounds, empty_tables
from rankstream.oracles.bounds.part_kernels import Events


def empty_corral(squares: Vec, most: int) -> Corral:
    """Room for corners over events of these squared weights, with the slot that all share."""
    return corral_kernels.empty_corral(np.append(squares, 1.0), most)


@st.composite
def drawn_parts(draw: st.DrawFn, most_items: int = 5) -> tuple[Assortments, Vec, list[int], Vec]:
    """Offers with shares and weights, and some of their items."""
    offers = draw(strategies.assortments(most_items))
    shares = draw(strategies.frequencies(offers))
    others = [item for item in range(offers.n_items) if item != offers.no_choice_code]
    chosen = draw(st.lists(st.sampled_from(others), min_size=1, max_size=4, unique=True))
    weights = draw(st.lists(st.sampled_from([0.05, 0.5, 1.0]), min_size=offers.n_offers, max_size=offers.n_offers))
    return offers, shares, sorted(chosen), np.array(weights)


@given(drawn_parts())
def test_events_are_those_of_the_offers_that_no_other_implies(drawn: tuple[Assortments, Vec, list[int], Vec]) -> None:
    offers, shares, chosen, weights = drawn
    found = ItemParts(offers, weights).events(chosen, shares)
    every = naive_bounds.events_of(offers, chosen, shares, MIN_SHARE)
    kinds = list(zip(found.item.tolist(), found.inside.tolist(), found.where.tolist(), strict=True))
    assert set(kinds) <= set(every)
    assert len(kinds) == len({kind[:2] for kind in kinds})
    assert {(item, inside, float(shares[k])) for item, inside, k in kinds} == naive_bounds.strongest(every, shares)


ALL_OFFERS = Assortments([offer for size in (2, 3, 4) for offer in combinations("abcde", size)], tuple("abcde"))
EVENLY = 1.0 / np.diff(ALL_OFFERS.indptr)[ALL_OFFERS.owner]


@strategies.examples(60)
@given(drawn_parts(6), st.integers(0, 2**32 - 1))
@example((ALL_OFFERS, EVENLY, [0, 1, 2, 3], np.ones(ALL_OFFERS.n_offers)), 1)  # more than three items
def test_events_are_gained_like_by_enumeration(drawn: tuple[Assortments, Vec, list[int], Vec], seed: int) -> None:
    offers, shares, chosen, weights = drawn
    events = ItemParts(offers, weights).events(chosen, shares)
    assume(events.where.size)
    random, tables = np.random.default_rng(seed), empty_tables(len(chosen))
    gains = np.maximum(0.0, random.normal(size=events.where.size)).round(int(random.integers(1, 9)))
    corners = np.array(naive_bounds.corners_of_events(events))
    most = part_kernels.most_gain(events, gains, tables)
    assert most == pytest.approx((corners @ gains).max(), abs=1e-12)
    kinds, tops = [*range(len(chosen)), -1] if (events.item == -1).any() else [*range(len(chosen))], dict[int, float]()
    for corner, order in zip(corners, permutations(kinds), strict=True):
        tops[order[0]] = max(tops.get(order[0], 0.0), float(corner @ gains))
    made, corral = np.empty(gains.size, dtype=np.int64), empty_corral(np.ones(gains.size), 9)
    for top, gain in tops.items():
        part_kernels.read_events(events, gains, tables, top, made)
        assert made @ gains == pytest.approx(gain, abs=1e-12)
        assert (made <= corners).all(axis=1).any()
        assert not made[gains == 0.0].any()
    above = float(random.uniform(0.0, 1.0)) * most
    fresh = part_kernels.add_corners(events, gains, tables, np.ones(gains.size), above, corral)
    assert fresh == (most > above)
    assert corral.known[0] <= sum(gain > above - 1e-12 for gain in tops.values())


@strategies.examples(80)
@given(drawn_parts(), st.sampled_from([1e-6, 0.01, 0.1]))
def test_every_cut_of_a_part_holds(drawn: tuple[Assortments, Vec, list[int], Vec], shallow: float) -> None:
    offers, shares, chosen, weights = drawn
    cut = ItemParts(offers, weights**2).separate(chosen, shares, empty_tables(6), shallow)
    if cut is not None:
        assert (naive.all_vertices(offers)[:, cut.where] @ cut.normal >= cut.least).all()
        length = float(np.linalg.norm(cut.normal / weights[offers.owner[cut.where]]))
        beyond = (cut.least - float(cut.normal @ shares[cut.where])) / length
        assert beyond == pytest.approx(cut.depth, rel=0.05, abs=1e-9)


@strategies.examples(60)
@given(drawn_parts(), st.integers(0, 2**32 - 1))
def test_parts_are_projected_on_like_by_enumeration(drawn: tuple[Assortments, Vec, list[int], Vec], seed: int) -> None:
    offers, shares, chosen, weights = drawn
    events = ItemParts(offers, weights**2).events(chosen, shares)
    assume(events.where.size)
    squares = weights[offers.owner[events.where]] ** 2
    aim = np.random.default_rng(seed).uniform(size=events.where.size)
    corral, point, gains = empty_corral(squares, 300), np.zeros(aim.size), np.zeros(aim.size)
    tables = empty_tables(len(chosen))
    depth = part_kernels.separate(events, aim, corral, point, tables, gains, 300, 1e-4, 1e-6)
    corners = np.array(naive_bounds.corners_of_events(events), dtype=np.float64)
    nearest = naive_bounds.nearest_below(corners, aim, squares)
    distance = float(np.sqrt(squares @ (aim - nearest) ** 2))
    assert depth <= distance + 1e-6
    if distance > 1e-3:
        assert depth == pytest.approx(distance, rel=2e-3)
        np.testing.assert_allclose(np.minimum(point, aim), nearest, atol=0.02)


@given(strategies.assortments(), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_parts_take_what_shares_most_with_them(offers: Assortments, size: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    mass, likes = random.uniform(0.1, 1.0, offers.n_offers), random.uniform(0.5, 1.5, offers.n_items)
    none, codes = offers.no_choice_code, naive_bounds.codes_of(offers)
    first = int(random.choice([item for item in range(offers.n_items) if item != none]))
    chosen = [first]
    while len(chosen) < size:
        scores = {
            item: likes[item] * sum(mass[k] * len(set(chosen) & set(has)) for k, has in enumerate(codes) if item in has)
            for item in range(offers.n_items)
            if item not in chosen and item != none
        }
        if max(scores.values(), default=0.0) <= 0.0:
            break
        chosen.append(max(scores, key=lambda item: scores[item]))
    assert ItemParts(offers, np.ones(offers.n_offers)).around([first], size, mass, likes) == sorted(chosen)


@strategies.examples(40)
@given(st.integers(1, 7), st.integers(2, 6), st.integers(0, 10**6))
def test_corners_that_choose_nothing_share_nothing(count: int, n_events: int, seed: int) -> None:
    """Corners as vectors with one more coordinate of 1: their products, their factor, and what they aim at."""
    random = np.random.default_rng(seed)
    corners = random.integers(0, 2, size=(count, n_events))
    squares, (aim, other) = random.uniform(0.1, 1.0, n_events), random.normal(size=(2, n_events))
    corral, taken = empty_corral(squares, count + 1), list[Vec]()
    for corner in corners:
        vector = np.append(corner, 1.0)
        fresh = np.linalg.matrix_rank(np.array([*taken, vector])) > len(taken)
        assert part_kernels.add_corner(corral, corner, aim) == fresh
        taken += [vector] if fresh else []
    lifted, size = np.array(taken), len(taken)
    assert corral.known[0] == size

    def is_right(aimed: Vec) -> None:
        upper, vectors = np.triu(corral.factor[:size, :size]), lifted[corral.slots[:size]]
        np.testing.assert_allclose(upper.T @ upper, vectors * np.append(squares, 1.0) @ vectors.T, atol=1e-9)
        np.testing.assert_allclose(upper.T @ corral.sides[0, :size], vectors[:, :-1] * squares @ aimed, atol=1e-9)
        np.testing.assert_allclose(upper.T @ corral.sides[1, :size], 1.0, atol=1e-9)

    is_right(aim)
    corral_kernels.retarget(corral, other)
    is_right(other)
    corral.factor[:] += 0.01
    corral_kernels.refactor(corral, aim)
    assert corral.known[0] == size
    is_right(aim)
    point = np.empty(n_events)
    corral_kernels.settle(corral, point)
    left, roots = lifted[corral.slots[: corral.known[0]], :-1], np.sqrt(squares)
    np.testing.assert_allclose(roots * point, naive_bounds.nearest(left * roots, roots * aim), atol=1e-5)
    assert corral.weights[: corral.known[0]].sum() == pytest.approx(1.0)


def test_a_full_corral_takes_no_more() -> None:
    corral = empty_corral(np.ones(2), 1)
    assert part_kernels.add_corner(corral, frozen([1, 0]), np.zeros(2))
    assert not part_kernels.add_corner(corral, frozen([0, 1]), np.zeros(2))
    assert corral.known[0] == 1


def test_a_part_without_events_has_no_cut() -> None:
    offers = Assortments([("a", "b"), ("b", "c"), ("a", "c")])
    parts = ItemParts(offers, np.ones(3))
    assert parts.separate([0], np.full(6, 0.5), empty_tables(1)) is None
    assert parts.separate([], np.full(6, 0.5), empty_tables(1)) is None
    assert parts.separate([0, 1, 2], np.full(6, 0.5), empty_tables(3)) is None
    assert isinstance(parts.events([0], np.full(6, 0.5)), Events)


@strategies.compiled_only
def test_parts_grow_once_small_ones_add_nothing() -> None:
    random = np.random.default_rng(0)
    offers = Assortments([tuple(random.permutation(14)[:4].tolist()) for _ in range(40)])
    shares = np.full(offers.n_coordinates, 0.25)
    rounds, sizes = PartRounds(offers, np.ones(40), items=11), []
    while not rounds.finished:
        assert rounds.cuts(shares, np.ones(40), 1.0) == []
        sizes.append(rounds.size)
    assert sorted(sizes) == sizes
    assert set(sizes) == {8, 10, 11}
    assert PartRounds(offers, np.ones(40), items=0).finished
