import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from rankstream import Assortments, ChoiceCounts
from rankstream.cli.app import make_app
from rankstream.data.readers import outside_sensitivity, read, read_counts, with_outside
from rankstream.data.readers.ballots import choices_from_ballots
from rankstream.data.readers.job import Job

RECORDS = [("tea;pie", "tea"), ("pie;tea", "pie"), ("tea;pie;cake", "cake"), ("cake;tea", "tea"), ("tea;pie", "tea")]


def expected() -> ChoiceCounts:
    counts = ChoiceCounts(
        Assortments([("cake", "tea"), ("pie", "tea"), ("cake", "pie", "tea")], ["cake", "pie", "tea"])
    )
    for offered, chosen in RECORDS:
        counts.observe(tuple(offered.split(";")), chosen)
    return counts


def same(found: ChoiceCounts) -> None:
    wanted = expected()
    assert found.assortments == wanted.assortments
    assert found.tallies.tolist() == wanted.tallies.tolist()


def transactions() -> pd.DataFrame:
    return pd.DataFrame(RECORDS, columns=["offered", "chosen"])


def lists() -> pd.DataFrame:
    return pd.DataFrame([(offered.split(";"), chosen) for offered, chosen in RECORDS], columns=["offered", "chosen"])


def long() -> pd.DataFrame:
    rows = [
        (number, item, int(item == chosen), 9.5)
        for number, (offered, chosen) in enumerate(RECORDS)
        for item in offered.split(";")
    ]
    return pd.DataFrame(rows, columns=["obs_id", "alt_id", "choice", "price"]).sample(frac=1, random_state=0)


def wide() -> pd.DataFrame:
    rows = [
        {item: int(item in offered.split(";")) for item in ("tea", "pie", "cake")} | {"chosen": chosen}
        for offered, chosen in RECORDS
    ]
    return pd.DataFrame(rows)


def tallies() -> pd.DataFrame:
    counted = Counter(RECORDS)
    rows = [(*record, number) for record, number in counted.items()]
    return pd.DataFrame(rows, columns=["offer", "item", "count"])


def named() -> pd.DataFrame:
    frame = long().drop(columns="price")
    frame["choice"] = frame["obs_id"].map(lambda number: RECORDS[number][1])
    return frame.set_axis(["case", "alt", "choice"], axis=1)


CODES = {"tea_AV": 1, "AV_pie": 2, "cake.avail": 7}


def coded() -> pd.DataFrame:
    frame = wide()
    codes = {"tea": 1, "pie": 2, "cake": 7}
    frame["chosen"] = frame["chosen"].map(codes)
    return frame.set_axis([*CODES, "CHOICE"], axis=1).assign(ID=3, tea_TT=9.5, CUT=0)


NUMBERS = {"tea;pie": 10, "cake;tea": 20, "cake;pie;tea": 30, "pie;tea": 40}


def held() -> pd.DataFrame:
    rows = [(number, item) for offer, number in NUMBERS.items() for item in offer.split(";")]
    return pd.DataFrame(rows, columns=["offer_id", "item"])


def sold() -> pd.DataFrame:
    numbers = {tuple(sorted(offer.split(";"))): number for offer, number in NUMBERS.items()}
    rows = [(numbers[tuple(sorted(offer.split(";")))], item) for offer, item in RECORDS]
    return pd.DataFrame(rows, columns=["offer_id", "chosen"])


def listed() -> pd.DataFrame:
    found = Counter(zip(sold()["offer_id"], sold()["chosen"], strict=True))
    frame = held()
    return frame.assign(count=[found[number, item] for number, item in frame.itertuples(index=False)])


def chosen_only() -> pd.DataFrame:
    return transactions().rename(columns={"chosen": "depvar"})[["depvar"]]


FORMATS: dict[str, tuple[Callable[[], pd.DataFrame], dict[str, Any], str, int]] = {
    "transactions": (transactions, {}, "transactions", 5),
    "lists": (lists, {}, "transactions", 5),
    "long": (long, {}, "long", 5),
    "long, choices named": (named, {}, "long", 5),
    "wide": (wide, {}, "wide", 5),
    "wide, choices coded": (coded, {"columns": {"items": CODES}}, "wide", 5),
    "counts": (tallies, {}, "counts", 4),
    "counts, offers numbered": (listed, {}, "counts", 9),
    "transactions, offers numbered": (sold, {"contents": held()}, "transactions", 5),
}
WAYS = ["csv", "csv.gz", "tsv", "jsonl", "jsonl.gz", "parquet", "pandas", "polars", "lazy", "arrow"]


