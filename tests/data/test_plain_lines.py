"""Which files and frames DuckDB may read: those in which it surely sees the records that the slow reader sees."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rankstream.data.readers.sources.database import connected
from rankstream.data.readers.sources.lines import is_plain_csv, is_plain_json
from rankstream.data.readers.sources.tables import Frame, _is_plain, partition_values

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("word", ["NaN", "nan", "-Infinity", "INF", "inf", "+Inf"])
@pytest.mark.parametrize("form", ['{{"a": {}}}\n', '{{"a": [{} , 1]}}\n', '{{"a": [1,{}]}}\n'])
def test_words_for_numbers_are_not_plain_json(tmp_path: Path, word: str, form: str) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(form.format(word))
    assert not is_plain_json(path)
    path.write_text(form.format(f'"{word}"'))  # a text with that word is
    assert is_plain_json(path)


@pytest.mark.parametrize(
    "odd", ["\ufeff{}\n", '{"a": 1,}\n', '{"a": [1, ]}\n', '{"a":\x0b1}\n', '{"a":\x0c1}\n', "{}\r{}\n"]
)
def test_what_duckdb_takes_for_json_is_read_row_by_row(tmp_path: Path, odd: str) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(odd, newline="")
    assert not is_plain_json(path)
    path.write_text('{"a": 1}\r\n{"b": [1, 2]}\n', newline="")
    assert is_plain_json(path)


@pytest.mark.parametrize(
    ("text", "width", "is_plain"),
    [
        ("a;b,c\n", 2, True),
        ('"a",b\n', 2, True),
        ('a"b",c\n', 2, False),
        ("\na\n", 1, False),
        ("\r\na\n", 1, False),
        ("a\n\nb\n", 1, False),
        ("a\r\n\r\nb\r\n", 1, False),
        ("a\n\r\nb\n", 1, False),
        ("a,b\n\na,b\n", 2, True),
        ("a\nb", 1, True),
        ("a\rb\n", 1, False),
    ],
)
def test_blank_lines_and_quotes_of_plain_csv(tmp_path: Path, text: str, width: int, is_plain: bool) -> None:
    path = tmp_path / "data.csv"
    path.write_text(text, newline="")
    assert is_plain_csv(path, ",", width) == is_plain


def test_only_utf8_is_plain(tmp_path: Path) -> None:
    for name, is_plain in (("é".encode(), True), ("é".encode("latin-1"), False)):
        (tmp_path / "data").write_bytes(b"a," + name + b"\n")
        assert is_plain_csv(tmp_path / "data", ",", 2) == is_plain
        (tmp_path / "data").write_bytes(b'{"a": "' + name + b'"}')  # no line feed at the end
        assert is_plain_json(tmp_path / "data") == is_plain


@pytest.mark.parametrize(
    ("cells", "is_plain"),
    [
        (pd.Series([1, 2]), True),  # as numpy has them
        (pd.Series(["a", "b"], dtype=object), True),
        (pd.Series(["a", None], dtype=object), True),
        (pd.Series(["a", float("nan")], dtype=object), True),
        (pd.Series(["a", 1.5], dtype=object), False),
        (pd.Series([1.5, 2.5], dtype=object), True),
        (pd.Series(["a", True], dtype=object), False),
        (pd.Series([1, 2], dtype=object), False),
        (pd.Series([("a",)], dtype=object), False),
        (pd.Series([["a"], ["b", "c"]]), True),
        (pd.Series([["a"], ["b", 1]]), False),
        (pd.Series([["a"], None, np.array(["b"], dtype=object)]), True),
        (pd.Series([["a"], "b"]), False),
        (pd.Series([[1]]), False),
        (pd.Series(["a", "b"], dtype="category"), True),
        (pd.Series([1, 2], dtype="category"), False),
        (pd.Series(pd.Categorical(["a", None])), True),
    ],
)
def test_columns_of_a_frame_have_one_type(cells: Any, is_plain: bool) -> None:
    assert _is_plain(cells) == is_plain
    frame = Frame(pd.DataFrame({"x": cells, "y": ["z"] * len(cells)}))
    with connected() as connection:
        assert (frame.table(connection, ["y", "x"]) is not None) == is_plain
        assert frame.table(connection, ["y"]) == "frame"
    assert frame.columns == ["x", "y"]
    assert frame.name == "The pandas DataFrame"
    assert [row.number for row in frame.rows(most=1)] == [0]
    assert len(list(frame.rows())) == len(cells)


def test_folders_give_values_of_partitions() -> None:
    path = Path("/data/store=north/day=7/store=a%20b=c/day=__HIVE_DEFAULT_PARTITION__/day=9")
    assert partition_values(path, ["store", "day"]) == ("a b=c", "")
    assert partition_values(path, []) == ()
    with pytest.raises(ValueError, match=r"day=9 is in no folder kind=...: leave 'kind' out of the partitions"):
        partition_values(path, ["kind"])
