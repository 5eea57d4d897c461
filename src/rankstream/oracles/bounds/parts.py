"""Parts: sets of items with what every offer has of them, each small enough for a dynamic program over its sets."""

from dataclasses import dataclass

import numpy as np

from rankstream._core.arguments import whole_number
from rankstream._core.types import Codes, Mask, Vec
from rankstream.data.assortments import Assortments
from rankstream.oracles.bounds import part_kernels
from rankstream.oracles.bounds.part_kernels import Corral, Part

MOST_CORNERS = 400


@dataclass
class Piece:
    """A part, the point of its polytope that the last projection came to, and the pull towards it."""

    part: Part
    corral: Corral
    point: Vec
    pull: Vec


def empty_corral(n_slots: int, most: int) -> Corral:
    """Room for the corners of a part and its slots."""
    return Corral(
        known=np.zeros(1, dtype=np.int64),
        slots=np.arange(most),
        chosen=np.zeros((most, n_slots + 1), dtype=np.uint32),
        weights=np.zeros(most),
        factor=np.zeros((most, most)),
        sides=np.zeros((2, most)),
        squares=np.ones(n_slots + 1),
    )


class ItemParts:
    """Parts of at most ``items`` items: where offers are large, few fit into a group, but all of them share pairs.

    In a part, an offer keeps its items inside and no-choice. Its other items are its own there, as if no other offer
    had them: one of them may come first whatever the ranking of the part is. So what a ranking of all items chooses can
    be chosen in the part, too, and bounds by parts hold. Parts are chosen around pairs of items that are offered
    together where ``grow`` is given data that are hard to meet.

    >>> offers = Assortments([("tea", "cake", "pie", "nothing"), ("tea", "pie", "nothing"), ("ink", "nothing")])
    >>> parts = ItemParts(offers, items=2)
    >>> parts.grow(np.ones(offers.n_coordinates))
    True
    >>> parts.items
    [[0, 2]]
    """

    def __init__(self, assortments: Assortments, items: int = 12) -> None:
        whole_number("items", items)
        self.assortments = assortments
        self._universal = -1 if assortments.no_choice_code is None else assortments.no_choice_code
        self.pieces: list[Piece] = []
        self.items: list[list[int]] = []
        self._holds = np.zeros((assortments.n_offers, assortments.n_items))
        self._holds[assortments.owner, assortments.members] = 1.0
        if self._universal >= 0:
            self._holds[:, self._universal] = 0.0
        self._together = np.zeros((assortments.n_items, assortments.n_items))
        self._size = min(items, int((self._holds.sum(axis=0) > 0.0).sum()))
        self._sums = np.zeros((self._size, 2**self._size // 2))
        self._to_go = np.zeros(2**self._size)

    def grow(self, residual: Vec) -> bool:
        """Add a part around the items that the residual is largest at; False where no pair of items is left for one."""
        pairs = self._holds.T @ (self._holds * self._spread(residual))
        pairs = (pairs + pairs.T) / (1.0 + self._together) ** 2
        np.fill_diagonal(pairs, 0.0)
        if self._size < 2 or pairs.max() <= 0.0:
            return False
        chosen = [int(item) for item in np.unravel_index(int(pairs.argmax()), pairs.shape)]
        free = self._holds.sum(axis=0) > 0.0
        free[chosen] = False
        score = pairs[chosen].sum(axis=0)
        while len(chosen) < self._size:
            chosen.append(int(np.where(free, score, -1.0).argmax()))
            free[chosen[-1]] = False
            score += pairs[chosen[-1]]
        chosen.sort()
        if chosen in self.items:
            return False
        self._together[np.ix_(chosen, chosen)] += 1.0
        self._add(chosen)
        return True

    def _spread(self, residual: Vec) -> Vec:
        """The residual's absolute values by offer and item."""
        table = np.zeros_like(self._holds)
        table[self.assortments.owner, self.assortments.members] = np.abs(residual)
        return table

    def _add(self, chosen: list[int]) -> None:
        self.items.append(chosen)
        part = self._part(chosen)
        n_seats, n_slots = part.item.size, part.inside.size
        nothing, fresh = np.zeros(n_seats), np.empty(n_slots, dtype=np.int64)
        part_kernels.solve_part(part, nothing, self._sums, self._to_go)
        part_kernels.choose_part(part, nothing, self._sums, self._to_go, fresh)
        corral = empty_corral(n_slots, MOST_CORNERS)
        part_kernels.add_corner(corral, fresh, nothing)
        self.pieces.append(Piece(part, corral, np.zeros(n_seats), np.zeros(n_seats)))

    def _part(self, chosen: list[int]) -> Part:
        """The offers with two items of the part or more, and those that lie inside it."""
        offers = self.assortments
        local = np.full(offers.n_items, -2, dtype=np.int64)
        local[chosen] = np.arange(len(chosen))
        if self._universal >= 0:
            local[self._universal] = -1
        number = local[offers.members]
        begins = offers.indptr[:-1]
        n_inside = np.add.reduceat((number >= 0).astype(np.int64), begins)
        whole: Mask = np.add.reduceat((number == -2).astype(np.int64), begins) == 0
        held: Mask = (n_inside > 1) | (whole & (n_inside > 0))
        where = np.flatnonzero((number > -2) & held[offers.owner])
        slot_of = (np.cumsum(held) - 1)[offers.owner[where]]
        item = number[where]
        inside: Codes = np.zeros(int(held.sum()), dtype=np.int64)
        np.add.at(inside, slot_of[item >= 0], 1 << item[item >= 0])
        none = np.full(inside.size, -1, dtype=np.int64)
        none[slot_of[item == -1]] = np.flatnonzero(item == -1)
        seat_ptr = np.concatenate([[0], np.cumsum(np.bincount(slot_of, minlength=inside.size))])
        return Part(len(chosen), inside, whole[held].astype(np.int64), seat_ptr, none, item, where)

    def total(self) -> Vec:
        """The sum of the parts' pulls at every coordinate."""
        total: Vec = np.zeros(self.assortments.n_coordinates)
        for piece in self.pieces:
            total[piece.part.where] += piece.pull
        return total

    def sweep(self, point: Vec, calls: int, room: float = 1e-6) -> None:
        """Project ``point`` on one part after the other, in place, by Dykstra's method."""
        for piece in self.pieces:
            aim = point[piece.part.where] + piece.pull
            part_kernels.project_part(piece.part, aim, piece.corral, piece.point, self._sums, self._to_go, calls, room)
            piece.pull = aim - piece.point
            point[piece.part.where] = piece.point

    def least(self) -> float:
        """The sum of the least values of the parts, for the pulls turned round as costs."""
        return sum(part_kernels.solve_part(p.part, -p.pull, self._sums, self._to_go) for p in self.pieces)
