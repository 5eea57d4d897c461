"""Fits, ranges and tests of rationality that keep an order, against all rankings that do; growth, files and methods."""

from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls

import naive_prices
import strategies
from rankstream import (
    Assortments,
    Bootstrap,
    ChoiceCounts,
    PriceLevels,
    Solver,
    certificate,
    distances,
    estimate,
    learners,
    load_model,
    methods,
    oracles,
    probability_range,
    rationality,
)
from rankstream._core.types import Vec
from rankstream.columns.corrective import fit_nearest
from rankstream.columns.data import observe
from rankstream.columns.mle import fit_mle
from rankstream.models.rankings import RankingModel
from rankstream.oracles import Ties
from rankstream.streams.files import checkpoint
from rankstream.streams.runs.growth import grow

LEVELS = PriceLevels({"tea": [3, 4], "pie": [2, 3]})
OFFERS = [LEVELS.offer({"tea": tea, "pie": pie, "no": None}) for tea in (3, 4) for pie in (2, 3)]
PRICED = Assortments(OFFERS, order=LEVELS.order)
COUNTS = ChoiceCounts(PRICED, [40, 35, 25, 45, 20, 35, 30, 45, 25, 30, 20, 50])


def keeps(offers: Assortments, model: RankingModel) -> bool:
    assert model.items == offers.items
    return not offers.order or bool(offers.precedence.respects(model.orders).all())


def least_linear(corners: Vec, aim: Vec, norm: str, gains: Vec | None = None, radius: float = 0.0) -> float:
    """The least distance from the aim of a mixture of corners; or its least gain within a radius in l1."""
    size, count = aim.size, len(corners)
    slack = np.eye(size) if norm == "l1" else np.ones((size, 1))
    rows = [np.hstack([corners.T, -slack]), np.hstack([-corners.T, -slack])]
    right, price = [aim, -aim], np.append(np.zeros(count), np.ones(slack.shape[1]))
    if gains is not None:
        rows, right = [*rows, price[np.newaxis]], [*right, np.array([radius])]
        price = np.append(gains, np.zeros(size))
    whole = np.append(np.ones(count), np.zeros(slack.shape[1]))
    found = linprog(price, np.vstack(rows), np.concatenate(right), whole[np.newaxis], [1.0])
    return float(found.fun)


@settings(max_examples=15)
@given(naive_prices.ordered(most_items=5), st.data())
def test_nearest_models_equal_those_of_all_rankings(offers: Assortments, data: st.DataObject) -> None:
    aim = data.draw(strategies.frequencies(offers))
    corners = naive_prices.all_vertices(offers)
    system = np.vstack([corners.T, 1e4 * np.ones(len(corners))])
    weights, _ = nnls(system, np.append(aim, 1e4), maxiter=100 * len(corners))
    nearest = float(np.linalg.norm(weights @ corners / weights.sum() - aim))
    least = {"l1": least_linear(corners, aim, "l1"), "linf": least_linear(corners, aim, "linf"), "l2": nearest}
    for norm, expected in least.items():
        found = fit_nearest(offers, aim, norm, tolerance=1e-8)
        assert keeps(offers, found.model)
        assert found.certificate.upper == pytest.approx(expected, abs=2e-5)
        assert found.certificate.lower <= expected + 1e-6
    assert certificate.Proof(offers, aim).advance(rounds=5) <= nearest + 1e-6
    item = offers.items[0]
    free = Assortments([*offers.offers, offers.items], offers.items, offers.order)
    gains = naive_prices.all_vertices(free)[:, free.indptr[-2]]
    radius = least["l1"] + 0.1
    low, high = (sign * least_linear(corners, aim, "l1", sign * gains, radius) for sign in (1.0, -1.0))
    span = probability_range(aim, offers.items, item, radius, assortments=offers)
    assert (span.low, span.high) == pytest.approx((low, high), abs=1e-5)
    assert all(keeps(offers, model) for model in (span.model, span.worst, span.best))


