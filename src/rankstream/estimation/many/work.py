"""The work of a worker: some markets, one after the other, in one thread; a market that fails is a result, too."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, TypeGuard

from rankstream._core.threads import one_blas_thread
from rankstream._core.version import VERSION
from rankstream.data.counts import ChoiceCounts
from rankstream.data.readers.markets import Partition
from rankstream.data.readers.options import ReadOptions
from rankstream.data.readers.sources.database import one_thread
from rankstream.data.readers.tallies import Tallies
from rankstream.estimation.estimate import run_task
from rankstream.estimation.many.markets import Market, MarketFit, bytes_digest, file_of
from rankstream.estimation.methods import MaxEntropy, Method, make, pick
from rankstream.estimation.task import Task
from rankstream.models.entropy.pool import PoolGuide


@dataclass(frozen=True, eq=False)
class Work:
    """One market to fit: its key, counts and seed, the method, the columns of the key, and the digest of all that.

    ``pool`` is what it may borrow, ``about`` what its model remembers of the reading.
    """

    key: Market
    by: tuple[str, ...]
    counts: ChoiceCounts
    seed: int
    method: str | Method
    digest: str
    pool: PoolGuide | None = None
    about: dict[str, Any] = field(default_factory=dict)

    def chosen(self, task: Task) -> Method:
        """The method; with the pool among the guides where it is maximum entropy."""
        method = make(self.method) or pick(task)
        if self.pool is not None and takes_pool(method):
            return replace(method, prior=self.pool)
        return method


def takes_pool(method: Method) -> TypeGuard[MaxEntropy]:
    """Whether a method weighs guides, so that a pool can be one of them."""
    return isinstance(method, MaxEntropy) and method.prior == "held-out"


def fit_chunk(chunk: Sequence[Work]) -> list[tuple[MarketFit, str | None]]:
    """Fit some markets: for each its row of the index, and the text of its model file where there is one."""
    with one_blas_thread():
        return [fit_market(work) for work in chunk]


def fit_market(work: Work) -> tuple[MarketFit, str | None]:
    """Fit one market; whatever goes wrong is a row that says so."""
    began, offers = perf_counter(), work.counts.assortments
    facts: dict[str, Any] = {
        "choices": float(work.counts.observations), "offers": offers.n_offers, "items": offers.n_items,
        "digest": work.digest,
    }  # fmt: skip
    try:
        task = Task(offers, work.counts, work.seed)
        found = run_task(task, work.chosen(task))
        certificate = found.certificate
        text = found.model.note(
            method=found.method.name,
            seed=work.seed,
            market=dict(zip(work.by, work.key, strict=True)),
            certificate={"distance": float(certificate.upper), "gap": float(certificate.gap)},
            choices=work.counts.observations,
            data={"digest": work.counts.digest()},
            version=VERSION,
            **work.about,
        ).to_text()
    except Exception as error:
        return MarketFit(work.key, "failed", error=reason_of(error), seconds=perf_counter() - began, **facts), None
    pooled = found.model.about.get("prediction", {}).get("weights", {}).get("pool")
    row = MarketFit(
        work.key, "done", method=found.method.name, distance=float(certificate.upper), gap=float(certificate.gap),
        seconds=perf_counter() - began, pooled=pooled, file=file_of(work.key),
        written=bytes_digest(text.encode()), **facts,
    )  # fmt: skip
    return row, text


def reason_of(error: BaseException) -> str:
    """An error in a sentence: our own as they are, others with their kind."""
    words = " ".join(str(error).split())
    return words if type(error) is ValueError and words else f"{type(error).__name__}: {words}".rstrip(": ")


def read_part(part: Partition, by: Sequence[str], how: ReadOptions, on_error: str) -> Tallies:
    """Read some files of a partitioned folder."""
    with one_thread():
        return part.read(by, how, on_error)
