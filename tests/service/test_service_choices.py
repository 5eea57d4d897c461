"""Choices that come in over HTTP: what is acknowledged is in the log, and what is refused says why."""

import json
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from local_service import CAKE, PIE, TEA, Shop, error, shop
from rankstream.service.limits import ServiceLimits
from rankstream.service.storage.log import market_row
from rankstream.service.storage.maintenance import records_of

pytestmark = pytest.mark.quick


def logged(opened: Shop, market: str = "cafe") -> list[dict[str, Any]]:
    """The records of the log, as they were sent."""
    row = market_row(opened.service.reading, market)
    return [] if row is None else list(records_of(opened.service.reading, row))


def test_a_batch_is_in_the_log_when_it_is_acknowledged(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        answer = opened.send("cafe", [TEA, {**PIE, "count": 2.5, "time": 7}])
        assert (answer.status_code, answer.json()) == (202, {"market": "cafe", "position": 2, "records": 2})
        first, second = logged(opened)
        assert first["chosen"] == "tea"
        assert (second["chosen"], second["count"], second["time"]) == ("pie", 2.5, 7.0)
        assert opened.send("cafe", [CAKE]).json()["position"] == 3
        facts = opened.get("").json()["markets"][0]
        assert (facts["market"], facts["records"], facts["learned"], facts["model_age"]) == ("cafe", 3, 0, None)


def test_lines_of_json(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        text = "\n".join(json.dumps(one) for one in (TEA, PIE)) + "\n\n"
        kind = {"Content-Type": "application/x-ndjson"}
        answer = opened.http.request("POST", "/v1/markets/cafe/choices", content=text, headers=kind)
        assert (answer.status_code, answer.json()["records"]) == (202, 2)
        broken = opened.http.request("POST", "/v1/markets/cafe/choices", content="{} x\n", headers=kind)
        assert error(broken) == (
            422,
            "The request is not JSON in every line: see /openapi.json for the format.",
        )


WRONG = {
    "not offered": ({**TEA, "chosen": "rum"}, "its choice 'rum' is not in its offer"),
    "not JSON": ("tea", 'it has no "offered" and "chosen"'),
    "negative": ({**TEA, "count": -1}, "its count -1 is not a number >= 0"),
    "twice": ({"offered": ["tea", "tea"], "chosen": "tea"}, "lists an item twice"),
    "empty": ({"offered": [], "chosen": "tea"}, "is not a list of texts or numbers"),
    "alike": ({"offered": [7, "7"], "chosen": 7}, "lists an item twice"),
    "known as text": ({"offered": [1, "tea"], "chosen": 1}, "its item 1 looks like '1', seen earlier"),
    "many items": (
        {"offered": [str(n) for n in range(201)], "chosen": "1"},
        "its offer has 201 items and may have 200",
    ),
    "long name": ({"offered": ["x" * 201], "chosen": "x" * 201}, "a name of 201 characters: use at most 200"),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A service for many tests: each has a market of its own."""
    with shop(tmp_path_factory.mktemp("shared")) as opened:
        yield opened


@pytest.mark.parametrize("name", WRONG)
def test_a_bad_record_is_named_and_nothing_is_stored(shared: Shop, name: str) -> None:
    (record, reason), market = WRONG[name], name.replace(" ", "-")
    shared.send(market, [{"offered": ["1", "tea"], "chosen": "tea"}])
    status, sentence = error(shared.send(market, [TEA, record]))
    assert status == 422
    assert sentence.startswith("Record 1 is wrong: ")
    assert reason in sentence
    assert sentence.endswith("Nothing of the batch was stored.")
    assert len(logged(shared, market)) == 1
    assert shared.send(market, [TEA]).json()["position"] == 2


BODIES = {
    "no records": ({"records": []}, "There are no records in the request"),
    "another key": ({"records": [TEA], "more": 1}, 'The request must be an object with "records" only'),
    "a list": ([TEA], 'The request must be an object with "records" only'),
    "not a list": ({"records": TEA}, "There are no records in the request"),
}


@pytest.mark.parametrize(("content", "reason"), BODIES.values(), ids=BODIES)
def test_a_bad_request_is_one_sentence(shared: Shop, content: Any, reason: str) -> None:
    status, sentence = error(shared.http.request("POST", "/v1/markets/unmade/choices", json=content))
    assert (status, reason in sentence) == (422, True), sentence
    assert market_row(shared.service.reading, "unmade") is None


def test_too_much_at_once(tmp_path: Path) -> None:
    limits = ServiceLimits(body=2000, records=3, offers=1, markets=1)
    with shop(tmp_path, limits=limits) as opened:
        assert error(opened.send("cafe", [TEA] * 100))[0] == 413
        assert "larger than 2,000 bytes" in error(opened.send("cafe", [TEA] * 100))[1]

        async def parts() -> AsyncIterator[bytes]:
            for part in (b'{"records": [' + b" " * 1500, b" " * 1500, b"]}"):
                yield part

        kind = {"Content-Type": "application/json"}
        assert error(opened.http.request("POST", "/v1/markets/cafe/choices", content=parts(), headers=kind))[0] == 413
        assert error(opened.send("cafe", [TEA] * 4)) == (
            413,
            "The batch has 4 records and may have 3: send several batches.",
        )
        assert opened.send("cafe", [TEA] * 3).status_code == 202
        assert "more than 1 different offers" in error(opened.send("cafe", [CAKE]))[1]
        assert error(opened.send("bar", [TEA])) == (
            409,
            "The limit on markets (1) is reached: purge one first, or raise the limit.",
        )
        assert len(logged(opened)) == 3


def test_too_many_batches_wait(tmp_path: Path) -> None:
    with shop(tmp_path, limits=ServiceLimits(waiting=1)) as opened:
        opened.send("cafe", [TEA])
        opened.service.limits = ServiceLimits(waiting=0)
        answer = opened.send("cafe", [TEA])
        assert error(answer) == (429, "0 batches are waiting to be written: send this again later.")
        assert answer.headers["Retry-After"] == "1"


def test_markets_that_may_not_be_made(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", [TEA])
    with shop(tmp_path, new_markets=False) as opened:
        assert opened.send("cafe", [TEA]).status_code == 202
        status, sentence = error(opened.send("bar", [TEA]))
        assert (status, "this server creates none" in sentence) == (404, True)
        assert error(opened.send("no,comma", [TEA]))[0] == 422


def test_a_key_counts_once(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        first = opened.send("cafe", [TEA], **{"Idempotency-Key": "one"})
        opened.send("cafe", [PIE])
        again = opened.send("cafe", [TEA], **{"Idempotency-Key": "one"})
        assert (again.status_code, again.json()) == (202, first.json())
        assert len(logged(opened)) == 2
        status, sentence = error(opened.send("cafe", [PIE], **{"Idempotency-Key": "one"}))
        assert (status, "was used with another body" in sentence) == (422, True)
        assert opened.send("bar", [PIE], **{"Idempotency-Key": "one"}).json()["position"] == 1
        bad = opened.send("cafe", [{**TEA, "chosen": "rum"}], **{"Idempotency-Key": "two"})
        assert bad.status_code == 422
        assert opened.send("cafe", [TEA], **{"Idempotency-Key": "two"}).json()["position"] == 3


def test_two_clients_with_one_key_at_once(tmp_path: Path) -> None:
    with shop(tmp_path) as opened, ThreadPoolExecutor(8) as threads:
        for number in range(5):
            sent = [
                threads.submit(opened.send, "cafe", [TEA, PIE], **{"Idempotency-Key": f"k{number}"}) for _ in range(8)
            ]
            answers = [one.result() for one in sent]
            assert {one.status_code for one in answers} == {202}
            assert {one.json()["position"] for one in answers} == {2 * number + 2}
        assert len(logged(opened)) == 10


def test_a_key_is_kept_seven_days(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", [TEA], **{"Idempotency-Key": "one"})
        write = opened.service.writer.submit
        write(lambda connection: connection.execute("UPDATE keys SET made = made - 6.9 * 86400")).result()
        write(opened.service.sweep).result()
        assert opened.send("cafe", [TEA], **{"Idempotency-Key": "one"}).json()["position"] == 1
        write(lambda connection: connection.execute("UPDATE keys SET made = made - 0.2 * 86400")).result()
        assert opened.send("cafe", [TEA], **{"Idempotency-Key": "one"}).json()["position"] == 2
        write(lambda connection: connection.execute("UPDATE keys SET made = made - 8 * 86400")).result()
        write(opened.service.sweep).result()
        assert opened.service.reading.execute("SELECT count(*) FROM keys").fetchone() == (0,)


def test_a_choice_of_null_is_the_no_choice_item(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", [TEA])
        assert error(opened.send("cafe", [{**TEA, "chosen": None}]))[0] == 422
        assert opened.settle("cafe", no_choice="nothing").json()["no_choice"] == "nothing"
        assert opened.send("cafe", [{"offered": ["pie"], "chosen": None}, {**TEA, "chosen": None}]).status_code == 202
        assert [(one["offered"], one["chosen"]) for one in logged(opened)[1:]] == [
            (["pie", "nothing"], "nothing"),
            (["tea", "pie", "nothing"], "nothing"),
        ]
