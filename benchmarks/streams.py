"""What a stream costs as it goes on: processor time and memory for every 1,000 records.

Four streams: a steady market (20 offers of 11 items that do not change); every record a new offer, of 5 to 40 of 40
items; a new item with every tenth record, in new offers of 5 items; and 12 items of which every hundredth record makes
a new offer of 5. The steady one and the first two are also followed with a change detector. Every stream has a process
of its own. Times are of the processor, and drawing the records is not in them; nor are refreshes of the maximum-entropy
models of the first and the last stream, which become ever rarer.

Run with ``python benchmarks/streams.py``; ``5000000`` and ``--growing 20000`` say how many records the steady market
and the others have, and ``--plot streams.png`` draws what was printed.
"""

import argparse
import resource
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rankstream.data import simulate
from rankstream.streams.live import Live, Record

STEPS = 10
HEAD = "   records  offers   items  coordinates  seconds per 1,000 records  rankings       gap  memory, MB"


class Line(NamedTuple):
    """A line of a table: what there is so far, and the seconds per 1,000 records since the line before."""

    records: int
    offers: int
    items: int
    coordinates: int
    seconds: float
    rankings: int
    gap: float
    memory: float


class Stream(NamedTuple):
    """A stream to follow: how its records are made, how many come at a time, and whether changes are looked for."""

    title: str
    kind: str
    batch: int
    detect: bool


STREAMS = (
    Stream("a steady market", "steady", 1_000, False),
    Stream("a steady market, with a change detector", "steady", 1_000, True),
    Stream("every record a new offer", "offers", 1_000, False),
    Stream("every record a new offer, with a change detector", "offers", 1_000, True),
    Stream("new items", "items", 1_000, False),
    Stream("new items, with a change detector", "items", 1_000, True),
    Stream("a new offer now and then", "now and then", 1_000, False),
)


def megabytes() -> float:
    """The most memory that this process has had so far."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)


def steady(random: np.random.Generator) -> Iterator[Record]:
    """Choices from a simulated market that does not change."""
    market = simulate.market(0)
    offers, shares = market.assortments, market.frequencies()
    each = [Record(offers.offers[j], offers.items[k]) for j, k in zip(offers.owner, offers.members, strict=True)]
    while True:
        for k in simulate.draw_choices(offers, shares, 1_000, random).tolist():
            yield each[k]


def chosen(offer: tuple[str, ...], liked: dict[str, float], random: np.random.Generator) -> Record:
    """A choice from the offer by a logit model whose utilities are drawn when an item is first offered."""
    for item in offer:
        if item not in liked:
            liked[item] = float(random.normal())
    utilities = np.array([liked[item] for item in offer])
    return Record(offer, offer[int(np.argmax(utilities + random.gumbel(size=len(offer))))])


def growing(kind: str, random: np.random.Generator) -> Iterator[Record]:
    """Records with new offers, with new items, or with a new offer now and then."""
    names = [f"item {code}" for code in range({"items": 5, "offers": 40}.get(kind, 12))]
    liked: dict[str, float] = {}
    offers: list[tuple[str, ...]] = []
    for number in range(sys.maxsize):
        size = 5 if kind != "offers" else int(random.integers(5, 41))
        if kind == "items" and number % 10 == 0:
            names.append(f"item {len(names)}")
        recent = names[-200:]
        if kind != "now and then" or number < 20 or number % 100 == 0:
            picked = random.permutation(len(recent) - 1)[: size - 1].tolist()
            offers.append((recent[-1], *(recent[k] for k in picked)))
        at = -1 if kind != "now and then" else int(random.integers(len(offers)))
        yield chosen(offers[at], liked, random)


def follow(stream: Stream, records: int) -> list[Line]:
    """Feed a model, with a line for every tenth of the records."""
    random = np.random.default_rng(0)
    source = steady(random) if stream.kind == "steady" else growing(stream.kind, random)
    publish = "sparse" if stream.kind in ("steady", "now and then") else "max-entropy"
    live, lines, seconds, done = Live(detect=stream.detect, publish=publish), list[Line](), 0.0, 0
    for number in range(1, records // stream.batch + 1):
        batch = [next(source) for _ in range(stream.batch)]
        began = time.process_time()
        live.observe(batch)
        seconds += time.process_time() - began
        if number * STEPS % (records // stream.batch) < STEPS and live.counts is not None:
            offers, count = live.counts.assortments, live.records - done
            sizes = (live.records, offers.n_offers, offers.n_items, offers.n_coordinates)
            found = live.certificate
            lines.append(Line(*sizes, 1_000 * seconds / count, live.rankings, found.gap, megabytes()))
            seconds, done = 0.0, live.records
    return lines


def measured(stream: Stream, records: int) -> list[Line]:
    """The lines of a stream, once everything is compiled."""
    follow(stream, max(STEPS * stream.batch, 1_000))
    return follow(stream, records)


def show(stream: Stream, lines: list[Line]) -> None:
    """Print a table and the ratio of its ends; the first line has what a small market costs, and is left out of it."""
    print(f"\n{stream.title}\n{HEAD}")
    for line in lines:
        print(
            f"{line.records:10,}  {line.offers:6,}  {line.items:6,}  {line.coordinates:11,}  {line.seconds:25.3f}  "
            f"{line.rankings:8,}  {line.gap:8.3f}  {line.memory:10.0f}"
        )
    first, last = lines[1], lines[-1]
    added = (last.memory - first.memory) * 2**20 / max(1, last.coordinates - first.coordinates)
    grown = f"; {added:,.0f} bytes for every coordinate that joined" if last.coordinates > first.coordinates else ""
    print(
        f"the last line to the second: {last.seconds / first.seconds:.2f} times the time, "
        f"{last.coordinates / first.coordinates:.2f} times the coordinates, {last.memory / first.memory:.2f} times the "
        f"memory{grown}; at most {max(line.seconds for line in lines):.3f} seconds per 1,000 records",
        flush=True,
    )


def draw(tables: dict[str, list[Line]], path: Path) -> None:
    """Time and memory of all streams that were followed, against their records and their coordinates."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for title, lines in tables.items():
        coordinates = [line.coordinates / 1e3 for line in lines]
        share = [line.records / lines[-1].records for line in lines]
        left.plot(share, [line.seconds for line in lines], marker=".", label=title)
        right.plot(coordinates, [line.memory for line in lines], marker=".", label=title)
    left.axhline(0.2, color="0.6", linewidth=1, linestyle="--")
    left.set(xlabel="share of the stream", ylabel="processor seconds per 1,000 records", ylim=(0, None))
    right.set(xlabel="coordinates so far, thousands", ylabel="most memory so far, MB", ylim=(0, None))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="0.92")
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize="small", frameon=False
    )
    figure.savefig(path, dpi=120)


def main() -> None:
    """Follow every stream, print its table, and draw all of them if asked."""
    parser = argparse.ArgumentParser(description="Time and memory of streams as they go on.")
    parser.add_argument("steady", type=int, nargs="?", default=200_000, help="Records of the steady market.")
    parser.add_argument("--growing", type=int, default=20_000, help="Records of the streams that meet new things.")
    parser.add_argument("--plot", type=Path, help="A picture to draw.")
    options = parser.parse_args()
    tables: dict[str, list[Line]] = {}
    for stream in STREAMS:
        records = options.steady if stream.kind == "steady" else options.growing
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            tables[stream.title] = process.submit(measured, stream, records).result()
        show(stream, tables[stream.title])
    if options.plot:
        draw(tables, options.plot)


if __name__ == "__main__":
    main()
