"""The compiled loops of the EM algorithms, each with a slow twin in ``tests/naive.py``."""

import numpy as np

from rankstream._types import Codes, Vec
from rankstream.kernels import compiled


@compiled
def mixture_step(
    indptr: Codes, members: Codes, tallies: Vec, mixture: Vec, attraction: Vec, top: Vec, bottom: Vec
) -> float:
    """The log-likelihood of a mixture of logits, and the two sides of its next attractions, both items by classes.

    Adds to ``top`` how many choices of an item are expected to be of a class, and to ``bottom`` what the item's
    attraction must be worth: the sum over the offers that hold it of the class's customers per attraction offered.
    """
    classes = mixture.size
    sums, customers, share = np.empty(classes), np.empty(classes), np.empty(classes)
    value = 0.0
    for offer in range(indptr.size - 1):
        sums[:] = 0.0
        customers[:] = 0.0
        for place in range(indptr[offer], indptr[offer + 1]):
            item = members[place]
            for k in range(classes):
                sums[k] += attraction[item, k]
        for place in range(indptr[offer], indptr[offer + 1]):
            if tallies[place] > 0.0:
                item = members[place]
                total = 0.0
                for k in range(classes):
                    share[k] = mixture[k] * attraction[item, k] / sums[k]
                    total += share[k]
                value += tallies[place] * np.log(total)
                for k in range(classes):
                    part = share[k] * (tallies[place] / total)
                    top[item, k] += part
                    customers[k] += part
        for k in range(classes):
            customers[k] /= sums[k]
        for place in range(indptr[offer], indptr[offer + 1]):
            item = members[place]
            for k in range(classes):
                bottom[item, k] += customers[k]
    return value


@compiled
def absent(indptr: Codes, members: Codes, offer: int, held: Codes, out: Codes) -> int:
    """Write the items that an offer does not hold, and mark in ``held`` those that it does; how many are absent."""
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
        leaving = 0.0
        for item in range(held.size):
            if held[item] == 1:
                leaving += transitions[outside[a], item]
        pivots[a] = leaving
        for b in range(size):
            work[a, b] = transitions[outside[a], outside[b]]
    for k in range(size):
        direct = pivots[k]
        for b in range(k + 1, size):
            pivots[k] += work[k, b]
        for a in range(k + 1, size):
            factor = work[a, k] / pivots[k]
            work[a, k] = factor
            for b in range(k + 1, size):
                if b != a:
                    work[a, b] += factor * work[k, b]
            pivots[a] += factor * direct


@compiled
def expected_visits(work: Vec, pivots: Vec, size: int, visits: Vec) -> None:
    """Solve visits = arrivals + visits rho in place, for the absent items: how often each is passed."""
    for a in range(size):
        for k in range(a):
            visits[a] += work[k, a] * visits[k]
        visits[a] /= pivots[a]
    for a in range(size - 1, -1, -1):
        for k in range(a + 1, size):
            visits[a] += work[k, a] * visits[k]


@compiled
def expected_worth(work: Vec, pivots: Vec, size: int, worth: Vec) -> None:
    """Solve worth = direct + rho worth in place, for the absent items: what a customer who is there will bring."""
    for a in range(size):
        for k in range(a):
            worth[a] += work[a, k] * worth[k]
    for a in range(size - 1, -1, -1):
        for b in range(a + 1, size):
            worth[a] += work[a, b] * worth[b]
        worth[a] /= pivots[a]


@compiled
def chain_shares(indptr: Codes, members: Codes, arrival: Vec, transitions: Vec, out: Vec) -> None:
    """The choice probabilities of a Markov chain that starts as ``arrival`` says and ends at the first offered item."""
    n_items = arrival.size
    held, outside = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    work, pivots, visits = np.empty((n_items, n_items)), np.empty(n_items), np.empty(n_items)
    for offer in range(indptr.size - 1):
        size = absent(indptr, members, offer, held, outside)
        factorise(transitions, held, outside, size, work, pivots)
        for a in range(size):
            visits[a] = arrival[outside[a]]
        expected_visits(work, pivots, size, visits)
        for place in range(indptr[offer], indptr[offer + 1]):
            item = members[place]
            out[place] = arrival[item]
            for a in range(size):
                out[place] += visits[a] * transitions[outside[a], item]


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
    visits, inner, worth = np.empty(n_items), np.empty(n_items), np.empty(n_items)
    value = 0.0
    for offer in range(indptr.size - 1):
        size = absent(indptr, members, offer, held, outside)
        factorise(transitions, held, outside, size, work, pivots)
        for a in range(size):
            visits[a] = arrival[outside[a]]
            inner[a] = 0.0
        expected_visits(work, pivots, size, visits)
        for place in range(indptr[offer], indptr[offer + 1]):
            item = members[place]
            share = arrival[item]
            for a in range(size):
                share += visits[a] * transitions[outside[a], item]
            worth[item] = 0.0
            if tallies[place] > 0.0:
                worth[item] = tallies[place] / share
                value += tallies[place] * np.log(share)
                for a in range(size):
                    inner[a] += transitions[outside[a], item] * worth[item]
        expected_worth(work, pivots, size, inner)
        for a in range(size):
            worth[outside[a]] = inner[a]
        for item in range(n_items):
            first[item] += arrival[item] * worth[item]
        for a in range(size):
            for item in range(n_items):
                moves[outside[a], item] += visits[a] * transitions[outside[a], item] * worth[item]
    return value
