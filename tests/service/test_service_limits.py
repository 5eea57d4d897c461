"""Requests that are large, slow or hostile: they neither block the server nor fill its memory."""

import asyncio
import json
import pickle
import random
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import ValidationError

from local_service import CAFE, TEA, Shop, error, shop
from rankstream.data.readers.sources.lines import Twice
from rankstream.models.item_names import items_in
from rankstream.service.http import guard, schemas
from rankstream.service.http import read_routes as answering
from rankstream.service.limits import RefusedError, ServiceLimits
from rankstream.service.processes import batch_reader as reading
from rankstream.service.storage import ingest, log, tokens

JSON = {"Content-Type": "application/json"}
NEVER = object()
"""A part of a body that never arrives."""


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Shop]:
    with shop(tmp_path) as one:
        yield one


def ask(opened: Shop, path: str, parts: list[Any], method: str = "POST", **headers: str) -> tuple[dict[str, Any], int]:
    """Send a body part by part; the start of the answer, and how many parts were read."""
    read = 0

    async def run() -> dict[str, Any]:
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            nonlocal read
            if parts[read] is NEVER:
                await asyncio.Event().wait()
            read += 1
            return {"type": "http.request", "body": parts[read - 1], "more_body": read < len(parts)}

        async def send(message: Any) -> None:
            sent.append(message)

        named = {"host": "localhost", "content-type": "application/json", **headers}
        scope = {
            "type": "http", "method": method, "path": path, "query_string": b"", "raw_path": b"", "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in named.items()], "scheme": "http",
            "server": ("localhost", 80), "client": ("localhost", 1), "http_version": "1.1",
        }  # fmt: skip
        await opened.http.app(scope, receive, send)
        return {**sent[0], "headers": dict(sent[0]["headers"]), "content": sent[1].get("body", b"")}

    answer: dict[str, Any] = opened.http.run(run())
    return answer, read


def guard_of(opened: Shop) -> guard.Guard:
    app = opened.http.app.middleware_stack
    while not isinstance(app, guard.Guard):
        app = app.app
    return app


@pytest.mark.parametrize("word", guard.RIGHTS)
def test_the_token_is_checked_before_the_body(opened: Shop, word: str) -> None:
    """A body that no route could read is not looked at without a token that allows to send it."""
    reader = tokens.create(opened.folder, ["bar"], ["write", "read", "manage"])
    method, path = "PUT" if word == "settings" else "POST", f"/v1/markets/cafe/{word}"
    nobody = opened.http.request(method, path, content=b"[[[", headers=JSON)
    another = opened.http.request(method, path, content=b"[[[", headers=JSON | {"Authorization": f"Bearer {reader}"})
    assert (nobody.status_code, another.status_code) == (401, 403)


def test_bodies_that_nothing_reads_are_not_read(opened: Shop) -> None:
    for path in ("/v1/markets", "/nowhere", "/v1/markets/cafe/drift", "/markets/cafe/events"):
        assert ask(opened, path, [NEVER])[0]["status"] in (404, 405)
    tokens.create(opened.folder, ["*"], ["read"])
    form = {"content-type": guard.FORM, "origin": "http://localhost"}
    answer, read = ask(opened, "/markets/cafe", [NEVER], **form)
    assert (answer["status"], read) == (405, 0)  # the page has no form
    assert ask(opened, "/login", [b"x" * 20_000], **form)[0]["status"] == 413


