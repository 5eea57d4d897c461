"""The loop of the learner with a learner that does nothing: what ends it, what it tries again, and what it says."""

import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from rankstream.service.processes import learner
from rankstream.service.storage import leases, log, states
from waits import LONG

pytestmark = pytest.mark.quick


class Stop:
    """An event that is set after so many waits, and remembers how long they were."""

    def __init__(self, after: int) -> None:
        self.after, self.waits = after, list[float | None]()

    def is_set(self) -> bool:
        return len(self.waits) >= self.after

    def wait(self, seconds: float | None = None) -> bool:
        self.waits.append(seconds)
        return self.is_set()


class Learner:
    """Its steps end as they are told to."""

    def __init__(self, folder: Path, *steps: Any) -> None:
        self.store, self.steps, self.closed = states.open_store(folder), list(steps), 0

    def step(self) -> bool:
        found = self.steps.pop(0)
        if isinstance(found, Exception):
            raise found
        return bool(found)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is written to the log lines."""
    found: list[Any] = []
    monkeypatch.setattr(learner, "note", lambda event, **facts: found.append((event, *facts.values())))
    return found


def followed(one: Any, stop: Any) -> None:
    with ExitStack() as stack:
        learner._follow(one, stack, stop)
        assert one.closed == 0
    assert one.closed == 1


def test_it_goes_on_at_once_while_there_is_something_to_learn(tmp_path: Path, noted: list[Any]) -> None:
    one, stop = Learner(tmp_path, True, False, True), Stop(3)
    with closing(one.store):
        states.set_problem(one.store, 0, 0, "The log was damaged.")
        followed(one, stop)
        assert states.problems(one.store) == {}  # what was wrong before is over
    assert stop.waits == [0.0, learner.PAUSE, 0.0]
    assert noted == [("the learner is running",)]


def test_a_disk_that_is_full_is_tried_again_in_a_second(tmp_path: Path, noted: list[Any]) -> None:
    one, stop = Learner(tmp_path, sqlite3.OperationalError("disk full"), OSError(28, "full"), False), Stop(3)
    with closing(one.store):
        followed(one, stop)
        assert states.problems(one.store) == {}
    assert stop.waits == [1.0, 1.0, learner.PAUSE]
    words = "saving the models failed; retrying"
    assert noted[1:] == [(words, "OperationalError"), (words, "OSError")]


def test_a_damaged_log_is_said_and_nothing_is_tried(tmp_path: Path, noted: list[Any]) -> None:
    one, stop = Learner(tmp_path, log.DamagedLogError("Page 3 is damaged.")), Stop(1)
    with closing(one.store):
        followed(one, stop)
        assert states.problems(one.store) == {0: (0, "Page 3 is damaged.")}
    assert stop.waits == [None]  # until somebody ends it
    assert noted[1:] == [("the log is damaged",)]


def test_other_failures_end_the_process(tmp_path: Path) -> None:
    one = Learner(tmp_path, KeyError("a mistake"))
    with closing(one.store), pytest.raises(KeyError):
        followed(one, Stop(1))


def test_a_learner_waits_for_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noted: list[Any]) -> None:
    log.open_log(tmp_path).close()
    begun: list[Any] = []
    monkeypatch.setattr(learner, "_follow", lambda one, *_: begun.append(one))
    monkeypatch.setattr(learner, "LogLearner", lambda *given: given[:2])
    stop: Any = Stop(5)
    tries = [ValueError("It is in use."), ValueError("It is in use."), None]

    def own(folder: Path) -> Any:
        assert folder == tmp_path / "learner"
        if (error := tries.pop(0)) is not None:
            raise error
        return ExitStack()

    monkeypatch.setattr(learner, "own_folder", own)
    learner.learn(tmp_path, "a refresher", stop)  # type: ignore[arg-type]
    assert stop.waits == [learner.PAUSE] * 2
    assert begun == [(tmp_path, "a refresher")]
    assert (tmp_path / "learner" / "pid").read_text().isdecimal()
    assert noted == []


def test_a_damaged_store_is_put_aside_and_other_errors_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aside: list[Any] = []
    monkeypatch.setattr(states, "put_aside", lambda *given: aside.append(given))
    monkeypatch.setattr(learner, "LogLearner", lambda *_: None)
    errors = [sqlite3.DatabaseError("file is not a database"), sqlite3.DatabaseError("no such table")]
    errors[0].sqlite_errorcode = sqlite3.SQLITE_NOTADB

    def follow(*_: Any) -> None:
        raise errors.pop(0)

    monkeypatch.setattr(learner, "_follow", follow)
    for _ in range(2):
        with pytest.raises(sqlite3.DatabaseError):
            learner.learn(tmp_path, "a refresher", Stop(1))  # type: ignore[arg-type]
    assert aside == [(tmp_path, "damaged")]


def test_a_database_out_of_reach_is_tried_again(monkeypatch: pytest.MonkeyPatch, noted: list[Any]) -> None:
    ended: list[str] = []
    tries: list[Any] = [sqlite3.OperationalError("no route"), "a database"]

    def open_store(url: str) -> Any:
        assert url == "postgresql://shop"
        found = tries.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    class Leases:
        def __init__(self, *given: Any) -> None:
            assert given == ("a database", "a database")

        def beat(self) -> None:
            ended.append("beat")

        def end(self) -> None:
            ended.append("end")

        def keep(self, _: Any) -> Any:
            return type("Kept", (), {"join": lambda _: ended.append("join")})()

    monkeypatch.setattr(learner, "Leases", Leases)
    monkeypatch.setattr(states, "open_store", open_store)
    monkeypatch.setattr(learner, "LogLearner", lambda *given: given)
    stop: Any = Stop(2)

    def follow(one: Any, _: ExitStack, given: Any) -> None:
        assert one[0] == "postgresql://shop"
        ended.append("follow")
        given.wait(3.0)

    monkeypatch.setattr(learner, "_follow", follow)
    learner.learn("postgresql://shop", "a refresher", stop)  # type: ignore[arg-type]
    assert stop.waits == [1.0, 3.0]
    assert ended == ["beat", "follow", "join", "end"]
    assert noted == [("the database cannot be reached; trying again", "OperationalError")]


def test_leases_are_renewed_until_the_end_though_one_renewal_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[Any] = []
    monkeypatch.setattr(leases, "note", lambda event, **facts: noted.append((event, *facts.values())))
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.0)
    held, stop, beats = leases.Leases.__new__(leases.Leases), Event(), list[int]()

    def beat() -> None:
        beats.append(1)
        if len(beats) == 1:
            raise sqlite3.OperationalError("no route")
        if len(beats) == 3:
            stop.set()

    monkeypatch.setattr(held, "beat", beat)
    held.keep(stop).join(LONG / 10)
    assert len(beats) == 3
    assert noted == [("the leases could not be renewed", "OperationalError")]
