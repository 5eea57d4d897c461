"""The process that makes markets of files: it reads choices, fits a model, and publishes it for the page."""

import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankstream._core.terminal import as_json
from rankstream.data.counts import ChoiceCounts
from rankstream.data.prices import PriceLevels
from rankstream.data.readers import Reading, read, read_sales
from rankstream.estimation.budget import fit_within
from rankstream.models.files import kind_of, model_in
from rankstream.service.journal import note
from rankstream.service.limits import RefusedError, ServiceLimits
from rankstream.service.processes.item_list import make_listing, observed_listing
from rankstream.service.processes.worker import follow_parent, lower_priority
from rankstream.service.storage import states as store
from rankstream.service.storage.ingest import Ingest, Sent, make_market
from rankstream.service.storage.log import market_row, open_log, transaction
from rankstream.service.storage.publication import open_learned
from rankstream.service.storage.tokens import market_name

BATCH_RECORDS, TIME_SLICES, TELL_SECONDS = 10_000, 12, 0.3
EVERYTHING = ServiceLimits(items=100_000, label=10_000, offers=1_000_000, market_items=1_000_000, markets=10_000)
"""A file of one's own may be as large as memory allows."""


@dataclass(frozen=True)
class Importer:
    """Makes one market of a file: the log gets its choices, by time, and the page its model."""

    log: sqlite3.Connection
    learned: sqlite3.Connection
    market: str  # its name, which must be in the log
    fit: dict[str, Any]  # what ``fit_within`` takes besides counts

    @property
    def _row(self) -> Any:
        row = market_row(self.log, self.market)
        assert row is not None
        return row

    def tell(self, text: str, fraction: float, listing: dict[str, Any] | None = None) -> None:
        """Say on the page how far it is."""
        known = listing or store.listing_of(self.learned, self._row.id) or observed_listing(None)
        known |= {"progress": {"text": text, "fraction": fraction}}
        state = store.Learned(self._row.epoch, self._row.records, b"")
        store.save_market(self.learned, self._row.id, state, None, None, listing=known)

    def take(self, reading: Reading, counts: ChoiceCounts) -> None:
        """Write the choices to the log, and publish a model of them."""
        ingest = Ingest(EVERYTHING)
        levels = None if reading.prices is None else {str(i): list(p) for i, p in reading.prices.levels.items()}
        records = list(records_of(reading, counts))
        with transaction(self.log):
            if levels is not None:
                ingest.change_settings(self.log, self.market, {"price_levels": levels})
            for first in range(0, len(records), BATCH_RECORDS):
                ingest.store(self.log, Sent(self.market, records[first : first + BATCH_RECORDS]))
        self.tell("Fitting the model", 0.0, observed_listing(counts, reading.prices))
        last = [time.monotonic()]

        def watch(text: str, fraction: float) -> None:
            if time.monotonic() - last[0] > TELL_SECONDS:
                last[0] = time.monotonic()
                self.tell(f"Fitting the model: {text}", fraction)

        found = fit_within(counts, watch=watch, errors=True, **self.fit)
        proof = found.certificate
        proven = {"distance": float(proof.upper), "least": float(proof.lower), "gap": float(proof.gap)}
        self.publish(found.model, counts, proven)

    def publish(self, model: Any, counts: ChoiceCounts | None, proven: Mapping[str, float | None]) -> None:
        """Give a model out; without counts, one that was read from a file."""
        row, noted = self._row, model.about.get("choices")
        choices = counts.observations if counts is not None else noted if isinstance(noted, int | float) else 1e9
        facts = {
            "kind": kind_of(model), "position": row.records, "since": time.time(), "learned": row.records,
            "offers": 0 if counts is None else counts.assortments.n_offers, "items": len(model.items),
            "choices": float(choices), "alarms": [], "is_file": True, **proven,
        }  # fmt: skip
        state, text = store.Learned(row.epoch, row.records, b""), model.to_text()
        store.save_market(self.learned, row.id, state, text, facts, listing=make_listing(model, counts))


def records_of(reading: Reading, counts: ChoiceCounts) -> Iterator[dict[str, Any]]:
    """What was read as records of the log: one for each period, offer and item, with its number of choices."""
    dated = counts is reading.counts and reading.slices and reading.slice_times
    parts = list(zip(reading.slices or (), reading.slice_times or (), strict=True)) if dated else [(counts, None)]
    for part, span in parts:
        offers: list[Any] = [[str(one) for one in offer] for offer in part.assortments.offers]
        if reading.prices is not None:
            offers = [{str(i): price for i, price in map(reading.prices.of, one)} for one in part.assortments.offers]
        places = zip(part.assortments.owner.tolist(), part.assortments.members.tolist(), strict=True)
        for (place, code), number in zip(places, part.tallies.tolist(), strict=True):
            if number > 0.0:
                label = part.assortments.items[code]
                chosen = str(label if reading.prices is None else reading.prices.of(label)[0])
                when = {} if span is None else {"time": (span[0] + span[1]) / 2.0}
                yield {"offered": offers[place], "chosen": chosen, "count": number, **when}


def import_file(log: sqlite3.Connection, learned: sqlite3.Connection, task: dict[str, Any]) -> None:
    """Make the markets of one file; what is wrong with it is said on the page."""
    first = Importer(log, learned, task["market"], task["fit"])
    try:
        first.tell(f"Reading {task['name']}", 0.0)
        path, options = Path(task["path"]), dict(task["reading"])
        if task["model"]:
            model = model_in(json.loads(path.read_text(encoding="utf-8")), path.name)
            numbers = model.about.get("certificate")
            known = numbers if isinstance(numbers, dict) else {}
            names = {"distance": "distance", "least": "proven_least_distance", "gap": "gap"}
            first.publish(model, None, {short: known.get(name) for short, name in names.items()})
            return
        levels = options.pop("price_levels", None)
        options |= (
            {} if levels is None else {"price_levels": PriceLevels(levels) if isinstance(levels, dict) else levels}
        )
        if "stock" in options:
            found = read_sales(path, by=task["by"], **options)
        else:
            found = read(path, time_slices=None if task["by"] else TIME_SLICES, by=task["by"], **options)
        if not task["by"]:
            first.take(found, found.counts)
            return
        for key, counts in found.groups.items():
            name = market_name(" ".join(map(str, key if isinstance(key, tuple) else (key,))))
            with transaction(log):
                make_market(log, name)
            Importer(log, learned, name, task["fit"]).take(found, counts)
        first.tell(f"{task['name']} has {len(found.groups):,} markets: see the list of markets.", 1.0)
    except (ValueError, OSError, RefusedError, MemoryError) as error:
        sentence = "There is not enough memory for this file." if isinstance(error, MemoryError) else str(error)
        row = market_row(log, task["market"])
        store.set_problem(learned, 0 if row is None else row.id, 0 if row is None else row.epoch, sentence)
        sys.stderr.write(f"rankstream: {as_json(sentence)}\n")


def main() -> None:
    """The process: it ends with whoever started it, or when all files are read."""
    folder, tasks = Path(sys.argv[1]), json.loads(sys.argv[2])
    follow_parent(lambda: os._exit(0))
    lower_priority(2)
    with closing(open_log(folder)) as log, closing(open_learned(folder, log)) as learned:
        for task in tasks:
            import_file(log, learned, task)
    note("all files are read")
