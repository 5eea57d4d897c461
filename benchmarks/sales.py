"""Time and memory of ``read_sales``: ``python benchmarks/sales.py --sales 1000000``.

Simulates stores whose shelves change at random, writes receipts and a stock log as CSV, and reads them once in a
process of its own. Prints CPU seconds, the largest resident memory, and the number of different offers before and
after the account's coarsening. Sales are of items on the shelf; nothing else is checked here.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SECONDS_A_YEAR = 365 * 86_400
FIRST = np.datetime64("2025-01-01T00:00:00")


def write_tables(folder: Path, sales: int, events: int, stores: int, items: int, seed: int) -> None:
    """Write receipts.csv and stock.csv; each store's first rows fill its shelf."""
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(1, SECONDS_A_YEAR, events))
    store, item = random.integers(0, stores, events), random.integers(0, items, events)
    shelf = np.ones((stores, items), bool)
    with (folder / "stock.csv").open("w") as file:
        file.write("time,store,item,on_hand\n")
        file.writelines(f"{FIRST},s{s},item{i},9\n" for s in range(stores) for i in range(items))
        for t, s, i in zip(times.tolist(), store.tolist(), item.tolist(), strict=True):
            shelf[s, i] ^= True
            file.write(f"{FIRST + np.timedelta64(t, 's')},s{s},item{i},{9 * int(shelf[s, i])}\n")
    keys = np.sort((store * items + item) * SECONDS_A_YEAR + times)
    popular = 1.0 / np.arange(1, items + 1)
    written = 0
    with (folder / "receipts.csv").open("w") as file:
        file.write("time,store,receipt,item,quantity\n")
        while written < sales:
            at = random.integers(1, SECONDS_A_YEAR, 100_000)
            where = random.integers(0, stores, 100_000)
            bought = random.choice(items, 100_000, p=popular / popular.sum())
            key = (where * items + bought) * SECONDS_A_YEAR
            changes = np.searchsorted(keys, key + at) - np.searchsorted(keys, key)
            there = np.flatnonzero(changes % 2 == 0)[: sales - written]
            moments = (FIRST + at[there].astype("timedelta64[s]")).astype(str).tolist()
            rows = zip(moments, where[there].tolist(), bought[there].tolist(), strict=True)
            file.writelines(f"{t},s{s},r{(written + n) // 2},item{i},1\n" for n, (t, s, i) in enumerate(rows))
            written += len(there)


def read_once(folder: Path, memory: str, max_offers: int) -> dict[str, object]:
    """Read the tables here, and measure."""
    import rankstream as rs

    began, wall = time.process_time(), time.perf_counter()
    found = rs.read_sales(folder / "receipts.csv", folder / "stock.csv", memory=memory, max_offers=max_offers)
    assert found.account is not None
    return {
        "cpu_seconds": round(time.process_time() - began, 1),
        "seconds": round(time.perf_counter() - wall, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "choices": found.counts.observations,
        "offers_before": found.account.offers_before,
        "offers": found.account.offers,
        "ignored_items": len(found.account.ignored_items),
        "conflict_share": round(found.account.conflict_share, 3),
    }


def main() -> None:
    """Simulate, read in another process, and print a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, usual in (("sales", 1_000_000), ("events", 200_000), ("stores", 20), ("items", 30), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--max-offers", type=int, default=20_000)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.folder is not None:
        print(json.dumps(read_once(said.folder, said.memory, said.max_offers)))
        return
    with tempfile.TemporaryDirectory() as name:
        write_tables(Path(name), said.sales, said.events, said.stores, said.items, said.seed)
        words = ["--folder", name, "--memory", said.memory, "--max-offers", str(said.max_offers)]
        subprocess.run([sys.executable, __file__, *words], check=True)


if __name__ == "__main__":
    main()
