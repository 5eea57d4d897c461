"""Compiled branch and bound over sets of items still to be ranked: its memo, its bounds and its recursion."""

from typing import NamedTuple

import numpy as np

from rankstream._core.compiling import compiled
from rankstream._core.types import Bits, Codes, Vec
from rankstream.oracles.bounds.group_kernels import Lattices, find

LOWER, EXACT = 0, 1  # what is known of a set; the less of two says whether both are exact
ENDS = -1  # in place of an item: no-choice comes next


class Memo(NamedTuple):
    """What is known of item sets, in an open hash table: a value, whether it is exact, and the item to rank next."""

    keys: Bits
    used: Codes
    value: Vec
    status: Codes
    item: Codes
    filled: Codes


class BranchProblem(NamedTuple):
    """Offers as item sets, costs above no-choice, the groups' tables as a pattern database, and scratch by depth.

    Where there is an order, a set has all that must come after one of the offer's items, too, and ``above`` are the
    items that must come before each; the groups' tables know no order, and bound all the same.
    ``nodes`` is the number of nodes that may still be opened; ``scratch`` has rows of item costs and estimates.
    """

    sets: Bits
    above: Bits
    indptr: Codes
    members: Codes
    costs: Vec
    ends: bool
    room: float
    groups: Lattices
    group_items: Bits
    to_go: Vec
    at: Codes
    status: Codes
    nodes: Codes
    cost: Vec
    estimate: Vec


@compiled
def bit_of(item: int) -> np.uint64:
    """The set of one item."""
    return np.uint64(1) << np.uint64(item)


@compiled
def closure(sets: Bits, items: np.uint64) -> np.uint64:
    """The union of the offers inside a set: the other items of the set make no difference any more."""
    union = np.uint64(0)
    for offer in range(sets.size):
        if not sets[offer] & ~items:
            union |= sets[offer]
    return union


@compiled
def component(sets: Bits, items: np.uint64) -> np.uint64:
    """The items that offers inside a closed set connect with its first item."""
    # items & -items, in unsigned numbers: the lowest bit that is set
    part = items & (~items + np.uint64(1))
    # one pass may come to an offer before the part reaches it, so passes go on until one adds nothing
    before = np.uint64(0)
    while part != before:
        before = part
        for offer in range(sets.size):
            if not sets[offer] & ~items and sets[offer] & part:
                part |= sets[offer]
    return part


@compiled
def after(problem: BranchProblem, group: int, state: int, item: int) -> int:
    """The state of a group after one more item is ranked."""
    groups = problem.groups
    if problem.group_items[group] & bit_of(item):
        for step in range(groups.step_ptr[state], groups.step_ptr[state + 1]):
            if groups.step_item[step] == item:
                return int(groups.step_target[step])
    # the item touches no offer that the group has left
    return state


@compiled
def advance(problem: BranchProblem, depth: int, item: int) -> None:
    """Rank one more item in the group states of a depth."""
    for group in range(problem.at.shape[1]):
        problem.at[depth, group] = after(problem, group, problem.at[depth, group], item)


@compiled
def weigh_items(problem: BranchProblem, items: np.uint64, depth: int) -> None:
    """The cost of ranking each item of a set that can be next, and that plus the groups' bound on the rest."""
    n_items = problem.cost.shape[1]
    for item in range(n_items):
        problem.cost[depth, item] = 0.0
    for offer in range(problem.sets.size):
        if not problem.sets[offer] & ~items:
            for k in range(problem.indptr[offer], problem.indptr[offer + 1]):
                problem.cost[depth, problem.members[k]] += problem.costs[k]
    for item in range(n_items):
        if items & bit_of(item) and not items & problem.above[item]:
            total = problem.cost[depth, item]
            for group in range(problem.at.shape[1]):
                total += problem.to_go[after(problem, group, problem.at[depth, group], item)]
            problem.estimate[depth, item] = total
        else:
            # never the least one, unless nothing is left to try
            problem.estimate[depth, item] = np.inf


