"""The process behind the pages: it draws what a market looks like, and refits models for intervals."""

import re
import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rankstream._core.types import Label
from rankstream.data.counts import ChoiceCounts
from rankstream.data.drift import drift_report
from rankstream.data.prices import AT
from rankstream.estimation.intervals import Bootstrap
from rankstream.models.fit_warnings import fit_warnings
from rankstream.models.prices import everything
from rankstream.models.rankings import RankingModel
from rankstream.reports.answers import MAX_SUBSTITUTED_ITEMS, Answers
from rankstream.reports.blocks import Section, Sheet, render
from rankstream.reports.findings import drift_section
from rankstream.reports.sections import demand_section, fit_section, substitution_section, types_section
from rankstream.service.limits import RefusedError
from rankstream.service.page.course import course_section
from rankstream.service.processes.questions import Answerer, asked_offer, at_levels, counted
from rankstream.service.processes.worker import answer_parent, lower_priority
from rankstream.service.storage import states as store
from rankstream.service.storage.log import batches_after
from rankstream.streams.background import BackgroundLive
from rankstream.streams.entropy_follower import MAX_SIZES
from rankstream.streams.live import Live

MAX_DRIFT_RECORDS = 20_000
"""Records that drift and shares over time are about."""
SLICES = 12
TYPES = 10
REPLICATES = 20
REMEDY = "Tastes changed: set half_life or window to forget old choices, or detect to restart when tastes change."
FOLLOWS = "The model follows the change: with its settings, earlier choices count less or not at all."
TOO_LARGE = "not available: more than {:,} offers, {:,} items or {:,} pairs of both take too long".format(*MAX_SIZES)
MAX_REFITTED_MARKETS = 8
"""Markets whose refits are kept."""


