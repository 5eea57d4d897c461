"""A logit beside customers who take nothing whatever is there, against the likelihood choice by choice."""

from math import exp, log

import numpy as np
import pytest
from scipy.optimize import minimize

from rankstream import Assortments, ChoiceCounts
from rankstream._core.types import Vec
from rankstream.data import simulate
from rankstream.models import fit_max_entropy
from rankstream.models.entropy.guides import LOGIT
from rankstream.models.entropy.saved_fit import saved_fit
from rankstream.models.parametric import mnl
from rankstream.models.parametric.mnl import fit_never_buyers, fit_shrunk_logit
from rankstream.streams.entropy_follower import EntropyFollower

pytestmark = pytest.mark.quick
MARKET = simulate.market(7, n_items=8, segments=1, n_offers=20, unseen=True)


def mixed(never: float, offers: Assortments) -> Vec:
    """Shares where some never buy and the others follow the market's logit."""
    nothing = offers.members == offers.no_choice_code
    shares: Vec = (1.0 - never) * MARKET.truth.probabilities(offers) + never * nothing
    return shares


def sampled(never: float, size: int, seed: int = 0) -> ChoiceCounts:
    """Choices in which some never buy."""
    shares = mixed(never, MARKET.assortments)
    return ChoiceCounts(
        MARKET.assortments, np.random.default_rng(seed).multinomial(size, shares / shares.sum()).astype(float)
    )


def cost(point: Vec, counts: ChoiceCounts, nothing: str) -> float:
    """Minus the log-likelihood and what is known in advance, choice by choice."""
    *utilities, odds = point.tolist()
    utility, never = dict(zip(counts.assortments.items, utilities, strict=True)), 1.0 / (1.0 + exp(-odds))
    value: float = log(1.0 - never)
    everything = log(sum(exp(worth) for worth in utilities))
    value += sum(mnl.SMOOTHING * (worth - everything) for worth in utilities)
    tallies = iter(counts.tallies.tolist())
    for offer in counts.assortments.offers:
        total = sum(exp(utility[item]) for item in offer)
        for item in offer:
            share = (1.0 - never) * exp(utility[item]) / total + never * (item == nothing)
            value += next(tallies) * log(share)
    return -float(value)


def likeliest(counts: ChoiceCounts, *fixed: float) -> tuple[float, Vec]:
    """The least cost, and the utilities and odds of never-buyers there; the odds may be fixed."""
    offers, code = counts.assortments, counts.assortments.no_choice_code
    assert code is not None

    def asked(point: Vec) -> float:
        return cost(np.append(point, fixed), counts, str(offers.items[code]))

    found = minimize(asked, np.zeros(offers.n_items + 1 - len(fixed)), options={"gtol": 1e-6})
    return float(found.fun), np.append(found.x, fixed)


@pytest.mark.parametrize("size", [100, 2_000])
def test_share_and_tastes_are_the_likeliest(size: int) -> None:
    counts = sampled(0.5, size)
    offers = counts.assortments
    _, point = likeliest(counts)
    never = 1.0 / (1.0 + np.exp(-point[-1]))
    (others, _), shares = fit_never_buyers(counts)
    assert shares.sum() == pytest.approx(1.0)
    assert shares[1] == pytest.approx(never, abs=1e-4)
    share = mnl.logit_shares(np.exp(point[:-1]), offers.indptr, offers.members)
    bought = (1.0 - never) * share / ((1.0 - never) * share + never * (offers.members == offers.no_choice_code))
    expected = fit_shrunk_logit(ChoiceCounts(offers, counts.tallies * bought))
    np.testing.assert_allclose(others.attraction, expected.attraction, rtol=5e-3)


@pytest.mark.parametrize(("choices", "least", "most", "n_models"), [(40.0, 0.7, 0.9, 1), (60.0, 1.1, 1.5, 2)])
def test_a_nat_of_evidence_is_enough_and_needed(choices: float, least: float, most: float, n_models: int) -> None:
    counts = ChoiceCounts(MARKET.assortments, mixed(0.6, MARKET.assortments) / MARKET.assortments.n_offers * choices)
    gain = likeliest(counts, -30.0)[0] - likeliest(counts)[0]
    assert least < gain < most
    assert len(fit_never_buyers(counts)[0]) == n_models


@pytest.mark.parametrize(("never", "n_models"), [(0.006, 1), (0.014, 2)])
def test_fewer_than_a_hundredth_are_left_out_whatever_the_evidence(never: float, n_models: int) -> None:
    counts = ChoiceCounts(MARKET.assortments, 1e6 * mixed(never, MARKET.assortments))
    models, shares = fit_never_buyers(counts)
    assert (len(models), len(shares)) == (n_models, n_models)
    assert n_models == 1 or shares[1] == pytest.approx(never, abs=1e-4)


def test_what_the_others_like_is_found() -> None:
    counts = sampled(0.3, 200_000)
    (others, nobody), shares = fit_never_buyers(counts)
    assert shares[1] == pytest.approx(0.3, abs=0.03)
    truth = MARKET.truth.probabilities(MARKET.test)
    np.testing.assert_allclose(others.probabilities(MARKET.test), truth, atol=0.03)
    assert nobody.probabilities(MARKET.test)[MARKET.test.members == MARKET.test.no_choice_code] == pytest.approx(1.0)


def test_new_offers_are_predicted_better_than_by_a_logit() -> None:
    errors = []
    truth = mixed(0.5, MARKET.test)
    for seed in range(3):
        counts = sampled(0.5, 1_000, seed)
        models = (LOGIT.fit(counts), fit_shrunk_logit(counts))
        errors.append([float(np.abs(model.probabilities(MARKET.test) - truth).mean()) for model in models])
    ours, plain = np.mean(errors, axis=0)
    assert ours < 0.7 * plain


@pytest.mark.parametrize("size", [100, 1_000])
def test_without_never_buyers_the_logit_is_alone(size: int) -> None:
    counts = sampled(0.0, size)
    models, shares = fit_never_buyers(counts)
    assert shares.tolist() == [1.0]
    np.testing.assert_array_equal(models[0].attraction, fit_shrunk_logit(counts).attraction)


def test_without_a_no_choice_item_the_logit_is_alone() -> None:
    counts = ChoiceCounts(Assortments([("tea", "pie"), ("pie", "cake")]), [60, 20, 10, 10])
    models, shares = fit_never_buyers(counts)
    assert (len(models), shares.tolist()) == (1, [1.0])


def test_a_saved_model_tells_them_apart() -> None:
    fit = fit_max_entropy(sampled(0.5, 5_000))
    assert fit.stack is not None
    (before,) = (guide for guide in fit.stack.guides if guide.guide is LOGIT)
    again = saved_fit(fit.model)
    assert again is not None
    assert again.stack is not None
    (after,) = (guide for guide in again.stack.guides if guide.guide is LOGIT)
    assert len(before.models) == 2
    np.testing.assert_allclose(after.weights, before.weights, atol=1e-9)
    np.testing.assert_allclose(after.probabilities(MARKET.test), before.probabilities(MARKET.test), atol=1e-9)


def test_a_stream_keeps_them() -> None:
    served = EntropyFollower(seed=0)
    served.follow(sampled(0.5, 5_000), 5_000.0)
    again = EntropyFollower.from_content(served.to_content(), 0)
    np.testing.assert_array_equal(again.model.probabilities(MARKET.test), served.model.probabilities(MARKET.test))
    assert again.fit is not None
    assert again.fit.stack is not None
    assert any(len(guide.models) == 2 for guide in again.fit.stack.guides if guide.guide is LOGIT)
