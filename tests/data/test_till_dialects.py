"""The same visits as different tills write them: every export gives the counts of the clean file."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankstream import ChoiceCounts, read
from rankstream.data.readers.dialect import COMMA, DMY, MDY, Rewritten, date_rule, decimal_rule, rewrite
from rankstream.data.readers.sources.files import open_source
from shell import run
from till import visits

VISITS = visits(120, seed=3)
DAYS = VISITS.date


def german(table: pd.DataFrame) -> pd.DataFrame:
    prices = table.Price.map(lambda price: f"{price:.2f}".replace(".", ","))
    return table.assign(Price=prices, date=DAYS.dt.strftime("%d.%m.%Y %H:%M"))


def named(*names: str) -> pd.DataFrame:
    return VISITS.set_axis(list(names), axis=1)


def with_missing_stock(stock: Callable[[bool, bool], Any]) -> pd.DataFrame:
    """All items on every receipt; those that were not on the shelf are marked by ``stock``."""
    whole = VISITS.pivot_table(index="obs_id", columns="item", values="chosen")
    rows = [
        (f"R{visit}", item, int(flag == 1), stock(not np.isnan(flag), flag == 1))
        for visit, flags in whole.iterrows()
        for item, flag in flags.items()
    ]
    return pd.DataFrame(rows, columns=["receipt", "product", "purchased", "in_stock"])


CLEAN: dict[str, Any] = {"prices": "Price", "no_choice": "nothing"}
PRICED: dict[str, tuple[pd.DataFrame, dict[str, Any], dict[str, Any]]] = {
    "semicolons": (VISITS, {"sep": ";"}, {}),
    "byte order mark": (VISITS, {"encoding": "utf-8-sig"}, {}),
    "decimal commas": (german(VISITS), {"sep": ";"}, {}),
    "quoted decimal commas": (german(VISITS), {"sep": ","}, {}),
    "latin": (german(VISITS), {"sep": ";", "encoding": "utf-16"}, {"encoding": "utf-16"}),
    "tabs and slashes": (VISITS.assign(date=DAYS.dt.strftime("%m/%d/%Y")), {"sep": "\t"}, {}),
    "product": (named("receipt_id", "product", "bought", "price", "shop", "timestamp"), {}, {"prices": "price"}),
    "article": (named("transaction", "article", "purchased", "price", "store", "date"), {}, {"prices": "price"}),
    "sku": (named("order_id", "sku", "quantity", "Price", "store", "time"), {}, {}),
    "weights": (
        named("receipt", "sku", "quantity", "Price", "store", "date").assign(
            quantity=lambda rows: rows.quantity.map({0: "0,000", 1: "2,000"})
        ),
        {"sep": ";"},
        {},
    ),
    "a row number": (VISITS.assign(id=range(len(VISITS))), {}, {}),
    "identifiers beside items": (
        named("receipt", "article", "bought", "Price", "store", "date").assign(
            item=lambda rows: rows.receipt * 7, item_id=range(len(VISITS))
        ),
        {},
        {},
    ),
}


def same(found: ChoiceCounts, wanted: ChoiceCounts) -> None:
    assert found.assortments == wanted.assortments
    assert found.tallies.tolist() == wanted.tallies.tolist()


@pytest.mark.parametrize("name", PRICED)
def test_every_till_gives_the_same_counts(name: str, tmp_path: Path) -> None:
    table, written, options = PRICED[name]
    table.to_csv(tmp_path / "till.csv", index=False, **written)
    wanted = read(VISITS, **CLEAN)
    found = read(tmp_path / "till.csv", **CLEAN | options)
    same(found.counts, wanted.counts)
    same(read(table, **CLEAN | options).counts if "encoding" not in options else found.counts, wanted.counts)
    assert found.prices == wanted.prices


def test_the_account_says_how_columns_were_read(tmp_path: Path) -> None:
    german(VISITS).to_csv(tmp_path / "till.csv", index=False, sep=";")
    found = read(tmp_path / "till.csv", **CLEAN, time_slices=4)
    assert sorted(found.notes) == ["Price is read as numbers with decimal commas.", "date is read as day, month, year."]
    assert found.times == read(VISITS, **CLEAN, time_slices=4).times
    assert read(VISITS, **CLEAN).notes == ()
    done = run("fit", "till.csv", "--no-choice", "nothing", "--method", "mnl", cwd=tmp_path)
    assert "date is read as day, month, year." in done.stderr
    assert "Price varies for 4 of 4 items" in done.stderr


def test_quick_and_slow_see_the_same(tmp_path: Path) -> None:
    """A bad record sends the whole file the slow way, which then counts all others alike."""
    german(VISITS).to_csv(tmp_path / "till.csv", index=False, sep=";")
    quick = read(tmp_path / "till.csv", **CLEAN, half_life="30d")
    with (tmp_path / "till.csv").open("a") as file:
        file.write("9;Skyr Plain;perhaps;1,50;West;02.03.2026 08:03\n")
    slow = read(tmp_path / "till.csv", **CLEAN, half_life="30d", on_error="skip")
    assert slow.problems.total == 1
    assert slow.counts.assortments == quick.counts.assortments
    np.testing.assert_allclose(slow.counts.tallies, quick.counts.tallies)


@pytest.mark.parametrize("as_file", [True, False])
@pytest.mark.parametrize(
    "stock",
    [
        lambda there, _: int(there),
        lambda there, _: "yes" if there else "no",
        lambda there, _: 12 if there else 0,
        lambda there, chosen: int(there and not chosen),  # the last one was sold
    ],
)
def test_what_was_not_in_stock_was_not_offered(
    stock: Callable[[bool, bool], Any], as_file: bool, tmp_path: Path
) -> None:
    table = with_missing_stock(stock)
    table.to_csv(tmp_path / "till.csv", index=False)
    found = read(tmp_path / "till.csv" if as_file else table, no_choice="nothing")
    same(found.counts, read(VISITS, no_choice="nothing").counts)
    table = table.astype({"in_stock": object})
    table.loc[3, "in_stock"] = "perhaps"
    table.to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(ValueError, match="availability 'perhaps' of the item"):
        read(tmp_path / "bad.csv" if as_file else table, no_choice="nothing")


def test_transactions_of_a_till() -> None:
    table = pd.DataFrame({"receipt_id": [1, 2, 3], "available": ["a;b", "a;b", "b;c"], "bought": ["a", "b", "c"]})
    wanted = read(table.rename(columns={"available": "offered", "bought": "chosen"})).counts
    same(read(table).counts, wanted)
    same(read(table.rename(columns={"bought": "product"})).counts, wanted)
    counted = table[["available", "bought"]].rename(columns={"bought": "product"}).assign(quantity=2)
    assert read(counted).counts.tallies.tolist() == (2 * wanted.tallies).tolist()


def test_identifiers_are_no_items_of_a_wide_table() -> None:
    table = pd.DataFrame(
        {"tea": [1, 1, 0, 1, 1], "pie": [1, 0, 1, 1, 1], "chosen": ["tea", "tea", "pie", "pie", "tea"]}
    )
    more = table.assign(
        till=[7, 8, 9, 10, 11], line=range(5), price_tea=[1.0, 2.5, 2.0, 1.5, 1.0], cashier=list("abcab")
    )
    found = read(more)
    same(found.counts, read(table).counts)
    assert [column.name for column in found.unused] == ["price_tea", "till", "line", "cashier"]


def test_commas_and_dates_from_the_whole_column() -> None:
    assert decimal_rule({"9,99", "9.999,99"}) == COMMA
    assert decimal_rule({"9,999", "9,99"}) == COMMA
    for shapes in ({"9,999"}, {"9.99", "9,99"}, {"9", "9.99"}, {"9,999.99"}, set[str](), {"x"}):
        assert decimal_rule(shapes) is None
    assert date_rule({"99.99.9999 99:99"}) == DMY
    assert date_rule({"99/99/9999", "L/99/9999"}) == DMY
    assert date_rule({"99/99/9999", "99/L/9999"}) == MDY
    for shapes in ({"99/99/9999"}, {"L/99/9999", "99/L/9999"}, {"9999-99-99"}, set[str]()):
        assert date_rule(shapes) is None


def test_what_cannot_be_recognised_can_be_said(tmp_path: Path) -> None:
    days = ["02/03/2026", "03/03/2026"] * 2
    table = pd.DataFrame({"time": days, "offered": "a;b", "chosen": list("aabb")})
    with pytest.raises(ValueError, match="set dates='dmy'"):
        read(table, half_life="1d")
    firsts = [read(table, half_life="1d", dates=order).times for order in ("dmy", "mdy")]
    assert [pd.Timestamp(times[0], unit="s").month for times in firsts if times] == [3, 2]
    prices = VISITS.assign(Price="1,299")
    with pytest.raises(ValueError, match="price of"):
        read(prices, **CLEAN)
    assert read(prices, **CLEAN, decimal=",").prices.levels["Oat Drink"] == (1.299,)  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="decimal is ';': choose one of"):
        read(VISITS, decimal=";")
    with pytest.raises(ValueError, match="dates is 'ymd': choose one of"):
        read(VISITS, dates="ymd")
    german(VISITS).to_csv(tmp_path / "till.csv", index=False, sep=";")
    words = ("--no-choice", "nothing", "--price-columns", "Price", "--decimal", ",", "--dates", "dmy")
    assert run("fit", "till.csv", *words, "--method", "mnl-price", cwd=tmp_path).returncode == 0
    assert "--decimal , --dates dmy" in run("show", "model.json", cwd=tmp_path).stdout


OFFERS = ["tea@3,50;cake@4", "tea@3,00;cake@4,25", "tea@3,50", "tea@1.299,00;cake@4"]
CHOICES = ["tea", "cake@4,25", "tea", ""]


@pytest.mark.parametrize("mark", [";", "|"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "frame", "mappings"])
def test_decimal_commas_inside_offers(kind: str, mark: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"offered": [offer.replace(";", mark) for offer in OFFERS], "chosen": CHOICES})
    if kind == "mappings":
        pairs = [dict(part.split("@") for part in offer.split(";")) for offer in OFFERS]
        table = table.assign(offered=[json.dumps(prices) for prices in pairs])
    source: Any = tmp_path / f"till.{'jsonl' if kind == 'jsonl' else 'csv'}"
    if kind == "frame":
        source = table
    elif kind == "jsonl":
        source.write_text(table.to_json(orient="records", lines=True))
    else:
        table.to_csv(source, index=False)
    found = read(source, prices="offered", no_choice="nothing")
    assert found.notes == ("offered is read as numbers with decimal commas.",)
    assert found.prices is not None
    assert found.prices.levels == {"tea": (3.0, 3.5, 1299.0), "cake": (4.0, 4.25)}
    assert found.counts.observations == 4
    with pytest.raises(ValueError, match="price of 'tea' is '3,50', which is not a number"):
        read(source, prices="offered", no_choice="nothing", decimal=".")


def test_offers_of_one_priced_item_are_not_split_at_its_comma(tmp_path: Path) -> None:
    (tmp_path / "till.csv").write_text('offered,chosen\n"tea@3,50",tea\n"tea@3,25",\n')
    found = read(tmp_path / "till.csv", prices="offered", no_choice="nothing")
    assert found.prices is not None
    assert found.prices.levels == {"tea": (3.25, 3.5)}
    (tmp_path / "codes.csv").write_text('offered,chosen\n"7@3,0",7\n"7@3,0",0\n')  # 0 is an item without a price
    assert read(tmp_path / "codes.csv", prices="offered").counts.assortments.items == ("0", "7 @ 3.00")


CELL = st.text("0123456789.,/-: TLa", max_size=12) | st.sampled_from(
    ["2,49", "02.03.2026 08:03", "31/12/2025", "1.299,5"]
)


@given(st.lists(CELL, min_size=1, max_size=20), st.sampled_from([COMMA, DMY, MDY, "positive"]))
def test_duckdb_rewrites_as_python_does(cells: list[str], rule: str) -> None:
    import tempfile

    from rankstream.data.readers.sources.database import connected

    with tempfile.TemporaryDirectory() as folder, connected() as connection:
        path = Path(folder) / "cells.csv"
        pd.DataFrame({"cell": cells, "number": range(len(cells))}).to_csv(path, index=False)
        source = Rewritten(open_source(path), {"cell": rule})
        table = source.table(connection, ["cell"])
        if table is not None:
            found = connection.execute(f"SELECT cell FROM {table} ORDER BY CAST(number AS INTEGER)").fetchall()
            assert [cell or "" for (cell,) in found] == [rewrite(rule, cell) for cell in cells]


@given(st.data())
def test_hostile_tables_are_read_or_refused(data: st.DataObject) -> None:
    names = st.sampled_from(
        ["receipt", "product", "bought", "quantity", "available", "in_stock", "price", "store", "date", "id", "x"]
    )
    columns = data.draw(st.lists(names, min_size=1, max_size=7, unique=True))
    cell = CELL | st.sampled_from(["0", "1", "", "a;b", "a", "b", "3.5"])
    rows = data.draw(st.lists(st.tuples(*[cell] * len(columns)), min_size=1, max_size=8))
    with suppress(ValueError):
        read(pd.DataFrame(rows, columns=columns), on_error="skip", no_choice="nothing")


@pytest.mark.parametrize("mark", ["2.49", "2,49"])
def test_constants_and_mixed_decimals_do_not_crash(mark: str) -> None:
    mixed = VISITS.assign(Price=[mark, "2.49", "2,49", "1"] * (len(VISITS) // 4) + ["1"] * (len(VISITS) % 4), note="x")
    assert {column.kind for column in read(mixed, no_choice="nothing").unused} <= {"price", "time", "group", "other"}
    assert len(read(VISITS.assign(store="x"), no_choice="nothing").unused) == 3
