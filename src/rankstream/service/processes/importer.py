"""The process that makes markets of files: it reads choices, fits a model, and publishes it for the page."""

import json
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from typing import Any

from rankstream._core.memory import MEMORY_VARIABLE
from rankstream._core.terminal import as_json
from rankstream.data.counts import ChoiceCounts
from rankstream.data.prices import PriceLevels
from rankstream.data.readers import Reading, read, read_sales
from rankstream.data.readers.groups import Split
from rankstream.data.readers.options import check_options, open_job, translated
from rankstream.data.readers.reading import coarser
from rankstream.data.readers.sources.files import open_source
from rankstream.decide.context import most_frequent_offer, recent_choices
from rankstream.estimation.estimate import fit_within
from rankstream.estimation.misfit import noise_distance
from rankstream.models.files import kind_of, model_in
from rankstream.models.fit_warnings import noted
from rankstream.reports.origin import account_of, period_of
from rankstream.service.journal import note
from rankstream.service.limits import RefusedError, ServiceLimits
from rankstream.service.processes.item_list import make_listing, observed_listing
from rankstream.service.processes.worker import answer_parent, follow_parent, lower_priority
from rankstream.service.storage import states as store
from rankstream.service.storage.database import Database, Place, place_of, transaction
from rankstream.service.storage.ingest import Ingest, Sent
from rankstream.service.storage.log import market_row, open_log
from rankstream.service.storage.publication import open_learned
from rankstream.service.storage.tokens import market_name

BATCH_RECORDS, TELL_SECONDS = 10_000, 0.3  # TELL_SECONDS between two words on progress; not tuned
TIME_SLICES, PERIODS = 52, 13  # of a file as ``decide`` reads it, and on the page
EVERYTHING = ServiceLimits(items=100_000, label=10_000, offers=1_000_000, market_items=1_000_000, markets=10_000)
"""A file of one's own may be as large as memory allows."""
UPLOAD_MEMORY = 2_000_000_000  # bytes that a process may take for a file that was uploaded: 20 times the largest one
NO_FIT = "The model could not be fitted, perhaps for lack of memory: use 'rankstream open' for the file."
MAX_DATED_MARKETS = 20  # of one file, each of which is read anew for its times; not tuned
SHELL_NAMES = {"prices": "--price-columns", "no_choice": "--no-choice"}  # in errors of the reader
PREVIEW_ROWS, PREVIEW_COLUMNS, PREVIEW_LETTERS = 20, 60, 200  # what fits a screen
Part = tuple[str, Reading, ChoiceCounts]  # a market of a file: its name, what was read, and its choices
Readings = dict[str, list[Part]]  # markets by the path of their file


