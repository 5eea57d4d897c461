"""What is wrong with a record, a file or an option, in one sentence that names its place."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankstream.data.readers import read, read_counts
from reader_tables import given_as, held, same, sold, transactions

BAD: list[tuple[str, str, str]] = [
    ("offered,chosen\na;b,c\n", "not offered", "line 2: the choice 'c' is not in its offer 'a;b'"),
    ("offered,chosen\na;b,a\n,a\n", "empty", "line 3: the offer is empty"),
    ("offered,chosen\na;b,\n", "empty", "line 2: the choice is empty"),
    ("offered,chosen\na;;b,a\n", "empty", "line 2: the offer 'a;;b' has an empty item"),
    ("offered,chosen\na;a,a\n", "repeated item", "line 2: the offer 'a;a' lists an item twice"),
    ("offered,chosen\na;x,a\n", "unknown item", "line 2: the item 'x' is not among the 3 items"),
    ("offered,chosen\na;b,x\n", "unknown item", "line 2: the item 'x' is not among the 3 items"),
    ("offered,chosen\n\n\na;b\n", "malformed", "line 4: there are fewer values than columns"),
    ("offered,chosen\na;b,a,b\n", "malformed", "line 2: there are more values than columns"),
    ('offered,chosen\n"a\n;b",a\n"a"b,a\n', "malformed", "line 4: this is not CSV"),
    ("offered,chosen,count\na;b,a,-1\n", "count", "line 2: the count '-1' is not a number >= 0"),
    ("offered,chosen,count\na;b,a,inf\n", "count", "line 2: the count 'inf' is not"),
    ("obs,item,chosen\n1,a,1\n1,b,1\n", "flag", "line 2: 2 items are marked as chosen"),
    ("obs,item,chosen\n1,a,1\n2,a,0\n2,b,0\n1,b,0\n", "flag", "line 3: no item is marked as chosen"),
    ("obs,item,chosen\n1,a,maybe\n1,b,1\n", "flag", "line 2: the chosen flag 'maybe' of the item 'a'"),
    ("obs,item,chosen\n1,a,1\n,b,1\n", "empty", "line 3: the observation has no id"),
    ("obs,item,chosen\n1,a,1\n1,a,0\n", "repeated item", "line 2: the offer 'a;a' lists"),
    ("obs,item,chosen\n1,a,1\n1,b\n", "malformed", "line 3: there are fewer values"),
    ("obs,item,chosen,count\n1,a,1,2\n1,b,0,3\n", "malformed", "different values of 'count'"),
    (
        "case,alt,choice\n1,a,b\n1,b,b\n2,a,b\n2,c,b\n",
        "not offered",
        "line 4: the choice 'b' is not in its offer 'a;c'",
    ),
    ("case,alt,choice\n1,a,b\n1,b,a\n", "flag", "line 2: one observation has the choices 'b' and 'a'"),
    ("case,alt,choice\n1,a,a\n1,b,\n", "flag", "line 2: one observation has the choices 'a' and ''"),
    ("case,alt,choice\n1,a,rum\n1,b,rum\n", "unknown item", "line 2: the item 'rum' is not among the 3 items"),
    ("a_av,b_av,choice\n1,1,7\n", "unknown item", "line 2: the item '7' is not among the 3 items"),
    ("offer_id,item,count\n1,a,7\n1,b,7\n,b,1\n", "empty", "line 4: the offer has no id"),
    ("offer_id,item,count\n1,a,7\n1,b,few\n", "count", "line 3: the count 'few'"),
    ("offer_id,item,count\n1,,3\n", "empty", "line 2: a row of the offer '1' is bad"),
    ("offer_id,item,count\n1,a\n", "malformed", "line 2: there are fewer values than columns"),
    ("offer_id,item,count\n1,x,2\n", "unknown item", "line 2: the item 'x' is not among the 3 items"),
    ("a,b,chosen\n1,2,a\n", "flag", "line 2: the availability '2' of the item 'b'"),
    ("a,b,chosen\n0,0,a\n", "empty", "line 2: the offer is empty"),
    ("a,b,chosen\n1,0,b\n", "not offered", "line 2: the choice 'b' is not in its offer 'a'"),
    ("offer,item,count\na;b,a,few\n", "count", "line 2: the count 'few'"),
    ("ranking,count\na>>b,1\n", "ranking", "line 2: the ranking 'a>>b' has an empty place"),
    ("ranking,count\na>b>a,1\n", "repeated item", "line 2: the ranking 'a>b>a' lists a candidate twice"),
    ("ranking,count\na>x,1\n", "unknown item", "line 2: the item 'x'"),
    ("ranking,count\n,1\n", "empty", "line 2: the ranking is empty"),
]
GOOD = {"case": "9,a,a\n9,b,a", "a_av": "1,0,a", "offer_id": "9,a\n9,b"}
GOOD |= {"offered": "a;b,a", "obs": "9,a,1\n9,b,0", "a": "1,1,b", "offer": "a;b,b", "ranking": "a>b>c"}


@pytest.mark.parametrize(("content", "kind", "words"), BAD)
def test_bad_records_stop_or_are_skipped_and_kept(content: str, kind: str, words: str, tmp_path: Path) -> None:
    path, rejects = tmp_path / "data.csv", tmp_path / "rejects.csv"
    header = content.partition("\n")[0]
    good = GOOD[header.partition(",")[0]]
    extra = ",7" if header.endswith("count") else ""
    path.write_text(content + "\n".join(line + extra for line in good.split("\n")) + "\n")
    with pytest.raises(ValueError, match=r"data\.csv, line ") as stopped:
        read(path, items=["a", "b", "c"])
    assert words in str(stopped.value)
    reading = read(path, items=["a", "b", "c"], on_error="skip", rejects=rejects)
    assert reading.problems.by_kind == {kind: 1}
    assert words in str(reading.problems.first[0])
    assert words in reading.problems.summary()
    good_records = reading.rows - reading.problems.total
    assert good_records > 0
    each = (7 if extra else 1) * (3 if header.startswith("ranking") else 1)
    assert reading.counts.observations == good_records * each
    table = pd.read_csv(rejects)
    assert table["kind"].tolist() == [kind]
    assert isinstance(json.loads(table["record"][0]), list)


def test_bytes_and_archives_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(b"offered,chosen\na;b,a\n\xff\xfe,a\n")
    with pytest.raises(ValueError, match="line 3: this is not a CSV file in UTF-8"):
        read(path)
    assert read(path, on_error="skip").rows == 2
    whole = gzip.compress(b"offered,chosen\n" + b"a;b,a\n" * 5000)
    flipped = whole[:-7] + bytes([whole[-7] ^ 1]) + whole[-6:]
    for content in (b"not packed", whole[: len(whole) // 2], whole[:-1], flipped):
        for name in ("data.csv.gz", "data.jsonl.gz"):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(ValueError, match="is not a complete gzip file"):
                read(tmp_path / name)
    (tmp_path / "data.csv.gz").write_bytes(whole + gzip.compress(b"a;b,b\n"))
    assert read_counts(tmp_path / "data.csv.gz").tallies.tolist() == [5000, 1]
    (tmp_path / "data.parquet").write_bytes(b"PAR1 it is not")
    with pytest.raises(ValueError, match="DuckDB cannot read this: ") as error:
        read(tmp_path / "data.parquet")
    assert "\n" not in str(error.value)


def test_rejects_overwrite_no_data(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    transactions().to_csv(path, index=False)
    with pytest.raises(ValueError, match="The rejects would overwrite"):
        read(path, on_error="skip", rejects=path)
    same(read_counts(path))
    contents = given_as(held(), "csv", tmp_path)
    with pytest.raises(ValueError, match="The rejects would overwrite"):
        read(sold(), contents=contents, on_error="skip", rejects=contents)
    same(read_counts(sold(), contents=contents))


def test_rows_of_tables_are_numbered_from_0(tmp_path: Path) -> None:
    frame = pd.DataFrame({"offered": [["a", "b"], ["a", "b"]], "chosen": ["a", "c"]})
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "data.parquet")
    polars = pl.DataFrame(frame.to_dict(orient="list"))
    for source in (frame, polars, polars.to_arrow(), polars.to_arrow().to_reader(), tmp_path / "data.parquet"):
        with pytest.raises(ValueError, match="row 1: the choice 'c' is not in its offer 'a;b'"):
            read(source)
    lists = pd.DataFrame({"chosen": ["a", "a"], "a": ["1", "1"], "b": ["1", [1]], "c": ["1", "1"]})
    with pytest.raises(ValueError, match=r"row 1: \[1\] cannot be an item"):
        read(lists)
    same_sets = pd.DataFrame({"offered": [{"a", "b"}], "chosen": ["a"]})
    assert read_counts(same_sets).assortments.offers == (("a", "b"),)


def test_three_examples_of_each_kind_of_problem_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('{"offered": ["a"], "chosen": "a"}\n' + 9 * '{"offered": ["a"], "chosen": "b"}\n' + 9 * "{\n")
    problems = read(path, on_error="skip").problems
    assert sorted(problems.by_kind.values()) == [9, 9]
    assert Counter(problem.kind for problem in problems.first) == dict.fromkeys(problems.by_kind, 3)


def test_json_without_a_count_counts_one(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('{"offered": ["a", 1], "chosen": 1}\n{"chosen": "a", "offered": "a;1", "count": 4}\n')
    counts = read_counts(path)
    assert counts.assortments.items == ("1", "a")
    assert counts.tallies.tolist() == [1, 4]
    with path.open("a") as file:
        file.write("[1]\n{\n" + "[" * 100_000 + '\n{"offered": {"a": 1}, "chosen": "a"}\n')
    reading = read(path, on_error="skip")
    assert reading.counts.tallies.tolist() == [1, 4]
    assert reading.problems.by_kind == {"malformed": 4}
    assert reading.problems.first[0].place == f"{path}, line 3"


def test_headers_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    for content, words in {
        b'"offered"x,chosen\na,a\n': "this is not CSV",
        b"\xff,chosen\na,a\n": "this is not a CSV file in UTF-8: .* such as encoding='latin-1'",
    }.items():
        path.write_bytes(content)
        with pytest.raises(ValueError, match=words):
            read(path)
    path.write_text("\n\noffered,chosen\na;b,a\n")
    assert read(path).counts.tallies.tolist() == [1, 0]
    with pytest.raises(ValueError, match="has no columns for its items"):
        read(pd.DataFrame({"chosen": ["a"]}), "wide")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "odd"}, "Unknown format 'odd'"),
        ({"format": "long"}, r"has no column 'observation' \(it has 'offered', 'chosen'\)"),
        ({"columns": {"chosen": "picked"}}, "has no column 'picked' for 'chosen'"),
        ({"columns": {"role": "chosen"}}, "Unknown column role 'role'"),
        ({"columns": {"items": ["tea"]}, "format": "wide"}, "has no column 'tea' for an item"),
        ({"on_error": "hide"}, "on_error is 'hide'"),
        ({"rejects": "x.csv"}, "needs on_error='skip'"),
        ({"separator": ""}, "The separator is ''"),
        ({"by": "store"}, "has no column 'store'"),
        ({"period": "day"}, "has no column 'time'"),
        ({"period": "age"}, "Unknown period 'age'"),
        ({"memory": "lots"}, "The memory 'lots' is not a size"),
    ],
)
def test_wrong_options(options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read(transactions(), **options)


def test_rows_of_one_observation_name_one_choice() -> None:
    table = {"observation": [1, 1, 2, 2], "item": ["a", "b", "a", "b"], "chosen": ["a", "b", "a", "a"]}
    with pytest.raises(ValueError, match="row 0: one observation has the choices 'a' and 'b'"):
        read(pd.DataFrame(table))


def test_wrong_sources() -> None:
    for source in (7, None, [], [1]):
        with pytest.raises(ValueError, match="Cannot read"):
            read(source)
    with pytest.raises(ValueError, match="rename one, as case does not count"):
        read(pd.DataFrame({"a": [1], "A": [1], "chosen": ["a"]}))
    with pytest.raises(ValueError, match="the columns 'a' and 'a': rename one"):
        read(pd.DataFrame([[1, 1, "a"]], columns=["a", "a", "chosen"]))


def test_a_broken_row_of_contents_is_refused_at_its_line(tmp_path: Path) -> None:
    contents = tmp_path / "contents.csv"
    contents.write_text("offer_id,item\n10,tea\n10\n10,pie\n")
    with pytest.raises(ValueError, match=r"contents.csv, line 3: there are fewer values than columns"):
        read(sold(), contents=contents)
