"""The items of a market as pages list them: their prices, and how often they were offered and chosen."""

import re
from hashlib import sha256
from typing import Any

import numpy as np

from rankstream._core.types import Label
from rankstream.data.counts import ChoiceCounts
from rankstream.data.prices import AT
from rankstream.models.prices import everything


def make_listing(model: Any, counts: ChoiceCounts | None) -> dict[str, Any]:
    """All items, the most frequent offer, and the outside option.

    ``levels`` are the labels of an item at its prices, cheapest first, and ``level`` is the usual one of them; an item
    without a price has one label, its own. Without counts, how often items were chosen is not known.
    """
    chosen, offered, usual = _tallies(counts)
    levels, found = model.price_levels, []
    ladders: dict[Label, list[Label]] = {}
    for one in () if levels is None else levels.labels:
        ladders.setdefault(levels.of(one)[0], []).append(one)
    for label in everything(model):
        item = label if levels is None else levels.of(label)[0]
        at = ladders.get(item, [])
        labels = at if label in at else [label]
        found.append(
            {
                "key": key_of(item), "label": str(item), "levels": [str(one) for one in labels],
                "level": labels.index(label), "prices": [str(one).rpartition(AT)[2] for one in at],
                "chosen": sum(chosen.get(one, 0.0) for one in labels),
                "offered": sum(offered.get(one, 0.0) for one in labels),
            }
        )  # fmt: skip
    nothing = None if model.no_choice is None else str(model.no_choice)
    found.sort(key=lambda one: (one["label"] == nothing, natural(str(one["label"]))))
    return {"items": found, "usual": [str(label) for label in usual], "no_choice": nothing}


def observed_listing(counts: ChoiceCounts | None, levels: Any = None) -> dict[str, Any]:
    """What was chosen, before there is a model."""
    chosen, offered, usual = _tallies(counts)
    sums: dict[str, list[float]] = {}
    for label in chosen:
        own = sums.setdefault(str(label if levels is None else levels.of(label)[0]), [0.0, 0.0])
        own[0], own[1] = own[0] + chosen[label], own[1] + offered[label]
    found = [{"label": item, "chosen": numbers[0], "offered": numbers[1]} for item, numbers in sums.items()]
    return {"items": found, "usual": [str(label) for label in usual], "no_choice": None}


def _tallies(counts: ChoiceCounts | None) -> tuple[dict[Label, float], dict[Label, float], tuple[Label, ...]]:
    """How often each label was chosen, and there to be chosen; and the offer that was made most often."""
    if counts is None:
        return {}, {}, ()
    offers, size = counts.assortments, counts.assortments.n_items
    tables = (counts.tallies, counts.totals[offers.owner])
    sums = (np.bincount(offers.members, weights=one, minlength=size).round(6).tolist() for one in tables)
    chosen, offered = (dict(zip(offers.items, one, strict=True)) for one in sums)
    return chosen, offered, offers.offers[int(np.argmax(counts.totals))]


def key_of(item: Label) -> str:
    """A short name of an item that no form and no address changes on its way.

    >>> key_of("tea")
    'a9f74d1ec36e'
    """
    return sha256(str(item).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def natural(name: str) -> list[tuple[int, str]]:
    """What names are sorted by: numbers in them count as numbers.

    >>> sorted(["tea 10", "Tea 9", "pie"], key=natural)
    ['pie', 'Tea 9', 'tea 10']
    """
    parts = re.findall(r"[0-9]+|[^0-9]+", name.casefold())
    return [(int(part[:15]), "") if part.isdecimal() else (-1, part) for part in parts]