@dataclass(frozen=True)
class Importer:
    """Makes one market of a file: the log gets its choices, by time, and the page its model."""

    log: Database
    learned: Database
    market: str  # its name, which must be in the log
    fit: dict[str, Any]  # what ``fit_within`` takes besides counts
    limits: ServiceLimits = EVERYTHING

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

    def store(self, reading: Reading, counts: ChoiceCounts, new_markets: bool = True, **settings: Any) -> None:
        """Write the choices to the log in the transaction of whoever calls; the market is made if absent."""
        ingest, records = Ingest(self.limits, new_markets), list(records_of(coarser(reading, PERIODS), counts))
        if reading.prices is not None:
            levels = {str(item): list(prices) for item, prices in reading.prices.levels.items()}
            ingest.change_settings(self.log, self.market, {"price_levels": levels})
        for first in range(0, len(records), BATCH_RECORDS):
            ingest.store(self.log, Sent(self.market, records[first : first + BATCH_RECORDS]))
        if settings:
            ingest.change_settings(self.log, self.market, settings)

    def fit_model(self, reading: Reading, counts: ChoiceCounts) -> None:
        """Publish a model of choices that are in the log."""
        last = [time.monotonic()]

        def watch(text: str, fraction: float) -> None:
            if time.monotonic() - last[0] > TELL_SECONDS:
                last[0] = time.monotonic()
                self.tell(f"Fitting the model: {text}", fraction)

        found = fit_within(counts, watch=watch, errors=True, **self.fit)
        remedy = r": fit (again|one model for each) with .*", ": open or upload the file again, and use it."
        ignored = [column.to_content() | {"warning": re.sub(*remedy, column.warning)} for column in reading.unused]
        found.model.note(unused=ignored)
        proof = found.certificate
        proven = {"distance": float(proof.upper), "least": float(proof.lower), "gap": float(proof.gap)}
        proven |= {"last": reading.times[1]} if reading.times and period_of(reading.times) else {}
        proven |= {"noise": noise_distance(found.model, counts)}
        usual = most_frequent_offer(recent_choices(reading) if counts is reading.counts else counts)
        self.publish(found.model, counts, proven, tuple(account_of(reading, counts)), usual)

    def fail(self, sentence: str) -> None:
        """Say on the page what is wrong, and to whoever started the command."""
        store.set_problem(self.learned, self._row.id, self._row.epoch, sentence)
        sys.stderr.write(f"rankstream: {as_json(sentence)}\n")

    def publish(
        self,
        model: Any,
        counts: ChoiceCounts | None,
        proven: Mapping[str, float | None],
        account: Sequence[str] = (),
        usual: Any = (),
    ) -> None:
        """Give a model out; without counts, one that was read from a file. ``usual`` is today's offer."""
        row, known = self._row, model.about.get("choices")
        choices = counts.observations if counts is not None else known if isinstance(known, int | float) else 1e9
        facts = {
            "kind": kind_of(model), "position": row.records, "since": time.time(), "learned": row.records,
            "offers": 0 if counts is None else counts.assortments.n_offers, "items": len(model.items),
            "choices": float(choices), "alarms": [], "is_file": True, **proven,
        }  # fmt: skip
        state, listing = store.Learned(row.epoch, row.records, b""), make_listing(model, counts) | {"account": account}
        listing |= {"usual": list(map(str, usual))}
        store.save_market(self.learned, row.id, state, model.to_text(), facts, listing=listing)


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
                when = {} if span is None else {"time": span[0]}
                yield {"offered": offers[place], "chosen": chosen, "count": number, **when}


def import_file(log: Database, learned: Database, task: dict[str, Any]) -> None:
    """Make the markets of one file; what is wrong with it is said on the page."""
    first = Importer(log, learned, task["market"], task["fit"])
    try:
        first.tell(f"Reading {task['name']}", 0.0)
        path, options = Path(task["path"]), dict(task["reading"])
        if task["model"]:
            model = model_in(json.loads(path.read_text(encoding="utf-8")), path.name)
            known = noted(model.about, "certificate")
            names = {"distance": "distance", "least": "proven_least_distance", "gap": "gap"}
            first.publish(model, None, {short: known.get(name) for short, name in names.items()})
            return
        parts = read_markets(path, task["market"], task["by"], options)
        store_parts(log, learned, parts, task["market"])
        fit_parts(log, learned, parts, task["fit"])
        if all(name != task["market"] for name, _, _ in parts):  # the name of the file is none of its markets
            store.forget(learned, first._row.id)
            log.execute("DELETE FROM markets WHERE id = ?", (first._row.id,))
    except (ValueError, OSError, RefusedError, MemoryError) as error:
        first.fail(re.sub(r"(prices|no_choice)='(\w+)'", lambda part: f"{SHELL_NAMES[part[1]]} {part[2]}", why(error)))


