from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive
import strategies
from rankstream import Assortments, ChoiceCounts
from rankstream._core.types import Vec
from rankstream.certificate import proof
from rankstream.certificate.proof import Proof
from rankstream.oracles.bounds import cuts
from waits import Ticks


def noisy(seed: int, n: int, m: int, size: int) -> tuple[Assortments, Vec]:
    generator = np.random.default_rng(seed)
    subsets = list(combinations(range(n - 1), size))
    picked = generator.choice(len(subsets), size=m, replace=False)
    offers = Assortments([(*subsets[k], n - 1) for k in picked], items=range(n))
    shares = np.concatenate([generator.dirichlet(np.ones(size + 1)) for _ in range(m)])
    return offers, shares


def distance(offers: Assortments, shares: Vec) -> float:
    return float(np.linalg.norm(naive.nearest_l2(offers, shares) - shares))


@settings(max_examples=40)
@given(
    st.data(), strategies.assortments(most_items=6), st.sampled_from([1, 2, 4, 30]), st.integers(0, 5), st.booleans()
)
def test_bound_is_below_the_distance(
    data: st.DataObject, offers: Assortments, rounds: int, items: int, weighted: bool
) -> None:
    shares = data.draw(strategies.frequencies(offers))
    some = st.lists(st.sampled_from([0.0, 1e-9, 0.3, 1.0, 20.0]), min_size=offers.n_offers, max_size=offers.n_offers)
    weights = np.array(data.draw(some)) if weighted else np.ones(offers.n_offers)
    assume(weights.any())
    scale = weights[offers.owner]
    least = naive.least_distance("l2", naive.all_vertices(offers) * scale, shares * scale)
    proof = Proof(offers, shares, weights if weighted else None, items=items)
    assert 0.0 <= proof.advance(rounds=rounds) <= least + 1e-6 * scale.max()
    assert proof.rounds <= rounds


@strategies.compiled_only
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_one_part_gives_the_distance(seed: int, weighted: bool) -> None:
    offers, shares = noisy(seed, 6, 8, 3)
    weights = np.random.default_rng(seed).uniform(0.2, 3.0, 8) if weighted else np.ones(8)
    scale = weights[offers.owner]
    least = naive.least_distance("l2", naive.all_vertices(offers) * scale, shares * scale)
    lower = Proof(offers, shares, weights).advance(rounds=2000, target=least)
    assert lower == pytest.approx(least, rel=5e-3)


@strategies.compiled_only
def test_larger_parts_prove_more() -> None:
    offers, shares = noisy(0, 9, 24, 4)
    some, whole = (Proof(offers, shares, items=items).advance(rounds=150) for items in (4, 8))
    assert 0.0 < some < whole


@strategies.compiled_only
def test_markets_without_common_items_add_up_their_squares() -> None:
    one, some = noisy(1, 6, 6, 3)
    other, more = noisy(2, 6, 6, 3)
    moved = [tuple(f"other {item}" for item in offer) for offer in other.offers]
    both = Assortments([*one.offers, *moved])
    apart = np.hypot(distance(one, some), distance(other, more))
    assert Proof(both, np.concatenate([some, more])).advance() == pytest.approx(apart, rel=0.02)


def test_models_of_rankings_are_at_no_distance() -> None:
    offers, _ = noisy(3, 7, 10, 3)
    generator = np.random.default_rng(0)
    weights = generator.dirichlet(np.ones(5))
    point = weights @ np.array([offers.vertex(generator.permutation(7)) for _ in weights])
    assert Proof(offers, point).advance(target=0.0) == 0.0
    assert Proof(offers, point).advance(rounds=40, target=0.1) < 1e-6


def test_offers_without_data_are_left_out() -> None:
    offers = Assortments([("tea", "pie", "nothing"), ("ink", "nothing"), ("tea", "nothing")])
    counts = ChoiceCounts(offers, [2, 2, 0, 0, 0, 1, 3])
    seen = Assortments([("tea", "pie", "nothing"), ("tea", "nothing")])
    expected = Proof(seen, [0.5, 0.5, 0.0, 0.25, 0.75]).advance()
    assert Proof(offers, counts).advance() == pytest.approx(expected)
    with pytest.raises(ValueError, match="No offer has been seen yet"):
        Proof(offers, ChoiceCounts(offers))


@strategies.compiled_only
def test_the_budget_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    offers, shares = noisy(4, 30, 150, 5)
    clock = Ticks(0.05)
    for module in (proof, cuts):
        monkeypatch.setattr(module, "perf_counter", clock)
    Proof(offers, shares).advance(0.5)
    assert 0.5 / 0.05 <= clock.readings <= 10 * 0.5 / 0.05  # a batch of cuts is searched to its end


@strategies.compiled_only
def test_the_same_rounds_give_the_same_bound() -> None:
    offers, shares = noisy(5, 12, 30, 4)
    assert Proof(offers, shares).advance(rounds=5) == Proof(offers, shares).advance(rounds=5)


def test_bad_options_are_refused() -> None:
    offers = Assortments([("a", "b")])
    for options, message in (
        ({"weights": [1.0, 1.0]}, "give a number >= 0 for each of 1 offers"),
        ({"weights": [-1.0]}, "give a number >= 0"),
        ({"weights": [np.nan]}, "give a number >= 0"),
        ({"weights": [0.0]}, "No offer has been seen yet"),
        ({"items": -1}, "items is -1"),
    ):
        with pytest.raises(ValueError, match=message):
            Proof(offers, [0.5, 0.5], **options)
    proof = Proof(offers, [0.5, 0.5])
    with pytest.raises(ValueError, match="budget is -1"):
        proof.advance(-1.0)
    with pytest.raises(ValueError, match="rounds is -1"):
        proof.advance(rounds=-1)
