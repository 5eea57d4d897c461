"""Local search over wish lists: add, drop or exchange an item as long as that pays, from several starts."""

import numpy as np

from rankstream._core.types import Bytes
from rankstream._core.watch import Watch, unwatched
from rankstream.decide import list_kernels as kernels
from rankstream.decide.lists import Lists
from rankstream.decide.problem import OfferProblem
from rankstream.decide.referee import some_offer
from rankstream.decide.rules import FreeRules, rules_of

PAYS = 1e-12
AT_A_TIME = 64
"""Steps between two questions whether there is still time."""
Found = dict[bytes, float]
"""Feasible offers of free items and their values."""


def climb(lists: Lists, rules: FreeRules, held: Bytes, found: Found, watch: Watch = unwatched) -> None:
    """From a feasible offer to one that no single change improves; every step is kept in ``found``."""
    steps, values = np.zeros((AT_A_TIME, held.size), dtype=np.int8), np.zeros(AT_A_TIME)
    given = (*lists.arrays, *rules.arrays)
    while True:
        done = kernels.climb(*given, lists.cost, PAYS, held, steps, values)
        for number in range(done):
            found[steps[number].tobytes()] = float(values[number]) - lists.fixed_cost
        if done < AT_A_TIME or watch("local search"):
            return


def local_search(
    lists: Lists, problem: OfferProblem, starts: int = 4, seed: int = 0, watch: Watch = unwatched
) -> Found:
    """Feasible offers with their values, the best of which no single change improves.

    The first start is the smallest offer; others are random ones, made feasible by leaving items out. An infeasible
    problem is a ValueError.
    """
    random, n = np.random.default_rng(seed), lists.margin.size
    rules = rules_of(problem)
    found: Found = {}
    for number in range(starts):
        held = np.zeros(n, dtype=np.int8)
        if number:
            order = random.permutation(n)
            for code in order[: max(1, rules.most)]:
                held[code] = 1
                if not kernels.fits(held, *rules.arrays):
                    held[code] = 0
        if not kernels.fits(held, *rules.arrays):
            if found:
                continue
            held = some_offer(problem)[lists.free].astype(np.int8)
        climb(lists, rules, held, found, watch)
        if watch("local search"):
            break
    return found
