"""Bad cells in every column of receipts, stock logs, visits and price lists: a place, a sentence, and no crash."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import rankstream as rs
from rankstream.data.readers.problems import BadRecordError
from rankstream.data.readers.sales.tables import SalesTable

DAY = "2026-03-02"
TABLES: dict[str, Any] = {
    "receipts": pd.DataFrame(
        {
            "time": [f"{DAY} 09:00", f"{DAY} 11:00"], "store": "York", "item": ["tea", "pie"], "receipt": ["a", "b"],
            "quantity": ["1", "2"], "price": ["3.0", "4.0"],
        }
    ),
    "stock": pd.DataFrame(
        {"time": [f"{DAY} 08:00"] * 2, "store": "York", "item": ["tea", "pie"], "on_hand": ["5", "3"]}
    ),
    "visits": pd.DataFrame({"time": [f"{DAY} 08:00", f"{DAY} 10:00"], "store": "York", "count": ["9", "9"]}),
    "prices": pd.DataFrame({"time": ["2026-03-01"] * 2, "store": "York", "item": ["tea", "pie"], "price": ["3", "4"]}),
}  # fmt: skip
GARBAGE = {
    "time": ["", "soon", "2026-13-01", "99999999999999999999", "nan"],
    "store": ["", "  "],
    "item": ["", "\t"],
    "quantity": ["", "two", "nan", "inf", "1e999"],
    "price": ["free", "-1", "inf"],
    "on_hand": ["", "many", "nan"],
    "count": ["", "-3", "lots", "nan"],
}
CASES = [
    (table, column, cell)
    for table, frame in TABLES.items()
    for column in frame.columns
    for cell in GARBAGE.get(column, [])
    if (table, column, cell) != ("prices", "price", "")
]


def written(folder: Path, **frames: pd.DataFrame) -> dict[str, Any]:
    found = {}
    for name, frame in (TABLES | frames).items():
        frame.to_csv(folder / f"{name}.csv", index=False)
        found[name] = folder / f"{name}.csv"
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is counted where no cell is bad."""
    return rs.read_sales(**written(tmp_path_factory.mktemp("good"))).counts.digest()


@pytest.mark.parametrize(("table", "column", "cell"), CASES)
def test_a_bad_cell_is_an_error_with_its_place_or_is_skipped(
    tmp_path: Path, table: str, column: str, cell: str, expected: str
) -> None:
    frame = TABLES[table].astype(object)
    bad = pd.concat([frame, frame.iloc[[0]].assign(**{column: cell})], ignore_index=True)
    if table == "receipts" and column != "receipt":
        bad.loc[2, "receipt"] = "c"
    files = written(tmp_path, **{table: bad})
    with pytest.raises(ValueError, match=rf"{table}.csv, line 4: .*(empty|not|beyond)"):
        rs.read_sales(**files)
    rejects = tmp_path / "rejects.csv"
    found = rs.read_sales(**files, on_error="skip", rejects=rejects)
    assert found.problems.total == 1
    assert found.counts.digest() == expected
    assert len(pd.read_csv(rejects)) == 1


OTHER_FORMS: dict[str, pd.DataFrame] = {
    "stock": TABLES["stock"].drop(columns=["on_hand", "time"]).assign(**{"from": f"{DAY} 08:00", "to": f"{DAY} 20:00"}),
    "visits": TABLES["visits"].rename(columns={"time": "from"}).assign(to=[f"{DAY} 09:59", f"{DAY} 11:59"]),
    "prices": TABLES["prices"].rename(columns={"time": "from"}).assign(to=f"{DAY} 20:00"),
}
AVAILABLE = TABLES["stock"].drop(columns="on_hand").assign(available=["yes", "1"])
OTHER_CASES = [(table, frame, column) for table, frame in OTHER_FORMS.items() for column in ("from", "to")]


@pytest.mark.parametrize(("table", "frame", "column"), [*OTHER_CASES, ("stock", AVAILABLE, "available")])
def test_bad_cells_of_other_forms_are_errors_or_skipped(
    tmp_path: Path, table: str, frame: pd.DataFrame, column: str
) -> None:
    bad = pd.concat([frame, frame.iloc[[0]].astype(object).assign(**{column: "perhaps"})], ignore_index=True)
    with pytest.raises(ValueError, match=rf"{table}.csv, line 4: .*'perhaps'"):
        rs.read_sales(**written(tmp_path, **{table: bad}))
    skipped = rs.read_sales(**written(tmp_path, **{table: bad}), on_error="skip")
    assert skipped.problems.total == 1
    assert skipped.counts.digest() == rs.read_sales(**written(tmp_path, **{table: frame})).counts.digest()


