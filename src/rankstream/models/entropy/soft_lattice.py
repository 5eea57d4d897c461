"""Exact expectations over tilted rankings: the dynamic program of the maximum-entropy model."""

from contextlib import AbstractContextManager
from contextvars import ContextVar
from copy import copy
from typing import Any

import numpy as np

from rankstream._core.threads import Crew, crew
from rankstream._core.types import Bits, Codes, Vec
from rankstream._core.watch import during
from rankstream.data.assortments import Assortments
from rankstream.models.entropy import soft_kernels as kernels
from rankstream.models.entropy.draw_kernels import draw_chains, draw_classes
from rankstream.models.entropy.ranking_laws import MAX_STATES, RankingLaw
from rankstream.models.lifts import chains_of, closed_offers, lift
from rankstream.oracles.tables.lattice import TooManyUnionsError, unions

MOST_BYTES = 2**31  # of the tables; not tuned
SHARED_FROM = 2**21  # sums of a sweep from which on threads pay off (benchmarks/threads.py times sweeps)
PARTS = 4  # of a layer for each thread, to balance the load
RANGES = 16  # into which threads split work that can be done in any order


class SoftLattice:
    """A prior over rankings, tilted by exp(-<duals, a(ranking)>), as a program over unions of offers.

    A ranking is drawn from the top. Once all offers with an item are decided, the item no longer matters:
    Plackett-Luce models and orders of first visits are consistent under restriction. So the states of the oracle's
    dynamic program carry over, with sums instead of minima. With an order, rankings are those before lifting, offers
    are closed (see ``lifts``), and choices are those of the lifted ranking.
    """

    def __init__(self, assortments: Assortments, prior: RankingLaw, most_states: int = MAX_STATES) -> None:
        if assortments.items != prior.items:
            raise ValueError("The prior and the assortments have different items: use the same items in both.")
        if chains_of(assortments) != prior.order:
            raise ValueError("The prior and the assortments have different orders: give both the same order.")
        n_items = assortments.n_items
        if n_items > 64:
            raise TooManyUnionsError(
                f"{n_items} items are too many for an exact program over unions of offers: use at most 64."
            )
        self.assortments, self.prior = assortments, prior
        closed = closed_offers(assortments.indptr, assortments.members, prior.order)
        sets = np.zeros(assortments.n_offers, dtype=np.uint64)
        np.bitwise_or.at(sets, closed.owner, np.uint64(1) << closed.members.astype(np.uint64))
        where = np.full((assortments.n_offers, n_items), -1, dtype=np.int64)
        where[closed.owner, closed.members] = closed.of
        self.states = unions(sets, most_states)
        self.first = np.zeros(self.states.size + 1, dtype=np.int64)
        none = np.zeros(0, dtype=np.int64)
        n_entries = kernels.write_transitions(
            self.states, sets, where, self.first, none, none, none, np.zeros(0, dtype=np.uint32)
        )
        n_moves, rows = int(self.first[-1]), len(prior.chain_weights) * (n_items + 1)
        needed = 4 * n_entries + 8 * n_moves * (8 + rows) + 24 * self.states.size * len(prior.class_weights)
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
        self.first_into = np.zeros(self.states.size + 1, dtype=np.int64)
        self.into, self.origin = np.zeros((2, n_moves), dtype=np.uint32)
        kernels.turn_round(self.first, self.following, self.first_into, self.into, self.origin)
        self._parts: dict[int, list[list[Codes]]] = {}
        self._prepare()

    def with_prior(self, prior: RankingLaw) -> "SoftLattice":
        """Return the same program for another prior over the same items, sharing what does not depend on it."""
        twin = copy(self)
        twin.prior = prior
        twin._prepare()
        return twin

    def _prepare(self) -> None:
        """Compute what does not depend on the duals: attractions of states, hitting probabilities, work space."""
        prior, n_states, n_moves = self.prior, self.states.size, self.items.size
        n_classes, n_rows = len(prior.class_weights), self.assortments.n_items + 1
        attraction = np.maximum(prior.attraction, 1e-300)
        inside = self.states[:, np.newaxis] >> np.arange(n_rows - 1, dtype=np.uint64) & np.uint64(1)
        self.totals = inside.astype(np.float64) @ attraction.T
        self.attraction = np.ascontiguousarray(attraction.T)
        self.costs, self.flow, self.class_tilts = np.zeros(n_moves), np.zeros(n_moves), np.zeros(n_moves)
        self.shifts = np.zeros(n_states)
        self.values, self.reach = np.zeros((n_states, n_classes)), np.zeros((n_states, n_classes))
        self.hits = [np.zeros(n_rows * n_moves) for _ in prior.chain_weights]
        self.chain_values = [np.zeros((n_states, n_rows)) for _ in self.hits]
        self.tilts = [np.zeros(n_moves) for _ in self.hits]
        self.sums = [np.zeros((n_states, n_rows)) for _ in self.hits]
        self.chain_flow = [np.zeros(n_moves) for _ in self.hits]
        self.chain_reach = np.zeros((n_states, n_rows))
        self._terms = n_moves * (n_classes + n_rows * len(self.hits))
        with self._crew() as threads:

            def hit(task: int) -> None:
                states = self._range(task, n_states)
                shape = self.first[states.start : states.stop + 1], self.items
                for arrival, moves, hits in zip(prior.arrivals, prior.moves, self.hits, strict=True):
                    kernels.hitting(self.states[states], arrival, moves, *shape, hits)

            threads.run(hit, self._n_ranges if self.hits else 0)

    def _crew(self) -> AbstractContextManager[Crew]:
        """Return the threads to use: all of them if they pay off."""
        return crew(self._terms >= SHARED_FROM)

    @property
    def _n_ranges(self) -> int:
        """Number of ranges to sum by; it does not depend on the number of threads, so that sums do not either."""
        return RANGES if self._terms >= SHARED_FROM else 1

    def _range(self, task: int, size: int) -> slice:
        return slice(task * size // self._n_ranges, (task + 1) * size // self._n_ranges)

    def _layers(self, n_threads: int) -> list[list[Codes]]:
        """Return the states in an order in which they can be computed: layer by layer, in parts for threads.

        The next states of a state are subsets of it. So states with the same upper half of their bits form a block
        that depends only on itself and on blocks with fewer of these bits. Blocks are contiguous and never cut.
        """
        if n_threads not in self._parts:
            numbers = np.arange(self.states.size)
            blocks = self.states >> np.uint64(self.assortments.n_items // 2)
            sizes = np.bitwise_count(blocks)
            layers = [numbers[sizes == size] for size in np.unique(sizes)]
            shared = [_cut(layer, blocks[layer], PARTS * n_threads) for layer in layers]
            self._parts[n_threads] = shared if n_threads > 1 else [[numbers]]
        return self._parts[n_threads]

    def evaluate(self, duals: Vec) -> tuple[float, Vec]:
        """Return log E exp(-<duals, a(ranking)>) under the prior, and the choice probabilities of the tilted law.

        The second is minus the gradient of the first.
        """
        with self._crew() as threads:
            self._sweep_up(threads, duals)
            with np.errstate(divide="ignore"):
                tops = (np.log(self.values[-1]) + self.shifts[-1]).tolist()
                tops += [values[-1, -1] for values in self.chain_values]
                logs = np.log(np.concatenate([self.prior.class_weights, self.prior.chain_weights])) + np.array(tops)
            top = float(logs.max())
            posterior = np.exp(logs - top)
            value = top + float(np.log(posterior.sum()))
            posterior /= posterior.sum()
            self.posterior = posterior
            return value, self._sweep_down(threads)

    def _sweep_up(self, threads: Crew, duals: Vec) -> None:
        steps = (self.first, self.items, self.following)

        def cost(task: int) -> None:
            moves = self._range(task, self.costs.size)
            entries = self.first_entry[moves.start : moves.stop + 1], self.entries
            kernels.transition_costs(duals, *entries, self.costs[moves])

        threads.run(cost, self._n_ranges)
        mixture = (self.class_tilts, self.attraction, self.totals, *steps, self.values)
        for layer in self._layers(threads.size):

            def expect(task: int, layer: list[Codes] = layer) -> None:
                part = layer[task]
                kernels.tilts_of(part, self.costs, self.first, self.following, self.shifts, self.class_tilts)
                kernels.mixture_values(part, *mixture)
                for hits, values, tilts, sums in zip(self.hits, self.chain_values, self.tilts, self.sums, strict=True):
                    kernels.chain_values(part, self.costs, hits, *steps, values, tilts, sums)

            threads.run(expect, len(layer))

    def _sweep_down(self, threads: Crew) -> Vec:
        """Compute the posterior probability of every transition, from the whole state down; return the choices."""
        n_classes = len(self.prior.class_weights)
        classes, chains = self.posterior[:n_classes], self.posterior[n_classes:]
        into = self.first_into, self.into
        mixture = (classes, self.class_tilts, self.attraction, self.totals, *into, self.origin, self.items, self.values)
        parts = list(zip(chains.tolist(), self.hits, self.tilts, self.sums, self.chain_flow, strict=True))
        for layer in reversed(self._layers(threads.size)):

            def follow(task: int, layer: list[Codes] = layer) -> None:
                part = layer[task][::-1]
                kernels.mixture_flow(part, *mixture, self.reach, self.flow)
                for weight, hits, tilts, sums, flow in parts:
                    shape = self.first, self.items, *into
                    kernels.chain_flow(part, weight, hits, *shape, tilts, sums, self.chain_reach, flow)

            threads.run(follow, len(layer))
        chosen = np.zeros((self._n_ranges, self.assortments.n_coordinates))

        def choose(task: int) -> None:
            moves = self._range(task, self.flow.size)
            for flow in self.chain_flow:
                self.flow[moves] += flow[moves]
            entries = self.first_entry[moves.start : moves.stop + 1], self.entries
            kernels.collect(self.flow[moves], *entries, chosen[task])

        threads.run(choose, self._n_ranges)
        total: Vec = chosen.sum(axis=0) if len(chosen) > 1 else chosen[0]
        return total


MAX_SHARED_PROGRAMS = 2
"""Programs that ``shared_programs`` keeps: one for the data, one for the predictions of every refit."""
_SHARED: "ContextVar[dict[Any, SoftLattice] | None]" = ContextVar("_SHARED", default=None)


def shared_programs() -> AbstractContextManager[Any]:
    """Build the program of the same offers once for all priors in this block: building takes longer than running."""
    return during(_SHARED, {} if _SHARED.get() is None else _SHARED.get())


def program_of(assortments: Assortments, prior: RankingLaw, most_states: int = MAX_STATES) -> SoftLattice:
    """Return the program of offers for a prior; within ``shared_programs``, it is built once for the same offers."""
    known = _SHARED.get()
    if known is None:
        return SoftLattice(assortments, prior, most_states)
    key = assortments.offers, assortments.items, assortments.order, prior.order, most_states
    if key in known:
        known[key] = known.pop(key)  # move to the end: the first one is dropped next
        return known[key].with_prior(prior)
    program = known[key] = SoftLattice(assortments, prior, most_states)
    if len(known) > MAX_SHARED_PROGRAMS:
        del known[next(iter(known))]
    return program


def _cut(states: Codes, blocks: Bits, most: int) -> list[Codes]:
    """Split states into at most ``most`` parts of about the same size, without cutting blocks."""
    ends = np.append(np.flatnonzero(blocks[1:] != blocks[:-1]) + 1, states.size)
    wanted = np.arange(1, most) * states.size / most
    cuts = np.unique(ends[np.searchsorted(ends, wanted)])
    return [part for part in np.split(states, cuts.tolist()) if part.size]


class TiltedRankings:
    """Draws whole rankings from a prior tilted by exp(-<duals, a(ranking)>), exactly and from the top.

    Items without an undecided offer are in no state of the program; the prior alone places them. Rankings respect the
    prior's order, if it has one.
    """

    def __init__(self, lattice: SoftLattice, duals: Vec) -> None:
        self.lattice = lattice
        lattice.evaluate(duals)

    def draw(self, size: int, generator: np.random.Generator) -> Codes:
        """Draw ``size`` rankings, best first, one per row."""
        lattice, prior = self.lattice, self.lattice.prior
        kinds = generator.choice(len(lattice.posterior), size=size, p=lattice.posterior)
        draws = generator.random((size, len(prior.items)))
        orders, steps = np.empty(draws.shape, dtype=np.int64), (lattice.first, lattice.items, lattice.following)
        n_classes = len(prior.class_weights)
        for kind in np.unique(kinds).tolist():
            rows = kinds == kind
            drawn = np.empty((int(rows.sum()), len(prior.items)), dtype=np.int64)
            if kind < n_classes:
                attraction, values = np.maximum(prior.attraction[kind], 1e-300), lattice.values[:, kind].copy()
                draw_classes(draws[rows], attraction, steps, lattice.class_tilts, values, drawn)
            else:
                chain = kind - n_classes
                law = prior.arrivals[chain], prior.moves[chain]
                draw_chains(draws[rows], *law, steps, lattice.costs, lattice.chain_values[chain], drawn)
            orders[rows] = drawn
        return lift(orders, prior.order)
