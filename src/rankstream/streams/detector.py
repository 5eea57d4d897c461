"""A change detector: a fast-forgetting copy beside the served model, and the evidence that it knows better."""

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.arguments import number_between, whole_number, whole_numbers
from rankstream._core.types import Codes, Label, Vec
from rankstream.certificate import Certificate
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.forgetting import DecayingCounts
from rankstream.models.rankings import RankingModel
from rankstream.streams.checkpoint import Checkpoint, read, write
from rankstream.streams.packing import Packed, Parts, pack
from rankstream.streams.tracks import Track, start_track


@dataclass(frozen=True)
class Alarm:
    """A change that was noticed: at which record, since which record the evidence has grown, and how large it was."""

    record: int
    since: int
    statistic: float


@dataclass(frozen=True)
class DetectorSettings:
    """How a ChangeDetector works; see there."""

    half_life: float = 500.0
    threshold: float = 15.0
    epsilon: float = 1e-3
    block: int = 50
    rounds: int = 50
    memory: int = 100
    distance: str = "l2"
    learner: str = "mirror-descent"
    seed: int = 0

    def __post_init__(self) -> None:
        number_between("half_life", self.half_life, 1e-300)
        number_between("threshold", self.threshold, 0.0)
        if not 0.0 < number_between("epsilon", self.epsilon, 0.0, 1.0) < 1.0:
            raise ValueError(f"epsilon is {self.epsilon}: it must lie strictly between 0 and 1.")
        for name in ("block", "rounds", "memory"):
            whole_number(name, getattr(self, name), least=1)


__all__ = ["Alarm", "ChangeDetector", "DetectorSettings"]


