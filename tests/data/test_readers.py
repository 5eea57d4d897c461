"""Every format and every source gives the same counts."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from rankstream import ChoiceCounts
from rankstream.cli.app import make_app
from rankstream.data.readers import read, read_counts
from rankstream.data.readers.job import Job
from reader_tables import (
    CODES,
    FORMATS,
    NUMBERS,
    RECORDS,
    WAYS,
    coded,
    given_as,
    held,
    listed,
    long,
    named,
    same,
    sold,
    tallies,
    transactions,
    wide,
)

pytestmark = pytest.mark.quick


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("way", WAYS)
def test_all_formats_and_sources_give_the_same_counts(
    kind: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Job, "slowly")
    make, options, wanted, rows = FORMATS[kind]
    frame = make()
    if kind == "lists" and way in ("csv", "csv.gz", "tsv"):
        frame = frame.assign(offered=frame["offered"].map(";".join))
    reading = read(given_as(frame, way, tmp_path), **options)
    same(reading.counts)
    assert (reading.format, reading.rows, reading.problems.total) == (wanted, rows, 0)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_ballots_of_all_sources_give_the_choices_they_imply(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Job, "slowly")
    ballots = [("tea > pie > cake", 3), ("cake > tea > pie", 2), ("pie > cake > tea", 1)]
    offers = [tuple(offered.split(";")) for offered, _ in RECORDS]
    implied = [
        (";".join(offer), next(name for name in ballot.split(" > ") if name in offer), count)
        for ballot, count in ballots
        for offer in {tuple(sorted(offer)) for offer in offers}
    ]
    wanted = read_counts(pd.DataFrame(implied, columns=["offered", "chosen", "count"]))
    frame = pd.DataFrame(ballots, columns=["ranking", "count"])
    found = read_counts(given_as(frame, way, tmp_path), offers=sorted(wanted.assortments.offers, key=len))
    assert dict(_by_offer(found)) == dict(_by_offer(wanted))


def _by_offer(counts: ChoiceCounts) -> Iterator[tuple[Any, float]]:
    for offer in counts.assortments.offers:
        for item in offer:
            yield (frozenset(offer), item), counts.tallies[counts.assortments.coordinate(offer, item)]


@pytest.mark.parametrize(
    ("frame", "columns"),
    [
        (coded(), "chosen=CHOICE,items=tea_AV:1;AV_pie:2;cake.avail:7"),
        (coded().rename(columns={"CHOICE": "picked"}), {"chosen": "picked", "items": CODES}),
        (wide().set_axis([*CODES, "chosen"], axis=1).assign(price=3), None),
        (named().set_axis(["who", "what", "took"], axis=1), "observation=who,item=what,chosen=took"),
        (named().set_axis(["who", "what", "took"], axis=1), "observation=who,item=what,chosen_item=took"),
        (long().set_axis(["chid", "alt", "choice", "id"], axis=1).replace({"choice": {0: "FALSE", 1: "TRUE"}}), None),
        (long().set_axis(["individual", "mode", "choice", "x"], axis=1).replace({"choice": {0: "no", 1: "yes"}}), None),
        (listed().set_axis(["offer", "item", "count"], axis=1), {"offer_id": "offer"}),
    ],
)
def test_columns_are_told_by_usual_names_or_by_option(frame: pd.DataFrame, columns: Any) -> None:
    same(read_counts(frame, columns=columns))


def test_what_was_offered_goes_before_other_columns() -> None:
    same(read_counts(transactions().assign(id=range(5), mode="cash")))
    same(read_counts(long().assign(assortment=7)))
    same(read_counts(wide().assign(offer_id=7)))


def test_items_that_look_like_flags() -> None:
    rows = [(1, 0, 1), (1, 1, 1), (2, 0, 0), (2, 1, 0)]
    frame = pd.DataFrame(rows, columns=["id", "item", "choice"])
    with pytest.raises(ValueError, match="row 0: 2 items are marked"):
        read(frame)
    assert read_counts(frame, columns={"chosen_item": "choice"}).tallies.tolist() == [1, 1]


def test_one_offer_for_all() -> None:
    frame = pd.DataFrame({"depvar": ["gc", "er", "gc"], "ic.gc": [8.5, 9.6, 7.1], "ic.er": [1, 0, 1]})
    with pytest.raises(
        ValueError, match=r"choice '2' is not in its offer 'pie;tea': .* columns='items=train_av:1;car_av:2'"
    ):
        read(coded()[1:], "wide")
    with pytest.raises(ValueError, match=r"availability 8.5 of the item 'ic.gc' is not 0 or 1.* columns='offered=a;b'"):
        read(frame)
    for columns in ("offered=gc;er;hp", {"offered": ["gc", "er", "hp"], "chosen": "depvar"}):
        counts = read_counts(frame, columns=columns)
        assert counts.assortments.offers == (("er", "gc", "hp"),)
        assert counts.tallies.tolist() == [1, 2, 0]


def test_what_numbered_offers_hold(tmp_path: Path) -> None:
    joined = pd.DataFrame({"offer_id": list(NUMBERS.values()), "offered": list(NUMBERS)})
    spaced = listed().assign(offer_id=[f"{' ' * (row % 2)}{number}" for row, number in enumerate(listed()["offer_id"])])
    same(read_counts(spaced))
    with pytest.raises(ValueError, match="row 4: the offer has no id"):
        read(listed().assign(offer_id=[10, 10, 20, 20, np.nan, 30, 30, 40, 40]))
    for contents in (joined, held().rename(columns={"offer_id": "offer"}), given_as(held(), "csv", tmp_path)):
        same(read_counts(sold(), contents=contents))
        same(read_counts(listed(), contents=contents))
    with pytest.raises(ValueError, match="row 3: the items of the offer '20' are unknown"):
        read(sold(), contents=held().query("offer_id != 20"))
    with pytest.raises(ValueError, match="does not list the offers' items: rename columns to 'offer_id' and 'item'"):
        read(sold(), contents=wide())
    with pytest.raises(ValueError, match="row 1: the offer is empty"):
        read(sold(), contents=held().assign(item=["tea", "", *["pie"] * 7]))
    with pytest.raises(ValueError, match="row 0: the offer has no id"):
        read(sold(), contents=held().assign(offer_id=None))
    with pytest.raises(ValueError, match="has only the ids of its offers: add contents"):
        read(sold(), columns={"offer_id": "offer_id"})
    with pytest.raises(ValueError, match=r"^contents needs the ids of offers in .*: set columns='offer_id="):
        read(long(), contents=held())
    with pytest.raises(ValueError, match="or map the column if it has the ids of offers: columns='offer_id=offer'"):
        read(listed().rename(columns={"offer_id": "offer"}))


@pytest.mark.slow
def test_the_command_line_reads_them_too(tmp_path: Path) -> None:
    out = tmp_path / "model.json"
    for kind, options in {
        "long, choices named": ["--columns", "observation=case,item=alt,chosen=choice"],
        "wide, choices coded": ["--columns", "items=tea_AV:1;AV_pie:2;cake.avail:7"],
        "transactions, offers numbered": ["--contents", str(given_as(held(), "jsonl", tmp_path))],
    }.items():
        path = given_as(FORMATS[kind][0](), "csv", tmp_path)
        done = CliRunner().invoke(make_app(), ["fit", str(path), "--out", str(out), "--json", *options])
        assert done.exit_code == 0, done.output
        assert (json.loads(done.stdout)["choices"], json.loads(done.stdout)["offers"]) == (5, 3)
    done = CliRunner().invoke(make_app(), ["compare", str(path), "--columns", "chosen:choice"])
    assert str(done.exception).startswith("The columns 'chosen:choice' are not of the form 'observation=case,item=alt'")


def test_files_of_other_programs_name_a_remedy(tmp_path: Path) -> None:
    for ending, words in {
        "zip": "decompress it",
        "ods": "save it as CSV",
        "dta": "with pandas",
        "rda": "write.csv",
    }.items():
        path = tmp_path / f"data.{ending}"
        path.write_bytes(b"\x00\x01")
        with pytest.raises(ValueError, match=words):
            read(path)


def test_little_memory_is_given_up_where_it_does_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Job, "slowly")
    monkeypatch.setattr("rankstream.data.readers.job.FIRST_MEMORY_LIMIT", "1KB")
    same(read_counts(long()))


def test_items_that_come_late_in_a_long_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Job, "slowly")
    monkeypatch.setattr("rankstream.data.readers.job.HEAD_ROWS", 2)
    same(read_counts(long()))
    same(read_counts(named()))


def test_globs_and_lists_of_files(tmp_path: Path) -> None:
    transactions()[:2].to_csv(tmp_path / "day-1.csv", index=False)
    transactions()[2:].to_csv(tmp_path / "day-2.csv", index=False)
    same(read_counts(str(tmp_path / "day-*.csv")))
    same(read_counts([tmp_path / "day-1.csv", tmp_path / "day-2.csv"]))
    (tmp_path / "day-3.csv").write_text("chosen,offered\n")
    with pytest.raises(ValueError, match=r"day-3.csv has different columns than .*day-1.csv"):
        read(str(tmp_path / "day-*.csv"))
    with pytest.raises(ValueError, match="is a folder: give its files"):
        read(tmp_path)
    with pytest.raises(ValueError, match="There is no file"):
        read(tmp_path / "night-*.csv")


def test_long_tables_of_many_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Job, "slowly")
    rng = np.random.default_rng(0)
    offers = [np.sort(rng.choice(90, 40, replace=False)).tolist() for _ in range(20)]
    rows = [(f"o{number}", item, item == offer[number]) for number, offer in enumerate(offers) for item in offer]
    counts = read_counts(pd.DataFrame(rows, columns=["id", "item", "chosen"]))
    wanted = ChoiceCounts(counts.assortments)
    for number, offer in enumerate(offers):
        wanted.observe(tuple(map(str, offer)), str(offer[number]))
    assert counts.tallies.tolist() == wanted.tallies.tolist()
    assert counts.assortments.n_offers == 20


def test_parquet_files_have_the_same_columns(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(transactions().assign(time=pd.Timestamp("2024-02-02", tz="UTC")))
    pq.write_table(table.slice(0, 2), tmp_path / "1.parquet")
    pq.write_table(table.slice(2), tmp_path / "2.parquet")
    same(read_counts(str(tmp_path / "*.parquet")))
    pq.write_table(
        pa.Table.from_pandas(pd.DataFrame([("a", "b", None)], columns=table.column_names)), tmp_path / "3.parquet"
    )
    with pytest.raises(ValueError, match="row 0: the choice 'b' is not in its offer 'a'"):
        read(str(tmp_path / "*.parquet"), on_error="stop")
    same(read_counts(str(tmp_path / "*.parquet"), on_error="skip", period="day"))
    pq.write_table(pa.Table.from_pandas(tallies()), tmp_path / "4.parquet")
    with pytest.raises(ValueError, match=r"4.parquet has different columns than .*1.parquet"):
        read(str(tmp_path / "*.parquet"))


def test_values_that_trail_and_spaces_around_quotes(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text('offered,chosen\na;b,a,\n "a;b", a\n')
    assert read(path).counts.tallies.tolist() == [2, 0]
    path.write_text('offered,chosen\na;b,a,\n "a;b", a\na;b,c\n')
    assert read(path, on_error="skip").counts.tallies.tolist() == [2, 0]


def test_a_file_whose_name_is_a_pattern(tmp_path: Path) -> None:
    transactions().to_csv(tmp_path / "a[1].csv", index=False)
    found = read_counts(tmp_path / "a[1].csv")
    same(found)
    assert found.observations == read_counts(transactions()).observations
