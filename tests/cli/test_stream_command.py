import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import rankstream as rs
from rankstream.models.files import load_model
from rankstream.streams import record_of
from rankstream.streams.live import Live, Record
from shell import streaming
from stream_lines import MARKET, call, counted, last_saved, some_lines, switched_lines, tallies
from waits import LONG, wait_for


def test_a_file_is_followed_and_the_rest_is_read_later(tmp_path: Path) -> None:
    lines = some_lines(3000)
    source, out = tmp_path / "choices.jsonl", tmp_path / "out"
    source.write_text("\n".join(lines[:2000]) + "\n" + lines[2000][:20])  # the last line is not whole yet
    done = call(source, "--out", out, "--to-end", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout.splitlines()[-1])["records"] == 2000
    assert "has no line break yet: waiting for the rest" in done.stderr
    source.write_text("\n".join(lines) + "\n")
    assert "Resuming after 2,000 records" in call(source, "--out", out, "--to-end").output
    assert tallies(out) == counted(lines)
    model = load_model(out / "model.json")
    assert np.abs(model.probabilities(MARKET.assortments) - MARKET.frequencies()).mean() < 0.05


@pytest.mark.parametrize("more", [[], ["--detect"]])
def test_killed_at_random_moments_no_record_is_lost_or_counted_twice(tmp_path: Path, more: list[str]) -> None:
    lines = some_lines(3000, seed=1) + (switched_lines(1500) if more else [])
    source, out, moments = tmp_path / "choices.jsonl", tmp_path / "out", random.Random(0)
    source.write_text("")
    written = 0
    command = streaming(source, "--out", out, "--every", "0.02")
    command += more
    for part in range(1, 4):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        saved = {last_saved(out)}
        while len(saved) < 8 or moments.random() < 0.9:  # some more while the state is being saved again and again
            fresh = lines[written : min(written + moments.randrange(1, 40), part * len(lines) // 4)]
            with source.open("a") as file:
                file.write("".join(line + "\n" for line in fresh))
            written += len(fresh)
            time.sleep(0.03)
            saved.add(last_saved(out))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with source.open("a") as file:
        file.write("".join(line + "\n" for line in lines[written:]))
    subprocess.run([*command, "--to-end"], check=True, stdout=subprocess.DEVNULL)
    if more:  # alarms and counts are to the last bit what they are without a stop
        assert call(source, "--out", tmp_path / "whole", "--to-end", *more).exit_code == 0
        stopped, whole = (Live.load(folder / "state.npz").detector for folder in (out, tmp_path / "whole"))
        assert stopped is not None
        assert whole is not None
        assert stopped.alarms
        assert stopped.to_content() == whole.to_content()
        for one, other in ((stopped.counts, whole.counts), (stopped.recent, whole.recent)):
            assert one.digest() == other.digest()
    else:
        assert tallies(out) == counted(lines)
    assert not list(out.glob(".*.tmp"))


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_cleanly_with_the_state_saved(tmp_path: Path, kind: signal.Signals) -> None:
    lines = some_lines(500)
    source, out = tmp_path / "choices.jsonl", tmp_path / "out"
    source.write_text("".join(line + "\n" for line in lines))
    command = streaming(source, "--out", out, "--every", "0.05")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for((out / "model.json").exists)
    process.send_signal(kind)
    output, notes = process.communicate(timeout=LONG)
    assert process.returncode == 0
    assert "500 records saved" in output
    assert notes == f"Stopped: 500 records saved in {out}. Run the same command again to continue.\n"
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
    assert "1 bad line skipped." in done.output
    assert sum(tallies(tmp_path / "skipped").values()) == 6.0


def test_a_declared_no_purchase_option_is_added_and_not_counted_as_an_item(tmp_path: Path) -> None:
    offers = [["tea", "pie", "nothing"], ["tea", "cake", "nothing"]]  # tea, too, is in every offer
    lines = [json.dumps({"offered": offer, "chosen": item}) for offer in offers for item in offer] * 20
    source, out = tmp_path / "choices.jsonl", tmp_path / "out"
    for kind in ("sparse", "max-entropy"):
        source.write_text("".join(line + "\n" for line in lines))
        words = (source, "--out", out / kind, "--to-end", "--publish", kind)
        done = call(*words, "--no-choice", "nothing")
        assert "120 records saved; 2 different offers, 3 different items." in done.output
        assert "nothing" in load_model(out / kind / "model.json").predict(["pie", "cake"])
        source.write_text("".join(line + "\n" for line in [*lines, *lines]))
        assert call(*words).exit_code == 0  # the saved state has the option
        assert "nothing" in load_model(out / kind / "model.json").predict(["pie", "cake"])
    call(source, "--out", out / "undeclared", "--to-end")
    assert "nothing" not in load_model(out / "undeclared" / "model.json").predict(["pie", "cake"])


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
    assert "set one of them" in str(call(source, "--out", tmp_path / "y", "--window", 9, "--half-life", 9).exception)
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
    assert "started with window None, not 10" in str(
        call(source, "--out", tmp_path / "out", "--window", 10, "--to-end").exception
    )


def test_a_whole_last_line_needs_no_newline(tmp_path: Path) -> None:
    source = tmp_path / "choices.jsonl"
    source.write_text("\n".join(some_lines(3)))
    done = call(source, "--out", tmp_path / "out", "--to-end", "--json")
    assert json.loads(done.output.splitlines()[-1])["records"] == 3


def test_a_slow_pipe_is_saved_while_it_waits(tmp_path: Path) -> None:
    command = streaming("-", "--out", tmp_path, "--every", "0.05")
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stdin is not None
    process.stdin.write(some_lines(1)[0] + "\n")
    process.stdin.flush()
    wait_for((tmp_path / "model.json").exists)
    assert sum(tallies(tmp_path).values()) == 1.0
    process.stdin.write(some_lines(2)[1])
    process.stdin.close()
    assert process.wait(timeout=LONG) == 0
    assert sum(tallies(tmp_path).values()) == 2.0
