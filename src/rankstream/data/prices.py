"""Price levels: an item at a price is a separate item, such as ``tea @ 3.50``, never ranked above a cheaper level."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np

from rankstream._core import Label, whole_number
from rankstream.data.assortments import plain
from rankstream.data.order import Pairs

AT = " @ "
MIN_DECIMALS = 2  # of a price in a label, as on price tags
MOST_LEVELS = 12  # of an item's price, unless a number is given: each level is an item to the oracle; not tuned
PRICE_ROUNDING = 1e-9  # relative: a price so little beyond the lowest or highest level counts as that level


@dataclass(frozen=True)
class PriceLevels:
    """The price levels of items, cheapest first; items without a price, such as "nothing", have no entry.

    A price belongs to the level whose bin it lies in. Without ``bins``, these meet halfway between two levels (a price
    in the middle belongs to the cheaper one) and end at the lowest and the highest level; prices beyond are refused.
    Labels have the decimals that an item's levels need, at least two.

    Parameters
    ----------
    levels : mapping from items to prices
        The levels of each item with a price, in any order.
    bins : mapping from items to prices, optional
        The ends of an item's bins, one more than there are levels, ascending.

    Examples
    --------
    >>> levels = PriceLevels({"tea": [3.5, 3], "cake": [4]})
    >>> levels.label("tea", 3.4), levels.of("tea @ 3.50"), levels.of("nothing")
    ('tea @ 3.50', ('tea', 3.5), ('nothing', None))
    >>> levels.offer({"tea": 3.0, "cake": 4.0, "nothing": None})
    ('tea @ 3.00', 'cake @ 4.00', 'nothing')
    >>> levels.order
    (('tea @ 3.00', 'tea @ 3.50'),)
    """

    levels: Mapping[Any, Sequence[float]]
    bins: Mapping[Any, Sequence[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        levels: object = self.levels  # whatever the caller gave
        if not isinstance(levels, Mapping) or not levels:
            raise ValueError(f"The levels are {self.levels!r}: give prices for each item, such as {{'tea': [3, 3.5]}}.")
        checked = {plain(item): _levels(item, prices) for item, prices in self.levels.items()}
        ends = {plain(item): tuple(bins) for item, bins in self.bins.items()}
        for item, bins in ends.items():
            prices = checked.get(item, ())
            within = zip(bins, prices, bins[1:], strict=False)
            if len(bins) != len(prices) + 1 or not prices or not all(a <= price <= b for a, price, b in within):
                raise ValueError(f"The bins {bins} of {item!r} do not enclose its levels {prices}: give their ends.")
        object.__setattr__(self, "levels", checked)
        object.__setattr__(self, "bins", ends)
        if len(self._labels) < sum(map(len, checked.values())):
            raise ValueError(f"Two of the items {list(checked)} have the same text: give them different names.")

    @classmethod
    def occurring(cls, prices: Mapping[Any, Iterable[Any]], most: int = MOST_LEVELS) -> "PriceLevels":
        """Return a level for every price that occurs, at most ``most`` for each item."""
        levels = {item: sorted(set(values)) for item, values in _seen(prices).items()}
        for item, distinct in levels.items():
            if len(distinct) > whole_number("most", most, least=1):
                raise ValueError(
                    f"The item {item!r} occurs at {len(distinct)} prices, more than {most} levels: "
                    "use PriceLevels.quantiles, or raise most."
                )
        return cls(levels)

    @classmethod
    def quantiles(cls, prices: Mapping[Any, Iterable[Any]], n: int) -> "PriceLevels":
        """Return levels for ``n`` bins with about equally many prices in each; items with one price have one level.

        A level is the median of its bin, a price that occurs. Equal prices are always in the same bin.

        Examples
        --------
        >>> PriceLevels.quantiles({"tea": [2.8, 3, 3.1, 3.4, 3.5, 3.5], "cake": [4, 4]}, 2)
        PriceLevels(tea: 3.00, 3.50; cake: 4.00)
        """
        whole_number("n", n, least=1)
        levels, bins = {}, {}
        for item, values in _seen(prices).items():
            values.sort()
            distinct = sorted(set(values))
            if 1 < len(distinct) < n:
                raise ValueError(
                    f"The item {item!r} occurs at {len(distinct)} prices, too few for {n} levels: "
                    f"ask for at most {len(distinct)}, or use PriceLevels.occurring."
                )
            parts = _parts(values, min(n, len(distinct)))
            levels[item] = [part[(len(part) - 1) // 2] for part in parts]
            middles = [(lower[-1] + upper[0]) / 2.0 for lower, upper in pairwise(parts)]
            bins[item] = [distinct[0], *middles, distinct[-1]]
        return cls(levels, bins)

    @classmethod
    def from_labels(cls, labels: Iterable[Label]) -> "PriceLevels | None":
        """Return the levels in labels such as ``tea @ 3.50``; None if no label has a price."""
        levels: dict[Label, list[float]] = {}
        for label in labels:
            item, price = split_label(label)
            if price is not None:
                levels.setdefault(item, []).append(price)
        return cls(levels) if levels else None

    @property
    def items(self) -> tuple[Label, ...]:
        """The items with a price."""
        return tuple(self.levels)

    @cached_property
    def _labels(self) -> dict[str, tuple[Label, float]]:
        texts = {}
        for item, prices in self.levels.items():
            exponents = [int(Decimal(repr(price)).normalize().as_tuple().exponent) for price in prices]
            decimals = max(MIN_DECIMALS, -min(exponents))
            texts.update({f"{item}{AT}{price:.{decimals}f}": (item, price) for price in prices})
        return texts

    @property
    def labels(self) -> tuple[str, ...]:
        """All items at all levels, item by item, cheapest first."""
        return tuple(self._labels)

    @cached_property
    def _text(self) -> dict[tuple[Label, float], str]:
        return {at: text for text, at in self._labels.items()}

    @property
    def order(self) -> Pairs:
        """Pairs for ``Assortments``: each level of an item before its next dearer one."""
        pairs = ((item, pair) for item, prices in self.levels.items() for pair in pairwise(prices))
        return tuple((self._text[item, low], self._text[item, high]) for item, (low, high) in pairs)

    def of(self, label: Label) -> tuple[Label, float | None]:
        """Return the item and the price of a label; a label without a price is an item."""
        return self._labels.get(label, (label, None)) if isinstance(label, str) else (label, None)

    def level(self, item: Label, price: Any) -> float:
        """Return the level that a price of an item belongs to."""
        if item not in self.levels:
            known = ", ".join(map(repr, self.levels))
            raise ValueError(
                f"The item {item!r} has a price, but no levels: leave out the price, or use one of {known}."
            )
        value, prices = check_price(item, price), self.levels[item]
        ends = self.bins.get(item) or (prices[0], *((a + b) / 2.0 for a, b in pairwise(prices)), prices[-1])
        slack = PRICE_ROUNDING * max(ends[-1], 1.0)
        if not ends[0] - slack <= value <= ends[-1] + slack:
            raise ValueError(
                f"The price {value:g} of {item!r} is outside its levels, which cover {ends[0]:g} to {ends[-1]:g}: "
                "correct it, or give a level for it."
            )
        return prices[bisect_left(ends[1:-1], value - slack)]

    def label(self, item: Label, price: Any) -> str:
        """Return the label of an item at the level that a price belongs to."""
        level = self.level(plain(item), price)
        return self._text[plain(item), level]

    def offer(self, prices: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> tuple[Label, ...]:
        """Return the labels of an offer, given the price of each item in it; None for items without a price."""
        pairs = list(prices.items() if isinstance(prices, Mapping) else prices)
        seen: dict[Label, Any] = {}
        labels: list[Label] = []
        for item, price in pairs:
            if item in seen:
                raise ValueError(
                    f"The offer has two prices of {item!r}, {seen[item]!r} and {price!r}: give one, or make two offers."
                )
            seen[item] = price
            labels.append(plain(item) if price is None and plain(item) not in self.levels else self.label(item, price))
        return tuple(labels)

    def to_content(self) -> list[list[Any]]:
        """Return rows for a model file: each item's name, its levels and the ends of its bins."""
        return [[item, list(prices), list(self.bins.get(item, ()))] for item, prices in self.levels.items()]

    @classmethod
    def from_content(cls, content: Iterable[Sequence[Any]]) -> "PriceLevels":
        """Return the levels that ``to_content`` described."""
        rows = list(content)
        return cls({item: prices for item, prices, _ in rows}, {item: bins for item, _, bins in rows if bins})

    def __hash__(self) -> int:
        return hash((frozenset(self.levels.items()), frozenset(self.bins.items())))

    def __repr__(self) -> str:
        texts = {
            item: ", ".join(self._text[item, price].rpartition(AT)[2] for price in prices)
            for item, prices in self.levels.items()
        }
        return f"PriceLevels({'; '.join(f'{item}: {text}' for item, text in texts.items())})"


