"""The tabs of a market's page: sections with tables, and with charts for the browser."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from rankstream.data.counts import ChoiceCounts
from rankstream.data.drift import DriftReport
from rankstream.estimation.misfit import noise_distance
from rankstream.models.fit_warnings import fit_warnings, interval_words
from rankstream.reports.answers import MAX_SUBSTITUTED_ITEMS, Answers
from rankstream.reports.blocks import Chart, Section, TableBlock, label, render
from rankstream.reports.findings import drift_section, findings_section, offers_section
from rankstream.reports.make import report
from rankstream.reports.sections import demand_section, fit_section, substitution_section, types_section
from rankstream.service.limits import RefusedError
from rankstream.service.processes.questions import Answerer, counted, drift_of, period_ends
from rankstream.service.storage import states as store
from rankstream.service.storage.states import CoursePoint

MAX_DRIFT_RECORDS = 20_000  # latest records for drift and shares over time; not tuned, keeps a page quick
SLICES, TYPES, MAX_OFFERS = 13, 10, 15  # what a panel can show
NO_PRICES = (
    "This market has no prices, or none that vary. Choose the column of prices when you add a file. Or set "
    "price_levels, and send offers with prices."
)
TITLES = {"findings": "What you should know", "trend": "Shares over time", "drift": "What changed over time"}
REMEDY_OF_FILE = "One model mixes before and after: open a file with the later choices alone."
REMEDY = "One model mixes before and after. Set half_life, window or detect, so that older choices count less."
FOLLOWS = "The model follows the change: with these settings, earlier choices count for less, or not at all."
COURSE = "Distance between model and observed shares, from the first record to now, and what a better fit could gain."
CHANGES = ("at record", "detected at (UTC)", "evidence began near record")
NOT_TESTED = {"label": "Change not tested", "words": "There are too few choices to test for changes."}
TABS: dict[str, tuple[str, ...]] = {
    "overview": ("findings", "trend"), "prices": ("demand", "elasticity"), "changes": ("drift", "timeline", "course"),
    "customers": ("flows", "types", "matrix"), "data": ("offers", "fit"),
}  # fmt: skip
"""The sections of each tab."""


class PanelAnswerer(Answerer):
    """Answers the questions of pages, in addition to those of the API."""

    def panels(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the tabs of a market's page as HTML, and warnings about the model."""
        model = self.model(question)
        answers = cache(lambda: Answers.of(model))  # shared by sections; each section reports its own errors
        curves = cache(lambda: answers().curves(MAX_SUBSTITUTED_ITEMS))
        counts = cache(lambda: self.learned(question)[1])
        points = store.course_points(self.store, question["market"])
        over_time = cache(lambda: self._over_time(question, points))
        moves = cache(lambda: substitution_section(answers().moves, answers().shares or None, model))
        demand = cache(
            lambda: demand_section(curves()) if curves() else Section("demand", "What prices do", (NO_PRICES,))
        )
        made: dict[str, Callable[[], Section]] = {
            "findings": lambda: findings_section(
                model, counts(), answers().moves, curves(), interval_words(model.about)
            ),
            "demand": lambda: replace(demand(), parts=demand().parts[:1]),
            "elasticity": lambda: Section("elasticity", "Price elasticity", (), demand().parts[1:]),
            "trend": lambda: Section("trend", "Shares over time", (), over_time()[0].parts[:1]),
            "timeline": lambda: Section("timeline", "Timeline", (), over_time()[0].parts[:1]),
            "drift": lambda: replace(over_time()[0], parts=over_time()[0].parts[1:]),
            "course": lambda: (
                Section("course", "", ())  # an imported file has no history
                if store.is_file(self.store, question["market"])
                else course_section(points, question["alarms"])
            ),
            "flows": lambda: replace(moves(), name="flows", parts=moves().parts[:1]),
            "matrix": lambda: Section("matrix", "All substitutions", (), moves().parts[1:]),
            "types": lambda: types_section(model, answers().types, answers().rankings(TYPES), TYPES),
            "offers": lambda: offers_section(counts(), MAX_OFFERS),
            "fit": lambda: fit_section(model, counts()),
        }
        facts = {"is_file": False} | question["facts"]
        with suppress(RefusedError, ValueError):  # only the model was opened
            facts["noise"] = noise_distance(model, counts())
        tabs = {
            tab: render("panels.html", "rankstream.service.page", sections=_shown(names, made), facts=facts)
            for tab, names in TABS.items()
        }
        try:
            change = over_time()[1]
        except (ValueError, RefusedError):
            change = NOT_TESTED
        warnings = [label(words) for words in fit_warnings(model.about)]
        return {"tabs": tabs, "change": change, "warnings": warnings, "interval_name": interval_words(model.about)}

    def summary(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the summary of a market for the list: whether it changed, and its shares over time."""
        try:
            section, change = self._over_time(question, store.course_points(self.store, question["market"]))
        except (ValueError, RefusedError) as error:
            return {"change": NOT_TESTED | {"words": str(error)}, "trend": None}
        charts = [part.values for part in section.parts if isinstance(part, Chart)]
        return {"change": change, "trend": charts[0] if charts else None}

    def _over_time(self, question: dict[str, Any], points: Sequence[CoursePoint]) -> tuple[Section, dict[str, Any]]:
        """Return drift and shares over time for the latest records in the log, and a summary for the header."""
        records, is_file = self.latest(question, MAX_DRIFT_RECORDS)
        begin, whole = question["records"] - len(records), counted(records)
        slices, spans, dated = [], list[tuple[float, float]](), all(record.time is not None for record in records)
        for start, end in pairwise(period_ends(records, min(SLICES, len(records) // 2 + 1), is_file)):
            part = ChoiceCounts(whole.assortments)
            offered, chosen, number, _ = zip(*records[start:end], strict=True)
            part.observe(list(offered), list(chosen), list(number))
            slices.append(part)
            times = [record.time or 0.0 for record in records[start:end]]
            spans.append((min(times), max(times)) if dated else (float(begin + start + 1), float(begin + end)))
        if is_file and dated:  # records of a file have the time at which their period began
            begins = [first for first, _ in spans]
            ends = [*(begin - 1.0 for begin in begins[1:]), max(begins[-1], question.get("last") or 0.0)]
            spans = list(zip(begins, ends, strict=True))
        _, drift = drift_of(records, is_file)
        places = [record_at(points, alarm["choice"]) for alarm in question["alarms"]]
        places = [place for place in places if place > begin]
        alarms = [records[place - begin - 1].time or 0.0 for place in places] if dated else places
        remedy, nothing = (
            FOLLOWS if question["follows"] else REMEDY_OF_FILE if is_file else REMEDY,
            self.model(question).no_choice,
        )
        section = drift_section(drift, slices, spans, remedy, "record", alarms, nothing)
        return section, {"label": _change_label(drift, alarms, dated), "words": drift.verdict}

    def report(self, question: dict[str, Any]) -> str:
        """Return a report on a market."""
        counts = self.learned(question)[1]
        return report(self.model(question), counts, title=question["title"]).html


def _change_label(drift: DriftReport, alarms: Sequence[float], dated: bool) -> str:
    if alarms and dated:
        day = datetime.fromtimestamp(alarms[-1], UTC)
        return f"Changed on {day.day} {day:%B}"
    if alarms:
        return f"Changed at record {alarms[-1]:,.0f}"
    if drift.changed:
        return "Changed lately"
    return "Tastes stable" if drift.tested or drift.tested_items else "Change not tested"


def course_section(points: Sequence[CoursePoint], alarms: Sequence[Mapping[str, int]]) -> Section:
    """Show the distance and certified gap of a market since its first model, and detected changes."""
    changes = [{name: record_at(points, alarm[name]) for name in ("choice", "since")} for alarm in alarms]
    parts: list[Any] = []
    if points:
        cells = [
            (f"{point.position:,}", moment(point.made), *("" if part is None else f"{part:.4f}" for part in point[3:]))
            for point in reversed(points)
        ]
        heads = ("records", "made at (UTC)", "distance", "certified gap")
        shown = TableBlock("Error and gap, the latest first", heads, cells, which="latest")
        values = {
            "points": [(point.position, point.distance, point.gap) for point in points],
            "changes": [change["choice"] for change in changes],
        }
        parts.append(Chart("course", "Distance and certified gap by the number of records", values, shown))
    if changes:
        rows = []
        for change in reversed(changes):
            learned = next((moment(point.made) for point in points if point.position >= change["choice"]), "")
            rows.append((f"{change['choice']:,}", learned, f"{change['since']:,}"))
        parts.append(TableBlock("Detected changes, the latest first", CHANGES, rows, which="latest"))
    return Section("course", "Accuracy so far", (COURSE, f"Detected changes: {len(alarms):,}."), tuple(parts))


def record_at(points: Sequence[CoursePoint], choice: float) -> int:
    """Return the record of a choice: changes are numbered by choices, of which a record may have many.

    >>> record_at([CoursePoint(10, 0.0, 500.0, None, None), CoursePoint(20, 0.0, 1500.0, None, None)], 1000)
    15
    """
    choices, records = [0.0, *(point.choices for point in points)], [0, *(point.position for point in points)]
    return round(float(np.interp(choice, choices, records)))


def moment(seconds: float) -> str:
    """Format a time for a table.

    >>> moment(0.0)
    '1970-01-01 00:00:00'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _shown(names: Sequence[str], made: Mapping[str, Callable[[], Section]]) -> list[Section]:
    """Return the sections of a tab without empty ones; a section that fails shows its error, once in a tab."""
    sections, messages = list[Section](), set[str]()
    for name in names:
        try:
            sections.append(made[name]())
        except (ValueError, RefusedError) as error:
            if str(error) not in messages:
                sections.append(Section(name, TITLES.get(name, name.capitalize()), (str(error),)))
            messages.add(str(error))
    return [section for section in sections if section.sentences or section.parts]
