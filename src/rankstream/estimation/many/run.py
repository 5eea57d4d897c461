"""``estimate_many``: fit a model for every market of a source, in parallel, into a folder that a rerun continues."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from rankstream._core.arguments import whole_number
from rankstream._core.terminal import progress
from rankstream._core.watch import Progress
from rankstream.data.readers.markets import parts_of_folder, read_markets, spill_relation, unused_in_parts
from rankstream.data.readers.options import ReadOptions, check_options
from rankstream.data.readers.problems import Problems
from rankstream.data.readers.tallies import Tallies
from rankstream.estimation.estimate import compile_first
from rankstream.estimation.many.markets import MarketFit, digest_of, seed_of
from rankstream.estimation.many.pooling import Pools, make_pools
from rankstream.estimation.many.results import Markets
from rankstream.estimation.many.store import COUNTS, POOL, MarketStore, opened
from rankstream.estimation.many.work import Work, fit_all, in_parallel, read_part, takes_pool
from rankstream.estimation.methods import MaxEntropy, Method, make

REMEMBERED = ("no_choice", "outside_share", "format", "columns", "separator", "encoding", "sheet")
"""Reading options that are stored with a market's model, if they are text or numbers."""


def checked_columns(by: str | Sequence[str]) -> tuple[str, ...]:
    """Return the columns that name a market, or raise a ValueError."""
    columns: tuple[Any, ...] = (by,) if isinstance(by, str) else tuple(by)
    if not columns or not all(isinstance(column, str) and column for column in columns):
        raise ValueError(f"by is {by!r}: give the columns that define a market, such as ['store', 'category'].")
    if len(set(columns)) < len(columns):
        raise ValueError(f"by names a column twice ({', '.join(columns)}): list each once.")
    return columns


def gather(source: Any, by: tuple[str, ...], how: ReadOptions, on_error: str, n_jobs: int, tell: Progress) -> Tallies:
    """Read the choices of every market of a source, unless they are already counted.

    DuckDB does this with one GROUP BY, and uses the disk if memory is short. Workers read the files of a folder with
    key=value subfolders; a file that cannot be read fails its markets.
    """
    tell("reading", 0.0)
    if isinstance(source, Tallies):
        return source
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        parts = parts_of_folder(source, by)
        if len(parts) == 1 and not parts[0].partitions:
            return read_markets([str(path) for path in parts[0].paths], by, how, on_error)
        tallies = Tallies(by, how, "")
        work = partial(read_part, by=by, how=how, on_error=on_error)
        for done, part_tallies in enumerate(in_parallel(work, parts, n_jobs)):
            tallies.update(part_tallies)
            tallies.notes = tuple(dict.fromkeys((*tallies.notes, *part_tallies.notes)))
            tell(f"{done + 1:,} of {len(parts):,} parts read", (done + 1) / len(parts))
        if not tallies.markets:
            raise ValueError(f"No part of {source} can be read: {next(iter(tallies.failed.values()))}")
        tallies.unused = unused_in_parts([part for part in parts if part.market(by) not in tallies.failed], by, how)
        return tallies
    if type(source).__name__ == "DuckDBPyRelation":
        with TemporaryDirectory() as folder:
            path = Path(folder) / "relation.parquet"
            spill_relation(source, path)
            return read_markets(path, by, how, on_error)
    return read_markets(source, by, how, on_error)


