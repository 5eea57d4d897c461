"""Files that the quick way and the slow one once read differently."""

import os
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from both_ways import agree, seen
from rankstream.data.readers import read
from rankstream.data.readers.job import Job

GOOD = '{"offered": "a;b", "chosen": "a", "store": "x"}'
ALWAYS = {"columns": {"offered": ["a", "b"], "chosen": "chosen"}, "no_choice": "none"}
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a bare CR in JSON": ("jsonl", GOOD + '\n{"offered": "a;b",\r"chosen": "a"}', {}),
    "a comma too many": ("jsonl", f"{GOOD}\n{GOOD[:-1]},}}", {}),
    "not a number": ("jsonl", GOOD + "\n" + GOOD[:-1] + ', "z": nan}', {}),
    "other blanks": ("jsonl", f"{GOOD}\n{GOOD}\x0b", {}),
    "nested deeply": ("jsonl", GOOD + "\n" + GOOD[:-1] + ', "z": ' + "[" * 2000 + "]" * 2000 + "}", {}),
    "no object": ("jsonl", '{"chosen": "a"}\nnull\n', ALWAYS),
    "a list for a group": ("jsonl", GOOD + '\n{"offered": "a;b", "chosen": "a", "store": ["x"]}', {"by": "store"}),
    "a fraction for a group": ("jsonl", GOOD + '\n{"offered": "a;b", "chosen": "a", "store": 1.0}', {"by": "store"}),
    "a fraction for a name": (
        "jsonl",
        "\n".join(
            f'{{"obs": {name}, "item": "{item}", "chosen": 1}}' for name, item in (("1", "a"), ("1.0", "b"), ("2", "a"))
        ),
        {},
    ),
    "a list for a number": (
        "jsonl",
        '{"offer_id": [1], "item": "a", "count": 1}\n{"offer_id": 1, "item": "a", "count": 1}',
        {},
    ),
    "a blank behind a quote": ("csv", 'offered,chosen,note\na;b,a,"x" \na;b,b,y\n', {}),
    "too many lines": ("csv", 'offered,chosen,note\na;b,a,x\na;b,b,"' + "\n" * 20 + '"\n', {}),
    "blank lines": ("csv", "chosen\na\n\nb\n", ALWAYS),
    "a blank number": ("csv", "offer_id,item,count\n\t,a,1\n\t,b,2\n1,a,1\n1,b,1\n", {}),
    "blanks around a number": ("csv", "offer_id,item,count\n1,a,1\n1\u00a0,b,2\n", {}),
    "an empty item": ("csv", "offer_id,item,count\n1,a,1\n1,,2\n2,a,1\n2,b,1\n", {"no_choice": "none"}),
    "blanks around a name": ("csv", 'obs,item,chosen\n1,a,1\n"1 ",b,1\n2,a,1\n', {}),
    "a day of one digit": ("csv", "offered,chosen,time\na;b,a,2024-1-5\na;b,b,2024-05-16\n", {"period": "day"}),
    "a time of one digit": ("csv", "offered,chosen,time\na;b,a,2024-1-5\na;b,b,2024-05-16\n", {"since": "2024-01-01"}),
    "a count in other digits": ("csv", "offered,chosen,count\na;b,a,\u0663\na;b,b,2\n", {}),
}


@pytest.mark.parametrize("case", CASES)
def test_both_ways_agree_on_what_once_told_them_apart(case: str, tmp_path: Path) -> None:
    ending, content, options = CASES[case]
    path = tmp_path / f"data.{ending}"
    path.write_text(content)
    agree(path, options)
    assert seen(path, options, slow=False) != "refused" or case == "too many lines"


