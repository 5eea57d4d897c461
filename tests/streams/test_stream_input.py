"""What a stream reads, JSON and CSV, and what it must not swallow: records that poison a model, or a folder."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rankstream as rs
from rankstream.streams.live import Live
from rankstream.streams.sources.parser import LineReader, record_from
from shell import run, streaming
from waits import wait_for

TABLES = {
    "transactions": ("offered,chosen,count\n", "tea;pie,tea,2\n", '"tea;pie",pie,1\n', "\n", "tea;pie,tea,1\n"),
    "wide": ("tea,pie,chosen,count\n", "1,1,tea,3\n", "1,1,pie,1\n"),
    "counts": ("offered\titem\tcount\n", "tea;pie\ttea\t3\n", "tea;pie\tpie\t1\n"),
    "other names": ("menu,bought\n", *3 * ("tea|pie,tea\n",), "tea|pie,pie\n"),
    "line breaks in quotes": ('offered,"a\nnote",chosen\n', *3 * ('tea;pie,"one\ntwo",tea\n',), "tea;pie,,pie\n"),
}
OPTIONS = {"other names": ("--columns", "offered=menu,chosen=bought", "--separator", "|")}


def stream(folder: Path, *words: str, source: str = "choices.csv") -> subprocess.CompletedProcess[str]:
    return run("stream", "--publish", "sparse", source, "--out", "out", "--to-end", "--rounds", "3", *words, cwd=folder)


def tallies(out: Path) -> dict[object, float]:
    live = Live.load(out / "state.npz")
    assert live.counts is not None
    offers = live.counts.assortments
    return {offers.items[k]: tally for k, tally in zip(offers.members, live.counts.tallies.tolist(), strict=True)}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_are_read_as_other_commands_read_them(kind: str, tmp_path: Path) -> None:
    path, lines, options = tmp_path / "choices.csv", TABLES[kind], OPTIONS.get(kind, ())
    for stop in range(1, len(lines) + 1):  # stopped behind every record
        path.write_text("".join(lines[:stop]))
        done = stream(tmp_path, *(options if stop < 3 else ()))  # and told how to read it only in the beginning
        assert done.returncode == 0, done.stderr
    counts = rs.read_counts(path, columns=options[1] if options else None)
    offers = counts.assortments
    expected = {offers.items[k]: tally for k, tally in zip(offers.members, counts.tallies.tolist(), strict=True)}
    assert tallies(tmp_path / "out") == expected == {"tea": 3.0, "pie": 1.0}
    assert "started with no_choice None, not none" in stream(tmp_path, "--no-choice", "none").stderr


def live_tallies(out: Path) -> dict[object, Any]:
    """The counts of a stream by offer and item, whatever the order of its items."""
    counts = Live.load(out / "state.npz").counts
    assert counts is not None
    return by_offer(counts)


def by_offer(counts: rs.ChoiceCounts) -> dict[object, Any]:
    offers = counts.assortments
    return {
        (frozenset(offers.offers[offers.owner[k]]), offers.items[offers.members[k]]): pytest.approx(tally)
        for k, tally in enumerate(counts.tallies.tolist())
    }


def test_a_stream_reads_the_names_numbers_and_dates_of_a_till(tmp_path: Path) -> None:
    path, out = tmp_path / "choices.csv", tmp_path / "out"
    first = "tea|pie;tea;1,5;02.03.2026 08:03\ntea|pie;pie;1.000;03.03.2026 08:03\n"
    path.write_text("Available;Bought;Counts;Timestamp\n" + first)
    done = stream(tmp_path, "--separator", "|", "--half-life", "7d")
    assert done.returncode == 0, done.stderr
    assert "Values are read as numbers with decimal commas." in done.stderr
    assert "Dates are read as day, month, year." in done.stderr
    assert live_tallies(out) == by_offer(rs.read_counts(path, half_life="7d"))
    with path.open("a") as file:  # without a comma: what was recognised holds when the stream goes on
        file.write("tea|pie;tea;2.000;04.03.2026 08:03\n")
    assert stream(tmp_path).returncode == 0
    assert live_tallies(out) == by_offer(rs.read_counts(path, half_life="7d"))


PRICED = [("tea@3,50;pie@2", "tea", "2.3.2026 8:03"), ("tea@3;pie@2,00", "pie@2", "3.3.2026 8:03")]
LEVELS = '{"tea": [3, 3.5], "pie": [2]}'


@pytest.mark.parametrize("kind", ["csv", "wide", "jsonl", "mappings"])
def test_prices_with_decimal_commas_are_those_of_the_file(kind: str, tmp_path: Path) -> None:
    path, prices = tmp_path / ("choices.csv" if kind in ("csv", "wide") else "choices.jsonl"), "offered"
    if kind == "csv":
        path.write_text("offer\tbought\tdate\n" + "".join("\t".join(record) + "\n" for record in PRICED))
    elif kind == "wide":
        prices = "tea=p1,pie=p2"
        path.write_text("nothing;p1;p2;bought;date\n1;3,50;2;tea;2.3.2026 8:03\n1;3;2,00;pie;3.3.2026 8:03\n")
    else:
        offers: list[object] = [offer for offer, *_ in PRICED]
        if kind == "mappings":
            offers = [{"tea": "3,50", "pie": 2}, {"tea": 3, "pie": "2,00"}]
        records = [
            {"available": offer, "bought": bought, "timestamp": date}
            for offer, (_, bought, date) in zip(offers, PRICED, strict=True)
        ]
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    words = ("--price-columns", prices, "--price-levels", LEVELS, "--half-life", "7d")
    done = stream(tmp_path, *words, source=path.name)
    assert done.returncode == 0, done.stderr
    levels = rs.PriceLevels(json.loads(LEVELS))
    whole = rs.read_counts(path, prices=prices, price_levels=levels, half_life="7d")
    assert live_tallies(tmp_path / "out") == by_offer(whole)


def test_a_till_that_could_mean_two_things_is_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "choices.csv"
    path.write_text("offered,chosen,date\ntea;pie,tea,02/03/2026\n")
    assert 'no readable "time"' in stream(tmp_path, "--half-life", "7d").stderr
    assert stream(tmp_path, "--half-life", "7d", "--dates", "mdy").returncode == 0
    assert Live.load(tmp_path / "out" / "state.npz").notes["reading"]["dates"] == "mdy"
    assert "started with dates mdy, not dmy" in stream(tmp_path, "--dates", "dmy").stderr
    with pytest.raises(ValueError, match="decimal is ';': choose one of"):
        LineReader("choices.csv", decimal=";")


def test_an_empty_choice_is_no_choice(tmp_path: Path) -> None:
    (tmp_path / "choices.csv").write_text("offered,chosen\ntea,tea\ntea,\n")
    assert stream(tmp_path, "--no-choice", "none").returncode == 0
    assert tallies(tmp_path / "out") == {"tea": 1.0, "none": 1.0}
    path = tmp_path / "choices.jsonl"
    path.write_text('{"menu": [0, 1], "chosen": 1}\n{"menu": [0, 1], "chosen": null}\n{"menu": [2, 0]}\n')
    done = run(
        *(
            "stream",
            "--publish",
            "sparse",
            path.name,
            "--out",
            "json",
            "--to-end",
            "--no-choice",
            "0",
            "--columns",
            "offered=menu",
        ),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    live = Live.load(tmp_path / "json" / "state.npz")
    assert live.counts is not None
    assert live.counts.assortments.offers == ((0, 1), (2, 0))
    assert live.counts.tallies.tolist() == [1.0, 1.0, 0.0, 1.0]


def test_what_is_offered_to_all_may_be_said_once() -> None:
    reader = LineReader("-", columns="offered=tea;pie")
    assert not reader.begin(b'{"chosen": "tea"}', "-")
    assert reader.record(b'{"chosen": "tea"}\n') == rs.Record(("tea", "pie"), "tea")
    with pytest.raises(ValueError, match="it has no object: write"):
        record_from([], {"offered": ["tea", "pie"]}, "nothing")
    with pytest.raises(ValueError, match="map 'ranking': JSON Lines only have offered, chosen, count, time"):
        LineReader("-", columns="ranking=x").begin(b"{", "-")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("observation,item,chosen\n1,tea,1\n", "a table of the format 'long', where a row is not a choice"),
        ("offer_id,chosen\n1,tea\n", "has no column"),
        ("offer_id,item,chosen\n1,tea,1\n", "a table of numbered offers, where a row is not a choice"),
        ("offered,price\ntea,1\n", "has no column 'chosen'"),
        ("offered,chosen\ntea;pie,tea,3\n", "line 2: there are more values than columns"),
        ("offered,chosen\ntea;pie,rum\n", "line 2: the choice 'rum' is not in its offer"),
        ('offered,chosen\ntea;pie,"tea"x\n', "line 2: it is not CSV"),
        ('offered,chosen\ntea;pie,"tea\n' + 12 * "tea;pie,tea\n", "line 2: it is not CSV (unexpected end of data)"),
        ("offered,chosen\ntea;p\udcffe,tea\n", "line 2: this is not a CSV file in UTF-8"),
        ("offered,chosen,count\ntea,tea,1e15\n", "line 2: its count 1e+15 is not a number below"),
    ],
)
def test_bad_tables_are_explained(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "choices.csv").write_text(text, errors="surrogateescape")
    done = stream(tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_forgotten_quote_costs_one_record(tmp_path: Path) -> None:
    (tmp_path / "choices.csv").write_text('offered,chosen\ntea;pie,"tea\n' + 12 * "tea;pie,tea\n")
    assert stream(tmp_path, "--on-error", "skip").returncode == 0
    assert tallies(tmp_path / "out") == {"tea": 12.0, "pie": 0.0}


def test_a_pipe_is_read_as_it_looks(tmp_path: Path) -> None:
    command = streaming("-", "--out", tmp_path, "--rounds", "3")
    text = b"\xef\xbb\xbfoffered;chosen\n" + 3 * b'"tea;pie";tea\n' + b'"tea;pie";pie'
    assert subprocess.run(command, input=text, check=True, capture_output=True).stderr == b""
    assert tallies(tmp_path) == {"tea": 3.0, "pie": 1.0}


GOOD = '{"offered": ["a", "b", 1], "chosen": "a", "time": 1700000000}'
POISON = {
    '{"offered": ["a", "\\ud800"], "chosen": "a", "time": 1700000000}': "half a character",
    '{"offered": ["1", 1], "chosen": 1, "time": 1700000000}': "lists an item twice",
    '{"offered": ["1", "a"], "chosen": "a", "time": 1700000000}': "its item '1' looks like 1, seen earlier",
    '{"offered": ["", "a"], "chosen": "a", "time": 1700000000}': "has an empty item",
    '{"offered": ["a"], "chosen": "a", "chosen": "a", "time": 1700000000}': "has a key twice",
    '{"offered": ["a"], "chosen": "a", "time": 1700000000123}': "more than a day ahead of the clock",
    '{"offered": ["a"], "chosen": "a", "time": "2924-01-01"}': "more than a day ahead of the clock",
    '{"offered": ["a"], "chosen": "a", "count": 0.5, "time": 1700000000}': "a window counts whole choices",
    '{"offered": ["a"], "chosen": "a", "text": "' + 10**6 * "x" + '"}': "longer than 1,000,000 bytes",
}


@pytest.mark.parametrize("poison", POISON, ids=POISON.values())
def test_a_record_that_would_poison_the_model_is_bad(poison: str, tmp_path: Path) -> None:
    (tmp_path / "choices.jsonl").write_text(f"{GOOD}\n{poison}\n{GOOD}\n")
    done = stream(tmp_path, "--window", "7d", source="choices.jsonl")
    assert done.returncode == 2
    assert done.stderr.startswith("rankstream: choices.jsonl, line 2: ")
    assert POISON[poison] in done.stderr
    done = stream(tmp_path, "--window", "7d", "--on-error", "skip", "--json", source="choices.jsonl")
    assert json.loads(done.stdout)["skipped"] == 1
    assert tallies(tmp_path / "out") == {"a": 2.0, "b": 0.0, 1: 0.0}
    assert run("predict", "out/model.json", "--offer", "a;1", cwd=tmp_path).returncode == 0


def test_items_are_the_same_whatever_spaces_are_around_them(tmp_path: Path) -> None:
    (tmp_path / "choices.jsonl").write_text('{"offered": "tea; pie", "chosen": "pie"}\n' * 2)
    assert stream(tmp_path, source="choices.jsonl").returncode == 0
    assert tallies(tmp_path / "out") == {"tea": 0.0, "pie": 2.0}


def test_a_time_that_nobody_needs_may_be_anything(tmp_path: Path) -> None:
    (tmp_path / "choices.jsonl").write_text('{"offered": ["a"], "chosen": "a", "time": 1700000000123}\n')
    assert stream(tmp_path, source="choices.jsonl").returncode == 0


def test_a_packed_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "choices.csv.gz").write_bytes(b"x")
    assert "is compressed and cannot grow" in stream(tmp_path, source="choices.csv.gz").stderr


def test_rounds_that_would_never_end_are_refused(tmp_path: Path) -> None:
    (tmp_path / "choices.jsonl").write_text(GOOD + "\n")
    done = stream(tmp_path, "--rounds", "9" * 30, source="choices.jsonl")
    assert done.returncode == 2
    assert "less than or equal to 1000000" in done.stderr
    assert not (tmp_path / "out" / "state.npz").exists()


def test_a_folder_belongs_to_one_process(tmp_path: Path) -> None:
    (tmp_path / "choices.jsonl").write_text(GOOD + "\n")
    command = streaming("choices.jsonl", "--out", "out", "--every", "0.05")
    command += ["--rounds", "3"]
    first = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for((tmp_path / "out" / "model.json").exists)
    second = stream(tmp_path, source="choices.jsonl")
    first.kill()
    first.wait()
    assert second.returncode == 2
    assert second.stderr == (
        "rankstream: Another process is writing to out: stop it first, or choose another folder with --out.\n"
    )
    assert stream(tmp_path, source="choices.jsonl").returncode == 0  # what was killed keeps no lock


PRINTS_WHAT_IT_LEARNS = """
from rankstream.cli import main
from rankstream.streams.sources.follower import Follower

