"""The ways in which people write offers, files and options: read as they are meant, or refused with the remedy."""

import gzip
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rankstream.data.readers import read, read_counts
from rankstream.data.readers.job import Job
from rankstream.data.readers.sources.lines import MAX_LINE_BYTES

OFFERS = [["tea", "pie"], ["tea", "cake", "pie"], ["tea"]]
CHOSEN = ["pie", "tea", "tea"]
WRITTEN: dict[str, Callable[[list[str]], str]] = {
    ";": ";".join,
    " | ": " | ".join,
    ",": ",".join,
    "JSON": json.dumps,
    "Python": str,
}
BROKEN = r"the JSON array is broken \(at byte .*\): write one record per line"


@pytest.mark.parametrize("how", WRITTEN)
def test_offers_however_they_are_written(how: str, tmp_path: Path) -> None:
    wanted = read_counts(pd.DataFrame({"offered": OFFERS, "chosen": CHOSEN}))
    frame = pd.DataFrame({"offered": [WRITTEN[how](offer) for offer in OFFERS], "chosen": CHOSEN})
    frame.to_csv(tmp_path / "data.csv", index=False)
    counted = frame.set_axis(["offer", "item"], axis=1).assign(count=1)
    for source in (frame, counted, tmp_path / "data.csv"):
        for slow in (False, True):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Job, "quickly", lambda *_: None) if slow else patch.delattr(Job, "slowly")
                found = read_counts(source)
                assert found.assortments == wanted.assortments
                assert found.tallies.tolist() == wanted.tallies.tolist()


def test_names_that_hold_what_joins_others() -> None:
    frame = pd.DataFrame({"offered": ["Jam, Strawberry;Granola", "a|b;Granola"], "chosen": ["Granola", "a|b"]})
    assert read_counts(frame).assortments.items == ("Granola", "Jam, Strawberry", "a|b")
    late = pd.DataFrame({"offered": ["a;b"] * 1000 + ["a|b"], "chosen": "a"})
    with pytest.raises(ValueError, match=r"row 1000: the choice 'a' is not in its offer 'a\|b': .* separator='\|' if"):
        read(late)
    with pytest.raises(ValueError, match=r"the choice 'a' is not in its offer .\['a' 'b'\]"):  # as numpy writes it
        read(pd.DataFrame({"offered": ["['a' 'b']"], "chosen": ["a"]}))
    shelves = pd.DataFrame({"offer_id": [1], "offered": ["a|b"]})
    sold = pd.DataFrame({"offer_id": [1], "chosen": ["a"]})
    with pytest.raises(ValueError, match=r"choice 'a' is not in its offer 'a\|b': .*separator='\|' if"):
        read(sold, contents=shelves)
    assert read_counts(sold, contents=shelves, separator="|").assortments.items == ("a", "b")


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["data.json", "data.json.gz"])
@pytest.mark.parametrize("piece", [90, 97, 200, MAX_LINE_BYTES])
def test_all_records_in_one_array(
    piece: int, name: str, indent: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rankstream.data.readers.sources.lines.MAX_LINE_BYTES", piece)
    monkeypatch.setattr("rankstream.data.readers.sources.json.PEEK_CHARACTERS", 5)
    records: list[Any] = [{"offered": offer, "chosen": chosen} for offer, chosen in zip(OFFERS, CHOSEN, strict=True)]
    records *= 20
    path = tmp_path / name

    def write() -> None:
        content = f"\n {json.dumps(records, indent=indent)} \n".encode()
        path.write_bytes(gzip.compress(content, 1) if name.endswith("gz") else content)

    write()
    reading = read(path)
    assert (reading.rows, reading.counts.totals.tolist()) == (60, [20] * 3)
    records[3:5] = [{"offered": "tea", "chosen": "rum"}, 123456789]
    write()
    with pytest.raises(ValueError, match="record 4: the choice 'rum' is not in its offer"):
        read(path)
    assert (read(path, on_error="skip").rows, read(path, on_error="skip").problems.total) == (60, 2)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('[{"offered": "a;b", "chosen": "a"}', BROKEN),
        ('[{"offered": "a;b", "chosen": "a"},]', BROKEN),
        (
            '[{"offered": "a;b", "chosen": "a"} {"offered": "a;b"}]',
            BROKEN,
        ),
        ('[,{"offered": "a;b"}]', BROKEN),
        ('[{"offered": "a;b", "chosen": "a"}] []', BROKEN),
        ('[{"offered": "a;b", "chosen": "a"}' + ", 1" * 99, BROKEN),
        ("[" + "[" * 3 * MAX_LINE_BYTES, BROKEN),
        ("[5]", "record 1: this is not a JSON object"),
        ("5\n{}\n", "line 1: this is not a JSON object"),
        *((empty, "has no records") for empty in ("[]", "[{}]", "{}\n{}\n")),
    ],
)
def test_arrays_that_break_off(content: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=words):
        read(path, on_error="skip")


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "soi"])
def test_text_in_other_encodings(ending: str, tmp_path: Path) -> None:
    words = {
        "csv": "offered,chosen\ncafé;thé,thé\n",
        "jsonl": '{"offered": "café;thé", "chosen": "thé"}\n',
        "soi": "# NUMBER ALTERNATIVES: 2\n# ALTERNATIVE NAME 1: café\n# ALTERNATIVE NAME 2: thé\n1: 2,1\n",
    }[ending.removesuffix(".gz")]
    path = tmp_path / f"data.{ending}"
    content = words.encode("latin-1")
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    with pytest.raises(
        ValueError, match=r"in UTF-8: save it in UTF-8, or set its encoding, such as encoding='latin-1'"
    ):
        read(path)
    found = read_counts(path, encoding="latin-1")
    assert (found.assortments.items, found.tallies.tolist()) == (("café", "thé"), [0, 1])
    assert read_counts(path, encoding="cp1252").assortments.items == ("café", "thé")
    path.write_bytes(words.encode("utf-16")[:-1])
    with pytest.raises(ValueError, match=r"is not text in utf-16 .*: set encoding|not a complete gzip"):
        read(path, encoding="utf-16")


