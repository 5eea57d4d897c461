"""Compiled loops of the EM algorithms: a step of a mixture of logits, one of a Markov chain; and a chain's orders."""

import numpy as np

from rankstream._core.compilation import compiled, in_any_order
from rankstream._core.types import Codes, Vec


@in_any_order
def mixture_step(
    indptr: Codes, members: Codes, tallies: Vec, mixture: Vec, attraction: Vec, top: Vec, bottom: Vec
) -> float:
    """The log-likelihood of a mixture of logits, and the two sides of its next attractions, both items by classes.

    Adds to ``top`` how many choices of an item are expected to be of a class, and to ``bottom`` what the item's
    attraction must be worth: the sum over the offers with it of the class's customers per attraction offered.
    """
    classes = mixture.size
    inverse, customers, per_worth = np.empty(classes), np.empty(classes), np.empty(classes)
    value = 0.0
    for offer in range(indptr.size - 1):
        inverse[:] = 0.0
        customers[:] = 0.0
        for place in range(indptr[offer], indptr[offer + 1]):
            item = members[place]
            for k in range(classes):
                inverse[k] += attraction[item, k]
        # divided once for all items of the offer: divisions take most of the time
        for k in range(classes):
            inverse[k] = 1.0 / inverse[k]
            per_worth[k] = mixture[k] * inverse[k]
        for place in range(indptr[offer], indptr[offer + 1]):
            # what nobody chose may have probability 0, which has no logarithm
            if tallies[place] > 0.0:
                item = members[place]
                total = 0.0
                for k in range(classes):
                    total += per_worth[k] * attraction[item, k]
                value += tallies[place] * np.log(total)
                factor = tallies[place] / total
                for k in range(classes):
                    part = per_worth[k] * attraction[item, k] * factor
                    top[item, k] += part
                    customers[k] += part
        for k in range(classes):
            customers[k] *= inverse[k]
        for place in range(indptr[offer], indptr[offer + 1]):
            item = members[place]
            for k in range(classes):
                bottom[item, k] += customers[k]
    return value


@compiled
def absent(indptr: Codes, members: Codes, offer: int, held: Codes, out: Codes) -> int:
    """Write the items that are not in an offer, and mark in ``held`` those that it does; how many are absent."""
    # numbers, not truths: factorise multiplies by them
    held[:] = 0
    for place in range(indptr[offer], indptr[offer + 1]):
        held[members[place]] = 1
    size = 0
    for item in range(held.size):
        if held[item] == 0:
            out[size] = item
            size += 1
    return size


@compiled
def factorise(transitions: Vec, held: Codes, outside: Codes, size: int, work: Vec, pivots: Vec) -> None:
    """Eliminate the absent items one by one from I - rho: factors below and above the diagonal, pivots beside it.

    What flows out of a state is summed instead of subtracting what stays from 1, so that nothing cancels (Grassmann,
    Taksar and Heyman 1985).
    """
    for a in range(size):
        row = transitions[outside[a]]
        leaving = 0.0
        for item in range(held.size):
            leaving += held[item] * row[item]
        # the pivot starts with what goes straight to offered items and gains what flows to items still to eliminate
        pivots[a] = leaving
        for b in range(size):
            work[a, b] = row[outside[b]]
    for k in range(size):
        row = work[k]
        direct = pivots[k]
        for b in range(k + 1, size):
            pivots[k] += row[b]
        for a in range(k + 1, size):
            below = work[a]
            factor = below[k] / pivots[k]
            below[k] = factor
            # who passes k ends as k does: what leaves from k leaves from a, too
            pivots[a] += factor * direct
            for b in range(k + 1, size):  # the diagonal, too: nobody reads it
                below[b] += factor * row[b]


@compiled
def expected_visits(work: Vec, pivots: Vec, size: int, visits: Vec) -> None:
    """Solve visits = arrivals + visits rho in place, for the absent items: how often each is passed."""
    for k in range(size):
        row = work[k]
        # the transposed system: the part above the diagonal, with the pivots, comes first
        visits[k] /= pivots[k]
        for a in range(k + 1, size):
            visits[a] += row[a] * visits[k]
    for k in range(size - 1, -1, -1):
        row = work[k]
        for a in range(k):
            visits[a] += row[a] * visits[k]


@compiled
def expected_worth(work: Vec, pivots: Vec, size: int, worth: Vec) -> None:
    """Solve worth = direct + rho worth in place, for the absent items: what a customer who is there will bring."""
    for a in range(size):
        row = work[a]
        for k in range(a):
            worth[a] += row[k] * worth[k]
    for a in range(size - 1, -1, -1):
        row = work[a]
        for b in range(a + 1, size):
            worth[a] += row[b] * worth[b]
        worth[a] /= pivots[a]


