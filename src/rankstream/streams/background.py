"""A live model whose maximum-entropy part is refreshed elsewhere, so that learning never waits for it."""

import json
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rankstream._core.watch import Deadline, process_seconds
from rankstream.certificate import Certificate
from rankstream.data import ChoiceCounts, observed
from rankstream.models.base import Model
from rankstream.streams.entropy_follower import Due, EntropyFollower
from rankstream.streams.live import Live, Record
from rankstream.streams.pace import may_serve
from rankstream.streams.proofs import SERVICE_GROWTH, StreamProof

NOTE = "background"
QUICK_STATES = 2**11  # of a program made in milliseconds, between two batches (benchmarks/learner_memory.py)
FRESH_SECONDS = 10.0  # after which a model that is served is refitted, however few the new choices are of all
REFRESH_SECONDS = 10.0  # of processor time after which a refresh ends with what it has, as other markets wait
REFRESH_TIMEOUT = 15.0  # seconds by the clock, where the processor is busy with other things: models grow old meanwhile


class RefreshJob(NamedTuple):
    """What somebody else needs to refresh a model: whoever works on it may be another process."""

    counts: ChoiceCounts
    content: dict[str, Any]
    seed: int
    how: Due


class BackgroundLive:
    """``Live`` for whoever must not wait: ``observe`` counts and plays rounds, and ``job`` is the refresh that is due.

    Run it with ``refreshed``, in another process or at once, and hand the result to ``take``; until then the model
    before is served, and ``known`` says up to which position that one knows the records. Besides what ``Live``
    refreshes, a model older than 10 seconds is fitted again once the square root of its choices has come: fewer move it
    by less than its standard error. ``settings`` are those of ``Live``, as JSON has them.

    >>> learning = BackgroundLive({"half_life": 500})
    >>> learning.observe([Record(("tea", "pie"), "tea", 40), Record(("tea", "pie"), "pie", 20)], 2)
    >>> job = learning.job()
    >>> learning.serves
    'sparse'
    >>> learning.take(refreshed(job))
    >>> learning.serves, learning.known, learning.job() is None
    ('max-entropy', 2, True)
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = dict(settings)
        self.wants_dense = self.settings.get("served", "max-entropy") == "max-entropy"
        self.live = Live(**{name: own for name, own in self.settings.items() if name != "served"}, publish="sparse")
        self.live.proof = StreamProof(SERVICE_GROWTH)
        self.dense = EntropyFollower(self.live.seed, self.live.dense.attributes)
        self.position, self.made = 0, 0.0
        self._known = (0, 0.0)  # the position and the time of the counts behind the dense model
        self._pending: tuple[int, float] | None = None
        self._due: Due | None = None
        self._failed: int | None = None  # the position at which a refresh failed
        self._changed = False  # whether the market has changed since the last job
        self._published = 0  # up to which position the latest model that was given out knows the records
        self._pending_again = False  # whether the job under way brings a dense model up to those

    def observe(self, batch: Sequence[Record], position: int, arrived: float | None = None) -> None:
        """Count a batch, and learn; ``position`` is behind it, and its last record came at ``arrived``, or just now."""
        before = self.live.restarted
        self.live.observe(batch)
        self.position, self.made = position, time.time() if arrived is None else arrived
        if self.wants_dense and self.live.counts is not None:
            choices = float(sum(record.times for record in batch))
            self._changed |= self.live.restarted != before
            self._due = self._now_due(choices)

    def _now_due(self, choices: float = 0.0) -> Due | None:
        """The refresh that is due by the choices alone after more of them, unless the market outruns it."""
        counts, run = self.live.counts, self.live.run
        if counts is None or run is None:
            return None
        due = self.dense.due(counts, choices, self._changed)
        due = "again" if self._is_behind else due
        return due if may_serve(run, counts, self.dense) else None

    @property
    def is_stale(self) -> bool:
        """Whether a maximum-entropy model is served that is old, and choices have come that would move it."""
        if self.serves == "sparse" or time.time() - self.known_since < FRESH_SECONDS:
            return False
        choices, counted = self.dense.fitted
        return self.dense.choices - choices >= math.sqrt(max(1.0, counted))

    @property
    def needs_refit(self) -> bool:
        """Whether guides that are weighed already would make a better model to serve: this one is old, or sparse."""
        return self.is_stale or (self.serves == "sparse" and self.dense.fit is not None)

    @property
    def _is_behind(self) -> bool:
        """Whether the dense model could be served, but knows fewer records than a sparse one that was given out."""
        counts = self.live.counts
        return counts is not None and self._known[0] < self._published and self.dense.knows(counts.assortments)

    def publish(self) -> None:
        """Note that the model of now is given out: no model of fewer records is served after it."""
        self._published = self.known

    @property
    def is_catching_up(self) -> bool:
        """Whether a job brings the dense model up to the records of the one that was given out.

        Until it ends, nothing newer should be given out: it would be behind again.
        """
        return self._pending is not None and self._pending_again

    @property
    def due(self) -> Due | None:
        """How ``job`` would refresh the model; None without a refresh that is due, and while one is under way."""
        if self._pending is not None or self.live.counts is None:
            return None
        return self._due or ("again" if self.is_stale and self._failed != self.position else None)

    def job(self, how: Due | None = None) -> RefreshJob | None:
        """The refresh that is due, once, or another one that is quicker; None where ``due`` is."""
        due = self.due
        if due is None or self.live.counts is None:
            return None
        if due == (how or due):
            self._due, self._changed = None, False
        self._pending, self._pending_again = (self.position, self.made), self._is_behind
        return RefreshJob(observed(self.live.counts), self.dense.to_content(), self.live.seed, how or due)

    def take(self, content: dict[str, Any] | None) -> None:
        """The result of a job; None where it failed, after which the next one comes with the next choices."""
        counts, choices = self.live.counts, self.dense.choices
        if content is not None and self._pending is not None and counts is not None:
            self.dense, self._known = EntropyFollower.from_content(content, self.live.seed), self._pending
            self.dense.choices = choices
            self._due = self._now_due()
        else:
            self._due, self._failed = None, self.position
        self._pending = None

    @property
    def ready(self) -> bool:
        """Whether there is a model yet."""
        return self.live.ready

    @property
    def serves(self) -> str:
        """Which of the two ``model`` is now."""
        counts = self.live.counts
        served = counts is not None and self.dense.knows(counts.assortments) and not self._is_behind
        return "max-entropy" if served else "sparse"

    @property
    def model(self) -> Model:
        """The model now."""
        return self.live.noted(self.dense.model) if self.serves == "max-entropy" else self.live.model

    @property
    def known(self) -> int:
        """The position of the last record that the model knows."""
        return self._known[0] if self.serves == "max-entropy" else self.position

    @property
    def known_since(self) -> float:
        """When that record came, in seconds since 1970."""
        return self._known[1] if self.serves == "max-entropy" else self.made

    @property
    def certificate(self) -> Certificate:
        """What is proven about the model, at the counts as they are."""
        proven, run, counts = self.live.certificate, self.live.run, self.live.counts
        if self.serves == "sparse" or run is None or counts is None:
            return proven
        return self.dense.certify(proven, run.solver.distance, counts, QUICK_STATES)

    def to_bytes(self) -> bytes:
        """Everything, the position with it."""
        own = {"position": self.position, "made": self.made, "known": self._known, "settings": self.settings}
        own["published"] = self._published
        with TemporaryDirectory(prefix="rankstream-") as folder:
            path = Path(folder) / "state.npz"
            self.live.save(path, {NOTE: json.dumps(own | {"dense": self.dense.to_content()})})
            return path.read_bytes()

    @classmethod
    def from_bytes(cls, content: bytes) -> "BackgroundLive":
        """What ``to_bytes`` gave."""
        with TemporaryDirectory(prefix="rankstream-") as folder:
            path = Path(folder) / "state.npz"
            path.write_bytes(content)
            live = Live.load(path)
        own = json.loads(live.notes.pop(NOTE))
        learning = cls(own["settings"])
        learning.live, learning.dense = live, EntropyFollower.from_content(own["dense"], live.seed)
        live.proof = StreamProof(SERVICE_GROWTH)
        learning.position, learning.made = own["position"], own["made"]
        position, made = own["known"]
        learning._known, learning._published = (position, made), own.get("published", 0)
        if learning.wants_dense:
            learning._due = learning._now_due()
        return learning


def refreshed(job: RefreshJob) -> dict[str, Any]:
    """Do a job: the model of its counts as ``EntropyFollower`` describes it, or what there is after 10 CPU seconds."""
    served = EntropyFollower.from_content(job.content, job.seed)
    served.refresh(job.counts, job.how, Deadline(REFRESH_SECONDS, clock=process_seconds, timeout=REFRESH_TIMEOUT))
    return served.to_content()
