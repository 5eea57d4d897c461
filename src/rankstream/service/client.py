"""A client of the service: send choices, which count exactly once, and ask questions."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from rankstream._core.types import Label
from rankstream.models.files import model_in
from rankstream.streams.record import Record

if TYPE_CHECKING:
    import httpx

RETRIED_STATUSES = (429, 502, 503, 504)
MAX_RETRY_SECONDS = 30.0  # between two attempts, however long the server asks to wait; not tuned
Choice = Record | Mapping[str, Any]


class Client:
    """A client of a service that ``rankstream serve run`` has started.

    It retries requests that do not get through or get a busy answer, with growing delays. Batches carry a key, so each
    counts once however often it is sent. A refused request raises a ValueError with the service's message. Several
    threads may share one client.

    Parameters
    ----------
    url : str
        The address that ``serve run`` printed.
    token : str, optional
        The token that ``serve token create`` printed. A service on this machine without tokens needs none.
    timeout : float
        Seconds to wait for an answer.
    retries : int
        How often a request is retried.
    transport : httpx.BaseTransport, optional
        Another transport, for tests.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 6,
        transport: "httpx.BaseTransport | None" = None,
    ) -> None:
        try:
            import httpx
        except ImportError:
            raise ValueError('The client needs httpx: run pip install ".[serve]" in the checkout.') from None
        self.url, self.retries = url.rstrip("/"), retries
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._failures = (httpx.TransportError,)
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=timeout, transport=transport)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, market: str, choices: Choice | Iterable[Choice], key: str | None = None) -> int:
        """Send records, or dicts such as {"offered": ["tea", "pie"], "chosen": "tea"}; return the log position.

        If the market has price levels, "offered" is a mapping from items to prices. The records are on the service's
        disk when this returns. Give a ``key`` if another process may send the same batch again.
        """
        records = [choices] if isinstance(choices, Record | Mapping) else list(choices)
        body = json.dumps({"records": [_content(record) for record in records]})
        headers = {"Idempotency-Key": token_hex(16) if key is None else key}
        return int(self._request("POST", f"{_market(market)}/choices", body, headers)["position"])

    def predict(self, market: str, offers: Iterable[Iterable[Label]]) -> list[dict[str, float]]:
        """Return the shares of offers, in their order; offers may be mappings from items to prices."""
        return [prediction["shares"] for prediction in self.predictions(market, offers)["predictions"]]

    def predictions(
        self, market: str, offers: Iterable[Iterable[Label]], interval: float | None = None, items: Any = None
    ) -> dict[str, Any]:
        """Return predictions with their model, and intervals at a level such as 0.95; ``items`` are candidates."""
        content: dict[str, Any] = {"offers": [_offered(offer) for offer in offers]}
        content |= {name: value for name, value in (("interval", interval), ("items", items)) if value is not None}
        return self._request("POST", f"{_market(market)}/predict", json.dumps(content))

    def decide(
        self, market: str, margins: Mapping[str, float] | float | None = None, **constraints: Any
    ) -> dict[str, Any]:
        """Return the offer that earns most; constraints and ``costs`` as for ``rs.decide.best_offer``."""
        return self._decision("decide", market, margins, constraints)

    def next_offer(
        self, market: str, margins: Mapping[str, float] | float | None = None, **constraints: Any
    ) -> dict[str, Any]:
        """Return the offer to try next; constraints as for ``rs.decide.next_offer``."""
        return self._decision("next-offer", market, margins, constraints)

    def _decision(self, kind: str, market: str, margins: Any, constraints: dict[str, Any]) -> dict[str, Any]:
        body = json.dumps({"margins": margins, **constraints})
        return dict(self._request("POST", f"{_market(market)}/{kind}", body)["decision"])

    def markets(self) -> list[dict[str, Any]]:
        """Return all markets that the token may read, with their progress."""
        return list(self._request("GET", "/v1/markets")["markets"])

    def model(self, market: str) -> Any:
        """Download the published model."""
        return model_in(self._request("GET", f"{_market(market)}/model"), "the model")

    def segments(self, market: str, top: int = 10) -> list[dict[str, Any]]:
        """Return the largest customer types."""
        return list(self._request("GET", f"{_market(market)}/segments?top={int(top)}")["segments"])

    def substitution(self, market: str) -> list[dict[str, Any]]:
        """Return each item's share if all are offered, and what sells instead when it is gone."""
        return list(self._request("GET", f"{_market(market)}/substitution")["items"])

    def drift(self, market: str, last: int = 20_000) -> dict[str, Any]:
        """Test what changed between the earlier and the later half of the latest records."""
        return self._request("GET", f"{_market(market)}/drift?last={int(last)}")

    def certificate(self, market: str) -> dict[str, Any]:
        """Return the certificate of the published model."""
        return self._request("GET", f"{_market(market)}/certificate")

    def settings(self, market: str, changes: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Return the settings of a market, after changing those that are given; None resets one to its default."""
        place, given = f"{_market(market)}/settings", {**(changes or {}), **more}
        return self._request("PUT", place, json.dumps(given)) if given else self._request("GET", place)

    def events(self, market: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield names and contents of events (records, gap, alarm) as they happen, until the service ends."""
        with self._http.stream("GET", f"{_market(market)}/events", timeout=None) as answer:
            if answer.status_code != 200:
                answer.read()
                _raise(answer.status_code, answer.content)
            name = ""
            for line in answer.iter_lines():
                kind, _, rest = line.partition(": ")
                name = rest if kind == "event" else name
                if kind == "data":
                    yield name, json.loads(rest)

    def _request(
        self, method: str, path: str, body: str | None = None, headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """Send a request, with retries: reads change nothing, and batches have keys."""
        kind = {} if body is None else {"Content-Type": "application/json"}
        for attempt in range(self.retries + 1):
            wait = min(0.1 * 2.0**attempt, MAX_RETRY_SECONDS)
            try:
                answer = self._http.request(method, path, content=body, headers={**kind, **(headers or {})})
            except self._failures as error:
                if attempt == self.retries:
                    raise ValueError(f"{self.url} cannot be reached ({type(error).__name__}): is it running?") from None
            else:
                if answer.status_code not in RETRIED_STATUSES or attempt == self.retries:
                    break
                after = answer.headers.get("Retry-After", "")
                wait = max(wait, min(float(after), MAX_RETRY_SECONDS)) if after.isdecimal() else wait
            time.sleep(wait)
        if answer.status_code >= 300:
            _raise(answer.status_code, answer.content)
        return dict(answer.json())


def _raise(status: int, content: bytes) -> None:
    try:
        sentence = str(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError):
        sentence = "The service gave no reason."
    raise ValueError(f"The service answered {status}: {sentence}")


def _market(name: str) -> str:
    return f"/v1/markets/{quote(name, safe='')}"


def _content(choice: Choice) -> dict[str, Any]:
    if not isinstance(choice, Record):
        return dict(choice)
    content: dict[str, Any] = {"offered": _offered(choice.offered), "chosen": choice.chosen, "count": choice.times}
    return content if choice.time is None else content | {"time": choice.time}


def _offered(offer: Iterable[Label]) -> Any:
    """Return an offer for JSON: a list of items, or a mapping from items to prices."""
    return dict(offer) if isinstance(offer, Mapping) else list(offer)
