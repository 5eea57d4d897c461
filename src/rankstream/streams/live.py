"""A model that follows a stream: counts that grow with new offers and items, and a solver that goes on playing."""

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rankstream import distances, learners, oracles
from rankstream._core.arguments import whole_number
from rankstream._core.types import Label
from rankstream.certificate import Certificate
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.forgetting import DecayingCounts, ForgettingCounts, WindowCounts, as_reach, reach_text
from rankstream.models.rankings import RankingModel
from rankstream.oracles.search import hurried
from rankstream.solver.loop import Snapshot, Solver
from rankstream.solver.runs import Run
from rankstream.streams.checkpoint import read, write
from rankstream.streams.packing import Parts, pack
from rankstream.streams.reweighing import catch_up

MEMORY = 1000.0
Reach = float | str | timedelta


class Record(NamedTuple):
    """One observation: what was offered, what was chosen, how often, and when, in seconds since 1970 if it is known."""

    offered: tuple[Label, ...]
    chosen: Label
    times: float = 1.0
    time: float | None = None


class Live:
    """Batches of records in, a current model out; ``save`` and ``load`` make it survive anything.

    Offers weigh by their observations, as in ``estimate``. Earlier rounds count for at most ``MEMORY`` rounds together,
    so that the model follows the counts; the counts may forget, too, with a half-life or a window in observations, or
    in time ("7d"), if every record has its own: then an offer that is no longer made counts for less and less.

    >>> live = Live(rounds=50)
    >>> live.observe([Record(("tea", "pie"), "tea", 3), Record(("tea", "pie"), "pie")])
    >>> live.observe([Record(("pie", "cake"), "cake")])
    >>> round(live.snapshot().model.predict(("tea", "pie"))["tea"], 1), live.records
    (0.8, 3)
    """

    detect: ClassVar[bool] = False
    threshold: ClassVar[float | None] = None

    def __init__(
        self, *, half_life: Reach | None = None, window: Reach | None = None, rounds: int = 20, seed: int = 0
    ) -> None:
        if half_life is not None and window is not None:
            raise ValueError("Counts forget either with a half-life or beyond a window: set one of the two.")
        self.half_life, self.window = (None if one is None else as_reach(one) for one in (half_life, window))
        if self.window is not None and not isinstance(self.window, timedelta):
            self.window = whole_number("window", int(self.window) if self.window % 1 == 0 else self.window, least=1)
        self.timed = isinstance(self.half_life or self.window, timedelta)
        self.seed = whole_number("seed", seed)
        self.rounds = whole_number("rounds", rounds, least=1)
        self.records = 0
        self.counts: ChoiceCounts | None = None
        self.run: Run | None = None

    def observe(self, batch: Sequence[Record]) -> None:
        """Count a batch and play rounds on all counts so far; nothing is counted if a record is wrong."""
        if not batch:
            return
        for record in batch:
            if record.chosen not in record.offered:
                raise ValueError(f"The choice {record.chosen!r} is not in its offer {record.offered!r}.")
            self.check(record)
        counts = self._with_offers(batch)
        offered, chosen, amounts, times = zip(*batch, strict=True)
        where = counts.coordinates(list(offered), list(chosen))
        if isinstance(counts, ForgettingCounts) and self.timed:
            counts.observe_coordinates(where, amounts, np.array(times, dtype=np.float64))
        else:
            counts.observe_coordinates(where, amounts)
        self.counts, self.records = counts, self.records + len(batch)
        self._play(counts)

    def check(self, record: Record) -> None:
        """Refuse records without a time where the counts forget by it."""
        if self.timed and record.time is None:
            raise ValueError('it has no "time" that can be read, by which choices fade: write 2024-05-16T12:30')

    def _with_offers(self, batch: Sequence[Record]) -> ChoiceCounts:
        """The counts so far, with room for every offer of the batch."""
        offers = {frozenset(record.offered): record.offered for record in batch}
        if self.counts is None:
            assortments = Assortments(offers.values())
            if self.half_life is not None:
                return DecayingCounts(assortments, self.half_life)
            return ChoiceCounts(assortments) if self.window is None else WindowCounts(assortments, self.window)
        known = {frozenset(offer) for offer in self.counts.assortments.offers}
        new = [offer for key, offer in offers.items() if key not in known]
        return self.counts.extend(new) if new else self.counts

    def _play(self, counts: ChoiceCounts) -> None:
        offers = counts.assortments
        if self.run is None:
            oracle = oracles.auto(offers, seed=self.seed)
            self.run = Run(Solver(offers, distances.L2(offers), learners.DualAveraging(), oracle), tolerance=0.0)
        catch_up(self.run, counts, MEMORY)
        if counts.observations:  # with nothing yet, or all forgotten, the model stays as it is
            with hurried(self.run.solver.oracle):
                self.run.advance_many(counts.target(), self.rounds)

    def snapshot(self) -> Snapshot:
        """The model now, certified at the counts as they are."""
        if self.run is None or self.counts is None or not self.ready:
            raise ValueError("There is no model before the first choice: observe one that counts.")
        return self.run.solver.snapshot(self.run.state, self.counts)

    @property
    def ready(self) -> bool:
        """Whether there is a model yet."""
        return self.run is not None and self.run.state.round > 0

    @property
    def rankings(self) -> int:
        """How many rankings the model has."""
        return 0 if self.run is None else len(self.run.state.weights)

    @property
    def model(self) -> RankingModel:
        """The model now."""
        return self.snapshot().model

    @property
    def certificate(self) -> Certificate:
        """What is proven about it."""
        return self.snapshot().certificate

    def save(self, path: str | os.PathLike[str], more: dict[str, Any]) -> None:
        """Write everything, and ``more``, to one file; a crash leaves the old file, never half a new one."""
        settings = {name: getattr(self, name) for name in ("rounds", "seed", "records")}
        settings |= {"half_life": reach_text(self.half_life), "window": reach_text(self.window)}
        runs = [] if self.run is None else [pack(self.run.solver, self.run.state, self.counts)]
        write(path, runs, {"live": settings, **more})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "tuple[Live, dict[str, Any]]":
        """Read what ``save`` wrote: it goes on bit for bit."""
        runs, more = read(path, Parts())
        settings = more.pop("live", None)
        if not isinstance(settings, dict):
            raise ValueError(f"{path} is a checkpoint of another kind: name one that 'rankstream stream' wrote.")
        records = settings.pop("records")
        live = cls(**settings)
        live.records = records
        for solver, state, counts in runs:
            live.run, live.counts = Run(solver, tolerance=0.0), counts
            live.run.state = state
        return live, more