def given_as(frame: pd.DataFrame, way: str, folder: Path) -> Any:
    path = folder / f"data.{way}"
    if way.startswith(("csv", "tsv")):
        frame.to_csv(path, index=False, sep="\t" if way == "tsv" else ",")
    elif way.startswith("jsonl"):
        frame.to_json(path, orient="records", lines=True)
    elif way == "parquet":
        pq.write_table(pa.Table.from_pandas(frame), path)
    else:
        polars = pl.DataFrame(frame.to_dict(orient="list"))
        return {"pandas": frame, "polars": polars, "lazy": polars.lazy(), "arrow": polars.to_arrow()}[way]
    return path


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
    with pytest.raises(ValueError, match="row 0: 2 items are flagged"):
        read(frame)
    assert read_counts(frame, columns={"chosen_item": "choice"}).tallies.tolist() == [1, 1]


def test_one_offer_for_all() -> None:
    frame = pd.DataFrame({"depvar": ["gc", "er", "gc"], "ic.gc": [8.5, 9.6, 7.1], "ic.er": [1, 0, 1]})
    with pytest.raises(
        ValueError, match=r"choice '2' is not in its offer 'pie;tea': .* as in items=train_av:1;car_av:2"
    ):
        read(coded()[1:], "wide")
    with pytest.raises(ValueError, match=r"availability 8.5 of the item 'ic.gc' is not 0 or 1.* as in offered=a;b"):
        read(frame)
    for columns in ("offered=gc;er;hp", {"offered": ["gc", "er", "hp"], "chosen": "depvar"}):
        counts = read_counts(frame, columns=columns)
        assert counts.assortments.offers == (("er", "gc", "hp"),)
        assert counts.tallies.tolist() == [1, 2, 0]


def test_what_numbered_offers_hold(tmp_path: Path) -> None:
    joined = pd.DataFrame({"offer_id": list(NUMBERS.values()), "offered": list(NUMBERS)})
    spaced = listed().assign(offer_id=[f"{' ' * (row % 2)}{number}" for row, number in enumerate(listed()["offer_id"])])
    same(read_counts(spaced))
    with pytest.raises(ValueError, match="row 4: the offer has no number"):
        read(listed().assign(offer_id=[10, 10, 20, 20, np.nan, 30, 30, 40, 40]))
    for contents in (joined, held().rename(columns={"offer_id": "offer"}), given_as(held(), "csv", tmp_path)):
        same(read_counts(sold(), contents=contents))
        same(read_counts(listed(), contents=contents))
    with pytest.raises(ValueError, match="row 3: nothing tells what the offer '20' holds"):
        read(sold(), contents=held().query("offer_id != 20"))
    with pytest.raises(ValueError, match="does not tell what offers hold: call its columns 'offer_id' and 'item'"):
        read(sold(), contents=wide())
    with pytest.raises(ValueError, match="row 1: the offer is empty"):
        read(sold(), contents=held().assign(item=["tea", "", *["pie"] * 7]))
    with pytest.raises(ValueError, match="row 0: the offer has no number"):
        read(sold(), contents=held().assign(offer_id=None))
    with pytest.raises(ValueError, match="only numbers its offers: say by contents"):
        read(sold(), columns={"offer_id": "offer_id"})
    with pytest.raises(ValueError, match="has no numbers of offers to look up"):
        read(long(), contents=held())
    with pytest.raises(ValueError, match="or say by columns that this only numbers offers, as in offer_id=offer"):
        read(listed().rename(columns={"offer_id": "offer"}))


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
    for ending, words in {"zip": "unpack it", "ods": "save it as CSV", "dta": "by pandas", "rda": "write.csv"}.items():
        path = tmp_path / f"data.{ending}"
        path.write_bytes(b"\x00\x01")
        with pytest.raises(ValueError, match=words):
            read(path)


def test_little_memory_is_given_up_where_it_does_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Job, "slowly")
    monkeypatch.setattr("rankstream.data.readers.job.LITTLE", "1KB")
    same(read_counts(long()))


def test_items_that_come_late_in_a_long_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Job, "slowly")
    monkeypatch.setattr("rankstream.data.readers.job.HEAD", 2)
    same(read_counts(long()))
    same(read_counts(named()))


