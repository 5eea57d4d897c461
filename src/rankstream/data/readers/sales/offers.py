"""From sums of sales by state to outcomes: the offer of each state as labels, coarser where there are too many."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rankstream.data.readers.sales.availability import ShelfState, items_of


class Sum(NamedTuple):
    """How much was chosen at a store from a state: an item of a category at a price paid, or nothing (-1)."""

    store: int
    state: int
    category: int
    item: int
    price: float | None
    weight: float


@dataclass
class StateOffers:
    """The offers of states: which items belong to each category, their names, and those that are ignored."""

    states: Sequence[ShelfState]
    names: Sequence[str]
    masks: dict[int, int]
    no_choice: str | None
    ignored: int = 0
    _labels: dict[Any, tuple[Any, ...]] = field(default_factory=dict)

    def mask(self, one: Sum) -> int:
        """The items of the offer that a choice was made from, those of its category that are not ignored."""
        mask = self.states[one.state].items & self.masks[one.category] & ~self.ignored
        return mask if one.item < 0 else mask | 1 << one.item

    def is_conflict(self, one: Sum) -> bool:
        """Whether something was sold that was not on offer."""
        return one.item >= 0 and not self.states[one.state].items >> one.item & 1

    def count(self, sums: Iterable[Sum]) -> int:
        """How many different offers there are, without prices."""
        return len({(one.category, self.mask(one)) for one in self.keep(sums)})

    def keep(self, sums: Iterable[Sum]) -> list[Sum]:
        """The sums without those of ignored items."""
        return [one for one in sums if one.item < 0 or not self.ignored >> one.item & 1]

    def coarsen(self, sums: Sequence[Sum], most: int) -> list[str]:
        """Ignore as few items as leave at most so many offers, beginning with what nobody chose; return their names."""
        if self.count(sums) <= most:
            return []
        sold: dict[int, float] = defaultdict(float)
        for one in sums:
            sold[one.item] += one.weight
        present = 0
        for mask in self.masks.values():
            present |= mask
        order = sorted(items_of(present), key=lambda item: (sold[item], self.names[item]))
        low, high = sum(sold[item] == 0.0 for item in order), len(order) - 1
        while low < high:  # offers merge when an item is ignored, so that fewer of them are never more
            middle = (low + high) // 2
            self.ignored = sum(1 << item for item in order[:middle])
            low, high = (low, middle) if self.count(sums) <= most else (middle + 1, high)
        self.ignored = sum(1 << item for item in order[:low])
        return sorted(self.names[item] for item in order[:low])

    def entries(self, state: ShelfState, mask: int, ends: bool = True) -> tuple[Any, ...]:
        """Items as labels in the order of their names, at the prices of a state; and what no choice is called."""
        key = mask, state.prices, ends
        found = self._labels.get(key)
        if found is None:
            named = sorted((self.names[item], item) for item in items_of(mask))
            labels = tuple(self.entry(state, item) for _, item in named)
            found = self._labels[key] = (*labels, *([self.no_choice] if ends and self.no_choice is not None else []))
        return found

    def entry(self, state: ShelfState, item: int, paid: float | None = None) -> Any:
        """An item, at the price paid or that of its state where there are prices."""
        if state.prices is None:
            return self.names[item]
        price = state.prices[item] if paid is None else paid
        return self.names[item] if price is None else (self.names[item], price)

    def outcome(self, one: Sum) -> tuple[tuple[Any, ...], Any]:
        """The offer and the choice; what was bought has the price that was paid."""
        state, mask = self.states[one.state], self.mask(one)
        offer = self.entries(state, mask)
        if one.item < 0:
            return offer, self.no_choice
        usual, chosen = self.entry(state, one.item), self.entry(state, one.item, one.price)
        return offer if usual == chosen else tuple(chosen if one == usual else one for one in offer), chosen
