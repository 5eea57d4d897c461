"""Answer questions about models in a separate process, because the computations would block the server."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf
from time import monotonic
from typing import Any

from rankstream._core.terminal import as_json
from rankstream._core.watch import Deadline
from rankstream.data.assortments import Assortments
from rankstream.data.change import RecordCounts
from rankstream.data.counts import ChoiceCounts
from rankstream.data.drift import DriftReport, drift_report
from rankstream.decide import best_offer, next_offer
from rankstream.models.answers import prediction_to_json
from rankstream.models.files import model_in
from rankstream.models.fit_warnings import fit_warnings, interval_words
from rankstream.models.item_names import all_names, by_name, named_constraints, named_items, own_names
from rankstream.models.prices import levels_of
from rankstream.reports.answers import Answers
from rankstream.service.journal import note
from rankstream.service.limits import RefusedError
from rankstream.service.processes.item_list import make_listing
from rankstream.service.storage import states as store
from rankstream.service.storage.database import Place
from rankstream.service.storage.log import DAMAGED, Batch, DamagedBatchError, batches_after, existing_log, market_rows
from rankstream.streams.background import BackgroundLive
from rankstream.streams.live import Live, Record
from rankstream.streams.record import RecordLevels

MAX_MODELS = 20  # models in memory; as many as ``learner.IN_MEMORY``
SEARCH_SECONDS = 20.0  # from request to the best offer so far: a busy machine may be slow; not tuned
MIN_SEARCH_SECONDS = 2.0  # for a question that waited for others; not tuned
ENDED = "The server is busy, so the search ended after {:.0f} s: this is the best offer so far."
MODEL_ALONE = "Only the model was opened, without its choices: open the file of choices."
NO_PRICES = "This market's model has no prices: give each offer as a list of items."


class Answerer:
    """Answers questions about the markets of a folder, from the models that the learner has published.

    A question has a ``kind``, which is the name of a method, the id of a market, and the arguments of the method.
    """

    def __init__(self, folder: Place) -> None:
        self.folder, self.log, self.store = folder, existing_log(folder), store.open_store(folder)
        self._file = store.file_of(folder)
        self._models: dict[int, tuple[str, Any]] = {}

    def close(self) -> None:
        """Close the files."""
        self.log.close()
        self.store.close()

    def answer(self, question: dict[str, Any]) -> tuple[int, Any]:
        """Return an HTTP status, and the answer or an error message."""
        try:
            if store.file_of(self.folder) != self._file:  # it was replaced
                self.store.close()
                self.store, self._file = store.open_store(self.folder), store.file_of(self.folder)
            return 200, json.loads(as_json(getattr(self, question["kind"])(question)))
        except RefusedError as refused:
            return refused.status, refused.sentence
        except DamagedBatchError as error:
            return 503, f"{error} {DAMAGED}"
        except ValueError as error:
            return 422, str(error)
        except Exception as error:
            note("a question could not be answered", kind=type(error).__name__)
            return 503, "The answer could not be computed: try again later."

    def model(self, question: dict[str, Any]) -> Any:
        """Return the model that a question is about, with its candidates."""
        market, digest = question["market"], question["digest"]
        if market not in self._models or self._models[market][0] != digest:
            text = store.model_text(self.store, market, digest)
            if text is None:
                raise RefusedError(503, "The model has just been replaced: try again.")
            while len(self._models) >= MAX_MODELS:
                del self._models[next(iter(self._models))]
            self._models[market] = digest, model_in(json.loads(text), "the model")
        known = self._models[market][1]
        return known.with_items(question["items"]) if question.get("items") else known

    def learned(self, question: dict[str, Any]) -> tuple[Live, ChoiceCounts]:
        """Return the saved state of a market's learner and its counts; of an imported file, the counts of its log."""
        saved = store.load_market(self.store, question["market"])
        if saved is not None and not saved.state and saved.position:
            (row,) = (row for row in market_rows(self.log) if row.id == question["market"])
            batches = batches_after(self.log, row.id, 0, {}, row.records)
            return Live(), counted(at_levels(batches, row.settings.get("price_levels")), is_file=True)
        live = None if saved is None or not saved.state else BackgroundLive.from_bytes(saved.state).live
        if live is None or live.counts is None:
            raise RefusedError(409, MODEL_ALONE)
        return live, live.counts

    def predict(self, question: dict[str, Any]) -> list[dict[str, Any]]:
        """The shares of offers."""
        model = self.model(question)
        offers = [asked_offer(model, offer) for offer in question["offers"]]
        return [prediction_to_json(model, offer, model.predict(offer)) for offer in offers]

    def listing(self, question: dict[str, Any]) -> dict[str, Any]:
        """The items, as a page lists them."""
        return make_listing(self.model(question), self.learned(question)[1])

    def segments(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the largest customer types: whole rankings if the model has few, else first and second choices."""
        content = Answers.of(self.model(question)).to_json(question["top"])
        return {name: content[name] for name in ("segments_by", "segments")}

    def substitution(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return each item's share if all are offered, and what sells instead when it is gone."""
        return {"items": Answers.of(self.model(question)).to_json()["items"]}

    def decide(self, question: dict[str, Any]) -> dict[str, Any]:
        """The offer that earns most."""
        model, counts, deadline = self.model(question), None, search_deadline(question)
        with suppress(RefusedError):  # only the model was opened
            known = self.learned(question)[1]
            counts = known if set(known.assortments.items) == set(model.items) else None  # it may have newer items
        found = best_offer(model, watch=deadline, counts=counts, interval=None, **said_of(question, model))
        return found.to_json() | notes_on(model, question, deadline.stopped and not found.proven)

    def next_offer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the offer to try next, given the counts behind the model."""
        (_, counts), deadline = self.learned(question), search_deadline(question)
        found = next_offer(counts, watch=deadline, **said_of(question, counts.assortments))
        return found.to_json() | notes_on(self.model(question), question, deadline.stopped)

    def counts(self, question: dict[str, Any]) -> list[dict[str, Any]]:
        """Return how often each item of each offer was chosen; faded choices count for less."""
        counts = self.learned(question)[1]
        offers = [[str(item) for item in offer] for offer in counts.assortments.offers]
        names = [item for offer in offers for item in offer]
        rows = zip(counts.assortments.owner.tolist(), names, counts.tallies.tolist(), strict=True)
        return [{"offered": offers[place], "chosen": item, "count": count} for place, item, count in rows if count]

    def drift(self, question: dict[str, Any]) -> dict[str, Any]:
        """Test what changed between the earlier and the later half of the latest records in the log."""
        records, is_file = self.latest(question, question["last"])
        half, report = drift_of(records, is_file, question["level"])
        return {"before": half, "after": len(records) - half, **report.to_json()}

    def latest(self, question: dict[str, Any], most: int) -> tuple[list[Record], bool]:
        """Return the latest records in the log, at price levels, and whether they come from an imported file."""
        batches = batches_after(self.log, question["market"], max(0, question["records"] - most), {}, most)
        records, is_file = (
            at_levels(batches, question["price_levels"])[-most:],
            store.is_file(self.store, question["market"]),
        )
        if len(records) < 2:
            raise RefusedError(
                409, MODEL_ALONE if is_file else "The log has fewer than two records: send more choices."
            )
        return records, is_file


def search_deadline(question: dict[str, Any]) -> Deadline:
    """Return the deadline of a search, which counts the time that its question has waited."""
    return Deadline(inf, timeout=max(MIN_SEARCH_SECONDS, question["asked"] + SEARCH_SECONDS - monotonic()))


def notes_on(model: Any, question: dict[str, Any], ended: bool) -> dict[str, Any]:
    """Return warnings, of a search that ended early and of the model, and the name of the model's intervals."""
    note = [ENDED.format(monotonic() - question["asked"])] if ended else []
    return {"warnings": [*note, *fit_warnings(model.about)], "interval_name": interval_words(model.about)}


def said_of(question: dict[str, Any], model: Any) -> dict[str, Any]:
    """Return the constraints of a question, with its items as labels of the model."""
    given = {name: value for name, value in question["constraints"].items() if value is not None}
    return named_constraints(given, all_names(model))


def asked_offer(model: Any, offer: tuple[Any, ...]) -> Any:
    """Return the offer of a request with labels of the model: items, or prices by item."""
    priced = bool(offer) and isinstance(offer[0], tuple)
    if priced and levels_of(model) is None:
        raise ValueError(NO_PRICES)
    names, words = (own_names(model), dict(offer)) if priced else (by_name(model), offer)
    return named_items(words, names, "The offer names")


def at_levels(batches: Iterable[Batch], levels: Mapping[str, Any] | None) -> list[Record]:
    """Return the records of batches, with items at price levels if there are any."""
    converter = RecordLevels(levels)
    return [converter.of(record) for batch in batches for record in batch.records]


def period_ends(records: Sequence[Record], most: int, is_file: bool) -> list[int]:
    """Return where up to ``most`` periods start and end, with equally many records in each.

    The records of an imported file are summed up by time, so its periods have equally many times.
    """
    if not is_file:
        return [len(records) * place // most for place in range(most + 1)]
    times = sorted({record.time for record in records if record.time is not None})
    if len(times) < 2:
        raise ValueError("The choices have no times that differ: add a column of times to see what changed.")
    begins = [times[len(times) * place // min(most, len(times))] for place in range(min(most, len(times)))]
    starts = [next(at for at, record in enumerate(records) if record.time == begin) for begin in begins]
    return [*starts, len(records)]


def drift_of(records: list[Record], is_file: bool, level: float = 0.05) -> tuple[int, DriftReport]:
    """Return where the later half of some records starts, and the test of what changed between the halves."""
    half = period_ends(records, 2, is_file)[1]
    return half, drift_report(*(counted(part, is_file) for part in (records[:half], records[half:])), level=level)


def counted(records: list[Record], is_file: bool = False) -> ChoiceCounts:
    """Count records; a record with a large count is not many independent choices, unless it comes from a file."""
    offers = {frozenset(record.offered): record.offered for record in records}
    counts = (ChoiceCounts if is_file else RecordCounts)(Assortments(offers.values()))
    offered, chosen, times, _ = zip(*records, strict=True)
    counts.observe(list(offered), list(chosen), list(times))
    return counts
