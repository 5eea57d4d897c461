"""Prices in the service: levels as a setting, choices at prices, questions, export, and the page's what-if."""

import json
from pathlib import Path
from typing import Any

import pytest

import rankstream as rs
from kiosk import LEVELS, SHOP, kiosk, learned
from local_service import TEA, Shop, error, shop
from rankstream.service.limits import ServiceLimits
from rankstream.service.storage import maintenance as folders

__all__ = ["kiosk"]


def test_the_learner_follows_prices_in_their_order(kiosk: Shop) -> None:
    live = learned(kiosk).live
    assert live.counts is not None
    assert live.prices == rs.PriceLevels(LEVELS)
    assert live.counts.assortments.order == rs.PriceLevels(LEVELS).order
    assert live.counts.observations == len(SHOP)
    assert live.counts.assortments.n_offers == 5
    settings = kiosk.get("/kiosk/settings").json()
    assert settings["price_levels"] == LEVELS
    assert kiosk.get("").json()["markets"][0]["items"] == 3


def test_predictions_at_prices(kiosk: Shop) -> None:
    offers = [{"tea": price, "cake": 4.0, "nothing": None} for price in (3.0, 3.25, 3.5, 4.0)]
    answer = kiosk.post("/kiosk/predict", {"offers": [*offers, ["tea @ 3.50", "cake @ 4.00", "nothing"]]}).json()
    tea = [one["shares"].get("tea") for one in answer["predictions"][:4]]
    assert tea == sorted(tea, reverse=True)
    assert tea[1] == pytest.approx((tea[0] + tea[2]) / 2)
    assert answer["predictions"][4]["shares"]["tea @ 3.50"] == pytest.approx(tea[2])
    status, sentence = error(kiosk.post("/kiosk/predict", {"offers": [{"tea": 9.0, "nothing": None}]}))
    assert (status, "outside its levels, which cover 3 to 4" in sentence) == (422, True)
    status, sentence = error(kiosk.post("/kiosk/predict", {"offers": [{"rum": 9.0, "nothing": None}]}))
    assert (status, "'rum', which is not an item of the model" in sentence) == (422, True)


def test_decisions_about_items_and_prices(kiosk: Shop) -> None:
    costs = {"tea": 1.2, "cake": 2.5}
    found = kiosk.post("/kiosk/decide", {"costs": costs, "no_choice": "nothing"}).json()["decision"]
    best = rs.decide.best_offer(learned(kiosk).model, costs=costs, no_choice="nothing")
    assert found["offer"] == [str(item) for item in best.offer]
    assert found["value"] == pytest.approx(best.value)
    bound: dict[str, Any] = {"must": ["tea"], "never": ["cake @ 5.00"], "ladders": [["tea", "cake"]]}
    found = kiosk.post("/kiosk/decide", {"costs": costs, **bound}).json()["decision"]
    assert [item for item in found["offer"] if item.startswith("tea @ ")]
    assert "cake @ 5.00" not in found["offer"]
    now = {"present": {"tea": 3.0, "cake": 4.0}, "changes": 0}
    found = kiosk.post("/kiosk/decide", {"costs": costs, **now}).json()["decision"]
    assert set(found["offer"]) == {"tea @ 3.00", "cake @ 4.00"}
    again = kiosk.post("/kiosk/decide", {"costs": costs, "present": ["tea @ 3.00", "cake @ 4.00"], "changes": 0})
    assert again.json()["decision"]["offer"] == found["offer"]
    tried = kiosk.post("/kiosk/next-offer", {"costs": costs, "at_most": 1, "how": "greedy", "no_choice": "nothing"})
    assert tried.json()["decision"]["offer"][0].partition(" @ ")[0] in costs
    status, sentence = error(kiosk.post("/kiosk/decide", {"margins": {"tea": 1.0}}))
    assert (status, "The margin of 'tea' depends on its price: give costs" in sentence) == (422, True)
    assert "neither margins nor costs" in error(kiosk.post("/kiosk/decide", {}))[1]


