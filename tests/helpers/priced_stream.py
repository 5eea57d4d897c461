"""Records of choices at prices, and a model that learns them in batches."""

from typing import Any

import numpy as np

from rankstream import Live, Record

LEVELS: dict[str, list[float]] = {"tea": [3, 3.5, 4], "cake": [4, 5]}


def choices(number: int, seed: int = 0) -> list[dict[str, Any]]:
    """What customers with a highest price for everything take; pie, which has no price, joins in the second half."""
    random, found = np.random.default_rng(seed), []
    for place in range(number):
        offer: dict[str, Any] = {"tea": float(random.choice([3, 3.1, 3.5, 4])), "cake": float(random.choice([4, 5]))}
        worth = dict(zip(offer, random.normal([3.8, 4.6], [0.8, 1.0]).tolist(), strict=True))
        left: dict[str, float] = {item: worth[item] - price for item, price in offer.items()} | {"nothing": 0.0}
        offer["nothing"] = None
        if place > number // 2 and place % 3 == 0:
            offer["pie"], left["pie"] = None, float(random.normal())
        chosen = max(left, key=lambda item: left[item])
        found.append({"offered": offer, "chosen": chosen})
    return found


def records(number: int, seed: int = 0) -> list[Record]:
    return [Record(one["offered"], one["chosen"]) for one in choices(number, seed)]


def in_batches(live: Live, batch: list[Record], size: int) -> Live:
    for start in range(0, len(batch), size):
        live.observe(batch[start : start + size])
    return live
