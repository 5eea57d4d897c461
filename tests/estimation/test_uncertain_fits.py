"""EM over the sets that may have been on offer: posteriors by enumeration, known offers, and when items sold out."""

from itertools import product
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import rankstream as rs
from rankstream.data.uncertain import Period, UncertainCounts
from rankstream.estimation import uncertain
from rankstream.estimation.uncertain import PossibleOffers
from strategies import examples

ITEMS = ("tea", "pie", "cake", "no")


def random_model(seed: int) -> rs.RankingModel:
    random = np.random.default_rng(seed)
    rankings = [tuple(ITEMS[k] for k in random.permutation(4)) for _ in range(6)]
    return rs.RankingModel(ITEMS, list(dict.fromkeys(rankings)), random.dirichlet(np.ones(len(set(rankings)))))


def exit_weights(period: Period, item: Any) -> dict[int, float]:
    """How likely an item is to leave before each slot (or after the last), up to a factor, whatever was chosen."""
    sizes = [sum(slot.chosen.values()) for slot in period.slots]
    first = sum(item in slot.smallest for slot in period.slots)
    weights = dict.fromkeys(range(first, len(sizes) + 1), 0.0)
    for number in range(first, len(sizes)):  # half of the customers of a slot count for each of its ends
        weights[number] += sizes[number] / 2
        weights[number + 1] += sizes[number] / 2
    return weights


def slow_posterior(period: Period, model: rs.RankingModel) -> tuple[dict[tuple[int, frozenset[Any]], float], float]:
    """Each slot's sets with their probabilities: all ways to leave, one by one; and the likelihood."""
    items = period.doubtful
    weights = [exit_weights(period, item) for item in items]
    found: dict[tuple[int, frozenset[Any]], float] = {}
    total = 0.0
    for exits in product(*weights):
        chance = float(
            np.prod([weight[end] / sum(weight.values()) for weight, end in zip(weights, exits, strict=True)])
        )
        offers = []
        for number, slot in enumerate(period.slots):
            gone = {item for item, end in zip(items, exits, strict=True) if end <= number}
            offers.append(frozenset(period.largest) - gone)
            shares = model.predict([item for item in ITEMS if item in offers[-1]])
            chance *= float(np.prod([max(shares[item], 1e-9) ** count for item, count in slot.chosen.items()]))
        total += chance
        for key in enumerate(offers):
            found[key] = found.get(key, 0.0) + chance
    return {key: value / total for key, value in found.items()}, total


slots = st.lists(
    st.dictionaries(st.sampled_from(ITEMS), st.integers(1, 2), min_size=1, max_size=3), min_size=1, max_size=4
)


@examples(40)
@given(slots, st.sets(st.sampled_from(ITEMS[:3])), st.integers(0, 99))
def test_the_posterior_is_that_of_all_ways_to_leave(chosen: Any, doubtful: set[str], seed: int) -> None:
    counts, model = UncertainCounts(ITEMS), random_model(seed)
    counts.observe_period(set(ITEMS) - doubtful, ITEMS, chosen)
    possible = PossibleOffers(counts)
    weights, log_likelihood = possible.weigh(model)
    expected, likelihood = slow_posterior(counts.periods[0], model)
    assert log_likelihood == pytest.approx(np.log(likelihood))
    [chain] = possible.chains
    found: dict[tuple[int, frozenset[Any]], float] = {}
    for slot, row in enumerate(chain.rows):
        for state, number in enumerate(row):
            if number >= 0:
                gone = {item for bit, item in enumerate(chain.items) if not state >> bit & 1}
                found[slot, frozenset(ITEMS) - gone] = weights[number]
    for key in expected.keys() | found.keys():
        assert found.get(key, 0.0) == pytest.approx(expected.get(key, 0.0), abs=1e-9)
    for out in possible.sell_outs(model, 0.9):
        bit = chain.items.index(out.item)
        present = [sum(weights[n] for s, n in enumerate(row) if n >= 0 and s >> bit & 1) for row in chain.rows]
        assert out.expected == pytest.approx(sum(present))  # slots last 1, so time is the number of slots with it
        assert out.earliest <= out.expected + 1e-9
        assert out.latest <= len(chosen)


def test_slots_without_choices_tell_nothing() -> None:
    dense, sparse = UncertainCounts(ITEMS), UncertainCounts(ITEMS)
    dense.observe_period(["no"], ITEMS, [{"tea": 1}, {"no": 3}, {"no": 2}])
    sparse.observe_period(["no"], ITEMS, [{}, {"tea": 1}, {}, {"no": 3}, {"no": 2}, {}])
    sparse.observe_period(["no"], ITEMS, [{}])
    model = random_model(3)
    assert PossibleOffers(dense).weigh(model)[1] == pytest.approx(PossibleOffers(sparse).weigh(model)[1])


