"""Choices that an order of the items rules out: what can be fitted is fitted, and a sentence says how many they are."""

from itertools import combinations, permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rankstream import Assortments, Bootstrap, ChoiceCounts, decide, estimate, fit_within, models
from rankstream.data.observations import impossible_choices

OFFERS = Assortments([("a", "b", "c"), ("a", "c")], order=[("a", "b")])
COUNTS = ChoiceCounts(OFFERS, [5, 3, 4, 6, 4])
SENTENCE = r"^3 of 22 choices contradict the order of the items, such as 'b' from the offer \('a', 'b', 'c'\)"
MARGINS = {"a": 1.0, "b": 2.0, "c": 1.5}


def many_offers(seed: int) -> ChoiceCounts:
    """All offers of two or more of five items, of which two are ordered, with choices of every kind."""
    items = tuple("abcde")
    offers = [offer for size in (2, 3, 4) for offer in combinations(items, size)]
    assortments = Assortments(offers, items, order=[("a", "b"), ("c", "d")])
    return ChoiceCounts(assortments, np.random.default_rng(seed).integers(0, 30, assortments.n_coordinates))


@pytest.mark.parametrize("method", ["auto", "max-entropy", "nearest", "primal-dual"])
def test_fits_say_how_many_choices_contradict_the_order(method: str) -> None:
    with pytest.warns(UserWarning, match=SENTENCE) as caught:
        fit = estimate(COUNTS, method=method)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    shares = fit.model.predict(("a", "b", "c"))
    assert shares["b"] == 0.0
    assert 0.5 < shares["a"] < 0.65  # 5 of 9 and 6 of 10 without the three
    assert fit.certificate.lower > 0.3  # the three choices count in the distance, which nothing can make small
    assert fit.model.about["contradiction"] == str(caught[0].message)


def test_a_fit_within_seconds_and_the_next_offer_say_it_too() -> None:
    with pytest.warns(UserWarning, match=SENTENCE):
        fit = fit_within(COUNTS, budget=30.0)
    assert fit.model.predict(("a", "b", "c"))["b"] == 0.0
    for how in ("greedy", "thompson"):
        with pytest.warns(UserWarning, match=SENTENCE):
            found = decide.next_offer(COUNTS, MARGINS, how)
        assert set(found.offer) <= set(MARGINS)


def test_choices_that_all_contradict_the_order_leave_the_prior() -> None:
    with pytest.warns(UserWarning, match="^3 of 3 choices contradict"):
        shares = estimate(ChoiceCounts(OFFERS, [0, 3, 0, 0, 0])).model.predict(("a", "b", "c"))
    assert shares["b"] == 0.0
    assert_allclose(sum(shares.values()), 1.0)


def test_held_out_scores_and_intervals_do_without_the_contradictions() -> None:
    counts = many_offers(1)
    with pytest.warns(UserWarning, match=f"of {counts.observations:g} choices contradict"):
        fit = estimate(counts, method="max-entropy")
    scores = fit.model.about["prediction"]["held_out_log_likelihood"]
    assert all(abs(score) < counts.observations for score in scores.values())  # 690 nats for each of them before
    found = Bootstrap(counts, replicates=3, model=fit.model).predict(("a", "b", "c"))
    assert all(0.0 <= share.low <= share.share <= share.high <= 1.0 for share in found.values())


def test_what_an_order_rules_out_is_what_no_ranking_that_keeps_it_chooses() -> None:
    counts = many_offers(2)
    offers = counts.assortments
    keep = [
        codes for codes in permutations(range(5)) if codes.index(0) < codes.index(1) and codes.index(2) < codes.index(3)
    ]
    never = ~np.any([offers.vertex(codes) > 0.0 for codes in keep], axis=0)
    assert (
        impossible_choices(offers, counts.tallies).tolist() == np.flatnonzero(never & (counts.tallies > 0.0)).tolist()
    )
    assert impossible_choices(Assortments(offers.offers), counts.tallies).size == 0


def test_likelihoods_leave_out_what_contradicts_the_order() -> None:
    model = models.parametric.latent_class.fit_latent_class(COUNTS, classes=1)
    shares = model.probabilities(OFFERS)
    possible = shares > 0.0
    assert_allclose(model.log_likelihood, COUNTS.tallies[possible] @ np.log(shares[possible]))
    assert possible.tolist() == [True, False, True, True, True]