def price_text(price: float | None) -> str:
    """Return a price with two decimals, such as 3.00, or with more of its own; empty without one."""
    return "" if price is None else f"{price:.2f}" if round(price, 2) == price else f"{price:g}"


def split_label(label: Label) -> tuple[Label, float | None]:
    """Split a label into its item and its price; a label without a price is an item.

    >>> split_label("tea @ 3.50"), split_label("nothing")
    (('tea', 3.5), ('nothing', None))
    """
    match = re.fullmatch(rf"(.+){AT}(\d+\.\d{{{MIN_DECIMALS},}})", label, re.DOTALL) if isinstance(label, str) else None
    return (match[1], float(match[2])) if match else (label, None)


def check_price(item: Label, price: Any) -> float:
    """Return a price as a number of at least 0, or raise a ValueError."""
    missing = price is None or price == ""
    if missing or isinstance(price, bool) or not isinstance(price, int | float | np.integer | np.floating):
        problem = "missing" if missing else f"{price!r}, which is not a number"
        raise ValueError(f"The price of {item!r} is {problem}: give a number, such as 3.50.")
    if not isfinite(price) or price < 0.0:
        raise ValueError(f"The price of {item!r} is {price}: it must be a finite number of at least 0.")
    return float(price)


def _levels(item: Label, prices: Any) -> tuple[float, ...]:
    if isinstance(prices, str) or not isinstance(prices, Iterable):
        raise ValueError(f"The levels of {item!r} are {prices!r}: give a list of prices, such as [3, 3.5].")
    levels = sorted(check_price(item, price) for price in prices)
    if not levels:
        raise ValueError(f"The item {item!r} has no levels: give a price, or leave the item out if it has none.")
    for level, following in pairwise(levels):
        if level == following:
            raise ValueError(f"The level {level:g} of {item!r} is listed twice: remove one.")
    return tuple(levels)


def _seen(prices: Any) -> dict[Label, list[float]]:
    if not isinstance(prices, Mapping) or not prices:
        raise ValueError(f"The prices are {prices!r}: give those of each item, such as {{'tea': [3, 3.5, 3]}}.")
    seen = {item: [check_price(item, price) for price in values] for item, values in prices.items()}
    for item, values in seen.items():
        if not values:
            raise ValueError(f"The item {item!r} occurs at no price: leave it out if it has none.")
    return seen


def _parts(values: list[float], n: int) -> list[list[float]]:
    """Cut ascending prices into ``n`` parts of about equal size, none empty, equal prices together."""
    between = [place for place in range(1, len(values)) if values[place - 1] < values[place]]
    cuts = [0]
    for k in range(1, n):
        # nearest to where equal parts would end, but leaving enough different prices for the parts to come
        free = [place for place in between[: len(between) - (n - 1 - k)] if place > cuts[-1]]
        cuts.append(min(free, key=lambda place: abs(place - k * len(values) / n)))
    return [values[a:b] for a, b in pairwise([*cuts, len(values)])]
