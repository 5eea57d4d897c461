"""Items as people write them: names, offers such as "tea@3.50;nothing", and what is said of items in a decision.

Nothing is imported before it is needed: the command line takes help and completion from here.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import Any

MAX_LISTED_NAMES = 20
"""Names that a sentence lists."""
ITEM_OPTIONS = (
    *("margins", "costs", "listing_costs", "space", "must", "never", "requires", "excludes", "ladder", "ladders"),
    *("present", "no_choice"),
)
"""What is said of items in a decision; everything else is about whole offers."""
Names = dict[str, Any]
"""Items by how they read."""


def by_name(model: Any) -> Names:
    """The items of a model, or of assortments, by how they read."""
    found: Names = {}
    for item in model.items:
        if found.setdefault(str(item).strip(), item) is not item:
            raise ValueError(f"The model has two items that print as {item!s}: use Python, where they differ.")
    return found


def own_names(model: Any) -> Names:
    """The items of a model with prices by their own names, without a price."""
    from rankstream.models.prices import own_items

    return {str(item).strip(): item for item in own_items(model)}


def all_names(model: Any) -> Names:
    """What can be named when deciding: items, and of a model with prices also items at levels, as in "tea@3.50"."""
    from rankstream.data.prices import AT
    from rankstream.models.prices import levels_of

    labels = by_name(model)
    if levels_of(model) is None:
        return labels
    return own_names(model) | {name.replace(AT, "@"): label for name, label in labels.items()} | labels


def find_item(name: Any, names: Names, who: str) -> Any:
    """The item of that name; ``who`` begins the sentence where there is none."""
    word = str(name).strip()
    if word not in names:
        known = ", ".join(map(repr, list(names)[:MAX_LISTED_NAMES]))
        known += f" and {len(names) - MAX_LISTED_NAMES:,} more" if len(names) > MAX_LISTED_NAMES else ""
        near = did_you_mean(word[:100], names)
        raise ValueError(f"{who} {word[:100]!r}, which is not an item of the model{near}: its items are {known}.")
    return names[word]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question in brackets where a word is nearly one that is known; nothing where none is near.

    >>> did_you_mean("Te", ["tea", "pie"]), did_you_mean("rum", ["tea", "pie"])
    (" (did you mean 'tea'?)", '')
    """
    plain = {word.strip().lower(): word for word in known}
    near = get_close_matches(name.strip().lower(), plain, 1, 0.6)
    return f" (did you mean {plain[near[0]]!r}?)" if near else ""


def offer_in(text: str, model: Any) -> list[Any] | dict[Any, Any]:
    """The offer that a text asks a model about: items, and of a model with prices, items at prices."""
    from rankstream.models.prices import levels_of

    return items_in(text, by_name(model)) if levels_of(model) is None else prices_in(text, model)


def items_in(text: str, names: Names) -> list[Any]:
    """The items that a text names, joined by ";"; those with a ";" in their names can be given in a JSON list."""
    words = [name.strip() for name in text.split(";")]
    if text.lstrip().startswith("[") and not all(name in names for name in words):
        with suppress(ValueError, RecursionError, TypeError):
            words = [str(name).strip() for name in json.loads(text)]
    return [find_item(name, names, f"The offer {text!r} names") for name in words]


def prices_in(text: str, model: Any) -> dict[Any, Any]:
    """The prices of items in a text such as "tea@3.50;nothing", "tea@3,50", a JSON list of these, or {"tea": 3.5}."""
    from rankstream.data.readers.dialect import decimal_rule, rewrite, shape_of
    from rankstream.data.readers.prices import pairs_in, price_in

    names = own_names(model)
    words: Any = text
    if text.lstrip().startswith(("[", "{")):
        with suppress(ValueError, RecursionError):
            words = json.loads(text)
    found: dict[Any, Any] = {}
    pairs = pairs_in(words, ";")
    rule = decimal_rule({shape_of(cell) for _, cell in pairs if isinstance(cell, str)})
    for name, cell in pairs:
        item = find_item(name, names, f"The offer {text!r} names")
        if item in found:
            raise ValueError(f"The offer {text!r} lists {name!r} twice: give each item one price.")
        found[item] = price_in(name, rewrite(rule, cell) if rule else cell)
        if found[item] is None and (own := model.price_levels.levels.get(item)):
            raise ValueError(f"The offer {text!r} lacks the price of {name!r}: write {name}@{own[-1]:.2f}.")
    return found


def named_items(said: Any, names: Names, who: str) -> Any:
    """A word, words in a list or in a list of pairs, or words with numbers, each word as the item that it names."""
    if isinstance(said, Mapping):
        return {find_item(word, names, who): value for word, value in said.items()}
    if isinstance(said, list | tuple):
        found = [named_items(one, names, who) for one in said]
        return [tuple(one) if isinstance(one, list) else one for one in found]
    return find_item(said, names, who)


def named_constraints(given: Mapping[str, Any], names: Names, who: str = "{} names") -> dict[str, Any]:
    """What is said about offers, for ``best_offer``, with items for words; ``who`` begins sentences about an option.

    >>> named_constraints({"must": ["tea"], "requires": [("pie", "tea")], "at_most": 2}, {"tea": 1, "pie": 2})
    {'must': [1], 'requires': [(2, 1)], 'at_most': 2}
    """
    found = dict(given)
    for option in ITEM_OPTIONS:
        if isinstance(said := given.get(option), str | list | tuple | Mapping):
            found[option] = named_items(said, names, who.format(option))
    return found
