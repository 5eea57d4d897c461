"""What a column that is not used seems to be, decided by its values alone: every limit from both sides."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from rankstream.data.readers import unused_columns
from rankstream.data.readers.unused_columns import UnusedColumn, _arrays, _date, _Look, _numbers, _Record, _with_warning

pytestmark = pytest.mark.quick


def look_at(
    cells: list[list[Any]],
    name: str = "column",
    layout: str = "long",
    by: tuple[str, ...] = (),
    span: Any = None,
    roles: Any = (),
) -> UnusedColumn:
    """The entry for a column with these cells, one list for each record of two rows or of one."""
    records = [
        _Record(("tea", "pie"), ("tea", "pie")[number % 2], "", 1.0, [("tea", cell) for cell in row])
        for number, row in enumerate(cells)
    ]
    layout = SimpleNamespace(format=layout, roles=dict(roles), codes={}, raw=("id", "item"), by_id=False)  # type: ignore[assignment]
    source = SimpleNamespace(columns=["item", name], name="table")
    job: Any = SimpleNamespace(layout=layout, source=source, split=SimpleNamespace(by=by))
    return _Look(job, records, span).at_column(name)


def test_one_value_is_no_column_to_use() -> None:
    assert look_at([["x"]] * 30) == UnusedColumn(
        "column", "other", "The column 'column' is not used: all of its values are the same.", {"values": 1}
    )
    assert look_at([]).sentence == "The column 'column' is not used: not checked."
    assert look_at([["x"], [""]] * 15).evidence == {"values": 1}  # an empty cell is no value


def test_groups_have_twenty_records_for_each_value() -> None:
    both = [["north"], ["north"], ["south"], ["south"]]
    assert look_at(both * 10).kind == "group"
    assert look_at((both * 10)[:-1]).kind == "other"
    assert look_at((both * 10)[:-1]).evidence == {"values": 2}
    within = [["north", "south"]] * 40  # it differs within a record
    assert look_at(within).kind == "other"


def test_columns_that_number_records_are_identifiers() -> None:
    numbered = look_at([[f"{7 + number}"] for number in range(9)])
    assert numbered.sentence == "The column 'column' is not used: it numbers the records."
    assert (
        look_at([[f"k{number}"] for number in range(9)]).sentence
        == "The column 'column' is not used: all of its values differ."
    )
    assert look_at([[f"k{number}"] * 2 for number in range(9)]).kind == "identifier"
    pairs = [[f"k{number}", f"j{number}"] for number in range(9)]
    assert look_at(pairs).sentence == "The column 'column' is not used: all of its values differ."
    assert look_at([*pairs, ["k0", "j0"]]).kind == "other"
    named = [["k1"], ["k1"], ["k2"]] * 20
    assert look_at(named, "order_id").kind == look_at(named, " Order_ID ").kind
    assert look_at(named).kind == "group"


def test_counts_have_their_name_and_only_consecutive_numbers_number_the_records() -> None:
    counted = [["30"], ["4"], ["12"], ["7"]]
    for name in ("Quantity", "votes", "weight"):
        hint = f"The column {name!r} is not used. If it says how often, use columns='count={name}'."
        assert look_at(counted, name).sentence == look_at(counted * 20, name).sentence == hint
    assert look_at(counted).sentence == "The column 'column' is not used: all of its values differ."
    assert look_at(counted * 20).kind == "group"
    assert look_at([["2", "0"], ["1", "0"]] * 20, "quantity").sentence == "The column 'quantity' is not used."
    assert look_at(counted, "quantity", roles={"count": "n"}).kind == "identifier"


def test_prices_have_their_name_or_two_decimals_that_vary_within_records() -> None:
    whole, cents, mills = ([[f"{2 + number % 3}{end}", "4.00"] for number in range(40)] for end in ("", ".50", ".505"))
    assert [look_at(cells, "price").kind for cells in (whole, cents, mills)] == ["price"] * 3
    assert [look_at(cells).kind for cells in (whole, cents, mills)] == ["other", "price", "other"]
    assert look_at([["-1.50", "4.00"], *cents], "price").kind != "price"
    assert look_at([["0.00", "4.00"], *cents], "price").kind == "price"
    few = [[f"{2 + number % 2}.50", "4.50"] for number in range(30)]  # 3 values in 60 cells: one for 20 of them
    assert look_at(few).kind == "price"
    assert look_at(few[:-1]).kind == "other"


@pytest.mark.parametrize("name", ["price", "unit_price", "Price.tea", "prices", "Preis pro Stück", "fare"])
def test_names_of_prices(name: str) -> None:
    assert look_at([[f"{2 + number % 3}", "4"] for number in range(30)], name).kind == "price"


@pytest.mark.parametrize("name", ["priced", "unfair", "cheapprice"])
def test_names_that_are_not_of_prices(name: str) -> None:
    assert look_at([[f"{2 + number % 3}", "4"] for number in range(30)], name).kind == "other"


def test_times_are_told_from_first_to_last() -> None:
    days = [[f"2024-05-{number:02}"] for number in range(10, 20)]
    found = look_at(days)
    assert (found.kind, found.evidence) == ("time", {"first": 1715299200.0, "last": 1716076800.0})
    assert found.sentence.startswith(
        "The model ignores when a choice was made ('column', 10 May 2024 to 19 May 2024); "
    )
    assert look_at(days, span=(1e9, 1.1e9)).evidence == {"first": 1e9, "last": 1.1e9}
    assert look_at([*days, ["soon"]]).kind != "time"
    seconds = [[str(1_700_000_000 + 1000 * number)] for number in range(10)]
    assert look_at(seconds).kind != "time"  # numbers are times by their name alone
    assert look_at(seconds, " Time ").kind == "time"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (99_999_999.0, "1e+08"),
        (1e8, "3 March 1973"),
        (99_999_999_999.0, "16 November 5138"),
        (1e11, "1e+11"),
        (5.0, "5"),
    ],
)
def test_dates_are_dates_between_1973_and_5138(seconds: float, words: str) -> None:
    assert _date(seconds) == words


def test_numbers_may_have_one_in_twenty_that_is_none() -> None:
    known = [str(number) for number in range(19)]
    assert len(_numbers([*known, "none"])) == 19
    assert _numbers([*known[:-1], "none"]) == {}
    assert _numbers(["1,5", "2,25"]) == {"1,5": 1.5, "2,25": 2.25}
    assert _numbers(["1e15", "2"]) == {}
    assert _numbers([*known, "999999999999999"])["999999999999999"] == 1e15 - 1


def test_missing_prices_are_the_mean_of_the_others() -> None:
    cells: Any = {(0, (1.0, np.nan)): 2.0, (1, (3.0, 0.5)): 1.0, (0, (np.nan, 1.5)): 4.0, (1, (np.nan, np.nan)): 1.0}
    weights, chosen, prices = _arrays(cells)
    assert (weights.tolist(), chosen.tolist()) == ([2.0, 1.0, 4.0, 1.0], [0, 1, 0, 1])
    assert prices.tolist() == [[1.0, 1.0], [3.0, 0.5], [2.0, 1.5], [2.0, 1.0]]


def test_only_significant_differences_of_a_point_are_warned_of() -> None:
    facts = {"item": "tea", "value": "north", "points": 1.0, "values": 2}
    entry = UnusedColumn("store", "group", "store has 2 values; choices do not differ.", facts, 0.002)
    found = _with_warning(entry, 3, "by='store'")
    assert found.p_value == pytest.approx(0.006)
    assert found.sentence == "store has 2 values that differ: fit one model for each with by='store'."
    assert "('tea' +1 points where it is 'north', p = 0.006)" in found.warning
    assert _with_warning(entry, 5, "").warning == ""  # 5 x 0.002 is no less than 1 %
    assert _with_warning(entry, 5, "").sentence == entry.sentence
    assert _with_warning(entry, 600, "").p_value == 1.0
    for points, is_told in ((0.99, False), (-0.99, False), (-1.0, True)):
        less = UnusedColumn("store", "group", "a; b", facts | {"points": points}, 1e-20)
        assert bool(_with_warning(less, 1, "").warning) == is_told
        assert ("p < 1e-16" in _with_warning(less, 1, "").warning) == is_told
    assert _with_warning(UnusedColumn("x", "other", "x"), 4, "") == UnusedColumn("x", "other", "x")
    price = _with_warning(UnusedColumn("a,b,c", "price", "s", {}, 1e-5), 1, "prices='a'")
    assert price.warning == (
        "Price in 3 columns is ignored, but choices depend on it (p = 1e-05): fit again with prices='a'."
    )
    assert price.sentence == "s"


def test_columns_are_used_beside_those_that_divide_already() -> None:
    job: Any = SimpleNamespace(
        layout=SimpleNamespace(format="long"), source=SimpleNamespace(columns=[]), split=SimpleNamespace(by=("city",))
    )
    assert _Look(job, [], None).option("group", "store") == "by=['city', 'store']"
    assert _Look(job, [], None).option("price", "cost") == "prices='cost'"
    job.split.by = ()
    assert _Look(job, [], None).option("group", "store") == "by='store'"


def grouped(records: list[_Record], groups: list[str]) -> UnusedColumn:
    job: Any = SimpleNamespace(
        layout=SimpleNamespace(format="long"), source=SimpleNamespace(columns=[]), split=SimpleNamespace(by=())
    )
    return _Look(job, records, None)._group("store", groups)


def test_a_group_is_described_by_the_item_that_it_chooses_most_unlike_others(monkeypatch: pytest.MonkeyPatch) -> None:
    offer, chosen = ("tea", "pie", "egg"), ["tea"] * 30 + ["pie"] * 20 + ["tea"] * 10 + ["pie"] * 30 + ["egg"] * 10
    records = [_Record(offer, item, "", 1.0, []) for item in chosen]
    groups = ["north"] * 50 + ["south"] * 50
    found = grouped(records, groups)
    # 30 of 50 have tea in the north, 40 of 100 in all
    assert found.evidence == {"values": 2, "value": "north", "item": "tea", "points": pytest.approx(20.0)}
    table = np.array([[30.0, 20.0, 0.0], [10.0, 30.0, 10.0]])
    rows, columns, size = table.sum(axis=1), table.sum(axis=0), table.sum()
    statistic = ((table - np.outer(rows, columns) / size) ** 2 / np.outer(rows, columns) * size).sum() * 99 / 100
    assert found.p_value == pytest.approx(chi2.sf(statistic, 2))
    monkeypatch.setattr(unused_columns, "MAX_TESTED_OFFERS", 1)
    others = [_Record(("tea", "pie"), "tea" if number % 2 else "pie", "", 1.0, []) for number in range(20)]
    assert grouped([*others, *records], ["south"] * 20 + groups).p_value == found.p_value  # the larger offer is used


def test_groups_without_a_common_offer_are_fitted_apart() -> None:
    records = [_Record(("tea", store), "tea", "", 1.0, []) for store in ("a", "b") for _ in range(25)]
    found = grouped(records, ["north"] * 25 + ["south"] * 25)
    assert found.sentence == "store has 2 values, which share no offer: fit one model for each with by='store'."
    assert (found.evidence, found.p_value) == ({"values": 2}, None)


def test_items_and_groups_are_tested_from_twenty_choices_on() -> None:
    offer = ("tea", "pie", "egg")
    job: Any = SimpleNamespace(
        layout=SimpleNamespace(format="long"), source=SimpleNamespace(columns=[]), split=SimpleNamespace(by=())
    )
    records = [
        _Record(offer, "egg", "", 19.0, []),
        _Record(offer, "pie", "", 20.0, []),
        _Record(offer, "tea", "", 60.0, []),
    ]
    assert _Look(job, records, None).tested == {"tea": 0, "pie": 1}


def test_prices_count_items_whose_price_varies() -> None:
    rows = [{"tea": "3", "pie": "4"}, {"tea": "3.5", "pie": "4"}, {"tea": "", "egg": "x"}]
    job: Any = SimpleNamespace(
        layout=SimpleNamespace(format="transactions"), source=SimpleNamespace(columns=[]), split=SimpleNamespace(by=())
    )
    look = _Look(job, [], None)
    assert look._price("price", rows[:2]) == UnusedColumn(
        "price",
        "price",
        "price varies for 1 of 2 items chosen: write prices into the offers, as in tea@3.50;cake@4, and add "
        "prices='offered'.",
        {"varying": 1, "items": 2},
    )
    same = look._price("a,b", [rows[0], rows[0]])
    assert same.sentence == "Price in 2 columns is not used: no item's price varies."
    assert same.evidence == {"varying": 0, "items": 2}


def test_prices_are_tested_relative_to_the_mean_of_the_item(monkeypatch: pytest.MonkeyPatch) -> None:
    prices: list[Any] = []

    def p_value(arrays: Any) -> float:
        prices.append(next(iter(arrays))[2])
        return 0.03

    monkeypatch.setattr(unused_columns, "price_p_value", p_value)
    found = [float("nan"), 0.01, 0.8]
    monkeypatch.setattr(unused_columns, "logit_price_p_value", lambda _: found.pop(0))
    cells = [("2", "10", "0"), ("4", "10", "0"), ("6", "30", "0")]
    records = [_Record(("tea", "pie", "tap"), "tea", "", 1.0, []) for _ in cells]
    rows = [dict(zip(("tea", "pie", "tap"), row, strict=True)) for row in cells]
    job: Any = SimpleNamespace(
        layout=SimpleNamespace(format="wide"), source=SimpleNamespace(columns=[]), split=SimpleNamespace(by=())
    )
    look = _Look(job, records, None)
    # levels of 2, 4 and 6 have the mean 4, those of 10 and 30 the mean 20; what is free has no mean to divide by
    assert [look._price("price", rows).p_value for _ in range(3)] == [0.03, 0.02, 0.06]  # the smaller, times the tests
    assert prices[0].tolist() == [[0.5, 0.5, 0.0], [1.0, 0.5, 0.0], [1.5, 1.5, 0.0]]


def test_p_values_are_corrected_for_the_columns_that_could_be_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    p_values = {"a": 0.02, "b": None, "c": 0.4, "d": None, "e": None}
    job: Any = SimpleNamespace(
        layout=SimpleNamespace(format="long", by_id=False), split=SimpleNamespace(by=()), used={"item"},
        source=SimpleNamespace(columns=["item", *p_values]),
    )  # fmt: skip
    monkeypatch.setattr(unused_columns, "_sample", lambda *_: [])
    monkeypatch.setattr(_Look, "at_column", lambda _, name: UnusedColumn(name, "other", "s", {}, p_values[name]))
    found = {column.name: column.p_value for column in unused_columns.find_unused(job)}
    assert found == {"a": 0.04, "b": None, "c": 0.8, "d": None, "e": None}  # two tests of five
    job.used = set(job.source.columns)
    assert unused_columns.find_unused(job) == ()