@pytest.mark.parametrize("table", list(TABLES))
@pytest.mark.parametrize("column", ["time", "item", "price"])
def test_a_missing_column_is_named(tmp_path: Path, table: str, column: str) -> None:
    if column not in TABLES[table] or (table, column) == ("receipts", "price"):
        return
    files = written(tmp_path, **{table: TABLES[table].drop(columns=column)})
    with pytest.raises(ValueError, match=r"no column|names no items"):
        rs.read_sales(**files)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conflicts": "ignore"}, "conflicts is 'ignore': choose one of 'extend', 'skip', 'stop'"),
        ({"per_receipt": "all"}, "per_receipt is 'all'"),
        ({"duplicates": "no"}, "duplicates is 'no'"),
        ({"on_error": "go"}, "on_error is 'go'"),
        ({"stock_format": "list"}, "stock_format is 'list'"),
        ({"max_offers": 0}, "max_offers"),
        ({"by": "region"}, "by is 'region', but sales can only be grouped by store or category: use by='store'"),
        ({"columns": "shelf=a"}, "Unknown column role 'shelf'"),
        ({"columns": "item=sku"}, "No table has the column 'sku' for 'item'"),
        ({"since": "yesterday"}, "'yesterday'"),
        ({"memory": "lots"}, "The memory 'lots' is not a size"),
        ({"category": "kind"}, "has no column 'kind'"),
        ({"until": "2020-01-01"}, "no sales that can be used"),
        ({"items": ["cake"]}, "no sales that can be used"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rs.read_sales(**written(tmp_path), **options)


def test_rejects_never_overwrite_a_table(tmp_path: Path) -> None:
    files = written(tmp_path)
    with pytest.raises(ValueError, match="would overwrite"):
        rs.read_sales(**files, rejects=files["stock"])
    assert files["stock"].stat().st_size > 0


def test_stores_that_one_table_does_not_name(tmp_path: Path) -> None:
    two = pd.concat([TABLES["stock"], TABLES["stock"].assign(store="Bath")])
    for table in ("receipts", "visits"):
        files = written(tmp_path, stock=two, **{table: TABLES[table].drop(columns="store")})
        with pytest.raises(ValueError, match=f"{table}.csv has no column of stores, and there are 2 stores"):
            rs.read_sales(**files)


def test_tills_names_decimal_commas_and_dates(tmp_path: Path) -> None:
    till = pd.DataFrame(
        {"Date": ["02.03.2026 09:00", "02.03.2026 11:00"], "Shop": "York", "SKU": ["tea", "pie"],
         "Transaction_ID": ["a", "b"], "Qty": ["1", "2"], "Unit_Price": ["3,00", "4,00"]}
    )  # fmt: skip
    expected = rs.read_sales(**written(tmp_path))
    till.to_csv(tmp_path / "receipts.csv", index=False, sep=";")
    files: dict[str, Any] = {name: tmp_path / f"{name}.csv" for name in TABLES}
    found = rs.read_sales(**files)
    assert found.counts.digest() == expected.counts.digest()
    assert any("decimal commas" in note for note in found.notes)


def test_parquet_json_and_frames_are_read_alike(tmp_path: Path) -> None:
    files = written(tmp_path)
    expected = rs.read_sales(**files).counts.digest()
    assert rs.read_sales(**TABLES).counts.digest() == expected
    for name, frame in TABLES.items():
        frame.to_parquet(tmp_path / f"{name}.parquet")
        frame.to_json(tmp_path / f"{name}.jsonl", orient="records", lines=True)
    for ending in ("parquet", "jsonl"):
        files = {name: tmp_path / f"{name}.{ending}" for name in TABLES}
        assert rs.read_sales(**files).counts.digest() == expected
    typed: dict[str, Any] = {name: frame.assign(time=pd.to_datetime(frame.time)) for name, frame in TABLES.items()}
    assert rs.read_sales(**typed).counts.digest() == expected


def test_columns_are_named_for_all_tables_or_for_one(tmp_path: Path) -> None:
    files = written(tmp_path, stock=TABLES["stock"].rename(columns={"item": "what", "on_hand": "left"}))
    found = rs.read_sales(**files, columns="stock.item=what,on_hand=left")
    assert found.roles["stock.item"] == "what"
    assert found.counts.digest() == rs.read_sales(**written(tmp_path)).counts.digest()


def test_what_duckdb_cannot_read_is_read_row_by_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    paths = written(tmp_path)
    expected = rs.read_sales(paths["receipts"], paths["stock"], visits=paths["visits"])
    for error in (duckdb.ConversionException, duckdb.InvalidInputException, UnicodeError):

        def fail(*_: Any, error: type[Exception] = error) -> bool:
            raise error("no")

        monkeypatch.setattr(SalesTable, "_scanned", fail)
        found = rs.read_sales(paths["receipts"], paths["stock"], visits=paths["visits"])
        assert found.counts.digest() == expected.counts.digest()
    monkeypatch.setattr(SalesTable, "_scanned", lambda *_: False)  # some cell is bad
    assert rs.read_sales(paths["receipts"], paths["stock"]).rows == 2


@pytest.mark.parametrize(
    ("window", "left"),
    [({}, 2), ({"since": f"{DAY} 09:00"}, 2), ({"since": f"{DAY} 09:01"}, 1), ({"until": f"{DAY} 11:00"}, 1),
     ({"until": f"{DAY} 11:01"}, 2), ({"since": f"{DAY} 10:00", "until": f"{DAY} 10:30"}, 0)],
)  # fmt: skip
def test_a_window_of_time_includes_its_beginning_and_not_its_end(
    tmp_path: Path, window: dict[str, Any], left: int
) -> None:
    paths = written(tmp_path, receipts=TABLES["receipts"].assign(quantity="1"))
    if left:
        assert rs.read_sales(paths["receipts"], paths["stock"], **window).counts.observations == left
    else:
        with pytest.raises(ValueError, match="has no sales that can be used"):
            rs.read_sales(paths["receipts"], paths["stock"], **window)


@pytest.mark.parametrize(("role", "words"), [("price", "0"), ("price", "3.5"), ("count", "0")])
def test_nothing_is_a_price_and_a_count(role: str, words: str) -> None:
    table = SalesTable("receipts", None, {})  # type: ignore[arg-type]
    assert table._value(role, "number", {role: words}, None) == float(words)  # type: ignore[arg-type]
    for wrong in ("-0.5", "inf", "nan", "x"):
        with pytest.raises(BadRecordError, match="of at least 0"):
            table._value(role, "number", {role: wrong}, None)  # type: ignore[arg-type]
