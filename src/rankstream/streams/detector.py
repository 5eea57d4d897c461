"""A change detector: compares what all choices since the last change predict with what the latest ones predict."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.arguments import whole_numbers
from rankstream._core.types import Codes, Label, Vec
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.decay import DecayingCounts
from rankstream.streams.live_settings import DetectorSettings

__all__ = ["Alarm", "ChangeDetector", "DetectorSettings"]

# chosen with benchmarks/drift.py: with 30 instead of 100, streams whose offers change have false alarms
LOGIT_CHOICES = 100.0  # that the logit counts for in every offer, beside the choices themselves
LOGIT_STEPS = 3  # of the fixed point; with 4, alarms are the same
IMAGINARY_CHOICES = 0.5  # of every item, so that no choice is impossible
COORDINATES_PER_CHOICE = 20  # of a block: the work for a choice does not grow with the market
ROUNDING = 2.0**-20  # of counts that restart: what is added and taken off later is exact, in any order


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
    """Counts of all choices since tastes last changed, which detect the next change themselves.

    A copy of the counts forgets fast. Shares are predicted from both in the same way: those of each offer,
    shrunk towards a logit. Every choice is scored before it is learned. The logarithm of the ratio of the two
    predictions is added to the evidence, which never falls below 0 (a CUSUM). Once the evidence passes the threshold,
    the detector raises an alarm, and ``counts`` restart from the copy. The copy then still contains choices from before
    the change, so it may replace the counts again. Evidence that begins to grow within a half-life of such a restart
    belongs to the same change and raises no further alarm.

    Where tastes stay the same, the copy predicts worse, because it has fewer choices. Both logits are fitted to the
    offers of the copy, as often as they were made lately, so other offers alone are no change. The ratios are
    likelihood ratios, and Lorden's bound on false alarms holds for choices that follow the first prediction. They never
    do exactly: count false alarms on your own quiet data, as ``benchmarks/drift.py`` does on simulated markets.

    ``alarms`` are the changes so far, ``records`` the number of choices, ``statistic`` the evidence now, ``since`` the
    choice after which it is above 0, and ``restarted`` the last choice at which the counts restarted (or None).
    ``stopped`` is the choice from which on nothing is looked for (or None), and ``recent`` the copy of the counts.

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
        self.records, self.statistic, self.since, self.halfway = 0, 0.0, 0, 0
        self.alarms: list[Alarm] = []
        self.restarted: int | None = None
        self.stopped: int | None = None
        self._pending: list[int] = []
        self.counts = ChoiceCounts(assortments)
        self.recent: ChoiceCounts = DecayingCounts(assortments, self.settings.half_life)
        self._log_ratio: Vec = np.zeros(assortments.n_coordinates)

    @property
    def assortments(self) -> Assortments:
        """The offers so far."""
        return self.counts.assortments

    @property
    def block(self) -> int:
        """Number of choices that the copy learns at a time: in a large market, more than in the settings."""
        return max(self.settings.block, self.assortments.n_coordinates // COORDINATES_PER_CHOICE)

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
            self.counts.observe_coordinates(where[:used])
            self._pending.extend(where[:used].tolist())
            where = where[used:]
            passed = self.statistic > self.settings.threshold
            if passed or len(self._pending) >= self.block:
                self._learn()
            if passed:
                self._restart()
        return self.alarms[before:]

    def stop(self, coordinates: Codes, amounts: ArrayLike) -> None:
        """Count choices with amounts, from which on no change is looked for: their order is unknown."""
        self.counts.observe_coordinates(coordinates, amounts)
        self.stopped = self.records if self.stopped is None else self.stopped
        self.records += round(float(np.sum(amounts)))

    def extend(self, offers: Iterable[Iterable[Label]]) -> None:
        """Add new offers, and with them items."""
        new = [offer for offer in map(tuple, offers) if self.assortments.number(offer) is None]
        if new:
            self.counts, self.recent = self.counts.extend(new), self.recent.extend(new)
            self._log_ratio = np.pad(self._log_ratio, (0, self.assortments.n_coordinates - self._log_ratio.size))

    def drop(self, choose: Any) -> None:
        """Replace both counts by what ``choose`` makes of them, with fewer offers; coordinates are renumbered."""
        self._learn()
        self.counts, self.recent = choose((self.counts, self.recent))
        self._compare()

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
        self.recent.observe_coordinates(self._pending)
        self._pending = []
        self._compare()

    def _restart(self) -> None:
        """Replace the counts by the copy."""
        if self.restarted is None or self.since > self.restarted + self.settings.half_life:
            since = max(self.since, 2 * self.halfway - self.records)
            self.alarms.append(Alarm(self.records, since, self.statistic))
        self.restarted = self.records
        self.statistic, self.since = 0.0, self.records
        self.counts = ChoiceCounts(self.assortments, np.rint(self.recent.tallies / ROUNDING) * ROUNDING)
        self._compare()

    def _compare(self) -> None:
        """Compute the log ratio of the copy's prediction to that of all choices; 0 on offers without choices.

        Both logits are fitted to the copy's number of choices from each offer, with the shares of either, by the
        fixed point of the likelihood equations: an item's attraction grows by its choices over those expected. Choices
        that are pending count in neither, so a detector that is read from a file goes on as it would have.
        """
        offers, starts = self.assortments, self.assortments.indptr[:-1]
        made = self.recent.totals[offers.owner]
        learned = self.counts.tallies - np.bincount(self._pending, minlength=made.size)
        totals = np.add.reduceat(learned, starts)[offers.owner]

        def predict(tallies: Vec, totals: Vec) -> Vec:
            lately = tallies * np.divide(made, totals, out=np.zeros(made.size), where=totals > 0.0)
            chosen = np.bincount(offers.members, lately, offers.n_items) + IMAGINARY_CHOICES
            expected, attraction = made, np.ones(offers.n_items)
            for _ in range(LOGIT_STEPS):
                offered = np.bincount(offers.members, expected, offers.n_items) + IMAGINARY_CHOICES
                attraction = attraction * chosen / offered
                logit = attraction[offers.members]
                logit = logit / np.add.reduceat(logit, starts)[offers.owner]
                expected = made * logit
            shares: Vec = (tallies + LOGIT_CHOICES * logit) / (totals + LOGIT_CHOICES)
            return shares

        ratio = np.log(predict(self.recent.tallies, made) / predict(learned, totals))
        self._log_ratio = np.where(totals > 0.0, ratio, 0.0)

    def to_content(self) -> dict[str, Any]:
        """Return all but the counts as JSON values."""
        names = ("records", "statistic", "since", "halfway", "restarted", "stopped")
        numbers = {name: getattr(self, name) for name in names}
        return {"alarms": [asdict(alarm) for alarm in self.alarms], "pending": self._pending, **numbers}

    @classmethod
    def from_content(
        cls,
        content: dict[str, Any],
        settings: DetectorSettings,
        counts: ChoiceCounts | None,
        recent: ChoiceCounts | None,
    ) -> "ChangeDetector":
        """Restore a detector from its content and both counts, as this version or an earlier one saved them."""
        if counts is None or recent is None:
            raise ValueError("a change detector without its counts")
        detector = cls(counts.assortments, settings)
        detector.alarms = [Alarm(**alarm) for alarm in content["alarms"]]
        last = detector.alarms[-1].record if detector.alarms else None  # for files of earlier versions
        detector.restarted, detector.stopped = content.get("restarted", last), content.get("stopped")
        detector.records, detector.statistic, detector.since = (content[n] for n in ("records", "statistic", "since"))
        detector.halfway, detector._pending = content.get("halfway", detector.since), content["pending"]
        detector.counts, detector.recent = counts, recent
        detector._compare()
        return detector
