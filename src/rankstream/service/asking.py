"""The process that answers questions about models: kernels keep the interpreter busy, and the server must not wait."""

import json
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from rankstream._core.terminal import as_json
from rankstream._core.types import Label
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.drift import DriftReport, drift_report
from rankstream.data.prices import PriceLevels
from rankstream.decide import best_offer, next_offer
from rankstream.models.answers import favourites, most_chosen
from rankstream.models.files import model_in
from rankstream.models.prices import levels_of, own_items
from rankstream.models.rankings import RankingModel
from rankstream.service import store
from rankstream.service.child import answer_parent, lower_priority
from rankstream.service.journal import note
from rankstream.service.limits import RefusedError
from rankstream.service.log import Batch, batches_after, existing_log
from rankstream.streams.background import BackgroundLive
from rankstream.streams.levels import RecordLevels
from rankstream.streams.live import Record

IN_MEMORY = 20
MOST_ITEMS = 100
"""Items for which it is said who gains; with thousands of items, all of them take long."""
ITEMS = ("margins", "costs", "listing_costs", "space")
LISTS = ("must", "never")
PAIRS = ("requires", "excludes")
NO_PRICES = "The served model does not know what prices do: give each offer as a list of items."


class Asked:
    """Answers questions about the markets of a folder, from what the learner has published.

    A question has a ``kind``, which is the name of a method here, the id of a market, and what that method needs.
    """

    def __init__(self, folder: Path) -> None:
        self.log, self.store = existing_log(folder), store.open_store(folder)
        self._models: dict[int, tuple[str, Any]] = {}
        self.kinds: dict[str, Callable[[dict[str, Any]], Any]] = {
            "predict": self.predict, "segments": self.segments, "substitution": self.substitution,
            "decide": self.decide, "next_offer": self.next_offer, "drift": self.drift,
        }  # fmt: skip

    def close(self) -> None:
        """Let go of the files."""
        self.log.close()
        self.store.close()

    def answer(self, question: dict[str, Any]) -> tuple[int, Any]:
        """A status of HTTP, and the answer or a sentence."""
        try:
            return 200, json.loads(as_json(self.kinds[question["kind"]](question)))
        except RefusedError as refused:
            return refused.status, refused.sentence
        except ValueError as error:
            return 422, str(error)
        except Exception as error:
            note("a question could not be answered", kind=type(error).__name__)
            return 503, "The answer could not be computed: ask again later."

    def model(self, question: dict[str, Any]) -> Any:
        """The model that a question is about."""
        market, digest = question["market"], question["digest"]
        if market not in self._models or self._models[market][0] != digest:
            text = store.model_text(self.store, market, digest)
            if text is None:
                raise RefusedError(503, "The model has just been replaced: ask again.")
            while len(self._models) >= IN_MEMORY:
                del self._models[next(iter(self._models))]
            self._models[market] = digest, model_in(json.loads(text), "the model")
        return self._models[market][1]

    def predict(self, question: dict[str, Any]) -> list[dict[str, float]]:
        """The shares of offers."""
        model = self.model(question)
        names = names_of(model.items)
        found = []
        for offer in question["offers"]:
            priced = bool(offer) and isinstance(offer[0], tuple)
            if priced and not knows_prices(model):
                raise ValueError(NO_PRICES)
            shares = model.predict(own_prices(model, offer) if priced else [named(word, names) for word in offer])
            found.append({str(item): share for item, share in shares.items()})
        return found

    def segments(self, question: dict[str, Any]) -> dict[str, Any]:
        """The largest customer types: whole rankings where the model is of few, else first and second choices."""
        model, top = self.model(question), question["top"]
        if isinstance(model, RankingModel):
            types = [(one.ranking, one.share) for one in model.segments(top)]
        else:
            moves = model.substitution(None, most_chosen(model, MOST_ITEMS))
            types = list(favourites(moves, model.no_choice).items())[:top]
        by = "whole rankings" if isinstance(model, RankingModel) else "first two choices"
        return {"by": by, "segments": [{"ranking": [str(i) for i in key], "share": share} for key, share in types]}

    def substitution(self, question: dict[str, Any]) -> list[dict[str, Any]]:
        """Each item's share of everything, and who gains when it is gone."""
        model = self.model(question)
        gone = most_chosen(model, MOST_ITEMS)
        moves = model.substitution(None, gone)
        return [
            {
                "item": str(item),
                "share": float(moves.before[place]),
                "gains": {str(other): part for other, part in moves.gains(item).items()} if item in gone else None,
            }
            for place, item in enumerate(moves.items)
        ]

    def decide(self, question: dict[str, Any]) -> dict[str, Any]:
        """The offer that earns most."""
        model = self.model(question)
        return best_offer(model, **constraints(question["constraints"], all_names(model.items))).to_content()

    def next_offer(self, question: dict[str, Any]) -> dict[str, Any]:
        """The offer to try next, by the counts that the model is learned from."""
        kept = store.learned(self.store, question["market"])
        counts = None if kept is None else BackgroundLive.from_bytes(kept.state).live.counts
        if counts is None:
            raise RefusedError(409, "The market has learned nothing yet: send choices first.")
        said = constraints(question["constraints"], all_names(counts.assortments.items))
        return next_offer(counts, **said).to_content()

    def drift(self, question: dict[str, Any]) -> dict[str, Any]:
        """What changed between the earlier and the later half of the latest records in the log."""
        after = max(0, question["records"] - question["last"])
        batches = batches_after(self.log, question["market"], after, {}, question["last"])
        records = at_levels(batches, question["price_levels"])[-question["last"] :]
        half = len(records) // 2
        if not half:
            raise RefusedError(409, "The log has fewer than two records of the market: send choices first.")
        report = drift_report(counted(records[:half]), counted(records[half:]), level=question["level"])
        return {"before": half, "after": len(records) - half, **drift_content(report)}


