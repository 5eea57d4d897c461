"""Odd requests to a service, drawn by a seed: headers, JSON of wrong kinds, extreme numbers, names with blanks."""

import json
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

MARKETS = ("cafe", "bar", "a.b-c_d")
ITEMS = (
    "tea",
    " tea",
    "pie ",
    "nothing",
    "7",
    "<b>",
    "\u05e9\u05dc",
    "x" * 200,
    "caf\u00e9",
    "tea\u00a0pie",
    "\u202e",
    "\U0001f600",
)
NUMBERS = (0, 1, 2, 3, 50, -1, 0.5, 2.5, 1e-300, 5e-324, 1e-9, 1e15, 1e300, 1.7e308, -1e308, 2**53, 2**63, 10**30)
TEXTS = (
    "",
    " ",
    "0",
    "5",
    " 5 ",
    "0s",
    "1e-9s",
    "1e-7s",
    "7d",
    "90min",
    "1e9w",
    "1e-320",
    "nan",
    "-3d",
    "\x00",
    "\ud800",
    "5\u0660",
)
KINDS = (
    "application/json",
    "application/json; charset=latin-1",
    "application/x-ndjson",
    "text/plain",
    "",
    "APPLICATION/JSON",
)
ORIGINS = (
    "http://localhost", "http://[", "http://[::1", "null", "", "http://localhost:99999999", "//localhost", "http://local\x7fhost",
    "http://\u2100localhost", "localhost", "http://localhost@evil.example", "https://localhost",
)  # fmt: skip
ORDINARY = [{"offered": ["tea", "pie"], "chosen": "tea"}, {"offered": ["tea", "pie"], "chosen": "pie"}] * 30


