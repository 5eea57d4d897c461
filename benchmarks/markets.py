"""Many markets: what a run costs beyond its fits, serially, in processes and on Dask; and whom pooling helps.

python benchmarks/markets.py overhead --quick
python benchmarks/markets.py accuracy --quick
python benchmarks/markets.py memory --quick
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from joblib import parallel_config

import rankstream as rs
from rankstream.data.readers.sources.database import connected, literal
from rankstream.data.simulate import MixedMNL
from rankstream.estimation.many.markets import seed_of
from rankstream.estimation.many.pooling import Pools
from rankstream.models.entropy.pool import restrict_law

SIZES = (50, 200, 1000, 5000)
KINDS = ("a little", "a lot", "two clusters")


def random_choices(truth: MixedMNL, offers: rs.Assortments, size: int, rng: np.random.Generator) -> pd.DataFrame:
    """Choices from offers at random, as counts."""
    shares = truth.probabilities(offers)
    shown = rng.multinomial(size, np.full(offers.n_offers, 1.0 / offers.n_offers))
    rows = []
    for number, offer in enumerate(offers.offers):
        own = shares[offers.indptr[number] : offers.indptr[number + 1]]
        for item, count in zip(offer, rng.multinomial(shown[number], own / own.sum()), strict=True):
            if count:
                rows.append((";".join(map(str, offer)), item, int(count)))
    return pd.DataFrame(rows, columns=["offered", "item", "count"])


def many(markets: int, seed: int = 0) -> pd.DataFrame:
    """Markets of 8 to 12 items and 200 to 5,000 choices, none like the other."""
    rng = np.random.default_rng(seed)
    parts = []
    for number in range(markets):
        market = rs.simulate.market(seed=seed + number, n_items=int(rng.integers(7, 12)), n_offers=20, n_test=1)
        size = int(np.exp(rng.uniform(np.log(200), np.log(5000))))
        parts.append(random_choices(market.truth, market.assortments, size, rng).assign(store=f"store {number:04}"))
    return pd.concat(parts)


@contextmanager
def dask_cluster() -> Iterator[None]:
    """Two processes of Dask."""
    distributed: Any = import_module("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        parallel_config(backend="dask"),
    ):
        yield


def overhead(number: int) -> None:
    """What a run costs beyond its fits, per market; and whether the model files are the same bytes.

    In processor time of this process, which a busy machine changes little: serially less that of the fits alone; with
    workers, which do nothing but fit, all of it.
    """
    rows, first = many(number), dict[str, bytes]()
    for name, n_jobs, context in (
        ("serial", 1, nullcontext()),
        ("joblib, 2 processes", 2, nullcontext()),
        ("Dask, 2 workers", -1, dask_cluster()),
    ):
        with TemporaryDirectory() as folder, context:
            small = rows[rows.store <= "store 0007"]  # so that all is loaded and compiled, here and in the workers
            rs.estimate_many(small, "store", "nearest", n_jobs, f"{folder}/warm", pool=False)
            began, spent = time.perf_counter(), time.process_time()
            found = rs.estimate_many(rows, "store", "nearest", n_jobs, f"{folder}/out", pool=False)
            spent, took = time.process_time() - spent, time.perf_counter() - began
            files = {path.name: path.read_bytes() for path in Path(f"{folder}/out").glob("store*.json")}
            fits = _fits_alone(found) if n_jobs == 1 else 0.0
        first = first or files
        alone = f" (fits alone {1e3 * fits / number:.1f} ms)" if fits else ""
        print(
            f"{name}: {len(found)} markets in {took:.1f} s; {1e3 * (spent - fits) / number:.1f} ms of this process "
            f"per market beyond the fits{alone}; same bytes as serial: {files == first}"
        )


def _fits_alone(found: rs.Markets) -> float:
    counts = [(key, found.tallies.count(tally)) for key, tally in found.tallies.tallies()]
    began = time.process_time()
    for key, each in counts:
        rs.estimate(each, method="nearest", seed=seed_of(key, 0))
    return time.process_time() - began


MEMORY = """
import re, sys, rankstream as rs
from pathlib import Path
import rankstream.estimation.many.run
def peak():  # in MB; the peak that getrusage knows includes that of the process that started this one
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
before = peak()
found = rs.estimate_many(Path(sys.argv[1]), "store", "nearest", 1, sys.argv[2], pool=False)
print(f"{len(found)} markets; peak memory {peak():.0f} MB, of which {before:.0f} MB for the imports")
"""


def memory(rows: int, markets: int = 1000) -> None:
    """The peak memory of a run over a Parquet file of this many rows, one row per choice."""
    with TemporaryDirectory() as folder, connected() as connection:
        path = Path(folder) / "rows.parquet"
        offers = rs.simulate.market(seed=0, n_items=9, n_offers=60).assortments.offers
        listed = ", ".join(literal(";".join(map(str, offer))) for offer in offers)
        shown = f"SELECT hash(i, 1) % {markets} AS store, [{listed}][CAST(1 + hash(i, 2) % 60 AS BIGINT)] AS offered, "
        shown += f"hash(i, 3) AS h FROM range({rows}) t(i)"
        parts = "string_split(offered, ';')"
        query = f"SELECT 'store ' || store AS store, offered, {parts}[CAST(1 + h % len({parts}) AS BIGINT)] AS chosen "
        query += f"FROM ({shown})"
        connection.execute(f"COPY ({query}) TO {literal(str(path))} (FORMAT parquet)").fetchall()
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, str(path), f"{folder}/out"], capture_output=True, text=True, check=True
        )
        print(f"{rows:,} rows, {time.perf_counter() - began:.0f} s: {done.stdout.strip()}")


def stores(kind: str, number: int, rng: np.random.Generator, seed: int) -> tuple[rs.simulate.Market, list[MixedMNL]]:
    """One market, and stores that differ from it."""
    base = rs.simulate.market(seed=seed, n_items=8, n_offers=25, n_test=60, unseen=True)
    other = rs.simulate.market(seed=seed + 1000, n_items=8, n_offers=25, n_test=60)
    spread = 1.0 if kind == "a lot" else 0.25
    truths = []
    for place in range(number):
        truth = other.truth if kind == "two clusters" and place % 2 else base.truth
        noise = np.exp(spread * rng.normal(size=truth.utilities.shape[1]))
        truths.append(MixedMNL(base.truth.items, truth.utilities * noise, truth.mixture))
    return base, truths


def accuracy(number: int, sizes: tuple[int, ...], repeats: int) -> None:
    """RMSE on offers that no store has shown, by size: each store's own fit, the pool, and partial pooling."""
    print(f"{number} stores of each size; RMSE in points: mean (standard error over stores)")
    for kind in KINDS:
        errors: dict[tuple[int, str], list[float]] = {}
        for repeat in range(repeats):
            rng = np.random.default_rng(repeat)
            base, truths = stores(kind, number * len(sizes), rng, seed=10 * repeat + 1)
            parts, size_of = [], {}
            for place, truth in enumerate(truths):
                name = f"store {place:03}"
                size_of[name] = sizes[place // number]
                parts.append(random_choices(truth, base.assortments, size_of[name], rng).assign(store=name))
            with TemporaryDirectory() as folder:
                rows = pd.concat(parts)
                own = rs.estimate_many(rows, "store", n_jobs=-1, out=f"{folder}/own", pool=False)
                partial = rs.estimate_many(rows, "store", n_jobs=-1, out=f"{folder}/pooled", pool=True)
                pools = Pools.load(f"{folder}/pooled/pool.json")
                for truth, (name, size) in zip(truths, size_of.items(), strict=True):
                    guide, true = pools.guide((name,)), truth.probabilities(base.test)
                    assert guide is not None
                    pool = restrict_law(guide.prior, base.truth.items)
                    for way, model in (("own", own.model(name)), ("pool", pool), ("partial", partial.model(name))):
                        error = float(np.sqrt(np.mean((model.probabilities(base.test) - true) ** 2)))
                        errors.setdefault((size, way), []).append(100.0 * error)
                print(f"  {kind}, repeat {repeat}: choices in advance {pools.before}", flush=True)
        for size in sizes:
            shown = [_mean(way, errors[size, way]) for way in ("own", "pool", "partial")]
            better = np.minimum(np.mean(errors[size, "own"]), np.mean(errors[size, "pool"]))
            name = "own" if np.mean(errors[size, "own"]) == better else "pool"
            gap = np.array(errors[size, "partial"]) - np.array(errors[size, name])
            print(f"{kind:>12}, {size:>5} choices: {'; '.join(shown)}; {_mean(f'partial - {name}', gap.tolist())}")


def _mean(name: str, values: list[float]) -> str:
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    return f"{name} {np.mean(values):.2f} ({error:.2f})"


def main() -> None:
    """Run one of the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("overhead", "memory", "accuracy"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    if given.part == "overhead":
        overhead(200 if given.quick else 1000)
    elif given.part == "memory":
        memory(1_000_000 if given.quick else 20_000_000)
    else:
        accuracy(3 if given.quick else 10, SIZES[:2] if given.quick else SIZES, 1 if given.quick else given.repeats)
    print(f"peak memory of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
