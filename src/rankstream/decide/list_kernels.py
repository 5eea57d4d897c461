"""Compiled loops over wish lists: customers' rankings, cut where something that is always there ends them.

The list of ranking r is ``item[start[r]:start[r + 1]]``, best first; ``weight[r]`` is how many customers have it and
``end[r]`` what is earned if nothing of it is offered.
"""

from rankstream._core.compiling import compiled
from rankstream._core.types import Bytes, Codes, Vec


@compiled
def cut(orders: Codes, place: Codes, ends: Vec, start: Codes, item: Codes, end: Vec) -> None:
    """Write the lists of whole rankings; ``place[i]`` is the new number of a free item, -1 for one that is never
    offered, -2 for one that always is and earns ``ends[i]``.
    """
    at = 0
    for r in range(orders.shape[0]):
        start[r] = at
        end[r] = 0.0
        for k in range(orders.shape[1]):
            i = orders[r, k]
            if place[i] == -2:
                end[r] = ends[i]
                break
            if place[i] >= 0:
                item[at] = place[i]
                at += 1
    start[orders.shape[0]] = at


@compiled
def earned(start: Codes, item: Codes, weight: Vec, end: Vec, margin: Vec, held: Bytes) -> float:
    """What an offer earns: every list's first item that is held, or its end."""
    total = 0.0
    for r in range(weight.size):
        gain = end[r]
        for p in range(start[r], start[r + 1]):
            if held[item[p]] > 0:
                gain = margin[item[p]]
                break
        total += weight[r] * gain
    return total


@compiled
def changes(
    start: Codes, item: Codes, weight: Vec, end: Vec, margin: Vec, held: Bytes, add: Vec, drop: Vec, swap: Vec
) -> float:
    """What an offer earns, and how that changes with each item added, dropped, or exchanged.

    One pass over the lists: adding i changes those in which i stands before the first item held; dropping that first
    item f makes its list fall to the second one. ``swap[f, i]`` is what an exchange of f for i changes beyond dropping
    f and adding i: lists whose first is f and in which i comes after f, but before the second one, and lists in which i
    stands before f, which no longer lose f.
    """
    add[:] = 0.0
    drop[:] = 0.0
    swap[:] = 0.0
    total = 0.0
    for r in range(weight.size):
        first, gain, second = -1, 0.0, end[r]
        for p in range(start[r], start[r + 1]):
            i = item[p]
            if held[i] > 0:
                if first >= 0:
                    second = margin[i]
                    break
                first, gain = i, margin[i]
        if first < 0:
            gain = end[r]
        total += weight[r] * gain
        if first >= 0:
            drop[first] += weight[r] * (second - gain)
        passed = False
        for p in range(start[r], start[r + 1]):
            i = item[p]
            if i == first:
                passed = True
            elif held[i] > 0:
                break
            elif not passed:
                add[i] += weight[r] * (margin[i] - gain)
                if first >= 0:
                    swap[first, i] += weight[r] * (gain - second)
            else:
                swap[first, i] += weight[r] * (margin[i] - second)
    return total