class PageAnswerer(Answerer):
    """Answers what pages ask, besides what everybody can ask."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._refits: dict[int, tuple[int, Bootstrap]] = {}
        self.kinds |= {"panels": self.panels, "refit": self.refit, "interval": self.interval}

    def learned(self, question: dict[str, Any]) -> tuple[Live, ChoiceCounts]:
        """What the market's learner has, and what it counts, as it was saved."""
        kept = store.load_market(self.store, question["market"])
        live = None if kept is None else BackgroundLive.from_bytes(kept.state).live
        if live is None or live.counts is None:
            raise RefusedError(409, "This market has no processed choices yet: send some first.")
        return live, live.counts

    def panels(self, question: dict[str, Any]) -> dict[str, Any]:
        """The sections of a market's page, and its items with their shares if all are on offer."""
        model, sheet = self.model(question), Sheet()
        asked = cache(lambda: Answers.of(model))  # several sections need it, and each says where it fails
        points = store.course_points(self.store, question["market"])
        made: dict[str, Callable[[], Section]] = {
            "drift": lambda: self._over_time(sheet, question),
            "fit": lambda: fit_section(sheet, model, self.learned(question)[1], question["proven"]),
            "types": lambda: types_section(sheet, model, asked().types, asked().rankings(TYPES), TYPES),
            "substitution": lambda: substitution_section(sheet, asked().moves, asked().shares or None, model),
            "demand": lambda: demand_section(sheet, asked().curves(MAX_SUBSTITUTED_ITEMS)),
            "course": lambda: course_section(sheet, points, question["alarms"]),
        }
        if model.price_levels is None or all(len(one) < 2 for one in model.price_levels.levels.values()):
            del made["demand"]
        sections = [_attempt(name, make) for name, make in made.items()]
        return {
            "panels": render("panels.html", "rankstream.service.page", sections=sections),
            "items": items_of(model, question["no_choice"]),
            "warnings": fit_warnings(model.about),
        }

    def _over_time(self, sheet: Sheet, question: dict[str, Any]) -> Section:
        """Drift and shares over time, of the latest records in the log."""
        first = max(0, question["records"] - MAX_DRIFT_RECORDS)
        batches = batches_after(self.log, question["market"], first, {}, MAX_DRIFT_RECORDS)
        records = at_levels(batches, question["price_levels"])
        if len(records) < 2:
            raise ValueError("The log has fewer than two records of the market: send more choices.")
        begin, whole = question["records"] - len(records), counted(records)
        ends = np.linspace(0, len(records), min(SLICES, len(records) // 2 + 1) + 1).astype(int).tolist()
        slices, spans = [], []
        for start, end in pairwise(ends):
            part = ChoiceCounts(whole.assortments)
            offered, chosen, number, _ = zip(*records[start:end], strict=True)
            part.observe(list(offered), list(chosen), list(number))
            slices.append(part)
            spans.append((float(begin + start + 1), float(begin + end)))
        half = len(records) // 2
        report = drift_report(counted(records[:half]), counted(records[half:]))
        return drift_section(sheet, report, slices, spans, FOLLOWS if question["follows"] else REMEDY, "record")

    def refit(self, question: dict[str, Any]) -> dict[str, Any]:
        """Refit a market's model for intervals, which takes a while; what ``interval`` then answers from."""
        model, (live, counts) = self.model(question), self.learned(question)
        sizes = _sizes(live, counts)
        method = "nearest" if isinstance(model, RankingModel) else "max-entropy"
        found = Bootstrap(counts, method, REPLICATES, model=model, sizes=sizes)
        while len(self._refits) >= MAX_REFITTED_MARKETS:
            del self._refits[next(iter(self._refits))]
        self._refits[question["market"]] = question["position"], found
        return {"position": question["position"]}

    def interval(self, question: dict[str, Any]) -> dict[str, Any]:
        """The ends of the intervals of offers' shares, by the refits, and up to which record those know."""
        if question["market"] not in self._refits:
            raise RefusedError(409, "not yet")
        position, found = self._refits[question["market"]]
        try:
            offers = [asked_offer(found.model, offer) for offer in question["offers"]]
        except ValueError:  # an item that came later
            raise RefusedError(409, "not yet") from None
        shares = [found.predict(offer, question["level"]) for offer in offers]
        ends = [{str(item): [share.low, share.high] for item, share in one.items()} for one in shares]
        return {"position": position, "ends": ends}


def _sizes(live: Live, counts: ChoiceCounts) -> Any:
    """How many choices a refit draws where counts do not say that themselves; or why there are no refits.

    After a change, counts go on from faded choices, each of which weighs at most 1: together they are as certain as
    that many choices, or more, so that intervals are not too short.
    """
    offers = counts.assortments
    own = (offers.n_offers, offers.n_items, offers.n_coordinates)
    if any(size > most for size, most in zip(own, MAX_SIZES, strict=True)):
        raise RefusedError(409, TOO_LARGE)
    if counts.forgets or (counts.tallies == np.floor(counts.tallies)).all():
        return None
    if live.detector is None:
        raise RefusedError(409, "not available: this market has fractional counts, and intervals need whole choices")
    return counts.totals


def key_of(item: Label) -> str:
    """A short name of an item that no form changes on its way.

    >>> key_of("tea")
    'a9f74d1ec36ebdeb'
    """
    return sha256(str(item).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def items_of(model: Any, no_choice: str | None) -> list[dict[str, Any]]:
    """All items with their shares while everything is on offer, those with prices at usual ones.

    ``levels`` are the labels of an item at its prices, cheapest first, and ``level`` is which of them everything has;
    an item without a price has one label, its own.
    """
    levels, own = model.price_levels, None if model.no_choice is None else str(model.no_choice)
    nothing = no_choice or own
    found = []
    for label, share in model.predict(everything(model)).items():
        item = label if levels is None else levels.of(label)[0]
        at = [str(one) for one in (() if levels is None else levels.labels) if levels.of(one)[0] == item]
        labels = at if str(label) in at else [str(label)]
        found.append(
            {
                "key": key_of(item), "label": str(item), "share": share, "always": str(item) == nothing,
                "levels": labels, "level": labels.index(str(label)),
                "prices": [one.rpartition(AT)[2] for one in at],
            }
        )  # fmt: skip
    return sorted(found, key=lambda one: natural(str(one["label"])))


def natural(name: str) -> list[tuple[int, str]]:
    """What names are sorted by: numbers in them count as numbers.

    >>> sorted(["tea 10", "Tea 9", "pie"], key=natural)
    ['pie', 'Tea 9', 'tea 10']
    """
    parts = re.findall(r"[0-9]+|[^0-9]+", name.casefold())
    return [(int(part[:15]), "") if part.isdecimal() else (-1, part) for part in parts]


TITLES = {
    "drift": "What changed over time", "fit": "How well it fits, and what is proven", "types": "Who the customers are",
    "substitution": "Who gains when an item is gone", "demand": "What prices do",
    "course": "Error, certificate and changes",
}  # fmt: skip


def _attempt(name: str, make: Any) -> Section:
    """A section, or why there is none."""
    try:
        found: Section = make()
    except (ValueError, RefusedError) as error:
        sentence = error.sentence if isinstance(error, RefusedError) else str(error)
        return Section(name, TITLES[name], (f"This cannot be shown yet. {sentence}",))
    return found


def main() -> None:
    """The process of pages: it draws in one lane, and refits in another, for a server that started it."""
    lower_priority(5)
    answer_parent(lambda: PageAnswerer(Path(sys.argv[1])).answer)
