"""The processes of the service: started again where they die, and gone when whoever started them is."""

import json
import os
import pickle
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from local_service import CAFE, shop
from rankstream.service.journal import note
from rankstream.service.limits import ServiceLimits
from rankstream.service.processes import supervisor
from rankstream.service.processes import worker as child
from rankstream.service.processes.supervisor import Supervisor
from rankstream.service.processes.worker import Worker
from rankstream.service.run import DRAIN
from rankstream.streams.background import BackgroundLive
from rankstream.streams.live import Record
from waits import LONG, patient_client, wait_for

pytestmark = pytest.mark.server


def test_a_dead_learner_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "FIRST_PAUSE", 0.01)
    with shop(tmp_path):
        watched = Supervisor(tmp_path)
        watched.begin()
        pid = watched.process.pid if watched.process else 0
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: watched.restarts == 1 and watched.is_alive)
        assert watched.process is not None
        assert watched.process.pid != pid
        watched.end(timeout=LONG)
        assert watched.process.returncode == 0
        assert not watched.is_alive


def test_a_learner_that_cannot_be_started_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where file descriptors or processes are used up: one line for every attempt, and learning once it can be."""
    monkeypatch.setattr(supervisor, "FIRST_PAUSE", 0.01)
    real, attempts = child.start, [0]

    def scarce(*words: str, answers: bool) -> "subprocess.Popen[bytes]":
        attempts[0] += 1
        if attempts[0] <= 4:
            raise OSError(24, "Too many open files")
        return real(*words, answers=answers)

    monkeypatch.setattr(supervisor, "start", scarce)
    with shop(tmp_path):
        watched = Supervisor(tmp_path)
        watched.begin()
        assert not watched.is_alive
        wait_for(lambda: watched.is_alive)
        watched.end(timeout=LONG)
        assert watched.process is not None
        assert watched.process.returncode == 0
    lines = capsys.readouterr().err.splitlines()
    assert attempts[0] == 5
    assert sum("could not be started" in line for line in lines) == 4
    assert len(lines) <= 8
    pauses = [json.loads(line)["seconds"] for line in lines if "restarting" in line]
    assert pauses == pytest.approx([0.01, 0.02, 0.04, 0.08])


def test_a_supervisor_that_never_started_anything_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def scarce(*_: str, **__: bool) -> "subprocess.Popen[bytes]":
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(supervisor, "start", scarce)
    watched = Supervisor(tmp_path)
    watched.begin()
    watched.end()
    assert watched.process is None


def test_a_signal_to_the_learners_group_ends_it_cleanly(tmp_path: Path) -> None:
    """The interpreter must not abort over the thread that reads standard input, nor lose what was learned."""
    with shop(tmp_path) as opened:
        opened.send("cafe", CAFE)
        opened.settle("cafe", seed=3)
        command = [sys.executable, "-c", child.START.format(module="processes.learner"), str(tmp_path)]
        learner = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)
        wait_for(lambda: learner.poll() or opened.get("").json()["markets"][0]["learned"] == len(CAFE))
        os.killpg(learner.pid, signal.SIGTERM)
        assert learner.wait(LONG) == 0
        assert learner.stdin is not None
        learner.stdin.close()


@pytest.mark.parametrize("kind", ["full", "pipe", "closed"])
def test_a_standard_error_that_cannot_be_written_fails_nothing(tmp_path: Path, kind: str) -> None:
    redirected = {"full": "2> /dev/full", "pipe": "2> >(true)", "closed": "2>&-"}[kind]
    words = f'"{sys.executable}" -m rankstream serve run "{tmp_path}" --port 0 --json {redirected}'
    server = subprocess.Popen(["bash", "-c", f"exec {words}"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    with server.stdout:
        with patient_client(json.loads(server.stdout.readline())["url"]) as client:
            client.send("cafe", CAFE)
            client.settings("cafe", served="sparse")
            wait_for(lambda: client.markets()[0]["learned"] == len(CAFE))
            assert client.predict("cafe", [["tea", "nothing"]])  # by another process
        server.terminate()
        assert server.wait(LONG) == 0


def test_a_line_that_cannot_be_written_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    while select.select([], [write], [], 0)[1]:
        os.write(write, b"x" * 4096)
    os.set_blocking(write, True)  # a pipe that is full, and whose reader hangs
    with os.fdopen(write, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        writer = Thread(target=note, args=("nobody reads this",))
        writer.start()
        writer.join(LONG / 10)
        hangs = writer.is_alive()
        os.close(read)  # which ends a write that hangs
        writer.join()
    assert not hangs
    for broken in (None, stream):
        monkeypatch.setattr(sys, "stderr", broken)
        note("nor this")


def test_commands_do_not_fail_over_standard_error(tmp_path: Path) -> None:
    words = f'"{sys.executable}" -m rankstream serve backup "{tmp_path}" "{tmp_path}/x.zip" 2> /dev/full'
    assert subprocess.run(["bash", "-c", words], check=False).returncode == 2  # and not 1 or 120


def test_a_worker_that_cannot_be_started_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def scarce(*_: str, **__: bool) -> "subprocess.Popen[bytes]":
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(child, "start", scarce)
    worker = Worker("processes.worker")
    with pytest.raises(ChildProcessError, match="could not be started"):
        worker.ask("a question")
    worker.close()


def test_a_learner_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        supervisor, "start", lambda *_, **__: subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    )
    watched = Supervisor(tmp_path)
    watched.begin()
    watched.end(timeout=0.1)
    assert watched.process is not None
    assert watched.process.returncode == -signal.SIGKILL


def test_the_learner_has_its_seconds_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It saves while requests end: both together, and not one after the other, take less than ten seconds."""
    assert max(DRAIN, supervisor.SAVE_SECONDS) <= 8.0
    sleeping = [sys.executable, "-c", "import time; time.sleep(600)"]
    monkeypatch.setattr(supervisor, "start", lambda *_, **__: subprocess.Popen(sleeping))
    watched = Supervisor(tmp_path)
    watched.begin()
    watched.ask_to_end()
    watched._ended_at -= 100.0
    assert watched.process is not None
    waits, own = list[float | None](), watched.process.wait

    def waited(timeout: float | None = None) -> int:
        waits.append(timeout)
        return own(None if timeout is None else min(timeout, 0.1))

    monkeypatch.setattr(watched.process, "wait", waited)
    watched.end(timeout=90.0)  # which are over
    assert waits[0] == 0.0
    assert watched.process.returncode == -signal.SIGKILL


