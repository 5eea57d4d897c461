"""Price levels, and the order of items that they make: what is accepted, what is refused, and what carries it along."""

import json
import pickle
import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_prices
from rankstream import Assortments, ChoiceCounts, DecayingCounts, PriceLevels, with_outside
from rankstream.data.observations import observed, restrict, splits
from rankstream.data.order import precedence

LEVELS = PriceLevels({"tea": [3.5, 3], "cake": [4], 7: [1.125, 2]})
PRICES = st.lists(st.integers(0, 400).map(lambda cents: cents / 100), min_size=1, max_size=30)


def test_labels_have_the_decimals_they_need_and_lead_back() -> None:
    assert LEVELS.labels == ("tea @ 3.00", "tea @ 3.50", "cake @ 4.00", "7 @ 1.125", "7 @ 2.000")
    assert [LEVELS.of(label) for label in LEVELS.labels] == [
        ("tea", 3.0), ("tea", 3.5), ("cake", 4.0), (7, 1.125), (7, 2.0)
    ]  # fmt: skip
    assert LEVELS.of("nothing") == ("nothing", None)
    assert LEVELS.of(7) == (7, None)
    assert LEVELS.items == ("tea", "cake", 7)
    assert LEVELS.order == (("tea @ 3.00", "tea @ 3.50"), ("7 @ 1.125", "7 @ 2.000"))
    assert repr(LEVELS) == "PriceLevels(tea: 3.00, 3.50; cake: 4.00; 7: 1.125, 2.000)"


def test_prices_go_to_the_nearest_level_and_those_in_the_middle_to_the_cheaper_one() -> None:
    assert [LEVELS.level("tea", price) for price in (3, 3.2, 3.25, 3.26, 3.5, 3.5 + 1e-12)] == [3, 3, 3, 3.5, 3.5, 3.5]
    assert LEVELS.label(7, np.float64(1.9)) == "7 @ 2.000"
    assert LEVELS.offer([("nothing", None), ("tea", 3)]) == ("nothing", "tea @ 3.00")


@given(PRICES, st.integers(1, 5))
def test_quantiles_have_as_many_bins_and_every_price_has_one(prices: list[float], n: int) -> None:
    distinct = sorted(set(prices))
    if 1 < len(distinct) < n:
        with pytest.raises(ValueError, match=rf"occurs at {len(distinct)} prices, too few for {n} levels"):
            PriceLevels.quantiles({"tea": prices}, n)
        return
    levels = PriceLevels.quantiles({"tea": prices}, n)
    assert len(levels.levels["tea"]) == (n if len(distinct) > 1 else 1)
    assert set(levels.levels["tea"]) <= set(distinct)
    placed = [levels.level("tea", price) for price in distinct]
    assert placed == sorted(placed)
    assert set(placed) == set(levels.levels["tea"])
    assert all(levels.level("tea", level) == level for level in levels.levels["tea"])


@given(PRICES)
def test_occurring_prices_are_their_own_levels(prices: list[float]) -> None:
    levels = PriceLevels.occurring({"tea": prices}, most=30)
    assert levels.levels["tea"] == tuple(sorted(set(prices)))
    assert PriceLevels.from_labels(levels.labels) == levels
    assert all(levels.level("tea", price) == price for price in prices)


def test_bins_of_about_one_size() -> None:
    levels = PriceLevels.quantiles({"tea": [1, 2, 3, 4, 5, 6, 7, 8, 9]}, 3)
    assert list(levels.levels["tea"]) == [2, 5, 8]
    assert list(levels.bins["tea"]) == [1, 3.5, 6.5, 9]


