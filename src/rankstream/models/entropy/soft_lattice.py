"""Expectations over tilted rankings, exactly: the dynamic program of the maximum-entropy model."""

from copy import copy

import numpy as np

from rankstream._core.types import Vec
from rankstream.data.assortments import Assortments
from rankstream.models.entropy import soft_kernels as kernels
from rankstream.models.entropy.laws import Prior
from rankstream.oracles.lattice import TooManyUnionsError, unions

MOST_STATES = 2**16
MOST_BYTES = 2**31


class SoftLattice:
    """The unions of offers, and for a prior over rankings the law that tilts it by exp(-<duals, a(ranking)>).

    A ranking is drawn from the top. Once no offer with an item is undecided, the item no longer matters:
    Plackett-Luce models and orders of first visits are consistent under restriction, so the states of the oracle's
    dynamic program carry over, with sums for minima.
    """

    def __init__(self, assortments: Assortments, prior: Prior, most_states: int = MOST_STATES) -> None:
        if assortments.items != prior.items:
            raise ValueError("The prior is over other items than the assortments: name the same items in both.")
        n_items = assortments.n_items
        if n_items > 64:
            raise TooManyUnionsError(
                f"{n_items} items are too many for an exact program over unions of offers: use at most 64."
            )
        self.assortments, self.prior = assortments, prior
        sets = np.zeros(assortments.n_offers, dtype=np.uint64)
        np.bitwise_or.at(sets, assortments.owner, np.uint64(1) << assortments.members.astype(np.uint64))
        where = np.full((assortments.n_offers, n_items), -1, dtype=np.int64)
        where[assortments.owner, assortments.members] = np.arange(assortments.n_coordinates)
        self.states = unions(sets, most_states)
        self.first = np.zeros(self.states.size + 1, dtype=np.int64)
        none = np.zeros(0, dtype=np.int64)
        n_entries = kernels.write_transitions(
            self.states, sets, where, self.first, none, none, none, np.zeros(0, dtype=np.uint32)
        )
        n_moves, rows = int(self.first[-1]), len(prior.chain_weights) * (n_items + 1)
        needed = 4 * n_entries + 8 * n_moves * (6 + rows) + 24 * self.states.size * len(prior.class_weights)
        if needed > MOST_BYTES:
            raise TooManyUnionsError(
                f"The exact program needs {needed / 2**30:.1f} GB for its tables, more than 2 GB: use fewer offers."
            )
        self.items, self.following = np.zeros((2, n_moves), dtype=np.int64)
        self.first_entry = np.zeros(n_moves + 1, dtype=np.int64)
        self.entries = np.zeros(n_entries, dtype=np.uint32)
        kernels.write_transitions(
            self.states, sets, where, self.first, self.items, self.following, self.first_entry, self.entries
        )
        self._prepare()

    def with_prior(self, prior: Prior) -> "SoftLattice":
        """The same program for another prior over the same items; what does not depend on the prior is shared."""
        other = copy(self)
        other.prior = prior
        other._prepare()
        return other

    def _prepare(self) -> None:
        """What does not depend on the duals: attractions of states, hitting probabilities, space to work in."""
        prior, n_states, n_moves = self.prior, self.states.size, self.items.size
        n_classes, n_rows = len(prior.class_weights), self.assortments.n_items + 1
        attraction = np.maximum(prior.attraction, 1e-300)
        inside = (self.states[:, np.newaxis] >> np.arange(n_rows - 1, dtype=np.uint64) & np.uint64(1)).astype(
            np.float64
        )
        self.totals = inside @ attraction.T
        self.attraction = np.ascontiguousarray(attraction.T)
        self.costs, self.flow, self.class_tilts = np.zeros(n_moves), np.zeros(n_moves), np.zeros(n_moves)
        self.shifts = np.zeros(n_states)
        self.values, self.reach = np.zeros((n_states, n_classes)), np.zeros((n_states, n_classes))
        self.hits = [np.zeros(n_rows * n_moves) for _ in prior.chain_weights]
        for arrival, moves, hits in zip(prior.arrivals, prior.moves, self.hits, strict=True):
            kernels.hitting(self.states, arrival, moves, self.first, self.items, hits)
        self.chain_values = [np.zeros((n_states, n_rows)) for _ in self.hits]
        self.tilts = [np.zeros(n_moves) for _ in self.hits]
        self.sums = [np.zeros((n_states, n_rows)) for _ in self.hits]
        self.chain_reach = np.zeros((n_states, n_rows))

    def evaluate(self, duals: Vec) -> tuple[float, Vec]:
        """Log E exp(-<duals, a(ranking)>) under the prior, and the choice probabilities of the tilted law.

        The second is minus the gradient of the first.
        """
        steps = (self.first, self.items, self.following)
        kernels.transition_costs(duals, self.first_entry, self.entries, self.costs)
        kernels.tilts_of(self.costs, self.first, self.following, self.shifts, self.class_tilts)
        mixture = (self.class_tilts, self.attraction, self.totals, *steps, self.values)
        kernels.mixture_values(*mixture)
        with np.errstate(divide="ignore"):
            tops = (np.log(self.values[-1]) + self.shifts[-1]).tolist()
        for hits, values, tilts, sums in zip(self.hits, self.chain_values, self.tilts, self.sums, strict=True):
            kernels.chain_values(self.costs, hits, *steps, values, tilts, sums)
            tops.append(values[-1, -1])
        weights = np.concatenate([self.prior.class_weights, self.prior.chain_weights])
        with np.errstate(divide="ignore"):
            logs = np.log(weights) + np.array(tops)
        top = float(logs.max())
        posterior = np.exp(logs - top)
        value = top + float(np.log(posterior.sum()))
        posterior /= posterior.sum()
        self.posterior = posterior
        n_classes = len(self.prior.class_weights)
        self.flow[:] = 0.0
        kernels.mixture_flow(posterior[:n_classes], *mixture, self.reach, self.flow)
        for number, (hits, tilts, sums) in enumerate(zip(self.hits, self.tilts, self.sums, strict=True)):
            weight = float(posterior[n_classes + number])
            kernels.chain_flow(weight, hits, *steps, tilts, sums, self.chain_reach, self.flow)
        chosen = np.zeros(self.assortments.n_coordinates)
        kernels.collect(self.flow, self.first_entry, self.entries, chosen)
        return value, chosen

    def shares_at(self, state: int, kind: int) -> Vec:
        """How likely a class is to go on from a state by each of its transitions, under the duals evaluated last."""
        moves = slice(self.first[state], self.first[state + 1])
        after = self.values[self.following[moves], kind]
        weights: Vec = self.class_tilts[moves] * self.attraction[self.items[moves], kind] * after
        weights /= weights.sum()
        return weights
