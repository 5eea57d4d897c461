from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog

import naive
import rankstream as rs
import strategies
from odd_data import odd_data
from rankstream._core.types import Vec
from rankstream.columns.plausible import probability_range, revenue_range
from rankstream.data import simulate
from revenue_approximations import revenue_by_relaxation, revenue_by_sampling

SLACK = 1e-5


def ends(offers: rs.Assortments, p: Vec, target: rs.Assortments, gains: Vec, radius: float, norm: str) -> list[float]:
    """Low and high by one linear program over all rankings."""
    corners = np.hstack((naive.all_vertices(offers), naive.all_vertices(target)))
    corners = np.unique(corners, axis=0)
    seen, earned, k, size = corners[:, : p.size], corners[:, p.size :] @ gains, len(corners), p.size
    spent = np.ones((1, size)) if norm == "l1" else np.eye(size)
    at_most = np.vstack(
        (
            np.hstack((seen.T, -np.eye(size))),
            np.hstack((-seen.T, -np.eye(size))),
            np.hstack((np.zeros((len(spent), k)), spent)),
        )
    )
    right = np.concatenate((p, -p, np.full(len(spent), radius)))
    sums = np.concatenate((np.ones(k), np.zeros(size)))[None, :]
    found = []
    for sign in (1.0, -1.0):
        costs = np.concatenate((sign * earned, np.zeros(size)))
        found.append(sign * float(linprog(costs, at_most, right, sums, [1.0]).fun))
    return found


@st.composite
def questions(draw: st.DrawFn) -> tuple[rs.Assortments, Vec, tuple[Any, ...], dict[Any, float], float]:
    offers = draw(strategies.assortments(most_items=5, most_offers=5))
    p = draw(strategies.frequencies(offers))
    offer = tuple(draw(st.sets(st.sampled_from(offers.items), min_size=1)))
    prices = {item: draw(st.integers(-2, 9)) / 2 for item in offers.items}
    return offers, p, offer, prices, draw(st.sampled_from([0.0, 0.01, 0.3]))


def brings(model: rs.RankingModel, offer: tuple[Any, ...], prices: dict[Any, float]) -> float:
    return sum(share * prices[item] for item, share in model.predict(offer, forced=True).items())


@given(questions(), st.sampled_from(["l1", "linf"]))
@settings(max_examples=60)
def test_agrees_with_one_program_over_all_rankings(
    question: tuple[rs.Assortments, Vec, tuple[Any, ...], dict[Any, float], float], norm: Any
) -> None:
    offers, p, offer, prices, tolerance = question
    found = revenue_range(p, offer, prices, tolerance, assortments=offers, region=norm)
    gains = np.array([prices[item] for item in offer])
    low, high = ends(offers, p, rs.Assortments([offer], offers.items), gains, found.tolerance + 1e-9, norm)
    assert found.proven
    assert found.low == pytest.approx(low, abs=SLACK)
    assert found.high == pytest.approx(high, abs=SLACK)
    assert found.low - SLACK <= found.predicted <= found.high + SLACK
    assert found.feasible == (found.tolerance == tolerance)
    for end, model in ((found.low, found.worst), (found.high, found.best)):
        assert brings(model, offer, prices) == pytest.approx(end, abs=1e-6 * max(1.0, *map(abs, gains)) + 1e-9)
        away = np.abs(model.probabilities(offers) - p)
        assert (away.sum() if norm == "l1" else away.max()) <= found.tolerance + 1e-7
    inner = revenue_by_sampling(p, offer, prices, found.tolerance, assortments=offers, norm=norm, samples=200)
    outer = revenue_by_relaxation(p, offer, prices, found.tolerance, assortments=offers, norm=norm)
    if inner[2] <= found.tolerance + 1e-8:
        assert found.low - SLACK <= inner[0] <= inner[1] <= found.high + SLACK
    assert outer[0] - SLACK <= found.low <= found.high <= outer[1] + SLACK


def test_infeasible_data_get_the_smallest_tolerance() -> None:
    offers = rs.Assortments([("tea", "pie"), ("tea", "pie", "nothing")])
    p = [0.4, 0.6, 0.5, 0.2, 0.3]
    found = probability_range(p, ("tea", "nothing"), "tea", assortments=offers)
    assert not found.feasible
    assert found.proven
    assert found.tolerance == pytest.approx(0.2, abs=1e-6)
    assert 0.0 <= found.low <= found.high <= 1.0


def test_an_offer_of_the_data_leaves_nothing_open() -> None:
    market = simulate.market(seed=0, n_items=6, n_offers=10, n_test=1)
    offers, p = market.assortments, market.frequencies()
    prices = {item: float(number) for number, item in enumerate(offers.items)}
    found = revenue_range(p, offers.offers[3], prices, assortments=offers)
    truth = sum(prices[item] * p[offers.coordinate(offers.offers[3], item)] for item in offers.offers[3])
    assert found.low == pytest.approx(truth, abs=1e-4)
    assert found.high == pytest.approx(truth, abs=1e-4)
    assert found.width <= 1e-4
    shown = f"{found.low:.4g} to {found.high:.4g} (sharp), predicted {found.predicted:.4g}"
    assert repr(found) == f"Range({shown}; the model fits the data)"


def test_the_truth_is_in_the_range_and_a_wider_tolerance_widens_it() -> None:
    market = simulate.market(seed=1, n_items=6, n_offers=10, n_test=3)
    offers, p = market.assortments, market.frequencies()
    offer = market.test.offers[0]
    prices = {item: 1.0 + number for number, item in enumerate(offers.items)}
    share = market.truth.probabilities(rs.Assortments([offer], offers.items))
    truth = float(np.array([prices[item] for item in offer]) @ share)
    exact = revenue_range(p, offer, prices, assortments=offers)
    wide = revenue_range(p, offer, prices, 0.1, assortments=offers)
    assert exact.low - SLACK <= truth <= exact.high + SLACK
    assert wide.low <= exact.low + SLACK
    assert exact.high <= wide.high + SLACK


