"""The processes of the service: started again where they die, and gone when whoever started them is."""

import os
import signal
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from threading import Event

import pytest

from rankstream.service import child, supervisor
from rankstream.service.child import Worker
from rankstream.service.supervisor import Supervisor
from rankstream.streams.background import BackgroundLive
from rankstream.streams.live import Record
from serving import shop, wait_for


def test_a_dead_learner_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "FIRST", 0.01)
    with shop(tmp_path):
        watched = Supervisor(tmp_path)
        watched.begin()
        pid = watched.process.pid if watched.process else 0
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: watched.restarts == 1 and watched.is_alive)
        assert watched.process is not None
        assert watched.process.pid != pid
        watched.end()
        assert watched.process.returncode == 0
        assert not watched.is_alive


def test_a_learner_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        supervisor, "start", lambda *_, **__: subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    )
    watched = Supervisor(tmp_path)
    watched.begin()
    watched.end(patience=0.1)
    assert watched.process is not None
    assert watched.process.returncode == -signal.SIGKILL


def test_a_worker_is_started_again_where_it_died() -> None:
    job = BackgroundLive({})
    job.observe([Record(("tea", "pie"), "tea", 40), Record(("tea", "pie"), "pie", 20)], 2)
    worker = Worker("child")
    try:
        assert worker.ask("nonsense") is None
        first = worker.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: worker._process is not None and worker._process.poll() is not None)
        found = worker.ask(job.job())
        assert found["choices"] == 60.0
        assert worker.pid != first
    finally:
        worker.close()
    with pytest.raises(ChildProcessError, match="closed"):
        worker.ask(None)


def test_questions_are_answered_until_whoever_asks_is_gone() -> None:
    source, out, left = BytesIO(), BytesIO(), Event()
    for number in (1, 2):
        child.write_message(source, number)
    source.seek(0)
    child.answer(lambda number: 10 * number, source, out, left.set)
    out.seek(0)
    assert [child.read_message(out), child.read_message(out)] == [10, 20]
    assert left.wait(5)
    with pytest.raises(EOFError):
        child.read_message(out)


def test_a_worker_that_dies_over_a_question_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", "import sys; sys.stdin.buffer.read(1)"]
    monkeypatch.setattr(
        child, "start", lambda *_, **__: subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    )
    worker = Worker("child")
    with pytest.raises(ChildProcessError, match="died"):
        worker.ask("a question")
    assert (worker.pid, worker.waiting) == (None, 0)
    worker.close()


def test_a_question_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    monkeypatch.setattr(
        child, "start", lambda *_, **__: subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    )
    worker = Worker("child", patience=0.1)
    first, second = worker.submit("a question"), worker.submit("another")
    assert worker.waiting == 2
    for one in (first, second):
        with pytest.raises(ChildProcessError, match="died"):
            one.result(20)
    wait_for(lambda: worker.waiting == 0)
    worker.close()
