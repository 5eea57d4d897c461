"""Whether time and memory stay flat on a long stream: records per second, rankings and memory as it goes on.

A simulated market (20 offers of 11 items) that does not change, in batches of 1,000 records, with a change detector and
without. Times are of the processor, and drawing the records is not in them. Run with ``python benchmarks/streams.py``;
another number of records as an argument makes it shorter or longer.
"""

import resource
import sys
import time
from statistics import median

import numpy as np

from rankstream.data import simulate
from rankstream.streams.live import Live, Record

BATCH, SHOWN, RECORDS = 1_000, 100_000, 200_000


def megabytes() -> float:
    """The most memory that this process has had so far."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)


def follow(live: Live, records: int) -> list[float]:
    """Feed a model, with a line of the table every ``SHOWN`` records; returns the seconds of every batch."""
    market, random = simulate.market(0), np.random.default_rng(0)
    offers, shares = market.assortments, market.frequencies()
    each = [Record(offers.offers[j], offers.items[k]) for j, k in zip(offers.owner, offers.members, strict=True)]
    seconds: list[float] = []
    for number in range(1, max(1, records // BATCH) + 1):
        batch = [each[k] for k in simulate.draw_choices(offers, shares, BATCH, random).tolist()]
        began = time.process_time()
        live.observe(batch)
        seconds.append(time.process_time() - began)
        if number * BATCH % SHOWN == 0:
            rate = SHOWN / sum(seconds[-SHOWN // BATCH :])
            found = live.certificate
            print(
                f"{live.records:12,}  {rate:18,.0f}  {live.rankings:8,}  {found.upper:8.4f}  {found.gap:6.4f}  "
                f"{megabytes():10.0f}",
                flush=True,
            )
    return seconds


def main() -> None:
    """Print a table for a model without a change detector, and one with it."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    for name, live in (("without a change detector", Live()), ("with a change detector", Live(detect=True))):
        follow(Live(detect=live.detect), BATCH)  # compiles, and is not counted
        print(f"\n{name}\n     records  records per second  rankings  distance     gap  memory, MB")
        seconds = follow(live, records)
        tenth = max(1, len(seconds) // 10)
        first, last = median(seconds[:tenth]), median(seconds[-tenth:])
        print(
            f"median time per 1,000 records: {1e3 * first:.1f} ms in the first tenth, {1e3 * last:.1f} ms in the last; "
            f"ratio {last / first:.2f}"
        )


if __name__ == "__main__":
    main()