def test_the_examples_with_prices_in_the_documentation_are_answered(kiosk: Shop) -> None:
    content = kiosk.http.request("GET", "/openapi.json").json()
    shapes = content["components"]["schemas"]
    for name, path in (("PredictBody", "predict"), ("DecideBody", "decide"), ("NextBody", "next-offer")):
        answer = kiosk.post(f"/kiosk/{path}", shapes[name]["examples"][1])
        assert answer.status_code == 200, answer.text
    sent = content["paths"]["/v1/markets/{market}/choices"]["post"]["requestBody"]["content"]["application/json"]
    kiosk.settle("example", price_levels=LEVELS)
    assert kiosk.send("example", sent["examples"]["prices"]["value"]["records"]).json()["records"] == 2


def test_types_and_substitution_are_at_usual_prices(kiosk: Shop) -> None:
    usual = ["tea @ 4.00", "cake @ 4.00", "nothing"]
    assert [one["item"] for one in kiosk.get("/kiosk/substitution").json()["items"]] == usual
    types = kiosk.get("/kiosk/segments?top=100").json()["segments"]
    assert {item for one in types for item in one["ranking"]} <= set(usual)
    assert sum(one["share"] for one in types) == pytest.approx(1.0)


def test_drift_is_about_items_at_levels(kiosk: Shop) -> None:
    found = kiosk.get("/kiosk/drift").json()
    assert found["before"] + found["after"] == len(SHOP)
    assert len(found["appeared"]) == 2


@pytest.mark.parametrize("name", ["kiosk.jsonl", "kiosk.parquet"])
def test_exported_choices_have_the_prices_that_were_sent(kiosk: Shop, name: str, tmp_path: Path) -> None:
    assert folders.export(kiosk.folder, "kiosk", tmp_path / name) == len(SHOP)
    live = learned(kiosk).live
    assert live.counts is not None
    read = rs.read(tmp_path / name, prices="offered", price_levels=rs.PriceLevels(LEVELS), no_choice="nothing")
    assert read.counts.digest() == live.counts.digest()
    raw = rs.read(tmp_path / name, prices="offered").prices
    assert raw is not None
    assert 3.1 in raw.levels["tea"]


@pytest.mark.parametrize(
    ("offered", "reason"),
    [
        ({"tea": 2.0, "nothing": None}, "the price 2 of 'tea' is outside its levels, which cover 3 to 4"),
        (["tea", "nothing"], "the price of 'tea' is missing"),
        ({"tea": True, "nothing": None}, "the price of 'tea' is True, which is not a number"),
        ({"pie": 2.0, "nothing": None}, "the item 'pie' has a price, but no levels"),
        (["tea@3.00", "tea@3.50", "nothing"], "the offer has two prices of 'tea', 3.0 and 3.5"),
    ],
)
def test_records_that_are_not_on_the_levels_are_refused(kiosk: Shop, offered: Any, reason: str) -> None:
    good = {"offered": {"tea": 1 + 2, "nothing": None}, "chosen": None}
    status, sentence = error(kiosk.send("kiosk", [good, {"offered": offered, "chosen": "nothing"}]))
    assert status == 422
    assert sentence.startswith(f"Record 1 is wrong: {reason}")
    assert kiosk.service.row("kiosk").records == len(SHOP)