class Odd(NamedTuple):
    """A request: its method, path, headers and body."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Maker:
    """Makes requests of a run, by its own random numbers."""

    def __init__(self, number: int, seed: int) -> None:
        self.random = Random(f"{seed}-{number}")

    def pick(self, *what: Any) -> Any:
        """One of several."""
        return self.random.choice(what)

    def value(self, depth: int = 0) -> Any:
        """Anything that JSON can say, and what Python says besides."""
        kinds = [lambda: self.pick(*NUMBERS), lambda: self.pick(*TEXTS), lambda: self.pick(*ITEMS)]
        kinds += [lambda: self.pick(None, True, False, float("nan"), float("inf"))]
        if depth < 2:
            kinds += [lambda: [self.value(depth + 1) for _ in range(self.random.randrange(4))]]
            kinds += [lambda: {str(self.pick(*ITEMS)): self.value(depth + 1) for _ in range(self.random.randrange(3))}]
        return self.random.choice(kinds)()

    def mostly(self, good: Any, often: float = 0.8) -> Any:
        """Something good, or anything at all."""
        return good if self.random.random() < often else self.value()

    def offer(self) -> list[Any]:
        """Some items."""
        return self.random.sample([*ITEMS, 7], self.random.randrange(1, 5))

    def priced(self, offer: list[Any]) -> Any:
        """The offer, now and then with a price for each item."""
        if self.random.random() < 0.9:
            return offer
        return {str(item): self.mostly(self.pick(None, 3.0, 3.5, 4), 0.9) for item in offer}

    def record(self) -> Any:
        """A record in which little is odd."""
        offer = self.offer()
        offered, chosen = self.priced(offer), self.random.choice(offer)
        found = {"offered": self.mostly(offered, 0.97), "chosen": self.mostly(chosen, 0.97)}
        if self.random.random() < 0.3:
            found["count"] = self.mostly(self.random.randrange(1, 9), 0.7)
        if self.random.random() < 0.5:
            found["time"] = self.mostly(self.pick(1.7e9, 1.7e9 + 5, "2024-05-16T12:30", "2024-05-16", 0, -1e9), 0.8)
        return self.mostly(found, 0.99)

    def every_setting(self) -> dict[str, Any]:
        """A value for every setting, mostly odd."""
        reach = self.pick(*NUMBERS, *TEXTS, 500, 100, "1h")
        return {
            "half_life": reach, "window": self.pick(*NUMBERS, *TEXTS, 100, "1h"), "detect": self.mostly(True),
            "threshold": self.pick(*NUMBERS), "rounds": self.mostly(self.pick(1, 3)),
            "attributes": self.mostly({item.strip(): {"size": 1.0} for item in ITEMS}),
            "served": self.mostly(self.pick("sparse", "max-entropy")), "seed": self.pick(*NUMBERS),
            "no_choice": self.mostly(self.pick(*ITEMS)), "price_levels": self.mostly({"tea": [3.0, 4.0]}),
        }  # fmt: skip

    def settings(self) -> Any:
        """Settings, of which some are odd."""
        every = self.every_setting()
        return {name: every[name] for name in self.random.sample(sorted(every), self.random.randrange(0, 3))}

    def every_constraint(self) -> dict[str, Any]:
        """A value for everything that ``decide`` and ``next-offer`` can be asked beside margins and budget."""
        return {
            "at_most": self.mostly(2), "at_least": self.mostly(1), "must": self.mostly(["tea"]),
            "never": self.mostly(["pie"]), "requires": self.mostly([["tea", "pie"]]),
            "excludes": self.mostly([["tea", "pie"]]), "listing_costs": self.mostly(0.1), "space": self.mostly(1.0),
            "capacity": self.mostly(2.0), "no_choice": self.mostly("nothing"), "seed": self.mostly(3),
            "top": self.mostly(2), "how": self.pick("ucb", "greedy", "thompson", "none"),
            "costs": self.mostly({"tea": 0.5}), "ladders": self.mostly([["tea"]]), "present": self.mostly(["tea"]),
            "changes": self.mostly(1), "items": self.mostly({"green blend": {"brand": "A", "size": 250.0}}),
        }  # fmt: skip

    def constraints(self) -> Any:
        """What ``decide`` and ``next-offer`` are asked."""
        every = self.every_constraint()
        chosen = self.random.sample(sorted(every), self.random.randrange(0, 4))
        margins = {item.strip(): self.mostly(self.pick(1.0, 3, -2), 0.7) for item in ITEMS}
        return {
            "margins": self.mostly(self.pick(margins, 1.0)),
            "budget": 0.2,
            **{name: every[name] for name in chosen},
        }

    def headers(self) -> dict[str, str]:
        """Headers, of which a few are odd."""
        found = {"Content-Type": self.pick(*KINDS) if self.random.random() < 0.15 else "application/json"}
        odd = {
            "Idempotency-Key": self.pick("k", "", "\u00e9", "a" * 300, "1"), "Origin": self.pick(*ORIGINS),
            "Host": self.pick("localhost", "[::1]:80", "evil.example", "", "localhost:x"),
            "Accept-Encoding": self.pick("gzip", "gzip;q=0", "", ",,;"),
            "Cookie": self.pick("rankstream-token=\u00ff", "=;=", "a"),
            "Authorization": self.pick("Bearer", "Bearer rs__", "Basic \u00ff", ""),
            "If-None-Match": self.pick("*", "", "W/\u00ff"),
            "Content-Length": self.pick("-1", "x", "99999999999", "0"),
        }  # fmt: skip
        if self.random.random() < 0.2:
            name = self.random.choice(sorted(odd))
            found[name] = odd[name]
        return found

    def body(self, content: Any) -> bytes:
        """JSON, now and then damaged."""
        text = json.dumps(content)
        if self.random.random() < 0.05:
            text = self.pick(
                text[:-3], f"{text}{text}", "[" * 20_000, "", "{}", "null", '{"records": [1e999]}', "9" * 5000
            )
        return text.encode()

    def form(self) -> Odd:
        """The form of the login page."""
        fields = [("token", self.pick(*TEXTS)), ("to", self.pick("/", "//evil", "/\\evil", "\u00ff", "/%0d%0a", ""))]
        body = "&".join(f"{name}={quote_plus(value, errors='replace')}" for name, value in fields)
        origin = "http://localhost" if self.random.random() < 0.7 else self.pick(*ORIGINS)
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": origin}
        body = self.pick(body, body, body, "%ff=%", "\u00ff")
        return Odd("POST", self.pick("/login", "/logout"), {**self.headers(), **headers}, body.encode())

    def preferences(self) -> Odd:
        """What the page remembers of a market."""
        margins = {item: self.mostly(1.5) for item in self.random.sample(ITEMS, 3)}
        content = {"margins": self.mostly(margins), "shelf": self.mostly(self.offer()), "currency": self.mostly("EUR")}
        path = f"/page/{self.pick(*MARKETS, 'a b', '%00')}/preferences"
        return Odd("PUT", path, self.headers(), self.body(self.mostly(content, 0.95)))

    def request(self) -> Odd:
        """The next request: choices, questions, settings, pages or forms."""
        kinds = [self.choices] * 4
        kinds += [self.change, self.question, self.asked, self.page, self.form, self.preferences]
        return self.random.choice(kinds)()

    def path(self) -> str:
        """The address of a market."""
        return f"/v1/markets/{self.pick(*MARKETS, *MARKETS, quote('a b'), '%00', 'x' * 70)}"

    def choices(self) -> Odd:
        """A batch, ordinary or with odd records."""
        odd = [self.record() for _ in range(self.pick(1, 1, 2, 5, 20))]
        records = {"records": self.pick(odd, ORDINARY[: self.random.randrange(2, 60)])}
        return Odd("POST", f"{self.path()}/choices", self.headers(), self.body(self.mostly(records, 0.95)))

    def change(self) -> Odd:
        """Settings."""
        return Odd("PUT", f"{self.path()}/settings", self.headers(), self.body(self.mostly(self.settings(), 0.95)))

    def question(self) -> Odd:
        """A question with a body."""
        predicted = {"offers": self.mostly([self.mostly(self.priced(self.offer())) for _ in range(2)], 0.9)}
        kind = self.pick("predict", "predict", "decide", "next-offer")
        content = self.mostly(predicted if kind == "predict" else self.constraints(), 0.95)
        return Odd("POST", f"{self.path()}/{kind}", self.headers(), self.body(content))

    def asked(self) -> Odd:
        """A question without one, also by methods that are not there."""
        odd = quote(str(self.value(2)), errors="replace")
        kind = self.pick(
            "segments", "drift", "substitution", "certificate", "model", "settings", "counts", "..", "%2e", ""
        )
        more = self.pick("", f"?top={odd}&last={odd}&level={odd}")
        if self.random.random() < 0.1:
            return Odd("GET", "/v1/markets/nowhere/events", self.headers(), b"")  # of others, they never end
        method = self.pick("GET", "GET", "GET", "GET", "DELETE", "PATCH", "POST", "OPTIONS")
        return Odd(method, f"{self.path()}/{kind}{more}", self.headers(), b"" if method == "GET" else b"{}")

    def page(self) -> Odd:
        """A page for people, or for whoever runs the server."""
        odd = quote(str(self.value(2)), errors="replace")
        name = self.pick(*MARKETS, "a b", "%00")
        market = self.pick(f"/markets/{name}", f"/page/{name}/panels", f"/page/{name}/preferences")
        plain = (
            *("/", "/v1/markets", "/metrics", "/healthz", "/readyz", "/openapi.json", f"/login?to={odd}"),
            *("/static/x/page.css", "/static/..", f"/open?key={odd}"),
        )
        return Odd("GET", self.pick(market, market, market, *plain), self.headers(), b"")
