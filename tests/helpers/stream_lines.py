"""Lines of choices for streams, and what is counted of them."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from typer.testing import CliRunner, Result

from rankstream._core.types import Vec
from rankstream.cli.app import make_app
from rankstream.data import simulate
from rankstream.streams import record_of
from rankstream.streams.live import Live

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
    return CliRunner().invoke(make_app(), ["stream", "--publish", "sparse", *(str(word) for word in words)], input=text)


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


def state(out: Path) -> dict[str, bytes]:
    """Everything in a checkpoint."""
    with np.load(out / "state.npz") as archive:
        return {name: archive[name].tobytes() for name in archive.files}


def last_saved(out: Path) -> int:
    """When the state was saved, in nanoseconds; 0 before the first time."""
    state = out / "state.npz"
    return state.stat().st_mtime_ns if state.exists() else 0
