"""The quick way and the slow one see the same records, whatever the file: both are asked, and must say the same."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from both_ways import agree

ITEMS = ["a", "b", "c"]
HEADS = {
    "transactions": ["offered", "chosen"],
    "long": ["obs", "item", "chosen"],
    "named": ["case", "alt", "choice"],
    "wide": ["a", "b", "c", "chosen"],
    "counts": ["offer", "item", "count"],
    "numbered": ["offer_id", "item", "count"],
    "rankings": ["ranking"],
}
TIMES = ["2024-05-16", "2024-05-17", "2024-06-01 10:00:00", "2024-01-31T23:59:59"]
ODD_TIMES = ["2024-1-5", "20240516", "1e9", "noon", "infinity", "2024-05-16T10", "2024-05-16T01:00:00+02:00", "", "0.5"]
ODD = [
    "",
    " ",
    "\t",
    "\u00a0",
    "nan",
    " a",
    "a\t",
    "1",
    "1.0",
    "01",
    "é",
    "a,b",
    "a|b",
    'a"b',
    "x\ny",
    "x\rz",
    "[1]",
    "-1",
]
ODD += ["0", "2.5", "1e400", "true", "x", *ODD_TIMES]
VALUES = st.sampled_from(
    [None, True, 1, 1.0, -0.0, 0.5, "1", "\x00", "\ud800", 10**25, [], ["a", "a"], [1, "1"], {"k": 1}, float("nan")]
)
PIECES = [
    b'"',
    b" ",
    b"\n",
    b"\n\n",
    b"\r",
    b"\0",
    b",",
    b"\xff",
    b'"" ',
    b"\x0b",
    b"{}",
    b"null",
    b"\xef\xbb\xbf",
    b"\\",
]
LINES = [  # what may stand in the place of a line of JSON; @ is the line without its last brace
    *(
        "@,}",
        '@, "chosen": "c"}',
        '@, "z": nan}',
        '@, "z": -Infinity}',
        "null",
        "[]",
        "5",
        "{}",
        "@}\x0b",
        "@}\r@}",
        "@} @}",
    ),
    *('@, "": 1}', '@, "Z": 1, "z": 2}', '@, "z": {"k": 1, "k": 2}}', '@, "z": "\\u0061"}', '@,\r"z": 1}'),
    *('@, "z": ' + "[" * 1500 + "]" * 1500 + "}", '@, "z": ' + "9" * 5000 + "}"),
]
OPTIONS: list[dict[str, Any]] = [
    *(
        {},
        {},
        {"by": "store"},
        {"by": "time"},
        {"period": "day"},
        {"period": "week"},
        {"no_choice": "none"},
    ),
    *(
        {"time_slices": 3},
        {"since": "2024-05-17"},
        {"half_life": "10d"},
        {"time_slices": 2, "since": "2024-05-01"},
    ),
]
Tables = tuple[str, list[list[str]]]


@st.composite
def tables(draw: st.DrawFn) -> Tables:
    """A format, and its rows; mostly good ones, with the one or other odd cell."""
    kind = draw(st.sampled_from(list(HEADS)))
    rows: list[list[str]] = []
    for number in range(draw(st.integers(1, 5))):
        offer = draw(st.lists(st.sampled_from(ITEMS), min_size=1, unique=True))
        chosen, rest = offer[-1], ["north", draw(st.sampled_from(TIMES))]
        rows += {
            "transactions": [[";".join(offer), chosen]],
            "long": [[str(number), item, str(int(item == chosen))] for item in offer],
            "named": [[str(number), item, chosen] for item in offer],
            "wide": [[*(str(int(item in offer)) for item in ITEMS), chosen]],
            "counts": [[";".join(offer), chosen, "2"]],
            "numbered": [[str(number % 2), item, str(int(item == chosen))] for item in offer],
            "rankings": [[">".join(offer)]],
        }[kind]
        rows[:] = [row if len(row) > len(HEADS[kind]) else row + rest for row in rows]
    for _ in range(draw(st.integers(0, 2))):
        row = rows[draw(st.integers(0, len(rows) - 1))]
        row[draw(st.integers(0, len(row) - 1))] = draw(st.sampled_from(ODD))
    return kind, rows


def asked(kind: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options, with what a format needs."""
    return options | ({"columns": {"chosen_item": "choice"}} if kind == "named" else {})


