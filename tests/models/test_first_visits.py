"""The orders in which a Markov chain first visits the items: one way to draw them, for models, priors and tilts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankstream import Assortments
from rankstream._core.types import Vec
from rankstream.models import markov_chain
from rankstream.models.entropy.soft_lattice import SoftLattice, TiltedRankings
from rankstream.models.parametric import em_kernels as kernels
from rankstream.models.parametric.markov_chain import MarkovChainModel, first_visits


def a_chain(n_items: int, seed: int) -> tuple[Vec, Vec]:
    """Arrivals and moves, some of them from an item to itself."""
    random = np.random.default_rng(seed)
    return random.dirichlet(np.full(n_items, 0.5)), random.dirichlet(np.full(n_items, 0.7), size=n_items) * 0.999 + (
        0.001 / n_items
    )


def slow_next_visit(moves: Vec, visited: list[int], left: list[int]) -> Vec:
    """By the fundamental matrix of the chain within what was visited; the last of these is where it is."""
    between = np.eye(len(visited)) - moves[np.ix_(visited, visited)]
    out = np.zeros(len(moves))
    out[left] = np.linalg.solve(between, moves[np.ix_(visited, left)])[-1]
    return out


def slow_first_visits(arrival: Vec, moves: Vec, random: np.random.Generator) -> list[int]:
    shares, order, left = arrival, list[int](), list(range(len(arrival)))
    while True:
        order.append(int(random.choice(len(arrival), p=shares / shares.sum())))
        left.remove(order[-1])
        if not left:
            return order
        shares = slow_next_visit(moves, order, left)


@settings(max_examples=60)
@given(st.integers(1, 8), st.integers(0, 10**6))
def test_orders_are_those_of_the_slow_twin(n_items: int, seed: int) -> None:
    arrival, moves = a_chain(n_items, seed)
    fast, slow = np.random.default_rng(seed), np.random.default_rng(seed)
    for _ in range(5):
        assert first_visits(arrival, moves, fast).tolist() == slow_first_visits(arrival, moves, slow)


@settings(max_examples=60)
@given(st.integers(2, 8), st.integers(0, 10**6))
def test_next_visits_are_those_of_the_slow_twin(n_items: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    _, moves = a_chain(n_items, seed)
    order = random.permutation(n_items).tolist()
    visited, left = order[: 1 + seed % (n_items - 1)], order[1 + seed % (n_items - 1) :]
    flags, out = np.zeros(n_items, dtype=np.int64), np.empty(n_items)
    flags[left] = 1
    kernels.next_visit(moves, visited[-1], flags, out)
    np.testing.assert_allclose(out, slow_next_visit(moves, visited, left), rtol=1e-9, atol=1e-15)


def test_models_priors_and_tilts_draw_alike() -> None:
    items, (arrival, moves) = tuple("abcde"), a_chain(5, 3)
    prior, offers = markov_chain(items, arrival, moves), Assortments([("a", "b"), ("c", "d", "e")], items)
    model = MarkovChainModel(
        items=items,
        log_likelihood=0.0,
        iterations=0,
        converged=True,
        n_parameters=0,
        arrival=arrival,
        transitions=moves,
    )
    size = 20_000
    drawn = [
        model.draw_orders(size, np.random.default_rng(1)),
        prior.sample(size, 2),
        TiltedRankings(SoftLattice(offers, prior), np.zeros(5)).draw(2000, np.random.default_rng(3)),
    ]
    pairs = [np.array([(np.argsort(rows, axis=1)[:, 0] < np.argsort(rows, axis=1)[:, k]).mean() for k in range(1, 5)])
             for rows in drawn]  # fmt: skip
    np.testing.assert_allclose(pairs[0], pairs[1], atol=4.5 * np.sqrt(0.5 / size))
    np.testing.assert_allclose(pairs[0], pairs[2], atol=4.5 * np.sqrt(0.25 / 2000))


def test_a_chain_that_cannot_go_on_is_refused() -> None:
    closed = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])  # from a and b never to c
    with pytest.raises(ValueError, match="never reaches some of its items"):
        first_visits(np.array([1.0, 0.0, 0.0]), closed, np.random.default_rng(0))
    assert first_visits(np.array([0.0, 0.0, 1.0]), closed, np.random.default_rng(0))[0] == 2


def test_rounding_at_the_end_of_a_draw_takes_no_item_twice() -> None:
    """A number that rounding has made 1 leaves nothing over: the last item that can come next takes it."""
    arrival, moves = np.array([0.25, 0.75, 0.0]), np.array([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]])
    order = np.empty(3, dtype=np.int64)
    assert kernels.visiting_order(arrival, moves, np.ones(3), order)
    assert order.tolist() == [1, 2, 0]
    tilted = TiltedRankings(
        SoftLattice(Assortments([("a", "b")], tuple("abc")), markov_chain("abc", arrival, moves)), np.zeros(2)
    )

    class Ones:
        choice = staticmethod(np.random.default_rng(0).choice)
        random = staticmethod(np.ones)

    assert tilted.draw(2, Ones()).tolist() == [[1, 2, 0]] * 2  # type: ignore[arg-type]
