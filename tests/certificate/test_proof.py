"""A proof that goes on: rounds, cuts from outside, weights, what does not count, orders of items, and threads."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import naive
import naive_prices
import strategies
from rankstream import Assortments, ChoiceCounts, certificate, distances
from rankstream._core import threads
from rankstream._core.types import Vec
from rankstream.certificate import Proof

pytestmark = pytest.mark.quick

OFFERS = Assortments([("a", "b", "x"), ("b", "c", "x"), ("x", "a"), ("c", "x")])


def market(seed: int, n: int = 16, m: int = 60) -> tuple[Assortments, Vec]:
    random = np.random.default_rng(seed)
    offers = Assortments([(*random.permutation(n)[:4].tolist(), n) for _ in range(m)], items=range(n + 1))
    return offers, np.concatenate([random.dirichlet(np.full(5, 0.5)) for _ in range(m)])


@strategies.examples(30)
@given(strategies.assortments(5), st.data(), st.integers(0, 2**32 - 1))
def test_cuts_from_outside_are_used_and_never_prove_too_much(
    offers: Assortments, data: st.DataObject, seed: int
) -> None:
    random, vertices = np.random.default_rng(seed), naive.all_vertices(offers)
    shares = data.draw(strategies.frequencies(offers))
    weights = random.choice([0.0, 0.4, 2.0], size=offers.n_offers)
    assume(weights.any())
    scale = weights[offers.owner]
    least = naive.least_distance("l2", vertices * scale, shares * scale)
    proof, last = Proof(offers, shares, weights), 0.0
    proof.advance(rounds=5)
    for turn in range(60):
        # directions of the proof's own, as an exact oracle is asked, or any at all
        normal = proof.direction if turn % 3 else random.normal(size=shares.size)
        proof.add(normal, float((vertices @ normal).min()))
        assert last <= proof.bound() <= least + 1e-6
        last = proof.bound()
    assert last == pytest.approx(least, rel=0.05, abs=1e-3)
    assert proof.point[scale == 0.0] == pytest.approx(shares[scale == 0.0])
    assert not proof.direction[scale == 0.0].any()


@strategies.examples(20)
@given(naive_prices.ordered(most_items=5), st.data())
def test_bounds_hold_for_rankings_that_keep_an_order(offers: Assortments, data: st.DataObject) -> None:
    shares = data.draw(strategies.frequencies(offers))
    least = naive.least_distance("l2", naive_prices.all_vertices(offers), shares)
    assert Proof(offers, shares).advance(rounds=30) <= least + 1e-6


@pytest.mark.slow
@strategies.compiled_only
def test_the_same_rounds_give_the_same_bound_whatever_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    offers, shares = market(0)
    proofs = [Proof(offers, shares, items=9) for _ in range(3)]
    proofs[0].advance(rounds=12)
    for _ in range(12):
        proofs[1].advance(rounds=1)
    monkeypatch.setattr(threads, "thread_count", lambda: 3)
    proofs[2].advance(rounds=12)
    for other in proofs[1:]:
        assert other.bound() == proofs[0].bound()
        np.testing.assert_array_equal(other.point, proofs[0].point)
    assert proofs[0].rounds == 12
    assert proofs[0].bound() > 0.0


@pytest.mark.slow
@strategies.compiled_only
def test_it_rises_until_it_is_finished_and_a_cut_lets_it_go_on() -> None:
    offers, shares = market(1, 9, 25)
    proof, last = Proof(offers, shares, items=9), 0.0
    while not proof.finished:
        proof.advance(rounds=1)
        assert proof.bound() >= last
        last = proof.bound()
    rounds = proof.rounds
    proof.advance(rounds=5)
    assert proof.rounds == rounds
    proof.add(np.ones(shares.size), -1.0)
    proof.advance(rounds=1)
    assert proof.rounds == rounds + 1
    assert last <= proof.bound() <= np.linalg.norm(naive.vertex(offers, list(range(offers.n_items))) - shares)


@pytest.mark.slow
@strategies.compiled_only
def test_it_stops_at_a_target_and_when_time_is_up() -> None:
    offers, shares = market(2)
    whole = Proof(offers, shares).advance(rounds=20)
    proof = Proof(offers, shares)
    assert proof.advance(rounds=20, target=0.1 * whole) >= 0.1 * whole
    assert proof.rounds < 20
    assert Proof(offers, shares).advance(budget=0.0) == 0.0


def test_weights_by_observations_are_those_of_the_distance() -> None:
    counts = ChoiceCounts(OFFERS, [30, 1, 2, 4, 0, 1, 0, 9, 0, 0])
    weights = distances.observation_weights(counts)
    proof = Proof(OFFERS, counts, weights)
    proof.advance(rounds=200)
    shares = np.nan_to_num(counts.frequencies())
    scale = np.array(weights)[OFFERS.owner]
    least = naive.least_distance("l2", naive.all_vertices(OFFERS) * scale, shares * scale)
    assert proof.bound() == pytest.approx(least, rel=0.01)
    assert least > 0.0
    found = distances.L2(OFFERS, weights=weights).value(naive.all_vertices(OFFERS)[0], shares)
    assert proof.bound() <= found


@pytest.mark.slow
@strategies.compiled_only
def test_doubled_weights_double_the_bound() -> None:
    offers, shares = market(3)
    one, two = (Proof(offers, shares, np.full(offers.n_offers, weight)).advance(rounds=6) for weight in (1.0, 2.0))
    assert two == pytest.approx(2.0 * one)


def test_bad_cuts_are_refused() -> None:
    proof = Proof(OFFERS, np.array([0.5, 0.5, 0.0, 1.0, 0.0, 0.0, 0.5, 0.5, 0.5, 0.5]))
    for normal, least in (([1.0], 0.0), (np.full(10, np.nan), 0.0), (np.ones(10), np.nan)):
        with pytest.raises(ValueError, match=r"give 10 finite numbers, one per coordinate|least is nan"):
            proof.add(normal, least)
    with pytest.raises(ValueError, match="rounds is -1"):
        proof.advance(rounds=-1)
    assert certificate.Proof is Proof


@pytest.mark.parametrize("normal", [[0.0] * 9, [0.0] * 9 + [np.nan], [np.inf] + [0.0] * 9, [[0.0] * 10]])
def test_a_cut_has_a_finite_number_for_every_coordinate(normal: list[float]) -> None:
    proof = Proof(OFFERS, ChoiceCounts(OFFERS, range(1, 11)).frequencies())
    with pytest.raises(ValueError, match="give 10 finite numbers, one per coordinate"):
        proof.add(normal, 0.0)
    with pytest.raises(ValueError, match="least is nan"):
        proof.add([0.0] * 10, np.nan)
    assert proof.bound() == 0.0
