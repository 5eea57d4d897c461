"""Streams with prices: records on levels, the order in both models, files that resume, and what is refused."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import naive_prices
import rankstream as rs
import strategies
from priced_stream import LEVELS, choices, in_batches, records
from rankstream import Assortments, Live, PriceLevels, Record
from rankstream.models.entropy import ensemble
from rankstream.models.entropy.ensemble import fit_stack
from rankstream.models.entropy.guides import PRICED, UNIFORM
from rankstream.oracles import QuickOracle, Ties
from rankstream.streams import entropy_follower as served
from rankstream.streams import pace
from rankstream.streams.background import BackgroundLive, refreshed
from rankstream.streams.runs.growth import drop_offers

KINDS: dict[str, dict[str, Any]] = {
    "all": {},
    "half-life": {"half_life": 80.0},
    "window": {"window": 90},
    "detector": {"detect": True, "threshold": 4.0, "rounds": 8},
}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three guides, and none that an order adds: what is tested is not how well they predict."""
    monkeypatch.setattr(ensemble, "guides_for", lambda _, guides: guides)
    monkeypatch.setattr(served, "fit_stack", lambda data, seed, **_: fit_stack(data, (*PRICED[:2], UNIFORM), seed))


def keeps_the_order(live: Live) -> bool:
    assert live.counts is not None
    return bool(live.counts.assortments.precedence.respects(live.sparse.orders).all())


def offers_below(live: Live) -> Iterator[tuple[float, float]]:
    """The share of tea at each level and at the next dearer one, beside every price of cake."""
    for cake in LEVELS["cake"]:
        curve = live.model.demand("tea", {"cake": cake, "nothing": None})
        yield from pairwise(curve.values())


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", KINDS)
def test_both_models_keep_the_order_of_prices_and_answer_at_prices(kind: str) -> None:
    live = in_batches(Live(prices=LEVELS, **KINDS[kind]), records(160), 40)
    assert live.counts is not None
    assert live.counts.assortments.order == PriceLevels(LEVELS).order
    assert live.serves == "max-entropy"
    assert keeps_the_order(live)
    assert all(dearer <= cheaper + 1e-12 for cheaper, dearer in offers_below(live))
    assert live.model.price_levels == PriceLevels(LEVELS) == live.prices
    assert live.certificate.lower <= live.certificate.upper
    sparse = in_batches(Live(prices=LEVELS, publish="sparse", **KINDS[kind]), records(160), 40)
    assert sparse.serves == "sparse"
    assert all(dearer <= cheaper + 1e-12 for cheaper, dearer in offers_below(sparse))
    assert sum(sparse.model.predict({"tea": 3.2, "pie": None, "nothing": None}).values()) == pytest.approx(1.0)


def test_counts_are_those_of_the_file_readers(tmp_path: Path) -> None:
    path = tmp_path / "shop.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in choices(200)))
    live = in_batches(Live(prices=LEVELS, publish="sparse"), records(200), 7)
    assert live.counts is not None
    read = rs.read(path, prices="offered", price_levels=PriceLevels(LEVELS)).counts
    assert live.counts.digest() == read.digest()
    assert set(live.counts.assortments.items) == set(read.assortments.items)
    assert live.counts.assortments.offers != read.assortments.offers  # they are in the order in which they came


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", KINDS)
def test_a_priced_stream_is_resumed_bit_for_bit(kind: str, tmp_path: Path) -> None:
    every, path = records(160, 3), tmp_path / "state.npz"
    whole = in_batches(Live(prices=LEVELS, **KINDS[kind]), every, 30)
    begun = in_batches(Live(prices=LEVELS, **KINDS[kind]), every[:90], 30)
    begun.save(path)
    resumed = Live.load(path)
    assert resumed.prices == begun.prices
    resumed = in_batches(resumed, every[90:], 30)
    assert resumed.model.to_text() == whole.model.to_text()
    assert resumed.sparse == whole.sparse
    assert resumed.certificate == whole.certificate


