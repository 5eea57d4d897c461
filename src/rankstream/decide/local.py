"""Local search over wish lists: add, drop or exchange an item as long as that pays, from several starts."""

import numpy as np

from rankstream._core.types import Bytes
from rankstream._core.watch import Watch, unwatched
from rankstream.decide import list_kernels as kernels
from rankstream.decide.lists import Lists
from rankstream.decide.problem import OfferProblem
from rankstream.decide.referee import some_offer

PAYS = 1e-12
Found = dict[bytes, float]
"""Feasible offers of free items and their values."""


def climb(lists: Lists, problem: OfferProblem, held: Bytes, found: Found, watch: Watch = unwatched) -> Bytes:
    """From a feasible offer to one that no single change improves; every step is kept in ``found``."""
    n = lists.margin.size
    add, drop, swap = np.zeros(n), np.zeros(n), np.zeros((n, n))
    while True:
        value = kernels.changes(*lists.arrays, held, add, drop, swap)
        found[held.tobytes()] = value - float(lists.cost @ held) - lists.fixed_cost
        move = _best_move(lists, problem, held, add - lists.cost, drop + lists.cost, swap)
        if move is None or watch("local search"):
            return held
        held = move


def _best_move(
    lists: Lists, problem: OfferProblem, held: Bytes, add: np.ndarray, drop: np.ndarray, swap: np.ndarray
) -> Bytes | None:
    """The best feasible change, if one pays."""
    n = held.size
    inside, outside = np.flatnonzero(held > 0), np.flatnonzero(held == 0)
    both = drop[inside, np.newaxis] + add[outside] + swap[np.ix_(inside, outside)]
    gains = np.concatenate([add[outside], drop[inside], both.ravel()])
    for pick in np.argsort(-gains):
        if gains[pick] <= PAYS:
            return None
        after = held.copy()
        if pick < outside.size:
            after[outside[pick]] = 1
        elif pick < n:
            after[inside[pick - outside.size]] = 0
        else:
            row, column = divmod(int(pick) - n, outside.size)
            after[inside[row]], after[outside[column]] = 0, 1
        if problem.is_feasible(lists.whole(problem, after)):
            return after
    return None


def local_search(
    lists: Lists, problem: OfferProblem, starts: int = 4, seed: int = 0, watch: Watch = unwatched
) -> Found:
    """Feasible offers with their values, the best of which no single change improves.

    The first start is the smallest offer; others are random ones, made feasible by leaving items out. An infeasible
    problem is a ValueError.
    """
    random, n = np.random.default_rng(seed), lists.margin.size
    found: Found = {}
    for number in range(starts):
        held = np.zeros(n, dtype=np.int8)
        if number:
            order = random.permutation(n)
            for code in order[: max(1, problem.most - problem.must.size)]:
                held[code] = 1
                if not problem.is_feasible(lists.whole(problem, held)):
                    held[code] = 0
        if not problem.is_feasible(lists.whole(problem, held)):
            if found:
                continue
            held = some_offer(problem)[lists.free].astype(np.int8)
        climb(lists, problem, held, found, watch)
        if watch("local search"):
            break
    return found
