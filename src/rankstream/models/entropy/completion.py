"""What the data leave open of a ranking: whole rankings from a tilted prior, or within a class of equal vertices."""

import numpy as np

from rankstream._core.arguments import whole_number
from rankstream._core.types import Codes, Vec
from rankstream.data.assortments import Assortments
from rankstream.models.entropy.laws import Prior
from rankstream.models.entropy.soft_lattice import SoftLattice
from rankstream.models.lifting import lift
from rankstream.models.parametric.em_kernels import next_visit
from rankstream.models.rankings import RankingModel

NEVER = 1e6


class TiltedRankings:
    """Independent whole rankings from a prior tilted by exp(-<duals, a(ranking)>), drawn exactly from the top.

    Items that are in no undecided offer are in no state of the program; they come in by the prior's own law. Where the
    prior respects an order, so do they.
    """

    def __init__(self, lattice: SoftLattice, duals: Vec) -> None:
        self.lattice = lattice
        lattice.evaluate(duals)
        self.place = {int(state): number for number, state in enumerate(lattice.states.tolist())}

    def draw(self, size: int, generator: np.random.Generator) -> Codes:
        """``size`` rankings, best first, one per row."""
        kinds = generator.choice(len(self.lattice.posterior), size=size, p=self.lattice.posterior)
        n_classes = len(self.lattice.prior.class_weights)
        rows = [
            self._by_class(kind, generator) if kind < n_classes else self._by_chain(kind - n_classes, generator)
            for kind in kinds.tolist()
        ]
        orders = np.array(rows, dtype=np.int64).reshape(size, self.lattice.assortments.n_items)
        return lift(orders, self.lattice.prior.order)

    def _by_class(self, kind: int, generator: np.random.Generator) -> list[int]:
        lattice = self.lattice
        attraction = np.maximum(lattice.prior.attraction[kind], 1e-300)
        left, state = list(range(attraction.size)), lattice.states.size - 1
        order: list[int] = []
        while left:
            moves = slice(lattice.first[state], lattice.first[state + 1])
            inside = lattice.items[moves]
            weights = attraction.copy()
            weights[inside] = lattice.shares_at(state, kind) * attraction[inside].sum()
            item = self._pick(left, weights, generator)
            left.remove(item)
            order.append(item)
            state = self._next(state, item)
        return order

    def _by_chain(self, number: int, generator: np.random.Generator) -> list[int]:
        lattice = self.lattice
        values, n_items = lattice.chain_values[number], lattice.assortments.n_items
        left, state = list(range(n_items)), lattice.states.size - 1
        order: list[int] = []
        while left:
            weights = self._next_visit(number, order)
            gains = values[state, :n_items].copy()
            moves = slice(lattice.first[state], lattice.first[state + 1])
            inside, following = lattice.items[moves], lattice.following[moves]
            gains[inside] = values[following, inside] - lattice.costs[moves]
            weights *= np.exp(gains - gains[left].max())
            item = self._pick(left, weights, generator)
            left.remove(item)
            order.append(item)
            state = self._next(state, item)
        return order

    def _next_visit(self, number: int, order: list[int]) -> Vec:
        """Where the chain, now at the last item of the order, first meets one that is left."""
        prior = self.lattice.prior
        weights = np.array(prior.arrivals[number])
        if order:
            left = np.ones(weights.size, dtype=np.int64)
            left[order] = 0
            next_visit(prior.moves[number], order[-1], left, weights)
        return weights

    def _next(self, state: int, item: int) -> int:
        lattice = self.lattice
        first, last = lattice.first[state], lattice.first[state + 1]
        found = np.searchsorted(lattice.items[first:last], item)
        if found < last - first and lattice.items[first + found] == item:
            return int(lattice.following[first + found])
        return state

    @staticmethod
    def _pick(left: list[int], weights: Vec, generator: np.random.Generator) -> int:
        chances = np.maximum(weights[left], 0.0)
        return left[int(generator.choice(len(left), p=chances / chances.sum()))]


def redraw(model: RankingModel, assortments: Assortments, guide: Prior, draws: int = 3, seed: int = 0) -> RankingModel:
    """The same probabilities on these offers, and a guide's opinion on all others.

    Every ranking is drawn again from the guide given its choices from the offers: a(ranking) and with it the fit and
    its certificate stay as they are.

    Parameters
    ----------
    model : RankingModel
        The model to redraw.
    assortments : Assortments
        The offers whose probabilities stay.
    guide : Prior
        Who decides the rest. All three must have the same items in the same order.
    draws : int
        How often each ranking is drawn again: the model grows at most by this factor.
    seed : int
        Seed of the draws.

    >>> from rankstream.models.entropy.laws import plackett_luce
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
        raise ValueError("Model, assortments and guide have different items: name the same items in the same order.")
    generator = np.random.default_rng(seed)
    lattice = SoftLattice(assortments, guide)
    weights: dict[bytes, float] = {}
    classes: dict[bytes, float] = {}
    for order, weight in zip(model.orders, model.weights.tolist(), strict=True):
        vertex = assortments.vertex(order).tobytes()
        classes[vertex] = classes.get(vertex, 0.0) + weight
    repeats = max(1, round(draws * len(model.weights) / len(classes)))
    for vertex, weight in classes.items():
        law = TiltedRankings(lattice, NEVER * (1.0 - np.frombuffer(vertex)))
        for row in law.draw(repeats, generator):
            weights[row.tobytes()] = weights.get(row.tobytes(), 0.0) + weight / repeats
    orders = np.frombuffer(b"".join(weights), dtype=np.int64).reshape(-1, len(model.items))
    total = np.array(list(weights.values()))
    return RankingModel.from_codes(model.items, orders, total / total.sum(), model.no_choice_code)
