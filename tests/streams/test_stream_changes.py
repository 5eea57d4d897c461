"""``rankstream stream`` where the market changes, and where choices fade by time."""

import json
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from rankstream.data.decay import DecayingCounts, ForgettingCounts, WindowCounts
from rankstream.models.files import load_model
from rankstream.streams import record_of
from rankstream.streams.live import Live
from rankstream.streams.sources import follower
from stream_lines import call, dated, some_lines, switched_lines


def test_a_change_is_noticed_and_told(tmp_path: Path) -> None:
    source = tmp_path / "choices.jsonl"
    source.write_text("\n".join(some_lines(2000) + switched_lines(1000)) + "\n")
    done = call(source, "--out", tmp_path / "json", "--to-end", "--detect", "--json")
    told = [json.loads(line) for line in done.output.splitlines()]
    changes = [change for line in told for change in line["changes"]]
    assert 2000 < changes[0]["record"] < 2700
    assert len(changes) == told[-1]["alarms"]
    assert "counts restart" in call(source, "--out", tmp_path / "text", "--to-end", "--detect").output
    watched = Live.load(tmp_path / "json" / "state.npz")
    assert watched.records == 3000
    assert watched.counts is not None
    assert watched.counts.observations < 2500
    assert load_model(tmp_path / "json" / "model.json") == watched.model


def test_how_records_are_batched_makes_no_difference_to_changes_and_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "choices.jsonl"
    counted_lines = [line.replace("}", ', "count": 7}') for line in some_lines(100, seed=3)]
    source.write_text("\n".join(some_lines(730) + counted_lines + switched_lines(600)) + "\n")
    for size in (1000, 37):
        monkeypatch.setattr(follower, "BATCH_RECORDS", size)
        done = call(source, "--out", tmp_path / str(size), "--to-end", "--detect", "--threshold", 8)
        assert done.exit_code == 0, done.output
    whole, parts = (Live.load(tmp_path / str(size) / "state.npz") for size in (1000, 37))
    assert whole.alarms == parts.alarms
    assert whole.counts is not None
    assert parts.counts is not None
    assert len(whole.alarms) > 0
    assert whole.counts.digest() == parts.counts.digest()


def test_changes_are_looked_for_unless_switched_off_or_impossible(tmp_path: Path) -> None:
    source, lines = tmp_path / "choices.jsonl", some_lines(2000) + switched_lines(1000)
    source.write_text("\n".join(lines) + "\n")
    for words, count in (([], 1), (["--no-detect"], 0), (["--half-life", 5000], 0)):
        done = call(source, "--out", tmp_path / f"{count}{len(words)}", "--to-end", "--publish", "sparse", *words)
        assert done.output.count("Change detected at choice") == count
    note = "Changes of tastes are not detected, because a record has a count other than 1."
    assert note not in done.output
    source.write_text("\n".join([lines[0].replace("}", ', "count": 2.5}'), *lines]) + "\n")
    done = call(source, "--out", tmp_path / "parts", "--to-end", "--publish", "sparse")
    assert done.exit_code == 0
    assert "Change detected" not in done.output
    assert done.output.count(note) == 1


def test_what_a_watched_model_cannot_do_is_explained(tmp_path: Path) -> None:
    source = tmp_path / "choices.jsonl"
    source.write_text("\n".join([*some_lines(30), '{"offered": "a;b", "chosen": "a", "count": 0.5}']) + "\n")
    for words, message in (
        (["--detect", "--window", 9], "leave out window"),
        (["--threshold", 9, "--no-detect"], "set detect as well, or leave it out"),
        (["--detect"], "line 31: its count 0.5 is not a whole number"),
        (["--detect", "--threshold", 9], "started with threshold 15.0, not 9.0"),
        (["--window", 9], "started with window None, not 9"),
    ):
        assert message in str(call(source, "--out", tmp_path / "out", "--to-end", *words).exception)
    assert (tmp_path / "out" / "model.json").exists()
    plain = ("--out", tmp_path / "plain", "--to-end", "--no-detect", "--on-error", "skip")
    assert call(source, *plain).exit_code == 0
    assert "started with detect False, not True" in str(
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
    assert "was started with" in str(call(source, "--out", out, option, "3d", "--to-end").exception)


def test_what_fades_by_time_needs_one(tmp_path: Path) -> None:
    source = tmp_path / "choices.jsonl"
    source.write_text("\n".join([*dated(some_lines(3), 1.0), *some_lines(1)]) + "\n")
    told = call(source, "--out", tmp_path / "a", "--half-life", "1d", "--to-end")
    assert 'line 4: it has no readable "time"' in str(told.exception)
    for words, message in (
        (("--half-life", "7 parsecs"), "neither a number of choices nor a time"),
        (("--half-life", "0"), "neither a number of choices nor a time"),
        (("--window", "2.5"), "window is 2.5: it must be a whole number"),
        (("--detect", "--half-life", "1d"), "the half-life is in choices"),
    ):
        assert message in str(call(source, "--out", tmp_path / "b", *words).exception)
