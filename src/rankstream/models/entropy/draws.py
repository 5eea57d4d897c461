"""Whole rankings drawn from a tilted prior."""

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream.models.entropy.draw_kernels import draw_chains, draw_classes
from rankstream.models.entropy.soft_lattice import SoftLattice
from rankstream.models.lifts import lift


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