def test_confidence_region_holds_the_truth() -> None:
    market = simulate.market(seed=2, n_items=5, n_offers=8, n_test=2)
    counts = next(market.stream(first=4000))
    offer, item = market.test.offers[0], market.test.offers[0][0]
    found = probability_range(counts, offer, item, region="confidence", confidence=0.9)
    share = market.truth.probabilities(rs.Assortments([offer], counts.assortments.items))[0]
    assert found.feasible
    assert found.proven
    assert found.tolerance == 1.0
    assert found.low <= share <= found.high
    assert found.worst.predict(offer, forced=True)[item] == pytest.approx(found.low, abs=1e-6)
    assert found.best.predict(offer, forced=True)[item] == pytest.approx(found.high, abs=1e-6)
    radii = rs.certificate.confidence_radii(counts, 0.9)
    for model in (found.worst, found.best):
        away = np.abs(model.probabilities(counts.assortments) - counts.frequencies())
        assert (np.add.reduceat(away, counts.assortments.indptr[:-1]) <= radii + 1e-7).all()


@pytest.mark.parametrize("about", odd_data())
@pytest.mark.parametrize("region", ["l1", "linf", "confidence"])
def test_survives_odd_data(about: str, region: Any) -> None:
    counts = odd_data()[about]
    item = counts.assortments.items[0]
    found = probability_range(counts, counts.assortments.items, item, region=region)
    assert found.proven
    assert -SLACK <= found.low <= found.predicted + SLACK <= found.high + 2 * SLACK <= 1.0 + 3 * SLACK


def test_every_item_of_the_offer_needs_a_price() -> None:
    """An item without a price is an oversight, except for no-choice: it used to earn nothing, and nobody was told."""
    offers = rs.Assortments([("tea", "pie", "nothing"), ("tea", "nothing"), ("pie", "nothing")])
    counts = rs.ChoiceCounts(offers, [4, 3, 3, 6, 4, 5, 5])
    menu = ("tea", "pie", "nothing")
    prices: dict[Any, float] = {"tea": 2.0, "pie": 4.0}
    found = revenue_range(counts, menu, prices, 0.5)
    assert found.high == revenue_range(counts, menu, prices | {"nothing": 0.0}, 0.5).high
    assert revenue_range(counts, menu, prices | {"nothing": 1.0}, 0.5).high > found.high  # a price of its own counts
    for missing in ("tea", "pie"):
        fewer = {item: price for item, price in prices.items() if item != missing}
        with pytest.raises(
            ValueError, match=f"'{missing}' of the offer has no margin: give one, 0 if it earns nothing"
        ):
            revenue_range(counts, menu, fewer, 0.5)
        zero = revenue_range(counts, menu, fewer | {missing: 0.0}, 0.5)
        assert zero.high < found.high
    assert revenue_range(counts, ("tea", "nothing"), {"tea": 2.0}, 0.5).proven  # pie is not in it
    two = rs.ChoiceCounts(rs.Assortments([("tea", "pie"), ("tea", "nothing"), ("pie", "nothing")]), [1, 1, 1, 1, 1, 1])
    with pytest.raises(
        ValueError, match="'nothing' of the offer has no margin"
    ):  # it is not in every offer of the data
        revenue_range(two, menu, prices)


def test_probabilities_are_ranges_of_a_price_of_1() -> None:
    market = simulate.market(seed=3, n_items=5, n_offers=8, n_test=2)
    counts, offer = next(market.stream(first=500)), market.test.offers[0]
    one = probability_range(counts, offer, offer[1], 0.5)
    same = revenue_range(counts, offer, {item: float(item == offer[1]) for item in offer}, 0.5)
    assert (one.low, one.high, one.predicted) == (same.low, same.high, same.predicted)


@pytest.mark.parametrize("ask", [revenue_range, probability_range])
def test_weighted_choices_have_no_confidence_region(ask: Any) -> None:
    offers = rs.Assortments([("a", "b"), ("b", "c")])
    decaying = rs.DecayingCounts(offers, 100)
    decaying.observe_coordinates([0, 1, 2, 3], [4, 3, 2, 1])
    about = ("a",) if ask is probability_range else ({"a": 1.0, "b": 2.0},)
    for counts in (rs.ChoiceCounts(offers, [4.5, 3, 2, 1]), decaying):
        with pytest.raises(ValueError, match="A confidence region needs whole choices, each counted once"):
            ask(counts, ("a", "b"), *about, region="confidence")
        assert ask(counts, ("a", "b"), *about, 0.1).proven  # a tolerance of the caller's own needs no sampling


def test_refusals() -> None:
    counts = rs.ChoiceCounts(rs.Assortments([("a", "b")]), [1, 2])
    with pytest.raises(ValueError, match="Unknown item 'c'"):
        revenue_range(counts, ("a", "c"), {"a": 1.0, "c": 1.0})
    with pytest.raises(ValueError, match="not in the offer"):
        probability_range(counts, ("a",), "b")
    with pytest.raises(ValueError, match="finite number"):
        revenue_range(counts, ("a",), {"a": np.inf})
    with pytest.raises(ValueError, match="no confidence region"):
        revenue_range([0.5, 0.5], ("a",), {"a": 1.0}, assortments=counts.assortments, region="confidence")
