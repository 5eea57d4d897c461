"""Files of records that are written to and rotated, and what a stream has counted of them."""

import json
import os
import shutil
from pathlib import Path

from rankstream.streams.live import Live


def record(number: int) -> str:
    """A record that says which it is: the number is the item that was chosen."""
    return json.dumps({"offered": [number % 7, "none"], "chosen": number % 7, "id": number})


def write(path: Path, *numbers: int) -> None:
    with path.open("a") as file:
        file.write("".join(record(number) + "\n" for number in numbers))


def settle(path: Path, seconds: int) -> None:
    """Say when a file was last changed, so that the order does not hang on the clock's ticks."""
    os.utime(path, (1.7e9 + seconds, 1.7e9 + seconds))


def copy_and_truncate(path: Path, number: int) -> None:
    shutil.copyfile(path, path.with_name(f"{path.name}.{number}"))
    os.truncate(path, 0)


def rename(path: Path, number: int) -> None:
    path.rename(path.with_name(f"{path.name}.{number}"))


def counts(out: Path) -> dict[object, float]:
    live = Live.load(out / "state.npz")
    assert live.counts is not None
    offers, found = live.counts.assortments, dict[object, float]()
    for code, tally in zip(offers.members.tolist(), live.counts.tallies.tolist(), strict=True):
        found[offers.items[code]] = found.get(offers.items[code], 0.0) + tally
    return found
