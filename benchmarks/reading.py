"""Rows per CPU second from files to counts, beside pandas and polars doing the same group-by, and the stream's batches.

Transactions have a row for each choice, long tables one for each alternative of a choice. There pandas and polars are
given the same trick as we use, a whole number with a bit for each alternative, and a good deal less to check.

Every reading is a process of its own, whose peak memory the system reports; the best of three counts. The libraries are
imported before the clock starts. Run with ``python benchmarks/reading.py [rows]``, by default ten million.
"""

import subprocess
import sys
import tempfile
import timeit
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from rankstream import Assortments, ChoiceCounts

SEED, OFFERS, REPEATS = 0, 60, 3
WAYS = {
    "rankstream": "import duckdb, rankstream as rs; rs.read; read = lambda path: rs.read(path).counts.observations",
    "pandas": """import pandas as pd
def read(path):
    columns = ["offered", "chosen"]
    frame = pd.read_csv(path) if "csv" in path else pd.read_parquet(path, columns=columns)
    return frame.groupby(columns).size().sum()""",
    "polars": """import polars as pl
def read(path):
    frame = pl.scan_csv(path) if "csv" in path else pl.scan_parquet(path)
    return frame.group_by("offered", "chosen").agg(pl.len()).collect(engine="streaming")["len"].sum()""",
}
LONG_WAYS = {
    "rankstream": WAYS["rankstream"],
    "pandas": """import numpy as np, pandas as pd
def read(path):
    frame = pd.read_csv(path) if "csv" in path else pd.read_parquet(path)
    frame["bits"] = np.left_shift(1, 2 * pd.factorize(frame["alt_id"])[0] + frame["choice"].to_numpy())
    return frame.groupby("obs_id")["bits"].sum().value_counts().sum()""",
    "polars": """import polars as pl
def read(path):
    frame = pl.scan_csv(path) if "csv" in path else pl.scan_parquet(path)
    items = frame.select(pl.col("alt_id").unique()).collect(engine="streaming").with_row_index("code").lazy()
    bits = pl.lit(2, pl.Int64).pow(2 * pl.col("code").cast(pl.Int64) + pl.col("choice")).alias("bits")
    sets = frame.join(items, on="alt_id").select("obs_id", bits).group_by("obs_id").agg(pl.col("bits").sum())
    return sets.group_by("bits").agg(pl.len()).collect(engine="streaming")["len"].sum()""",
}
CHILD = """
import resource, sys, time
start, wall = time.process_time(), time.perf_counter()
total = read(sys.argv[1])
print(int(total), time.process_time() - start, time.perf_counter() - wall,
      resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def market() -> Assortments:
    """Offers of 3 to 7 of 20 items, and nothing."""
    rng = np.random.default_rng(SEED)
    offers = {tuple(np.sort(rng.choice(20, rng.integers(3, 8), replace=False)).tolist()) for _ in range(2 * OFFERS)}
    return Assortments([(*(f"item {code}" for code in offer), "nothing") for offer in sorted(offers)[:OFFERS]])


def write(paths: dict[str, Path], rows: int, assortments: Assortments) -> None:
    """The same random transactions as Parquet and as CSV, and a fifth of them as long tables."""
    import duckdb

    offered = [";".join(map(str, assortments.offers[offer])) for offer in assortments.owner]
    chosen = [str(assortments.items[code]) for code in assortments.members]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE record AS SELECT unnest(?) AS offered, unnest(?) AS chosen", [offered, chosen])
        connection.execute("CREATE TABLE numbered AS SELECT *, row_number() OVER () - 1 AS place FROM record")
        drawn = f"SELECT range AS obs_id, hash(range + {SEED}) % {len(offered)} AS place FROM range({{}})"
        query = f"SELECT offered, chosen FROM ({drawn.format(rows)}) JOIN numbered USING (place)"
        connection.execute(f"COPY ({query}) TO '{paths['Parquet']}' (FORMAT parquet)")
        connection.execute(
            "CREATE TABLE listed AS SELECT place, unnest(string_split(offered, ';')) AS alt_id, chosen FROM numbered"
        )
        cells = "obs_id, alt_id, CAST(alt_id = chosen AS INTEGER) AS choice"
        query = f"SELECT {cells} FROM ({drawn.format(rows // 5)}) JOIN listed USING (place) ORDER BY obs_id"
        connection.execute(f"COPY ({query}) TO '{paths['long Parquet']}' (FORMAT parquet)")
        for kind, packed in (("CSV", ""), ("CSV.gz", "COMPRESSION gzip, ")):
            connection.execute(f"COPY (FROM '{paths['Parquet']}') TO '{paths[kind]}' ({packed}FORMAT csv, HEADER)")
        connection.execute(f"COPY (FROM '{paths['long Parquet']}') TO '{paths['long CSV']}' (FORMAT csv, HEADER)")


def lines(path: Path) -> int:
    """The number of alternatives in a long table."""
    import pyarrow.parquet as pq

    return int(pq.ParquetFile(path).metadata.num_rows)


def measure(code: str, path: Path, rows: int) -> tuple[float, float, float]:
    """CPU seconds, seconds and peak megabytes of the best run."""
    runs = []
    for _ in range(REPEATS):
        done = subprocess.run(
            [sys.executable, "-c", code + CHILD, str(path)], check=True, capture_output=True, text=True
        )
        total, *found = map(float, done.stdout.split())
        assert total == rows
        runs.append(tuple(found))
    cpu, wall, peak = min(runs)
    return cpu, wall, peak


def batches(assortments: Assortments) -> None:
    """The two ways in of a stream."""
    rng = np.random.default_rng(SEED)
    counts, codes = ChoiceCounts(assortments), rng.integers(0, assortments.n_coordinates, 1000)
    offered = [tuple(str(item) for item in assortments.offers[assortments.owner[code]]) for code in codes]
    chosen = [str(assortments.items[assortments.members[code]]) for code in codes]
    few = codes[:50].copy()
    encoded = min(timeit.repeat(lambda: counts.observe_coordinates(few), number=1000, repeat=7)) / 1000
    named = min(timeit.repeat(lambda: counts.observe(offered, chosen), number=20, repeat=7)) / 20
    print(f"batch of 50 encoded records    {1e6 * encoded:8.1f} microseconds (aim: 15)")
    print(f"batch of 1,000 string records  {1e3 * named:8.3f} milliseconds (aim: 0.2)")


def main() -> None:
    """Print a line per file and reader, and the ratios."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    assortments = market()
    print(f"{rows:,} transactions, {assortments}, seed {SEED}; best of {REPEATS}")
    with tempfile.TemporaryDirectory() as folder:
        names = {"Parquet": "choices.parquet", "CSV": "choices.csv", "CSV.gz": "choices.csv.gz"}
        names |= {"long Parquet": "long.parquet", "long CSV": "long.csv"}
        paths = {kind: Path(folder) / name for kind, name in names.items()}
        writer = get_context("spawn").Process(target=write, args=(paths, rows, assortments))
        writer.start()  # apart, since a process starts with the peak of the one that starts it
        writer.join()
        for kind, path in paths.items():
            ours, is_long = 0.0, kind.startswith("long")
            size = lines(paths["long Parquet"]) if is_long else rows
            for name, code in (LONG_WAYS if is_long else WAYS).items():
                cpu, wall, peak = measure(code, path, rows // 5 if is_long else rows)
                ours = ours or cpu
                print(
                    f"{kind:12} {name:10} {size / cpu / 1e6:7.1f} million rows per CPU second, "
                    f"{size / wall / 1e6:7.1f} per second, peak {peak:6.0f} MB, {cpu / ours:5.1f} x our CPU time"
                )
    batches(assortments)


if __name__ == "__main__":
    main()
