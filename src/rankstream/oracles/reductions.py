"""Reductions of a cheapest-ranking problem that do not change its answer."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from weakref import ref

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream.data.assortments import Assortments


@dataclass(frozen=True)
class Reduced:
    """A problem of distinct offers without the no-choice item, each with more than one possible choice.

    ``offers`` are sets of item codes; an *entry* is an item in one of them. ``entry_at[k]`` is the entry that
    coordinate k adds to (-1: none), minus the cost at ``base_at[k]``, the no-choice item of the same offer (-1: none).
    With an order, offers keep only the items that can be chosen.
    """

    assortments: Assortments
    offers: tuple[tuple[int, ...], ...]
    entry_at: Codes
    base_at: Codes

    @property
    def no_choice_code(self) -> int:
        """The code of the item that ends a ranking; -1 without one."""
        return -1 if self.assortments.no_choice_code is None else self.assortments.no_choice_code

    @cached_property
    def n_entries(self) -> int:
        """The number of costs."""
        return sum(len(offer) for offer in self.offers)

    def fold(self, costs: Vec) -> Vec:
        """Return the costs per entry, above those of no-choice in the same offer; equal offers are added up."""
        used = self.entry_at >= 0
        above = costs - np.where(self.base_at >= 0, costs[self.base_at], 0.0)
        return np.bincount(self.entry_at[used], above[used], self.n_entries).astype(np.float64, copy=False)

    @cached_property
    def closed(self) -> tuple[tuple[int, ...], ...]:
        """The offers, each with all items that must come after one of its own."""
        if not self.assortments.order:
            return self.offers
        return tuple(tuple(self.assortments.precedence.closed(offer)) for offer in self.offers)

    @cached_property
    def components(self) -> tuple[tuple[int, ...], ...]:
        """Groups of offers without common items, which can be solved separately; an order connects its items."""
        group_of_item: dict[int, int] = {}
        groups: dict[int, list[int]] = {}
        items: dict[int, set[int]] = {}
        for number, offer in enumerate(self.closed):
            touched = sorted({group_of_item[item] for item in offer if item in group_of_item})
            into = touched[0] if touched else number
            groups.setdefault(into, []).append(number)
            items.setdefault(into, set()).update(offer)
            for group in touched[1:]:
                groups[into] += groups.pop(group)
                items[into] |= items.pop(group)
            group_of_item.update(dict.fromkeys(items[into] if len(touched) > 1 else offer, into))
        return tuple(tuple(sorted(group)) for _, group in sorted(groups.items()))

    def items_of(self, component: tuple[int, ...]) -> list[int]:
        """The items of a component, ascending."""
        return sorted({item for offer in component for item in self.closed[offer]})

    @cached_property
    def is_laminar(self) -> bool:
        """Whether any two offers are nested, as by revenue, or share no item."""
        sets = sorted((set(offer) for offer in self.offers), key=len)
        smallest: dict[int, int] = {}
        for number in range(len(sets) - 1, -1, -1):  # largest first; all items must have the same smallest set so far
            if len({smallest.get(item, -1) for item in sets[number]}) > 1:
                return False
            smallest.update(dict.fromkeys(sets[number], number))
        return True

    def explain(self) -> str:
        """Describe the reduced problem."""
        sizes = [len(self.items_of(component)) for component in self.components]
        parts = f"{len(sizes)} parts of {', '.join(map(str, sizes[:6]))}{' ...' if len(sizes) > 6 else ''} items"
        family = "laminar" if self.is_laminar else "general"
        kept = f"{len(self.offers)} of {self.assortments.n_offers} offers matter"
        return f"{kept}; {parts if len(sizes) != 1 else f'{sizes[0]} items'}; {family} family"


_last: "list[ref[Reduced]]" = []
"""The last reduced problem, while in use: choosing an oracle and creating it need the same one."""


def reduce(assortments: Assortments) -> Reduced:
    """Subtract the no-choice item, drop offers with only one possible choice, and merge offers with equal members.

    >>> offers = [("tea", "pie", "nothing"), ("nothing", "pie", "tea"), ("nothing",), ("cake", "nothing")]
    >>> reduce(Assortments(offers)).explain()
    '2 of 4 offers matter; 2 parts of 2, 1 items; laminar family'
    """
    last = _last[0]() if _last else None
    if last is not None and last.assortments is assortments:
        return last
    reduced = _reduced(assortments)
    _last[:] = [ref(reduced)]
    return reduced


def _reduced(assortments: Assortments) -> Reduced:
    no_choice_code = assortments.no_choice_code
    entry_at = np.full(assortments.n_coordinates, -1, dtype=np.int64)
    base_at = np.full(assortments.n_coordinates, -1, dtype=np.int64)
    entry_of: dict[tuple[int, ...], int] = {}
    count = 0
    members, indptr = assortments.members.tolist(), assortments.indptr.tolist()
    for start, stop in pairwise(indptr):
        offer = tuple(sorted(item for item in members[start:stop] if item != no_choice_code))
        if assortments.order:
            offer = tuple(assortments.precedence.best(offer))
        if not offer or (no_choice_code is None and len(offer) == 1):
            continue
        if offer not in entry_of:
            entry_of[offer] = count
            count += len(offer)
        for k in range(start, stop):
            if members[k] == no_choice_code:
                base_at[start:stop] = k
            elif members[k] in offer:
                entry_at[k] = entry_of[offer] + offer.index(members[k])
    return Reduced(assortments, tuple(entry_of), entry_at, base_at)


def item_bits(assortments: Assortments, universal: int) -> tuple[list[int], list[int], int]:
    """Return a bit for each item (0: none), the union of bits of each offer, and the number of bits.

    Items in exactly the same offers share a bit: once one of them is ranked, the others are never chosen.
    """
    offered_in: list[list[int]] = [[] for _ in assortments.items]
    for offer, item in zip(assortments.owner.tolist(), assortments.members.tolist(), strict=True):
        offered_in[item].append(offer)
    bits: dict[tuple[int, ...], int] = {}
    bit_of = [0] * assortments.n_items
    offer_sets = [0] * assortments.n_offers
    for item, offers in enumerate(offered_in):
        if offers and item != universal:
            bit_of[item] = bits.setdefault(tuple(offers), 1 << len(bits))
            for offer in offers:
                offer_sets[offer] |= bit_of[item]
    return bit_of, offer_sets, len(bits)