def test_both_ways_agree_on_other_bytes(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(b"a_av,b_av,chosen,note\n1,1,a,\xff\n1,1,b,x\n")
    agree(path, {})
    assert read(path, on_error="skip").problems.by_kind == {"malformed": 1}


@pytest.mark.parametrize(
    "frame",
    [
        {"offered": ["a;b", "1;1.0"], "chosen": pd.Series(["a", 1.0], dtype=object)},
        {"offered": ["a;b", "true;True"], "chosen": pd.Series(["a", True], dtype=object)},
        {"offered": ["a;b", "a;b"], "chosen": ["a", "b"], "count": [True, True]},
        {"id": pd.Series(["1", 1.0, 2], dtype=object), "item": ["a", "b", "b"], "chosen": [1, 1, 1]},
        {"offered": pd.Series([["a", "b"], ["a", 1.0]], dtype=object), "chosen": ["a", "a"]},
        {"offered": pd.Series([{"a"}, {"a"}], dtype=object), "chosen": [None, "none"]},
        {"offered": ["1;2", "1;2"], "chosen": pd.Categorical([1.0, 2.0])},
    ],
)
def test_both_ways_agree_on_objects(frame: dict[str, Any]) -> None:
    agree(pd.DataFrame(frame), {"no_choice": "none"})


def test_damage_where_nobody_looks(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    notes = pa.array([f"note {number}" for number in range(200)])
    rows = pa.table({"offered": ["a;b"] * 200, "chosen": ["a"] * 199 + ["x"], "note": notes})
    pq.write_table(rows, path, compression="none", use_dictionary=False, write_statistics=False)
    content = path.read_bytes()
    at = content.index(b"note 7")
    path.write_bytes(content[: at - 4] + b"\xff\xff\xff\xff" + content[at:])
    with pytest.raises(ValueError, match="DuckDB cannot read this"):
        read(path, by="note")
    assert read(path, on_error="skip").problems.by_kind == {"not offered": 1}


def test_parquet_files_of_other_types(tmp_path: Path) -> None:
    pq.write_table(pa.table({"offered": ["1;01"], "chosen": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"offered": ["1;01"], "chosen": ["01"]}), tmp_path / "2.parquet")
    assert read(str(tmp_path / "*.parquet")).counts.tallies.tolist() == [1, 1]


def test_blanks_make_no_other_observation(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(CASES["blanks around a name"][1])
    assert read(path, on_error="skip").problems.by_kind == {"flag": 1}


def test_names_of_files_that_are_not_unicode(tmp_path: Path) -> None:
    for ending in ("csv", "jsonl", "parquet"):
        path = tmp_path / os.fsdecode(b"\xff." + ending.encode())
        try:
            path.write_text("offered,chosen\na;b,a\n" if ending == "csv" else GOOD)
        except OSError:
            pytest.skip("There are no such names here.")
        if ending == "parquet":
            with pytest.raises(ValueError, match=r"is not Unicode: rename the file"):
                read(path)
        else:
            assert read(path).counts.tallies.tolist() == [1, 0]


def test_values_that_are_no_labels() -> None:
    for value in (b"\xff", 10**5000):
        frame = pd.DataFrame({"offered": "a;b", "chosen": pd.Series(["a", value], dtype=object)})
        with pytest.raises(ValueError, match=r"row 1: a value of type (bytes|int) cannot be an item"):
            read(frame)
    frame = pd.DataFrame({"offered": pd.Series([[b"a", b"b"]], dtype=object), "chosen": [b"a"]})
    assert read(frame).counts.assortments.items == ("a", "b")


def test_groups_beyond_all_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rankstream.data.readers.results.MAX_GROUPS", 10)
    frame = pd.DataFrame({"offered": "a;b", "chosen": "a", "id": range(11), "time": "2024-01-01"})
    for options in ({}, {"time_slices": 2}):
        for slow in (False, True):
            with monkeypatch.context() as patch:
                if slow:
                    patch.setattr(Job, "quickly", lambda *_: None)
                with pytest.raises(ValueError, match="There are more than 10 groups: choose"):
                    read(frame, by="id", **options)  # type: ignore[arg-type]


def test_an_array_with_nul_bytes(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    for blanks in (0, 5000):
        path.write_bytes(b"[" + b" " * blanks + b"\0]")
        with pytest.raises(ValueError, match="the JSON array is broken"):
            read(path)


def test_sheets_are_of_workbooks(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("offered,chosen\na;b,a\n")
    with pytest.raises(
        ValueError, match=r"data\.csv is not an Excel workbook, so it has no sheet 'sales': leave out sheet"
    ):
        read(path, sheet="sales")