def test_settings_and_choices_that_do_not_go_together(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        status, sentence = error(opened.send("cafe", SHOP[:1]))
        assert (status, "has prices, but no price levels were given" in sentence) == (422, True)
        opened.send("cafe", [TEA])
        status, sentence = error(opened.settle("cafe", price_levels=LEVELS))
        assert status == 409
        assert "does not match these price levels: the price of 'tea' is missing" in sentence
        assert opened.settle("cafe", price_levels={"rum": [1, 2]}).status_code == 200  # nobody has sent that
        wrong: list[Any] = [{}, {"tea": []}, {"tea": [3, 3]}, {"tea": [-1]}, {"tea": "3"}, []]
        for levels in wrong:
            assert error(opened.settle("cafe", price_levels=levels))[0] == 422
        opened.settle("kiosk", price_levels=LEVELS, served="sparse")
        opened.send("kiosk", SHOP)
        assert error(opened.settle("kiosk", price_levels=None))[0] == 409
        status, sentence = error(opened.settle("kiosk", price_levels={"tea": [3, 3.5], "cake": [4, 5]}))
        assert (status, "The price 4 of 'tea'".lower() in sentence.lower()) == (409, True)
        opened.settle("bakery", price_levels={"bun": [1, 2]})
        one = {"offered": {"bun": 1, "nothing": None}, "chosen": "bun"}
        assert opened.send("bakery", [one, one]).status_code == 202
        status, sentence = error(opened.send("bakery", [{**one, "offered": {"bun": True, "nothing": None}}]))
        assert (status, "True, which is not a number" in sentence) == (422, True)
    with shop(tmp_path / "closed", new_markets=False) as opened:
        assert error(opened.settle("kiosk", price_levels=LEVELS))[0] == 404


def test_offers_are_limited_at_levels_and_prices_by_how_many_ways_there_are(tmp_path: Path) -> None:
    with shop(tmp_path / "one", limits=ServiceLimits(offers=2)) as opened:
        opened.settle("kiosk", price_levels={"tea": [3, 4]})
        every = [{"offered": {"tea": 3 + place / 100, "nothing": None}, "chosen": "tea"} for place in range(60)]
        assert opened.send("kiosk", every[:40]).status_code == 202
        status, sentence = error(opened.send("kiosk", every))
        assert (status, "more than 40 offers at different prices: round prices" in sentence) == (409, True)
        assert opened.send("kiosk", every[:40]).status_code == 202
    with shop(tmp_path / "two", limits=ServiceLimits(offers=2)) as opened:
        opened.settle("kiosk", price_levels={"tea": [3, 4, 5]})
        priced = [{"offered": {"tea": price, "nothing": None}, "chosen": "tea"} for price in (3, 3.1, 4, 4.2, 5)]
        assert opened.send("kiosk", priced[:4]).status_code == 202
        assert "more than 2 different offers" in error(opened.send("kiosk", priced))[1]


def test_other_levels_learn_everything_again_and_a_restart_goes_on(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.settle("kiosk", price_levels=LEVELS, served="sparse")
        opened.send("kiosk", SHOP[:100])
        opened.learn()
        opened.send("kiosk", SHOP[100:])
        opened.send("kiosk", [{"offered": ["pie", "nothing"], "chosen": "pie"}] * 3)
        opened.learn()
        resumed = learned(opened)
        assert resumed.position == len(SHOP) + 3
        finer = {"tea": [3.0, 3.1, 3.5, 4.0], "cake": [4.0, 5.0]}
        assert opened.settle("kiosk", price_levels=finer, served="sparse").status_code == 200
        opened.learn()
        live = learned(opened).live
        assert live.counts is not None
        assert {"tea @ 3.10", "cake @ 5.00", "nothing"} in [
            set(map(str, offer)) for offer in live.counts.assortments.offers
        ]
        assert live.counts.assortments.order == rs.PriceLevels(finer).order
        assert live.counts.observations == len(SHOP) + 3


def test_the_client_sends_prices() -> None:
    sent: list[Any] = []

    class Caught(rs.Client):
        def _request(self, method: str, path: str, body: Any = None, headers: Any = None) -> dict[str, Any]:
            sent.append(json.loads(body))
            return {"position": 1, "predictions": [], "decision": {}}

    with Caught("http://127.0.0.1:1") as client:
        client.send("kiosk", rs.Record({"tea": 3.5, "nothing": None}, "tea"))
        client.predict("kiosk", [{"tea": 3.5, "nothing": None}, ("tea", "nothing")])
        client.decide("kiosk", costs={"tea": 1.0})
    assert sent[0]["records"] == [{"offered": {"tea": 3.5, "nothing": None}, "chosen": "tea", "count": 1.0}]
    assert sent[1]["offers"] == [{"tea": 3.5, "nothing": None}, ["tea", "nothing"]]
    assert sent[2]["costs"] == {"tea": 1.0}