def store_parts(log: Database, learned: Database, parts: Sequence[Part], known: str = "", **options: Any) -> None:
    """Write the choices of all markets of a file to the log, or none; only the market ``known`` may be there before."""
    limits = options.pop("limits", EVERYTHING)
    if log.is_shared:  # a file may have millions of choices
        log.execute("SET idle_in_transaction_session_timeout = 0")
    with transaction(log):
        for name, reading, counts in parts:
            if name != known and market_row(log, name) is not None:
                raise RefusedError(409, f"There is a market {name!r} already: choose another name.")
            Importer(log, learned, name, {}, limits).store(reading, counts, **options)
            if log.is_shared:  # learners see by this lock whether the import goes on
                log.execute(f"SELECT pg_advisory_lock({store.IMPORTS}, id::int) FROM markets WHERE name = ?", (name,))
    for name, reading, counts in parts:  # only now, as what was learned must never be ahead of the log
        listing = observed_listing(counts, reading.prices)
        Importer(log, learned, name, {}).tell("Fitting the model", 0.0, listing)


def fit_parts(log: Database, learned: Database, parts: Sequence[Part], fit: dict[str, Any]) -> None:
    """Publish a model of each market that was stored; a market without one says why on its page."""
    for name, reading, counts in parts:
        own = Importer(log, learned, name, fit)
        try:
            own.fit_model(reading, counts)
        except (ValueError, MemoryError) as error:
            own.fail(why(error))


def read_choices(path: Path, by: list[str], options: dict[str, Any]) -> Reading:
    """Read a file of choices, or of sales where the options name a stock log."""
    levels = options.pop("price_levels", None)
    options |= {} if levels is None else {"price_levels": PriceLevels(levels) if isinstance(levels, dict) else levels}
    reader: Any = read_sales if "stock" in options else read
    return reader(path, time_slices=None if by else TIME_SLICES, by=by, **options)  # type: ignore[no-any-return]


def read_markets(path: Path, market: str, by: list[str], options: dict[str, Any]) -> list[Part]:
    """The markets of a file: one, or one for each group; a few groups are read one by one, to have their times."""
    found = read_choices(path, by, dict(options))
    if not by:
        return [(market, found, found.counts)]
    if "time" not in found.roles or len(found.groups) > MAX_DATED_MARKETS or "stock" in options:
        return [(name_of(key), found, counts) for key, counts in found.groups.items()]
    places = {name_of(key): dict(zip(by, cells_of(key), strict=True)) for key in found.groups}
    each = {name: read_choices(path, [], options | {"where": where, "look": False}) for name, where in places.items()}
    return [(name, replace(one, unused=found.unused), one.counts) for name, one in each.items()]


def cells_of(key: Any) -> tuple[Any, ...]:
    """The values that make a group."""
    return key if isinstance(key, tuple) else (key,)


def name_of(key: Any) -> str:
    """The market of a group."""
    return market_name(" ".join(map(str, cells_of(key))))


def why(error: BaseException) -> str:
    """What is wrong with a file, in a sentence."""
    return "There is not enough memory for this file." if isinstance(error, MemoryError) else str(error)