@compiled
def chain_ends(
    arrival: Vec, transitions: Vec, outside: Codes, size: int, work: Vec, pivots: Vec, visits: Vec, ends: Vec
) -> None:
    """Write how often the absent items are visited, and at every offered item the probability of ending there."""
    for a in range(size):
        visits[a] = arrival[outside[a]]
    expected_visits(work, pivots, size, visits)
    ends[:] = arrival
    for a in range(size):
        row = transitions[outside[a]]
        for item in range(arrival.size):
            # also at absent items, where nobody reads it: a plain loop is faster than a choice
            ends[item] += visits[a] * row[item]


@compiled
def chain_shares(indptr: Codes, members: Codes, arrival: Vec, transitions: Vec, out: Vec) -> None:
    """The choice probabilities of a Markov chain that starts as ``arrival`` says and ends at the first offered item."""
    n_items = arrival.size
    held, outside = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    work, pivots = np.empty((n_items, n_items)), np.empty(n_items)
    visits, ends = np.empty(n_items), np.empty(n_items)
    for offer in range(indptr.size - 1):
        size = absent(indptr, members, offer, held, outside)
        factorise(transitions, held, outside, size, work, pivots)
        chain_ends(arrival, transitions, outside, size, work, pivots, visits, ends)
        for place in range(indptr[offer], indptr[offer + 1]):
            out[place] = ends[members[place]]


@compiled
def chain_step(
    indptr: Codes, members: Codes, tallies: Vec, arrival: Vec, transitions: Vec, first: Vec, moves: Vec
) -> float:
    """The log-likelihood of a Markov chain; adds the expected first arrivals and moves of the customers counted.

    Of the customers who chose item i from an offer, the expected moves from an absent j to k are visits[j] *
    rho[j, k] * P(end in i from k) / P(i). Summed over i with the tallies, the last two factors are one vector, the
    worth of being at k, so that two pairs of triangular solves per offer are all it takes.
    """
    n_items = arrival.size
    held, outside = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    work, pivots = np.empty((n_items, n_items)), np.empty(n_items)
    visits, ends, inner, worth = np.empty(n_items), np.empty(n_items), np.empty(n_items), np.empty(n_items)
    value = 0.0
    for offer in range(indptr.size - 1):
        size = absent(indptr, members, offer, held, outside)
        factorise(transitions, held, outside, size, work, pivots)
        chain_ends(arrival, transitions, outside, size, work, pivots, visits, ends)
        # worth of offered items first, which need no solving; it is what the absent ones lead to
        worth[:] = 0.0
        for place in range(indptr[offer], indptr[offer + 1]):
            if tallies[place] > 0.0:
                worth[members[place]] = tallies[place] / ends[members[place]]
                value += tallies[place] * np.log(ends[members[place]])
        for a in range(size):
            row = transitions[outside[a]]
            inner[a] = 0.0
            for item in range(n_items):
                inner[a] += row[item] * worth[item]
        expected_worth(work, pivots, size, inner)
        for a in range(size):
            worth[outside[a]] = inner[a]
        for item in range(n_items):
            first[item] += arrival[item] * worth[item]
        for a in range(size):
            row, into = transitions[outside[a]], moves[outside[a]]
            for item in range(n_items):
                # rows of offered items are not touched: from there nobody moves on
                into[item] += visits[a] * row[item] * worth[item]
    return value


@compiled
def next_visit(transitions: Vec, last: int, left: Codes, out: Vec) -> None:
    """Where a chain that is at item ``last`` first meets one of those with 1 in ``left``; 0 at all others."""
    n_items = left.size
    outside, arrival = np.empty(n_items, dtype=np.int64), np.zeros(n_items)
    work, pivots, visits = np.empty((n_items, n_items)), np.empty(n_items), np.empty(n_items)
    size = 0
    for item in range(n_items):
        if left[item] == 0:
            outside[size] = item
            size += 1
    factorise(transitions, left, outside, size, work, pivots)
    arrival[last] = 1.0
    chain_ends(arrival, transitions, outside, size, work, pivots, visits, out)
    for a in range(size):
        out[outside[a]] = 0.0


@compiled
def visiting_order(arrival: Vec, transitions: Vec, draws: Vec, out: Codes) -> bool:
    """The order in which a chain first visits the items, from a number below 1 for each; False if it never ends."""
    n_items = arrival.size
    left, shares = np.ones(n_items, dtype=np.int64), arrival.copy()
    for place in range(n_items):
        total = shares.sum()
        # NaN where what is left cannot be reached
        if not total > 0.0:
            return False
        rest, item = draws[place] * total, -1
        for other in range(n_items):
            # rounding may leave a little at the end: the last that can come next takes it
            if shares[other] > 0.0 and rest >= 0.0:
                item = other
                rest -= shares[other]
        out[place] = item
        left[item] = 0
        if place + 1 < n_items:
            next_visit(transitions, item, left, shares)
    return True
