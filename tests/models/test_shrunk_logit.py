"""The logit shrunk by empirical Bayes, against the same fixed point in plain steps."""

from math import exp, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import null_space
from scipy.optimize import minimize

import strategies
from rankstream import Assortments, ChoiceCounts
from rankstream._core.types import Vec
from rankstream.data import simulate
from rankstream.models.entropy.guides import LOGIT
from rankstream.models.parametric import mnl
from rankstream.models.parametric.mnl import fit_mnl, fit_shrunk_logit


def penalised(utility: Vec, counts: ChoiceCounts, shrunk: list[int], variance: float) -> float:
    """Minus the log of likelihood and prior, choice by choice."""
    offers, mean = counts.assortments, float(np.mean([utility[item] for item in shrunk]))
    value = sum((utility[item] - mean) ** 2 for item in shrunk) / (2.0 * variance)
    everything = log(sum(exp(worth) for worth in utility))
    value -= sum(mnl.SHRUNK_SMOOTHING * (worth - everything) for worth in utility)
    for number in range(offers.n_offers):
        members = offers.members[offers.indptr[number] : offers.indptr[number + 1]]
        total = log(sum(exp(utility[item]) for item in members))
        tallies = counts.tallies[offers.indptr[number] : offers.indptr[number + 1]]
        value -= sum(tally * (utility[item] - total) for item, tally in zip(members, tallies, strict=True))
    return float(value)


def curvature(utility: Vec, counts: ChoiceCounts) -> Vec:
    """Minus the second derivative of the log-likelihood, offer by offer: covariances of one choice."""
    offers, n = counts.assortments, counts.assortments.n_items
    shown = [(list(range(n)), mnl.SHRUNK_SMOOTHING * n)]
    for number in range(offers.n_offers):
        members = offers.members[offers.indptr[number] : offers.indptr[number + 1]].tolist()
        shown.append((members, float(counts.totals[number])))
    total = np.zeros((n, n))
    for members, times in shown:
        share = np.zeros(n)
        share[members] = np.exp(utility[members]) / np.exp(utility[members]).sum()
        total += times * (np.diag(share) - np.outer(share, share))
    return total


def next_variance(utility: Vec, counts: ChoiceCounts, shrunk: list[int], variance: float) -> float:
    """One step of MacKay's fixed point, in coordinates that span the utilities up to a constant."""
    n = len(utility)
    effects = np.zeros((len(shrunk), n))  # differences from the mean, of the shrunk items
    for row, item in enumerate(shrunk):
        effects[row, item] += 1.0
        effects[row, shrunk] -= 1.0 / len(shrunk)
    basis = null_space(np.ones((1, n)))
    precision = basis.T @ (curvature(utility, counts) + effects.T @ effects / variance) @ basis
    posterior = effects @ basis @ np.linalg.inv(precision) @ basis.T @ effects.T
    effective = sum(1.0 - spread / variance for spread in np.diag(posterior)) - 1.0  # they sum to 0: one less is free
    squares = sum(float(effect) ** 2 for effect in effects @ utility)
    return float((squares + mnl.PRIOR_SQUARES) / (effective + mnl.PRIOR_EFFECTS))


@strategies.examples(25)
@given(strategies.assortments(most_items=5), st.integers(0, 99))
def test_the_fixed_point_step_by_step(offers: Assortments, seed: int) -> None:
    tallies = np.random.default_rng(seed).poisson(2.0, size=offers.n_coordinates).astype(float)
    counts = ChoiceCounts(offers, tallies + 1.0)
    offers, variance = counts.assortments, 1.0
    shrunk = [item for item in range(offers.n_items) if item != offers.no_choice_code]
    utility: Vec = np.zeros(offers.n_items)
    for _ in range(mnl.MAX_VARIANCE_ROUNDS):
        utility = minimize(penalised, utility, (counts, shrunk, variance), options={"gtol": 1e-7}).x
        before, variance = variance, next_variance(utility, counts, shrunk, variance)
        if abs(variance - before) <= mnl.VARIANCE_TOLERANCE * before:
            break
    fit = fit_shrunk_logit(counts)
    assert fit.converged
    expected = np.exp(utility) / np.exp(utility).sum()
    order = [fit.items.index(item) for item in offers.items]
    np.testing.assert_allclose(fit.attraction[order], expected, atol=2e-5)


