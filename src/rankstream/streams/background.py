"""A live model whose maximum-entropy part is refreshed elsewhere, so that learning never waits for it."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rankstream.certificate import Certificate
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observed import observed
from rankstream.models.base import Model
from rankstream.streams.live import Live, Record
from rankstream.streams.pace import may_serve
from rankstream.streams.proofs import SELDOM, StreamProof
from rankstream.streams.served import Due, Served

NOTE = "background"


class RefreshJob(NamedTuple):
    """What somebody else needs to refresh a model: whoever works on it may be another process."""

    counts: ChoiceCounts
    content: dict[str, Any]
    seed: int
    how: Due


class BackgroundLive:
    """``Live`` for whoever must not wait: ``observe`` counts and plays rounds, and ``job`` is the refresh that is due.

    Run it with ``refreshed``, in another process or at once, and hand the result to ``take``; until then the model
    before is served, and ``known`` says up to which position that one knows the records.

    Parameters
    ----------
    settings : dict
        Settings of ``Live``, as JSON has them.

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
        self.live = Live(**{**self.settings, "served": "sparse"})
        self.live.proof = StreamProof(SELDOM)
        self.dense = Served(self.live.seed)
        self.position, self.made = 0, 0.0
        self._known = (0, 0.0)  # the position and the time of the counts behind the dense model
        self._pending: tuple[int, float] | None = None
        self._due: Due | None = None
        self._changed = False  # whether the market has changed since the last job

    def observe(self, batch: Sequence[Record], position: int) -> None:
        """Count a batch, and learn; ``position`` is behind it."""
        changes = len(self.live.alarms)
        self.live.observe(batch)
        self.position, self.made = position, time.time()
        if self.wants_dense and self.live.counts is not None:
            arrived = float(sum(record.times for record in batch))
            self._changed |= len(self.live.alarms) > changes
            self._due = self._now_due(arrived)

    def _now_due(self, arrived: float = 0.0) -> Due | None:
        """The refresh that is due after more choices, unless the market outruns it."""
        counts, run = self.live.counts, self.live.run
        if counts is None or run is None:
            return None
        due = self.dense.due(counts, arrived, self._changed)
        return due if may_serve(run, counts, self.dense) else None

    @property
    def is_due(self) -> bool:
        """Whether ``job`` would give one."""
        return self._due is not None and self._pending is None and self.live.counts is not None

    def job(self) -> RefreshJob | None:
        """The refresh that is due, once; None without one, and while another has not been taken."""
        if self._due is None or self._pending is not None or self.live.counts is None:
            return None
        how, self._due, self._changed = self._due, None, False
        self._pending = self.position, self.made
        return RefreshJob(observed(self.live.counts), self.dense.to_content(), self.live.seed, how)

    def take(self, content: dict[str, Any] | None) -> None:
        """The result of a job; None where it failed, after which the next one comes with the next choices."""
        counts, choices = self.live.counts, self.dense.choices
        if content is not None and self._pending is not None and counts is not None:
            self.dense, self._known = Served.from_content(content, self.live.seed), self._pending
            self.dense.choices = choices
            self._due = self._now_due()
        else:
            self._due = None
        self._pending = None

    @property
    def ready(self) -> bool:
        """Whether there is a model yet."""
        return self.live.ready

    @property
    def serves(self) -> str:
        """Which of the two ``model`` is now."""
        counts = self.live.counts
        return "max-entropy" if counts is not None and self.dense.knows(counts.assortments.items) else "sparse"

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
        """When that record had been learned, in seconds since 1970."""
        return self._known[1] if self.serves == "max-entropy" else self.made

    @property
    def certificate(self) -> Certificate:
        """What is proven about the model, at the counts as they are."""
        proven, run, counts = self.live.certificate, self.live.run, self.live.counts
        if self.serves == "sparse" or run is None or counts is None:
            return proven
        return self.dense.certify(proven, run.solver.distance, counts)

    def to_bytes(self) -> bytes:
        """Everything, the position with it."""
        own = {"position": self.position, "made": self.made, "known": self._known, "settings": self.settings}
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
        learning.live, learning.dense = live, Served.from_content(own["dense"], live.seed)
        live.proof = StreamProof(SELDOM)
        learning.position, learning.made = own["position"], own["made"]
        position, made = own["known"]
        learning._known = position, made
        if learning.wants_dense:
            learning._due = learning._now_due()
        return learning


def refreshed(job: RefreshJob) -> dict[str, Any]:
    """Do a job: the model of its counts, as ``Served`` describes it."""
    served = Served.from_content(job.content, job.seed)
    served.refresh(job.counts, job.how)
    return served.to_content()
