"""A live model as one file, and back: settings, counts, runs, what waits, and the model that is served."""

import os
from dataclasses import asdict
from typing import Any

from rankstream.data.decay import reach_text
from rankstream.data.prices import PriceLevels
from rankstream.streams.detector import ChangeDetector, DetectorSettings
from rankstream.streams.entropy_follower import EntropyFollower
from rankstream.streams.files.checkpoint import Checkpoint, explained, read_runs, write
from rankstream.streams.files.packing import Parts, pack
from rankstream.streams.files.validation import check_live
from rankstream.streams.pace import StreamPace
from rankstream.streams.record import Record
from rankstream.streams.runs.endless import endless

OWN = ("live", "watched", "dense", "waiting", "pace", "prices")  # what a file has beside the notes


def write_live(live: Any, path: str | os.PathLike[str]) -> None:
    """Write everything about a ``Live`` to one file, whole or not at all."""
    own: dict[str, Any]
    if live.settings is not None:
        runs, found = ([], None) if live.detector is None else live.detector.packed()
        settings = {**asdict(live.settings), "records": live.records}
        own = {"watched": {"settings": settings, "waiting": live._waiting, "found": found, "served": live.served}}
    else:
        runs = [] if live.run is None else [pack(live.run.solver, live.run.state, live.counts)]
        settings = {name: getattr(live, name) for name in ("rounds", "seed", "records", "served")}
        own = {"live": settings | {"half_life": reach_text(live.half_life), "window": reach_text(live.window)}}
        own |= {"waiting": live._waiting, "pace": asdict(live._pace)}
    if live.prices is not None:
        own["prices"] = live.prices.to_content()
    write(path, runs, {**live.notes, **own, "dense": live.dense.to_content()})


def read_live(kind: Any, path: str | os.PathLike[str]) -> Any:
    """The ``Live`` that ``write_live`` wrote, in this version or an earlier one: it goes on bit for bit."""
    runs, notes = read_runs(path, Parts())
    plain, watched, dense, waiting, pace, prices = (notes.pop(name, None) for name in OWN)
    if not isinstance(plain, dict) and not isinstance(watched, dict):
        raise ValueError(f"{path} is another kind of checkpoint: choose one that 'rankstream stream' wrote.")
    with explained(path):
        levels = None if prices is None else PriceLevels.from_content(prices)
        settings = plain if isinstance(plain, dict) else watched["settings"]
        records = settings.pop("records")
        if isinstance(plain, dict):
            live = _plain(kind, runs, settings, levels)
            live._pace = StreamPace.from_content(pace, 1, records)
            live._waiting = [Record(tuple(offered), *rest) for offered, *rest in waiting or ()]
        else:
            live = _watched(kind, runs, watched, levels)
        live.records, live.notes = records, notes
        if dense is not None:
            live.dense = EntropyFollower.from_content(dense, live.seed)
        check_live(live)
    return live


def _plain(kind: Any, runs: list[Checkpoint], settings: dict[str, Any], levels: PriceLevels | None) -> Any:
    live = kind(**{"served": "sparse", "prices": levels, **settings})  # files of earlier versions do not say
    for solver, state, counts in runs:
        live.run, live.counts = endless(solver, state), counts
    return live


def _watched(kind: Any, runs: list[Checkpoint], kept: dict[str, Any], levels: PriceLevels | None) -> Any:
    settings = DetectorSettings(**kept["settings"])
    live = kind(detect=settings, served=kept.get("served", "sparse"), prices=levels)
    live._waiting = [(tuple(offered), chosen) for offered, chosen in kept["waiting"]]
    if kept["found"] is not None:
        live.detector = ChangeDetector.unpacked(runs, kept["found"])
        live.run, live.counts = live.detector.served, live.detector.counts
    return live
