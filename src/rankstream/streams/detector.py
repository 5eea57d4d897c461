"""A change detector: compares the published model with a fast-forgetting copy."""

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.arguments import whole_numbers
from rankstream._core.types import Codes, Label, Vec
from rankstream.certificate import Certificate
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.decay import DecayingCounts
from rankstream.models.rankings import RankingModel
from rankstream.solver.loop import Solver, make_solver
from rankstream.solver.runs import Run
from rankstream.streams.files.checkpoint import Checkpoint, explained, read_runs, write
from rankstream.streams.files.packing import Packed, pack
from rankstream.streams.live_settings import DetectorSettings
from rankstream.streams.pace import StreamPace
from rankstream.streams.runs.endless import advance, endless

__all__ = ["Alarm", "ChangeDetector", "DetectorSettings"]


@dataclass(frozen=True)
class Alarm:
    """A detected change.

    ``record`` is the number of the choice at which it was detected, ``statistic`` the evidence in nats. ``since``
    estimates the choice at which the change began, from how fast the second half of the evidence grew.
    """

    record: int
    since: int
    statistic: float


class ChangeDetector:
    """A model of all choices since the market last changed, which detects the next change itself.

    A second copy of the model forgets fast. Both predict each choice before they learn from it. The logarithm of the
    ratio of the two predictions is added to the evidence, which never falls below 0 (a CUSUM). Once the evidence passes
    the threshold, the detector raises an alarm, and the published model and its counts restart from the copy's. The
    copy then still contains choices from before the change, so it may replace the published model again. Evidence that
    begins to grow within a half-life of such a restart belongs to the same change and raises no further alarm.

    The ratios are likelihood ratios, so Lorden's bound on false alarms holds for choices that come from the published
    model. They never do exactly: count false alarms on your own quiet data, as ``benchmarks/drift.py`` does on
    simulated markets. If offers are not known beforehand, use ``Live(detect=True)``, which has a detector inside.

    ``alarms`` are the changes so far, ``records`` the number of choices, ``statistic`` the evidence now, ``since`` the
    choice after which it is above 0, ``restarted`` the last choice at which the published model restarted (or None),
    and ``counts`` the choices that the published model learns from.

    Parameters
    ----------
    assortments : Assortments
        The offers; ``extend`` adds more.
    settings : DetectorSettings, optional
        How it works; its fields may also be given by name, as in ``threshold=8.0``.

    Examples
    --------
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
        self.settings = replace(settings or DetectorSettings(), **changes)
        self.pace = StreamPace(copies=2)
        recent = DecayingCounts(assortments, self.settings.half_life)
        published, fast = (endless(self._solver(assortments)) for _ in range(2))
        self._begin(published, fast, ChoiceCounts(assortments), recent)

    def _begin(self, published: Run, fast: Run, counts: ChoiceCounts, recent: ChoiceCounts) -> None:
        """Set up both models and their counts, before the first choice."""
        self.published, self.fast, self.counts, self._recent = published, fast, counts, recent
        self.records, self.statistic, self.since, self.halfway = 0, 0.0, 0, 0
        self.alarms: list[Alarm] = []
        self.restarted: int | None = None
        self._pending: list[int] = []
        self._compare()

    def _solver(self, assortments: Assortments) -> Solver:
        """Create a solver whose horizon is twice the memory, so that its steps suit the rounds that count."""
        settings = self.settings
        oracle = self.pace.first_oracle(assortments, settings.seed, settings.block)
        horizon = 2 * settings.memory
        return make_solver(assortments, settings.distance, settings.learner, oracle, "random", horizon, settings.seed)

    @property
    def block(self) -> int:
        """Number of choices that both models learn at a time: in a large market, more than in the settings."""
        return self.pace.block(self.published, self.settings.block)

    @property
    def assortments(self) -> Assortments:
        """The offers so far."""
        return self.counts.assortments

    @property
    def model(self) -> RankingModel:
        """The published model."""
        return self._begun.solver.model(self.published.state)

    @property
    def certificate(self) -> Certificate:
        """The certificate of the model, at its counts."""
        return self._begun.solver.certificate(self.published.state, self.counts)

    @property
    def _begun(self) -> Run:
        if not self.published.state.round:
            raise ValueError(f"There is no model before the first {self.settings.block} choices: observe more.")
        return self.published

    def observe(self, offered: Any, chosen: Any) -> list[Alarm]:
        """Count one record, or many in their order, and return the alarms they raised."""
        return self.observe_coordinates(self.counts.coordinates(offered, chosen))

    def observe_coordinates(self, coordinates: ArrayLike) -> list[Alarm]:
        """Count choices given as coordinates (see ``Assortments.coordinate``), and return the alarms they raised."""
        where = whole_numbers("Coordinates", coordinates)
        if where.size and (where.min() < 0 or where.max() >= self.assortments.n_coordinates):
            raise ValueError(f"Coordinates must lie between 0 and {self.assortments.n_coordinates - 1}: correct them.")
        before = len(self.alarms)
        while where.size:
            used = self._score(where[: max(1, self.block - len(self._pending))])
            self._pending.extend(where[:used].tolist())
            where = where[used:]
            passed = self.statistic > self.settings.threshold
            if passed or len(self._pending) >= self.block:
                self._learn()
            if passed:
                self._restart()
        return self.alarms[before:]

    def extend(self, offers: Iterable[Iterable[Label]]) -> None:
        """Add new offers, and with them items, to both models.

        Beyond a million coordinates, other offers are dropped, and coordinates are renumbered.
        """
        tuples = [tuple(offer) for offer in offers]
        self._make_room(sum(len(offer) for offer in tuples if self.assortments.number(offer) is None))
        new = [offer for offer in tuples if self.assortments.number(offer) is None]
        if new:
            self.counts, self._recent = self.counts.extend(new), self._recent.extend(new)
            self.pace.keep_up((self.published, self.fast), self.assortments)
            self._compare()

    def _make_room(self, more: int) -> None:
        """Drop offers if ``more`` coordinates would be too many; learn from pending choices first."""
        if self.pace.is_crowded(self.assortments, more):
            if self._pending:
                self._learn()
            counts = self.pace.make_room((self.published, self.fast), (self.counts, self._recent))
            self.counts, self._recent = counts

    def _score(self, where: Codes) -> int:
        """Add up the evidence of these records until it passes the threshold; return how many were used.

        It goes one by one, so that the sum is the same to the last bit for any batches.
        """
        used, evidence, half = 0, self.statistic, 0.5 * self.settings.threshold
        for used, ratio in enumerate(self._log_ratio[where].tolist(), start=1):
            evidence = max(0.0, evidence + ratio)
            if evidence == 0.0:
                self.since = self.records + used
            if evidence <= half:
                self.halfway = self.records + used
            if evidence > self.settings.threshold:
                break
        self.statistic = evidence
        self.records += used
        return used

    def _learn(self) -> None:
        runs, counted = (self.published, self.fast), (self.counts, self._recent)
        for counts in counted:
            counts.observe_coordinates(self._pending)
        self.pace.choices += len(self._pending)
        self._pending = []
        self.pace.keep_up(runs, self.assortments)
        for run, counts in zip(runs, counted, strict=True):
            advance(run, counts, self.settings.memory, self.settings.rounds)
        self._compare()

    def _restart(self) -> None:
        """Publish the copy with its weights of the offers and its counts; each run keeps its own oracle."""
        if self.restarted is None or self.since > self.restarted + self.settings.half_life:
            since = max(self.since, 2 * self.halfway - self.records)
            self.alarms.append(Alarm(self.records, since, self.statistic))
        self.restarted = self.records
        self.counts = ChoiceCounts(self.assortments, self._recent.tallies)
        solver = replace(self.fast.solver, oracle=self.published.solver.oracle)
        self.published = endless(solver, self.fast.state.copy())
        self.statistic, self.since = 0.0, self.records
        self._compare()

    def _compare(self) -> None:
        """Compute the log ratio of both models' probabilities; 0 on offers without choices."""
        offers, epsilon = self.assortments, self.settings.epsilon
        published, fast = (_log_probabilities(run, offers, epsilon) for run in (self.published, self.fast))
        known = self.counts.totals[offers.owner] > 0.0
        self._log_ratio: Vec = np.where(known, fast - published, 0.0)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, from which ``load`` resumes exactly."""
        write(path, *self.packed())

    def packed(self) -> tuple[list[Packed], dict[str, Any]]:
        """Return everything in the form that ``checkpoint.write`` takes."""
        more = {
            "detector": asdict(self.settings),
            "alarms": [asdict(alarm) for alarm in self.alarms],
            "pending": self._pending,
            "pace": asdict(self.pace),
            **{name: getattr(self, name) for name in ("records", "statistic", "since", "halfway", "restarted")},
        }
        pairs = ((self.published, self.counts), (self.fast, self._recent))
        return [pack(run.solver, run.state, counts) for run, counts in pairs], more

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "ChangeDetector":
        """Read what ``save`` wrote."""
        runs, more = read_runs(path)
        if "detector" not in more or len(runs) != 2:
            raise ValueError(f"{path} contains a run without a change detector: read it with checkpoint.load.")
        with explained(path):
            return cls.unpacked(runs, more)

    @classmethod
    def unpacked(cls, runs: list[Checkpoint], more: dict[str, Any]) -> "ChangeDetector":
        """Restore a detector from what ``packed`` returned and ``checkpoint.read_runs`` read."""
        published, fast = runs
        if published.counts is None or fast.counts is None:
            raise ValueError("a change detector without its counts")
        detector = cls.__new__(cls)
        detector.settings = DetectorSettings(**more["detector"])
        detector.pace = StreamPace.from_content(more.get("pace"), 2, more["records"])
        runs_on = endless(published.solver, published.state), endless(fast.solver, fast.state)
        detector._begin(*runs_on, published.counts, fast.counts)
        detector.alarms = [Alarm(**alarm) for alarm in more["alarms"]]
        last = detector.alarms[-1].record if detector.alarms else None  # for files of earlier versions
        detector.restarted, detector._pending = more.get("restarted", last), more["pending"]
        detector.records, detector.statistic, detector.since = (more[n] for n in ("records", "statistic", "since"))
        detector.halfway = more.get("halfway", detector.since)
        detector._compare()
        return detector


def _log_probabilities(run: Run, offers: Assortments, epsilon: float) -> Vec:
    """Return the log of every choice probability, mixed with ``epsilon`` of the uniform choice.

    Before the first round it is the uniform choice alone.
    """
    uniform = (1.0 / np.diff(offers.indptr))[offers.owner]
    shares = run.state.sums.mean_vertex if run.state.round else uniform
    return np.log((1.0 - epsilon) * shares + epsilon * uniform)