def test_globs_and_lists_of_files(tmp_path: Path) -> None:
    transactions()[:2].to_csv(tmp_path / "day-1.csv", index=False)
    transactions()[2:].to_csv(tmp_path / "day-2.csv", index=False)
    same(read_counts(str(tmp_path / "day-*.csv")))
    same(read_counts([tmp_path / "day-1.csv", tmp_path / "day-2.csv"]))
    (tmp_path / "day-3.csv").write_text("chosen,offered\n")
    with pytest.raises(ValueError, match=r"day-3.csv has other columns than .*day-1.csv"):
        read(str(tmp_path / "day-*.csv"))
    with pytest.raises(ValueError, match="is a folder: name its files"):
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


def test_parts_follow_the_rows_of_large_files(tmp_path: Path) -> None:
    frame = pd.DataFrame({"offered": "a;b", "chosen": np.repeat(["a", "b"], 200_000)})
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "data.parquet", row_group_size=7_000)
    frame.to_csv(tmp_path / "data.csv", index=False)
    for source in (frame, tmp_path / "data.parquet", tmp_path / "data.csv"):
        parts = read(source, parts=2).groups
        assert [part.tallies.tolist() for part in parts.values()] == [[200_000, 0], [0, 200_000]]


def test_parts_follow_the_rows_where_offers_are_numbered(tmp_path: Path) -> None:
    numbers = [*range(100)] * 4
    frame = pd.DataFrame(
        {"offer_id": numbers, "item": np.repeat(["a", "b"], 200), "count": np.repeat([1, 0, 0, 2], 100)}
    )
    for source in (frame, given_as(frame, "csv", tmp_path)):
        parts = read(source, parts=2).groups
        assert [part.tallies.tolist() for part in parts.values()] == [[100, 0], [0, 200]]


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
    with pytest.raises(ValueError, match=r"4.parquet has other columns than .*1.parquet"):
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


