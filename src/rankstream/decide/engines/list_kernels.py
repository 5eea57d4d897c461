"""Compiled loops over wish lists: customers' rankings, cut where something that is always there ends them."""

from typing import NamedTuple

import numpy as np

from rankstream._core.compilation import compiled, inner
from rankstream._core.types import Bytes, Codes, Vec
from rankstream.decide.problem.rules import RuleArrays


class WishLists(NamedTuple):
    """The list of ranking r is ``item[start[r]:start[r + 1]]``, best first.

    ``weight[r]`` is how many customers have it, ``end[r]`` what is earned if nothing of it is offered,
    ``margin[i]`` what item i earns.
    """

    start: Codes
    item: Codes
    weight: Vec
    end: Vec
    margin: Vec


@compiled
def earned(lists: WishLists, on_offer: Bytes) -> float:
    """What an offer earns: every list's first item on offer, or its end."""
    start, item, weight, end, margin = lists
    total = 0.0
    for r in range(weight.size):
        gain = end[r]
        for p in range(start[r], start[r + 1]):
            if on_offer[item[p]] > 0:
                gain = margin[item[p]]
                break
        total += weight[r] * gain
    return total


@compiled
def changes(lists: WishLists, on_offer: Bytes, add: Vec, drop: Vec, swap: Vec) -> float:
    """What an offer earns, and how that changes with each item added, dropped, or exchanged.

    One pass over the lists: adding i changes those in which i stands before the first item on offer; dropping that
    item f makes its list fall to the second one. ``swap[f, i]`` is what an exchange of f for i changes beyond dropping
    f and adding i: lists whose first is f and in which i comes after f, but before the second one, and lists in which i
    stands before f, which no longer lose f.
    """
    start, item, weight, end, margin = lists
    add[:] = 0.0
    drop[:] = 0.0
    swap[:] = 0.0
    total = 0.0
    for r in range(weight.size):
        first, gain, second = -1, 0.0, end[r]
        for p in range(start[r], start[r + 1]):
            i = item[p]
            if on_offer[i] > 0:
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
            elif on_offer[i] > 0:
                break
            elif not passed:
                add[i] += weight[r] * (margin[i] - gain)
                if first >= 0:
                    swap[first, i] += weight[r] * (gain - second)
            else:
                swap[first, i] += weight[r] * (margin[i] - second)
    return total


@compiled
def fits(on_offer: Bytes, rules: RuleArrays) -> bool:
    """Whether an offer of free items keeps all rules."""
    size, filled = 0, 0.0
    for i in range(on_offer.size):
        if on_offer[i] > 0:
            size += 1
            filled += rules.space[i]
    good = rules.least <= size <= rules.most and filled <= rules.capacity
    for k in range(rules.limits.size):
        total = 0
        for p in range(rules.row[k], rules.row[k + 1]):
            if on_offer[rules.counted[p]] > 0:
                total += rules.sign[p]
        if total > rules.limits[k]:
            good = False
    return good


@inner
def better(on_offer: Bytes, gone: int, new: int, rules: RuleArrays) -> bool:
    """Whether the offer keeps all rules without ``gone`` and with ``new`` (-1: none); the offer is left as it was."""
    if gone >= 0:
        on_offer[gone] = 0
    if new >= 0:
        on_offer[new] = 1
    good = fits(on_offer, rules)
    if gone >= 0:
        on_offer[gone] = 1
    if new >= 0:
        on_offer[new] = 0
    return good


@compiled
def climb(
    lists: WishLists, rules: RuleArrays, cost: Vec, pays: float, on_offer: Bytes, steps: Bytes, values: Vec
) -> int:
    """Take the best feasible change of ``on_offer`` as long as one pays: add an item, drop one, or exchange two.

    Every offer on the way goes into a row of ``steps``, what it is worth into ``values``. Returns how many there are;
    if that fills ``steps``, there may be more to gain.
    """
    n = lists.margin.size
    add, drop, swap = np.zeros(n), np.zeros(n), np.zeros((n, n))
    for step in range(values.size):
        value = changes(lists, on_offer, add, drop, swap)
        for i in range(n):
            steps[step, i] = on_offer[i]
            if on_offer[i] > 0:
                value -= cost[i]
        values[step] = value
        best, gone, new = pays, -1, -1
        # row n stands for dropping nothing, column n for adding nothing
        for f in range(n + 1):
            if f < n and on_offer[f] <= 0:
                continue
            lost = drop[f] + cost[f] if f < n else 0.0
            for i in range(n + 1):
                if i < n and on_offer[i] > 0:
                    continue
                gain = lost + (add[i] - cost[i] if i < n else 0.0)
                if f < n and i < n:
                    gain += swap[f, i]
                if gain > best:
                    out, into = f if f < n else -1, i if i < n else -1
                    if better(on_offer, out, into, rules):
                        best, gone, new = gain, out, into
        if gone < 0 and new < 0:
            return step + 1
        if gone >= 0:
            on_offer[gone] = 0
        if new >= 0:
            on_offer[new] = 1
    return values.size
