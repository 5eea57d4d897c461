"""The service as it is run: processes that are killed, signals, two servers, and work on a folder that is served."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import uvicorn

import live
import rankstream as rs
from local_service import CAFE, TEA
from rankstream.service import run as running
from rankstream.service.hub import Options, Service
from rankstream.service.run import make_app
from rankstream.service.storage import maintenance as folders
from rankstream.service.storage import states as store
from rankstream.service.storage import tokens
from rankstream.service.storage.log import existing_log, market_rows
from service import Served, kills
from strategies import compiled_only
from waits import patient_client, wait_for

pytestmark = pytest.mark.server
ROOT = Path(__file__).parents[2]


def test_every_acknowledged_batch_counts_once_whatever_is_killed() -> None:
    said: list[str] = []
    kills(3, seed=5, say=said.append)
    assert len([line for line in said if "killed the" in line]) == 3
    assert "each counted once or not at all" in said[-1]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for what does no harm to it."""
    found = Served(tmp_path_factory.mktemp("served") / "shop")
    yield found
    assert found.stop() == 0  # after SIGTERM


def learned(client: rs.Client, market: str) -> bool:
    return any(one["market"] == market and one["learned"] == one["records"] for one in client.markets())


@compiled_only
def test_from_choices_to_answers(served: Served) -> None:
    with patient_client(served.url) as client:
        assert client.send("cafe", CAFE * 3) == 3 * len(CAFE)
        wait_for(lambda: learned(client, "cafe") and client.markets()[0]["kind"] == "max-entropy")
        (shares,) = client.predict("cafe", [["tea", "nothing"]])
        assert shares == pytest.approx(client.model("cafe").predict(["tea", "nothing"]))
        margins = {"tea": 1.0, "pie": 3.0, "cake": 2.0}
        assert client.decide("cafe", margins, at_most=1)["proven"]
        assert client.next_offer("cafe", margins, how="greedy", at_most=1)["how"] == "greedy"
        assert client.segments("cafe", 2)
        assert {one["item"] for one in client.substitution("cafe")} == {"tea", "pie", "cake", "nothing"}
        assert client.certificate("cafe")["gap"] >= 0.0
        assert client.drift("cafe", 100)["tested"] == 2


def test_events_arrive(served: Served) -> None:
    with patient_client(served.url) as client:
        client.send("events", rs.Record(("tea", "pie"), "tea", 5, 7.0))
        client.settings("events", served="sparse")
        names: set[str] = set()
        for name, content in client.events("events"):
            names.add(name)
            assert content
            if names >= {"records", "gap"}:
                break
        assert names == {"records", "gap"}  # and not the end of the stream
        with pytest.raises(ValueError, match=r"answered 404: Unknown market"):
            next(client.events("nowhere"))


def test_a_second_server_on_the_folder_is_refused(served: Served) -> None:
    command = [sys.executable, "-m", "rankstream", "serve", "run", str(served.folder), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        f"rankstream: Another process is writing to {served.folder}: stop it first, or choose another folder.\n"
    )


def test_the_folder_can_be_worked_on_meanwhile(served: Served, tmp_path: Path) -> None:
    stop, sent = threading.Event(), [0]

    def send() -> None:
        with patient_client(served.url) as client:
            while not stop.is_set():
                client.send("busy", [TEA] * 10)
                sent[0] += 10

    sender = threading.Thread(target=send)
    sender.start()
    try:
        wait_for(lambda: sent[0] >= 50)
        with patient_client(served.url) as client:
            client.send("other", CAFE)
            client.settings("other", served="sparse")
            wait_for(lambda: learned(client, "other"))
            assert folders.export(served.folder, "other", tmp_path / "other.parquet") == len(CAFE)
            assert folders.backup(served.folder, tmp_path / "shop.zip") > 0
            assert folders.purge(served.folder, "other") == len(CAFE)
            assert "other" not in {one["market"] for one in client.markets()}
            with pytest.raises(ValueError, match="404"):
                client.certificate("other")
            assert client.send("other", TEA) == 1
            folders.purge(served.folder, "other")
    finally:
        stop.set()
        sender.join()
    with patient_client(served.url) as client:
        assert next(one["records"] for one in client.markets() if one["market"] == "busy") == sent[0]
        folders.purge(served.folder, "busy")
    restored = tmp_path / "restored"
    with ZipFile(tmp_path / "shop.zip") as archive:
        archive.extractall(restored)
    connection, learner = existing_log(restored), store.open_store(restored)
    rows = {row.name: row for row in market_rows(connection)}
    assert rows["other"].records == len(CAFE)
    assert store.positions(learner)[rows["other"].id][1] == len(CAFE)
    for epoch, position in store.positions(learner).values():
        assert position <= max(row.records for row in rows.values() if row.epoch == epoch)
    connection.close()
    learner.close()


def test_tokens_are_taken_while_it_runs(served: Served) -> None:
    made = tokens.create(served.folder, ["own"], ["write"])
    try:
        with patient_client(served.url, made) as allowed, patient_client(served.url) as nobody:
            assert allowed.send("own", TEA) == 1
            with pytest.raises(ValueError, match=r"answered 401: This needs a token"):
                nobody.send("own", TEA)
    finally:
        tokens.revoke(served.folder, made.split("_")[1])


