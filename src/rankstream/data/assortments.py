"""Assortments: which items were offered together, and the coordinates (offer, item) that every vector follows."""

from array import array
from collections.abc import Hashable, Iterable
from functools import cached_property
from math import isnan
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core import Codes, Label, Vec, listed, whole_numbers
from rankstream.data.order import NO_ORDER, Order, Pairs, Precedence, check_pairs, precedence

PLAIN = {str, int, bool, type(None)}  # label types that need no conversion and no further checks


class Space(Protocol):
    """The set that an oracle minimises over, as the solver sees it: Assortments, or any other (Section 3)."""

    @property
    def n_coordinates(self) -> int:
        """The length of its points."""

    def vertex(self, ranking: ArrayLike) -> Vec:
        """Return the point of an oracle's answer."""

    def check_frequencies(self, frequencies: ArrayLike) -> Vec:
        """Return a copy of the data of a round as an array, or raise a ValueError."""


class Assortments:
    """The offers A_1 ... A_m over a set of items, and the coordinates shared by frequencies, vertices and duals.

    Coordinates follow the order in which the offers and their items were given. ``items`` fixes the order of the
    items and may name items that are never offered; without it, items are numbered as they appear. ``order`` are pairs
    of items of which the first is never ranked below the second, such as the price levels of an item, cheaper first:
    ``.order`` are its neighbours, ``.chains`` the codes of each chain, best first (None if it is not made of chains).

    Examples
    --------
    >>> offers = Assortments([("tea", "cake", "nothing"), ("pie", "nothing")])
    >>> offers.items
    ('tea', 'cake', 'nothing', 'pie')
    >>> offers.n_coordinates, offers.coordinate(("nothing", "pie"), "pie")
    (5, 3)
    >>> offers.vertex([3, 1, 2, 0])           # pie > cake > nothing > tea
    array([0., 1., 0., 1., 0.])
    >>> Assortments([("tea @ 3", "pie"), ("tea @ 4", "pie")], order=[("tea @ 3", "tea @ 4")]).chains
    (array([0, 2]),)
    """

    items: tuple[Label, ...]
    offers: tuple[tuple[Label, ...], ...]
    indptr: Codes
    members: Codes
    order: Pairs = ()
    _precedence: Precedence | None = None

    def __init__(
        self, offers: Iterable[Iterable[Label]], items: Iterable[Label] | None = None, order: Order | None = None
    ) -> None:
        if isinstance(offers, str) or not isinstance(offers, Iterable):
            raise ValueError(f"The offers are {offers!r}: give a list of them, such as [('tea', 'cake')].")
        self.offers = tuple(as_offer(f"Offer {number}", offer) for number, offer in enumerate(offers))
        if not self.offers:
            raise ValueError("There are no offers: give at least one, such as ('tea', 'cake').")
        pairs = [] if order is None else [(plain(first), plain(second)) for first, second in check_pairs(order)]
        if items is None:
            self.items = tuple(dict.fromkeys(item for group in (*self.offers, *pairs) for item in group))
        else:
            self.items = as_offer("The list of items", items)
        self._code = {item: code for code, item in enumerate(self.items)}
        for number, offer in enumerate(self.offers):
            for item in offer:
                if item not in self._code:
                    raise ValueError(f"Offer {number} contains {item!r}, which is not among the items: add it.")
        sizes = [len(offer) for offer in self.offers]
        self.indptr = _frozen(np.concatenate([[0], np.cumsum(sizes)]))
        self.members = _frozen([self._code[item] for offer in self.offers for item in offer])
        if pairs:
            self._precedence = precedence(self._code, pairs)
            self.order = tuple((self.items[a], self.items[b]) for a, b in self._precedence.pairs.tolist())

    @property
    def precedence(self) -> Precedence:
        """The partial order of the items' codes."""
        return self._precedence or Precedence(NO_ORDER, np.arange(self.n_items))

    @property
    def chains(self) -> tuple[Codes, ...] | None:
        """The codes of each chain, best first; empty without an order, None if the order is not made of chains."""
        return self.precedence.chains if self.order else ()

    @property
    def n_items(self) -> int:
        """Number of items, offered or not."""
        return len(self.items)

    @property
    def n_offers(self) -> int:
        """Number of offers (the paper's m)."""
        return len(self.offers)

    @property
    def n_coordinates(self) -> int:
        """The length of every frequency vector (the paper's N)."""
        return len(self.members)

    @cached_property
    def owner(self) -> Codes:
        """The offer that each coordinate belongs to."""
        return _frozen(np.repeat(np.arange(self.n_offers), np.diff(self.indptr)))

    @cached_property
    def no_choice_code(self) -> int | None:
        """The code of the only item that is in every offer, such as "nothing"; None without one.

        Items below it in a ranking are never chosen. An item of the order does not count: others may have to follow it.
        """
        everywhere = np.flatnonzero(np.bincount(self.members, minlength=self.n_items) == self.n_offers)
        if len(everywhere) != 1 or (self.order and (self.precedence.pairs == everywhere[0]).any()):
            return None
        return int(everywhere[0])

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        """The number of each offer by its sorted codes, which need far less memory than sets of labels."""
        return self._number_offers({}, 0)

    def _number_offers(self, numbers: dict[bytes, int], first: int) -> dict[bytes, int]:
        """Add the offers from number ``first`` on; of equal offers, the first counts."""
        for number in range(first, self.n_offers):
            codes = self.members[self.indptr[number] : self.indptr[number + 1]]
            numbers.setdefault(array("i", np.sort(codes).tolist()).tobytes(), number)
        return numbers

    @cached_property
    def places(self) -> dict[Hashable, dict[Label, int]]:
        """A cache of ``place`` by the offer as written, so that a stream checks every offer once."""
        return {}

    def code(self, item: Label) -> int:
        """Return the number of an item."""
        try:
            return self._code[plain(item)]
        except (KeyError, TypeError):
            raise ValueError(f"Unknown item {item!r}: the items are {listed(self.items)}.") from None

    def coordinate(self, offer: Iterable[Label], item: Label) -> int:
        """Return the coordinate of an item in an offer, whose items may be named in any order.

        Where the same offer was given twice, the first one answers.
        """
        place = self.place(offer)
        self.code(item)
        chosen = plain(item)
        if chosen not in place:
            labels = as_offer("The offer", offer)
            raise ValueError(f"The choice {item!r} is not in its offer {labels!r}: correct the record.")
        return place[chosen]

    def place(self, offer: Iterable[Label]) -> dict[Label, int]:
        """Return the coordinates of an offer's items, which may be named in any order."""
        labels = as_offer("The offer", offer)
        number = self.number(labels)
        if number is None:
            for label in labels:
                self.code(label)
            raise ValueError(
                f"The offer {labels!r} is not among the {self.n_offers} assortments: add it to them first."
            )
        start = int(self.indptr[number])
        return {item: start + k for k, item in enumerate(self.offers[number])}

    def number(self, offer: Iterable[Label]) -> int | None:
        """Return the number of an offer, whose items may be named in any order; None if it is not among these."""
        try:
            codes = sorted({self._code[item] for item in offer})
        except KeyError:
            return None
        number = self._numbers.get(array("i", codes).tobytes(), self.n_offers)
        return number if number < self.n_offers else None  # larger assortments share the dictionary (see _with)

    def vertex(self, ranking: ArrayLike) -> Vec:
        """Return the vertex a(ranking): 1 where an item is the best ranked of its offer (codes, best first), else 0."""
        from rankstream.data.vertex_kernels import vertex  # imports numba, which reading and predicting do not need

        order = whole_numbers("A ranking's codes", ranking)
        out = np.empty(self.n_coordinates)
        if order.shape != (self.n_items,) or not vertex(order, self.indptr, self.members, out):
            raise ValueError(f"A ranking must order all {self.n_items} item codes, best first; got {order.tolist()}.")
        return out

    def extend(
        self, offers: Iterable[Iterable[Label]], items: Iterable[Label] = (), order: Order = ()
    ) -> "Assortments":
        """Return larger assortments in which the old items and coordinates come first.

        ``items`` names new items that come next, offered or not; others follow as they appear. ``order`` adds pairs.

        Examples
        --------
        >>> Assortments([("tea", "pie")]).extend([("tea", "cake")]).items
        ('tea', 'pie', 'cake')
        """
        added, named, pairs = tuple(tuple(offer) for offer in offers), tuple(items), check_pairs(order)
        if not (named or pairs):
            return self._with(added)
        all_items = (*self.items, *named, *(item for group in (*added, *pairs) for item in group))
        return Assortments(self.offers + added, dict.fromkeys(map(plain, all_items)), (*self.order, *pairs))

    def _with(self, offers: Iterable[Iterable[Label]]) -> "Assortments":
        """Add offers without checking the old ones again, because a stream may meet new offers all the time."""
        added = [as_offer(f"Offer {number}", offer) for number, offer in enumerate(offers, self.n_offers)]
        grown, code = Assortments.__new__(Assortments), self._code.copy()
        codes = [[code.setdefault(item, len(code)) for item in offer] for offer in added]
        grown._code, grown.items = code, (*self.items, *list(code)[self.n_items :])
        grown.offers = (*self.offers, *(tuple(grown.items[k] for k in row) for row in codes))
        ends = self.n_coordinates + np.cumsum([len(row) for row in codes], dtype=np.int64)
        grown.indptr = _frozen(np.concatenate([self.indptr, ends]))
        new = np.fromiter((k for row in codes for k in row), np.int64)
        grown.members = _frozen(np.concatenate([self.members, new]))
        # share the dictionary, unless other assortments have already been grown from these
        known = self._numbers if len(self._numbers) == self.n_offers else {}
        grown.__dict__["_numbers"] = grown._number_offers(known, len(known))
        if self._precedence is not None:
            grown._precedence, grown.order = self._precedence.wider(grown.n_items), self.order
        return grown

    def check_frequencies(self, frequencies: ArrayLike) -> Vec:
        """Return a copy of the vector as floats, or raise a ValueError that names what is wrong."""
        values = np.array(frequencies, dtype=np.float64)
        if values.shape != (self.n_coordinates,):
            raise ValueError(
                f"Frequencies must have shape ({self.n_coordinates},), one per (offer, item); got {values.shape}."
            )
        bad = np.flatnonzero(~(values >= 0.0))
        if bad.size:
            item = f"item {self.items[self.members[bad[0]]]!r} of offer {self.owner[bad[0]]}"
            raise ValueError(
                f"Frequency {values[bad[0]]} at coordinate {bad[0]} ({item}) is not a number >= 0: "
                "replace it, or pass the ChoiceCounts, which leave unseen offers out."
            )
        sums = np.add.reduceat(values, self.indptr[:-1])
        off = np.flatnonzero(~(np.abs(sums - 1.0) <= 1e-6))
        if off.size:
            raise ValueError(
                f"The frequencies of offer {off[0]} {self.offers[off[0]]!r} sum to {sums[off[0]]:.6g}, not to 1: "
                "divide them by their sum."
            )
        return values

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Assortments):
            return NotImplemented
        same = self.items == other.items and self.order == other.order
        return self is other or (same and self.offers == other.offers)

    def __hash__(self) -> int:
        return hash((self.items, self.offers))

    def __repr__(self) -> str:
        ordered = f", {len(self.order)} pairs in order" if self.order else ""
        return f"Assortments({self.n_offers} offers of {self.n_items} items, {self.n_coordinates} coordinates{ordered})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Assortments, ((self.offers, self.items, self.order) if self.order else (self.offers, self.items))