def knows_prices(model: Any) -> bool:
    """Whether a model has items at price levels, and can be asked at other prices."""
    return levels_of(model) is not None


def names_of(items: tuple[Label, ...]) -> dict[str, Label]:
    """Items by how they read."""
    return {str(item).strip(): item for item in items}


def named(word: Any, names: dict[str, Label]) -> Label:
    """The item that a request names."""
    found = str(word).strip()
    if found not in names:
        raise ValueError(f"The model does not know an item {found[:100]!r}: ask for the items that it knows.")
    return names[found]


def all_names(items: tuple[Label, ...]) -> dict[str, Label]:
    """Items by how they read; where they are at price levels, by their own names as well."""
    levels = PriceLevels.from_labels(items)
    own = {} if levels is None else {str(item).strip(): item for item in levels.items}
    return own | names_of(items)


def own_prices(model: Any, offer: tuple[tuple[str, Any], ...]) -> dict[Label, Any]:
    """The prices of a request, by the items as the model knows them."""
    names = names_of(own_items(model))
    return {named(word, names): price for word, price in offer}


def at_levels(batches: Iterable[Batch], levels: Mapping[str, Any] | None) -> list[Record]:
    """The records of batches, with their items at price levels, if there are some."""
    put = RecordLevels(levels)
    return [put.of(record) for batch in batches for record in batch.records]


def constraints(given: dict[str, Any], names: dict[str, Label]) -> dict[str, Any]:
    """What a request says about offers, with its items as the model knows them."""
    said = {name: value for name, value in given.items() if value is not None}
    for name in ITEMS:
        if isinstance(said.get(name), dict):
            said[name] = {named(word, names): value for word, value in said[name].items()}
    for name in LISTS:
        said[name] = [named(word, names) for word in said.get(name, ())]
    for name in PAIRS:
        said[name] = [(named(one, names), named(other, names)) for one, other in said.get(name, ())]
    if "ladders" in said:
        said["ladders"] = [tuple(named(word, names) for word in steps) for steps in said["ladders"]]
    if isinstance(said.get("present"), dict):
        said["present"] = {named(word, names): price for word, price in said["present"].items()}
    elif "present" in said:
        said["present"] = [named(word, names) for word in said["present"]]
    if "no_choice" in said:
        said["no_choice"] = named(said["no_choice"], names)
    return said


def counted(records: list[Record]) -> ChoiceCounts:
    """The counts of some records."""
    offers = {frozenset(record.offered): record.offered for record in records}
    counts = ChoiceCounts(Assortments(offers.values()))
    offered, chosen, times, _ = zip(*records, strict=True)
    counts.observe(list(offered), list(chosen), list(times))
    return counts


def drift_content(report: DriftReport) -> dict[str, Any]:
    """A report as JSON has it: the offers and items that moved."""
    return {
        "tested": len(report.movements),
        "moved": [
            {
                "offer": [str(item) for item in one.offer],
                "item": str(one.item),
                "change": one.change,
                "p_value": one.adjusted,
            }
            for one in report.moved
        ],
        "items": [{"item": str(one.item), "change": one.change, "p_value": one.p_value} for one in report.items],
        "appeared": len(report.appeared),
        "vanished": len(report.vanished),
        "level": report.level,
    }


def main() -> None:
    """The process: questions come from whoever started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lower_priority(2)
    answer_parent(Asked(Path(sys.argv[1])).answer)
