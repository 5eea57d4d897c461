"""A service within this process: what its other processes do is done at once, where it can be watched."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx

from rankstream.service.hub import Options, Service
from rankstream.service.page.market import Pages
from rankstream.service.processes.learner import LogLearner
from rankstream.service.processes.panels import PanelAnswerer
from rankstream.service.processes.questions import Answerer
from rankstream.service.processes.refits import RefitAnswerer
from rankstream.service.processes.worker import Worker
from rankstream.service.run import make_app
from rankstream.streams.background import refreshed
from waits import LONG

SMALL = {"served": "sparse"}
TEA = {"offered": ["tea", "pie", "nothing"], "chosen": "tea"}
PIE = {"offered": ["tea", "pie", "nothing"], "chosen": "pie"}
CAKE = {"offered": ["cake", "nothing"], "chosen": "cake"}
NONE = {"offered": ["cake", "nothing"], "chosen": "nothing"}
CAFE = [TEA] * 12 + [PIE] * 6 + [CAKE] * 10 + [NONE] * 8


class AtOnce(Worker):
    """A worker in this process."""

    def __init__(self, folder: Path, answers: type[Answerer] = PanelAnswerer) -> None:
        super().__init__("asking", str(folder))
        self.asked = answers(folder)

    def ask(self, question: Any) -> Any:
        return self.asked.answer(question)

    def close(self) -> None:
        super().close()
        self.asked.close()


class Requests:
    """Requests to an application in this process, whose event loop runs in a thread: several may be sent at once."""

    def __init__(self, app: Any) -> None:
        self.app, self._loop = app, asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever)
        self._thread.start()
        transport = httpx.ASGITransport(app)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(LONG)

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        found: httpx.Response = self.run(self._client.request(method, path, **more))
        return found

    def close(self) -> None:
        self.run(self._client.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Shop:
    """A service, and a client that sends requests to it."""

    def __init__(self, folder: Path, options: Options) -> None:
        self.folder = folder
        self.service = Service(folder, options)
        self.service.quick, self.service.slow, self.service.search = (AtOnce(folder) for _ in range(3))
        self.http = Requests(make_app(self.service))

    def send(self, market: str, records: Any, **headers: str) -> Any:
        return self.http.request("POST", f"/v1/markets/{market}/choices", json={"records": records}, headers=headers)

    def get(self, path: str, **headers: str) -> Any:
        return self.http.request("GET", f"/v1/markets{path}", headers=headers)

    def post(self, path: str, content: Any, **headers: str) -> Any:
        return self.http.request("POST", f"/v1/markets{path}", json=content, headers=headers)

    def settle(self, market: str, **settings: Any) -> Any:
        return self.http.request("PUT", f"/v1/markets/{market}/settings", json=settings)

    def learn(self) -> None:
        """Learn everything that has come, and make every model that is due."""
        learner = LogLearner(self.folder, refreshed)
        limit = time.monotonic() + LONG
        try:
            while learner.step(at_once=True) or learner._refreshing is not None:
                assert time.monotonic() < limit
        finally:
            learner.close()


@contextmanager
def shop(folder: Path, **options: Any) -> Iterator[Shop]:
    folder.mkdir(exist_ok=True)
    opened = Shop(folder, Options(**options))
    try:
        yield opened
    finally:
        opened.http.close()
        opened.service.close()


def drawn(one: Shop) -> Shop:
    """A service whose pages are made in this process, and wait for that on a machine that has other work, too."""
    Pages.first_seconds = LONG
    one.service.refitting = AtOnce(one.folder, RefitAnswerer)
    return one


def error(answer: Any) -> tuple[int, str]:
    """The status of an answer, and the sentence in it."""
    return answer.status_code, answer.json()["error"]
