"""Who may do what: tokens, the name of the server, and nothing in answers or logs that is not for everybody."""

import asyncio
import hmac
import json
import re
import sqlite3
import time
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

from local_service import CAFE, TEA, Shop, error, shop
from rankstream.service import run as running
from rankstream.service.http import read_routes
from rankstream.service.hub import Options
from rankstream.service.limits import REFUSALS, RefusedError, ServiceLimits
from rankstream.service.storage import tokens
from shell import run

pytestmark = pytest.mark.quick


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_token_is_for_markets_and_verbs(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", CAFE)
        opened.send("bar", CAFE)  # nobody needs a token before there is one
        opened.settle("cafe", served="sparse")
        writer = bearer(tokens.create(tmp_path, ["cafe"], ["write"]))
        reader = bearer(tokens.create(tmp_path, ["cafe"], ["read"]))
        owner = bearer(tokens.create(tmp_path, ["*"], ["write", "read", "manage"]))
        opened.learn()
        assert opened.send("cafe", [TEA], **writer).status_code == 202
        assert error(opened.send("cafe", [TEA], **reader)) == (
            403,
            "This token may not write this market: use one that may.",
        )
        assert error(opened.send("bar", [TEA], **writer))[0] == 403
        assert error(opened.send("cafe", [TEA]))[0] == 401
        assert opened.get("/cafe/certificate", **reader).status_code == 200
        assert error(opened.get("/cafe/certificate", **writer))[0] == 403
        for path in (
            "/cafe/model",
            "/cafe/settings",
            "/cafe/segments",
            "/cafe/substitution",
            "/cafe/drift",
            "/cafe/events",
        ):
            assert error(opened.get(path))[0] == 401
        assert error(opened.post("/cafe/predict", {"offers": [["tea"]]}))[0] == 401
        put = opened.http.request("PUT", "/v1/markets/cafe/settings", json={}, headers=reader)
        assert error(put) == (403, "This token may not manage this market: use one that may.")
        assert opened.http.request("PUT", "/v1/markets/cafe/settings", json={}, headers=owner).status_code == 200
        assert [one["market"] for one in opened.get("", **reader).json()["markets"]] == ["cafe"]
        assert len(opened.get("", **owner).json()["markets"]) == 2
        metrics = [opened.http.request("GET", "/metrics", headers=headers) for headers in ({}, reader, owner)]
        assert [answer.status_code for answer in metrics] == [401, 403, 200]
        assert 'rankstream_market_records{market="cafe"}' in metrics[2].text
        seconds = [float(line.split()[-1]) for line in metrics[2].text.splitlines() if "_request_seconds_sum" in line]
        assert 0.0 < max(seconds) < 3600.0
        assert opened.http.request("GET", "/healthz").status_code == 200


def test_keys_are_each_senders_own(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        first, second = (bearer(tokens.create(tmp_path, ["cafe"], ["write"])) for _ in range(2))
        key = {"Idempotency-Key": "1"}
        assert opened.send("cafe", [TEA], **first, **key).json()["position"] == 1
        assert opened.send("cafe", [TEA], **second, **key).json()["position"] == 2
        assert opened.send("cafe", [TEA], **first, **key).json()["position"] == 1


def test_a_revoked_token_is_worthless_at_once(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        kept, gone = (tokens.create(tmp_path, ["*"], ["write"]) for _ in range(2))
        assert opened.send("cafe", [TEA], **bearer(gone)).status_code == 202
        ids = [one["id"] for one in tokens.listed(tmp_path)]
        assert len(ids) == 2
        tokens.revoke(tmp_path, gone.split("_")[1])
        answer = opened.send("cafe", [TEA], **bearer(gone))
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert opened.send("cafe", [TEA], **bearer(kept)).status_code == 202
        with pytest.raises(ValueError, match="There is no token"):
            tokens.revoke(tmp_path, gone.split("_")[1])


def test_an_event_stream_ends_with_its_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_routes, "PAUSE", 0.01)
    monkeypatch.setattr(read_routes, "SILENCE", 0.02)
    with shop(tmp_path) as opened:
        opened.send("cafe", CAFE)
        header = f"Bearer {tokens.create(tmp_path, ['cafe'], ['read'])}"

        async def listen() -> list[str]:
            stream: Any = read_routes.stream(opened.service, header, "cafe")
            found = [await anext(stream)]
            tokens.revoke(tmp_path, tokens.listed(tmp_path)[0]["id"])
            async for text in stream:
                found.append(text)
                if len(found) == 5:
                    break
            return found

        (first,) = asyncio.run(listen())
        assert first.startswith("event: records")


def test_revoking_the_last_token_lets_nobody_in(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        assert opened.send("cafe", [TEA]).status_code == 202  # nobody has made a token yet
        last = tokens.create(tmp_path, ["*"], ["write"])
        assert opened.send("cafe", [TEA]).status_code == 401
        tokens.revoke(tmp_path, last.split("_")[1])
        assert [opened.send("cafe", [TEA], **told).status_code for told in ({}, bearer(last))] == [401, 401]
    with shop(tmp_path) as opened:
        assert opened.send("cafe", [TEA]).status_code == 401


def test_tokens_are_kept_as_digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tokens.create(tmp_path, ["cafe"], ["read"])
    secret = made.split("_", 2)[2]
    with closing(sqlite3.connect(tmp_path / tokens.NAME)) as connection:
        (row,) = connection.execute("SELECT * FROM tokens").fetchall()
    assert secret not in str(row)
    assert len(row[1]) == 32
    compared: list[Any] = []
    real = hmac.compare_digest

    def compare(one: bytes, two: bytes) -> bool:
        compared.append(1)
        return real(one, two)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    known = tokens.Tokens(tmp_path)
    name = made.split("_")[1]
    for wrong in (
        None,
        "",
        made,
        f"Basic {made}",
        "Bearer rs_nobody_x",
        f"Bearer rs_{name}_x",
        f"Bearer {name}",
        "Bearer \udcff",
    ):
        with pytest.raises(RefusedError, match="This needs a token"):
            known.holder(wrong)
    assert known.holder(f"bearer {made}").markets == {"cafe"}
    assert len(compared) == 9  # whoever is unknown takes as long
    known.close()


@pytest.mark.parametrize(
    ("markets", "may", "reason"),
    [
        (["a/b"], ["read"], "cannot be called"),
        ([".."], ["read"], "cannot be called"),
        (["cafe"], ["sing"], "may names 'sing'"),
        ([], ["read"], "give both"),
    ],
)
def test_tokens_that_cannot_be(tmp_path: Path, markets: list[str], may: list[str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        tokens.create(tmp_path, markets, may)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.", "[::2]:8000"])
def test_requests_to_another_name_are_refused(tmp_path: Path, host: str) -> None:
    with shop(tmp_path) as opened:
        for path in ("/healthz", "/v1/markets", "/openapi.json", "/nowhere"):
            answer = opened.http.request("GET", path, headers={"Host": host})
            assert error(answer)[0] == 421
        assert opened.send("cafe", [TEA], Host=host).status_code == 421


def test_names_that_the_server_has(tmp_path: Path) -> None:
    with shop(tmp_path, hosts=("Shop.example",)) as opened:
        for host in ("localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000", "shop.example", "shop.example:443"):
            assert opened.http.request("GET", "/healthz", headers={"Host": host}).status_code == 200


def test_no_page_of_another_site_can_send_choices(tmp_path: Path) -> None:
    """What a form or a plain script can send without asking first is refused."""
    with shop(tmp_path) as opened:
        body = json.dumps({"records": [TEA]})
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            headers = {"Content-Type": kind, "Origin": "https://evil.example"}
            answer = opened.http.request("POST", "/v1/markets/cafe/choices", content=body, headers=headers)
            assert error(answer)[0] == 415
        asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        answer = opened.http.request("OPTIONS", "/v1/markets/cafe/choices", headers=asked)
        assert (answer.status_code, "access-control-allow-origin" in answer.headers) == (405, False)
        assert opened.get("").json() == {"markets": []}


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "shop.example", "::"])
def test_other_addresses_need_tokens(tmp_path: Path, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[str] = []
    monkeypatch.setattr(running, "listening", lambda *given: nullcontext(given))
    monkeypatch.setattr(running, "_serve", lambda *given: served.append(given[1]))
    with pytest.raises(ValueError, match="is open to others, and there are no tokens"):
        running.run(tmp_path / "shop", host, 0, Options(), lambda _: None)
    tokens.create(tmp_path / "shop", ["cafe"], ["read"])
    running.run(tmp_path / "shop", host, 0, Options(), lambda _: None)
    assert served == [host]


def test_nothing_is_said_that_is_not_for_everybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failure of ours is one sentence, and its log has neither labels nor a traceback."""
    with shop(tmp_path) as opened:
        secret = tokens.create(tmp_path, ["*"], ["write", "read", "manage"])
        told = bearer(secret)
        opened.send("cafe", [{"offered": ["secret-label", "x"], "chosen": "x"}], **told)
        opened.send("cafe", [{"offered": ["secret-label"], "chosen": "nobody"}], **told)

        def fail(*_: Any) -> None:
            raise RuntimeError(f"SELECT * FROM {tmp_path} secret-label")

        monkeypatch.setattr(opened.service, "row", fail)
        answer = opened.get("/cafe/certificate", **told)
        assert error(answer) == (500, "Internal server error. It is logged; try again later.")
        monkeypatch.setattr(opened.service.ingest, "store", fail)
        assert error(opened.send("cafe", [TEA], **told))[0] == 503
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    text = json.dumps(lines)
    assert {"event": "a request failed", "kind": "RuntimeError"}.items() <= lines[-3].items()
    assert lines[0]["route"] == "/v1/markets/{market}/choices"
    for hidden in ("secret-label", secret, str(tmp_path), "SELECT", "Traceback", "cafe", "nobody"):
        assert hidden not in text, hidden


def test_unknown_addresses_and_methods(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        page = opened.http.request("GET", "/docs")
        assert (page.status_code, "<script" in page.text, "http" in page.text) == (200, False, False)
        for path in opened.http.request("GET", "/openapi.json").json()["paths"]:
            assert f" {path}</code>" in page.text
        assert error(opened.http.request("GET", "/doc")) == (
            404,
            "Not found: see /openapi.json.",
        )
        assert error(opened.http.request("DELETE", "/healthz")) == (
            405,
            "Method not allowed: see /openapi.json.",
        )
        digits = "1" * 5000
        answer = opened.http.request(
            "POST", "/v1/markets/cafe/predict", content=f'{{"offers": [[{digits}]]}}',
            headers={"Content-Type": "application/json"},
        )  # fmt: skip
        assert answer.status_code in (400, 422)
        assert set(answer.json()) == {"error"}


def test_every_limit_has_a_sentence_of_its_own() -> None:
    small = ServiceLimits(**dict.fromkeys(ServiceLimits.__dataclass_fields__, 1))
    said = set()
    checks: list[tuple[Any, ...]] = [(small.check, name, 10**6) for name in REFUSALS]
    checks += [(small.check_offer, ["a", "b"]), (small.check_offer, ["ab"])]
    for check, *values in checks:
        with pytest.raises((RefusedError, ValueError)) as refused:
            check(*values)
        said.add(re.sub(r"\d", "", str(refused.value)))
    others = {"connections", "cache"}  # they refuse nobody
    assert set(REFUSALS) == {*ServiceLimits.__dataclass_fields__, "login", "offers_at_prices"} - others - {
        "items",
        "label",
    }
    assert len(said) == len(checks)
    assert ServiceLimits().changed(["offers=5", "body=7"]) == ServiceLimits(offers=5, body=7)
    for wrong in ("offers", "offers=many", "colour=3", "offers=0", "offers=1000000000000"):
        with pytest.raises(ValueError, match="is not a name and a number"):
            ServiceLimits().changed([wrong])


def test_ready_when_the_learner_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop(tmp_path) as opened:
        assert error(opened.http.request("GET", "/readyz"))[0] == 503
        monkeypatch.setattr(type(opened.service.supervisor), "is_alive", True)
        assert opened.http.request("GET", "/readyz").json() == {"status": "ready"}


def test_a_request_that_ends_before_its_body(tmp_path: Path) -> None:
    async def ask(opened: Shop) -> list[Any]:
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        scope = {
            "type": "http", "method": "POST", "path": "/v1/markets/cafe/choices", "headers": headers,
            "query_string": b"", "raw_path": b"", "root_path": "", "scheme": "http", "server": ("localhost", 80),
            "client": ("localhost", 1), "http_version": "1.1",
        }  # fmt: skip
        await opened.http.app(scope, receive, send)
        return sent

    with shop(tmp_path) as opened:
        start, _ = opened.http.run(ask(opened))
        assert start["status"] == 400


def test_tokens_have_names_and_expire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(tmp_path / tokens.NAME)) as connection:  # as the first version made it
        connection.execute(tokens.TABLE)
        connection.execute("INSERT INTO tokens VALUES ('0', x'00', 'cafe', 'read', 0)")
        connection.commit()
    made = run(
        "serve", "token", "create", ".", "--market", "*", "--name", "Till 2", "--expires", "90d", cwd=tmp_path
    ).stdout.strip()
    old, new = tokens.listed(tmp_path)
    assert (old["name"], old["expires"], new["name"]) == ("", None, "Till 2")
    assert new["expires"] - new["made"] == pytest.approx(90 * 86_400)
    assert "  Till 2  until " in run("serve", "token", "list", ".", cwd=tmp_path).stdout
    known, now = tokens.Tokens(tmp_path), time.time()
    assert known.holder(f"Bearer {made}").may == {"read", "write"}
    monkeypatch.setattr(time, "time", lambda: now + 91 * 86_400)
    with pytest.raises(RefusedError, match="This token has expired: create another"):
        known.holder(f"Bearer {made}")
    known.close()
    assert "  Till 2  expired " in run("serve", "token", "list", ".", cwd=tmp_path).stdout
    wrong = run("serve", "token", "create", ".", "--market", "*", "--expires", "5", cwd=tmp_path)
    assert (wrong.returncode, "--expires is '5', which is not a time" in wrong.stderr) == (2, True)


def test_tokens_make_the_folder_and_those_above_it(tmp_path: Path) -> None:
    assert tokens.create(tmp_path / "all" / "shops" / "York", ["*"], ["read"]).startswith("rs_")
    assert (tmp_path / "all" / "shops" / "York" / tokens.NAME).is_file()
