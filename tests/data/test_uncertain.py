"""Choices from offers that are known in part: the type, and its reading from snapshots beside a slow twin."""

from collections import Counter
from typing import Any

import hypothesis.strategies as st
import pandas as pd
import pytest
from hypothesis import assume, given

import rankstream as rs
from rankstream.data.uncertain import UncertainCounts
from strategies import examples

pytestmark = pytest.mark.quick
HOUR = 3600
DAY = 24 * HOUR
ITEMS = ("cake", "pie", "tea")
Key = tuple[frozenset[Any], frozenset[Any], Any]


def frame(rows: Any, columns: str) -> pd.DataFrame:
    return pd.DataFrame([tuple(row) for row in rows], columns=columns.split())


def records(counts: UncertainCounts) -> Counter[Key]:
    """How often each item was chosen between which sets."""
    found: Counter[Key] = Counter()
    for period in counts.periods:
        for slot in period.slots:
            for item, count in slot.chosen.items():
                found[slot.smallest, frozenset(period.largest), item] += int(count)
    return found


def slow_records(shelves: list[set[str]], sales: list[tuple[int, str]]) -> Counter[Key]:
    """The same, sale by sale; shelf k is what the snapshot of day k lists."""
    found: Counter[Key] = Counter()
    for time, item in sales:
        day = time // DAY
        largest = shelves[day]
        later = {other for moment, other in sales if moment // DAY == day and moment >= time}
        end = shelves[day + 1] if day + 1 < len(shelves) else largest
        found[frozenset(largest & (end | later)), frozenset(largest), item] += 1
    return found


@examples(40)
@given(
    st.lists(st.sets(st.sampled_from(ITEMS), min_size=1), min_size=3, max_size=5),
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 90), st.sampled_from(ITEMS)), min_size=1, max_size=15),
)
def test_sales_between_snapshots_are_from_the_sets_of_the_slow_twin(
    shelves: list[set[str]], given_sales: list[tuple[int, int, str]]
) -> None:
    sales = [(day * DAY + 900 * quarter, item) for day, quarter, item in given_sales if day < len(shelves)]
    sales = [(time, item) for time, item in sales if item in shelves[time // DAY]]
    assume(sales)
    stock = frame([(day * DAY, item) for day, shelf in enumerate(shelves) for item in sorted(shelf)], "time item")
    found = rs.read_sales(frame(sales, "time item"), stock, stock_format="snapshots", between="uncertain").uncertain
    assert found is not None
    assert records(found) == slow_records(shelves, sales)


STOCK = frame([(0, "tea"), (0, "pie"), (0, "cake"), (DAY, "pie"), (2 * DAY, "tea"), (2 * DAY, "pie")], "time item")
SALES = frame([(9 * HOUR, "tea"), (10 * HOUR, "pie"), (15 * HOUR, "cake"), (16 * HOUR, "pie")], "time item")
BOTH, ALL = frozenset(["cake", "pie"]), frozenset(ITEMS)


def test_an_item_is_doubtful_from_its_last_sale_to_the_snapshot_that_lacks_it() -> None:
    found = rs.read_sales(SALES, STOCK, between="uncertain")
    assert found.uncertain is not None
    assert records(found.uncertain) == {
        (ALL, ALL, "tea"): 1,
        (BOTH, ALL, "pie"): 1,
        (BOTH, ALL, "cake"): 1,
        (frozenset(["pie"]), ALL, "pie"): 1,
    }
    period = found.uncertain.periods[-1]
    assert (set(period.doubtful), round(period.start)) == ({"tea", "cake"}, 9 * HOUR)
    assert round(period.start + sum(slot.duration for slot in period.slots)) == DAY
    plain = rs.read_sales(SALES, STOCK)
    assert plain.uncertain is None
    assert (found.counts.tallies == plain.counts.tallies).all()
    assert found.uncertain.naive_counts().digest() == plain.counts.digest()


def test_a_sale_at_the_time_of_the_snapshot_that_lacks_the_item_leaves_no_doubt() -> None:
    found = rs.read_sales(frame([(DAY, "tea"), (9 * HOUR, "cake")], "time item"), STOCK, between="uncertain").uncertain
    assert found is not None
    assert records(found)[frozenset(["tea", "pie"]), ALL, "tea"] == 1


def test_complete_receipts_date_a_sell_out_by_the_last_sale() -> None:
    found = rs.read_sales(SALES, STOCK, between="last sale").counts
    offers = found.assortments.offers
    shown = {offers[number]: total for number, total in enumerate(found.totals.tolist())}
    assert shown == {("cake", "pie", "tea"): 1, ("cake", "pie"): 2, ("pie",): 1}


def test_an_item_nobody_bought_stays_until_the_snapshot_without_it() -> None:
    found = rs.read_sales(SALES[1:], STOCK, between="last sale").counts
    assert all("tea" in offer for offer in found.assortments.offers)


def test_stores_see_their_own_doubts_and_visits_fill_the_slots() -> None:
    stock = pd.concat([STOCK.assign(store="Bath"), STOCK.assign(store="York")[STOCK["item"] != "cake"]])
    sales = pd.concat([SALES.assign(store="Bath"), SALES.assign(store="York")[SALES["item"] != "cake"]])
    visits = frame([(9 * HOUR, store, 12 * HOUR, 10) for store in ("Bath", "York")], "time store to count")
    found = rs.read_sales(
        sales, stock, visits=visits, by="store", no_choice="none", stock_format="snapshots", between="uncertain"
    )
    assert found.uncertain is not None
    assert set(found.uncertain_groups) == {"Bath", "York"}
    assert found.uncertain.observations == found.counts.observations
    for store, group in found.uncertain_groups.items():
        assert group.observations == found.groups[store].observations
        assert {period.place for period in group.periods} <= {None, store}
        nobody = sum(count for (_, _, item), count in records(group).items() if item == "none")
        assert nobody == 8  # ten visits, and two receipts until noon


def test_a_conflict_is_an_offer_of_its_own() -> None:
    log = STOCK[STOCK["item"] != "cake"]
    extra = frame([(30 * HOUR, "tea"), (12 * HOUR, "pie")], "time item")
    found = rs.read_sales(extra, log, stock_format="snapshots", between="uncertain").uncertain
    assert found is not None
    assert records(found)[frozenset(["pie", "tea"]), frozenset(["pie", "tea"]), "tea"] == 1


def test_what_cannot_be_uncertain_is_refused() -> None:
    events = frame([(0, "tea", 1), (0, "pie", 1), (HOUR, "tea", 0)], "time item on_hand")
    with pytest.raises(ValueError, match="needs snapshots, but the stock log has events"):
        rs.read_sales(SALES, events, between="uncertain")
    with pytest.raises(ValueError, match="neither prices, outside_share nor half_life"):
        rs.read_sales(SALES, STOCK, between="uncertain", outside_share=0.5)
    with pytest.raises(ValueError, match="between is 'maybe': choose one of 'present'"):
        rs.read_sales(SALES, STOCK, between="maybe")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((("tea",), ("pie",), [{"pie": 1}]), "'tea', the largest does not"),
        (((), ("pie",), []), "0 slots"),
        (((), ("pie",), [{"pie": 1}], [1, 2]), "1 slots and 2 durations"),
        (((), ("pie",), [{"tea": 1}]), "choices of 'tea' cannot be from"),
        (((), ("pie",), [{"pie": -1}]), "count of 'pie'"),
        (((), ("pie",), [{"pie": float("inf")}]), "inf"),
        (((), ("cake",), [{}]), "not among the items"),
        (((), ("pie",), [{"pie": 1}], [-1.0]), "duration"),
    ],
)
def test_bad_records_are_refused_and_leave_nothing_behind(arguments: tuple[Any, ...], message: str) -> None:
    counts = UncertainCounts(["tea", "pie"])
    with pytest.raises(ValueError, match=message):
        counts.observe_period(*arguments)
    assert not counts.periods
    with pytest.raises(ValueError, match="no observations yet"):
        counts.naive_counts()
