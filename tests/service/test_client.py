"""The client: what it sends again, what it does not, and what it says."""

import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

import rankstream as rs
from local_service import CAFE, TEA, Shop, shop


class Way(httpx.BaseTransport):
    """A way to a service in this process, on which answers get lost."""

    def __init__(self, opened: Shop, *mishaps: Any) -> None:
        self.opened, self.mishaps, self.tries = opened, list(mishaps), 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.tries += 1
        mishap = self.mishaps.pop(0) if self.mishaps else None
        if isinstance(mishap, httpx.Response):
            return mishap
        if mishap == "lost":
            raise httpx.ConnectError("nobody there")
        found = self.opened.http.request(
            request.method, request.url.raw_path.decode(), content=request.read(), headers=request.headers
        )
        if mishap == "lost on the way back":
            raise httpx.ReadError("gone")
        return httpx.Response(found.status_code, content=found.content, headers=found.headers)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it waited, without waiting."""
    found: list[float] = []
    monkeypatch.setattr("rankstream.service.client.time.sleep", found.append)
    return found


def test_a_batch_counts_once_though_its_answer_is_lost(tmp_path: Path, waits: list[float]) -> None:
    with shop(tmp_path) as opened:
        busy = httpx.Response(429, json={"error": "Later."}, headers={"Retry-After": "3"})
        full = httpx.Response(503, json={"error": "Later."})
        way = Way(opened, "lost", "lost on the way back", busy, full)
        with rs.Client("http://localhost/", transport=way) as client:
            assert client.send("cafe", [TEA, rs.Record(("tea", "pie"), "pie", 2.0, 5.0)]) == 2
            assert way.tries == 5
            assert waits == [0.1, 0.2, 3.0, 0.8]
            assert client.send("cafe", TEA, key="mine") == 3
            assert client.send("cafe", TEA, key="mine") == 3
            assert client.send("cafe", rs.Record(("tea", "pie"), "pie")) == 4


def test_it_gives_up_in_a_sentence(tmp_path: Path, waits: list[float]) -> None:
    with shop(tmp_path) as opened:
        with rs.Client("http://localhost", transport=Way(opened, *["lost"] * 9), retries=2) as client:
            with pytest.raises(
                ValueError, match=r"http://localhost cannot be reached \(ConnectError\): is it running\?"
            ):
                client.markets()
            assert len(waits) == 2
        refused = httpx.Response(503, json={"error": "The disk is full."})
        with (
            rs.Client("http://localhost", transport=Way(opened, refused), retries=0) as client,
            pytest.raises(ValueError, match=r"The service answered 503: The disk is full\."),
        ):
            client.markets()


def test_what_is_refused_is_not_sent_again(tmp_path: Path, waits: list[float]) -> None:
    with shop(tmp_path) as opened:
        way = Way(opened, httpx.Response(500, text="no JSON"))
        with rs.Client("http://localhost", transport=way) as client:
            with pytest.raises(ValueError, match=r"500: The service gave no reason\."):
                client.markets()
            with pytest.raises(ValueError, match=r"422: Record 0 is wrong: its choice 'rum'"):
                client.send("cafe", {**TEA, "chosen": "rum"})
            assert (way.tries, waits) == (2, [])
            with pytest.raises(ValueError, match=r"422: A market cannot be called"):
                client.send("a,b", TEA)


def test_settings_and_answers(tmp_path: Path) -> None:
    with shop(tmp_path) as opened, rs.Client("http://localhost", "rs_x_y", transport=Way(opened)) as client:
        client.send("cafe", CAFE)
        assert client.settings("cafe", served="sparse")["served"] == "sparse"
        assert client.settings("cafe")["served"] == "sparse"
        changed = client.settings("cafe", {"window": 500, "served": None}, seed=3)
        assert (changed["window"], changed["served"], changed["seed"]) == (500, "max-entropy", 3)
        assert client.settings("cafe", {"served": "sparse"})["window"] == 500
        opened.learn()
        assert [one["market"] for one in client.markets()] == ["cafe"]
        assert isinstance(client.model("cafe"), rs.RankingModel)
        assert sum(client.predict("cafe", [("tea", "pie")])[0].values()) == pytest.approx(1.0)
        assert json.dumps(client.certificate("cafe"))


def test_without_httpx_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ValueError, match=r'pip install "\.\[serve\]"'):
        rs.Client("http://localhost")


def test_a_level_of_confidence_is_sent_where_there_is_one() -> None:
    sent: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content))
        return httpx.Response(200, json={"predictions": []})

    with rs.Client("http://127.0.0.1:1", transport=httpx.MockTransport(answer)) as client:
        client.predictions("cafe", [("tea", "pie")], interval=0.9)
        client.predictions("cafe", [("tea", "pie")])
    assert sent == [{"offers": [["tea", "pie"]], "interval": 0.9}, {"offers": [["tea", "pie"]]}]


def test_events_that_are_refused_are_an_error_with_the_sentence() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path != "/v1/markets/cafe/events":
            return httpx.Response(404, json={"error": "There is no market 'bar'."})
        return httpx.Response(200, text='event: records\ndata: {"records": 1}\n\ndata: {"records": 2}\n\n: alive\n\n')

    with rs.Client("http://127.0.0.1:1", transport=httpx.MockTransport(answer)) as client:
        assert list(client.events("cafe")) == [("records", {"records": 1}), ("records", {"records": 2})]
        with pytest.raises(ValueError, match=r"^The service answered 404: There is no market 'bar'\.$"):
            next(client.events("bar"))
