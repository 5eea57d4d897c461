"""Where an offer stands: its number by its set of items, and the coordinates of its items."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any
from weakref import WeakMethod

from rankstream._core.types import Label

Offers = tuple[tuple[Label, ...], ...]


class Numbers:
    """The numbers of offers by their sets of items, shared by assortments that begin with the same offers.

    A set takes more memory than all else that is known of an offer, so only its hash is kept; who has that hash is
    compared. Offers of one hash follow each other at the next free numbers.

    >>> offers = (("tea", "pie"), ("pie", "cake"), ("pie", "tea"))
    >>> Numbers().including(offers).find(frozenset({"tea", "pie"}), offers)
    0
    """

    def __init__(self) -> None:
        self._number_at: dict[int, int] = {}
        self._size = 0

    def including(self, offers: Offers, so_far: int = 0) -> "Numbers":
        """Numbers that know all these offers, of which these know ``so_far``; new ones if others went on before."""
        own = self if self._size == so_far else Numbers()
        for number in range(own._size, len(offers)):
            labels = frozenset(offers[number])
            if own.find(labels, offers) is None:
                own._number_at[own._free(hash(labels))] = number
        own._size = len(offers)
        return own

    def find(self, labels: frozenset[Label], offers: Offers) -> int | None:
        """The number of the first of the offers with these items; None if there is none."""
        at = hash(labels)
        while (number := self._number_at.get(at)) is not None:
            if number < len(offers) and len(offers[number]) == len(labels) and labels.issuperset(offers[number]):
                return number
            at += 1
        return None

    def _free(self, at: int) -> int:
        while at in self._number_at:
            at += 1
        return at


class Places(dict[Hashable, dict[Label, int]]):
    """The places of offers by how they were written, so that a stream pays for checking an offer only once."""

    MOST = 100_000

    def __init__(self, find: Callable[[Iterable[Label]], dict[Label, int]]) -> None:
        super().__init__()
        self._find = WeakMethod(find)  # whoever looks up here has the assortments, which must not wait for a collector

    def __missing__(self, offer: Any) -> dict[Label, int]:
        find = self._find()
        if find is None:
            raise KeyError(offer)
        place = find(offer)
        if not isinstance(offer, tuple | frozenset):
            return place
        if len(self) >= self.MOST:
            self.clear()
        self[offer] = place
        return place