def test_the_expected_counts_begin_with_the_largest_sets_and_lose_no_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = UncertainCounts(ITEMS)
    counts.observe_period(["no"], ITEMS, [{"tea": 5, "no": 2}, {"pie": 3}, {"no": 9}])
    counts.observe(["no"], ["tea", "no"], "no", 4)
    possible = PossibleOffers(counts)
    assert possible.expected(possible.weigh(None)[0]).digest() == counts.naive_counts().digest()
    monkeypatch.setattr(uncertain, "KEPT_SHARE", 1.0)
    weights, _ = possible.weigh(random_model(0))
    assert possible.expected(weights).observations == pytest.approx(counts.observations)


def test_more_doubtful_items_than_can_be_weighed_count_as_on_offer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uncertain, "MAX_DOUBTFUL_ITEMS", 1)
    counts = UncertainCounts(ITEMS)
    counts.observe_period(["no"], ITEMS, [{"tea": 5, "pie": 1, "no": 2}, {"no": 4}])
    possible = PossibleOffers(counts)
    assert [chain.items for chain in possible.chains] == [["tea"]]
    assert set(map(frozenset, possible.assortments.offers)) == {frozenset(ITEMS), frozenset(["pie", "cake", "no"])}


def simulated(days: int, seed: int) -> tuple[UncertainCounts, rs.ChoiceCounts, rs.RankingModel]:
    """A shelf of three items, of which two leave at a random customer each day; and the same with known offers."""
    random, model = np.random.default_rng(seed), rs.RankingModel(
        ITEMS, [("tea", "pie", "no", "cake"), ("pie", "no", "tea", "cake"), ("cake", "tea", "pie", "no"),
                ("no", "tea", "pie", "cake")], [0.4, 0.2, 0.2, 0.2], no_choice_code=3
    )  # fmt: skip
    seen, known = UncertainCounts(ITEMS), []
    for _ in range(days):
        ends = dict(zip(random.permutation(ITEMS[:3])[:2].tolist(), random.integers(0, 41, 2).tolist(), strict=True))
        chosen = []
        for customer in range(40):
            offer = tuple(item for item in ITEMS if ends.get(item, 40) > customer)
            chosen.append(model.sample(offer, 1, random)[0])
            known.append((offer, chosen[-1]))
        seen.observe_period(set(ITEMS) - ends.keys(), ITEMS, [{item: 1} for item in chosen])
    counts = rs.ChoiceCounts(rs.Assortments({offer for offer, _ in known}, ITEMS))
    counts.observe([offer for offer, _ in known], [item for _, item in known])
    return seen, counts, model


@pytest.mark.parametrize("method", [pytest.param("auto", marks=pytest.mark.slow), "mnl"])
def test_em_comes_nearer_to_the_fit_that_knows_the_offers_than_the_naive_fit(method: str) -> None:
    seen, counts, _ = simulated(40, 5)
    offers = rs.Assortments([offer for n in range(2, 5) for offer in [ITEMS[-n:], (*ITEMS[: n - 1], "no")]], ITEMS)
    known, naive, found = (
        rs.estimate(data, method=method).model.probabilities(offers) for data in (counts, seen.naive_counts(), seen)
    )
    assert np.abs(found - known).max() < 0.5 * np.abs(naive - known).max()


def test_the_estimate_is_an_ordinary_one() -> None:
    seen, _, _ = simulated(10, 6)
    fit = rs.estimate(seen, method="mnl", smoothing=0.1)
    assert (fit.method.name, fit.method.smoothing) == ("mnl", 0.1)
    assert fit.model.items == ITEMS
    with pytest.raises(ValueError, match="give the counts alone"):
        rs.estimate(seen, [1.0])
    with pytest.raises(ValueError, match="no observations yet"):
        rs.estimate(UncertainCounts())


def test_times_of_sell_outs_cover_the_truth_about_as_often_as_promised() -> None:
    random = np.random.default_rng(7)
    _, _, model = simulated(1, 0)
    hits = []
    for day in range(150):
        end, counts = int(random.integers(0, 31)), UncertainCounts(ITEMS)
        offers = [ITEMS if customer < end else ITEMS[1:] for customer in range(30)]
        counts.observe_period(ITEMS[1:], ITEMS, [{model.sample(offer, 1, random)[0]: 1} for offer in offers], place=day)
        for found in rs.availability(counts, model, 0.8):  # none if tea was sold last
            assert (found.place, found.item) == (day, "tea")
            hits.append(found.earliest <= end <= found.latest)
    assert 0.8 <= np.mean(hits) <= 0.95


def test_a_bad_confidence_is_refused() -> None:
    seen, _, model = simulated(1, 1)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        rs.availability(seen, model, 1.0)
