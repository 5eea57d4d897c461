"""What the tabs of a market's page show besides the forms: sections with tables, and with charts for the browser."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from rankstream.data.counts import ChoiceCounts
from rankstream.data.drift import DriftReport
from rankstream.models.fit_warnings import fit_warnings, interval_words
from rankstream.reports.answers import MAX_SUBSTITUTED_ITEMS, Answers
from rankstream.reports.blocks import Chart, Section, render, table
from rankstream.reports.findings import drift_section
from rankstream.reports.make import report
from rankstream.reports.overview import findings_section, offers_table
from rankstream.reports.sections import demand_section, fit_section, joined, substitution_section, types_section
from rankstream.service.limits import RefusedError
from rankstream.service.processes.questions import Answerer, counted, drift_of, period_ends
from rankstream.service.storage import states as store
from rankstream.service.storage.states import CoursePoint

MAX_DRIFT_RECORDS = 20_000  # records that drift and shares over time are about
SLICES, TYPES, MAX_OFFERS = 12, 10, 15
NO_PRICES = (
    "This market has no prices, or none that vary. Choose the column of prices when you add a file. Or set "
    "price_levels, and send offers with prices."
)
TITLES = {"findings": "What you should know", "trend": "Shares over time", "drift": "What changed over time"}
REMEDY = "Tastes changed. Set half_life or window to let older choices count less, or detect to restart after a change."
FOLLOWS = "The model follows the change: with these settings, earlier choices count for less, or not at all."
COURSE = "How far the model was from the observed shares since the first record, and how much a better fit could gain."
CHANGES = ("at record", "learned at (UTC)", "evidence began near record")
NOT_TESTED = {"label": "Change not tested", "words": "There are too few choices to test for changes."}
TABS: dict[str, tuple[str, ...]] = {
    "overview": ("findings", "trend"), "prices": ("demand", "elasticity"), "changes": ("drift", "timeline", "course"),
    "customers": ("flows", "types", "matrix"), "data": ("offers", "fit"),
}  # fmt: skip
"""The sections of each tab."""


class PanelAnswerer(Answerer):
    """Answers what pages ask, besides what everybody can ask."""

    def panels(self, question: dict[str, Any]) -> dict[str, Any]:
        """The tabs of a market's page as HTML, and what its answers should warn about."""
        model = self.model(question)
        answers = cache(lambda: Answers.of(model))  # several sections need it, and each says where it fails
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
                Section("course", "", ())  # a file is read once
                if store.is_file(self.store, question["market"])
                else course_section(points, question["alarms"])
            ),
            "flows": lambda: replace(moves(), name="flows", parts=moves().parts[:1]),
            "matrix": lambda: Section("matrix", "All substitutions", (), moves().parts[1:]),
            "types": lambda: types_section(model, answers().types, answers().rankings(TYPES), TYPES),
            "offers": lambda: offers_section(counts()),
            "fit": lambda: fit_section(model, counts(), question["proven"]),
        }
        tabs = {
            tab: render("panels.html", "rankstream.service.page", sections=_shown(names, made))
            for tab, names in TABS.items()
        }
        try:
            change = over_time()[1]
        except (ValueError, RefusedError):
            change = NOT_TESTED
        return {"tabs": tabs, "warnings": fit_warnings(model.about), "change": change}

    def summary(self, question: dict[str, Any]) -> dict[str, Any]:
        """What the list of markets shows of one: whether it changed, and its shares over time."""
        try:
            section, change = self._over_time(question, store.course_points(self.store, question["market"]))
        except (ValueError, RefusedError) as error:
            return {"change": NOT_TESTED | {"words": str(error)}, "trend": None}
        return {"change": change, "trend": next((one.values for one in section.parts if isinstance(one, Chart)), None)}

    def _over_time(self, question: dict[str, Any], points: Sequence[CoursePoint]) -> tuple[Section, dict[str, Any]]:
        """Drift and shares over time, of the latest records in the log; and what the header says of it."""
        records, is_file = self.latest(question, MAX_DRIFT_RECORDS)
        begin, whole = question["records"] - len(records), counted(records)
        slices, spans, dated = [], list[tuple[float, float]](), all(one.time is not None for one in records)
        for start, end in pairwise(period_ends(records, min(SLICES, len(records) // 2 + 1), is_file)):
            part = ChoiceCounts(whole.assortments)
            offered, chosen, number, _ = zip(*records[start:end], strict=True)
            part.observe(list(offered), list(chosen), list(number))
            slices.append(part)
            times = [one.time or 0.0 for one in records[start:end]]
            spans.append((min(times), max(times)) if dated else (float(begin + start + 1), float(begin + end)))
        if is_file and dated:  # whose records have the time at which their period began
            begins = [first for first, _ in spans]
            spans = list(zip(begins, [*begins[1:], max(begins[-1], question.get("last") or 0.0)], strict=True))
        _, found = drift_of(records, is_file)
        noticed = [record_at(points, one["choice"]) for one in question["alarms"]]
        alarms = [one if not dated else (records[one - begin - 1].time or 0.0) for one in noticed if one > begin]
        remedy, nothing = FOLLOWS if question["follows"] else REMEDY, self.model(question).no_choice
        section = drift_section(found, slices, spans, remedy, "record", alarms, nothing)
        return section, {"label": _change_label(found, alarms, dated), "words": found.verdict}

    def report(self, question: dict[str, Any]) -> str:
        """A whole report on a market, without a comparison of models."""
        counts = self.learned(question)[1]
        return report(self.model(question), counts, title=question["title"], rivals=None).html


def _change_label(found: DriftReport, alarms: Sequence[float], dated: bool) -> str:
    """Whether a market changed, in two to four words."""
    if alarms:
        day = datetime.fromtimestamp(alarms[-1], UTC) if dated else None
        return f"Changed at record {alarms[-1]:,.0f}" if day is None else f"Changed on {day.day} {day:%B}"
    return "Changed lately" if found.changed else "Stable" if found.tested else "Change not tested"


def offers_section(counts: ChoiceCounts) -> Section:
    """The offers made most often, by what differs from the most frequent one."""
    usual, shown = offers_table(counts, "Offers and how often customers chose from them", most=MAX_OFFERS)
    return Section("offers", "Offers", (f"The most frequent offer: {joined(usual, 20)}.",), (shown,))


def course_section(points: Sequence[CoursePoint], alarms: Sequence[Mapping[str, int]]) -> Section:
    """Error and certified gap of a market since its first model, and the changes that were noticed."""
    changes = [{name: record_at(points, one[name]) for name in ("choice", "since")} for one in alarms]
    parts: list[Any] = []
    if points:
        cells = [
            (f"{one.position:,}", moment(one.made), *("" if part is None else f"{part:.4f}" for part in one[3:]))
            for one in reversed(points)
        ]
        heads = ("records", "learned at (UTC)", "distance", "certified gap")
        shown = table("Error and gap, the latest first", heads, cells, which="latest")
        values = {
            "points": [(one.position, one.distance, one.gap) for one in points],
            "changes": [one["choice"] for one in changes],
        }
        parts.append(Chart("course", "Error and certified gap by the number of records", values, shown))
    if changes:
        noticed = []
        for one in reversed(changes):
            learned = next((moment(point.made) for point in points if point.position >= one["choice"]), "")
            noticed.append((f"{one['choice']:,}", learned, f"{one['since']:,}"))
        parts.append(table("Detected changes, the latest first", CHANGES, noticed, which="latest"))
    return Section("course", "Accuracy so far", (COURSE, f"Detected changes: {len(alarms):,}."), tuple(parts))


def record_at(points: Sequence[CoursePoint], choice: float) -> int:
    """The record that a choice came with: a record may count many choices, and changes are numbered by choices.

    >>> record_at([CoursePoint(10, 0.0, 500.0, None, None), CoursePoint(20, 0.0, 1500.0, None, None)], 1000)
    15
    """
    choices, records = [0.0, *(one.choices for one in points)], [0.0, *(float(one.position) for one in points)]
    return round(float(np.interp(choice, choices, records)))


def moment(seconds: float) -> str:
    """A time for a table.

    >>> moment(0.0)
    '1970-01-01 00:00:00'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _shown(names: Sequence[str], made: Mapping[str, Callable[[], Section]]) -> list[Section]:
    """The sections of a tab, without those that have nothing to say; one that fails says why."""
    found, said = list[Section](), set[str]()
    for name in names:
        try:
            found.append(made[name]())
        except (ValueError, RefusedError) as error:  # whose text is its sentence
            if str(error) not in said:  # once in a tab
                found.append(Section(name, TITLES.get(name, name.capitalize()), (str(error),)))
            said.add(str(error))
    return [one for one in found if one.sentences or one.parts]
