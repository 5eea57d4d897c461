"""When things are: choices of files without times, the day of an alarm, and the pauses of a learner."""

import sqlite3
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

import rankstream as rs
from rankstream.service.processes import learner, panels
from rankstream.service.processes.importer import records_of
from rankstream.service.storage import states
from rankstream.service.storage.log import DamagedLogError
from rankstream.streams.record import Record

pytestmark = pytest.mark.quick


def test_choices_of_a_file_without_times_have_none() -> None:
    offers = rs.Assortments([("tea", "pie")])
    parts = [rs.ChoiceCounts(offers, [2, 0]), rs.ChoiceCounts(offers, [0, 4])]
    whole = parts[0] + parts[1]
    reading: Any = SimpleNamespace(counts=whole, slices=parts, slice_times=None, prices=None)
    assert [(one["chosen"], one["count"], "time" in one) for one in records_of(reading, whole)] == [
        ("tea", 2.0, False), ("pie", 4.0, False),
    ]  # fmt: skip


def test_an_alarm_is_dated_by_the_record_it_was_raised_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records 5 to 8 of the log, one a day from 11 March 2026: the alarm of choice 7 is of 13 March."""
    day, first = 86_400.0, 1_773_187_200.0
    records = [Record(("tea", "pie"), "tea", 1.0, first + day * number) for number in range(4)]
    drift = SimpleNamespace(changed=True, tested=1, verdict="moved")
    monkeypatch.setattr(panels, "drift_of", lambda *_: (None, drift))
    seen: list[Any] = []
    monkeypatch.setattr(panels, "drift_section", lambda *given: seen.append(given))
    asked: Any = SimpleNamespace(latest=lambda *_: (records, False), model=lambda _: SimpleNamespace(no_choice=None))
    question = {"records": 8, "alarms": [{"choice": 3.0}, {"choice": 7.0}], "follows": True}
    points = [states.CoursePoint(8, 0.0, 8.0, None, None)]
    _, change = panels.PanelAnswerer._over_time(asked, question, points)
    assert change == {"label": "Changed on 13 March", "words": "moved"}
    _, slices, spans, _, unit, alarms, _ = seen[0]
    assert (unit, alarms) == ("record", [first + 2 * day])
    assert spans[0][0] == first
    assert spans[-1][1] == first + 3 * day
    assert sum(part.observations for part in slices) == 4.0


def test_a_learner_pauses_only_where_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """More to learn: at once. Nothing: after a pause. A failed write: in a second. A damaged log: at the end."""
    steps: list[Any] = [True, True, False, sqlite3.OperationalError("full"), DamagedLogError("page 7"), None]
    waits: list[Any] = []

    class Stop:
        def is_set(self) -> bool:
            return len(steps) == 1

        def wait(self, seconds: float | None = None) -> None:
            waits.append(seconds)

    def step() -> bool:
        found = steps.pop(0)
        if isinstance(found, Exception):
            raise found
        return bool(found)

    said: list[Any] = []
    monkeypatch.setattr(states, "set_problem", lambda *given: said.append(given[1:]))
    monkeypatch.setattr(learner, "note", lambda *_, **__: None)
    one: Any = SimpleNamespace(step=step, close=lambda: None, store=None)
    with ExitStack() as stack:
        learner._follow(one, stack, Stop())  # type: ignore[arg-type]
    assert waits == [0.0, 0.0, learner.PAUSE, 1.0, None]
    assert said == [(0, 0, None), (0, 0, "page 7")]
