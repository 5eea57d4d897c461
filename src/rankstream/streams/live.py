"""A model that follows a stream: counts that grow with new offers and items, and a solver that keeps learning."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from threading import RLock
from typing import Any

import numpy as np

from rankstream import distances, learners
from rankstream._core.threads import locked
from rankstream._core.types import Codes, Label, Vec
from rankstream.certificate import Certificate
from rankstream.data.assortments import Assortments, as_offer
from rankstream.data.attributes import Attributes, Rows
from rankstream.data.counts import ChoiceCounts
from rankstream.data.decay import ForgettingCounts, make_counts, reach_text
from rankstream.data.prices import PriceLevels
from rankstream.models.base import Model
from rankstream.models.prices import most_frequent_prices
from rankstream.models.rankings import RankingModel
from rankstream.solver.loop import Solver
from rankstream.solver.runs import Run
from rankstream.streams.detector import Alarm, ChangeDetector, DetectorSettings
from rankstream.streams.entropy_follower import EntropyFollower
from rankstream.streams.files.checkpoint import explained, read_runs, write
from rankstream.streams.files.packing import pack
from rankstream.streams.live_settings import LiveSettings, Reach
from rankstream.streams.pace import StreamPace, may_serve
from rankstream.streams.proofs import StreamProof
from rankstream.streams.record import Record, can_wait, check_record
from rankstream.streams.runs.endless import advance, endless

MEMORY_ROUNDS = 1000.0  # that the earlier rounds weigh at most; benchmarks/streams.py times streams with it
RESTART_ROUNDS = 100  # at least, after a change of tastes, of which the sparse model starts anew
ONE_OFFER = Assortments([("an item", "another")])
OWN = ("live", "watched", "dense", "waiting", "pace", "prices")  # keys of a file besides the user's notes
__all__ = ["Live", "Record"]


class Live:
    """A model that learns from choices as they arrive: batches of records in, an up-to-date model out.

    Offers and items join when a record names them. Offers are weighted by how often they were made, as in ``estimate``.
    Time and memory do not grow with the number of records. ``save`` writes a file, from which ``load`` continues.

    ``model`` is a maximum-entropy model, which predicts unseen offers best. It is refreshed as choices arrive
    (``EntropyFollower``). The sparse model of the paper's solver (``sparse``) proves how close any model could be. It
    is ``model`` before 50 choices, right after new items, and with more than 400 offers or 64 items. A market that
    keeps growing gets less work for each choice, and ``remark`` says so (``StreamPace``).

    Without a half-life or a window, a change detector looks for changes, and the model is based on all choices since
    the last one. Alarms and counts depend on the records and their order, not on the batches. A record with another
    count than 1 stops the detector, unless ``detect`` is set: in which order its choices came is unknown.

    Several threads may share one: ``observe``, ``save``, ``model``, ``sparse`` and ``certificate`` wait for each other.
    Hold ``lock`` to read several of them at one moment, or ``counts``, ``run`` and ``detector``, which change in place.

    Parameters
    ----------
    half_life : float, timedelta or str, optional
        Number of choices, or time ("7d") if every record has one, after which a choice counts half. With ``detect`` it
        is that of the detector's copy, in choices (default: 500).
    window : int, timedelta or str, optional
        Use only the latest N choices, or those of the last 7d. Not with ``detect``.
    detect : bool or DetectorSettings, optional
        Whether to look for changes, and how. Other arguments replace those of the settings. By default, changes are
        looked for where nothing fades. With True, records that are not whole choices are refused.
    threshold : float, optional
        The lead in log-likelihood that raises an alarm (default: 15).
    rounds : int, optional
        Solver rounds for each batch (default: 20).
    seed : int, optional
        Seed for ties between rankings and random starts (default: 0).
    publish : "max-entropy" or "sparse"
        Kind of model to publish as ``model``. With "sparse", no maximum-entropy model is fitted.
    prices : PriceLevels or mapping, optional
        The levels of all items with a price, such as ``{"tea": [3, 3.5]}``. Records then have prices, and the model is
        about items at levels: nobody prefers a dearer level of the same item. Other items may join.
    attributes : Attributes or mapping, optional
        Attributes of items, also of items to come: a new item is predicted by them from its first choices on. Items
        without a row may join. Not with ``prices``.

    Examples
    --------
    >>> live = Live(rounds=50)
    >>> live.observe([Record(("tea", "pie"), "tea", 3), Record(("tea", "pie"), "pie")])
    >>> live.observe([Record(("pie", "cake"), "cake")])
    >>> round(live.model.predict(("tea", "pie"))["tea"], 1), live.records, live.certificate.gap < 0.1
    (0.8, 3, True)
    >>> watched = Live()
    >>> watched.observe([Record(("tea", "pie"), "tea")] * 400 + [Record(("tea", "pie"), "pie")] * 100)
    >>> watched.alarms[0].record, watched.alarms[0].since, watched.counts.observations < 400
    (469, 403, True)
    >>> priced = Live(prices={"tea": [3, 4]})
    >>> priced.observe([Record({"tea": 3, "no": None}, "tea", 2), Record({"tea": 4, "no": None}, "no")])
    >>> priced.counts.assortments.order, priced.counts.assortments.offers[1]
    ((('tea @ 3.00', 'tea @ 4.00'),), ('tea @ 4.00', 'no'))
    """

    def __init__(
        self,
        *,
        half_life: Reach | None = None,
        window: Reach | None = None,
        detect: bool | DetectorSettings | None = None,
        threshold: float | None = None,
        rounds: int | None = None,
        seed: int | None = None,
        publish: str = "max-entropy",
        prices: PriceLevels | Mapping[Any, Any] | None = None,
        attributes: Attributes | Rows | None = None,
    ) -> None:
        self.rules = rules = LiveSettings.of(
            half_life=half_life, window=window, detect=detect, threshold=threshold, rounds=rounds, seed=seed,
            publish=publish, prices=prices, attributes=attributes,
        )  # fmt: skip
        self.half_life, self.window, self.settings = rules.half_life, rules.window, rules.detector
        self.threshold = None if self.settings is None else self.settings.threshold
        self.rounds, self.seed, self.publish = rules.rounds, rules.seed, rules.publish
        self._levels, self.timed = rules.levels, rules.timed
        self.records = 0
        self.counts: ChoiceCounts | None = None
        self.run: Run | None = None
        self.detector: ChangeDetector | None = None
        self.dense = EntropyFollower(self.seed, rules.attributes)
        self.notes: dict[str, Any] = {}
        self._pace, self.proof = StreamPace(), StreamProof()
        self.no_choice: str | None = None  # the no-purchase option that whoever reads the records was told; not saved
        self.effort = 1.0  # share of the rounds to play when the learner must catch up; not saved
        self._waiting: list[Record] = []
        self.lock = RLock()

    def __getstate__(self) -> dict[str, Any]:
        with self.lock:
            return {name: value for name, value in vars(self).items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, lock=RLock())

    detect = property(lambda self: self.settings is not None, doc="Whether there is a change detector.")

    @property
    def prices(self) -> PriceLevels | None:
        """The levels of the items with a price; None if no item has one."""
        return self._levels.levels

    @locked
    def observe(self, batch: Record | Iterable[Record]) -> None:
        """Learn from a record or a batch. If a record is wrong, nothing of the batch is counted."""
        records = [batch] if isinstance(batch, Record) else list(batch)
        for number, record in enumerate(records):
            try:
                records[number] = self.at_levels(record)
                check_record(records[number], self.timed, self.detect and not self.rules.automatic)
            except ValueError as error:
                raise ValueError(f"Record {number} of the batch is wrong: {error}.") from None
        offers: Any = [record.offered for record in records]
        with suppress(TypeError):  # check each distinct offer once, if they can be hashed
            offers = dict.fromkeys(offers)
        for offer in offers:
            as_offer("An offer", offer)
        if records:
            self._count_or_wait(records)
        self.records += len(records)

    def at_levels(self, record: Record) -> Record:
        """Return the record with its items at their price levels; raise a ValueError if that is not possible."""
        return self._levels.of(record)

    def own_item(self, item: Label) -> Label:
        """Return the name of an item without its price level."""
        return self._levels.own(item)

    @property
    def n_items(self) -> int:
        """Number of items so far; an item at several prices counts once."""
        known = () if self.counts is None else self.counts.assortments.items
        return len(set(map(self.own_item, known)))

    def _count_or_wait(self, batch: list[Record]) -> None:
        """Count the batch now or, in a large market, when enough choices are waiting."""
        records = self._waiting + batch
        if len(records) < self._pace.block(self.run) and all(can_wait(r, self.window is not None) for r in batch):
            self._waiting = records
        else:
            self._count(records)
            self._waiting = []

    def _count(self, batch: Sequence[Record]) -> None:
        offered_sets = {frozenset(record.offered): tuple(record.offered) for record in batch}
        offered, chosen, amounts, times = zip(*batch, strict=True)
        if self.settings is not None:  # its counts grow in place, so a wrong amount is refused before
            ChoiceCounts(ONE_OFFER).observe_coordinates(np.zeros(len(batch), dtype=np.int64), amounts)
        counts = self._with_offers(offered_sets)
        where, before = counts.coordinates(list(offered), list(chosen)), self.restarted
        if self.detector is not None:
            counts = self._score(self.detector, where, np.array(amounts))
        elif isinstance(counts, ForgettingCounts) and self.timed:
            counts.observe_coordinates(where, amounts, np.array(times, dtype=np.float64))
        else:
            counts.observe_coordinates(where, amounts)
        self.counts = counts
        self._pace.choices += len(batch)
        offers = counts.assortments
        if self.run is None:
            oracle = self._pace.first_oracle(offers, self.seed, len(batch))
            self.run = endless(Solver(offers, distances.L2(offers), learners.DualAveraging(), oracle))
        self._pace.keep_up([self.run], offers)
        if self._pace.is_crowded(offers):
            self._make_room(self.run, counts)
        rounds = max(1, round(self.effort * self.rounds))
        if changed := self.restarted != before:  # old rankings must not outweigh those of the new tastes
            self.run.state.forget(self.run.solver.learner.round_weight(self.run.state.round + 1))
            rounds = max(rounds, RESTART_ROUNDS)
        advance(self.run, self.counts, MEMORY_ROUNDS, rounds)
        self._serve(float(sum(amounts)), changed)

    def _with_offers(self, offered: Mapping[frozenset[Label], tuple[Label, ...]]) -> ChoiceCounts:
        """Return the counts with these offers; those of a detector grow in place."""
        if self.counts is None:
            offers = self._levels.assortments(offered.values())
            if self.settings is not None:
                self.detector = ChangeDetector(offers, self.settings)
                return self.detector.counts
            return make_counts(offers, self.half_life, self.window)
        new = [offer for items, offer in offered.items() if self.counts.assortments.number(items) is None]
        if self.detector is not None:
            self.detector.extend(new)
            return self.detector.counts
        return self.counts.extend(new) if new else self.counts

    def _score(self, detector: ChangeDetector, where: Codes, amounts: Vec) -> ChoiceCounts:
        """Pass choices to the detector; return its counts."""
        is_single = bool(np.all(amounts == 1.0))
        if self.rules.automatic and (detector.stopped is not None or not is_single):
            detector.stop(where, amounts)
        else:
            detector.observe_coordinates(where if is_single else np.repeat(where, amounts.astype(np.int64)))
        return detector.counts

    def _make_room(self, run: Run, counts: ChoiceCounts) -> None:
        if self.detector is None:
            self.counts = self._pace.make_room([run], [counts])[0]
        else:
            self.detector.drop(lambda both: self._pace.make_room([run], both))
            self.counts = self.detector.counts

    def _serve(self, arrived: float, changed: bool = False) -> None:
        """Update the maximum-entropy model, unless the market is too large for it."""
        if self.publish == "max-entropy" and self.counts is not None and self.run is not None:
            self.dense.choices += arrived
            if may_serve(self.run, self.counts, self.dense):
                self.dense.follow(self.counts, 0.0, changed)

    waiting = property(lambda self: len(self._waiting), doc="Number of records that wait for their block to be full.")

    @property
    def alarms(self) -> list[Alarm]:
        """The changes detected so far."""
        return [] if self.detector is None else self.detector.alarms

    @property
    def restarted(self) -> int | None:
        """The choice at which a detected change last restarted the model; None without one."""
        return None if self.detector is None else self.detector.restarted

    @property
    def remark(self) -> str:
        """How the size of the market limits the model; empty if it does not."""
        return self._pace.remark(self.run)

    @property
    def ready(self) -> bool:
        """Whether there is a model yet."""
        return self.run is not None and self.run.state.round > 0

    @property
    def rankings(self) -> int:
        """Number of rankings in the model."""
        return 0 if self.run is None else len(self.run.state.weights)

    @property
    @locked
    def model(self) -> Model:
        """The current model, with price levels if there are any."""
        return self.noted(self.dense.model if self.serves == "max-entropy" else self.sparse)

    def noted(self, model: Model) -> Model:
        """Return a model of these choices with its no-purchase option, price levels and usual prices attached."""
        if self.no_choice is not None:
            model.note(reading={"no_choice": self.no_choice})
        if self.prices is None:
            return model
        usual = [] if self.counts is None else most_frequent_prices(self.counts, self.prices)
        return model.note(prices=self.prices.to_content(), usual_prices=usual)

    @property
    @locked
    def sparse(self) -> RankingModel:
        """The sparse model: the current mixture of rankings of the paper's solver."""
        run, _ = self._begun()
        return run.solver.model(run.state)

    @property
    def serves(self) -> str:
        """The kind of ``model`` now: "max-entropy" or "sparse"."""
        return "max-entropy" if self.counts and self.dense.knows(self.counts.assortments) else "sparse"

    @property
    @locked
    def certificate(self) -> Certificate:
        """The certificate of the model at the current counts."""
        run, counts = self._begun()
        proven = self.proof.sharpen(run.solver.certificate(run.state, counts), run, counts, self.records)
        return proven if self.serves == "sparse" else self.dense.certify(proven, run.solver.distance, counts)

    def _begun(self) -> tuple[Run, ChoiceCounts]:
        if self.run is None or self.counts is None or not self.ready:
            raise ValueError("There is no model before the first choice: observe more choices.")
        return self.run, self.counts

    @locked
    def save(self, path: str | os.PathLike[str], notes: dict[str, Any] | None = None) -> None:
        """Write everything to one file, atomically, with your own JSON ``notes``."""
        self.notes = self.notes if notes is None else notes
        runs = [] if self.run is None else [pack(self.run.solver, self.run.state, self.counts)]
        settings = {name: getattr(self, name) for name in ("rounds", "seed", "records")} | {"served": self.publish}
        if self.settings is None:
            settings |= {"half_life": reach_text(self.half_life), "window": reach_text(self.window)}
        own = {"live": settings, "waiting": self._waiting, "pace": asdict(self._pace)}
        if self.settings is not None:
            found = None
            if self.run is not None and self.detector is not None:
                runs.append(pack(self.run.solver, self.run.solver.init(), self.detector.recent))
                found = self.detector.to_content()
            own["watched"] = {"settings": asdict(self.settings), "automatic": self.rules.automatic, "found": found}
        if self.prices is not None:
            own["prices"] = self.prices.to_content()
        write(path, runs, {**self.notes, **own, "dense": self.dense.to_content()})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Live":
        """Read what ``save`` wrote, in this version or an earlier one, and resume bit for bit."""
        runs, notes = read_runs(path)
        plain, watched, dense, waiting, pace, prices = (notes.pop(name, None) for name in OWN)
        if not isinstance(plain, dict) and not isinstance(watched, dict):
            raise ValueError(f"{path} is another kind of checkpoint: use one written by 'rankstream stream'.")
        with explained(path):
            levels = None if prices is None else PriceLevels.from_content(prices)
            detector: DetectorSettings | None = None
            if isinstance(watched, dict):
                old = watched["settings"]
                detector = DetectorSettings(**{name: old[name] for name in asdict(DetectorSettings()) if name in old})
                if not isinstance(plain, dict):  # before 0.4
                    plain = {name: old[name] for name in ("rounds", "seed", "records") if name in old}
                    plain["served"] = watched.get("served", "sparse")
                    waiting = [[*pair, 1.0, None] for pair in watched["waiting"]]
                    if watched["found"] is not None and runs[0].counts is not None:
                        pace = watched["found"].get("pace")
                        runs[0].counts.observe_coordinates(watched["found"]["pending"])  # which counted later then
            records = plain.pop("records")
            # files of the earliest versions lack "served"
            detect = None if detector is not None and watched.get("automatic") else detector or False
            live = cls(publish=plain.pop("served", "sparse"), prices=levels, detect=detect, **plain)
            if runs:
                live.run, live.counts = endless(runs[0].solver, runs[0].state), runs[0].counts
            live._pace = StreamPace.from_content(pace, records)
            live._waiting = [Record(tuple(offered), *rest) for offered, *rest in waiting or ()]
            if detector is not None:
                live.settings, live.threshold = detector, detector.threshold
                if watched["found"] is not None:
                    counts = [run.counts for run in runs]
                    live.detector = ChangeDetector.from_content(watched["found"], detector, *counts)
            live.records, live.notes = records, notes
            if dense is not None:
                live.dense = EntropyFollower.from_content(dense, live.seed)
        return live