@pytest.mark.parametrize("levels", [LEVELS, PriceLevels.quantiles({"tea": [1, 2, 3, 4]}, 2)])
def test_levels_survive_being_written_and_copied(levels: PriceLevels) -> None:
    assert PriceLevels.from_content(json.loads(json.dumps(levels.to_content()))) == levels
    assert pickle.loads(pickle.dumps(levels)) == levels
    assert len({levels, pickle.loads(pickle.dumps(levels))}) == 1
    assert levels != PriceLevels({"tea": [1]})
    assert PriceLevels.from_labels(["tea", 3, None]) is None


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: LEVELS.label("tea", -1), "The price of 'tea' is -1: it must be a finite number of at least 0."),
        (lambda: LEVELS.label("tea", np.nan), "The price of 'tea' is nan: it must be a finite number of at least 0."),
        (lambda: LEVELS.label("tea", None), "The price of 'tea' is missing: give a number, such as 3.50."),
        (lambda: LEVELS.offer({"tea": None}), "The price of 'tea' is missing: give a number, such as 3.50."),
        (lambda: LEVELS.label("tea", "3"), "The price of 'tea' is '3', which is not a number: give a number"),
        (lambda: LEVELS.label("pie", 3), "The item 'pie' has a price, but no levels: leave out the price"),
        (lambda: LEVELS.label("tea", 9), "The price 9 of 'tea' is outside its levels, which cover 3 to 3.5: correct"),
        (lambda: LEVELS.offer([("tea", 3), ("tea", 3.5)]), "The offer has two prices of 'tea', 3 and 3.5: give one"),
        (lambda: PriceLevels({}), "The levels are {}: give prices for each item"),
        (lambda: PriceLevels({"tea": []}), "The item 'tea' has no levels: give a price"),
        (lambda: PriceLevels(dict.fromkeys(["tea"], cast(Any, 3))), "The levels of 'tea' are 3: give a list of prices"),
        (lambda: PriceLevels({"tea": [3, 3.0]}), "The level 3 of 'tea' is listed twice: remove one."),
        (lambda: PriceLevels({1: [2], "1": [2]}), "Two of the items [1, '1'] have the same text: give them different"),
        (lambda: PriceLevels({"tea": [3]}, {"tea": [4, 5]}), "The bins (4, 5) of 'tea' do not enclose its levels"),
        (lambda: PriceLevels.occurring({"tea": range(13)}), "The item 'tea' occurs at 13 prices, more than 12 levels"),
        (lambda: PriceLevels.occurring({"tea": []}), "The item 'tea' occurs at no price: leave it out"),
        (lambda: PriceLevels.occurring({}), "The prices are {}: give those of each item"),
    ],
)
def test_bad_prices_are_refused_in_a_sentence(call: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=rf"^{re.escape(said)}.*") as error:
        call()
    assert str(error.value).endswith(".")


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (
            [("a", "b"), ("b", "c"), ("c", "a")],
            "The order has a cycle, 'a' before 'b' before 'c' before 'a': remove",
        ),
        ([("a", "a")], "The order puts 'a' before itself: use two different items in every pair."),
        ([("a", "z")], "The order names 'z', which is not among the items: add it."),
        (["ab"], "The order contains 'ab': give pairs of items, the better one first."),
        ("ab", "The order is 'ab': give pairs of items, such as"),
        (3, "The order is 3: give pairs of items, such as"),
    ],
)
def test_orders_that_cannot_be_are_refused(order: list[tuple[str, str]], said: str) -> None:
    with pytest.raises(ValueError, match=rf"^{re.escape(said)}.*"):
        Assortments([("a", "b", "c")], ["a", "b", "c"], order)


@given(naive_prices.ordered())
def test_the_order_is_what_its_pairs_say(offers: Assortments) -> None:
    pairs = naive_prices.all_pairs(offers)
    code = {item: number for number, item in enumerate(offers.items)}
    again = precedence(code, [(offers.items[a], offers.items[b]) for a, b in pairs])
    assert again.pairs.tolist() == offers.precedence.pairs.tolist()
    assert {(a, b) for a, b in np.argwhere(again.above).tolist()} == pairs
    tied = {item for pair in pairs for item in pair}
    chains = again.chains
    if chains is None:
        hang = {item: {item} | {b for a, b in pairs if a == item} | {a for a, b in pairs if b == item} for item in tied}
        assert any(hang[one] != hang[other] for one in tied for other in hang[one])
    else:
        assert sorted(item for chain in chains for item in chain.tolist()) == sorted(tied)
        assert all(
            (a, b) in pairs for chain in chains for a, b in zip(chain.tolist(), chain[1:].tolist(), strict=False)
        )
    assert again.sequence.tolist() in naive_prices.all_rankings(offers)


def test_assortments_carry_their_order() -> None:
    offers = [LEVELS.offer({"tea": 3, "no": None}), LEVELS.offer({"tea": 3.5, "cake": 4, "no": None})]
    priced = Assortments(offers, order=LEVELS.order)
    assert priced.items == ("tea @ 3.00", "no", "tea @ 3.50", "cake @ 4.00", "7 @ 1.125", "7 @ 2.000")
    assert priced.order == (("tea @ 3.00", "tea @ 3.50"), ("7 @ 1.125", "7 @ 2.000"))
    assert [chain.tolist() for chain in priced.chains or ()] == [[0, 2], [4, 5]]
    assert "2 pairs in order" in repr(priced)
    assert priced != Assortments(offers, priced.items)
    assert pickle.loads(pickle.dumps(priced)) == priced
    grown = priced.extend([("pie", "no")], order=[("tea @ 3.50", "tea @ 4.00")])
    assert grown.order == (*priced.order[:1], ("tea @ 3.50", "tea @ 4.00"), *priced.order[1:])
    assert grown.items[:6] == priced.items
    assert priced.extend([("pie", "no")]).order == priced.order
    counts = ChoiceCounts(priced, [2, 1, 3, 4, 0])
    for kind in (counts, DecayingCounts(priced, 100)):
        assert kind.extend([("pie", "no")], order=[("tea @ 3.50", "tea @ 4.00")]).assortments == grown
    assert restrict(counts, [1]).assortments.order == priced.order
    assert observed(ChoiceCounts(priced, [0, 0, 1, 0, 0])).assortments.order == priced.order
    assert with_outside(counts, 0.5, "left").assortments.order == priced.order
    assert {fold.assortments.order for fold in splits([counts, counts], "time")[0]} == {priced.order}
    assert Assortments(offers).chains == ()
    assert Assortments(offers, order=[("tea @ 3.00", "no"), ("no", "tea @ 3.50")]).no_choice_code is None
