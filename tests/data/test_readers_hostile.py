"""Files that would mislead a reader, fill its memory, or poison a model: refused or read as they are meant."""

import gzip
import json
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

from rankstream.data.readers import read, read_counts
from rankstream.data.readers.job import Job
from rankstream.data.readers.results import choices_from_ballots
from rankstream.data.readers.sources import database
from rankstream.data.readers.sources.database import connected, own_database
from rankstream.data.readers.sources.lines import MAX_LINE_BYTES, MAX_RECORD_LINES

FRAME = pd.DataFrame({"offered": ["a;b", "a;b", "a;c"], "chosen": ["a", "b", "a"], "count": [1, 2, 4]})
WRITERS: dict[str, Callable[[Path], Any]] = {
    "csv": lambda path: FRAME.to_csv(path, index=False),
    "jsonl": lambda path: FRAME.to_json(path, orient="records", lines=True),
    "parquet": lambda path: pl.DataFrame(FRAME.to_dict(orient="list")).write_parquet(path),
}


def write(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    WRITERS[path.suffix[1:]](path)
    return path


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("folder", ["chosen=b", "count=100", "offered=c;b/chosen=c", "extra=7"])
def test_folders_tell_nothing_unasked(folder: str, ending: str, tmp_path: Path) -> None:
    path = write(tmp_path / folder / f"x.{ending}")
    for slow in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            if slow:
                patch.setattr(Job, "quickly", lambda *_: None)
            assert read_counts(path).tallies.tolist() == [1, 2, 4, 0]
            assert "extra" not in read(path).roles


@pytest.mark.parametrize("ending", WRITERS)
def test_folders_tell_what_is_asked_of_them(ending: str, tmp_path: Path) -> None:
    for store in ("a north", "south", "__HIVE_DEFAULT_PARTITION__"):
        write(tmp_path / "chosen=z" / f"store={store.replace(' ', '%20')}" / f"x.{ending}")
    files = str(tmp_path / "**" / f"*.{ending}")
    for slow in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.delattr(Job, "slowly") if not slow else patch.setattr(Job, "quickly", lambda *_: None)
            groups = read(files, partitions="store", by="store").groups
            assert {name: counts.observations for name, counts in groups.items()} == {"": 7, "a north": 7, "south": 7}
    with pytest.raises(ValueError, match=r"has a column 'chosen' of its own: leave it out of the partitions"):
        read(files, partitions="chosen")
    with pytest.raises(ValueError, match=r"is in no folder day=\.\.\.: leave 'day' out"):
        read(files, partitions=("store", "day"))
    with pytest.raises(ValueError, match="A data frame has no folder store="):
        read(FRAME, partitions="store")


def test_folders_of_one_name_are_one_market(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Job, "slowly")
    paths = [tmp_path / f"store={store}" / f"{number}.csv" for number, store in enumerate("xyxz")]
    for path, chosen in zip(paths, "abca", strict=True):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"offered,chosen\na;b;c,{chosen}\n")
    groups = read(paths, partitions="store", by="store").groups
    assert {store: part.tallies.tolist() for store, part in groups.items()} == {
        "x": [1, 0, 1],
        "y": [0, 1, 0],
        "z": [1, 0, 0],
    }


