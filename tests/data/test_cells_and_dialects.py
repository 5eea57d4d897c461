"""Cells as labels, dialects of numbers and dates, periods and accounts: each rule by itself, without a file."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rankstream.data.readers import dialect, records
from rankstream.data.readers.account import Account, Exposure
from rankstream.data.readers.dialect import COMMA, DMY, MDY, POSITIVE, LineDialect, date_rule, decimal_rule, rewrite
from rankstream.data.readers.groups import Split, period_label
from rankstream.data.readers.problems import BadRecordError
from rankstream.data.readers.records import SEPARATORS
from rankstream.data.readers.sources import labels

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (" tea ", "tea"), (3.0, "3"), (3.5, "3.5"), (7, "7"), (True, "true"), (False, "false"), (None, ""),
        (float("nan"), ""), (b" tea ", "tea"), (datetime(2024, 5, 6, 7, 8, 9), "2024-05-06 07:08:09"),
        (datetime(2024, 5, 6, 7, 8, 9, 12), "2024-05-06 07:08:09.000012"),
        (datetime(2024, 5, 6, 1, tzinfo=timezone(timedelta(hours=2))), "2024-05-05 23:00:00"),
        (date(2024, 5, 6), "2024-05-06"), ("käse", "käse"), (-0.0, "0"),
    ],
)  # fmt: skip
def test_cells_are_labels(value: Any, label: str) -> None:
    assert labels.text(value) == label
    assert labels.text_or_nothing(value) == label


@pytest.mark.parametrize("value", [[1], {"a": 1}, (1,), {1}, frozenset("a"), b"\xff", "\ud800"])
def test_cells_that_are_none(value: Any) -> None:
    with pytest.raises(BadRecordError):
        labels.text(value)
    assert labels.text_or_nothing(value) == ""


def test_lists_in_cells() -> None:
    assert labels.list_in("[1, 2.5, 'a b']") == ["1", "2.5", "a b"]
    assert labels.list_in('["a", 1]') == ["a", 1]
    for words in ("[a, b]", "['a]", '{"a": 1}', "tea;pie", "[", "['a\\'']"):
        assert labels.list_in(words) is None
    assert labels.list_in("[]") == []
    assert labels.parts_of(["a", 1], ";") == ["a", 1]
    assert labels.parts_of("['a', 'b']", ";") == ["a", "b"]
    assert labels.parts_of("a;b", ";") == ["a", "b"]
    assert labels.parts_of(np.array(["a"]), ";") == ["a"]
    assert [labels.is_list(value) for value in ("a", b"a", {"a": 1}, ("a",), 3)] == [False, False, False, True, False]
    assert sorted(["b", "10", "9", "a1"], key=labels.order) == ["9", "10", "a1", "b"]


def test_offers_have_items_that_differ() -> None:
    assert labels.labels_of("a; b ;3", ";") == ("a", "b", "3")
    for offer, kind in (
        ("", "empty"),
        (";", "empty"),
        ("a;;b", "empty"),
        ("a;b;a", "repeated item"),
        ("a; a", "repeated item"),
    ):
        with pytest.raises(BadRecordError) as found:
            labels.labels_of(offer, ";")
        assert found.value.kind == kind


@pytest.mark.parametrize(
    ("rule", "cell", "text"),
    [
        (COMMA, "1.299,50", "1299.50"), (COMMA, 3.5, 3.5), (DMY, "2.3.2026", "2026-03-02"),
        (DMY, "12-03-2026T8:03:04", "2026-03-12 08:03:04"), (MDY, "2/13/2026, 18:00", "2026-02-13 18:00"),
        (DMY, "2.3.26", "2.3.26"), (DMY, "soon", "soon"), (DMY, 5, 5), (POSITIVE, "0,0", "0"), (POSITIVE, "0.5", "1"),
        (POSITIVE, "3", "1"), (POSITIVE, "yes", "yes"), (POSITIVE, 2, "1"), (POSITIVE, 0.0, 0.0), (POSITIVE, 2.5, "1"),
        (POSITIVE, "-1", "-1"),
    ],
)  # fmt: skip
def test_cells_are_rewritten(rule: str, cell: Any, text: Any) -> None:
    assert rewrite(rule, cell) == text
    assert type(rewrite(rule, cell)) is type(text)


@pytest.mark.parametrize(
    ("shapes", "rule"),
    [
        ({"9,99"}, COMMA), ({"9,999"}, None), ({"99,999"}, None), ({"9999,999"}, COMMA), ({"9,9999"}, COMMA),
        ({"9.999,9"}, COMMA), ({"9.99"}, None), ({"9,99", "9.99"}, None), ({"9,99", "9"}, COMMA), ({"-L,9"}, COMMA),
        ({"9,9 "}, COMMA), ({"9"}, None), ({"a,9"}, None), ({"9.99,9"}, None), ({"9.999.999,99"}, COMMA), (set(), None),
    ],
)  # fmt: skip
def test_decimal_commas(shapes: set[str], rule: str | None) -> None:
    assert decimal_rule(shapes) == rule


@pytest.mark.parametrize(
    ("shapes", "rule"),
    [
        ({"L.99.9999"}, DMY), ({"99/L/9999"}, MDY), ({"L/99/9999", "99/L/9999"}, None), ({"99/99/9999"}, None),
        ({"9.9.9999"}, DMY), ({"9.9.9999", "9/9/9999"}, None), ({"L.9.9999", "9.L.9999"}, None), ({"99.L.9999"}, MDY),
        ({"9999-99-99"}, None), ({"word"}, None), (set(), None), ({"99.99.9999", "word"}, DMY),
        ({"L-9-9999 9:99"}, DMY),
    ],
)  # fmt: skip
def test_days_before_months(shapes: set[str], rule: str | None) -> None:
    assert date_rule(shapes) == rule


def test_shapes() -> None:
    assert dialect.shape_of("13.12.2026 31 32 12") == "L.99.9999 L 99 99"
    assert dialect._prices_in("tea@3,50;pie;cake@ 4", ";") == ["3,50", " 4"]
    assert dialect._prices_in(' {"tea": "3,5", "pie": 4, "cake": "2"}', ";") == ["3,5", "2"]


def test_a_stream_decides_with_its_first_clear_cell() -> None:
    for first, decimal in (
        ("3,50", COMMA),
        ("3.5", "."),
        ("1.299", None),
        ("1,299", None),
        ("7", None),
        (3.5, None),
        (".5", "."),
    ):
        lines = LineDialect()
        lines.number(first)
        assert lines.decimal == decimal
    lines = LineDialect()
    assert [lines.number(cell) for cell in ("1.299", "3,5", "1.299")] == ["1.299", "3.5", "1299"]
    assert [lines.time(cell) for cell in ("1/2/2026", "13/2/2026", "1/2/2026", 7)] == [
        "1/2/2026",
        "2026-02-13",
        "2026-02-01",
        7,
    ]
    assert lines.notes == ["Values are read as numbers with decimal commas.", "Dates are read as day, month, year."]
    assert LineDialect().notes == LineDialect(".", "iso").notes == []
    fixed = LineDialect(".", "mdy")
    assert (fixed.number("3,50"), fixed.time("1/2/2026")) == ("3,50", "2026-01-02")
    for given in ({"decimal": ";"}, {"dates": "ymd"}):
        with pytest.raises(ValueError, match="choose one of"):
            LineDialect(**given)


def test_separators_are_those_that_explain_the_choices() -> None:
    assert dialect._of_offers([("tea;pie", "tea"), ("tea,pie", "tea"), ("a,b", "b")]) == ","
    assert dialect._of_offers([("tea", "tea")]) == SEPARATORS[0]
    assert dialect._of_offers([("tea,pie", "")]) == SEPARATORS[0]
    assert dialect._of_offers([("tea@3,5|pie@4", "pie")], priced=True) == "|"
    assert dialect._holds("tea@3,50,pie@4", ",", "pie", priced=True)
    assert dialect._holds("tea@3,50,pie@4", ",", "tea", priced=True)
    assert not dialect._holds("tea@3;pie@4", ";", "pie", priced=False)
    assert not dialect._holds("tea", ";", "tea", priced=False)
    assert dialect._of_rankings(["a,b", "b,a"]) is None
    assert dialect._of_rankings(["a;b", "b > a"]) == ">"
    assert dialect._of_rankings([]) is None


def test_columns_of_numbers() -> None:
    def layout(**given: Any) -> Any:
        return SimpleNamespace(
            **({"format": "wide", "priced": (), "raw": ("id", "a", "b"), "count": None, "has_prices": False} | given)
        )

    assert dialect.number_columns(layout()) == []
    assert dialect.number_columns(layout(priced=("b",), count="n")) == ["b", "n"]
    assert dialect.number_columns(layout(format="long", has_prices=True)) == ["b"]
    assert dialect.number_columns(layout(format="transactions", has_prices=True, count="n")) == ["n"]


def columns_of(rows: Sequence[tuple[str, ...]], layout: str = "long", priced: tuple[str, ...] = ()) -> list[str]:
    """Columns that do not have what their names promise."""
    names = [f"c{place}" for place in range(len(rows[0]))]
    table = [SimpleNamespace(cells=row, wrong=None) for row in rows]
    source: Any = SimpleNamespace(columns=names, rows=lambda *_: table)
    given: Any = SimpleNamespace(format=layout, raw=tuple(names), priced=priced)
    return dialect.unfit_columns(source, given)


def test_items_of_a_long_table_come_again_and_differ_within_an_observation() -> None:
    good = [("1", "tea"), ("1", "pie"), ("2", "tea"), ("2", "pie")]
    assert columns_of(good) == []
    assert columns_of([("1", "a"), ("1", "b"), ("2", "c"), ("2", "d")]) == ["c1"]  # all different
    assert columns_of([("1", "a"), ("1", "a"), ("2", "b"), ("2", "b")]) == ["c1"]  # one for each observation
    assert columns_of([("1", "a"), ("2", "b"), ("3", "a"), ("4", "b")]) == ["c0"]  # an observation of one row
    assert columns_of(good[:3]) == []  # too few to tell


def test_items_of_a_wide_table_have_flags() -> None:
    def rows(*last: str) -> list[tuple[str, ...]]:
        return [("x", "1", "0", cell) for cell in last]

    assert columns_of(rows("0", "1", "0", "1"), "wide") == []
    assert columns_of(rows("a", "b", "c", "1"), "wide") == ["c3"]
    assert columns_of(rows("a", "1", "a", "1"), "wide") == []  # half of the values
    assert columns_of([row[1:] for row in rows("a", "b", "c", "d")], "wide") == []  # one item would be left


@pytest.mark.parametrize(
    ("value", "period", "label"),
    [
        ("2024-05-16T23:30:00", "week", "2024-05-13"), ("2024-05-13", "week", "2024-05-13"),
        ("2024-05-16T23:30:00+02:00", "hour", "2024-05-16 21:00"), ("2024-05-16T23:30:00", "hour", "2024-05-16 23:00"),
        ("2024-05-16T00:30:00+02:00", "day", "2024-05-15"), (date(2024, 5, 16), "month", "2024-05"),
        (datetime(2024, 12, 31, 23, tzinfo=UTC), "year", "2024"),
    ],
)  # fmt: skip
def test_periods(value: Any, period: str, label: str) -> None:
    assert period_label(value, period) == label


def test_groups_have_a_label_or_several() -> None:
    assert Split(("store",)).label([" york "]) == "york"
    assert Split(("store", "kind")).label(["york", 3.0]) == ("york", "3")
    assert Split((), "month", "day").label(["2024-05-16"]) == "2024-05"
    assert Split(("store",), "month", "day").label(["york", "2024-05-16"]) == ("york", "2024-05")
    assert (Split(("a",)).columns, Split(("a",), "day", "t").columns) == (("a",), ("a", "t"))
    with pytest.raises(BadRecordError):
        period_label("soon", "day")


ACCOUNT = Account(
    stock_format="events", sales=1200, choices=1000.5, receipts=800, several=200, conflicts=50.0, conflict_share=0.05,
    rule="extend", left_out={"return": 3, "duplicate": 0, "other": 1234}, offers=40, small_offers=7, unknown_time=0.125,
)  # fmt: skip


def test_an_account_in_words() -> None:
    words = ACCOUNT.summary()
    for part in (
        "1,000.5 units from 1,200 rows", "50 units (5.0 %) sold while not in stock: counted as on offer",
        "Left out: 3 returns",
        "Left out: 1,234 other.", "25.0 % of 800 receipts have more than one unit: each unit is a choice.",
        "12.5 % of the time of sales has no known offer.", "7 of 40 offers have fewer than ten choices.",
        "give visits, or outside_share",
    ):  # fmt: skip
        assert part in words
    assert "repeated rows" not in words
    assert "Warning" not in words
    assert "ignored" not in words
    plain = replace(ACCOUNT, conflicts=0.0, several=0, unknown_time=0.0, rule="skip")
    for part in ("while not in stock", "more than one unit", "no known offer"):
        assert part not in plain.summary()
    assert "left out" in replace(ACCOUNT, rule="skip").summary()
    coarse = replace(ACCOUNT, ignored_items=("a", "b"), ignored_sales=0.0123, offers_before=4000, assumed=0.25)
    assert "2 items with 1.2 % of the sales are ignored, so that 4,000 different offers become 40." in coarse.summary()
    assert coarse.summary().endswith("25 % are assumed to have bought nothing: no visits were given.")


def test_an_account_of_visits() -> None:
    found = replace(ACCOUNT, visits=2000, no_purchase=1200.0)
    assert "1,200 visits of 2,000 ended without a purchase. This share is measured" in found.summary()
    assert "; 100 receipts exceed the visits" in replace(found, shortfall=100).summary()


@pytest.mark.parametrize(
    ("changed", "number"),
    [
        ({}, 0), ({"conflict_share": 0.0501}, 1), ({"visits": 100, "shortfall": 5}, 0),
        ({"visits": 100, "shortfall": 6}, 1), ({"visits": 0, "shortfall": 1}, 1), ({"shortfall": 99}, 0),
        ({"visits": 1, "shortfall": 1, "conflict_share": 0.5}, 2),
    ],
)  # fmt: skip
def test_accounts_warn_beyond_five_percent(changed: dict[str, Any], number: int) -> None:
    found = replace(ACCOUNT, **changed)
    assert len(found.warnings) == number
    assert found.summary().count("Warning: ") == number
    content = found.to_json()
    assert (len(content["warnings"]), content["offers"]) == (number, 40)
    assert "exposures" not in content


def test_an_assumed_share_adds_customers() -> None:
    seen = Exposure("york", ("tea",), ("pie",), 75.0).with_outside(0.25, "no")
    assert (seen.offered, seen.missing, seen.customers) == (("tea", "no"), ("pie",), 100.0)


def test_an_offer_with_a_bad_row_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("1", "tea", None), ("1", "pie", None), ("2", "", None), ("2", "tea", None), ("3", "tea", "wrong")]
    found = [SimpleNamespace(cells=row[:2], wrong=row[2]) for row in rows]
    monkeypatch.setattr(records, "_selected", lambda *_: found)
    given: Any = SimpleNamespace(raw=("id", "item"))
    contents = records.own_contents(given, given)
    assert {number: set(items) for number, items in contents.items()} == {"1": {"tea", "pie"}, "2": set(), "3": set()}
