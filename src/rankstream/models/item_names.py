"""Items as text: names, offers such as "tea@3.50;nothing", and the items in constraints.

Imports are local, because the command line's help and completion use this module.
"""

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import Any

MAX_LISTED_NAMES = 20  # names in an error message
ITEM_OPTIONS = (
    *("margins", "costs", "listing_costs", "space", "must", "never", "requires", "excludes", "ladder", "ladders"),
    *("present", "no_choice"),
)
"""Options of a decision that name items; all others are about whole offers."""
Names = dict[str, Any]
"""Items by their text."""


def by_name(model: Any) -> Names:
    """Return the items of a model, or of assortments, by their text."""
    names: Names = {}
    for item in model.items:
        if names.setdefault(str(item).strip(), item) is not item:
            raise ValueError(f"The model has two items that print as {item!s}: use Python, where they differ.")
    return names


def own_names(model: Any) -> Names:
    """Return the items of a model with prices by their own names, without prices."""
    from rankstream.models.prices import own_items

    return {str(item).strip(): item for item in own_items(model)}


def all_names(model: Any) -> Names:
    """Return all names for a decision: items and, with prices, also items at levels such as "tea@3.50"."""
    from rankstream.data.prices import AT
    from rankstream.models.prices import levels_of

    labels = by_name(model)
    if levels_of(model) is None:
        return labels
    return own_names(model) | {name.replace(AT, "@"): label for name, label in labels.items()} | labels


def find_item(name: Any, names: Names, who: str) -> Any:
    """Return the item of that name; ``who`` starts the error message if there is none."""
    word = str(name).strip()
    if word not in names:
        known = ", ".join(map(repr, list(names)[:MAX_LISTED_NAMES]))
        known += f" and {len(names) - MAX_LISTED_NAMES:,} more" if len(names) > MAX_LISTED_NAMES else ""
        near = did_you_mean(word[:100], names)
        raise ValueError(f"{who} {word[:100]!r}, which is not an item of the model{near}: its items are {known}.")
    return names[word]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question in brackets if a word is close to a known one; empty otherwise.

    >>> did_you_mean("Te", ["tea", "pie"]), did_you_mean("rum", ["tea", "pie"])
    (" (did you mean 'tea'?)", '')
    """
    plain = {word.strip().lower(): word for word in known}
    near = get_close_matches(name.strip().lower(), plain, 1, 0.6)
    return f" (did you mean {plain[near[0]]!r}?)" if near else ""


def offer_in(text: str, model: Any) -> list[Any] | dict[Any, Any]:
    """Parse an offer: items or, for a model with prices, items at prices."""
    from rankstream.models.prices import levels_of

    return items_in(text, by_name(model)) if levels_of(model) is None else prices_in(text, model)


def items_in(text: str, names: Names) -> list[Any]:
    """Parse items joined by ";"; names that contain a ";" need a JSON list."""
    words = [name.strip() for name in text.split(";")]
    if text.lstrip().startswith("[") and not all(name in names for name in words):
        with suppress(ValueError, RecursionError, TypeError):
            words = [str(name).strip() for name in json.loads(text)]
    parts = [part.strip() for part in re.split("[,|]", text)]
    if not all(word in names for word in words) and len(parts) > 1 and any(part in names for part in parts):
        raise ValueError(f"Separate the items of the offer {text!r} by ';': {';'.join(parts)!r}.")
    return [find_item(name, names, f"The offer {text!r} names") for name in words]


def prices_in(text: str, model: Any) -> dict[Any, Any]:
    """Parse items with prices: "tea@3.50;nothing", "tea@3,50", a JSON list of these, or {"tea": 3.5}."""
    from rankstream.data.readers.dialect import decimal_rule, rewrite, shape_of
    from rankstream.data.readers.prices import pairs_in, price_in

    names = own_names(model)
    words: Any = text
    if text.lstrip().startswith(("[", "{")):
        with suppress(ValueError, RecursionError):
            words = json.loads(text)
    offer: dict[Any, Any] = {}
    pairs = pairs_in(words, ";")
    rule = decimal_rule({shape_of(cell) for _, cell in pairs if isinstance(cell, str)})
    for name, cell in pairs:
        item = find_item(name, names, f"The offer {text!r} names")
        if item in offer:
            raise ValueError(f"The offer {text!r} lists {name!r} twice: give each item one price.")
        offer[item] = price_in(name, rewrite(rule, cell) if rule else cell)
        if offer[item] is None and (levels := model.price_levels.levels.get(item)):
            raise ValueError(f"The offer {text!r} lacks the price of {name!r}: write {name}@{levels[-1]:.2f}.")
    return offer


def named_items(words: Any, names: Names, who: str) -> Any:
    """Replace each word by its item, in a single word, a list, a list of pairs, or a mapping to numbers."""
    if isinstance(words, Mapping):
        return {find_item(word, names, who): value for word, value in words.items()}
    if isinstance(words, list | tuple):
        items = [named_items(word, names, who) for word in words]
        return [tuple(item) if isinstance(item, list) else item for item in items]
    return find_item(words, names, who)


def named_constraints(given: Mapping[str, Any], names: Names, who: str = "{} names") -> dict[str, Any]:
    """Replace words by items in the constraints of ``best_offer``; ``who`` starts error messages about an option.

    >>> named_constraints({"must": ["tea"], "requires": [("pie", "tea")], "at_most": 2}, {"tea": 1, "pie": 2})
    {'must': [1], 'requires': [(2, 1)], 'at_most': 2}
    """
    constraints = dict(given)
    for option in ITEM_OPTIONS:
        if isinstance(given.get(option), str | list | tuple | Mapping):
            constraints[option] = named_items(given[option], names, who.format(option))
    return constraints