class Uploads:
    """Answers what the page asks about a file that was uploaded: what is in it, and that it becomes markets.

    ``readings`` are files that were stored and are not fitted yet: lanes that store and lanes that fit share them.
    """

    def __init__(self, folder: Place, readings: Readings) -> None:
        self.log, self.readings = open_log(folder), readings
        self.learned = open_learned(folder, self.log)

    def __call__(self, task: dict[str, Any]) -> tuple[int, Any]:
        """A status of HTTP, and the answer to one step: ``look``, ``store``, ``fit`` or ``fail``."""
        path = Path(task["path"])
        try:
            return 200, getattr(self, task["step"])(path, task)
        except RefusedError as refused:
            return refused.status, refused.sentence
        except (ValueError, OSError, MemoryError) as error:
            return 422, in_words(why(error), path)

    @property
    def is_spent(self) -> bool:
        """Whether the process has taken most of its memory, which the system counts even where it is free again."""
        with suppress(OSError):  # not every system has it
            pages = int(Path("/proc/self/statm").read_text().split()[5])
            return not self.readings and pages * os.sysconf("SC_PAGESIZE") > UPLOAD_MEMORY // 2
        return False

    def look(self, path: Path, task: dict[str, Any]) -> dict[str, Any]:
        """The first rows, which column is what, and the account of reading all of it; or why it cannot be read."""
        with translated():
            source = open_source(path)
            rows = list(source.rows(most=PREVIEW_ROWS))
        found: dict[str, Any] = {
            "columns": source.columns[:PREVIEW_COLUMNS], "n_columns": len(source.columns), "problem": "",
            "rows": [[in_preview(cell) for cell in row.cells[:PREVIEW_COLUMNS]] for row in rows],
        }  # fmt: skip
        try:
            names = {name: value for name, value in task["reading"].items() if name != "on_error"}
            layout = open_job(path, Split(tuple(task["by"])), check_options(**names)).layout
            items = layout.raw[1 : len(layout.raw) - len(layout.priced)] if layout.format == "wide" else ()
            found |= {"roles": layout.roles, "format": layout.format, "items": items}
            reading = read_choices(path, task["by"], dict(task["reading"]))
            hints = [{"name": one.name, "kind": one.kind, "sentence": one.sentence} for one in reading.unused]
            found |= {"account": [in_words(one, path) for one in account_of(reading, reading.counts)], "unused": hints}
        except (ValueError, MemoryError) as error:
            found["problem"] = in_words(why(error), path)
        return found

    def store(self, path: Path, task: dict[str, Any]) -> list[str]:
        """Write the choices to the log, all markets of the file or none."""
        parts = read_markets(path, task["market"], task["by"], task["reading"])
        nothing = task["reading"].get("no_choice")
        options = {name: task[name] for name in ("limits", "new_markets")} | ({"no_choice": nothing} if nothing else {})
        store_parts(self.log, self.learned, parts, **options)
        self.readings[str(path)] = parts
        return [name for name, _, _ in parts]

    def fit(self, path: Path, task: dict[str, Any]) -> None:
        """Fit a model for each market of a file that was stored, and delete the file."""
        fit_parts(self.log, self.learned, self.readings[str(path)], task["fit"])
        del self.readings[str(path)]
        rmtree(path.parent, ignore_errors=True)

    def fail(self, path: Path, task: dict[str, Any]) -> None:
        """Say on the pages of markets that the process died over their models."""
        for name in task["markets"]:
            Importer(self.log, self.learned, name, {}).fail(NO_FIT)
        rmtree(path.parent, ignore_errors=True)


def in_words(sentence: str, path: Path) -> str:
    """A sentence of the reader as the page says it: without folders, and without options of the command line."""
    sentence = sentence.replace(f"{path.parent}/", "").replace("add no_choice='nothing'", "write “nothing” above")
    sentence = sentence.replace("give prices='offered'", "choose “items with prices” for its column")
    return re.sub(r",? or map them: columns='[^']*'", ", or choose below what each column is", sentence)


def in_preview(cell: Any) -> str:
    """A cell of a preview."""
    text = cell if isinstance(cell, str) else "" if cell is None else json.dumps(cell, ensure_ascii=False, default=str)
    return text[:PREVIEW_LETTERS]


def limit_memory() -> None:
    """Let this process take no more memory than a file may need; tables that could be smaller are."""
    os.environ[MEMORY_VARIABLE] = str(UPLOAD_MEMORY // 4)
    with suppress(ImportError):  # not every system has it
        from resource import RLIMIT_DATA, setrlimit

        setrlimit(RLIMIT_DATA, (UPLOAD_MEMORY, UPLOAD_MEMORY))


def main() -> None:
    """The process: it answers about uploads, or reads files and ends; in any case with whoever started it."""
    folder, readings = place_of(sys.argv[1]), Readings()
    lower_priority(2)
    if len(sys.argv) == 2:
        limit_memory()
        answer_parent(lambda: Uploads(folder, readings))
        return
    follow_parent(lambda: os._exit(0))
    with closing(open_log(folder)) as log, closing(open_learned(folder, log)) as learned:
        for task in json.loads(sys.argv[2]):
            import_file(log, learned, task)
    note("all files are read")
