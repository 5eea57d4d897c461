"""What the service answers, from what the learner has published."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rankstream as rs
from local_service import CAFE, PIE, TEA, Shop, error, shop
from rankstream.data import drift
from rankstream.service.http import read_routes
from rankstream.service.limits import RefusedError, ServiceLimits
from rankstream.service.processes import questions as asking
from rankstream.service.settings import checked
from rankstream.service.storage import publication
from rankstream.service.storage import states as store


@pytest.fixture(scope="module")
def cafe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop(tmp_path_factory.mktemp("service")) as opened:
        opened.send("cafe", CAFE * 3)
        opened.learn()
        opened.send("bar", CAFE)
        opened.settle("bar", served="sparse")
        opened.learn()
        yield opened


def test_every_answer_says_how_old_its_model_is(cafe: Shop) -> None:
    questions = [
        cafe.post("/cafe/predict", {"offers": [["tea", "nothing"]]}),
        cafe.post("/cafe/decide", {"margins": {"tea": 1, "pie": 2, "cake": 3}}),
        cafe.post("/cafe/next-offer", {"margins": {"tea": 1, "pie": 2, "cake": 3}, "how": "greedy"}),
        *(cafe.get(f"/cafe/{kind}") for kind in ("segments", "substitution", "certificate")),
    ]
    for answer in questions:
        assert answer.status_code == 200, answer.text
        model = answer.json()["model"]
        assert (model["position"], model["records"], model["learned"]) == (108, 108, 108)
        assert model["kind"] == "max-entropy"
        assert 0.0 <= model["age"] < 600.0


def test_markets(cafe: Shop) -> None:
    bar, first = cafe.get("").json()["markets"]
    assert (first["market"], first["records"], first["learned"], first["offers"], first["items"]) == (
        "cafe",
        108,
        108,
        2,
        4,
    )
    assert first["model_age"] >= 0.0
    assert (bar["kind"], first["kind"]) == ("sparse", "max-entropy")


def test_predictions_are_those_of_the_model_file(cafe: Shop, tmp_path: Path) -> None:
    file = cafe.get("/cafe/model")
    (tmp_path / "model.json").write_bytes(file.content)
    model = rs.load_model(tmp_path / "model.json")
    offers = [["tea", "nothing"], ["cake", "tea"], ["tea", "nothing"]]
    for _ in range(2):  # then they are remembered
        found = cafe.post("/cafe/predict", {"offers": offers}).json()["predictions"]
        assert [one["offer"] for one in found] == offers
        assert [one["shares"] for one in found] == [pytest.approx(model.predict(offer)) for offer in offers]
    assert file.headers["Rankstream-Position"] == "108"
    tag = file.headers["ETag"]
    same = cafe.get("/cafe/model", **{"If-None-Match": f'"other", {tag}'})
    assert (same.status_code, same.content) == (304, b"")
    assert cafe.get("/cafe/model", **{"If-None-Match": '"other"'}).status_code == 200


def test_a_model_that_was_just_replaced(cafe: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "model_text", lambda *_: None)
    assert error(cafe.get("/cafe/model"))[0] == 503
    assert error(cafe.post("/bar/predict", {"offers": [["tea", "pie"]]})) == (
        503,
        "The model has just been replaced: try again.",
    )


def test_few_models_and_predictions_are_remembered(cafe: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "MAX_MODELS", 1)
    monkeypatch.setattr(cafe.service, "limits", ServiceLimits(cache=600))
    asked = asking.Answerer(cafe.folder)
    for market in (1, 2, 1):
        digest = store.published_models(asked.store)[market].digest
        status, _ = asked.answer({"kind": "predict", "market": market, "digest": digest, "offers": [("tea",)]})
        assert (status, len(asked._models)) == (200, 1)
    asked.close()
    for offers in ([["tea", "pie"]], [["pie", "cake"], ["tea", "cake"]]):
        assert cafe.post("/cafe/predict", {"offers": offers}).status_code == 200
    assert len(cafe.service._predicted) == 1
    assert cafe.service._predicted_bytes <= 600


def test_what_predictions_cannot_be_made(cafe: Shop) -> None:
    status, sentence = error(cafe.post("/cafe/predict", {"offers": [{"tea": 3.5}]}))
    assert (status, sentence) == (422, asking.NO_PRICES)
    status, sentence = error(cafe.post("/cafe/predict", {"offers": [["rum"]]}))
    assert (status, "'rum', which is not an item of the model" in sentence) == (422, True)
    assert error(cafe.post("/cafe/predict", {"offers": [[]]}))[0] == 422
    assert error(cafe.post("/cafe/predict", {"offers": []}))[0] == 422
    many = error(cafe.post("/cafe/predict", {"offers": [["tea"]] * 501}))
    assert many == (413, "The request has 501 offers and may have 500: split it.")


def test_prices_go_to_models_that_know_them(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        for level, taken in ((3, 8), (4, 4)):
            offered = [f"tea @ {level}.00", "nothing"]
            opened.send(
                "cafe", [{"offered": offered, "chosen": one} for one in (offered[0], "nothing") for _ in range(taken)]
            )
        opened.settle("cafe", served="sparse")
        opened.learn()
        answer = opened.post("/cafe/predict", {"offers": [{"tea": 3.5, "nothing": None}]})
        assert answer.status_code == 200, answer.text
        (found,) = answer.json()["predictions"]
        assert sum(found["shares"].values()) == pytest.approx(1.0)
        assert error(opened.post("/cafe/predict", {"offers": [{"tea": 99.0}]}))[0] == 422


def test_decisions_follow_constraints(cafe: Shop) -> None:
    margins = {"tea": 1.0, "pie": 3.0, "cake": 2.0}
    constraints: dict[str, Any] = {
        "must": ["tea"],
        "never": ["pie"],
        "excludes": [["tea", "cake"]],
        "no_choice": "nothing",
    }
    answer = cafe.post("/cafe/decide", {"margins": margins, "top": 2, **constraints})
    assert answer.json()["decision"]["offer"] == ["tea"]
    answer = cafe.post(
        "/cafe/decide", {"margins": margins, "at_most": 2, "requires": [["pie", "tea"]], "space": 1, "capacity": 2}
    )
    assert set(answer.json()["decision"]["offer"]) <= {"tea", "pie", "cake"}
    status, sentence = error(cafe.post("/cafe/decide", {"margins": {"tea": 1.0}}))
    assert (status, "pie" in sentence) == (422, True)
    status, sentence = error(cafe.post("/cafe/decide", {"margins": margins, "must": ["rum"]}))
    assert (status, "'rum'" in sentence) == (422, True)
    assert error(cafe.post("/cafe/decide", {"margins": margins, "budget": 1000}))[0] == 422
    assert error(cafe.post("/cafe/next-offer", {"margins": margins, "must": ["tea"], "never": ["tea"]}))[0] == 422


def test_segments_and_substitution(cafe: Shop) -> None:
    dense, sparse = cafe.get("/cafe/segments?top=3").json(), cafe.get("/bar/segments?top=2").json()
    assert (dense["segments_by"], len(dense["segments"])) == ("first two choices", 3)
    assert (sparse["segments_by"], len(sparse["segments"])) == ("whole rankings", 2)
    items = cafe.get("/cafe/substitution").json()["items"]
    assert sum(one["share"] for one in items) == pytest.approx(1.0)
    assert sum(items[0]["gains"].values()) == pytest.approx(1.0)


def test_drift_between_halves(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", [TEA])
        assert error(opened.get("/cafe/drift"))[0] == 409
        opened.send("cafe", [TEA] * 200 + [PIE] * 200)
        found = opened.get("/cafe/drift?last=400").json()
        assert (found["before"], found["after"], found["tested"]) == (200, 200, 1)
        assert (found["moved"], found["offers"][0]["offer"]) == (1, ["tea", "pie", "nothing"])
        assert found["items"][0]["change"] == pytest.approx(-1.0)
        assert (found["changed"], found["verdict"].startswith("Tastes changed: tea -100.0 points")) == (True, True)
        same = opened.get("/cafe/drift?last=200").json()
        assert (same["moved"], same["changed"]) == (0, False)
        opened.send("cafe", [{**TEA, "count": 0.5}])
        assert opened.get("/cafe/drift").json()["changed"]
        opened.send("bar", [{**TEA, "count": 60}, {**PIE, "count": 60}])
        few = opened.get("/bar/drift").json()
        assert few["verdict"].startswith("Not enough choices yet: 1 before and 1 after")
        assert not few["changed"]


def test_before_there_is_a_model(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        assert error(opened.get("/cafe/model")) == (404, "Unknown market: send choices to it first.")
        assert error(opened.settle("cafe", window=10))[0] == 404
        opened.send("cafe", [TEA])
        for kind in ("model", "segments", "substitution", "certificate"):
            assert error(opened.get(f"/cafe/{kind}")) == (
                503,
                "This market's model is still being built. Try again in a second.",
            )
        assert asking.Answerer(tmp_path).answer({"kind": "next_offer", "market": 1, "constraints": {}})[0] == 409
        assert asking.Answerer(tmp_path).answer({"kind": "predict"})[0] == 503


def test_settings_that_do_not_go_together(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", [TEA, {**TEA, "count": 0.5}, {**TEA, "count": 200_000}])
        for settings, reason in (
            ({"half_life": 5, "window": 5}, "set one of them"),
            ({"half_life": "soon"}, "These settings cannot be combined"),
            ({"half_life": "7d"}, "3 records of the market have no time"),
            ({"window": 10}, "1 records of the market have counts that are not whole"),
            ({"no_choice": " "}, "no_choice must be a name or null"),
            ({"half_life": 0}, "half_life is 0"),  # none of these could be learned with
            ({"half_life": -1e308}, "half_life is -1e+308"),
            ({"half_life": 1.7e308}, "it must be between"),
            ({"half_life": "1e-7s"}, "half_life is 0"),
            ({"half_life": -5, "detect": True}, "half_life is -5"),
            ({"window": 1.7e308}, "it must be between"),
            ({"window": "1e-7s"}, "size is 0"),
            ({"colour": "red"}, "settings"),
        ):
            status, sentence = error(opened.settle("cafe", **settings))
            assert (status in (409, 422), reason in sentence or "colour" in sentence) == (True, True), sentence
        opened.send("bar", [{**TEA, "count": 200_000}])
        assert "counts above 100,000" in error(opened.settle("bar", detect=True))[1]
        assert opened.get("/cafe/settings").json()["half_life"] is None
        with pytest.raises(RefusedError, match="half a character"):
            checked({"no_choice": "\ud800"})
        assert (checked({"seed": 7}, 3)["seed"], checked({}, 3)["seed"]) == (7, 3)
        assert opened.settle("cafe", no_choice=" pie ").json()["no_choice"] == "pie"
        assert opened.send("cafe", [{"offered": ["tea", "pie"], "chosen": None}]).status_code == 202
        opened.learn()
        assert opened.get("").json()["markets"][1]["learned"] == 4
        opened.send("timed", [{**TEA, "time": 1.0}])
        assert opened.settle("timed", half_life="7d").status_code == 200
        assert 'it has no readable "time"' in error(opened.send("timed", [TEA]))[1]


def test_questions_that_wait_and_workers_that_die(cafe: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(_: Any) -> None:
        raise ChildProcessError("The process died.")

    monkeypatch.setattr(cafe.service.quick, "ask", die)
    assert error(cafe.get("/cafe/segments")) == (503, "The answer could not be computed: try again later.")
    monkeypatch.setattr(cafe.service.quick, "waiting", 8)
    answer = cafe.get("/cafe/segments")
    assert error(answer) == (429, "8 requests are waiting for an answer: try again later.")
    assert answer.headers["Retry-After"] == "5"


def test_events(cafe: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_routes, "PAUSE", 0.01)
    monkeypatch.setattr(read_routes, "SILENCE", 0.02)

    async def listen() -> list[str]:
        found = []
        stream: Any = read_routes.stream(cafe.service, None, "cafe")
        async for text in stream:
            found.append(text)
            if len(found) == 3:
                break
        await stream.aclose()
        return found

    records, gap, silence = asyncio.run(listen())
    assert records == read_routes.event("records", {"records": 108, "learned": 108})
    assert set(json.loads(gap.splitlines()[1].removeprefix("data: "))) == {"gap", "distance", "position"}
    assert silence.startswith(":")
    monkeypatch.setattr(cafe.service, "limits", ServiceLimits(events=1))
    monkeypatch.setattr(cafe.service, "listeners", 1)
    assert error(cafe.get("/cafe/events")) == (
        429,
        "1 clients are already listening to events: close one, or try later.",
    )


def test_events_of_alarms_and_their_end(cafe: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_routes, "PAUSE", 0.001)
    told: list[dict[str, Any]] = [{"records": {"records": 1}, "alarm": []}]
    told += [{"records": {"records": 1}, "alarm": [{"choice": 9, "since": 5}]}] * 2

    def look(*_: Any) -> dict[str, Any]:
        if not told:
            cafe.service.is_closing = True
            return {}
        return told.pop(0)

    async def listen() -> list[str]:
        return [text async for text in read_routes.stream(cafe.service, None, "cafe")]

    monkeypatch.setattr(read_routes, "look", look)
    found = asyncio.run(listen())
    cafe.service.is_closing = False
    assert found == [
        read_routes.event("records", {"records": 1}),
        read_routes.event("alarm", {"choice": 9, "since": 5}),
    ]
    monkeypatch.undo()
    assert asyncio.run(_all(read_routes.stream(cafe.service, None, "purged"))) == []


async def _all(stream: Any) -> list[str]:
    return [text async for text in stream]


def test_predictions_are_provisional_as_long_as_nothing_is_compared() -> None:
    assert publication.MIN_CHOICES == drift.MIN_CHOICES == 30  # as the schema of predictions says
