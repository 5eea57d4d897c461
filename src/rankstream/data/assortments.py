"""Assortments: which items were offered together, and the coordinates (offer, item) that every vector follows."""

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from math import isnan
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core import renamed
from rankstream._core.arguments import whole_numbers
from rankstream._core.types import Codes, Label, Vec


class Space(Protocol):
    """What the solver needs to know of the set that an oracle minimises over: Assortments, or any other (Section 3)."""

    @property
    def n_coordinates(self) -> int:
        """The length of its points."""

    def vertex(self, ranking: ArrayLike) -> Vec:
        """The point that an oracle's answer stands for."""

    def check_frequencies(self, frequencies: ArrayLike) -> Vec:
        """The data of a round as an array of their own, or a ValueError."""


class Assortments:
    """The offers A_1 ... A_m over a set of items, and the coordinates shared by frequencies, vertices and duals.

    Coordinates follow the order in which the offers and their items were given. ``items`` fixes the order of the
    items and may name items that are never offered; without it, items are numbered as they appear.

    >>> offers = Assortments([("tea", "cake", "nothing"), ("pie", "nothing")])
    >>> offers.items
    ('tea', 'cake', 'nothing', 'pie')
    >>> offers.n_coordinates, offers.coordinate(("nothing", "pie"), "pie")
    (5, 3)
    >>> offers.vertex([3, 1, 2, 0])           # pie > cake > nothing > tea
    array([0., 1., 0., 1., 0.])
    """

    items: tuple[Label, ...]
    offers: tuple[tuple[Label, ...], ...]
    indptr: Codes
    members: Codes

    def __init__(self, offers: Iterable[Iterable[Label]], items: Iterable[Label] | None = None) -> None:
        if isinstance(offers, str) or not isinstance(offers, Iterable):
            raise ValueError(f"The offers are {offers!r}: give a list of them, such as [('tea', 'cake')].")
        self.offers = tuple(as_offer(f"Offer {number}", offer) for number, offer in enumerate(offers))
        if not self.offers:
            raise ValueError("There are no offers: give at least one, such as ('tea', 'cake').")
        given = dict.fromkeys(item for offer in self.offers for item in offer)
        self.items = tuple(given) if items is None else as_offer("The list of items", items)
        self._code = {item: code for code, item in enumerate(self.items)}
        for number, offer in enumerate(self.offers):
            for item in offer:
                if item not in self._code:
                    raise ValueError(f"Offer {number} contains {item!r}, which is not among the items: add it there.")
        sizes = [len(offer) for offer in self.offers]
        self.indptr = _frozen(np.concatenate([[0], np.cumsum(sizes)]))
        self.members = _frozen([self._code[item] for offer in self.offers for item in offer])

    @property
    def n_items(self) -> int:
        """How many items there are, offered or not."""
        return len(self.items)

    @property
    def n_offers(self) -> int:
        """How many offers there are (the paper's m)."""
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
        """The code of the one item that is in every offer, which ends a ranking as "nothing" does; None without one."""
        everywhere = np.flatnonzero(np.bincount(self.members, minlength=self.n_items) == self.n_offers)
        return int(everywhere[0]) if len(everywhere) == 1 else None

    @property
    def no_choice(self) -> NoReturn:
        """The old name of ``no_choice_code``: raises an AttributeError that says so. Gone in 0.4."""
        old = "Assortments.no_choice"
        raise AttributeError(renamed.sentence(old, renamed.ATTRIBUTES[old]))

    @cached_property
    def _offer_of(self) -> dict[frozenset[Label], int]:
        numbers: dict[frozenset[Label], int] = {}
        for number, offer in enumerate(self.offers):
            numbers.setdefault(frozenset(offer), number)
        return numbers

    @cached_property
    def _place(self) -> list[dict[Label, int]]:
        starts = self.indptr[:-1].tolist()
        return [
            {item: start + k for k, item in enumerate(offer)} for start, offer in zip(starts, self.offers, strict=True)
        ]

    @cached_property
    def places(self) -> "Places":
        """For every offer, as it was written, the coordinate of each of its items; looked up once, then remembered."""
        return Places(self)

    def code(self, item: Label) -> int:
        """The number of an item."""
        try:
            return self._code[plain(item)]
        except (KeyError, TypeError):
            raise ValueError(f"Unknown item {item!r}: the items are {_listed(self.items)}.") from None

    def coordinate(self, offer: Iterable[Label], item: Label) -> int:
        """The coordinate of an item in an offer, whose items may be named in any order.

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
        """The coordinates of an offer's items, which may be named in any order."""
        labels = as_offer("The offer", offer)
        for label in labels:
            self.code(label)
        number = self._offer_of.get(frozenset(labels))
        if number is None:
            raise ValueError(
                f"The offer {labels!r} is not among the {self.n_offers} assortments: add it to them first."
            )
        return self._place[number]

    def vertex(self, ranking: ArrayLike) -> Vec:
        """The vertex a(ranking): 1 where an item is the best ranked of its offer (codes, best first), else 0."""
        from rankstream.data.vertex_kernels import vertex  # compiled, and not needed to read or ask a model

        order = whole_numbers("A ranking's codes", ranking)
        out = np.empty(self.n_coordinates)
        if order.shape != (self.n_items,) or not vertex(order, self.indptr, self.members, out):
            raise ValueError(f"A ranking must order all {self.n_items} item codes, best first; got {order.tolist()}.")
        return out

    def extend(self, offers: Iterable[Iterable[Label]], items: Iterable[Label] = ()) -> "Assortments":
        """Larger assortments in which the old items and coordinates come first.

        ``items`` names new items that are to come next, offered or not; others follow as they appear.

        >>> Assortments([("tea", "pie")]).extend([("tea", "cake")]).items
        ('tea', 'pie', 'cake')
        """
        added = tuple(tuple(offer) for offer in offers)
        named = (*self.items, *items, *(item for offer in added for item in offer))
        return Assortments(self.offers + added, dict.fromkeys(plain(item) for item in named))

    def check_frequencies(self, frequencies: ArrayLike) -> Vec:
        """The vector as floats of its own, or a ValueError that names what is wrong with it."""
        values = np.array(frequencies, dtype=np.float64)
        if values.shape != (self.n_coordinates,):
            raise ValueError(
                f"Frequencies must have shape ({self.n_coordinates},), one per (offer, item); got {values.shape}."
            )
        bad = np.flatnonzero(~(values >= 0.0))
        if bad.size:
            raise ValueError(
                f"Frequency {values[bad[0]]} at {self._where(bad[0])} is not a number >= 0: "
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

    def _where(self, coordinate: int) -> str:
        offer = int(self.owner[coordinate])
        return f"coordinate {coordinate} (item {self.items[self.members[coordinate]]!r} of offer {offer})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Assortments):
            return NotImplemented
        return self is other or (self.items == other.items and self.offers == other.offers)

    def __hash__(self) -> int:
        return hash((self.items, self.offers))

    def __repr__(self) -> str:
        return f"Assortments({self.n_offers} offers of {self.n_items} items, {self.n_coordinates} coordinates)"

    def __reduce__(self) -> tuple[Any, ...]:
        return Assortments, (self.offers, self.items)


class Places(dict[Hashable, dict[Label, int]]):
    """The places of offers by how they were written, so that a stream pays for checking an offer only once."""

    MOST = 100_000

    def __init__(self, assortments: Assortments) -> None:
        super().__init__()
        self._find = assortments.place

    def __missing__(self, offer: Any) -> dict[Label, int]:
        place = self._find(offer)
        if not isinstance(offer, tuple | frozenset):
            return place
        if len(self) >= self.MOST:
            self.clear()
        self[offer] = place
        return place


def plain(label: Label) -> Label:
    """A numpy scalar as the Python value it equals, so that labels can be saved; anything else as it is."""
    return label.item() if isinstance(label, np.number | np.bool_ | np.str_ | np.bytes_) else label


def as_offer(name: str, offer: Iterable[Label]) -> tuple[Label, ...]:
    """The labels of one offer, or of all items, checked: some, hashable, none missing and none twice."""
    if isinstance(offer, str | bytes) or not isinstance(offer, Iterable):
        raise ValueError(f"{name} is {offer!r}: give a tuple of items, such as ('tea', 'cake').")
    labels = tuple(plain(item) for item in offer)
    if not labels:
        raise ValueError(f"{name} is empty: name at least one item.")
    for item in labels:
        if not isinstance(item, Hashable):
            raise ValueError(f"{name} contains {item!r}, which cannot be an item: use text, numbers or tuples.")
        if isinstance(item, float) and isnan(item):
            raise ValueError(f"{name} contains NaN: name every item.")
    if len(set(labels)) < len(labels):
        twice = next(item for item in labels if labels.count(item) > 1)
        raise ValueError(f"{name} contains {twice!r} more than once: name each item once.")
    return labels


def _frozen(values: ArrayLike) -> Codes:
    array = np.ascontiguousarray(values, dtype=np.int64)
    array.flags.writeable = False
    return array


def _listed(items: Sequence[Label], most: int = 8) -> str:
    shown = ", ".join(repr(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown}, ... ({len(items)} in all)"
