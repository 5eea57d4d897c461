"""A service that sells at prices, within this process."""

from collections.abc import Iterator
from typing import Any

import pytest

from local_service import Shop, drawn, shop
from rankstream.service.storage import states as store
from rankstream.streams.background import BackgroundLive

LEVELS = {"tea": [3.0, 3.5, 4.0], "cake": [4.0, 5.0]}


def sold(tea: float, cake: float, teas: int, cakes: int, leave: int) -> list[dict[str, Any]]:
    offered = {"tea": tea, "cake": cake, "nothing": None}
    taken = {"tea": teas, "cake": cakes, "nothing": leave}
    return [{"offered": offered, "chosen": item} for item, times in taken.items() for _ in range(times)]


SHOP = [
    *sold(3.0, 4.0, 20, 16, 8),
    *sold(3.1, 5.0, 26, 8, 10),
    *sold(3.5, 4.0, 13, 19, 12),
    *sold(4.0, 4.0, 8, 21, 15),
    *sold(4.0, 5.0, 14, 10, 20),
]


@pytest.fixture(scope="module")
def kiosk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop(tmp_path_factory.mktemp("prices") / "shop") as opened:
        drawn(opened)
        assert opened.settle("kiosk", served="sparse", no_choice="nothing", price_levels=LEVELS).status_code == 200
        answer = opened.send("kiosk", SHOP)
        assert answer.status_code == 202, answer.text
        opened.learn()
        yield opened


def learned(opened: Shop, market: str = "kiosk") -> BackgroundLive:
    kept = store.load_market(opened.service.published.connection, opened.service.row(market).id)
    assert kept is not None
    return BackgroundLive.from_bytes(kept.state)
