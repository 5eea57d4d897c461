"""Fit markets in workers; a market that fails is a result as well.

The engine is joblib: processes on one machine, or the backend of ``joblib.parallel_config``, such as Dask.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from time import perf_counter
from typing import Any, TypeGuard, TypeVar

from rankstream._core.version import VERSION
from rankstream.data.counts import ChoiceCounts
from rankstream.data.readers.markets import Partition
from rankstream.data.readers.options import ReadOptions
from rankstream.data.readers.sources.database import one_thread
from rankstream.data.readers.tallies import Tallies
from rankstream.estimation.errors import store_errors
from rankstream.estimation.estimate import run_task
from rankstream.estimation.many.markets import Market, MarketFit, bytes_digest, file_of
from rankstream.estimation.methods import MaxEntropy, Method, make, pick
from rankstream.estimation.task import Task
from rankstream.models.entropy.pool import PoolGuide

Given = TypeVar("Given")
Result = TypeVar("Result")
PART = 200  # markets for a backend that returns lists, whose results are in memory together; not tuned
WORKER_ENDED = ("TerminatedWorkerError", "BrokenProcessPool", "KilledWorker")
"""Names of the exceptions of loky and Dask for a worker that was killed."""


@dataclass(frozen=True, eq=False)
class Work:
    """One market to fit: its key and its columns, counts, seed, method, and the digest of these.

    ``pool`` is the pool it may borrow from; ``about`` are facts about the reading to store with its model; ``errors``
    asks for standard errors beside them.
    """

    key: Market
    by: tuple[str, ...]
    counts: ChoiceCounts
    seed: int
    method: str | Method
    digest: str
    pool: PoolGuide | None = None
    about: dict[str, Any] = field(default_factory=dict)
    errors: bool = False

    def chosen(self, task: Task) -> Method:
        """Return the method; for maximum entropy, with the pool among its guides."""
        method = make(self.method) or pick(task)
        if self.pool is not None and takes_pool(method):
            return replace(method, prior=self.pool)
        return method


def takes_pool(method: Method) -> TypeGuard[MaxEntropy]:
    """Return whether a method weights guides, so that a pool can be one of them."""
    return isinstance(method, MaxEntropy) and method.prior == "held-out"


def fit_market(work: Work) -> tuple[MarketFit, str | None]:
    """Fit one market; an error becomes a failed row."""
    began, offers = perf_counter(), work.counts.assortments
    facts: dict[str, Any] = {
        "choices": float(work.counts.observations), "offers": offers.n_offers, "items": offers.n_items,
        "digest": work.digest,
    }  # fmt: skip
    try:
        task = Task(offers, work.counts, work.seed)
        fit = run_task(task, work.chosen(task))
        if work.errors:
            store_errors(fit, work.counts, work.seed, lambda *_: False)
        certificate = fit.certificate
        text = fit.model.note(
            method=fit.method.name,
            seed=work.seed,
            market=dict(zip(work.by, work.key, strict=True)),
            certificate={"distance": float(certificate.upper), "gap": float(certificate.gap)},
            choices=work.counts.observations,
            data={"digest": work.counts.digest()},
            version=VERSION,
            **work.about,
        ).to_text()
    except Exception as error:  # our own messages as they are, others with their type
        words = " ".join(str(error).split())
        reason = words if type(error) is ValueError and words else f"{type(error).__name__}: {words}".rstrip(": ")
        return MarketFit(work.key, "failed", error=reason, seconds=perf_counter() - began, **facts), None
    pooled = fit.model.about.get("prediction", {}).get("weights", {}).get("pool")
    row = MarketFit(
        work.key, "done", method=fit.method.name, distance=float(certificate.upper), gap=float(certificate.gap),
        seconds=perf_counter() - began, pooled=pooled, file=file_of(work.key),
        written=bytes_digest(text.encode()), **facts,
    )  # fmt: skip
    return row, text


def read_part(part: Partition, by: Sequence[str], how: ReadOptions, on_error: str) -> Tallies:
    """Read some files of a partitioned folder."""
    with one_thread():
        return part.read(by, how, on_error)


def in_parallel(
    function: Callable[[Given], Result], given: Iterable[Given], n_jobs: int, batch_size: int | str = 1
) -> Iterator[Result]:
    """Yield results as they finish, in any order; the inputs are consumed as workers become free.

    The backends of Ray and Spark return lists only: they get parts, one after the other.
    """
    from joblib import Parallel, delayed

    try:
        work = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=batch_size, pre_dispatch="2*n_jobs")
    except ValueError:
        work, given = Parallel(n_jobs=n_jobs, batch_size=batch_size), iter(given)
        while part := list(islice(given, PART)):
            yield from work(delayed(function)(each) for each in part)
    else:
        yield from work(delayed(function)(each) for each in given)


def fit_all(works: Iterator[Work], n_jobs: int) -> Iterator[tuple[MarketFit, str | None]]:
    """Fit markets, small ones in batches; if a worker is killed, retry those in progress one by one.

    So a market that needs too much memory fails alone.
    """
    in_progress = dict[Market, Work]()

    def handed_out() -> Iterator[Work]:
        for work in works:
            in_progress[work.key] = work
            yield work

    while True:
        try:
            for row, text in in_parallel(fit_market, handed_out(), n_jobs, "auto"):
                in_progress.pop(row.key, None)
                yield row, text
        except Exception as error:
            _check_ended(error)
            alone = list(in_progress.values())
            in_progress.clear()
            for work in alone:
                yield _fit_alone(work)
            continue
        return


def _fit_alone(work: Work) -> tuple[MarketFit, str | None]:
    try:
        return next(iter(in_parallel(fit_market, [work], 2)))
    except Exception as error:
        _check_ended(error)
        reason = "Its process was killed, perhaps for lack of memory: use fewer offers or more memory."
        return MarketFit(work.key, "failed", error=reason, digest=work.digest), None


def _check_ended(error: Any) -> None:
    """Raise the error again unless it means that a worker was killed."""
    if type(error).__name__ not in WORKER_ENDED:
        raise error
