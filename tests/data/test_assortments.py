import pickle

import numpy as np
import pytest
from hypothesis import given

import strategies
from rankstream import Assortments

pytestmark = pytest.mark.quick


def test_coordinates_follow_the_order_given() -> None:
    offers = Assortments([("b", "a"), ("c",)], items=["a", "b", "c", "never"])
    assert offers.items == ("a", "b", "c", "never")
    assert offers.offers == (("b", "a"), ("c",))
    assert (offers.n_items, offers.n_offers, offers.n_coordinates) == (4, 2, 3)
    assert offers.indptr.tolist() == [0, 2, 3]
    assert offers.members.tolist() == [1, 0, 2]
    assert [offers.coordinate(("a", "b"), item) for item in ("b", "a")] == [0, 1]


@given(strategies.assortments())
def test_every_coordinate_is_found_again(offers: Assortments) -> None:
    for offer in offers.offers:
        for item in offer:
            found = offers.coordinate(reversed(offer), item)
            assert offers.items[offers.members[found]] == item
            assert set(offers.offers[offers.owner[found]]) == set(offer)


@given(strategies.assortments())
def test_pickle_and_extend_keep_what_was_there(offers: Assortments) -> None:
    assert pickle.loads(pickle.dumps(offers)) == offers
    larger = offers.extend([("new", 0)])
    assert larger.members[: offers.n_coordinates].tolist() == offers.members.tolist()
    assert larger.items[: offers.n_items] == offers.items


def test_labels_of_any_hashable_type_work_and_numpy_scalars_become_plain() -> None:
    offers = Assortments([(None, True, ("a", 1)), (np.int64(5), None)])
    assert offers.items == (None, True, ("a", 1), 5)
    assert type(offers.items[3]) is int
    assert offers.no_choice_code == 0


def test_no_choice_is_the_only_item_of_every_offer() -> None:
    assert Assortments([("a", "b")]).no_choice_code is None
    assert Assortments([("a", "b"), ("a", "c")]).no_choice_code == 0
    assert Assortments([("a", "b"), ("c",)]).no_choice_code is None


@pytest.mark.parametrize(
    ("offers", "items", "message"),
    [
        ([], None, "no offers"),
        ([("a",), ()], None, "Offer 1 is empty"),
        ([("a", "b", "a")], None, "Offer 0 contains 'a' more than once"),
        (["ab"], None, "Offer 0 is 'ab': give a tuple"),
        ([("a", float("nan"))], None, "Offer 0 contains NaN"),
        ([("a", "z")], ["a", "b"], "contains 'z', which is not among the items"),
        ([("a",)], ["a", "a"], "list of items contains 'a' more than once"),
        ([("a",)], ["a", float("nan")], "list of items contains NaN"),
        ([(["a"], "b")], None, r"Offer 0 contains \['a'\], which cannot be an item"),
        ([1, 2], None, "Offer 0 is 1: give a tuple"),
        (None, None, "The offers are None"),
    ],
)
def test_bad_offers_are_refused(offers: list[tuple[object, ...]], items: list[str] | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Assortments(offers, items)


@pytest.mark.parametrize(
    ("offer", "item", "message"),
    [
        (("a", "b"), "z", "Unknown item 'z': the items are 'a', 'b', 'c'"),
        (("a", "z"), "a", "Unknown item 'z'"),
        (("a", "b"), "c", "choice 'c' is not in its offer"),
        (("a", "c"), "c", "is not among the 2 assortments"),
        (("a", "b", "a"), "a", "contains 'a' more than once"),
    ],
)
def test_bad_records_are_refused(offer: tuple[str, ...], item: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Assortments([("a", "b"), ("b", "c")]).coordinate(offer, item)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, 0.5, 1.0], r"must have shape \(4,\)"),
        ([0.5, 0.5, np.nan, 1.0], "Frequency nan at coordinate 2"),
        ([1.5, -0.5, 0.5, 0.5], r"Frequency -0.5 at coordinate 1 \(item 'b' of offer 0\)"),
        ([0.5, 0.5, 0.5, 0.6], r"frequencies of offer 1 \('b', 'c'\) sum to 1.1"),
        ([0.5, 0.5, np.inf, 0.6], "frequencies of offer 1"),
    ],
)
def test_bad_frequencies_are_refused(values: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Assortments([("a", "b"), ("b", "c")]).check_frequencies(values)