@pytest.mark.parametrize("packed", [False, True])
def test_arrays_are_in_utf8(packed: bool, tmp_path: Path) -> None:
    path = tmp_path / ("data.json.gz" if packed else "data.json")
    words = '[{"offered": "café;thé", "chosen": "thé"}]'
    for encoding in ("utf-8", "latin-1"):
        content = words.encode(encoding)
        path.write_bytes(gzip.compress(content) if packed else content)
        if encoding == "utf-8":
            assert read_counts(path).assortments.items == ("café", "thé")
    with pytest.raises(ValueError, match=r"is broken \(at byte .*invalid UTF-8.*\): write one record per line"):
        read(path)
    with pytest.raises(ValueError, match="is one JSON array: save it in UTF-8, or write one record per line"):
        read(path, encoding="latin-1")


def test_encodings_that_are_none() -> None:
    for encoding in ("klingon", "rot13", "hex", "unicode_escape", "undefined", "", 7, "a\0b"):
        options: dict[str, Any] = {"encoding": encoding}
        if encoding == "":
            assert read_counts(pd.DataFrame({"offered": ["a;b"], "chosen": ["a"]}), **options).observations == 1
            continue
        with pytest.raises(ValueError, match="Unknown encoding"):
            read(pd.DataFrame({"offered": ["a;b"], "chosen": ["a"]}), **options)


def test_columns_as_json() -> None:
    frame = pd.DataFrame({"Granola": [1, 1], "Jam, Strawberry": [1, 0], "n": [7, 7], "took": ["Granola", "Granola"]})
    columns = '{"items": ["Granola", "Jam, Strawberry"], "chosen": "took"}'
    assert read_counts(frame, columns=columns).assortments.items == ("Granola", "Jam, Strawberry")
    codes = '{"items": {"Granola": "1", "Jam, Strawberry": "2"}, "chosen": "took"}'
    assert read_counts(frame.assign(took=[2, 1]), columns=codes).tallies.tolist() == [1, 0, 1]
    always = ' {"offered": ["Granola", "Jam, Strawberry"], "chosen": "took"}'
    assert read_counts(frame, columns=always).tallies.tolist() == [2, 0]
    for columns, words in {
        "items=Granola;Jam, Strawberry": r"see ' Strawberry', and write names with a comma as JSON, such as",
        '{"items": ': "are not JSON: write them as",
        '{"chosen": 7}': "has no column 7 for 'chosen'",
        '{"chosen": ["took"]}': r"has no column \['took'\] for 'chosen'",
        "chosen=took,chosen=n": "map 'chosen' twice",
    }.items():
        with pytest.raises(ValueError, match=words):
            read(frame, columns=columns)


def test_workbooks_need_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "data.xlsx").write_bytes(b"")
    with pytest.raises(
        ValueError, match=r'install openpyxl \(pip install "\.\[excel\]" in a checkout\), or save it as CSV'
    ):
        read(tmp_path / "data.xlsx")


def test_workbooks(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    path = tmp_path / "data.xlsx"
    frame = pd.DataFrame(
        {"offered": ["a;b", "a;b", None, "a;b"], "chosen": ["a", "b", None, "x"], "count": [1, 2.5, None, 1]}
    )
    frame.to_excel(path, index=False)
    with pytest.raises(ValueError, match=r"data\.xlsx, row 5: the choice 'x' is not in its offer 'a;b'"):
        read(path)
    reading = read(path, on_error="skip")
    assert (reading.rows, reading.counts.tallies.tolist()) == (3, [1, 2.5])
    with pd.ExcelWriter(path) as writer:
        pd.DataFrame({"note": ["x"]}).to_excel(writer, sheet_name="notes", index=False)
        frame[:2].to_excel(writer, sheet_name="sales", index=False, startrow=3)
    with pytest.raises(ValueError, match="has the sheets 'notes', 'sales': choose one with sheet="):
        read(path)
    with pytest.raises(ValueError, match="there is none called 'sale'"):
        read(path, sheet="sale")
    assert read_counts(path, sheet="sales").tallies.tolist() == [1, 2.5]
    frame[:2].assign(x=1).to_excel(tmp_path / "other.xlsx", sheet_name="sales", index=False)
    with pytest.raises(ValueError, match="has different columns than"):
        read(str(tmp_path / "*.xlsx"), sheet="sales")


def test_workbooks_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openpyxl")
    path = tmp_path / "data.xlsx"
    for content in (b"", b"offered,chosen\na;b,a\n", b"PK\3\4" + bytes(99)):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"is not a complete Excel workbook \(BadZipFile\): save it again"):
            read(path)
    pd.DataFrame({"offered": ["a;b"], "chosen": ["a"]}).to_excel(path, index=False)
    with zipfile.ZipFile(path) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    members[sheet] = members[sheet].replace(b'<row r="2"', b'<row r="99999999"')
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    monkeypatch.setattr("rankstream.data.readers.sources.excel.MAX_SHEET_ROWS", 1000)
    with pytest.raises(ValueError, match="has more than 1,000 rows, the limit of Excel"):
        read(path)
    monkeypatch.setattr("rankstream.data.readers.sources.excel.MAX_UNPACKED_BYTES", 100)
    with pytest.raises(ValueError, match=r"unpacks to [0-9,]* bytes, beyond 100: save it as CSV"):
        read(path)
