"""Nests that are found from choices, against the likelihood choice by choice and the truth."""

from math import exp, log

import numpy as np
import pytest
from scipy.optimize import minimize

from rankstream import Assortments, ChoiceCounts
from rankstream._core.types import Codes, Vec
from rankstream.data import simulate
from rankstream.models import fit_max_entropy
from rankstream.models.entropy.guides import GUIDES, NESTS
from rankstream.models.entropy.pool import PoolGuide, guides_with
from rankstream.models.entropy.saved_fit import saved_fit
from rankstream.models.parametric import nests
from rankstream.models.parametric.markov_chain import fit_markov_chain
from rankstream.models.parametric.mnl import fit_mnl
from rankstream.models.parametric.nests import fit_nests, nested_shares, pair_scores

pytestmark = pytest.mark.quick
MARKET = simulate.market(3, n_items=6, segments=1, n_offers=25, unseen=True)
TRUE_NESTS = np.array([0, 0, 0, 1, 1, 1, 2])  # nothing is last, and alone
UTILITY = np.random.default_rng(0).normal(size=7)
SCALE = np.array([0.3, 0.5, 1.0])


def sampled(size: int, scale: Vec = SCALE) -> ChoiceCounts:
    shares = nested_shares(UTILITY, scale, TRUE_NESTS, MARKET.assortments)[0]
    return ChoiceCounts(MARKET.assortments, np.random.default_rng(1).multinomial(size, shares / shares.sum()))


def share_of(item: int, offer: list[int], utility: Vec, scale: Vec, groups: Codes) -> float:
    """One choice probability of a nested logit by its definition."""
    sums: dict[int, float] = {}
    for code in offer:
        nest = int(groups[code])
        sums[nest] = sums.get(nest, 0.0) + exp(utility[code] / scale[nest])
    nest = int(groups[item])
    within = exp(utility[item] / scale[nest]) / sums[nest]
    return float(within * sums[nest] ** scale[nest] / sum(total ** scale[key] for key, total in sums.items()))


def cost(point: Vec, counts: ChoiceCounts, groups: Codes) -> float:
    """Minus the log-likelihood and what is known in advance, choice by choice."""
    size, code = counts.assortments.n_items, {item: k for k, item in enumerate(counts.assortments.items)}
    utility, odds = point[:size], point[size:]
    scale = nests.MIN_SCALE + (1.0 - nests.MIN_SCALE) / (1.0 + np.exp(-odds))
    value = -nests.SCALE_PENALTY * float(odds @ odds)
    value += nests.SMOOTHING * sum(worth - log(sum(map(exp, utility))) for worth in utility)
    tallies = iter(counts.tallies.tolist())
    for offer in counts.assortments.offers:
        codes = [code[item] for item in offer]
        value += sum(next(tallies) * log(share_of(item, codes, utility, scale, groups)) for item in codes)
    return -float(value)


def test_shares_are_those_of_the_definition() -> None:
    offers = Assortments([("a", "b", "c", "d"), ("b", "d"), ("a",)], ("a", "b", "c", "d"))
    utility, scale, groups = np.array([0.5, -1.0, 2.0, 0.0]), np.array([0.4, 0.9]), np.array([0, 1, 0, 1])
    expected = [
        share_of(item, offer, utility, scale, groups) for offer in ([0, 1, 2, 3], [1, 3], [0]) for item in offer
    ]
    np.testing.assert_allclose(nested_shares(utility, scale, groups, offers)[0], expected, rtol=1e-12)


@pytest.mark.parametrize("size", [150, 2_000])
def test_the_nested_logit_is_the_likeliest(size: int) -> None:
    counts = sampled(size)
    found, utility, scale, _ = nests._climb(counts, TRUE_NESTS, lambda *_: False)
    likeliest = minimize(cost, np.zeros(10), (counts, TRUE_NESTS), options={"gtol": 1e-4})
    assert found == pytest.approx(likeliest.fun + 2.0 * nests.NEST_NATS, abs=0.05)
    np.testing.assert_allclose(scale[:2], 0.1 + 0.9 / (1.0 + np.exp(-likeliest.x[7:9])), atol=0.02)
    np.testing.assert_allclose(np.diff(utility), np.diff(likeliest.x[:7]), atol=0.05)


