from collections import Counter

import numpy as np
import pytest

import naive
from random_laws import a_prior
from rankstream import Assortments, RankingModel, estimate
from rankstream.data import simulate
from rankstream.estimation.methods import PrimalDual
from rankstream.models.entropy import ranking_laws as laws
from rankstream.models.entropy.completion import TiltedRankings, redraw
from rankstream.models.entropy.soft_lattice import SoftLattice


@pytest.mark.parametrize("kind", ["classes", "chain", "mixed"])
def test_tilted_rankings_are_drawn_by_their_law(kind: str) -> None:
    items = ("a", "b", "c", "d")
    offers = Assortments([("a", "b"), ("b", "c")], items)  # "d" is in no offer
    prior, duals = a_prior(items, kind), np.array([0.5, -0.5, 1.0, 0.0])
    rows = TiltedRankings(SoftLattice(offers, prior), duals).draw(6000, np.random.default_rng(0))
    found = Counter(tuple(row) for row in rows.tolist())
    rankings = naive.all_rankings(offers)
    logs = [
        np.log(naive.prior_probability(prior, ranking)) - naive.vertex(offers, ranking) @ duals for ranking in rankings
    ]
    law = np.exp(logs) / np.exp(logs).sum()
    shares = np.array([found[tuple(ranking)] / 6000 for ranking in rankings])
    assert np.abs(shares - law).max() < 4.5 * np.sqrt(law.max() / 6000)
    chi_square = 6000 * ((shares - law) ** 2 / law).sum()
    assert chi_square < 60.0  # 23 degrees of freedom


@pytest.mark.parametrize("kind", ["classes", "chain", "mixed"])
def test_completion_changes_no_vertex(kind: str) -> None:
    market = simulate.market(1, n_items=7, n_offers=10, n_test=5)
    fit = estimate(market.assortments, market.frequencies(), method=PrimalDual(tolerance_mae=5e-3))
    guided = redraw(fit.model, market.assortments, a_prior(market.assortments.items, kind), draws=3)
    assert len(guided.weights) <= 3 * len(fit.model.weights)
    before, after = fit.model.probabilities(market.assortments), guided.probabilities(market.assortments)
    assert after == pytest.approx(before, abs=1e-12)
    vertices = {market.assortments.vertex(order).tobytes() for order in fit.model.orders}
    assert {market.assortments.vertex(order).tobytes() for order in guided.orders} == vertices


def test_a_good_guide_predicts_better() -> None:
    errors = []
    for seed in range(3):
        market = simulate.market(seed, n_offers=20, unseen=True)
        fit = estimate(market.assortments, market.frequencies(), method="primal-dual")
        truth = market.truth.probabilities(market.test)
        guide = laws.plackett_luce(market.truth.items, market.truth.utilities, market.truth.mixture)
        models = (fit.model, redraw(fit.model, market.assortments, guide))
        errors.append([np.abs(model.probabilities(market.test) - truth).mean() for model in models])
    plain, guided = np.mean(errors, axis=0)
    assert guided < 0.8 * plain


def test_items_must_be_the_same() -> None:
    offers = Assortments([("tea", "pie")])
    model = RankingModel(["pie", "tea"], [("pie", "tea")], [1.0])
    with pytest.raises(ValueError, match="the same items"):
        redraw(model, offers, laws.plackett_luce(offers.items, [1.0, 1.0]))