def test_partitions_are_no_items_of_a_wide_table(tmp_path: Path) -> None:
    path = tmp_path / "store=1" / "x.csv"
    path.parent.mkdir()
    path.write_text("a,b,chosen\n1,1,a\n")
    assert read_counts(path, partitions="store").assortments.items == ("a", "b")


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("folder", ["~", "file:", "a[1]*?", "s3:"])
def test_names_of_folders_that_mean_something_to_others(
    folder: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delattr(Job, "slowly")
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    write(home / f"x.{ending}").write_text("not this one")
    write(tmp_path / folder / f"x.{ending}")
    assert read_counts(Path(folder) / f"x.{ending}").tallies.tolist() == [1, 2, 4, 0]


LOST = "a;b,a\n" * 1000


@pytest.mark.parametrize("tail", [LOST, LOST * 30, LOST + 'a;b,a,"\n' + LOST])  # 30: beyond the csv module's own limit
def test_a_quote_that_does_not_close_ends_the_file(tail: str, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text('offered,chosen,note\na;b,a,x\na;b,b,"\n' + tail)
    for on_error in ("stop", "skip"):
        with pytest.raises(ValueError, match=f"line 3: a record does not end within {MAX_RECORD_LINES} lines"):
            read(path, on_error=on_error)
    path.write_text('"offered,chosen\n' + tail)
    with pytest.raises(ValueError, match=f"line 1: a record does not end within {MAX_RECORD_LINES} lines"):
        read(path)


def test_what_is_lost_is_counted_by_lines(tmp_path: Path) -> None:
    path, rejects = tmp_path / "data.csv", tmp_path / "rejects.csv"
    path.write_text('offered,chosen\na;b,a\na;b,"b\na;b,a\na;b,a\n')
    reading = read(path, on_error="skip", rejects=rejects)
    assert (reading.rows, reading.problems.by_kind, reading.counts.observations) == (4, {"malformed": 3}, 1)
    assert reading.problems.summary().startswith("3 records were skipped.\n  3 records, such as ")
    path.write_text('offered,chosen\n"a;b\n",a,b,c\na;b,a\n')
    assert (read(path, on_error="skip").rows, read(path, on_error="skip").problems.total) == (3, 2)
    path.write_text('offered,chosen,note\na;b,a,"' + "x\n" * (MAX_RECORD_LINES - 1) + '"\n')
    assert read_counts(path).observations == 1


@pytest.mark.parametrize("ending", ["csv", "jsonl", "json", "soc", "csv.gz", "jsonl.gz"])
@pytest.mark.parametrize("start", [b"", b'offered,chosen\na;b,a\n{"offered": "a;b", "chosen": "a"}\n'])
@pytest.mark.parametrize(
    ("piece", "words"), [(b"\0", "contains NUL bytes|NUMBER ALTERNATIVES"), (b"a", "longer than|NUMBER ALTERNATIVES")]
)
def test_what_is_no_text_is_refused_before_it_is_read(
    piece: bytes, words: str, start: bytes, ending: str, tmp_path: Path
) -> None:
    path, size = tmp_path / f"data.{ending}", 40
    content = start.split(b"\n", 2)[-1] if "json" in ending else start
    if ending.endswith("gz"):
        path.write_bytes(gzip.compress(content + piece * MAX_LINE_BYTES * size, 1))
    else:
        path.write_bytes(content)
        with path.open("ab") as file:
            for _ in range(size):
                file.write(piece * MAX_LINE_BYTES)
    read(FRAME)  # what is imported is no memory of the file
    tracemalloc.start()
    with pytest.raises(ValueError, match=words):
        read(path, on_error="skip")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * MAX_LINE_BYTES


def test_lines_up_to_the_limit_are_read(tmp_path: Path) -> None:
    for length, good in ((MAX_LINE_BYTES - 1, True), (MAX_LINE_BYTES, False)):
        for slow in (False, True):
            with pytest.MonkeyPatch.context() as patch:
                if slow:
                    patch.setattr(Job, "quickly", lambda *_: None)
                path = tmp_path / "data.csv"
                note = "é" * ((length - 6) // 2) + "x" * (length % 2)
                path.write_text(f"a_av,b_av,chosen,note\n1,1,a,\n1,1,a,{note}\n")
                assert len(path.read_bytes().split(b"\n")[2]) == length
                if good:
                    assert read_counts(path).observations == 2
                else:
                    with pytest.raises(ValueError, match="line 3: the line is longer than 1,000,000 bytes"):
                        read(path)


def test_files_in_utf_16_name_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("offered,chosen\né;b,é\n", encoding="utf-16")
    with pytest.raises(ValueError, match="is in UTF-16: set encoding='utf-16'"):
        read(path)
    assert read_counts(path, encoding="utf-16").assortments.items == ("b", "é")


def test_columns_beyond_all_bounds(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text("".join(f'{{"k{number}": 1}}\n' for number in range(10_001)))
    with pytest.raises(ValueError, match="has more than 10,000 columns"):
        read(path)
    (tmp_path / "data.csv").write_text(",".join(f"c{number}" for number in range(10_001)))
    with pytest.raises(ValueError, match="has more than 10,000 columns"):
        read(tmp_path / "data.csv")


HALF = "\ud800"


def test_half_a_character_is_no_item(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    good = {"offered": ["a", "b"], "chosen": "a", "store": "x"}
    for bad in ({"offered": ["a", HALF]}, {"chosen": HALF}, {"store": HALF}):
        path.write_text(f"{json.dumps(good)}\n{json.dumps(good | bad)}\n")
        with pytest.raises(ValueError, match=r"line 2: '\\ud800' contains half a character"):
            read(path, by="store")
        assert read(path, by="store", on_error="skip").problems.by_kind == {"malformed": 1}
    path.write_text(json.dumps({HALF: 1, "b": 1, "chosen": "b"}))
    with pytest.raises(ValueError, match=r"a column called '\\ud800', which is not a name"):
        read(path)
    (tmp_path / "v.soc").write_bytes(b"# NUMBER ALTERNATIVES: 2\n# ALTERNATIVE NAME 1: \xff\n1: 1,2\n")
    with pytest.raises(ValueError, match="line 2: this is not text in UTF-8"):
        read(tmp_path / "v.soc")
    frame = pd.DataFrame({"offered": pd.Series([["a", HALF]], dtype=object), "chosen": ["a"]})
    with pytest.raises(ValueError, match=r"row 0: .* half a character"):
        read(frame)
    wrong: list[dict[str, Any]] = [{"no_choice": HALF}, {"items": ["a", HALF]}, {"nobody": HALF}]
    for options in wrong:
        with pytest.raises(ValueError, match=r"is '\\ud800': use plain text"):
            read(FRAME, **options)


def test_labels_that_read_the_same_are_no_offer(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    for offer in (["1", 1], ["true", True], [1, 1.0], ["a", "a "]):
        path.write_text(json.dumps({"offered": offer, "chosen": offer[0]}))
        with pytest.raises(ValueError, match=r"line 1: the offer '.*' lists an item twice"):
            read(path)
    columns: Any = {"offered": ["1", 1], "chosen": "chosen"}
    with pytest.raises(ValueError, match=r"The items offered to all are .* list each once"):
        read(FRAME, columns=columns)
    with pytest.raises(ValueError, match="more than once"):
        read(FRAME, items=["a", "b", "c", "1", 1])


def test_a_column_without_a_name_plays_no_part() -> None:
    frame = pd.DataFrame({"": ["x"], "offered": ["a;b"], "chosen": ["a"]})
    assert read_counts(frame).observations == 1
    for role in ("offered", "chosen", "count"):
        with pytest.raises(ValueError, match=f"The column for '{role}' is '', which is not a name"):
            read(frame, columns={role: ""})
    with pytest.raises(ValueError, match="a column called '', which is not a name"):
        read(pd.DataFrame({"": [1], "a": [1], "chosen": ["a"]}))


@pytest.mark.parametrize("mark", [";", "|", ">", " > "])
@pytest.mark.parametrize("count", ["ballot_count", "votes", "n", "Number of ballots", "count", "freq"])
def test_rankings_are_known_however_they_are_joined(mark: str, count: str) -> None:
    rankings = [mark.join(order) for order in ("abc", "bca", "ca")]
    reading = read(pd.DataFrame({"ballot": rankings, count: [5, 3, 2]}))
    wanted = read_counts(pd.DataFrame({"ranking": ["a>b>c", "b>c>a", "c>a"], "count": [5, 3, 2]}))
    assert reading.counts.assortments == wanted.assortments
    assert reading.counts.tallies.tolist() == wanted.tallies.tolist()
    assert reading.roles["count"] == count


@pytest.mark.parametrize(
    ("rankings", "mark"),
    [(["Ray, Bob", "Smith, Ann"], ","), (["a;b"] * 1000 + ["a > b"], ">"), (["a"] * 1000 + ["a|b"], "|")],
)
def test_rankings_that_may_be_names_are_asked_about(rankings: list[str], mark: str) -> None:
    with pytest.raises(
        ValueError, match=f"contains '[{mark}]': set separator='[{mark}]' if that separates its names, or "
    ):
        read(pd.DataFrame({"ranking": rankings}))


def test_names_with_commas_and_columns_that_may_be_counts() -> None:
    assert read_counts(pd.DataFrame({"ranking": ["Ray, Bob > Smith, Ann", "Smith, Ann"]})).assortments.n_items == 3
    names = pd.DataFrame({"ranking": ["Ray, Bob", "Smith, Ann"]})
    assert read_counts(names, separator=">").assortments.n_items == 3
    assert read_counts(names, separator=",").assortments.n_items == 5
    with pytest.raises(ValueError, match=r"may have counts in 'n', 'votes': set columns='count="):
        read(pd.DataFrame({"ranking": ["a>b"], "n": [1], "votes": [2]}))


def test_offers_beyond_all_bounds_are_not_built() -> None:
    rankings = pd.DataFrame({"ranking": [f"a{number};b" for number in range(5000)], "ballot_count": 1})
    with pytest.raises(ValueError, match="All pairs of 5,001 candidates, such as 'b', have 37,507,500 cells"):
        read(rankings)
    assert read_counts(rankings, offers=[("a1", "b"), ("a2", "a3")]).assortments.n_offers == 2
    frame = pd.DataFrame({"offered": [f"a;b{number};c;d" for number in range(4000)], "chosen": "a", "id": range(4000)})
    with pytest.raises(ValueError, match=r"4,000 groups over 16,000 pairs .* are 64,000,000 cells, beyond 50,000,000"):
        read(frame, by="id")
    votes: dict[Any, float] = {tuple((f"c{(first + at) % 30}",) for at in range(30)): 1.0 for first in range(30)}
    with pytest.MonkeyPatch.context() as patch:
        whole = choices_from_ballots({"": votes})[""].tallies.tolist()
        patch.setattr("rankstream.data.readers.results.MAX_BALLOT_CELLS", 1400)
        assert choices_from_ballots({"": votes})[""].tallies.tolist() == whole


def test_nobody_can_guess_where_rows_are_spilled() -> None:
    with own_database() as one, own_database() as other:
        names = [found.execute("SELECT current_setting('temp_directory')").fetchone() for found in (one, other)]
    assert names[0] != names[1]
    for name in names:
        assert name is not None
        assert re.fullmatch(r"rankstream-[0-9a-f]{32}", Path(name[0]).name)


def test_connections_share_a_database_and_no_tables() -> None:
    with connected() as one, connected() as other:
        one.execute("CREATE TEMP TABLE held AS SELECT 1 AS a")
        other.execute("CREATE TEMP TABLE held AS SELECT 2 AS a")
        assert [found.execute("SELECT a FROM held").fetchall() for found in (one, other)] == [[(1,)], [(2,)]]
        names = {found.execute("SELECT current_setting('temp_directory')").fetchone() for found in (one, other)}
        assert len(names) == 1
    with connected() as later, database.one_thread(), connected() as alone:
        assert later.execute("SELECT count(*) FROM duckdb_tables()").fetchone() == (0,)
        assert alone.execute("SELECT current_setting('threads')").fetchone() == (1,)
        assert alone.execute("SELECT current_setting('TimeZone')").fetchone() == ("UTC",)


def test_a_database_that_ended_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with connected():
        pass
    for found in database._DATABASES.values():
        found.close()
    with connected() as again:
        assert again.execute("SELECT 1").fetchone() == (1,)
    before = dict(database._DATABASES)
    monkeypatch.setattr("os.getpid", lambda: -1)  # as after a fork
    with connected():
        assert database._DATABASES.pop((-1, None)) not in before.values()