def test_a_refused_body_is_skipped_until_the_answer_can_be_read(opened: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens.create(opened.folder, ["*"], ["read"])
    answer, read = ask(opened, "/v1/markets/cafe/choices", [b" " * 100_000] * 50)
    assert (answer["status"], read, answer["headers"].get(b"connection")) == (401, 50, None)
    monkeypatch.setattr(guard, "MAX_DISCARD_SECONDS", 0.01)
    answer, read = ask(opened, "/v1/markets/cafe/choices", [b" " * 100_000, NEVER])
    assert (answer["status"], read, answer["headers"][b"connection"]) == (401, 1, b"close")


def test_a_body_that_does_not_arrive_is_given_up(opened: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MAX_BODY_SECONDS", 0.01)
    monkeypatch.setattr(guard, "MAX_DISCARD_SECONDS", 0.01)
    answer, _ = ask(opened, "/v1/markets/cafe/choices", [b'{"records": [', b" " * 70_000, NEVER])
    assert (answer["status"], guard_of(opened).large) == (408, 0)


def test_large_bodies_share_their_memory(tmp_path: Path) -> None:
    with shop(tmp_path, limits=ServiceLimits(bodies=300_000)) as opened:
        opened.send("cafe", CAFE)
        gate = guard_of(opened)
        gate.large = 250_000  # others are being read
        answer, _ = ask(opened, "/v1/markets/cafe/choices", [b" " * 70_000] * 2)
        assert (answer["status"], answer["headers"][b"retry-after"], gate.large) == (429, b"1", 250_000)
        assert opened.send("cafe", [TEA]).status_code == 202
        gate.large = 0
        assert opened.send("cafe", [TEA] * 2000).status_code == 202
        assert gate.large == 0


@pytest.mark.parametrize(
    "content",
    [
        {"requires": [[1]] * 30_000}, {"margins": dict.fromkeys(map(str, range(5000)), "x")}, {"must": [1.5] * 9000},
        {"margins": dict.fromkeys(map(str, range(20_000)), 1.0)}, {"must": ["a"] * 20_000}, {"ladders": [[1]] * 2000},
        {"requires": [[1]] * 9000}, {"excludes": [["a"]] * 9000}, {"ladders": [[1]] * 900},
        {"excludes": [[1, 2]] * 20_000}, {"present": [None] * 9000}, {"present": dict.fromkeys("abc", "x")},
    ],
)  # fmt: skip
def test_a_list_is_refused_at_its_first_mistake(content: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        schemas.DecideBody.model_validate(content)
    assert len(refused.value.errors()) <= 3
    with pytest.raises(ValidationError) as refused:
        schemas.PredictBody.model_validate({"offers": [content] * 100})
    assert len(refused.value.errors()) <= 3


@pytest.mark.parametrize(
    "content", [{"by": [1] * 9000}, {"by": ["a"] * 20_000}, {"prices": [1] * 9000}, {"columns": {"item": [1] * 9000}}]
)
def test_a_list_of_an_uploaded_file_is_refused_at_its_first_mistake(content: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        schemas.UploadedFile.model_validate({"file": "0" * 16} | content)
    assert len(refused.value.errors()) <= 3


@pytest.mark.parametrize("schema", schemas.RequestBody.__subclasses__(), ids=lambda schema: schema.__name__)
def test_a_body_of_unknown_keys_is_refused_at_the_first(schema: type[schemas.RequestBody]) -> None:
    with pytest.raises(ValidationError) as refused:
        schema.model_validate(dict.fromkeys(map(str, range(9000)), "x"))
    assert refused.value.error_count() == 1
    assert refused.value.errors()[0]["msg"] == "Value error, unknown field '0': leave it out"


@pytest.mark.parametrize(
    ("schema", "content"),
    [
        (schemas.UploadedFile, {"file": "0" * 16, "columns": dict.fromkeys(map(str, range(9000)), 1)}),
        (schemas.SettingsBody, {"price_levels": dict.fromkeys(map(str, range(9000)), "x")}),
    ],
)
def test_entries_are_counted_before_they_are_validated(schema: type[schemas.RequestBody], content: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        schema.model_validate(content)
    assert refused.value.error_count() == 1
    assert refused.value.errors()[0]["msg"] == "Value error, 9,000 entries are more than 200: send fewer"


@pytest.mark.parametrize("part", ["1,", "[],", "{},", "[1],"])
def test_values_of_a_question_are_counted_before_they_are_parsed(opened: Shop, part: str) -> None:
    body = '{"requires": [' + part * (900_000 // len(part)) + "1]}"
    answer = opened.http.request("POST", "/v1/markets/cafe/decide", content=body, headers=JSON)
    assert error(answer) == (413, "The question has more than 100,000 values or 25,000 lists: ask several times.")
    long = opened.http.request("POST", "/v1/markets/cafe/decide", content=" " * 1_000_001, headers=JSON)
    assert error(long)[1] == "The request is larger than 1,000,000 bytes: ask about fewer items."


@pytest.mark.parametrize(
    ("body", "lines"),
    [(b"\n" * 5, True), (b"{}\n" * 5, True), (b"[" * 20, False), (b'{"records": [' + b'{"offered": []},' * 5, False)],
)
def test_records_are_counted_before_they_are_parsed(monkeypatch: pytest.MonkeyPatch, body: bytes, lines: bool) -> None:
    monkeypatch.setattr(reading, "loads", lambda _: pytest.fail("it was parsed"))
    with pytest.raises(RefusedError, match=r"The batch has \d+ records and may have 4"):
        reading.records_in(body, lines, ServiceLimits(records=4))


def test_brackets_in_names_are_no_records() -> None:
    record = {"offered": ['[[[ \\"{{{', 'a "quoted" [', "\\"], "chosen": "\\"}
    body = json.dumps({"records": [record] * 4}).encode()
    assert reading.records_in(body, False, ServiceLimits(records=4)) == [record] * 4


def test_a_large_batch_is_read_by_another_process(opened: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [{**TEA, "count": number, "note": "x" * 50} for number in range(1, 1002)]
    before = opened.service.reading_large.pid
    assert opened.send("cafe", records).json()["position"] == 1001
    assert before is None is not opened.service.reading_large.pid
    wide = [*records, {"offered": [f"i{number}" for number in range(300)], "chosen": "i0"}]
    assert error(opened.send("cafe", wide)) == (
        422,
        "Record 1001 is wrong: its offer has 300 items and may have 200: offer fewer. Nothing of the batch was stored.",
    )
    assert "Record 1001 is wrong: it has no " in error(opened.send("cafe", [*records, 7]))[1]
    assert error(opened.send("cafe", [TEA] * 10_001))[0] == 413
    many = opened.http.request(
        "POST", "/v1/markets/cafe/choices", content=b"\n" * 70_000, headers={"Content-Type": "application/x-ndjson"}
    )
    assert error(many) == (413, "The batch has 70,000 records and may have 10,000: send several batches.")

    def die(_: Any) -> None:
        raise ChildProcessError

    monkeypatch.setattr(opened.service.reading_large, "ask", die)
    assert error(opened.send("cafe", records)) == (503, "The batch could not be read: send it again later.")
    assert opened.get("/cafe/settings").status_code == 200


def test_chunks_are_the_records_of_the_body() -> None:
    records = [{**TEA, "count": number} for number in range(1, 1202)]
    body = "\n".join(map(json.dumps, records)).encode()
    status, parts = reading.in_chunks((body, True, ServiceLimits()))
    assert (status, len(parts)) == (200, 3)
    assert [one for part in parts for one in pickle.loads(part)] == records
    assert reading.in_chunks((b"[", False, ServiceLimits()))[0] == 422
    (twice,) = reading.in_chunks((b'{"chosen": 1, "chosen": 1}', True, ServiceLimits()))[1]
    assert isinstance(pickle.loads(twice)[0], Twice)


def test_one_offer_in_many_orders_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names, generator = [f"i{number}" for number in range(50)], random.Random(0)
    records: list[dict[str, Any]] = []
    for number in range(40):
        generator.shuffle(names)
        records.append({"offered": list(names), "chosen": f"i{number}"})
    records += [{"offered": ["i0", "i1", 1], "chosen": 1}, {"offered": {"i0": 2}, "chosen": "i0"}, {"chosen": "i0"}]
    body = json.dumps({"records": records}).encode()
    (part,) = reading.in_chunks((body, False, ServiceLimits()))[1]
    shared = pickle.loads(part)
    assert len({id(record["offered"]) for record in shared[:40]}) == 1
    assert [set(record["offered"]) for record in shared[:40]] == [set(names)] * 40
    assert shared[40:] == records[40:]
    twice = {"offered": ["i0", "i0", "i1"], "chosen": "i0"}
    (part,) = reading.in_chunks((json.dumps({"records": [twice]}).encode(), False, ServiceLimits()))[1]
    assert pickle.loads(part) == [twice]
    looked: list[Any] = []
    words = ingest._words

    def counted(content: Any) -> frozenset[Any]:
        looked.append(content)
        return words(content)

    monkeypatch.setattr(ingest, "_words", counted)
    bodies = []
    for number, sent in enumerate((records[:40], shared[:40])):
        (tmp_path / str(number)).mkdir()
        with closing(log.open_log(tmp_path / str(number))) as connection:
            looked.clear()
            ingest.Ingest(ServiceLimits()).store(connection, ingest.Sent("cafe", sent))
            bodies.append(connection.execute("SELECT body FROM batches").fetchall())
    assert bodies[0] == bodies[1]
    assert len(looked) == 1  # 40 of the records as they were sent


def test_one_offer_in_many_orders_is_remembered_once(opened: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    names, generator = [f"i{number}" for number in range(50)], random.Random(0)
    for _ in range(40):
        generator.shuffle(names)
        assert opened.send("cafe", [{"offered": names, "chosen": "i7"}]).status_code == 202
    written = opened.service.ingest._known["cafe"].written
    assert len(written) == 1
    twice = opened.send("cafe", [{"offered": [*names, "i7"], "chosen": "i7"}])
    assert twice.status_code == 422
    monkeypatch.setattr(ingest, "MAX_WRITTEN_BYTES", 20_000)
    for blanks in range(40):
        opened.send("cafe", [{"offered": [" " * blanks + name for name in names], "chosen": "i7"}])
    assert len(opened.service.ingest._known["cafe"].written) <= 3


def test_items_of_a_market_are_limited(tmp_path: Path) -> None:
    with shop(tmp_path, limits=ServiceLimits(market_items=4)) as opened:
        assert opened.send("cafe", CAFE).status_code == 202
        answer = opened.send("cafe", [TEA, {"offered": ["tea", "soup"], "chosen": "soup"}])
        assert error(answer) == (409, "This market would have more than 4 different items: use several markets.")
        assert opened.send("cafe", [TEA]).json()["position"] == len(CAFE) + 1
    with shop(tmp_path, limits=ServiceLimits(market_items=4)) as opened:  # what is in the log counts
        assert error(opened.send("cafe", [{"offered": ["tea", "soup"], "chosen": "soup"}]))[0] == 409


def test_one_offer_in_many_orders_is_predicted_once(opened: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    opened.send("cafe", CAFE)
    opened.settle("cafe", served="sparse")
    opened.learn()
    asked: list[Any] = []
    ask_process = opened.service.quick.ask

    def count(question: Any) -> Any:
        asked.append(question)
        return ask_process(question)

    monkeypatch.setattr(opened.service.quick, "ask", count)
    orders = [["tea", "pie", "nothing"], ["pie", "nothing", "tea"], ["nothing", "tea", "pie"]]
    found = [opened.post("/cafe/predict", {"offers": [order]}).json()["predictions"][0] for order in orders]
    assert len(asked) == len(opened.service._predicted) == 1
    assert [list(one["shares"]) for one in found] == orders  # each in the order of its question
    assert found[0]["shares"] == found[1]["shares"] == found[2]["shares"]
    for number in range(200):
        opened.service._remember(b"%d" % number, b" " * 1000)
    opened.service.limits = ServiceLimits(cache=10_000)
    opened.service._remember(b"last", b" " * 1000)
    assert list(opened.service._predicted)[-1] == b"last"
    assert len(opened.service._predicted) == 8
    assert opened.service._predicted_bytes == 8 * 1250


def test_listeners_are_counted_when_they_arrive(tmp_path: Path) -> None:
    """Many at once: none of them has begun to listen when the next one asks."""
    with shop(tmp_path, limits=ServiceLimits(events=5)) as opened:
        opened.send("cafe", CAFE)

        async def arrive() -> list[int]:
            streams = []
            for _ in range(30):
                with suppress(RefusedError):
                    streams.append(answering.EventStream(opened.service, None, "cafe"))
            opened.service.is_closing = True

            async def receive() -> dict[str, Any]:
                return {"type": "http.disconnect"}

            async def send(message: Any) -> None:
                assert message.get("status", 200) == 200  # browsers listen to no other
                await asyncio.sleep(0)

            taken = opened.service.listeners
            await asyncio.gather(*(stream({"type": "http", "asgi": {}}, receive, send) for stream in streams))
            return [len(streams), taken, opened.service.listeners]

        assert opened.http.run(arrive()) == [5, 5, 0]


def test_every_answer_forbids_guessing_and_keeping(opened: Shop) -> None:
    opened.send("cafe", CAFE)
    for answer in (
        opened.get(""), opened.get("/nowhere/model"), opened.send("cafe", [TEA]), opened.send("cafe", []),
        opened.http.request("GET", "/healthz"), opened.http.request("GET", "/openapi.json"),
        opened.http.request("GET", "/nowhere"), opened.http.request("GET", "/", headers={"Host": "evil.example"}),
    ):  # fmt: skip
        kept = answer.headers["Cache-Control"]
        assert (answer.headers["X-Content-Type-Options"], kept) == ("nosniff", "no-store")


@pytest.mark.parametrize("name", ["Old Town", "Caf\u00e9", "\u6771\u4eac 1", "a.b-c_d", "...", "x" * 64])
def test_markets_in_any_script(opened: Shop, name: str) -> None:
    path = quote(name, safe="")
    assert opened.http.request("POST", f"/v1/markets/{path}/choices", json={"records": CAFE}).status_code == 202
    assert opened.get("").json()["markets"][0]["market"] == name
    assert opened.get(f"/{path}/settings").json()["market"] == name
    page = opened.http.request("GET", "/")
    assert f'href="/markets/{quote(name)}"' in page.text
    assert opened.http.request("GET", f"/markets/{path}").status_code == 200
    token = tokens.create(opened.folder, [name], ["read"])
    told = {"Authorization": f"Bearer {token}"}
    assert opened.get(f"/{path}/settings", **told).status_code == 200


@pytest.mark.parametrize("name", [".", "..", " a", "a ", "a,b", "a\nb", "a\u202eb", "*", "x" * 65, "a<b"])
def test_names_that_no_market_can_have(opened: Shop, name: str) -> None:
    with pytest.raises(ValueError, match="A market cannot be called"):
        tokens.check_name(name)
    if name not in (".", ".."):  # clients resolve these before they send them
        answer = opened.http.request("POST", f"/v1/markets/{quote(name, safe='')}/choices", json={"records": CAFE})
        assert answer.status_code == 422
        assert len(name) > 64 or error(answer)[1].startswith("A market cannot be called")
    else:
        assert ask(opened, f"/v1/markets/{name}/choices", [b'{"records": []}'])[0]["status"] == 422
    assert opened.get("").json() == {"markets": []}


def test_deep_nesting_is_one_sentence(opened: Shop) -> None:
    deep = "[" * 1000
    for word in ("predict", "decide", "choices"):
        answer = opened.http.request("POST", f"/v1/markets/cafe/{word}", content=deep, headers=JSON)
        assert (answer.status_code in (400, 422), set(answer.json())) == (True, {"error"})
    with pytest.raises(ValueError, match="names"):
        items_in(deep, {"tea": "tea"})


def test_settings_that_are_left_out_stay(opened: Shop) -> None:
    opened.send("cafe", CAFE)
    assert opened.settle("cafe", window=500, served="sparse").json()["window"] == 500
    changed = opened.settle("cafe", seed=3).json()
    assert (changed["window"], changed["served"], changed["seed"]) == (500, "sparse", 3)
    reset = opened.settle("cafe", window=None, served=None, detect=None).json()
    assert (reset["window"], reset["served"], reset["detect"], reset["seed"]) == (None, "max-entropy", None, 3)
    assert opened.get("/cafe/settings").json() == reset


def test_as_many_writes_wait_as_the_limit_says(tmp_path: Path) -> None:
    with shop(tmp_path, limits=ServiceLimits(waiting=1)) as opened:
        opened.send("cafe", CAFE)
        assert opened.get("").json()["markets"][0]["market"] == "cafe"


def test_a_record_without_a_choice_is_refused_though_its_offer_is_known(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", [TEA])
        status, sentence = error(opened.send("cafe", [{"offered": TEA["offered"]}]))
        assert (status, "Record 0 is wrong" in sentence) == (422, True)