take = Follower.take

def take_and_print(follower, step):
    take(follower, step)
    if step.records:
        print(follower.live.records, "records learned", flush=True)

Follower.take = take_and_print
main()
"""


def read_until(terminal: int, text: bytes) -> None:
    """Read what a terminal shows until this is among it; what ends without it is an ``OSError``."""
    shown = b""
    while text not in shown:
        shown += os.read(terminal, 1000)


def test_a_terminal_that_is_closed_ends_it_with_everything_saved(tmp_path: Path) -> None:
    (tmp_path / "choices.jsonl").write_text(GOOD + "\n")
    assert stream(tmp_path, source="choices.jsonl").returncode == 0
    _, _, _, *words = streaming("choices.jsonl", "--out", "out", "--every", "1000")
    child, terminal = pty.fork()
    if not child:
        os.chdir(tmp_path)
        os.execv(sys.executable, [sys.executable, "-c", PRINTS_WHAT_IT_LEARNS, *words])
    read_until(terminal, b"Resuming after 1 record")
    with (tmp_path / "choices.jsonl").open("a") as file:
        file.write(GOOD + "\n")
    read_until(terminal, b"2 records learned\r\n")  # with its end: a print that is cut off is an error
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert Live.load(tmp_path / "out" / "state.npz").records == 2


def test_rejects_overwrite_neither_data_nor_output(tmp_path: Path) -> None:
    data = tmp_path / "choices.csv"
    data.write_text("offered,chosen\ntea;pie,tea\n")
    (tmp_path / "hard.csv").hardlink_to(data)
    (tmp_path / "soft.csv").symlink_to(data)
    words = ("fit", "choices.csv", "-o", "model.json", "--on-error", "skip", "--rejects")
    for name in ("choices.csv", "hard.csv", "soft.csv", "model.json", "./model.json"):
        done = run(*words, name, cwd=tmp_path)
        assert (done.returncode, "choose a separate file for the rejects" in done.stderr) == (2, True)
    with pytest.raises(ValueError, match="The rejects would overwrite"):
        rs.read(data, on_error="skip", rejects=tmp_path / "hard.csv")
    assert data.read_text() == "offered,chosen\ntea;pie,tea\n"
