"""A till's export with a known effect of prices and stores, to see what a reading makes of it."""

from pathlib import Path

import numpy as np
import pandas as pd

STORES = ("Old Town", "Harbour", "West")
ITEMS = ("Skyr Plain", "Skyr Vanilla", "Greek 500g", "Oat Drink")


def visits(n: int, seed: int = 0, price_effect: float = 0.0, store_effect: float = 0.0) -> pd.DataFrame:
    """A row for each item on the shelf at each visit; ``store_effect`` lifts the first item in the last store."""
    rng = np.random.default_rng(seed)
    liking, regular = rng.normal(size=len(ITEMS)), 1.5 + 0.5 * np.arange(len(ITEMS))
    rows = []
    for visit in range(n):
        store = int(rng.integers(3))
        there = [j for j in range(len(ITEMS)) if (visit // 5 + j) % 4]
        prices = [regular[j] - (0.31 if rng.random() < 0.3 else 0.0) for j in there]
        worth = [liking[j] - price_effect * (price - regular[j]) for j, price in zip(there, prices, strict=True)]
        worth = [value + store_effect * (j == 0 and store == 2) for j, value in zip(there, worth, strict=True)]
        taken = int(np.argmax(np.array([*worth, 0.0]) + rng.gumbel(size=len(there) + 1)))
        day = pd.Timestamp("2026-03-02 08:03") + pd.Timedelta(hours=visit * 4000 // n)
        for place, (j, price) in enumerate(zip(there, prices, strict=True)):
            rows.append((1000 + visit, ITEMS[j], int(place == taken), round(price, 2), STORES[store], day))
    return pd.DataFrame(rows, columns=["obs_id", "item", "chosen", "Price", "store", "date"])


def write(table: pd.DataFrame, path: Path) -> Path:
    table.to_csv(path, index=False, date_format="%Y-%m-%d %H:%M")
    return path
