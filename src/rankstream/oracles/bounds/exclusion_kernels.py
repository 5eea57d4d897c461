"""Compiled loops over sets of items that several offers contain: how much the largest shares of each exceed 1."""

from rankstream._core.compilation import compiled
from rankstream._core.types import Codes, Vec


@compiled
def score_sets(ptr: Codes, seats: Codes, point: Vec, scores: Vec) -> None:
    """The sum of the largest shares of every set: row r of ``seats`` has its coordinates in one offer, -1 for none.

    The rows of set k go from ``ptr[k]`` to ``ptr[k + 1]``; the columns are its items and no-choice.
    """
    for number in range(scores.size):
        total = 0.0
        for column in range(seats.shape[1]):
            best = 0.0
            for row in range(ptr[number], ptr[number + 1]):
                if seats[row, column] >= 0:
                    best = max(best, point[seats[row, column]])
            total += best
        scores[number] = total


@compiled
def widen(place: Codes, point: Vec, chosen: Codes, count: int, none: int, inside: Codes) -> int:
    """Add items to a set as long as the sum of its largest shares rises; returns how many there are.

    ``place`` has the coordinate of every offer and item, -1 for none; the first ``count`` of ``chosen`` are the set's
    items, ``none`` the no-choice item (-1 without one), and ``inside`` room for a number per offer.
    """
    n_offers, n_items = place.shape
    rows = 0
    for offer in range(n_offers):
        whole = True
        for k in range(count):
            whole = whole and place[offer, chosen[k]] >= 0
        if whole:
            inside[rows] = offer
            rows += 1
    best = sum_of_largest(place, point, inside[:rows], chosen, count, none, -1)
    while count < chosen.size:
        pick = -1
        for item in range(n_items):
            if item != none and not (chosen[:count] == item).any():
                value = sum_of_largest(place, point, inside[:rows], chosen, count, none, item)
                if value > best:
                    best, pick = value, item
        if pick < 0:
            break
        chosen[count] = pick
        count += 1
        kept = 0
        for r in range(rows):
            if place[inside[r], pick] >= 0:
                inside[kept] = inside[r]
                kept += 1
        rows = kept
    return count


@compiled
def sum_of_largest(place: Codes, point: Vec, offers: Codes, chosen: Codes, count: int, none: int, extra: int) -> float:
    """The sum of the largest shares of a set, no-choice and one more item (-1: none) in those offers that have it."""
    total = 0.0
    for k in range(count + 2):
        item = chosen[k] if k < count else none if k == count else extra
        if item < 0:
            continue
        best = 0.0
        for r in range(offers.size):
            if (extra < 0 or place[offers[r], extra] >= 0) and place[offers[r], item] >= 0:
                best = max(best, point[place[offers[r], item]])
        total += best
    return total


@compiled
def score_pairs(
    place: Codes, indptr: Codes, members: Codes, point: Vec, above: float, pairs: Codes, scores: Vec
) -> int:
    """The pairs of offers whose common items have largest shares with a sum above ``above``; returns how many.

    Only as many are written as there is room for in ``pairs`` and ``scores``.
    """
    count = 0
    for one in range(indptr.size - 1):
        for other in range(one):
            total = 0.0
            for k in range(indptr[one], indptr[one + 1]):
                seat = place[other, members[k]]
                if seat >= 0:
                    total += max(point[k], point[seat])
            if total > above and count < scores.size:
                pairs[count, 0], pairs[count, 1], scores[count] = one, other, total
                count += 1
    return count
