"""How a market went: error and certified gap record by record, and the changes that were noticed on the same line."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from rankstream import plots
from rankstream.reports.blocks import Section, Sheet, table
from rankstream.service.storage.states import CoursePoint

WORDS = (
    "The served model's distance from the observed shares, and what of it could still be gained, since the market was "
    "first learned with its settings."
)

HEADS = ("records", "learned at (UTC)", "distance", "certified gap")
CHANGES = ("at record", "learned at (UTC)", "evidence grew since about record")


def course_section(sheet: Sheet, points: Sequence[CoursePoint], alarms: Sequence[Mapping[str, int]]) -> Section:
    """Error and certified gap of a market since its first model, and the changes that were noticed."""
    changes = [{name: record_at(points, one[name]) for name in ("choice", "since")} for one in alarms]
    parts: list[Any] = []
    if points:
        cells = [
            (f"{one.position:,}", moment(one.made), *("" if part is None else f"{part:.4f}" for part in one[3:]))
            for one in reversed(points)
        ]
        shown = table("Error and gap, the latest first", HEADS, cells, which="latest")
        rows = [(one.position, one.distance, one.gap) for one in points]
        title = "Error, certified gap and changes by the number of records"
        parts.append(sheet.picture(title, shown, lambda figure: plots.course(rows, changes, figure.subplots())))
    if changes:
        noticed = [
            (f"{one['choice']:,}", moment_at(points, one["choice"]), f"{one['since']:,}") for one in reversed(changes)
        ]
        parts.append(table("Changes that were noticed, the latest first", CHANGES, noticed, which="latest"))
    counted = f"Changes of the market that were noticed: {len(alarms):,}."
    return Section("course", "Error, certificate and changes", (WORDS, counted), tuple(parts))


def record_at(points: Sequence[CoursePoint], choice: float) -> int:
    """The record that a choice came with: a record may count many choices, and changes are numbered by choices.

    >>> record_at([CoursePoint(10, 0.0, 500.0, None, None), CoursePoint(20, 0.0, 1500.0, None, None)], 1000)
    15
    """
    choices, records = [0.0, *(one.choices for one in points)], [0.0, *(float(one.position) for one in points)]
    return round(float(np.interp(choice, choices, records)))


def moment_at(points: Sequence[CoursePoint], record: int) -> str:
    """When the first point of the course from a record on was learned; nothing where there is none."""
    return next((moment(one.made) for one in points if one.position >= record), "")


def moment(seconds: float) -> str:
    """A time for a table.

    >>> moment(0.0)
    '1970-01-01 00:00:00'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