@settings(max_examples=10)
@given(naive_prices.ordered(most_items=5), st.data())
def test_likeliest_models_equal_those_of_all_rankings(offers: Assortments, data: st.DataObject) -> None:
    size = offers.n_coordinates
    tallies = np.array(data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)), dtype=np.float64)
    tallies[offers.indptr[:-1]] += 1.0
    counts = ChoiceCounts(offers, tallies)
    if observe(counts).impossible.size:
        with pytest.raises(ValueError, match="contradicts the order"):
            fit_mle(counts)
        report = rationality(counts, samples=0)
        assert report.anytime_p_value == 0.0
        assert report.divergence == (np.inf, np.inf)
        assert keeps(offers, report.model)
        return
    corners = naive_prices.all_vertices(offers)
    weights = np.full(len(corners), 1.0 / len(corners))
    for _ in range(2000):  # EM over all rankings
        weights *= (
            corners @ np.where(tallies > 0.0, tallies / np.maximum(weights @ corners, 1e-300), 0.0) / tallies.sum()
        )
    seen = tallies > 0.0
    likely = float(tallies[seen] @ np.log((weights @ corners)[seen]))
    found = fit_mle(counts, tolerance=1e-6)
    assert keeps(offers, found.model)
    assert likely - 1e-3 <= found.log_likelihood <= likely + 0.05
    report = rationality(counts, samples=3)
    assert keeps(offers, report.model)
    assert report.lower <= report.upper
    settings = methods.PrimalDual(distance="squared-l2", learner="follow-the-leader", gap=1e-4, max_rounds=30)
    fit = estimate(counts, method=settings)
    assert keeps(offers, fit.model)
    assert 2.0 * fit.certificate.lower / offers.n_offers <= report.upper + 1e-9


def test_demand_that_rises_with_the_price_is_refuted_only_with_the_order() -> None:
    rising = ChoiceCounts(PRICED, [100, 500, 400, 100, 500, 400, 500, 300, 200, 500, 300, 200])
    free = ChoiceCounts(Assortments(PRICED.offers, PRICED.items), rising.tallies)
    assert rationality(rising, samples=20).p_value == pytest.approx(1 / 21)
    assert rationality(rising, samples=0).anytime_p_value < 1e-6
    said = repr(rationality(rising, samples=20))
    assert said.startswith("Rationality(no ranking model explains these choices: p = 0.0476, anytime p = ")
    assert rationality(free, samples=0).upper < rationality(rising, samples=0).lower
    found = rationality(COUNTS, samples=20)
    assert (found.p_value or 0.0) > 0.05
    assert found.verdict == "a ranking model can explain these choices"


@pytest.mark.parametrize("method", ["nearest", "mle", methods.PrimalDual(max_rounds=60)])
def test_methods_keep_the_order(method: str | methods.Method) -> None:
    found = estimate(COUNTS, method=method)
    assert keeps(PRICED, found.model)
    assert found.certificate.lower <= found.certificate.upper
    shares = [found.model.predict(offer) for offer in OFFERS]
    assert shares[2]["tea @ 4.00"] <= shares[0]["tea @ 3.00"]


def test_auto_keeps_orders_that_are_not_made_of_chains() -> None:
    general = Assortments(PRICED.offers, PRICED.items, [*PRICED.order, ("tea @ 3.00", "pie @ 3.00")])
    assert general.chains is None
    with pytest.warns(UserWarning, match="^20 of 400 choices contradict the order"):
        found = estimate(ChoiceCounts(general, COUNTS.tallies))
    assert isinstance(found.model, RankingModel)
    assert keeps(general, found.model)


@pytest.mark.parametrize("method", ["mnl", "latent-class", "markov-chain"])
def test_methods_that_know_no_order_refuse_one(method: str) -> None:
    with pytest.raises(
        ValueError, match=r"does not support an order of the items, such as 'tea @ 3.00' before 'tea @ 4.00': use .*\.$"
    ):
        estimate(COUNTS, method=method)