def test_with_many_choices_it_is_maximum_likelihood() -> None:
    market = simulate.market(3, n_offers=40)
    distance = []
    for size in (1e2, 1e4, 1e6):
        counts = ChoiceCounts(market.assortments, market.frequencies() * size / market.assortments.n_offers)
        likeliest = fit_mnl(counts, smoothing=1e-9).probabilities(market.test)
        distance.append(float(np.abs(fit_shrunk_logit(counts).probabilities(market.test) - likeliest).max()))
    assert distance[0] > 1e-2
    assert distance[1] < distance[0] / 30.0
    assert distance[2] < distance[1] / 30.0


def test_with_few_choices_it_predicts_better_than_maximum_likelihood() -> None:
    errors = []
    for seed in range(20):
        market = simulate.market(seed, n_offers=40, unseen=True)
        shares = market.frequencies()
        counts = ChoiceCounts(
            market.assortments, np.random.default_rng(seed).multinomial(100, shares / shares.sum()).astype(float)
        )
        truth = market.truth.probabilities(market.test)
        models = (fit_shrunk_logit(counts), fit_mnl(counts, smoothing=mnl.SHRUNK_SMOOTHING))
        errors.append([float(np.mean((model.probabilities(market.test) - truth) ** 2)) for model in models])
    shrunk, plain = np.mean(errors, axis=0)
    assert shrunk < 0.9 * plain


def test_the_no_choice_item_is_not_shrunk() -> None:
    offers = [("tea", "nothing"), ("pie", "nothing"), ("tea", "pie", "nothing")]
    counts = ChoiceCounts(Assortments(offers, ("tea", "pie", "nothing")), [1, 19, 1, 19, 1, 1, 18])
    plain = fit_mnl(counts, smoothing=mnl.SHRUNK_SMOOTHING)  # tea and pie are equal already
    np.testing.assert_allclose(fit_shrunk_logit(counts).attraction, plain.attraction, rtol=1e-6)


def test_equal_items_and_one_item_have_a_variance() -> None:
    for offers, tallies in (([("tea", "pie")], [4, 4]), ([("tea", "nothing")], [1, 3]), ([("tea",)], [5])):
        fit = fit_shrunk_logit(ChoiceCounts(Assortments(offers), tallies))
        assert fit.converged
        assert np.isfinite(fit.attraction).all()


def test_it_is_a_guide() -> None:
    counts = ChoiceCounts(Assortments([("tea", "pie"), ("pie", "cake")]), [6, 2, 1, 1])
    np.testing.assert_array_equal(LOGIT.fit(counts).models[0].attraction, fit_shrunk_logit(counts).attraction)


def test_one_item_beside_nothing_is_not_shrunk() -> None:
    """Its mean is its own utility, so nothing deviates: only the imaginary offer moves its share."""
    counts = ChoiceCounts(Assortments([("tea", "nothing"), ("nothing",)]), [2, 6, 5])
    many = ChoiceCounts(counts.assortments, [2e6, 6e6, 5])
    expected = (2.0 + mnl.SHRUNK_SMOOTHING) / (8.0 + 2.0 * mnl.SHRUNK_SMOOTHING)
    assert fit_shrunk_logit(counts).predict(("tea", "nothing"))["tea"] == pytest.approx(expected, abs=1e-9)
    assert fit_shrunk_logit(many).predict(("tea", "nothing"))["tea"] == pytest.approx(0.25, abs=1e-6)


def test_newtons_steps_are_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    own = mnl._curvature

    def counted(*given: Any) -> Any:
        calls.append(1)
        return own(*given)

    monkeypatch.setattr(mnl, "_curvature", counted)
    counts = ChoiceCounts(Assortments([("tea", "pie", "rum"), ("tea", "pie")]), [6, 1, 2, 3, 5])
    model = mnl.fit_mnl(counts)
    assert model.iterations == len(calls) > 1
