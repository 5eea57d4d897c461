import json
import os
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import rankstream as rs
from rankstream._core.types import Vec
from rankstream.cli.app import make_app
from rankstream.data import simulate
from rankstream.data.forgetting import DecayingCounts, ForgettingCounts, WindowCounts
from rankstream.models.files import load_model
from rankstream.streams import follower, record_of
from rankstream.streams.live import Live, Record

MARKET = simulate.market(0, n_items=6, n_offers=10, n_test=5)
OTHER = simulate.market(2, n_items=6, n_offers=10, n_test=5)


def some_lines(size: int, seed: int = 0, shares: Vec | None = None) -> list[str]:
    offers = MARKET.assortments
    drawn = simulate.draw_choices(
        offers, MARKET.frequencies() if shares is None else shares, size, np.random.default_rng(seed)
    )
    return [
        json.dumps({"offered": list(offers.offers[offers.owner[k]]), "chosen": offers.items[offers.members[k]]})
        for k in drawn.tolist()
    ]


def switched_lines(size: int) -> list[str]:
    """Choices of other people from the same offers."""
    return some_lines(size, seed=5, shares=OTHER.truth.probabilities(MARKET.assortments))


def call(*words: object, text: str | None = None) -> Result:
    return CliRunner().invoke(make_app(), ["stream", "--served", "sparse", *(str(word) for word in words)], input=text)


def dated(lines: list[str], hours: float) -> list[str]:
    """The same records, some hours apart; every other one says so in seconds."""
    start = datetime(2024, 5, 1, tzinfo=UTC)
    moments = [start + timedelta(hours=hours * number) for number in range(len(lines))]
    told = [when.isoformat() if number % 2 else when.timestamp() for number, when in enumerate(moments)]
    return [json.dumps({**json.loads(line), "time": when}) for line, when in zip(lines, told, strict=True)]


def tallies(out: Path) -> dict[tuple[frozenset[object], object], float]:
    live = Live.load(out / "state.npz")
    assert live.counts is not None
    offers = live.counts.assortments
    return {
        (frozenset(offers.offers[offers.owner[k]]), offers.items[offers.members[k]]): tally
        for k, tally in enumerate(live.counts.tallies.tolist())
        if tally
    }


def counted(lines: list[str]) -> dict[tuple[frozenset[object], object], float]:
    found: dict[tuple[frozenset[object], object], float] = {}
    for line in lines:
        record = record_of(line.encode())
        assert record is not None
        key = (frozenset(record.offered), record.chosen)
        found[key] = found.get(key, 0.0) + record.times
    return found


def test_a_file_is_followed_and_the_rest_is_read_later(tmp_path: Path) -> None:
    lines = some_lines(3000)
    source, out = tmp_path / "choices.jsonl", tmp_path / "out"
    source.write_text("\n".join(lines[:2000]) + "\n" + lines[2000][:20])  # the last line is not whole yet
    done = call(source, "--out", out, "--to-end", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout.splitlines()[-1])["records"] == 2000
    assert "has no line break: it waits for the rest" in done.stderr
    source.write_text("\n".join(lines) + "\n")
    assert "Going on after 2,000 records" in call(source, "--out", out, "--to-end").output
    assert tallies(out) == counted(lines)
    model = load_model(out / "model.json")
    assert np.abs(model.probabilities(MARKET.assortments) - MARKET.frequencies()).mean() < 0.05


def state(out: Path) -> dict[str, bytes]:
    """Everything in a checkpoint."""
    with np.load(out / "state.npz") as archive:
        return {name: archive[name].tobytes() for name in archive.files}