def test_a_worker_is_started_again_where_it_died() -> None:
    job = BackgroundLive({})
    job.observe([Record(("tea", "pie"), "tea", 40), Record(("tea", "pie"), "pie", 20)], 2)
    worker = Worker("processes.worker")
    try:
        assert worker.ask("nonsense") is None
        first = worker.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: worker.pid is None)
        found = worker.ask(job.job())
        assert found["choices"] == 60.0
        assert worker.pid != first
    finally:
        worker.close()
    with pytest.raises(ChildProcessError, match="closed"):
        worker.ask(None)


def test_questions_are_answered_until_whoever_asks_is_gone() -> None:
    read, write = os.pipe()
    back, out = os.pipe()
    left, busy = Event(), Event()

    def make() -> Callable[[Any], Any]:
        seen: list[int] = []  # a lane's own

        def handle(number: int) -> int:
            seen.append(number)
            busy.wait(LONG) if number < 0 else None
            return sum(seen)

        return handle

    with os.fdopen(write, "wb") as source, os.fdopen(back, "rb") as answers:
        with os.fdopen(read, "rb") as questions, os.fdopen(out, "wb") as written:
            thread = Thread(target=child.answer, args=(make, questions, written, left.set))
            thread.start()
            for lane, number in ((0, -5), (1, 1), (1, 2)):  # the first one takes long: the others overtake it
                child.write_message(source, (lane, number))
            assert [child.read_message(answers), child.read_message(answers)] == [(1, 1), (1, 3)]
            busy.set()
            assert child.read_message(answers) == (0, -5)
            source.close()
            assert left.wait(LONG)
            thread.join()
        with pytest.raises(EOFError):
            child.read_message(answers)
    with pytest.raises(EOFError):
        child.read_message(BytesIO(pickle.dumps("cut")[:-3]))


def test_quick_questions_overtake_slow_ones_in_one_process(tmp_path: Path) -> None:
    with shop(tmp_path):
        slow = Worker("processes.batch_reader", str(tmp_path))
        quick = Worker(beside=slow)
        try:
            body = b'{"offered": ["tea"], "chosen": "tea"}\n'
            wide = ServiceLimits(records=10**9)
            under_way = [slow.submit((body * 50_000, True, wide)) for _ in range(8)]
            assert quick.submit((body, True, wide)).result(LONG)[0] == 200
            assert not under_way[-1].done()
            pid = slow.pid
            assert pid is not None
            assert pid == quick.pid
            os.kill(pid, signal.SIGKILL)
            for one in under_way[-2:]:  # the one that it died over, if any, and those that came behind it
                assert one.exception(LONG) is None or isinstance(one.exception(), ChildProcessError)
        finally:
            slow.close()
    with pytest.raises(ChildProcessError, match="closed"):
        quick.ask(None)


def test_a_worker_that_dies_over_a_question_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", "import sys; sys.stdin.buffer.read(1)"]
    monkeypatch.setattr(
        child, "start", lambda *_, **__: subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    )
    worker = Worker("processes.worker")
    with pytest.raises(ChildProcessError, match="died"):
        worker.ask("a question")
    assert (worker.pid, worker.waiting) == (None, 0)
    worker.close()


def test_a_question_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    monkeypatch.setattr(
        child, "start", lambda *_, **__: subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    )
    worker = Worker("processes.worker", timeout=0.1)
    first, second = worker.submit("a question"), worker.submit("another")
    assert worker.waiting == 2
    for one in (first, second):
        with pytest.raises(ChildProcessError, match="died"):
            one.result(LONG)
    wait_for(lambda: worker.waiting == 0)
    worker.close()
