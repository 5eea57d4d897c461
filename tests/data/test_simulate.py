from collections import Counter

import numpy as np
import pytest

from rankstream import Assortments
from rankstream.data import simulate


def test_ground_truth_has_four_favourites_a_segment() -> None:
    truth = simulate.market(seed=0, segments=3, spread=100.0).truth
    assert truth.utilities.shape == (3, 11)
    assert (truth.utilities > 0.1).sum(axis=1).max() <= 4
    assert truth.mixture.sum() == pytest.approx(1.0)


def test_probabilities_are_those_of_the_mixture() -> None:
    truth = simulate.MixedMNL(
        ("a", "b", "nothing"), np.array([[1.0, 2.0, 1.0], [3.0, 1.0, 0.0]]), np.array([0.25, 0.75])
    )
    offers = Assortments([("nothing", "b"), ("a", "b", "nothing")])
    expected = [0.25 / 3, 0.25 * 2 / 3 + 0.75, 0.25 / 4 + 0.75 * 0.75, 0.125 + 0.75 / 4, 0.0625]
    assert truth.probabilities(offers) == pytest.approx(expected)


def test_one_seed_decides_everything() -> None:
    one, again, other = simulate.market(4), simulate.market(4), simulate.market(5)
    assert one.assortments == again.assortments != other.assortments
    assert one.test == again.test
    assert one.frequencies().tolist() == again.frequencies().tolist()
    draws = [next(market.stream()).tallies.tolist() for market in (one, again)]
    assert draws[0] == draws[1]


def test_stream_grows_by_kappa_and_converges() -> None:
    market = simulate.market(seed=2)
    totals = []
    for counts, _ in zip(market.stream(per_round=50_000, first=10), range(20), strict=False):
        totals.append(counts.observations)
    assert totals[:3] == [10, 50_010, 100_010]
    assert np.nanmax(np.abs(counts.frequencies() - market.frequencies())) < 0.02


def test_choices_follow_their_probabilities() -> None:
    offers = Assortments([("a", "b"), ("c",), ("a", "b", "c")])
    p = np.array([0.0, 1.0, 1.0, 0.2, 0.0, 0.8])
    drawn = simulate.draw_choices(offers, p, 30_000, np.random.default_rng(0))
    shares = np.bincount(drawn, minlength=6) / 10_000
    assert shares == pytest.approx(p, abs=0.02)
    assert shares[0] == shares[4] == 0.0


def test_offers_are_distinct_and_at_most_half_the_items() -> None:
    market = simulate.market(seed=1, n_offers=50, unseen=True)
    sets = [frozenset(offer) for offer in market.assortments.offers]
    assert len(set(sets)) == 50
    assert all(2 <= len(offer) <= 6 and "nothing" in offer for offer in sets)
    assert not set(sets) & {frozenset(offer) for offer in market.test.offers}


def test_both_readings_of_random_subsets() -> None:
    items = [str(k) for k in range(10)]
    sizes = {}
    for reading in ("subsets", "sizes"):
        drawn = [
            len(simulate.random_offers(items, 1, np.random.default_rng(seed), reading)[0]) - 1 for seed in range(2000)
        ]
        sizes[reading] = Counter(drawn)
    assert sizes["subsets"][5] / 2000 == pytest.approx(252 / 637, abs=0.04)
    assert sizes["sizes"][5] / 2000 == pytest.approx(0.2, abs=0.04)


def test_every_subset_can_be_asked_for_and_no_more() -> None:
    items = ["a", "b", "c", "d"]
    assert len(simulate.random_offers(items, 10, np.random.default_rng(0))) == 10
    with pytest.raises(ValueError, match="only 10 different offers of up to 2 of 4 items, not 11"):
        simulate.random_offers(items, 11, np.random.default_rng(0))
    with pytest.raises(ValueError, match="Unknown way 'odd'"):
        simulate.random_offers(items, 1, np.random.default_rng(0), "odd")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="2 labels for 10 items"):
        simulate.market(0, items=["a", "b"])
    with pytest.raises(ValueError, match="contains 'a' more than once"):
        simulate.market(0, items=["a"] * 10)
    with pytest.raises(ValueError, match="segments is 0"):
        simulate.market(0, segments=0)
    with pytest.raises(ValueError, match="spread is -1"):
        simulate.market(0, spread=-1.0)
    with pytest.raises(ValueError, match="has no item 'rum'"):
        simulate.market(0).truth.probabilities(Assortments([("rum",)]))


def test_a_small_market_is_tested_on_all_offers_there_are() -> None:
    small = simulate.market(0, n_items=6, n_offers=10)
    assert small.test.n_offers == 6 + 15 + 20
    unseen = simulate.market(0, n_items=6, n_offers=10, unseen=True)
    assert unseen.test.n_offers == 41 - 10
    assert not set(map(frozenset, unseen.test.offers)) & set(map(frozenset, unseen.assortments.offers))
    with pytest.raises(ValueError, match="only 0 different offers"):
        simulate.market(0, n_items=6, n_offers=41, unseen=True)
    assert simulate.market(0, n_items=1, n_offers=1).test.n_offers == 1