def test_scores_are_slopes_of_the_likelihood_in_a_covariance() -> None:
    """A pair's score and its variance, from choices one by one at the logit."""
    counts = sampled(300)
    offers, worth, code = counts.assortments, fit_mnl(counts).attraction, counts.assortments.items.index
    first, second, score, variance = 0, 2, 0.0, 0.0
    tallies = iter(counts.tallies.tolist())
    for offer in offers.offers:
        share = {code(item): worth[code(item)] / sum(worth[code(other)] for other in offer) for item in offer}
        one, other = share.get(first, 0.0), share.get(second, 0.0)
        total, chosen = 0.0, {item: next(tallies) for item in share}
        for item, times in chosen.items():
            slope = -((item == first) - one) * other - ((item == second) - other) * one
            score += times * slope * (first in share and second in share)
            total += times
        both = first in share and second in share
        slopes = [-((item == first) - one) * other - ((item == second) - other) * one for item in share]
        variance += both * total * sum(share[item] * slope**2 for item, slope in zip(share, slopes, strict=True))
    assert pair_scores(counts)[first, second] == pytest.approx(score / variance**0.5, rel=1e-9)


def test_true_nests_are_tried_first_of_all() -> None:
    scores = pair_scores(sampled(20_000))[:6, :6]
    within = [scores[0, 1], scores[0, 2], scores[1, 2], *scores[3:, 3:][np.triu_indices(3, 1)]]
    assert min(within) > scores[:3, 3:].max()
    assert any(
        (partition == partition[0]).tolist() == [True] * 3 + [False] * 4
        for partition in nests._partitions(sampled(20_000))
    )


@pytest.mark.parametrize("size", [2_000, 20_000])
def test_new_offers_are_predicted_better_than_by_a_chain(size: int) -> None:
    counts, test = sampled(size), MARKET.test
    truth = nested_shares(UTILITY, SCALE, TRUE_NESTS, test)[0]
    ours, chain, logit = (
        float(np.abs(fit(counts).probabilities(test) - truth).mean()) for fit in (fit_nests, fit_markov_chain, fit_mnl)
    )
    assert ours < 0.9 * chain
    assert ours < 0.5 * logit


def test_without_nests_it_is_nearly_the_logit() -> None:
    counts = sampled(20_000, np.ones(3))
    apart = fit_nests(counts).probabilities(MARKET.test) - fit_mnl(counts).probabilities(MARKET.test)
    assert np.abs(apart).max() < 0.02


@pytest.mark.parametrize(
    ("offers", "tallies"),
    [
        ([("a", "b"), ("b", "c"), ("a", "c")], [9, 1, 5, 5, 4, 6]),  # without a no-choice item
        ([("a", "no"), ("a", "b", "no")], [9, 1, 5, 5, 4]),
        ([("a", "no"), ("no",)], [9, 1, 7]),
        ([("a",)], [9]),
        ([("a", "b", "c", "no"), ("c", "no")], [0, 0, 9, 0, 0, 3]),  # items that nobody chose
    ],
)
def test_small_markets_have_shares_too(offers: list[tuple[str, ...]], tallies: list[int]) -> None:
    counts = ChoiceCounts(Assortments(offers), tallies)
    shares = fit_nests(counts).probabilities(counts.assortments)
    np.testing.assert_allclose(np.add.reduceat(shares, counts.assortments.indptr[:-1]), 1.0)


def test_it_is_a_base_model_that_is_saved_and_has_weight() -> None:
    assert NESTS in GUIDES
    fit = fit_max_entropy(sampled(5_000))
    assert fit.stack is not None
    weights = {guide.guide: weight for guide, weight in zip(fit.stack.guides, fit.stack.weights.tolist(), strict=True)}
    assert weights[NESTS] > 0.3
    again = saved_fit(fit.model)
    assert again is not None
    assert again.stack is not None
    (before,), (after,) = ([g for g in stack.guides if g.guide is NESTS] for stack in (fit.stack, again.stack))
    np.testing.assert_allclose(after.probabilities(MARKET.test), before.probabilities(MARKET.test), atol=1e-9)


def test_a_small_market_with_a_pool_is_fitted_without_nests() -> None:
    few, many = (guides_with(PoolGuide(), sampled(size)) for size in (100, 1_000))
    assert NESTS not in few
    assert NESTS in many
