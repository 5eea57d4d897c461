"""Pauses before a learner is started again, and how long it has to save: with processes and clocks that are told."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from rankstream.service.processes import supervisor
from rankstream.service.processes.supervisor import Supervisor

pytestmark = pytest.mark.quick


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


class Process:
    """A learner that lives for some seconds, and then ends with a code."""

    def __init__(self, clock: Clock, lives: float = 0.0, code: int | None = 1) -> None:
        self.clock, self.lives, self.code, self.calls = clock, lives, code, list[Any]()
        self.stdin: Any = self

    def close(self) -> None:
        self.calls.append("input closed")

    def wait(self, timeout: float | None = None) -> int | None:
        self.calls.append(timeout)
        if timeout is not None and self.lives > timeout:
            raise subprocess.TimeoutExpired("learner", timeout)
        self.clock.now += self.lives
        return self.code

    def poll(self) -> int | None:
        return self.code

    def kill(self) -> None:
        self.calls.append("killed")
        self.lives = 0.0


def watched(
    monkeypatch: pytest.MonkeyPatch, lives: list[float | None], stop_after: int
) -> tuple[list[Any], Supervisor, list[Process]]:
    """What is noted of learners that live so long, None for one that cannot be started."""
    clock, notes, made, pauses = Clock(), list[Any](), list[Process](), list[float]()
    monkeypatch.setattr(supervisor, "time", clock)
    monkeypatch.setattr(supervisor, "note", lambda text, **facts: notes.append((text, facts)))
    left = list(lives)

    def start(*given: Any, **named: Any) -> Process:
        assert (given[0], named) == ("processes.learner", {"answers": False})
        lasts = left.pop(0)
        if lasts is None:
            raise BlockingIOError
        made.append(Process(clock, lasts))
        return made[-1]

    monkeypatch.setattr(supervisor, "start", start)
    found = Supervisor(Path("folder"))

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        if len(pauses) == stop_after:
            found._stop.set()
        return False

    monkeypatch.setattr(found._stop, "wait", wait)
    found._try_to_start()
    found._run()
    return [(text, *facts.values()) for text, facts in notes], found, made


def test_pauses_double_up_to_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    notes, found, made = watched(monkeypatch, [1.0] * 12, 10)
    pauses = [seconds for _, _, seconds in notes]
    assert pauses == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0])
    assert {(text, code) for text, code, _ in notes} == {("restarting the learner", 1)}
    assert (found.restarts, len(made)) == (10, 10)
    assert all("input closed" in process.calls for process in made[:-1])


def test_a_minute_without_a_failure_makes_the_next_pause_short(monkeypatch: pytest.MonkeyPatch) -> None:
    notes, _, _ = watched(monkeypatch, [1.0, 1.0, 60.0, 60.1, 1.0, 1.0], 6)
    assert [seconds for _, _, seconds in notes] == pytest.approx([0.2, 0.4, 0.8, 0.2, 0.4, 0.8])


def test_a_learner_that_cannot_be_started_is_noted_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    notes, found, made = watched(monkeypatch, [None, 1.0, None, 1.0], 4)
    words = ["the learner could not be started", "restarting the learner"]
    assert [note[0] for note in notes] == [words[0], words[1], words[1], words[0], words[1], words[1]]
    assert notes[0][1] == "BlockingIOError"
    assert notes[1][1:] == (None, 0.2)
    assert (found.restarts, len(made)) == (4, 2)


def test_a_learner_is_alive_until_it_has_a_code() -> None:
    found: Any = Supervisor(Path("folder"))
    assert not found.is_alive
    found.process = Process(Clock(), code=None)
    assert found.is_alive
    found.process.code = 0
    assert not found.is_alive


@pytest.mark.parametrize(
    ("lives", "asked_before", "is_killed"), [(5.9, 0.0, False), (6.1, 0.0, True), (3.9, 2.0, False), (4.1, 2.0, True)]
)
def test_a_learner_has_six_seconds_to_save_since_it_was_asked(
    monkeypatch: pytest.MonkeyPatch, lives: float, asked_before: float, is_killed: bool
) -> None:
    clock = Clock()
    monkeypatch.setattr(supervisor, "time", clock)
    found: Any = Supervisor(Path("folder"))
    found.process = process = Process(clock, lives)
    found.ask_to_end()
    clock.now += asked_before
    found.end()
    assert process.calls[0] == "input closed"
    assert ("killed" in process.calls) == is_killed
    assert [call for call in process.calls if isinstance(call, float)] == pytest.approx([6.0 - asked_before])
    found.process = None
    found.end()  # nothing to wait for


def test_time_that_is_over_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(supervisor, "time", clock)
    found: Any = Supervisor(Path("folder"))
    found.process = process = Process(clock, 1.0)
    found.ask_to_end()
    clock.now += 60.0
    found.end(timeout=2.0)
    assert [call for call in process.calls if isinstance(call, float)] == [0.0]
    assert "killed" in process.calls