@pytest.mark.parametrize("kind", KINDS)
def test_a_priced_market_that_outgrows_its_programs_keeps_the_order(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in {
        "SMALL_COORDINATES": 0,
        "MAX_PROGRAM_COORDINATES": 0,
        "COORDINATES_PER_CHOICE": 3,
        "MAX_COORDINATES": 40,
    }.items():
        monkeypatch.setattr(pace, name, value)
    live = in_batches(Live(prices=LEVELS, publish="sparse", **KINDS[kind]), records(400, 5), 25)
    assert live.run is not None
    assert live.counts is not None
    assert isinstance(live.run.solver.oracle, QuickOracle)
    assert "were dropped" in live.remark
    assert live.counts.assortments.order == PriceLevels(LEVELS).order
    assert keeps_the_order(live)
    live.save(tmp_path / "state.npz")
    resumed = Live.load(tmp_path / "state.npz")
    assert resumed.sparse == live.sparse
    more = records(60, 6)
    assert in_batches(resumed, more, 30).sparse == in_batches(live, more, 30).sparse


def test_a_detector_that_grows_before_its_first_choice_keeps_the_order() -> None:
    levels = PriceLevels({"tea": range(1, 9)})
    detector = rs.ChangeDetector(Assortments([(label, "no") for label in levels.labels], order=levels.order))
    detector.extend([("pie", "no")])
    for counts in (detector.counts, detector.recent):
        assert counts.assortments.offers[-1] == ("pie", "no")
        assert counts.assortments.order == levels.order


def test_levels_stay_when_their_last_offer_leaves() -> None:
    offers = Assortments(
        [("tea @ 3.00", "no"), ("tea @ 4.00", "no"), ("pie", "no")], order=[("tea @ 3.00", "tea @ 4.00")]
    )
    counts = rs.ChoiceCounts(offers, [9, 1, 0, 1, 8, 2])
    (left,) = drop_offers([], [counts], np.array([0, 2]))
    assert left.assortments.offers == (("tea @ 3.00", "no"), ("pie", "no"))
    assert left.assortments.order == offers.order
    again = left.extend([("tea @ 4.00", "no")]).assortments
    assert again.order == offers.order


@given(naive_prices.ordered(), st.sampled_from(["first", "last", "random"]), st.data())
def test_the_quick_search_keeps_an_order(offers: Assortments, ties: Ties, data: st.DataObject) -> None:
    costs = data.draw(strategies.costs(offers.n_coordinates))
    oracle, room = QuickOracle(offers, ties, seed=3), naive_prices.room(costs)
    least = min(float(vertex @ costs) for vertex in naive_prices.all_vertices(offers))
    for _ in range(3):
        answer = oracle.cheapest(costs)
        assert answer.ranking.tolist() in naive_prices.all_rankings(offers)
        assert answer.value == pytest.approx(float(naive.vertex(offers, answer.ranking.tolist()) @ costs), abs=room)
        assert answer.bound <= least + room
        assert least <= answer.value + room
        oracle.follow()


@given(naive_prices.ordered(), st.integers(0, 3))
def test_assortments_that_grow_keep_their_order(offers: Assortments, more: int) -> None:
    added = [(f"new {place}", offers.items[0]) for place in range(more)]
    grown = offers.extend(added)
    assert grown == Assortments([*offers.offers, *added], (*offers.items, *(new for new, _ in added)), offers.order)
    again = Assortments(grown.offers, grown.items, grown.order)
    assert grown.precedence.above.tolist() == again.precedence.above.tolist()
    assert grown.precedence.sequence.tolist() == again.precedence.sequence.tolist()


@pytest.mark.parametrize(
    ("offered", "sentence"),
    [
        ({"tea": 2.5, "nothing": None}, "the price 2.5 of 'tea' is outside its levels, which cover 3 to 4: correct it"),
        ({"tea": None, "nothing": None}, "the price of 'tea' is missing: give a number, such as 3.50"),
        (("tea", "nothing"), "the price of 'tea' is missing: give a number, such as 3.50"),
        ({"tea": True, "nothing": None}, "the price of 'tea' is True, which is not a number"),
        (
            {"pie": 2.0, "nothing": None},
            "the item 'pie' has a price, but no levels: leave out the price, or use one",
        ),
        (("tea @ 3.00", "tea @ 4.00"), "the offer has two prices of 'tea', 3.0 and 4.0: give one, or make two offers"),
        (
            ("tea @ 3.20", "nothing"),
            "the item 'tea @ 3.20' looks like an item at a price that is not a level: use a lev",
        ),
    ],
)
def test_what_is_not_on_the_levels_is_refused_and_nothing_is_counted(offered: Any, sentence: str) -> None:
    live = Live(prices=LEVELS)
    live.observe(Record({"tea": 3, "nothing": None}, "tea"))
    live.observe(Record({"tea": 1 + 2, "nothing": None}, "tea"))
    with pytest.raises(ValueError, match=f"^Record 0 of the batch is wrong: {sentence.replace('.', '[.]')}"):
        live.observe(Record(offered, "nothing"))
    assert live.counts is not None
    assert live.counts.observations == 2


def test_a_flag_is_not_a_price_although_it_equals_one() -> None:
    live = Live(prices={"bun": [1, 2]}, publish="sparse")
    live.observe(Record({"bun": 1, "nothing": None}, "bun"))
    with pytest.raises(ValueError, match="the price of 'bun' is True, which is not a number"):
        live.observe(Record({"bun": True, "nothing": None}, "bun"))


def test_models_of_a_stream_know_the_bins_of_its_levels() -> None:
    levels = PriceLevels({"tea": [3, 4]}, {"tea": [2.5, 3.2, 4.5]})
    live = in_batches(Live(prices=levels, publish="sparse"), [Record({"tea": 2.6, "nothing": None}, "tea")], 1)
    assert live.model.price_levels == levels
    assert live.model.predict({"tea": 4.4, "nothing": None}).keys() == {"tea", "nothing"}
    learning = BackgroundLive({"prices": levels})
    learning.observe([Record({"tea": 3.3, "nothing": None}, "tea", 60)], 1)
    learning.take(refreshed(learning.job() or pytest.fail("no model is due")))
    assert (learning.serves, learning.model.price_levels) == ("max-entropy", levels)


def test_prices_without_levels_and_labels_of_levels() -> None:
    with pytest.raises(ValueError, match="has prices, but no price levels were given: give those of every item with a"):
        Live().observe(Record({"tea": 3.0}, "tea"))
    live = Live(prices=LEVELS, publish="sparse")
    live.observe([Record(("tea @ 3.50", "nothing"), "tea @ 3.50"), Record({"tea": 3.4, "nothing": None}, "tea")])
    live.observe(Record({"tea": 3.5, "nothing": None}, "tea @ 3.50"))
    assert live.counts is not None
    assert live.counts.assortments.offers == (("tea @ 3.50", "nothing"),)
    assert live.counts.tallies.tolist() == [3.0, 0.0]
    with pytest.raises(ValueError, match="its choice 'cake' is not in its offer"):
        live.observe(Record({"tea": 3.5, "nothing": None}, "cake"))
    with pytest.raises(ValueError, match=r"^The levels are \{\}: give prices for each item"):
        Live(prices={})