HERE = settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.slow
@HERE
@given(
    tables(),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.none() | st.tuples(st.floats(0, 1), st.sampled_from(PIECES)),
    st.sampled_from(["csv", "csv", "csv.gz"]),
    st.sampled_from(OPTIONS),
)
def test_both_ways_agree_on_csv(
    tmp_path: Path, table: Tables, mark: str, end: str, quoting: Any, piece: Any, ending: str, options: Any
) -> None:
    kind, rows = table
    words = io.StringIO()
    writer = csv.writer(words, delimiter=mark, lineterminator=end, quoting=quoting)
    writer.writerows([[*HEADS[kind], "store", "time"], *rows])
    content = words.getvalue().encode()
    if piece is not None:
        at = round(piece[0] * len(content))
        content = content[:at] + piece[1] + content[at:]
    path = tmp_path / f"data.{ending}"
    path.write_bytes(gzip.compress(content, 1) if ending.endswith("gz") else content)
    agree(path, asked(kind, options))


@pytest.mark.slow
@HERE
@given(
    tables(),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5), VALUES), max_size=2),
    st.none() | st.tuples(st.integers(0, 20), st.sampled_from(LINES)),
    st.booleans(),
    st.sampled_from(OPTIONS),
)
def test_both_ways_agree_on_json(
    tmp_path: Path, table: Tables, odd: Any, line: Any, escaped: bool, options: Any
) -> None:
    kind, rows = table
    names = [*HEADS[kind], "store", "time"]
    records: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in rows]
    for row, column, value in odd:
        records[row % len(records)][names[column % len(names)]] = value
    lines = [json.dumps(record, ensure_ascii=escaped) for record in records]
    if line is not None:
        at = line[0] % len(lines)
        lines[at] = line[1].replace("@", lines[at][:-1])
    path = tmp_path / "data.jsonl"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    agree(path, asked(kind, options))


def typed(cells: list[str], kind: str) -> list[Any]:
    """A column of another type, if it can be one."""
    try:
        made: Any = {
            "int": int,
            "float": float,
            "time": pd.Timestamp,
            "flag": lambda cell: {"0": False, "1": True}[cell],
        }
        return cells if kind == "text" else [made[kind](cell) for cell in cells]
    except (ValueError, KeyError):
        return cells


KINDS = st.lists(st.sampled_from(["text", "text", "int", "float", "time", "flag"]), min_size=6, max_size=6)


@pytest.mark.slow
@HERE
@given(tables(), KINDS, st.none() | st.tuples(st.floats(0, 1), st.integers(1, 255)), st.sampled_from(OPTIONS))
def test_both_ways_agree_on_parquet(tmp_path: Path, table: Tables, kinds: Any, damage: Any, options: Any) -> None:
    kind, rows = table
    names, columns = [*HEADS[kind], "store", "time"], list(zip(*rows, strict=True))
    path = tmp_path / "data.parquet"
    made = {name: typed(list(cells), one) for name, cells, one in zip(names, columns, kinds, strict=False)}
    pq.write_table(pa.table(made), path, compression="none")
    if damage is not None:
        content = bytearray(path.read_bytes())
        content[round(damage[0] * (len(content) - 1))] ^= damage[1]
        path.write_bytes(content)
    agree(path, asked(kind, options))


@pytest.mark.slow
@HERE
@given(
    tables(),
    KINDS,
    st.none() | st.tuples(st.integers(0, 20), st.integers(0, 5), VALUES | st.just(b"a")),
    st.sampled_from(OPTIONS),
)
def test_both_ways_agree_on_frames(table: Tables, kinds: Any, odd: Any, options: Any) -> None:
    kind, rows = table
    names, columns = [*HEADS[kind], "store", "time"], list(zip(*rows, strict=True))
    frame = pd.DataFrame(
        {name: typed(list(cells), one) for name, cells, one in zip(names, columns, kinds, strict=False)}
    )
    if odd is not None:
        name = names[odd[1] % len(names)]
        cells = frame[name].tolist()
        cells[odd[0] % len(cells)] = odd[2]
        frame[name] = pd.Series(cells, dtype=object)
    agree(frame, asked(kind, options))