def plain(label: Label) -> Label:
    """Convert a numpy scalar to a Python value, so that labels can be saved; return anything else unchanged."""
    return label.item() if isinstance(label, np.number | np.bool_ | np.str_ | np.bytes_) else label


def as_offer(name: str, offer: Iterable[Label]) -> tuple[Label, ...]:
    """Return the labels of an offer as a tuple; raise a ValueError if it is empty, or has a bad or repeated label."""
    if isinstance(offer, str | bytes) or not isinstance(offer, Iterable):
        raise ValueError(f"{name} is {offer!r}: give a tuple of items, such as ('tea', 'cake').")
    labels = tuple(offer)
    if labels and PLAIN.issuperset(map(type, labels)) and len(set(labels)) == len(labels):
        return labels
    labels = tuple(plain(item) for item in labels)
    if not labels:
        raise ValueError(f"{name} is empty: list at least one item.")
    for item in labels:
        if not isinstance(item, Hashable):
            raise ValueError(f"{name} contains {item!r}, which cannot be an item: use text, numbers or tuples.")
        if isinstance(item, float) and isnan(item):
            raise ValueError(f"{name} contains NaN: give every item a name.")
    if len(set(labels)) < len(labels):
        twice = next(item for item in labels if labels.count(item) > 1)
        raise ValueError(f"{name} contains {twice!r} more than once: list each item once.")
    return labels


def _frozen(values: ArrayLike) -> Codes:
    array = np.ascontiguousarray(values, dtype=np.int64)
    array.flags.writeable = False
    return array
