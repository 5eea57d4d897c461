"""The list of items for pages: prices, and how often each item was offered and chosen."""

import re
from hashlib import sha256
from typing import Any

import numpy as np

from rankstream._core.types import Label
from rankstream.data.counts import ChoiceCounts
from rankstream.data.prices import AT
from rankstream.models.prices import everything


def make_listing(model: Any, counts: ChoiceCounts | None) -> dict[str, Any]:
    """Return all items, the most frequent offer, and the no-purchase option.

    ``levels`` are the labels of an item at its prices, cheapest first, and ``level`` is the position of the usual one;
    an item without a price has one label. Without counts, all numbers are 0.
    """
    chosen, offered, usual = _tallies(counts)
    levels, rows = model.price_levels, []
    ladders: dict[Label, list[Label]] = {}
    for label in () if levels is None else levels.labels:
        ladders.setdefault(levels.of(label)[0], []).append(label)
    for label in everything(model):
        item = label if levels is None else levels.of(label)[0]
        at = ladders.get(item, [])
        labels = at if label in at else [label]
        rows.append(
            {
                "key": key_of(item), "label": str(item), "levels": list(map(str, labels)),
                "level": labels.index(label), "prices": [str(level).rpartition(AT)[2] for level in at],
                "chosen": sum(chosen.get(level, 0.0) for level in labels),
                "offered": sum(offered.get(level, 0.0) for level in labels),
            }
        )  # fmt: skip
    nothing = None if model.no_choice is None else str(model.no_choice)
    rows.sort(key=lambda row: (row["label"] == nothing, natural(str(row["label"]))))
    return {"items": rows, "usual": list(map(str, usual)), "no_choice": nothing}


def observed_listing(counts: ChoiceCounts | None, levels: Any = None) -> dict[str, Any]:
    """Return the same list before there is a model."""
    chosen, offered, usual = _tallies(counts)
    sums: dict[str, list[float]] = {}
    for label in chosen:
        numbers = sums.setdefault(str(label if levels is None else levels.of(label)[0]), [0.0, 0.0])
        numbers[0] += chosen[label]
        numbers[1] += offered[label]
    rows = [{"label": item, "chosen": numbers[0], "offered": numbers[1]} for item, numbers in sums.items()]
    return {"items": rows, "usual": list(map(str, usual)), "no_choice": None}


def _tallies(counts: ChoiceCounts | None) -> tuple[dict[Label, float], dict[Label, float], tuple[Label, ...]]:
    """Return how often each label was chosen and offered, and the most frequent offer."""
    if counts is None:
        return {}, {}, ()
    offers, size = counts.assortments, counts.assortments.n_items
    chosen, offered = (
        dict(zip(offers.items, np.bincount(offers.members, values, size).round(6).tolist(), strict=True))
        for values in (counts.tallies, counts.totals[offers.owner])
    )
    return chosen, offered, offers.offers[int(np.argmax(counts.totals))]


def key_of(item: Label) -> str:
    """Return a short id of an item that is safe in forms and URLs.

    >>> key_of("tea")
    'a9f74d1ec36e'
    """
    return sha256(str(item).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key for names in which numbers count as numbers.

    >>> sorted(["tea 10", "Tea 9", "pie"], key=natural)
    ['pie', 'Tea 9', 'tea 10']
    """
    parts = re.findall(r"[0-9]+|[^0-9]+", name.casefold())
    return [(int(part[:15]), "") if part.isdecimal() else (-1, part) for part in parts]