@pytest.mark.parametrize("more", [[], ["--detect"]])
def test_killed_at_random_moments_no_record_is_lost_or_counted_twice(tmp_path: Path, more: list[str]) -> None:
    lines = some_lines(3000, seed=1) + (switched_lines(1500) if more else [])
    source, out, moments = tmp_path / "choices.jsonl", tmp_path / "out", random.Random(0)
    source.write_text("")
    written = 0
    command = [
        sys.executable,
        "-m",
        "rankstream",
        "stream",
        "--served",
        "sparse",
        str(source),
        "--out",
        str(out),
        "--every",
        "0.02",
    ]
    command += more
    for _ in range(3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 1.5 + moments.random()
        while time.monotonic() < end:
            fresh = lines[written : written + moments.randrange(1, 40)]
            with source.open("a") as file:
                file.write("".join(line + "\n" for line in fresh))
            written += len(fresh)
            time.sleep(0.03)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with source.open("a") as file:
        file.write("".join(line + "\n" for line in lines[written:]))
    subprocess.run([*command, "--to-end"], check=True, stdout=subprocess.DEVNULL)
    if more:  # to the last bit what it is without a stop, alarms included
        assert call(source, "--out", tmp_path / "whole", "--to-end", *more).exit_code == 0
        assert state(out) == state(tmp_path / "whole")
        assert Live.load(out / "state.npz").alarms
    else:
        assert tallies(out) == counted(lines)
    assert not list(out.glob(".*.tmp"))


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_cleanly_with_the_state_saved(tmp_path: Path, kind: signal.Signals) -> None:
    lines = some_lines(500)
    source, out = tmp_path / "choices.jsonl", tmp_path / "out"
    source.write_text("".join(line + "\n" for line in lines))
    command = [
        sys.executable,
        "-m",
        "rankstream",
        "stream",
        "--served",
        "sparse",
        str(source),
        "--out",
        str(out),
        "--every",
        "0.05",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    patience = time.monotonic() + 60.0
    while not (out / "model.json").exists() and time.monotonic() < patience:
        time.sleep(0.05)
    process.send_signal(kind)
    output, notes = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "500 records saved" in output
    assert notes == f"Stopped: 500 records are saved in {out}; the same command goes on from there.\n"
    assert tallies(out) == counted(lines)


def test_standard_input_and_counts_that_forget(tmp_path: Path) -> None:
    text = "".join(line + "\n" for line in some_lines(400))
    done = call("-", "--out", tmp_path / "a", "--window", "100", text=text)
    assert done.exit_code == 0, done.output
    assert sum(tallies(tmp_path / "a").values()) == 100.0
    done = call("-", "--out", tmp_path / "b", "--half-life", "50", text=text)
    assert sum(tallies(tmp_path / "b").values()) < 80.0


def test_bad_lines_stop_or_are_skipped(tmp_path: Path) -> None:
    source = tmp_path / "choices.jsonl"
    good = '{"offered": "tea;pie", "chosen": "tea", "count": 3}'
    source.write_text(f'{good}\n\n{{"offered": ["tea"], "chosen": "pie"}}\n{good}\n')
    stopped = call(source, "--out", tmp_path / "stopped", "--to-end")
    assert "line 3: its choice 'pie' is not in its offer" in str(stopped.exception)
    assert sum(tallies(tmp_path / "stopped").values()) == 3.0  # what came before is kept
    done = call(source, "--out", tmp_path / "skipped", "--to-end", "--on-error", "skip")
    assert "1 bad line was skipped." in done.output
    assert sum(tallies(tmp_path / "skipped").values()) == 6.0


GARBAGE = [
    *("{", "[]", "{}", "\\xff", "1e999"),
    '{"offered": 3, "chosen": 3}',
    '{"offered": [], "chosen": 3}',
    '{"offered": ["a", "a"], "chosen": "a"}',
    '{"offered": ["a"], "chosen": "a", "count": -1}',
    '{"offered": ["a"], "chosen": "a", "count": true}',
    '{"offered": [[]], "chosen": "a"}',
    '{"offered": ["a"], "chosen": ["a"]}',
]


@pytest.mark.parametrize("text", GARBAGE)
def test_garbage_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"^it"):
        record_of(text.encode("latin-1"))


@pytest.mark.parametrize("time", ["[1]", "[]", "{}", "true", "null", '"noon"', "1e999", "1" + 400 * "0"])
def test_a_time_that_cannot_be_read_is_none(time: str) -> None:
    record = record_of(f'{{"offered": ["a"], "chosen": "a", "time": {time}}}'.encode())
    assert record is not None
    assert record.time is None


def test_wrong_sources_and_folders_are_explained(tmp_path: Path) -> None:
    source = tmp_path / "choices.jsonl"
    source.write_text("".join(line + "\n" for line in some_lines(20)))
    assert call(source, "--out", tmp_path / "out", "--to-end").exit_code == 0
    other = tmp_path / "other.jsonl"
    other.write_text("")
    assert "follows" in str(call(other, "--out", tmp_path / "out", "--to-end").exception)
    assert "no file" in str(call(tmp_path / "nowhere", "--out", tmp_path / "new", "--to-end").exception)
    assert "is a file" in str(call(source, "--out", other, "--to-end").exception)
    assert "--on-error is 'x'" in str(call(source, "--out", tmp_path / "new", "--on-error", "x").exception)
    assert "one of the two" in str(call(source, "--out", tmp_path / "y", "--window", 9, "--half-life", 9).exception)
    source.write_text("")
    assert call(source, "--out", tmp_path / "out", "--to-end").exit_code == 1


def test_a_source_that_gave_nothing_binds_no_folder(tmp_path: Path) -> None:
    good, wrong = tmp_path / "good.jsonl", tmp_path / "wrong.csv"
    good.write_text("\n".join(some_lines(3)) + "\n")
    wrong.write_text("offered,price\na;b,3\n")
    for source in (tmp_path / "missing.jsonl", wrong):
        assert isinstance(call(source, "--out", tmp_path / "out", "--to-end").exception, ValueError)
    found = call(good, "--out", tmp_path / "out", "--to-end", "--rounds", 3)
    assert found.exit_code == 0
    assert "3 records saved" in found.output


def test_growing_offer_by_offer_counts_as_if_all_were_known() -> None:
    records = [record_of(line.encode()) for line in some_lines(300)]
    live = Live(rounds=1)
    for record in records:
        assert record is not None
        live.observe([record])
    assert live.counts is not None
    whole = rs.ChoiceCounts(live.counts.assortments)
    for record in records:
        assert record is not None
        whole.observe(record.offered, record.chosen, record.times)
    assert np.array_equal(whole.tallies, live.counts.tallies)
    with pytest.raises(ValueError, match="not in its offer"):
        live.observe([Record(("tea",), "pie")])
    assert live.records == 300


def test_other_settings_on_resume_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "choices.jsonl"
    source.write_text("".join(line + "\n" for line in some_lines(20)))
    assert call(source, "--out", tmp_path / "out", "--rounds", 5, "--to-end").exit_code == 0
    assert call(source, "--out", tmp_path / "out", "--to-end").exit_code == 0
    assert "begun with window None, not 10" in str(
        call(source, "--out", tmp_path / "out", "--window", 10, "--to-end").exception
    )


def test_a_whole_last_line_needs_no_newline(tmp_path: Path) -> None:
    source = tmp_path / "choices.jsonl"
    source.write_text("\n".join(some_lines(3)))
    done = call(source, "--out", tmp_path / "out", "--to-end", "--json")
    assert json.loads(done.output.splitlines()[-1])["records"] == 3


def test_a_slow_pipe_is_saved_while_it_waits(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "rankstream",
        "stream",
        "--served",
        "sparse",
        "-",
        "--out",
        str(tmp_path),
        "--every",
        "0.05",
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stdin is not None
    process.stdin.write(some_lines(1)[0] + "\n")
    process.stdin.flush()
    patience = time.monotonic() + 60.0
    while not (tmp_path / "model.json").exists() and time.monotonic() < patience:
        time.sleep(0.05)
    assert sum(tallies(tmp_path).values()) == 1.0
    process.stdin.write(some_lines(2)[1])
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    assert sum(tallies(tmp_path).values()) == 2.0


def test_a_change_is_noticed_and_told(tmp_path: Path) -> None:
    source = tmp_path / "choices.jsonl"
    source.write_text("\n".join(some_lines(2000) + switched_lines(1000)) + "\n")
    done = call(source, "--out", tmp_path / "json", "--to-end", "--detect", "--json")
    told = [json.loads(line) for line in done.output.splitlines()]
    changes = [change for line in told for change in line["changes"]]
    assert 2000 < changes[0]["record"] < 2700
    assert len(changes) == told[-1]["alarms"]
    assert "the counts begin again" in call(source, "--out", tmp_path / "text", "--to-end", "--detect").output
    watched = Live.load(tmp_path / "json" / "state.npz")
    assert watched.records == 3000
    assert watched.counts is not None
    assert watched.counts.observations < 2500
    assert load_model(tmp_path / "json" / "model.json") == watched.model


def test_how_records_are_batched_makes_no_difference_to_a_watched_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "choices.jsonl"
    counted_lines = [line.replace("}", ', "count": 7}') for line in some_lines(100, seed=3)]
    source.write_text("\n".join(some_lines(730) + counted_lines + switched_lines(600)) + "\n")
    for size in (1000, 37):
        monkeypatch.setattr(follower, "BATCH", size)
        done = call(source, "--out", tmp_path / str(size), "--to-end", "--detect", "--threshold", 8)
        assert done.exit_code == 0, done.output
    assert state(tmp_path / "1000") == state(tmp_path / "37")


def test_what_a_watched_model_cannot_do_is_explained(tmp_path: Path) -> None:
    source = tmp_path / "choices.jsonl"
    source.write_text("\n".join([*some_lines(30), '{"offered": "a;b", "chosen": "a", "count": 0.5}']) + "\n")
    for words, message in (
        (["--detect", "--window", 9], "leave window out"),
        (["--threshold", 9], "give both, or neither"),
        (["--detect"], "line 31: its count 0.5 is not a whole number"),
        (["--detect", "--threshold", 9], "begun with threshold 15.0, not 9.0"),
        (["--window", 9], "begun with window None, not 9"),
    ):
        assert message in str(call(source, "--out", tmp_path / "out", "--to-end", *words).exception)
    assert not (tmp_path / "out" / "model.json").exists()  # before the first block there is none
    with pytest.raises(ValueError, match="before the first 50 choices"):
        _ = Live.load(tmp_path / "out" / "state.npz").model
    assert call(source, "--out", tmp_path / "plain", "--to-end", "--on-error", "skip").exit_code == 0
    assert "begun with detect False, not True" in str(
        call(source, "--out", tmp_path / "plain", "--to-end", "--detect").exception
    )


@pytest.mark.parametrize(("option", "kind"), [("--half-life", DecayingCounts), ("--window", WindowCounts)])
def test_choices_fade_by_the_time_of_the_records(option: str, kind: type[ForgettingCounts], tmp_path: Path) -> None:
    lines = dated(some_lines(120), hours=6.0)
    source, out = tmp_path / "choices.jsonl", tmp_path / "live"
    source.write_text("\n".join(lines[:70]) + "\n")
    assert call(source, "--out", out, option, "2d", "--to-end").exit_code == 0
    source.write_text("\n".join(lines) + "\n")
    assert call(source, "--out", out, option, "48h", "--to-end").exit_code == 0  # the same, in other words
    live = Live.load(out / "state.npz")
    assert isinstance(live.counts, kind)
    alone = kind(live.counts.assortments, timedelta(days=2))
    for line in lines:
        record = record_of(line.encode())
        assert record is not None
        alone.observe(record.offered, record.chosen, time=record.time)
    np.testing.assert_allclose(live.counts.tallies, alone.tallies, rtol=1e-9)
    assert live.counts.observations < 20.0
    assert "was begun with" in str(call(source, "--out", out, option, "3d", "--to-end").exception)


def test_what_fades_by_time_needs_one(tmp_path: Path) -> None:
    source = tmp_path / "choices.jsonl"
    source.write_text("\n".join([*dated(some_lines(3), 1.0), *some_lines(1)]) + "\n")
    told = call(source, "--out", tmp_path / "a", "--half-life", "1d", "--to-end")
    assert 'line 4: it has no "time" that can be read' in str(told.exception)
    for words, message in (
        (("--half-life", "7 parsecs"), "neither a number of choices nor a time"),
        (("--half-life", "0"), "neither a number of choices nor a time"),
        (("--window", "2.5"), "window is 2.5: it must be a whole number"),
        (("--detect", "--half-life", "1d"), "the half-life is that of a copy, in choices"),
    ):
        assert message in str(call(source, "--out", tmp_path / "b", *words).exception)
