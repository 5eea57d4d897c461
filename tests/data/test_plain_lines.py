"""Which files DuckDB may read: those in which it surely sees the records that the slow reader sees."""

from pathlib import Path

import pytest

from rankstream.data.readers.sources.lines import is_plain_csv, is_plain_json

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