def estimate_many(
    source: Any,
    by: str | Sequence[str],
    method: str | Method = "auto",
    n_jobs: int = -1,
    out: str | os.PathLike[str] = "models",
    pool: bool | Literal["keep"] = True,
    seed: int = 0,
    *,
    on_error: str = "stop",
    errors: bool = False,
    **reading: Any,
) -> Markets:
    """Estimate a model for every market: every combination of values of some columns, such as store and category.

    Each market becomes a model file in the folder ``out`` and a row of ``index.parquet``. A market that fails is a row
    with its error, and the others continue. A rerun with the same settings fits only markets that are missing, failed
    or changed, and Ctrl-C keeps finished ones; a folder with other settings is an error. Models do not depend on the
    order or the number of workers, because a market's seed follows from ``seed`` and its key.

    The engine is joblib: processes on this machine, or the backend of ``joblib.parallel_config``, such as Dask. Workers
    use one thread each.

    Parameters
    ----------
    source : path, folder, table or DuckDB relation
        Choices as for ``read``. Subfolders named key=value give the columns in ``by``.
    by : names of columns
        The columns that define a market.
    method : str or settings
        As for ``estimate``.
    n_jobs : int
        Number of workers; -1 for one per processor, 1 for none.
    out : path
        The folder for models and index; created if missing, and locked during a run.
    pool : bool or "keep"
        Whether markets borrow strength from all others, as far as that predicts their held-out offers better;
        ``"keep"`` reuses the pool of an earlier run, so that new data refit only the markets that changed.
    seed : int
        Random seed.
    on_error : "stop" or "skip"
        Whether a bad record fails its market, or is skipped.
    errors : bool
        Whether to store standard errors with each maximum-entropy model (``StoredErrors``): about half as long again.
    **reading
        Options of ``read``: format, columns, contents, items, no_choice, outside_share, separator, encoding, sheet,
        prices, price_levels. By default, each market has a level for each of its prices. A number of levels is for all
        markets together if at least half of the offered prices occur in several markets, else for each market.

    Examples
    --------
    >>> import tempfile, pandas
    >>> rows = pandas.DataFrame({
    ...     "store": ["York", "York", "Bath", "Bath"], "offered": ["tea;pie"] * 4,
    ...     "chosen": ["tea", "pie", "pie", "pie"], "count": [30, 10, 5, 15],
    ... })
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     markets = estimate_many(rows, by=["store"], method="nearest", n_jobs=1, out=f"{folder}/models", pool=False)
    ...     print(markets, {item: round(share, 2) for item, share in markets.predict("York", ("tea", "pie")).items()})
    Markets(2 markets by store, 0 failed) {'tea': 0.75, 'pie': 0.25}
    """
    from joblib import hash as hashed

    columns, how = checked_columns(by), check_options(**reading)
    whole_number("seed", seed)
    if type(n_jobs) is not int or n_jobs == 0:
        raise ValueError(f"n_jobs is {n_jobs!r}: give a number of workers, or -1 for as many as there are processors.")
    Problems(on_error)
    if pool not in (True, False, "keep"):
        raise ValueError(f"pool is {pool!r}: give True, False, or 'keep' for the pool of an earlier run.")
    chosen = make(method)
    if pool and chosen is not None and not takes_pool(chosen):
        raise ValueError(
            f"A pool needs the default 'auto' or 'max-entropy', not {chosen.name!r}: turn it off with pool=False."
        )
    described = method if isinstance(method, str) else f"{method.name} {hashed(method)}"  # differs with its settings
    settings = {"by": list(columns), "method": described, "seed": seed, "pool": bool(pool)}
    with progress("starting") as tell, opened(out) as store:
        store.check(settings)
        kept = Pools.load(store.folder / POOL) if pool == "keep" else None
        tallies = gather(source, columns, how, on_error, n_jobs, tell)
        store.settle(settings)
        tallies.save(store.folder / COUNTS)
        pools = kept or (_pools(store, tallies, seed, n_jobs, tell) if pool else Pools({}, ()))
        run = _Run(store, tallies, pools, method, seed, settings, errors)
        try:
            run.all(n_jobs, tell)
        finally:
            store.finish(run.present)
    return Markets.load(out)


def _pools(store: MarketStore, tallies: Tallies, seed: int, n_jobs: int, tell: Progress) -> Pools:
    """Return the pools of an earlier run on the same data, or fit new ones."""
    path = store.folder / POOL
    known = digest_of([[list(key), c if isinstance(c, str) else c.digest()] for key, c in tallies.counts()])
    if path.is_file():
        with suppress(ValueError):
            before = Pools.load(path)
            if before.data == known:
                return before
    compile_first(MaxEntropy())  # once, into the cache that all workers load from
    made = replace(make_pools(tallies, seed, n_jobs, tell), data=known)
    made.save(path)
    return made


class _Run:
    def __init__(
        self,
        store: MarketStore,
        tallies: Tallies,
        pools: Pools,
        method: str | Method,
        seed: int,
        settings: dict[str, Any],
        errors: bool,
    ) -> None:
        self.store, self.tallies, self.pools = store, tallies, pools
        self.method, self.seed, self.errors = method, seed, errors
        self.settings = settings | ({"errors": True} if errors else {})  # models without errors keep their digest
        known = {name: getattr(tallies.how, name) for name in REMEMBERED} | {"price_columns": tallies.how.prices}
        reading = {name: value for name, value in known.items() if isinstance(value, str | float)}
        fields = ("name", "kind", "sentence", "warning")  # not p-values, which depend on the order of rows
        unused = [{name: getattr(column, name) for name in fields} for column in tallies.unused if column.warning]
        self.about: dict[str, Any] = {"reading": reading} | ({"unused": unused} if unused else {})
        self.present = {*tallies.markets, *tallies.failed}
        self.done = 0

    def all(self, n_jobs: int, tell: Progress) -> None:
        """Fit the markets that are missing or changed."""
        works = self.works()
        first = next(works, None)
        if first is None:
            return
        compile_first(make(self.method) or MaxEntropy())
        for row, text in fit_all(chain([first], works), n_jobs):
            self.store.put(row, text)
            self.done += 1
            tell(f"{self.done:,} of {len(self.present):,} markets", self.done / len(self.present))

    def works(self) -> Iterator[Work]:
        """Yield the markets to fit; record those that cannot be read or are already done."""
        for key, counts in self.tallies.counts():
            if isinstance(counts, str):
                self.store.put(MarketFit(key, "failed", error=counts), None)
                self.done += 1
                continue
            guide = self.pools.guide(key)
            digest = digest_of(counts.digest(), self.settings, self.pools.digest(guide))
            if self.store.is_done(key, digest):
                self.store.touch(key)
                self.done += 1
                continue
            levels = self.tallies.levels.get(key)
            about = self.about | ({} if levels is None else {"prices": levels.to_content()})
            yield Work(
                key, self.tallies.by, counts, seed_of(key, self.seed), self.method, digest, guide, about, self.errors
            )
