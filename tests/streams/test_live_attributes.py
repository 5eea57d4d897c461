"""Streams with attributes of items: a new item is predicted by them, and by its choices as they come."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankstream import Live, Record
from rankstream._core.types import Vec
from rankstream.data.attributes import Attributes
from rankstream.streams.background import BackgroundLive, refreshed

ITEMS = [f"item {number}" for number in range(9)]
SIZES = np.linspace(-1.5, 1.5, 9)
WORTH = np.append(np.exp(1.2 * SIZES), 1.0)
TABLE: dict[str, dict[str, Any]] = {item: {"size": size} for item, size in zip(ITEMS, SIZES.tolist(), strict=True)}
NEW = ITEMS[-1]


def records(number: int, seed: int, items: list[str]) -> list[Record]:
    """Choices of customers who like large items, from random offers of three."""
    random, made = np.random.default_rng(seed), []
    for _ in range(number):
        codes = [*sorted(random.choice(len(items), size=3, replace=False).tolist()), len(ITEMS)]
        worth: Vec = WORTH[codes]
        offer = tuple([*ITEMS, "nothing"][code] for code in codes)
        made.append(Record(offer, offer[random.choice(4, p=worth / worth.sum())]))
    return made


def launched(**settings: Any) -> Live:
    """A stream in which the last item has been offered once, and was not chosen."""
    live = Live(**settings)
    live.observe(records(600, 0, ITEMS[:-1]))
    live.observe(Record((NEW, "item 4", "nothing"), "nothing"))
    return live


def test_a_new_item_is_predicted_by_its_attributes_from_its_first_choice_on() -> None:
    offer, truth = (NEW, "item 4", "nothing"), WORTH[8] / (WORTH[8] + WORTH[4] + 1.0)
    known, unknown = (live.model.predict(offer)[NEW] for live in (launched(attributes=TABLE), launched()))
    assert abs(known - truth) < 0.15
    assert abs(known - truth) < 0.5 * abs(unknown - truth)


def test_a_stream_with_attributes_is_resumed_bit_for_bit(tmp_path: Path) -> None:
    live = launched(attributes=Attributes(ITEMS, {"size": SIZES.tolist()}))
    live.save(tmp_path / "live.npz")
    again = Live.load(tmp_path / "live.npz")
    for one in (live, again):
        one.observe(records(300, 1, ITEMS))
    assert again.dense.to_content() == live.dense.to_content()
    offer = (NEW, "item 1", "nothing")
    assert again.model.predict(offer) == live.model.predict(offer)
    wide = again.model.with_items({"giant": {"size": 3.0}})
    assert wide.predict(("giant", "item 1", "nothing"))["giant"] > wide.predict(offer)[NEW] - 0.05


def test_items_without_a_row_may_join() -> None:
    live = launched(attributes={item: TABLE[item] for item in ITEMS[:-1]})
    assert live.serves == "max-entropy"
    assert 0.0 < live.model.predict((NEW, "item 4", "nothing"))[NEW] < 1.0


def test_a_refresh_elsewhere_has_the_attributes() -> None:
    learning = BackgroundLive(json.loads(json.dumps({"attributes": TABLE})))
    learning.observe(records(300, 0, ITEMS[:-1]), 300)
    learning = BackgroundLive.from_bytes(learning.to_bytes())
    job = learning.job()
    assert job is not None
    learning.take(json.loads(json.dumps(refreshed(job))))
    assert learning.serves == "max-entropy"
    assert any("attributes" in name for name in learning.model.about["prediction"]["weights"])
    assert learning.model.with_items({NEW: TABLE[NEW]}).predict((NEW, "item 4", "nothing"))[NEW] > 0.4


def test_attributes_and_prices_are_refused() -> None:
    with pytest.raises(ValueError, match="Attributes do not work with prices yet: set one of them"):
        Live(prices={"tea": [3, 4]}, attributes=TABLE)
