"""Any text, table or object gives counts or one sentence, and the same in both ways of reading."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rankstream import ChoiceCounts
from rankstream.data.readers import read
from rankstream.data.readers.job import Job
from reader_tables import BALLOTS

HEADS = [
    "offer_id,item,count",
    "a_av,b_av,choice,case",
    "offered,chosen",
    "offered,chosen,count,time",
    "obs,item,chosen",
    "a,b,chosen",
    "offer,item,count",
    "ranking",
    "",
]
CELLS = st.sampled_from(
    ["a", "b", "a;b", "", "1", "0", "-1", "nan", '"', "'", "a>b", "{", "[1]", "\x00", "\r", "é", "\ud800"]
)
LINES = st.lists(CELLS, max_size=5).map(",".join) | st.text(max_size=12) | st.just('{"offered": "a;b", "chosen": "a"}')


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(HEADS),
    st.lists(LINES, max_size=6),
    st.sampled_from(["csv", "jsonl", "soc", "toi", "csv.gz", "parquet"]),
    st.sampled_from(["stop", "skip"]),
    st.sampled_from([{}, {"by": "chosen"}, {"period": "day"}, {"no_choice": "none"}, {"outside_share": 0.3}]),
)
def test_garbage_gives_counts_or_one_sentence(
    tmp_path: Path, head: str, rows: list[str], ending: str, on_error: str, options: Any
) -> None:
    path = tmp_path / f"data.{ending}"
    start = BALLOTS if ending in ("soc", "toi") else head
    content = "\n".join([start, *rows]).encode("utf-8", "surrogatepass")
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    try:
        reading = read(path, on_error=on_error, **options)
    except (ValueError, OSError):
        return
    assert reading.rows >= reading.problems.total
    assert np.isfinite(reading.counts.tallies).all()


RECORD = st.tuples(
    st.lists(st.sampled_from(["a", "b", "10", "9", "é x"]), min_size=1, unique=True),
    st.integers(0, 4),
    st.sampled_from(["1", "2.5", "0", " 3 ", "1e2"]),
    st.sampled_from(["2024-02-01", "2024-02-01T23:30:00", "2024-02-01 23:30:00+02:00", "2023-12-31T23:59:59Z"]),
    st.sampled_from(["", " "]),
)


def written(kind: str, records: list[Any]) -> pd.DataFrame:
    rows: list[dict[str, str]] = []
    for number, (offer, place, count, time, space) in enumerate(records):
        chosen, rest = offer[place % len(offer)], {"count": count, "time": time}
        if kind == "transactions":
            rows.append({"offered": f";{space}".join(offer), "chosen": space + chosen} | rest)
        elif kind == "wide":
            rows.append(
                {item: str(int(item in offer)) for item in ("a", "b", "10", "9", "é x")} | {"chosen": chosen} | rest
            )
        elif kind == "coded":
            marks = {f"{item}_AV": str(int(item in offer)) for item in ("a", "b", "10", "9", "é x")}
            rows.append(marks | {"choice": str(100 + ["a", "b", "10", "9", "é x"].index(chosen))} | rest)
        elif kind == "listed":
            rows += [
                {"offer_id": f"o{number}", "item": item} | rest | ({} if item == chosen else {"count": "0"})
                for item in offer
            ]
        elif kind == "named":
            rows += [{"case": f"o{number}", "alt": item, "choice": space + chosen} | rest for item in offer]
        elif kind == "rankings":
            rows.append({"ranking": f"{space}>".join(offer)} | rest)
        else:
            rows += [{"id": f"o{number}", "item": item, "chosen": str(int(item == chosen))} | rest for item in offer]
    return pd.DataFrame(rows)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(RECORD, min_size=2, max_size=8),
    st.sampled_from(["transactions", "wide", "coded", "long", "named", "listed", "rankings"]),
    st.sampled_from(["csv", "jsonl", "pandas", "parquet"]),
    st.sampled_from([{}, {"by": "time"}, {"period": "day"}, {"period": "week"}, {"no_choice": "none"}]),
)
def test_quick_and_slow_ways_agree(tmp_path: Path, records: list[Any], kind: str, way: str, options: Any) -> None:
    records = [*records, (["a", "b"], 0, "1", "2024-02-01", "")]
    frame = written(kind, records)
    if kind == "coded":
        codes = {f"{item}_AV": 100 + place for place, item in enumerate(("a", "b", "10", "9", "é x"))}
        options = options | {"columns": {"items": codes}}
    if kind == "named":
        options = options | {"columns": {"chosen_item": "choice"}}
    source: Any = frame if way == "pandas" else tmp_path / f"data.{way}"
    if way == "csv":
        frame.to_csv(source, index=False)
    elif way == "jsonl":
        frame.to_json(source, orient="records", lines=True)
    elif way == "parquet":
        pq.write_table(pa.Table.from_pandas(frame), source)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(Job, "slowly")
        quick = read(source, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Job, "quickly", lambda *_: None)
        slow = read(source, **options)
    assert (slow.rows, slow.problems.total) == (quick.rows, 0)
    assert slow.counts.assortments == quick.counts.assortments
    assert slow.counts.tallies.tolist() == quick.counts.tallies.tolist()
    assert list(slow.groups) == list(quick.groups)
    for key, counts in slow.groups.items():
        assert counts.tallies.tolist() == quick.groups[key].tallies.tolist()
    if kind != "rankings" and "no_choice" not in options:
        wanted = ChoiceCounts(quick.counts.assortments)
        for offer, place, count, *_ in records:
            wanted.observe(tuple(offer), offer[place % len(offer)], float(count))
        assert wanted.tallies.tolist() == quick.counts.tallies.tolist()


OBJECTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["a", "b", "a;b", "", "1"])
    | st.binary(max_size=2)
    | st.dates()
    | st.decimals(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
        | st.lists(inner, max_size=2).map(tuple)
    ),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(HEADS[:8]),
    st.lists(st.lists(OBJECTS, min_size=4, max_size=4), max_size=4),
    st.sampled_from(["stop", "skip"]),
    st.sampled_from(["pandas", "jsonl"]),
)
def test_odd_objects_give_counts_or_one_sentence(
    tmp_path: Path, head: str, rows: list[list[Any]], on_error: str, way: str
) -> None:
    names = head.split(",")
    source: Any = pd.DataFrame([row[: len(names)] for row in rows], columns=names, dtype=object)
    if way == "jsonl":
        source = tmp_path / "data.jsonl"
        lines = [json.dumps(dict(zip(names, row, strict=False)), default=str) for row in rows]
        source.write_text("\n".join(lines))
    try:
        reading = read(source, on_error=on_error, rejects=tmp_path / "rejects.csv" if on_error == "skip" else None)
    except (ValueError, OSError):
        return
    assert reading.rows >= reading.problems.total
