"""Sales joined with a stock log: the slow twin, four forms of availability, and a rule for everything that happens."""

from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pandas as pd
import pytest
from hypothesis import given

import naive_sales
import rankstream as rs
from naive_sales import Event, Sale, Visit
from rankstream.data.counts import ChoiceCounts
from strategies import examples

pytestmark = pytest.mark.quick
HOUR = 3600
ITEMS = ("cake", "pie", "tea")
STORES = ("Bath", "York")


def at(hour: float) -> str:
    return str(pd.Timestamp("2026-03-02") + pd.Timedelta(hours=hour))


def table(rows: list[Any], columns: str) -> pd.DataFrame:
    return pd.DataFrame([tuple(row) for row in rows], columns=columns.split())


def tallies(counts: ChoiceCounts) -> Counter[tuple[tuple[Any, ...], Any]]:
    """Choices by offer, without zeros."""
    offers = counts.assortments
    return Counter(
        {
            (tuple(sorted(offers.offers[number])), offers.items[code]): value
            for number, code, value in zip(offers.owner, offers.members, counts.tallies.tolist(), strict=True)
            if value
        }
    )


STOCK = table(
    [(at(8), "York", "tea", 5), (at(8), "York", "pie", 3), (at(10), "York", "tea", 0), (at(12), "York", "tea", 9)],
    "time store item on_hand",
)
SALES = table(
    [
        (at(9), "York", "tea", "r1", 1, 3.0),
        (at(10), "York", "tea", "r2", 1, 3.0),
        (at(11), "York", "pie", "r3", 2, 4.0),
        (at(13), "York", "tea", "r4", 1, 3.5),
    ],
    "time store item receipt quantity price",
)
BOTH, PIE = ("pie", "tea"), ("pie",)


def changed(frame: pd.DataFrame, row: int, **cells: Any) -> pd.DataFrame:
    """A copy with other cells in one row."""
    copy = frame.astype(object)
    for column, value in cells.items():
        copy.loc[row, column] = value
    return copy


def added(frame: pd.DataFrame, *rows: Any) -> pd.DataFrame:
    return pd.concat([frame, pd.DataFrame([tuple(row) for row in rows], columns=frame.columns)], ignore_index=True)


def test_a_sale_is_a_choice_from_what_was_on_offer_at_that_moment() -> None:
    found = rs.read_sales(SALES, STOCK)
    assert tallies(found.counts) == {(BOTH, "tea"): 3, (PIE, "pie"): 2}
    assert found.account is not None
    assert (found.account.sales, found.account.choices, found.account.conflicts) == (4, 5, 0)
    assert found.format == "sales"


def test_stores_are_kept_apart_and_see_their_own_stock() -> None:
    stock = added(STOCK, (at(7), "Bath", "pie", 1))
    found = rs.read_sales(added(SALES, (at(9), "Bath", "pie", "b1", 1, 4.0)), stock, by="store")
    assert list(found.groups) == ["Bath", "York"]
    assert tallies(found.groups["Bath"]) == {(PIE, "pie"): 1}
    assert tallies(found.groups["York"]) == tallies(rs.read_sales(SALES, STOCK).counts)


def test_one_stock_log_serves_all_stores_where_it_names_none() -> None:
    found = rs.read_sales(changed(SALES, 0, store="Bath"), STOCK.drop(columns="store"), by="store")
    assert tallies(found.groups["Bath"]) == {(BOTH, "tea"): 1}


def snapshots(events: list[Event], times: list[int]) -> list[tuple[int, str, str]]:
    """What is there at each time, as a list without what is not."""
    return [
        (time, store, item)
        for store in STORES
        for time in times
        for item in sorted(naive_sales.offer_at(events, store, time + naive_sales.MICROSECOND) or ())
    ]


def intervals(events: list[Event]) -> list[tuple[str, str, int, int | None]]:
    found: list[tuple[str, str, int, int | None]] = []
    for store in STORES:
        for item, rows in naive_sales.latest(events, store).items():
            start = None
            for time, is_on in rows:
                if is_on and start is None:
                    start = time
                elif not is_on and start is not None:
                    found.append((store, item, start, time))
                    start = None
            if start is not None:
                found.append((store, item, start, None))
    return found