def test_a_signal_drains_and_saves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Within this process: requests under way are answered, listeners are let go, and the learner saves."""
    said: list[str] = []

    def use(address: str) -> None:
        with patient_client(address) as client:
            client.send("cafe", CAFE)
            for name, _ in client.events("cafe"):
                if not said:
                    os.kill(os.getpid(), signal.SIGTERM)
                said.append(name)
        said.append("let go")

    running.run(
        tmp_path / "shop", "localhost", 0, Options(), lambda at: threading.Thread(target=use, args=(at,)).start()
    )
    wait_for(lambda: said[-1] == "let go")
    assert said[0] == "records"
    assert '"everything is saved"' in capsys.readouterr().err
    assert json.loads((tmp_path / "shop" / "running.json").read_text())["pid"] == os.getpid()
    connection, learner = existing_log(tmp_path / "shop"), store.open_store(tmp_path / "shop")
    assert market_rows(connection)[0].records == len(CAFE)
    connection.close()
    learner.close()


def test_the_learner_saves_while_requests_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a failure that the event loop meets a thousand times is one line."""
    said: list[str] = []

    async def fail(*_: object) -> None:
        for _time in range(1000):  # as asyncio does where no file descriptor is left for a connection
            asyncio.get_running_loop().call_exception_handler({"message": "socket.accept() out of system resource"})
        said.append("served")

    async def drain(*_: object) -> None:
        said.append("drained")

    monkeypatch.setattr(uvicorn.Server, "serve", fail)
    monkeypatch.setattr(uvicorn.Server, "shutdown", drain)
    monkeypatch.setattr(running, "note", lambda event, **_: said.append(event))
    service = Service(tmp_path, Options())
    monkeypatch.setattr(service.supervisor, "ask_to_end", lambda: said.append("asked to end"))
    server = running.Server(uvicorn.Config(make_app(service)), service)
    asyncio.run(server.serve())
    asyncio.run(server.shutdown())
    service.close()
    assert said == ["the event loop failed", "served", "asked to end", "drained", "asked to end"]


def test_a_folder_whose_files_do_not_belong_together_is_not_served(tmp_path: Path) -> None:
    with closing(store.open_store(tmp_path)) as learned:
        store.save_market(learned, 7, store.Learned(1, 1260, b""), None, None)
    command = [sys.executable, "-m", "rankstream", "serve", "run", str(tmp_path), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "rankstream: The log lacks a market of which 1,260 records were learned. Restore both"
    )
    assert done.stderr.endswith(f"'rankstream serve rebuild {tmp_path}'.\n")


def test_small_answers_are_sent_at_once() -> None:
    with running.listening("127.0.0.1", 0) as (listener, address):
        assert listener.proto == socket.IPPROTO_TCP  # or else asyncio lets them wait for 40 ms
        assert address == f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_an_address_of_version_6_is_in_brackets(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bound to 127.0.0.1, as not every machine has version 6."""
    asked = []

    class Bound(socket.socket):
        def bind(self, address: Any) -> None:
            asked.append(address)
            super().bind(("127.0.0.1", 0))

    def listener(kind: int, *more: int) -> socket.socket:
        asked.append(kind)
        return Bound(socket.AF_INET, *more)

    monkeypatch.setattr(socket, "socket", listener)
    with running.listening(host, 8000) as (bound, address):
        assert address == f"http://[::1]:{bound.getsockname()[1]}"
    assert asked == [socket.AF_INET6, ("::1", 8000, 0, 0)]


def test_an_address_that_is_taken_is_a_sentence(served: Served, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"is not available \(Address already in use\): choose another port"):
        running.run(tmp_path / "shop", "127.0.0.1", served.port, Options(), lambda _: None)


@compiled_only
def test_the_first_lines_of_the_documentation(tmp_path: Path) -> None:
    """From install to a first prediction, as the page says, but for the install and the port."""
    text = (ROOT / "docs" / "how-to" / "serve.md").read_text(encoding="utf-8")
    install, start, *rest = [line.strip() for line in text.splitlines() if line.startswith("    ")][:4]
    assert install == 'pip install ".[serve]"'
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    ours = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    lines = [start.replace(" &", f" --port {port} 2> log &"), *(line.replace("8000", port) for line in rest)]
    script = "\n".join([*lines, "kill -TERM $!", "wait $!"])
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=os.environ | {"PATH": ours}, capture_output=True)
    assert done.returncode == 0, (tmp_path / "log").read_text()
    assert b'"predictions":[{"offer":["tea","nothing"],"shares":{"tea":' in done.stdout, done.stdout


class PausesOnly:
    """A clock on which nothing but pauses takes time, and pauses take none of ours."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@compiled_only
def test_a_market_whose_tastes_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "time", PausesOnly())
    live.main([str(tmp_path / "shop"), "--port", "0", "--seconds", "3", "--change", "1.5"])
    text = capsys.readouterr().out
    assert "tastes change after 1.5 s" in text
    connection = existing_log(tmp_path / "shop")
    assert market_rows(connection)[0].records == live.BATCH + (3 * live.RATE + live.BATCH)  # the first, then the rate
    connection.close()
