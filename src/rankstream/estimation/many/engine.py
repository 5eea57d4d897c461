"""The engine is joblib: processes on one machine, or the backend of ``joblib.parallel_config``, such as Dask."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import Any, TypeVar

from rankstream.estimation.many.markets import Market, MarketFit
from rankstream.estimation.many.work import Work, fit_chunk

Given = TypeVar("Given")
Result = TypeVar("Result")
FIRST, MOST_CHUNK = 4, 256
CHUNK_SECONDS = 1.0
WORKER_ENDED = ("TerminatedWorkerError", "BrokenProcessPool", "KilledWorker")
"""What is raised when the process of a worker ends, by loky and by Dask."""


def in_parallel(function: Callable[[Given], Result], given: Iterable[Given], n_jobs: int) -> Iterator[Result]:
    """The results as they come, in whatever order; what is given is asked for as workers become free."""
    from joblib import Parallel, delayed

    work = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
    yield from work(delayed(function)(each) for each in given)


@dataclass
class Pace:
    """How many markets make about a second of work, by what the latest took."""

    seconds: float | None = None

    def note(self, rows: Iterable[MarketFit]) -> None:
        """Learn from a chunk."""
        mean = fmean(row.seconds or 0.0 for row in rows)
        self.seconds = mean if self.seconds is None else 0.5 * (self.seconds + mean)

    @property
    def size(self) -> int:
        """The markets of the next chunk."""
        if self.seconds is None:
            return FIRST
        return max(1, min(MOST_CHUNK, round(CHUNK_SECONDS / max(self.seconds, 1e-6))))


def fit_all(works: Iterator[Work], n_jobs: int) -> Iterator[tuple[MarketFit, str | None]]:
    """Fit markets in chunks; where a worker's process ends, what was under way is tried again, one by one.

    So a market that takes not enough memory fails alone.
    """
    pace, under_way = Pace(), dict[Market, Work]()

    def chunks() -> Iterator[list[Work]]:
        while chunk := list(islice(works, pace.size)):
            under_way.update((work.key, work) for work in chunk)
            yield chunk

    while True:
        try:
            for results in in_parallel(fit_chunk, chunks(), n_jobs):
                pace.note(row for row, _ in results)
                for row, text in results:
                    under_way.pop(row.key, None)
                    yield row, text
        except Exception as error:
            _check_ended(error)
            alone, pace.seconds = list(under_way.values()), None
            under_way.clear()
            for work in alone:
                yield _alone(work)
            continue
        return


def _alone(work: Work) -> tuple[MarketFit, str | None]:
    try:
        return next(iter(in_parallel(fit_chunk, [[work]], 2)))[0]
    except Exception as error:
        _check_ended(error)
        reason = "Its process was killed, perhaps for lack of memory: use fewer offers or more memory."
        return MarketFit(work.key, "failed", error=reason, digest=work.digest), None


def _check_ended(error: Any) -> None:
    """Raise what is anything else than the end of a worker."""
    if type(error).__name__ not in WORKER_ENDED:
        raise error
