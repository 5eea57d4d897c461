"""Fewer rankings for nearly the same choices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

import strategies
from rankstream import Assortments, RankingModel, plots
from rankstream.columns import corrective
from rankstream.data import simulate
from rankstream.models import sparse


def random_model(offers: Assortments, size: int, seed: int) -> RankingModel:
    generator = np.random.default_rng(seed)
    orders = [generator.permutation(offers.n_items) for _ in range(size)]
    return RankingModel.from_codes(offers.items, orders, generator.dirichlet(np.ones(size)))


@settings(max_examples=40, deadline=None)
@given(offers=strategies.assortments(6, 8), size=st.integers(1, 25), seed=st.integers(0, 10**6))
def test_frontier_falls_to_the_whole_model(offers: Assortments, size: int, seed: int) -> None:
    model = random_model(offers, size, seed)
    found = model.frontier(offers)
    assert np.all(np.diff(found.sizes) > 0)
    assert np.all(np.diff(found.errors) < 0)
    assert found.errors[-1] <= 1e-9
    truth = model.probabilities(offers)
    for n, error, orders, weights in zip(found.sizes, found.errors, found.orders, found.weights, strict=True):
        assert len(orders) == n == len(weights) <= size
        assert {tuple(order) for order in orders.tolist()} <= {tuple(order) for order in model.orders.tolist()}
        smaller = RankingModel.from_codes(model.items, orders, weights)
        assert np.abs(smaller.probabilities(offers) - truth).mean() == pytest.approx(error, abs=1e-12)


def test_sparsify_keeps_its_promises() -> None:
    market = simulate.market(seed=1, n_items=6, n_test=5, n_offers=12)
    offers = market.assortments
    model = random_model(offers, 60, seed=2)
    truth = model.probabilities(offers)

    def error(smaller: RankingModel) -> float:
        return float(np.abs(smaller.probabilities(offers) - truth).mean())

    within = [model.sparsify(tolerance, assortments=offers) for tolerance in (0.1, 0.03, 0.01, 0.001)]
    assert all(error(one) <= tolerance for one, tolerance in zip(within, (0.1, 0.03, 0.01, 0.001), strict=True))
    sizes = [len(one.weights) for one in within]
    assert sizes == sorted(sizes)
    for most in (1, 4, 9):
        few = model.sparsify(max_rankings=most, assortments=offers)
        heaviest = np.argsort(-model.weights)[:most]
        share = model.weights[heaviest] / model.weights[heaviest].sum()
        cut = RankingModel.from_codes(model.items, model.orders[heaviest], share)
        assert len(few.weights) <= most
        assert error(few) <= error(cut)
        assert np.all(np.diff(few.weights) <= 0)
    both = model.sparsify(1e-6, 5, offers)
    assert len(both.weights) <= 5
    assert both == model.sparsify(max_rankings=5, tolerance=0.0, assortments=offers)


def test_without_offers_small_ones_count() -> None:
    model = random_model(Assortments([("a", "b", "c", "d")]), 30, seed=3)
    small = model.sparsify(0.02)
    offers = sparse.small_offers(model.items)
    assert offers.n_offers == 6 + 4 + 1
    assert np.abs(small.probabilities(offers) - model.probabilities(offers)).mean() <= 0.02
    assert len(small.weights) < 30
    assert sparse.small_offers(("a", "b")).offers == (("a", "b"),)
    assert sparse.small_offers(("a",)).offers == (("a",),)
    assert {len(offer) for offer in sparse.small_offers(tuple(range(30))).offers} == {2, 30}
    assert RankingModel("a", ["a"], [1.0]).sparsify(max_rankings=3).weights.tolist() == [1.0]


def test_offers_may_name_items_in_another_order() -> None:
    model = random_model(Assortments([("a", "b", "c", "d")]), 20, seed=4)
    offers = Assortments([("d", "b"), ("c", "a", "d"), ("b", "c")])
    small = model.sparsify(0.01, assortments=offers)
    assert np.abs(small.probabilities(offers) - model.probabilities(offers)).mean() <= 0.01
    with pytest.raises(ValueError, match="'e'"):
        model.sparsify(0.01, assortments=Assortments([("a", "e")]))


def test_no_choice_is_kept_and_limits_are_checked() -> None:
    market = simulate.market(seed=5, n_items=5, n_test=5, n_offers=8)
    model = corrective.fit_nearest(market.assortments, market.frequencies()).model
    assert model.sparsify(0.05).no_choice_code == model.no_choice_code == 5
    with pytest.raises(ValueError, match="Set the size"):
        model.sparsify()
    with pytest.raises(ValueError, match="max_rankings is 0"):
        model.sparsify(max_rankings=0)
    with pytest.raises(ValueError, match="tolerance is -1"):
        model.sparsify(-1.0)


def test_frontier_prints_and_draws() -> None:
    model = RankingModel("ab", ["ab", "ba"], [0.75, 0.25])
    found = model.frontier()
    assert str(found) == "rankings  error\n       1  2.50e-01\n       2  0.00e+00"
    axes = plots.frontier(model.frontier(), Figure().subplots())
    assert axes.get_xlabel() == "rankings"
    assert axes.get_lines()[0].get_xdata().tolist() == [1, 2]  # type: ignore[union-attr]