minutes = st.integers(0, 26).map(lambda number: 300 * number)
events = st.lists(
    st.builds(
        Event,
        st.sampled_from(STORES),
        st.integers(0, 12).map(lambda number: 600 * number),
        st.sampled_from(ITEMS),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=12,
)
lines = st.tuples(
    st.sampled_from(STORES), minutes, st.sampled_from((*ITEMS, "bag")), st.integers(0, 5), st.integers(1, 3)
)
sales = st.lists(
    lines.map(lambda row: Sale(row[0], row[1], row[2], f"{row[0]}{row[3]}", row[4])), min_size=1, max_size=14
)


@examples(60)
@given(events, sales, st.none() | st.lists(st.integers(0, 9), min_size=4, max_size=4))
def test_the_join_counts_what_the_slow_twin_counts(
    log: list[Event], bought: list[Sale], doors: list[int] | None
) -> None:
    visits = None
    if doors is not None:
        visits = [Visit(STORES[n // 2], (n % 2) * HOUR, (n % 2 + 1) * HOUR, count) for n, count in enumerate(doors)]
    expected = naive_sales.count(bought, log, visits)
    log = sorted(log, key=lambda event: event.time)
    frames = table(bought, "store time item receipt quantity"), table(log, "store time item on_hand")
    counted = None if visits is None else table(visits, "store from to count").assign(to=lambda frame: frame.to - 1e-6)
    options: dict[str, Any] = {"visits": counted, "by": "store", "duplicates": "keep", "stock_format": "events"}
    if not any(item != naive_sales.NOTHING for *_, item in expected):
        with pytest.raises(ValueError, match="no sales that can be used"):
            rs.read_sales(*frames, **options)
        return
    found = rs.read_sales(*frames, **options)
    got = Counter({(store, *key): n for store, counts in found.groups.items() for key, n in tallies(counts).items()})
    assert got == Counter({(store, tuple(sorted(offer)), item): n for (store, offer, item), n in expected.items()})


@examples(30)
@given(events, sales)
def test_every_form_of_availability_gives_the_same_counts(log: list[Event], bought: list[Sale]) -> None:
    times = [n * 600 for n in range(13)]
    on = {(event.store, event.item) for event in log if event.on_hand}
    log = [Event(store, -600, item, 1) for store, item in sorted(on)] + log  # so that all forms know the first offer
    bought = [sale for sale in bought if (sale.store, sale.item) in on]
    if not bought or {store for store, _ in on} != set(STORES):
        return
    listed = snapshots(log, [-600, *times])
    offers: dict[tuple[int, str], list[str]] = {(time, store): [] for time, store, _ in listed}
    for time, store, item in listed:
        offers[time, store].append(item)
    if len(offers) < 2 * 14:  # nothing at all cannot be listed
        return
    forms = {
        "events": table(log, "store time item on_hand"),
        "snapshots": table(listed, "time store item"),
        "intervals": table(intervals(log), "store item from to"),
        "offers": table(
            [(time, store, ";".join(some)) for (time, store), some in offers.items()], "time store offered"
        ),
    }
    receipts = table(bought, "store time item receipt quantity")
    found = {name: rs.read_sales(receipts, stock, stock_format=name) for name, stock in forms.items()}
    assert len({reading.counts.digest() for reading in found.values()}) == 1
    recognised = {name: rs.read_sales(receipts, forms[name]).account for name in ("snapshots", "intervals", "offers")}
    assert all(account is not None and account.stock_format == name for name, account in recognised.items())


def test_snapshots_with_levels_are_recognised_and_lists_may_leave_out_what_is_gone() -> None:
    rows = [(at(day * 24), item, 1) for day in range(4) for item in ("a", "b", "c", "d")]
    rows = [row for row in rows if (row[0], row[1]) != (at(24), "d")]
    stock = table(rows, "date sku on_hand")
    bought = table([(at(1), "a"), (at(25), "a")], "time item")
    found = rs.read_sales(bought, stock)
    assert found.account is not None
    assert found.account.stock_format == "snapshots"
    assert any("stock_format" in note for note in found.notes)
    assert set(tallies(found.counts)) == {(("a", "b", "c", "d"), "a"), (("a", "b", "c"), "a")}


def test_a_listing_that_ends_on_a_date_includes_that_day() -> None:
    stock = table([("tea", "2026-03-01", "2026-03-02"), ("pie", "2026-03-01", None)], "item from to")
    bought = table([(at(23.9), "pie"), (at(24), "pie")], "time item")
    assert tallies(rs.read_sales(bought, stock).counts) == {(BOTH, "pie"): 1, (PIE, "pie"): 1}


def test_sales_of_what_was_not_in_stock_extend_the_offer_or_are_left_out_or_stop() -> None:
    bought = changed(SALES, 2, item="tea")
    extended = rs.read_sales(bought, STOCK)
    assert tallies(extended.counts) == {(BOTH, "tea"): 5}
    assert extended.account is not None
    assert (extended.account.conflicts, extended.account.rule) == (2, "extend")
    assert "cannot be right" in extended.account.warnings[0]
    skipped = rs.read_sales(bought, STOCK, conflicts="skip")
    assert tallies(skipped.counts) == {(BOTH, "tea"): 3}
    assert skipped.problems.by_kind == {"conflict": 1}
    assert skipped.account is not None
    assert skipped.account.conflict_share == pytest.approx(0.4)
    with pytest.raises(ValueError, match="row 3: 'tea' was sold at 2026-03-02 11:00:00, when it was not in stock"):
        rs.read_sales(bought, STOCK, conflicts="stop")


def test_few_conflicts_do_not_warn() -> None:
    many = pd.concat([SALES] * 10).assign(receipt=range(40))
    found = rs.read_sales(added(many, (at(11), "York", "tea", "x", 1, 3.0)), STOCK)
    assert found.account is not None
    assert 0 < found.account.conflict_share < 0.05
    assert not found.account.warnings


def test_returns_repeated_rows_unknown_items_and_early_sales_have_rules_counts_and_rejects(tmp_path: Path) -> None:
    bought = added(
        SALES,
        SALES.iloc[0],  # the same line once more
        (at(9), "York", "tea", "r5", 2, 3.0),
        (at(9), "York", "tea", "r5", -1, 3.0),  # one of two is taken back at once
        (at(13), "York", "tea", "r6", -1, 3.0),  # what was bought another day
        (at(9), "York", "bag", "r7", 1, 0.1),
        (at(7), "York", "tea", "r8", 1, 3.0),
    )
    rejects = tmp_path / "rejects.csv"
    found = rs.read_sales(bought, STOCK, rejects=rejects)
    assert tallies(found.counts) == {(BOTH, "tea"): 4, (PIE, "pie"): 2}
    assert found.problems.by_kind == {"duplicate": 1, "return": 2, "unknown item": 1, "before": 1}
    assert found.account is not None
    assert found.account.left_out == dict(found.problems.by_kind)
    written = pd.read_csv(rejects)
    assert sorted(written.kind) == sorted(found.problems.by_kind.elements())
    assert written.place.str.contains("row 5").sum() == 1
    assert 0 < found.account.unknown_time < 1
    kept = rs.read_sales(bought, STOCK, duplicates="keep")
    assert tallies(kept.counts)[BOTH, "tea"] == 5


def test_conflicts_and_sales_without_visits_are_in_the_account_and_the_rejects(tmp_path: Path) -> None:
    rejects, bought = tmp_path / "rejects.csv", added(SALES, (at(11), "York", "tea", "r9", 1, 3.0))
    found = rs.read_sales(bought, STOCK, visits=VISITS.iloc[:5], conflicts="skip", rejects=rejects)
    assert found.account is not None
    assert found.account.left_out == {"uncounted": 1, "conflict": 1}
    assert sorted(pd.read_csv(rejects).kind) == ["conflict", "uncounted"]
    words = found.account.summary()
    assert "1 unit (20.0 %) sold while not in stock: left out." in words
    assert "Left out: 1 sales at times without a count of visits." in words
    assert "Left out: 1 sales of items that were not in stock." in words


def test_weighed_goods_count_as_one_unit() -> None:
    assert tallies(rs.read_sales(changed(SALES, 2, quantity=0.345), STOCK).counts)[PIE, "pie"] == 1


@pytest.mark.parametrize(
    ("rule", "tea", "pie"), [("units", 3, 2), ("first", 3, 0), ("weighted", 3 - 2 / 3, 2 / 3), ("single", 2, 0)]
)
def test_a_receipt_of_several_units(rule: str, tea: float, pie: float) -> None:
    found = rs.read_sales(changed(SALES, 2, receipt="r2"), STOCK, per_receipt=rule)
    got = tallies(found.counts)
    assert [got[BOTH, "tea"], got[PIE, "pie"]] == pytest.approx([tea, pie])
    assert found.account is not None
    assert (found.account.receipts, found.account.several) == (3, 1)
    assert "33.3 % of 3 receipts have more than one unit" in found.account.summary()


VISITS = table([(at(hour), "York", 10) for hour in range(8, 14)], "time store visitors")


def test_visits_less_receipts_bought_nothing() -> None:
    found = rs.read_sales(SALES, STOCK, visits=VISITS)
    both, pie = (*BOTH, "no choice"), ("pie", "no choice")
    by_offer = tallies(found.counts)
    assert by_offer[tuple(sorted(pie)), "no choice"] == 9 + 9  # from 10 to 12
    assert by_offer[tuple(sorted(both)), "no choice"] == 60 - 4 - 18
    account = found.account
    assert account is not None
    assert (account.visits, account.no_purchase, account.shortfall, account.assumed) == (60, 56, 0, None)
    assert "56 visits of 60 ended without a purchase" in account.summary()


def test_visits_of_an_hour_are_shared_by_duration() -> None:
    stock = changed(STOCK, 2, time=at(10.25))
    found = tallies(rs.read_sales(SALES, stock, visits=VISITS, no_choice="left").counts)
    assert found[("left", "pie"), "left"] == 7 + 9  # 6.75 of the first hour


def test_more_receipts_than_visits_are_a_shortfall_and_other_times_are_left_out() -> None:
    few = VISITS.assign(visitors=0).iloc[:5]
    found = rs.read_sales(SALES, STOCK, visits=few)
    account = found.account
    assert account is not None
    assert (account.shortfall, account.no_purchase) == (3, 0)
    assert "exceed the visits" in account.warnings[0]
    assert account.left_out == {"uncounted": 1}


def test_visits_one_by_one_are_counted_by_the_hour() -> None:
    each = table(
        [(at(hour + minute / 60), "York") for hour in range(8, 14) for minute in range(0, 60, 6)], "time store"
    )
    assert (
        rs.read_sales(SALES, STOCK, visits=each).counts.digest()
        == rs.read_sales(SALES, STOCK, visits=VISITS).counts.digest()
    )


def test_an_assumed_share_takes_the_place_of_visits() -> None:
    found = rs.read_sales(SALES, STOCK, outside_share=0.5)
    assert tallies(found.counts)[("no choice", *PIE), "no choice"] == 2
    assert found.account is not None
    assert "50 % are assumed" in found.account.summary()
    assert found.account.assumed == 0.5
    plain = rs.read_sales(SALES, STOCK)
    assert "do not include customers" in (plain.account or found.account).summary()
    each = rs.read_sales(SALES, STOCK, outside_share=dict.fromkeys(plain.counts.assortments.offers, 0.5))
    assert each.counts.digest() == found.counts.digest()
    assert each.account is not None
    assert each.account.assumed is None  # as it is another one for each offer


def test_each_category_is_a_market_with_the_visits_less_its_own_receipts() -> None:
    bought = SALES.assign(kind=["drink", "drink", "food", "drink"])
    found = rs.read_sales(bought, STOCK, visits=VISITS, by="store", category="kind")
    assert list(found.groups) == [("York", "drink"), ("York", "food")]
    assert tallies(found.groups["York", "food"]) == {
        (("no choice", "pie"), "pie"): 2,
        (("no choice", "pie"), "no choice"): 59,
    }
    drink = tallies(found.groups["York", "drink"])  # nothing is on offer while tea is out
    assert drink == {(("no choice", "tea"), "tea"): 3, (("no choice", "tea"), "no choice"): 10 + 9 + 10 + 9}


def test_prices_paid_and_a_price_list() -> None:
    paid = rs.read_sales(SALES, STOCK, prices="paid")
    assert paid.prices is not None
    assert paid.prices.levels["tea"] == (3.0, 3.5)
    assert tallies(paid.counts)[("pie @ 4.00", "tea @ 3.50"), "tea @ 3.50"] == 1
    twice = added(SALES, (at(9.5), "York", "tea", "r5", 1, 2.5), (at(9.5), "York", "tea", "r6", 1, 3.0))
    both = tallies(rs.read_sales(twice, STOCK, prices="paid").counts)  # two prices were paid at one moment
    assert both[("pie @ 4.00", "tea @ 2.50"), "tea @ 2.50"] == 1
    assert both[("pie @ 4.00", "tea @ 3.00"), "tea @ 3.00"] == 3
    listed = table(
        [("tea", at(0), None, 3.2), ("tea", at(12.5), at(14), 3.5), ("pie", at(0), None, 4.0)], "item from to price"
    )
    found = rs.read_sales(SALES.drop(columns="price"), STOCK, prices=listed, visits=VISITS)
    got = tallies(found.counts)
    assert got[("no choice", "pie @ 4.00", "tea @ 3.20"), "tea @ 3.20"] == 2
    assert got[("no choice", "pie @ 4.00", "tea @ 3.50"), "tea @ 3.50"] == 1
    assert got[("no choice", "pie @ 4.00", "tea @ 3.50"), "no choice"] == 14  # half of 12 o'clock, and 13 o'clock
    later = added(SALES.drop(columns="price"), (at(15), "York", "tea", "r5", 1))  # the usual price is back
    assert tallies(rs.read_sales(later, STOCK, prices=listed).counts)[("pie @ 4.00", "tea @ 3.20"), "tea @ 3.20"] == 3
    with pytest.raises(ValueError, match="has no column 'price'"):
        rs.read_sales(SALES.drop(columns="price"), STOCK, prices="paid")


def test_times_with_and_without_a_zone() -> None:
    zoned = STOCK.assign(time=[f"{time}+01:00" for time in STOCK.time])
    with pytest.raises(ValueError, match="without a zone, and others have one: set it, such as timezone="):
        rs.read_sales(SALES, zoned)
    found = rs.read_sales(SALES, zoned, timezone="Europe/Berlin")
    assert found.counts.digest() == rs.read_sales(SALES, STOCK).counts.digest()
    night = table([("2026-10-25 02:30", "York", "tea"), ("2026-10-24 02:30", "York", "tea")], "time store item")
    account = rs.read_sales(night, STOCK.assign(time="2026-10-01"), timezone="Europe/Berlin").account
    assert account is not None
    assert account.doubtful_times == 1
    assert "1 row of receipts are in an hour that a clock change repeats or skips" in account.summary()
    with pytest.raises(ValueError, match="timezone is 'Mars'"):
        rs.read_sales(SALES, STOCK, timezone="Mars")


def test_sales_and_visits_of_a_part_of_the_time() -> None:
    found = rs.read_sales(SALES, STOCK, visits=VISITS, since=at(10), until=at(12))
    account = found.account
    assert account is not None
    assert (account.choices, account.visits, account.no_purchase) == (3, 20, 18)


def test_too_many_offers_are_made_coarser_and_the_account_says_how() -> None:
    names = [f"item{n}" for n in range(6)]
    log = [(at(0), name, 1) for name in names] + [(at(1 + n), name, 0) for n, name in enumerate(names[:5])]
    bought = table([(at(n + 0.5), "item5") for n in range(6)] * 3 + [(at(0.5), "item4")], "time item")
    stock = table(log, "time item on_hand")
    exact = rs.read_sales(bought, stock)
    assert exact.counts.assortments.n_offers == 6
    found = rs.read_sales(bought, stock, max_offers=2)
    assert found.account is not None
    assert found.account.ignored_items == ("item0", "item1", "item2", "item3")
    assert found.account.offers_before == 6
    assert found.account.offers == found.counts.assortments.n_offers == 2
    visited = rs.read_sales(bought, stock, max_offers=2, visits=table([(at(n), 9) for n in range(6)], "time count"))
    assert visited.counts.assortments.n_offers == 2
    assert visited.account is not None
    assert visited.account.offers_before == 6
    coarser = rs.read_sales(bought, stock, max_offers=1).account
    assert coarser is not None
    assert coarser.ignored_sales == pytest.approx(1 / 19)
    assert "ignored, so that 6 different offers become 1" in coarser.summary()


def test_the_account_is_plain_json() -> None:
    import json

    found = rs.read_sales(SALES, STOCK, visits=VISITS)
    assert found.account is not None
    content = json.loads(json.dumps(found.account.to_json()))
    assert content["visits"] == 60
    assert content["summary"] == found.account.summary()
    assert "exposures" not in content