class ChangeDetector:
    """A model that is served, and restarted when a fast-forgetting copy of it has proven to know better.

    The served model learns from all choices since the last restart, the copy from ``DecayingCounts`` with a
    ``half_life``. Every record is scored by both before either has seen it, with ``epsilon`` of the uniform choice
    mixed in, and the evidence is S <- max(0, S + log(copy / served)): a CUSUM. Once S passes the ``threshold``, in
    nats, the served model and its counts are replaced by the copy's. Both learn after every ``block`` of records, by
    ``rounds`` rounds in which all rounds before count for at most ``memory``.

    The copy is noisy: on n coordinates of m offers it loses about (n - m) / (5.8 * half_life) nats per record, and
    changes that cost the served model less are noticed late or never. If every choice came from the served model,
    there would be e^threshold records on average before an alarm, or more: the ratios are likelihood ratios, whatever
    the copy predicts (Lorden's bound). Choices never come from it exactly, so count false alarms on your own quiet
    data; ``benchmarks/drift.py`` does so on simulated markets.

    >>> from rankstream.data import simulate
    >>> market, other = simulate.market(seed=1), simulate.market(seed=2)
    >>> detector, random = ChangeDetector(market.assortments), np.random.default_rng(0)
    >>> for truth in (market.truth, other.truth):
    ...     shares = truth.probabilities(market.assortments)
    ...     alarms = detector.observe_coordinates(simulate.draw_choices(market.assortments, shares, 10_000, random))
    >>> detector.alarms[0].record - 10_000 < 1000
    True
    """

    def __init__(self, assortments: Assortments, settings: DetectorSettings | None = None, **changes: Any) -> None:
        given = {} if settings is None else asdict(settings)
        self.settings = DetectorSettings(**{**given, **changes})
        own = self.settings
        counts = (ChoiceCounts(assortments), DecayingCounts(assortments, own.half_life))
        self.served, self.fast = (start_track(one, own.distance, own.learner, own.memory, own.seed) for one in counts)
        self.records = 0
        self.statistic = 0.0
        self.since = 0
        self.alarms: list[Alarm] = []
        self._pending: list[int] = []
        self._compare()

    @property
    def assortments(self) -> Assortments:
        """The offers so far."""
        return self.served.counts.assortments

    @property
    def counts(self) -> ChoiceCounts:
        """What the served model learns from."""
        return self.served.counts

    @property
    def model(self) -> RankingModel:
        """The served model."""
        return self.served.solver.model(self.served.state)

    @property
    def certificate(self) -> Certificate:
        """What is proven about it, at its counts."""
        return self.served.solver.certificate(self.served.state, self.served.counts)

    def observe(self, offered: Any, chosen: Any) -> list[Alarm]:
        """Take in one record, or many in their order; returns the alarms they raised."""
        return self.observe_coordinates(self.served.counts.coordinates(offered, chosen))

    def observe_coordinates(self, coordinates: ArrayLike) -> list[Alarm]:
        """Take in choices that are already coordinates."""
        where = whole_numbers("Coordinates", coordinates)
        if where.size and (where.min() < 0 or where.max() >= self.assortments.n_coordinates):
            raise ValueError(f"Coordinates must lie between 0 and {self.assortments.n_coordinates - 1}: correct them.")
        before = len(self.alarms)
        while where.size:
            used = self._score(where[: self.settings.block - len(self._pending)])
            self._pending.extend(where[:used].tolist())
            where = where[used:]
            passed = self.statistic > self.settings.threshold
            if passed or len(self._pending) >= self.settings.block:
                self._learn()
            if passed:
                self._restart()
        return self.alarms[before:]

    def extend(self, offers: Iterable[Iterable[Label]]) -> None:
        """Add offers, and with them items, to both models; those known already are left out."""
        known = {frozenset(offer) for offer in self.assortments.offers}
        new = [offer for offer in map(tuple, offers) if frozenset(offer) not in known]
        if new:
            self.served, self.fast = self.served.extend(new), self.fast.extend(new)
            self._compare()

    def _score(self, where: Codes) -> int:
        """Add up the evidence of these records, up to the first at which it is enough; returns how many were used.

        One by one, so that it is the same to the last bit however the records come in batches.
        """
        used, evidence = 0, self.statistic
        for used, ratio in enumerate(self._log_ratio[where].tolist(), start=1):
            evidence = max(0.0, evidence + ratio)
            if evidence == 0.0:
                self.since = self.records + used
            if evidence > self.settings.threshold:
                break
        self.statistic = evidence
        self.records += used
        return used

    def _learn(self) -> None:
        for track in (self.served, self.fast):
            track.counts.observe_coordinates(self._pending)
            track.play(self.settings.rounds, self.settings.memory)
        self._pending = []
        self._compare()

    def _restart(self) -> None:
        """Serve the copy."""
        self.alarms.append(Alarm(self.records, self.since, self.statistic))
        counts = ChoiceCounts(self.assortments, self.fast.counts.tallies)
        self.served = Track(self.served.solver, self.fast.state.copy(), counts)
        self.statistic, self.since = 0.0, self.records
        self._compare()

    def _compare(self) -> None:
        """The logarithm of the ratio of both models' probabilities; 0 on offers of which neither can know anything."""
        epsilon = self.settings.epsilon
        apart = self.fast.log_probabilities(epsilon) - self.served.log_probabilities(epsilon)
        known = self.served.counts.totals[self.assortments.owner] > 0.0
        self._log_ratio: Vec = np.where(known, apart, 0.0)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, from which ``load`` goes on exactly (see ``checkpoint``)."""
        write(path, *self.packed())

    def packed(self) -> tuple[list[Packed], dict[str, Any]]:
        """Everything, as what ``checkpoint.write`` takes."""
        more = {
            "detector": asdict(self.settings),
            "alarms": [asdict(alarm) for alarm in self.alarms],
            "pending": self._pending,
            **{name: getattr(self, name) for name in ("records", "statistic", "since")},
        }
        return [pack(track.solver, track.state, track.counts) for track in (self.served, self.fast)], more

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "ChangeDetector":
        """Read what ``save`` wrote."""
        runs, more = read(path, Parts())
        if "detector" not in more or len(runs) != 2:
            raise ValueError(f"{path} holds a run, but no change detector: read it with checkpoint.load.")
        return cls.unpacked(runs, more)

    @classmethod
    def unpacked(cls, runs: list[Checkpoint], more: dict[str, Any]) -> "ChangeDetector":
        """What ``packed`` gave, and ``checkpoint.read`` read."""
        tracks = [Track(run.solver, run.state, run.counts) for run in runs if run.counts is not None]
        if len(tracks) != 2:
            raise ValueError("There is a change detector without its counts: go back to an older file.")
        detector = cls(tracks[0].counts.assortments, DetectorSettings(**more["detector"]))
        detector.served, detector.fast = tracks
        detector.alarms = [Alarm(**alarm) for alarm in more["alarms"]]
        detector._pending = more["pending"]
        detector.records, detector.statistic, detector.since = (more[n] for n in ("records", "statistic", "since"))
        detector._compare()
        return detector