def test_rankings_that_do_not_keep_the_order_are_refused() -> None:
    own = oracles.LatticeOracle(Assortments(PRICED.offers, PRICED.items), "first")
    with pytest.raises(ValueError, match=r"violates the order: use an oracle that keeps it \(oracles\.auto\)\.$"):
        fit_mle(COUNTS, oracle=lambda _: own)
    search = oracles.SearchOracle(PRICED)
    with pytest.raises(ValueError, match="violates the order"):
        search.remember({**search.memory(), "pool": np.arange(PRICED.n_items)[np.newaxis, ::-1]})


def test_resampled_models_and_segments_and_substitution_keep_the_order() -> None:
    model = estimate(COUNTS, method="nearest").model
    again = cast(list[RankingModel], Bootstrap(COUNTS, method="nearest", replicates=3, seed=1).models)
    assert all(keeps(PRICED, one) for one in again)
    for segment in model.segments(offer=model.items):
        wanted = [PRICED.code(item) for item in segment.ranking]
        assert not [pair for pair in PRICED.precedence.pairs.tolist() if pair[1] in wanted and pair[0] not in wanted]
    moves = model.substitution(OFFERS[0], gone=["tea @ 3.00"])
    assert keeps(PRICED, model.sparsify(max_rankings=2, assortments=PRICED))
    assert moves.shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("ties", ["first", "last", "random"])
def test_runs_grow_by_new_levels(ties: Ties) -> None:
    solver = Solver(PRICED, distances.L2(PRICED), learners.DualAveraging(), oracles.auto(PRICED, ties, 1))
    state = solver.init()
    for _ in range(20):
        state = solver.step(state, COUNTS.frequencies())
    wider = PriceLevels({"tea": [3, 3.5, 4, 5], "pie": [2, 3]})
    larger = PRICED.extend([wider.offer({"tea": tea, "pie": 2, "no": None}) for tea in (3.5, 5)], order=wider.order)
    grown, after = grow(solver, state, larger)
    model = grown.model(after)
    assert keeps(larger, model)
    assert model.probabilities(PRICED) == pytest.approx(solver.model(state).probabilities(PRICED))
    after = grown.step(after, np.append(COUNTS.frequencies(), [0.4, 0.3, 0.3, 0.2, 0.4, 0.4]))
    assert keeps(larger, grown.model(after))
    turned = PRICED.extend([("tart", "no")], order=[("tea @ 4.00", "pie @ 2.00")])
    with pytest.raises(ValueError, match=r"^The order of the old items has changed: add pairs of new items only"):
        grow(solver, state, turned)


@pytest.mark.parametrize("kind", [oracles.LatticeOracle, oracles.ChainOracle, oracles.SearchOracle])
def test_checkpoints_and_model_files_carry_the_order(kind: type[oracles.ChainOracle], tmp_path: Path) -> None:
    solver = Solver(PRICED, distances.L2(PRICED), learners.DualAveraging(), kind(PRICED, "random", 3))
    state = solver.init()
    for _ in range(5):
        state = solver.step(state, COUNTS.frequencies())
    checkpoint.save(tmp_path / "run.npz", solver, state, COUNTS)
    again, known, counts = checkpoint.load(tmp_path / "run.npz")
    assert again.assortments == PRICED
    assert counts is not None
    assert counts.assortments == PRICED
    one, other = (run.step(at, COUNTS.frequencies()) for run, at in ((solver, state), (again, known)))
    assert solver.model(one) == again.model(other)
    model = solver.model(one).note(prices=LEVELS.to_content())
    model.save(tmp_path / "model.json")
    read = load_model(tmp_path / "model.json")
    assert read == model
    assert PriceLevels.from_content(read.about["prices"]) == LEVELS
    assert PriceLevels.from_labels(read.items) == LEVELS