@compiled
def groups_bound(problem: BranchProblem, depth: int) -> float:
    """The pattern database's bound: what the groups' parts of the untouched offers cost at least."""
    bound = 0.0
    for group in range(problem.at.shape[1]):
        bound += problem.to_go[problem.at[depth, group]]
    return bound


@compiled
def restrict(problem: BranchProblem, gone: np.uint64, depth: int) -> float:
    """Copy the group states to the next depth without the items that are gone; returns the bound there."""
    for group in range(problem.at.shape[1]):
        problem.at[depth + 1, group] = problem.at[depth, group]
    # in any order: a state says which offers are untouched, not who touched them first
    for item in range(problem.cost.shape[1]):
        if gone & bit_of(item):
            advance(problem, depth + 1, item)
    return groups_bound(problem, depth + 1)


@compiled
def remember(memo: Memo, items: np.uint64, value: float, status: int, item: int) -> bool:
    """Keep what is known of a set; False if there is no room left."""
    place = find(memo.keys, memo.used, items)
    if memo.used[place] < 0:
        # half of the table stays free, so that a search for a key soon comes to a free place
        if 2 * memo.filled[0] >= memo.keys.size:
            return False
        memo.keys[place], memo.used[place] = items, 1
        memo.filled[0] += 1
    memo.value[place], memo.status[place], memo.item[place] = value, status, item
    return True


@compiled
def explore(problem: BranchProblem, memo: Memo, items: np.uint64, limit: float, depth: int) -> float:
    """The least cost of ranking a closed set, if less than ``limit``; else, or if out of nodes, a lower bound on it.

    ``status[depth]`` says which; ``at[depth]`` must be the states of the groups.
    """
    problem.status[depth] = EXACT
    if not items:
        return 0.0
    place = find(memo.keys, memo.used, items)
    # a bound serves only where it reaches the limit; otherwise the set is opened again
    if memo.used[place] >= 0 and (memo.status[place] == EXACT or memo.value[place] >= limit - problem.room):
        problem.status[depth] = memo.status[place]
        return float(memo.value[place])
    bound = groups_bound(problem, depth)
    if bound >= limit - problem.room or problem.nodes[0] <= 0:
        problem.status[depth] = LOWER
        return bound
    part = component(problem.sets, items)
    if part != items:
        # no offer ties the two together, so the groups' bound is a sum over both: bound - own is its part for the
        # other, which leaves the rest of the limit to this one
        own = restrict(problem, items & ~part, depth)
        value = explore(problem, memo, part, limit - (bound - own), depth + 1)
        status = problem.status[depth + 1]
        restrict(problem, part, depth)
        value += explore(problem, memo, items & ~part, limit - value, depth + 1)
        problem.status[depth] = min(status, problem.status[depth + 1])
        return value
    problem.nodes[0] -= 1
    weigh_items(problem, items, depth)
    best, choice, low = 0.0 if problem.ends else np.inf, ENDS, np.inf
    while True:
        # the most promising first: once its estimate reaches the cut, so do all others'
        item = int(np.argmin(problem.estimate[depth]))
        estimate, cut = problem.estimate[depth, item], min(best, limit)
        if estimate >= cut - problem.room:
            low = min(low, estimate)
            break
        problem.estimate[depth, item] = np.inf
        # depth + 1 has rows of its own for this: deeper calls leave the rows of this depth alone
        restrict(problem, bit_of(item), depth)
        cost = problem.cost[depth, item]
        value = cost + explore(problem, memo, closure(problem.sets, items & ~bit_of(item)), cut - cost, depth + 1)
        if problem.status[depth + 1] == LOWER:
            # both bound what ranking the item next can cost
            low = min(low, max(value, estimate))
        elif value < best:
            best, choice = value, item
    status = EXACT if best <= low + problem.room else LOWER
    value = best if status == EXACT else low
    if not remember(memo, items, value, status, choice):
        # a full memo stops the search as if it were out of nodes
        problem.nodes[0] = 0
    problem.status[depth] = status
    return value
