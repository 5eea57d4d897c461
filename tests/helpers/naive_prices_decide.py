"""Slow twins for decisions about items and prices: every item at every level or not at all, and asked one by one."""

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

from naive_decide import worth
from rankstream import PriceLevels
from rankstream._core.types import Label

Said = dict[str, Any]
Prices = dict[Label, float | None]


def every_offer(model: Any, levels: PriceLevels) -> Iterator[Prices]:
    """The items on offer with their prices, without the no-choice item."""
    own = list(dict.fromkeys(levels.of(label)[0] for label in model.items if label != model.no_choice))
    options: list[list[Any]] = [["out", *levels.levels.get(item, (None,))] for item in own]
    for picked in product(*options):
        yield {item: price for item, price in zip(own, picked, strict=True) if price != "out"}


def there(offer: Prices, name: Label, levels: PriceLevels) -> bool:
    """Whether an offer has an item, or an item at a level."""
    item, price = levels.of(name)
    return item in offer and (price is None or offer[item] == price)


def keeps(model: Any, offer: Prices, levels: PriceLevels, said: Said) -> bool:
    """Whether an offer keeps all that was said, word by word."""

    def has(name: Label) -> bool:
        return there(offer, name, levels)

    def up(low: Label, high: Label) -> bool:
        one, other = offer.get(low), offer.get(high)
        return one is None or other is None or one <= other

    changes = 0
    if "present" in said:
        present = said["present"]
        changes = sum(offer.get(item, "out") != present.get(item, "out") for item in {*offer, *present})
    return (
        said.get("at_least", 0) <= len(offer) <= said.get("at_most", 10**9)
        and (bool(offer) or model.no_choice is not None)
        and all(has(name) for name in said.get("must", ()))
        and not any(has(name) for name in said.get("never", ()))
        and all(has(b) for a, b in said.get("requires", ()) if has(a))
        and not any(has(a) and has(b) for a, b in said.get("excludes", ()))
        and ("capacity" not in said or sum(said["space"].get(item, 0) for item in offer) <= said["capacity"])
        and all(up(low, high) for steps in said.get("ladders", ()) for low, high in combinations(steps, 2))
        and changes <= said.get("changes", 0 if "present" not in said else 10**9)
    )


def ranked_offers(model: Any, costs: dict[Label, float], said: Said) -> list[tuple[float, Prices]]:
    """Values and offers, best first; items without a price earn what ``said["margins"]`` says."""
    levels = PriceLevels.from_labels(model.items)
    assert levels is not None
    margins: dict[Label, float] = {}
    for label in levels.labels:
        item, price = levels.of(label)
        margins[label] = (price or 0.0) - costs[item]
    margins |= said.get("margins") or {}
    listing = said.get("listing_costs", {})
    found = []
    for offer in every_offer(model, levels):
        if keeps(model, offer, levels, said):
            labels = levels.offer(offer)
            shown = sum(listing.get(item, 0.0) for item in offer)
            found.append((worth(model, labels, margins, {}) - shown, offer))
    return sorted(found, key=lambda pair: -pair[0])
