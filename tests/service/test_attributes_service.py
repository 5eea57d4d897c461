"""Attributes in the service: a setting of a market, and candidates in predictions and decisions."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from local_service import Shop, error, shop

SIZES = {"mini": 1.0, "small": 2.0, "medium": 3.0, "large": 4.0, "giant": 5.0}
TABLE = {item: {"size": size} for item, size in SIZES.items()}
NEW = {"huge": {"size": 6.0}, "tiny": {"size": 0.5}}


def bought(number: int) -> list[dict[str, Any]]:
    """Choices of customers who like large items."""
    random, names = np.random.default_rng(0), list(SIZES)
    records = []
    for _ in range(number):
        offered = [*random.choice(names, size=2, replace=False).tolist(), "nothing"]
        worth = np.exp([*(SIZES[item] for item in offered[:2]), 3.0])
        records.append({"offered": offered, "chosen": offered[random.choice(3, p=worth / worth.sum())]})
    return records


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop(tmp_path_factory.mktemp("attributes") / "shop") as opened:
        assert opened.send("shop", bought(400)).status_code == 202
        answer = opened.settle("shop", attributes=TABLE)
        assert answer.json().get("attributes") == TABLE, answer.text
        assert opened.send("plain", bought(60)).status_code == 202
        opened.learn()
        yield opened


def test_candidates_are_predicted(store: Shop) -> None:
    offers = [["huge", "mini", "nothing"], ["tiny", "mini", "nothing"], ["giant", "mini", "nothing"]]
    answer = store.post("/shop/predict", {"offers": offers, "items": NEW}).json()
    huge, tiny, giant = (each["shares"][each["offer"][0]] for each in answer["predictions"])
    assert huge > 0.7 > 0.3 > tiny
    assert "Never offered" in answer["predictions"][0]["warnings"][0]
    alone = store.post("/shop/predict", {"offers": offers[2:]}).json()["predictions"][0]
    assert alone["shares"]["giant"] == pytest.approx(giant)
    assert alone["warnings"] == []
    other = {"huge": {"size": 0.5}}  # another item of the same name is not answered from the cache
    shares = store.post("/shop/predict", {"offers": offers[:1], "items": other}).json()["predictions"][0]["shares"]
    assert shares["huge"] < huge - 0.2


def test_candidates_are_decided_about(store: Shop) -> None:
    margins = dict.fromkeys([*SIZES, *NEW], 1.0) | {"huge": 1.3, "nothing": 0.0}
    decision = store.post("/shop/decide", {"margins": margins, "items": NEW, "at_most": 1}).json()["decision"]
    assert decision["offer"][0] == "huge"
    own = {item: margin for item, margin in margins.items() if item not in NEW}
    assert store.post("/shop/decide", {"margins": own, "at_most": 1}).json()["decision"]["offer"][0] == "giant"


@pytest.mark.parametrize(
    ("market", "content", "sentence"),
    [
        ("shop", {"items": NEW, "interval": 0.9}, "There are no intervals for candidates yet"),
        ("shop", {"items": {"mini": {"size": 1.0}}}, "already has the item 'mini'"),
        ("shop", {"items": {"new": {"weight": 1.0}}}, "'size' of 'new' is empty"),
        ("plain", {"items": NEW}, "This model cannot take new items"),
    ],
)
def test_candidates_that_cannot_be_are_refused(store: Shop, market: str, content: Any, sentence: str) -> None:
    status, said = error(store.post(f"/{market}/predict", {"offers": [["mini", "nothing"]], **content}))
    assert (status, sentence in said) == (422, True), said


def test_bad_tables_are_refused(store: Shop) -> None:
    status, said = error(store.settle("shop", attributes={"mini": {"size": 1.0}}))
    assert (status, "the same for all 1 items" in said) == (422, True), said
    status, said = error(store.settle("shop", attributes=TABLE, price_levels={"tea": [3.0]}))
    assert (status, "Attributes do not work with prices yet" in said) == (422, True), said
