"""A stream that is killed again and again while its source is rotated: every record is counted once."""

import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from rankstream.streams.live import Live
from rotated_files import copy_and_truncate, counts, rename, write
from shell import run
from stream_lines import last_saved
from waits import wait_for


def rotate_all(path: Path, kind: str) -> None:
    """As logrotate does: .1 becomes .2, and so on, and the source .1."""
    for old in sorted(path.parent.glob("choices.jsonl.?"), reverse=True):
        old.rename(path.with_name(f"choices.jsonl.{int(old.name[-1]) + 1}"))
    (copy_and_truncate if kind == "copied" else rename)(path, 1)
    time.sleep(0.02)


def is_saved_since(out: Path, moment: int) -> bool:
    return last_saved(out) > moment


@pytest.mark.parametrize("kind", ["renamed", "copied"])
def test_rotated_and_killed_no_record_is_lost_or_counted_twice(kind: str, tmp_path: Path) -> None:
    path, out, total = tmp_path / "choices.jsonl", tmp_path / "out", 0
    killed = 0
    words = ["stream", "--publish", "sparse", "choices.jsonl", "--out", "out", "--every", "0.02", "--rounds", "2"]
    command = [sys.executable, "-m", "rankstream", *words]
    write(path, *range(20))
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    wait_for(lambda: last_saved(out))
    for step in range(1, 120):
        write(path, *range(20 * step, 20 * step + 20))
        total = 20 * step + 20
        time.sleep(0.03)
        if step % 20 == 0:  # the writer pauses: between copy and truncation it would write into the void
            rotate_all(path, kind)
        if step in (25, 90):
            if step == 90:  # by then it has gone on
                wait_for(partial(is_saved_since, out, killed))
            process.send_signal(signal.SIGKILL)
            process.wait()
            if step == 25:  # down for one rotation, and then for two
                killed = last_saved(out)
                process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    assert run(*words, "--to-end", cwd=tmp_path).returncode == 0
    assert Live.load(out / "state.npz").records == total
    expected: dict[object, float] = {item: float(len(range(item, total, 7))) for item in range(7)}
    assert counts(out) == {**expected, "none": 0.0}
