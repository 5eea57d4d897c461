"""The supervisor with a learner that is not a process: what it asks of it, when it gives up, and how long it waits."""

import signal
import subprocess
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from rankstream.service import run as service_run
from rankstream.service.hub import Options
from rankstream.service.processes import supervisor
from rankstream.service.processes.supervisor import Supervisor

pytestmark = pytest.mark.quick


class Learner:
    """A learner that ends when its input is closed, or never."""

    def __init__(self, hangs: bool = False) -> None:
        self.hangs, self.asked = hangs, list[Any]()
        self.returncode: int | None = None
        self.stdin = SimpleNamespace(close=self._close)

    def _close(self) -> None:
        self.asked.append("close")
        self.returncode = None if self.hangs else 0

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self.asked.append(("wait", timeout))
        if self.returncode is None:
            raise subprocess.TimeoutExpired("learner", timeout or 0.0)
        return self.returncode

    def kill(self) -> None:
        self.asked.append("kill")
        self.returncode = -9


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """A clock that goes on when it is told to."""
    now = [100.0]

    def go_on(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr("rankstream.service.processes.supervisor.time.monotonic", lambda: now[0])
    return go_on


def watched_by(learner: Any) -> Supervisor:
    watched = Supervisor("folder")
    watched.process = learner
    return watched


@pytest.mark.usefixtures("clock")
def test_a_learner_is_asked_to_end_and_waited_for() -> None:
    learner = Learner()
    watched = watched_by(learner)
    assert watched.is_alive
    watched.end()
    assert learner.asked == ["close", ("wait", 6.0)]
    assert not watched.is_alive


def test_a_learner_that_hangs_is_killed_at_its_time(clock: Callable[[float], None]) -> None:
    learner = Learner(hangs=True)
    watched = watched_by(learner)
    watched.ask_to_end()
    clock(2.0)
    watched.ask_to_end()  # its time began when it was asked first
    clock(1.5)
    watched.end(timeout=5.0)
    assert learner.asked == ["close", "close", "close", ("wait", 1.5), "kill", ("wait", None)]
    late = watched_by(Learner(hangs=True))
    late.ask_to_end()
    clock(60.0)
    late.end(timeout=5.0)
    assert late.process.asked[2] == ("wait", 0.0)  # type: ignore[union-attr]


def test_without_a_learner_there_is_nothing_to_wait_for() -> None:
    watched = Supervisor("folder")
    assert not watched.is_alive
    watched.end()
    watched.process = Learner()  # type: ignore[assignment]
    watched.process.stdin = None  # type: ignore[union-attr]
    watched.ask_to_end()
    assert watched.process.asked == []  # type: ignore[union-attr]


def test_a_learner_that_dies_is_started_again_after_ever_longer_pauses(
    monkeypatch: pytest.MonkeyPatch, clock: Callable[[float], None]
) -> None:
    noted: list[tuple[str, Any]] = []
    monkeypatch.setattr(supervisor, "note", lambda event, **facts: noted.append((event, facts)))
    lives = [0.0, 60.0, 61.0, 0.0, *[0.0] * 9]  # seconds of each learner
    started: list[tuple[Any, ...]] = []

    def start(*words: Any, **how: Any) -> Any:
        started.append((*words, how))
        if len(started) == 2:
            raise OSError(24, "Too many open files")

        def wait() -> int:
            clock(lives[len(started) - 1])
            return 7

        return SimpleNamespace(wait=wait, stdin=None, poll=lambda: None)

    monkeypatch.setattr(supervisor, "start", start)
    watched = Supervisor("folder")
    watched._stop = SimpleNamespace(is_set=lambda: len(started) > 12, wait=clock)  # type: ignore[assignment]
    watched._try_to_start()
    watched._run()
    assert set(map(repr, started)) == {repr(("processes.learner", "folder", {"answers": False}))}
    pauses = [(facts["code"], facts["seconds"]) for event, facts in noted if event == "restarting the learner"]
    growing = [min(0.2 * 2.0**n, 30.0) for n in range(1, 12)]
    # the second could not be started; the third lived for more than a minute, after which pauses are short again
    assert pauses == [(7, 0.2), (None, 0.4), (7, 0.2), *((7, pause) for pause in growing[:9])]
    assert ("the learner could not be started", {"kind": "OSError"}) in noted
    assert watched.restarts == 12


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_learner_of_a_database_ends_with_a_signal(monkeypatch: pytest.MonkeyPatch, kind: signal.Signals) -> None:
    handlers: dict[int, Callable[..., Any]] = {}
    asked: list[str] = []
    monkeypatch.setattr("rankstream.service.run.signal.signal", handlers.__setitem__)
    database = SimpleNamespace(close=lambda: asked.append("checked"))
    monkeypatch.setattr(service_run, "open_log", lambda url: database if url == "postgresql://shop" else None)
    ends = {name: lambda name=name: asked.append(name) for name in ("begin", "end")}
    monkeypatch.setattr(service_run, "Supervisor", lambda _: SimpleNamespace(**ends))

    def ready() -> None:
        asked.append("ready")
        handlers[kind](kind, None)

    service_run.learn("postgresql://shop", ready)
    assert handlers.keys() == {signal.SIGINT, signal.SIGTERM}
    assert asked == ["checked", "begin", "ready", "end"]


def test_options_of_a_server_that_is_told_nothing() -> None:
    plain = Options()
    assert (plain.seed, plain.keep, plain.hosts, plain.link) == (0, None, (), None)
    assert plain.new_markets
    assert plain.learns
