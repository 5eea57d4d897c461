"""Whole rankings where the data leave them open: drawn from a tilted prior, or given their choices."""

import numpy as np

from rankstream._core.arguments import whole_number
from rankstream._core.types import Codes, Vec
from rankstream.data.assortments import Assortments
from rankstream.models.entropy.draw_kernels import draw_chains, draw_classes
from rankstream.models.entropy.ranking_laws import RankingLaw
from rankstream.models.entropy.soft_lattice import SoftLattice
from rankstream.models.lifts import lift
from rankstream.models.rankings import RankingModel

FORBIDDING_DUAL = 1e6  # exp(-dual) is 0: rankings with other choices are never drawn


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


def redraw(
    model: RankingModel, assortments: Assortments, guide: RankingLaw, draws: int = 3, seed: int = 0
) -> RankingModel:
    """Keep a model's probabilities on these offers, and follow a guide on all others.

    Every ranking is drawn again from the guide, given its choices from the offers. So the fit and its certificate stay
    as they are.

    Parameters
    ----------
    model : RankingModel
        The model to redraw.
    assortments : Assortments
        The offers whose probabilities stay.
    guide : RankingLaw
        The law for everything else. All three must have the same items in the same order.
    draws : int
        Draws per ranking: the model grows at most by this factor.
    seed : int
        Seed of the draws.

    Examples
    --------
    >>> from rankstream.models.entropy.ranking_laws import plackett_luce
    >>> offers = Assortments([("tea", "no"), ("pie", "no")])
    >>> model = RankingModel(offers.items, [("tea", "pie", "no")], [1.0])
    >>> guided = redraw(model, offers, plackett_luce(offers.items, [1.0, 1.0, 9.0]), draws=200)
    >>> guided.probabilities(offers).tolist()
    [1.0, 0.0, 1.0, 0.0]
    >>> round(guided.predict(("tea", "pie"))["pie"], 1)
    0.8
    """
    whole_number("draws", draws, least=1)
    if model.items != assortments.items or model.items != guide.items:
        raise ValueError("Items of model, assortments and base model differ: give the same items in the same order.")
    generator = np.random.default_rng(seed)
    lattice = SoftLattice(assortments, guide)
    weights: dict[bytes, float] = {}
    classes: dict[bytes, float] = {}
    for order, weight in zip(model.orders, model.weights.tolist(), strict=True):
        vertex = assortments.vertex(order).tobytes()
        classes[vertex] = classes.get(vertex, 0.0) + weight
    repeats = max(1, round(draws * len(model.weights) / len(classes)))
    for vertex, weight in classes.items():
        law = TiltedRankings(lattice, FORBIDDING_DUAL * (1.0 - np.frombuffer(vertex)))
        for row in law.draw(repeats, generator):
            weights[row.tobytes()] = weights.get(row.tobytes(), 0.0) + weight / repeats
    orders = np.frombuffer(b"".join(weights), dtype=np.int64).reshape(-1, len(model.items))
    total = np.array(list(weights.values()))
    return RankingModel.from_codes(model.items, orders, total / total.sum(), model.no_choice_code)
