"""Simulate half a year at a bakery's counter: ``python examples/bakery.py`` writes the three tables of the gallery.

- ``bakery.csv``: what was on the shelf, what was chosen, and how often, month by month;
- ``bakery-items.csv``: what a sale of each item earns;
- ``bakery-prices.csv``: choices between a croissant and a muffin at several prices.

There are three kinds of customers: sweet, hearty, and those who come for a croissant. From May on, more are hearty.
All numbers are invented.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

import rankstream as rs

FOLDER = Path(__file__).parent
ITEMS = ("croissant", "muffin", "cookie", "bagel", "pretzel", "scone", "nothing")
MARGINS = (1.30, 1.90, 0.90, 1.60, 1.10, 1.70)
SWEET = (6.0, 5.0, 3.0, 0.3, 0.3, 1.5, 1.5)
HEARTY = (0.8, 0.2, 0.2, 6.0, 4.0, 0.5, 1.5)
CROISSANT = (8.0, 0.2, 0.2, 0.3, 0.2, 0.4, 2.0)
SHELVES = (
    "croissant;muffin;cookie;bagel", "croissant;muffin;bagel;pretzel", "croissant;cookie;bagel;pretzel",
    "muffin;cookie;bagel;pretzel", "croissant;muffin;cookie;scone", "croissant;bagel;scone;pretzel",
    "croissant;muffin;bagel", "muffin;bagel;scone", "croissant;pretzel;cookie", "croissant;muffin;cookie;bagel;pretzel",
    "cookie;pretzel;scone", "muffin;cookie;scone;bagel",
)  # fmt: skip
PRICES = ((2.2, 2.6), (2.2, 3.2), (2.6, 2.6), (2.6, 3.2), (3.0, 2.6), (3.0, 3.2))


def choices(random: np.random.Generator) -> list[str]:
    """Rows of bakery.csv: 6,000 visits a month."""
    offers = rs.Assortments([(*shelf.split(";"), "nothing") for shelf in SHELVES], ITEMS)
    spring = rs.simulate.MixedMNL(ITEMS, np.array([SWEET, HEARTY, CROISSANT]), np.array([0.40, 0.35, 0.25]))
    summer = replace(spring, mixture=np.array([0.22, 0.53, 0.25]))
    rows = ["time,offered,chosen,count"]
    for month in range(1, 7):
        shares = (spring if month < 5 else summer).probabilities(offers)
        visits = rs.simulate.draw_choices(offers, shares, 6000, random)
        for place, times in enumerate(np.bincount(visits, minlength=offers.n_coordinates).tolist()):
            shelf, item = offers.offers[offers.owner[place]], offers.items[offers.members[place]]
            rows += [f"2024-{month:02}-15,{';'.join(map(str, shelf))},{item},{times}"] if times else []
    return rows


def priced_choices(random: np.random.Generator) -> list[str]:
    """Rows of bakery-prices.csv: every customer has a highest price for each, and takes what is furthest below it."""
    rows = ["offered,chosen,count"]
    for croissant, muffin in PRICES:
        spare = random.normal([2.9, 3.1], [0.6, 0.7], (600, 2)) - [croissant, muffin]
        picks = np.argmax(np.column_stack([spare, np.zeros(600)]), axis=1)
        for item, times in zip(("croissant", "muffin", "nothing"), np.bincount(picks, minlength=3), strict=True):
            rows.append(f"croissant@{croissant:.2f};muffin@{muffin:.2f};nothing,{item},{times}")
    return rows


def main() -> None:
    """Write the tables beside this file."""
    items = ["item,margin", *(f"{item},{margin:.2f}" for item, margin in zip(ITEMS, MARGINS, strict=False))]
    tables = {
        "bakery.csv": choices(np.random.default_rng(2024)),
        "bakery-items.csv": items,
        "bakery-prices.csv": priced_choices(np.random.default_rng(7)),
    }
    for name, rows in tables.items():
        (FOLDER / name).write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