BAD: list[tuple[str, str, str]] = [
    ("offered,chosen\na;b,c\n", "not offered", "line 2: the choice 'c' is not in its offer 'a;b'"),
    ("offered,chosen\na;b,a\n,a\n", "empty", "line 3: the offer is empty"),
    ("offered,chosen\na;b,\n", "empty", "line 2: the choice is empty"),
    ("offered,chosen\na;;b,a\n", "empty", "line 2: the offer 'a;;b' names an empty item"),
    ("offered,chosen\na;a,a\n", "repeated item", "line 2: the offer 'a;a' holds an item twice"),
    ("offered,chosen\na;x,a\n", "unknown item", "line 2: the item 'x' is not among the 3 items"),
    ("offered,chosen\na;b,x\n", "unknown item", "line 2: the item 'x' is not among the 3 items"),
    ("offered,chosen\n\n\na;b\n", "malformed", "line 4: there are fewer values than columns"),
    ("offered,chosen\na;b,a,b\n", "malformed", "line 2: there are more values than columns"),
    ('offered,chosen\n"a\n;b",a\n"a"b,a\n', "malformed", "line 4: this is not CSV"),
    ("offered,chosen,count\na;b,a,-1\n", "count", "line 2: the count '-1' is not a number >= 0"),
    ("offered,chosen,count\na;b,a,inf\n", "count", "line 2: the count 'inf' is not"),
    ("obs,item,chosen\n1,a,1\n1,b,1\n", "flag", "line 2: 2 items are flagged as chosen"),
    ("obs,item,chosen\n1,a,1\n2,a,0\n2,b,0\n1,b,0\n", "flag", "line 3: no item is flagged as chosen"),
    ("obs,item,chosen\n1,a,maybe\n1,b,1\n", "flag", "line 2: the chosen flag 'maybe' of the item 'a'"),
    ("obs,item,chosen\n1,a,1\n,b,1\n", "empty", "line 3: the observation has no name"),
    ("obs,item,chosen\n1,a,1\n1,a,0\n", "repeated item", "line 2: the offer 'a;a' holds"),
    ("obs,item,chosen\n1,a,1\n1,b\n", "malformed", "line 3: there are fewer values"),
    ("obs,item,chosen,count\n1,a,1,2\n1,b,0,3\n", "malformed", "different values of 'count'"),
    (
        "case,alt,choice\n1,a,b\n1,b,b\n2,a,b\n2,c,b\n",
        "not offered",
        "line 4: the choice 'b' is not in its offer 'a;c'",
    ),
    ("case,alt,choice\n1,a,b\n1,b,a\n", "flag", "line 2: one observation names the choices 'b' and 'a'"),
    ("case,alt,choice\n1,a,a\n1,b,\n", "flag", "line 2: one observation names the choices 'a' and ''"),
    ("case,alt,choice\n1,a,rum\n1,b,rum\n", "unknown item", "line 2: the item 'rum' is not among the 3 items"),
    ("a_av,b_av,choice\n1,1,7\n", "unknown item", "line 2: the item '7' is not among the 3 items"),
    ("offer_id,item,count\n1,a,7\n1,b,7\n,b,1\n", "empty", "line 4: the offer has no number"),
    ("offer_id,item,count\n1,a,7\n1,b,few\n", "count", "line 3: the count 'few'"),
    ("offer_id,item,count\n1,,3\n", "empty", "line 2: a row of the offer '1' is bad"),
    ("offer_id,item,count\n1,a\n", "malformed", "line 2: there are fewer values than columns"),
    ("offer_id,item,count\n1,x,2\n", "unknown item", "line 2: the item 'x' is not among the 3 items"),
    ("a,b,chosen\n1,2,a\n", "flag", "line 2: the availability '2' of the item 'b'"),
    ("a,b,chosen\n0,0,a\n", "empty", "line 2: the offer is empty"),
    ("a,b,chosen\n1,0,b\n", "not offered", "line 2: the choice 'b' is not in its offer 'a'"),
    ("offer,item,count\na;b,a,few\n", "count", "line 2: the count 'few'"),
    ("ranking,count\na>>b,1\n", "ranking", "line 2: the ranking 'a>>b' has an empty place"),
    ("ranking,count\na>b>a,1\n", "repeated item", "line 2: the ranking 'a>b>a' names a candidate twice"),
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
            with pytest.raises(ValueError, match="is no whole gzip file"):
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
    for source in (frame, polars, polars.to_arrow(), tmp_path / "data.parquet"):
        with pytest.raises(ValueError, match="row 1: the choice 'c' is not in its offer 'a;b'"):
            read(source)
    lists = pd.DataFrame({"chosen": ["a", "a"], "a": ["1", "1"], "b": ["1", [1]], "c": ["1", "1"]})
    with pytest.raises(ValueError, match=r"row 1: \[1\] cannot be an item"):
        read(lists)
    same_sets = pd.DataFrame({"offered": [{"a", "b"}], "chosen": ["a"]})
    assert read_counts(same_sets).assortments.offers == (("a", "b"),)


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


def test_no_choice_and_items() -> None:
    frame = pd.DataFrame({"offered": ["b;a", "a"], "chosen": ["a", None]})
    counts = read_counts(frame, no_choice="none")
    assert counts.assortments.items == ("a", "b", "none")
    assert counts.assortments.offers == (("a", "none"), ("a", "b", "none"))
    assert counts.tallies.tolist() == [0, 1, 1, 0, 0]
    assert read_counts(frame, no_choice="none", items=["b", "a", "c"]).assortments.items == ("b", "a", "c", "none")


def test_groups_periods_and_parts(tmp_path: Path) -> None:
    frame = transactions().assign(
        store=["x", "y", "x", "y", "x"],
        time=["2024-01-31 23:00:00", "2024-02-01", "2024-02-01T10:00:00", "2024-02-03 01:00:00", "2024-02-05 01:00:00"],
    )
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    with path.open("a") as file:
        file.write("a;b,zzz,x,2024-02-05\n")
    for source, options in ((frame, {}), (path, {"on_error": "skip"})):

        def sizes(source: Any = source, options: Any = options, **split: Any) -> dict[Any, float]:
            return {key: counts.observations for key, counts in read(source, **options, **split).groups.items()}

        assert sizes(by="store") == {"x": 3, "y": 2}
        assert sizes(by=["store", "chosen"])["x", "tea"] == 2
        assert sizes(period="month") == {"2024-01": 1, "2024-02": 4}
        assert sizes(period="week") == {"2024-01-29": 4, "2024-02-05": 1}
        assert sizes(period="hour")["2024-02-01 10:00"] == 1
        assert sizes(parts=2) == {0: 3, 1: 2}
    assert read(long().assign(store="x"), by="store").groups["x"].observations == 5
    assert [part.observations for part in read(long(), parts=2).groups.values()] == [3, 2]
    for zoned in ("2024-02-01T23:30:00-02:00", pd.Timestamp("2024-02-02 08:30", tz="Asia/Tokyo").tz_convert("UTC")):
        assert list(read(frame.assign(time=zoned), period="hour").groups) == [
            "2024-02-02 01:00" if isinstance(zoned, str) else "2024-02-01 23:00"
        ]
    slow = pd.concat([frame.assign(time="2024-02-01T23:30:00-02:00"), frame[:1].assign(chosen="zzz")])
    assert list(read(slow, period="hour", on_error="skip").groups) == ["2024-02-02 01:00"]
    with pytest.raises(ValueError, match="row 0: the time 'noon' is not of the form"):
        read(frame.assign(time="noon"), period="day")


BALLOTS = """# FILE NAME: votes.toi
# NUMBER ALTERNATIVES: 3
# ALTERNATIVE NAME 1: ann
# ALTERNATIVE NAME 2: bob
# ALTERNATIVE NAME 3: cid
4: 1,2,3
2: {2,3},1
3: 3
"""


def test_preflib(tmp_path: Path) -> None:
    path = tmp_path / "votes.toi"
    path.write_text(BALLOTS)
    reading = read(path)
    assert (reading.format, reading.rows) == ("rankings", 3)
    found = {
        (offer, item): reading.counts.tallies[reading.counts.assortments.coordinate(offer, item)]
        for offer in reading.counts.assortments.offers
        for item in offer
    }
    pair = ("bob", "cid", "nobody further")
    assert [found[pair, item] for item in pair] == [5, 4, 0]
    pair = ("ann", "bob", "nobody further")
    assert [found[pair, item] for item in pair] == [4, 2, 3]
    table = pd.DataFrame({"ranking": ["ann>bob>cid", "bob = cid > ann", "cid"], "count": [4, 2, 3]})
    assert read_counts(table).tallies.tolist() == reading.counts.tallies.tolist()
    assert read_counts(path, ties="skip").totals.tolist() == [9, 9, 7]
    assert read_counts(path, offers="all").assortments.n_offers == 4
    one, two = (read_counts(path, offers=2, seed=5) for _ in range(2))
    assert one.assortments == two.assortments


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("5: 1,4", "line 9: the alternative '4' is not among the 3"),
        ("5: 1,1", "line 9: the ranking .* names a candidate twice"),
        ("x: 1", "line 9: the count 'x'"),
        ("1,2", "line 9: the count ''"),
        ("5: 1,{2", "line 9: the ballot '1,{2' is not of the form"),
        ("5:", "line 9: the ballot '' is not of the form"),
        ("5: {}", "line 9: the ranking is empty"),
        ("# NUMBER ALTERNATIVES: many", "the number of alternatives is 'many'"),
        ("# ALTERNATIVE NAME 2: ann", "the name 'ann' is empty or given twice"),
    ],
)
def test_wrong_ballots(line: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "votes.soc"
    path.write_text(f"{BALLOTS}{line}\n")
    with pytest.raises(ValueError, match=words):
        read(path)
    path.write_text("3\n1,ann\n")
    with pytest.raises(ValueError, match=r"no '# NUMBER ALTERNATIVES"):
        read(path)


def test_alternatives_called_by_the_codes_of_others(tmp_path: Path) -> None:
    path, names = tmp_path / "votes.soi", "# ALTERNATIVE NAME 1: 2\n# ALTERNATIVE NAME 2: 1\n"
    path.write_text(f"# NUMBER ALTERNATIVES: 2\n{names}3: 1\n1: 2\n")
    assert read_counts(path).tallies.tolist() == [1, 3, 0]
    path.write_text(f"# NUMBER ALTERNATIVES: 2\n{names[:24]}3: 1\n1: 2\n")
    with pytest.raises(ValueError, match="line 3: the alternative 1 is called '2', as another is: name that one"):
        read(path)


@pytest.mark.parametrize(
    ("rankings", "options", "words"),
    [
        (["a>b"], {"ties": "flip"}, "ties is 'flip'"),
        (["a>b", "a"], {"nobody": "b"}, "A candidate is called 'b', as nobody is"),
        (["a"], {}, "There is only the candidate 'a'"),
        (["a>b"], {"offers": "some"}, "offers is 'some'"),
        ([">".join("abcdefghijklm")], {"offers": "all"}, "All subsets of 13 candidates are too many"),
        (["a>b"], {"offers": [("a", "x")]}, "An offer holds 'x', who is in no ballot"),
        (["a>b"], {"offers": 1}, "1 of 1 possible offers are more than half"),
        (["a>b"], {"offers": 0}, "The number of offers is 0"),
    ],
)
def test_wrong_options_of_ballots(rankings: list[str], options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read(pd.DataFrame({"ranking": rankings}), **options)


def test_headers_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    for content, words in {
        b'"offered"x,chosen\na,a\n': "this is not CSV",
        b"\xff,chosen\na,a\n": "this is not a CSV file in UTF-8: .* such as 'latin-1'",
    }.items():
        path.write_bytes(content)
        with pytest.raises(ValueError, match=words):
            read(path)
    path.write_text("\n\noffered,chosen\na;b,a\n")
    assert read(path).counts.tallies.tolist() == [1, 0]
    with pytest.raises(ValueError, match="has no columns for its items"):
        read(pd.DataFrame({"chosen": ["a"]}), "wide")


@given(st.lists(st.permutations("abcd"), min_size=1, max_size=8), st.integers(0, 9))
def test_complete_ballots_choose_their_best(orders: list[list[str]], seed: int) -> None:
    votes: dict[Any, float] = {}
    for best_first in orders:
        ballot = tuple((name,) for name in best_first)
        votes[ballot] = votes.get(ballot, 0.0) + 1.0
    counts = choices_from_ballots({"": votes}, items="abcd", offers=3, seed=seed)[""]
    wanted = ChoiceCounts(counts.assortments)
    for offer in counts.assortments.offers:
        for best_first in orders:
            wanted.observe(offer, next(name for name in best_first if name in offer))
    assert counts.tallies.tolist() == pytest.approx(wanted.tallies.tolist())


def test_an_assumed_outside_share() -> None:
    counts = read_counts(transactions(), outside_share=0.5)
    assert counts.assortments.items[-1] == "no choice"
    assert counts.observations == 10
    assert counts.frequencies()[[2, 5, 9]].tolist() == [0.5] * 3
    before = expected()
    shares = {offer: 0.25 * number for number, offer in enumerate(before.assortments.offers)}
    assert with_outside(before, shares).frequencies()[[2, 5, 9]] == pytest.approx([0.0, 0.25, 0.5])
    assert with_outside(counts, 0.9, "no choice").tallies.tolist() == counts.tallies.tolist()
    found = outside_sensitivity(before, lambda counts: {"tea": counts.frequencies()[1]}, [0.2, 0.6])
    assert found.spans["tea"] == pytest.approx(0.4)
    with pytest.raises(ValueError, match="There are no shares to assume"):
        outside_sensitivity(before, lambda _: {"tea": 1.0}, [])
    with pytest.raises(ValueError, match="The answers name"):
        outside_sensitivity(before, lambda _: {})
    with pytest.raises(ValueError, match="There is no share for the offer"):
        with_outside(before, {})
    with pytest.raises(ValueError, match="The share is 1"):
        with_outside(before, 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "odd"}, "There is no format 'odd'"),
        ({"format": "long"}, "has no column 'observation' but 'offered', 'chosen'"),
        ({"columns": {"chosen": "picked"}}, "has no column 'picked' to be 'chosen'"),
        ({"columns": {"role": "chosen"}}, "There is no role 'role'"),
        ({"columns": {"items": ["tea"]}, "format": "wide"}, "has no column 'tea' to be an item"),
        ({"on_error": "hide"}, "on_error is 'hide'"),
        ({"rejects": "x.csv"}, "needs on_error='skip'"),
        ({"separator": ""}, "The separator is ''"),
        ({"by": "store"}, "has no column 'store'"),
        ({"period": "day"}, "has no column 'time'"),
        ({"period": "age"}, "There is no period 'age'"),
        ({"parts": 0}, "The number of parts is 0"),
        ({"parts": 9}, "has 5 records, fewer than the 9 needed"),
        ({"parts": 2, "by": "chosen"}, "one of by, period and parts"),
        ({"memory": "lots"}, "The memory 'lots' is no size"),
    ],
)
def test_wrong_options(options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read(transactions(), **options)


def test_wrong_sources() -> None:
    for source in (7, None, [], [1]):
        with pytest.raises(ValueError, match=r"to read|Cannot read"):
            read(source)
    with pytest.raises(ValueError, match="let them differ in more than case"):
        read(pd.DataFrame({"a": [1], "A": [1], "chosen": ["a"]}))


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
    st.sampled_from(
        [{}, {"parts": 1}, {"by": "chosen"}, {"period": "day"}, {"no_choice": "none"}, {"outside_share": 0.3}]
    ),
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
    st.sampled_from([{}, {"parts": 2}, {"by": "time"}, {"period": "day"}, {"period": "week"}, {"no_choice": "none"}]),
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
