"""What the data leave open of a ranking: whole rankings from a tilted prior, or within a class of equal vertices."""

from collections.abc import Callable
from functools import partial

import numpy as np

from rankstream._core.arguments import whole_number
from rankstream._core.types import Codes, Vec
from rankstream.data.assortments import Assortments
from rankstream.models.entropy.ranking_laws import RankingLaw
from rankstream.models.entropy.soft_lattice import SoftLattice
from rankstream.models.lifts import lift
from rankstream.models.parametric.em_kernels import next_visit
from rankstream.models.rankings import RankingModel

FORBIDDING_DUAL = 1e6  # exp(-dual) is 0: rankings that choose otherwise are never drawn


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
        classes = [partial(self._class_weights, kind) for kind in range(n_classes)]
        chains = [partial(self._chain_weights, number) for number in range(len(self.lattice.chain_values))]
        rows = [self._ranking([*classes, *chains][kind], generator) for kind in kinds.tolist()]
        orders = np.array(rows, dtype=np.int64).reshape(size, self.lattice.assortments.n_items)
        return lift(orders, self.lattice.prior.order)

    def _ranking(self, weigh: Callable[[int, list[int], list[int]], Vec], generator: np.random.Generator) -> list[int]:
        """One ranking from the top; ``weigh`` gives what each item weighs after those before it, in a state."""
        lattice = self.lattice
        order: list[int] = []
        left, state = list(range(lattice.assortments.n_items)), lattice.states.size - 1
        while left:
            chances = np.maximum(weigh(state, order, left)[left], 0.0)
            item = left[int(generator.choice(len(left), p=chances / chances.sum()))]
            left.remove(item)
            order.append(item)
            state = self._next(state, item)
        return order

    def _class_weights(self, kind: int, state: int, *_: list[int]) -> Vec:
        """Of a Plackett-Luce class: attractions, tilted for the items that the state decides about."""
        lattice = self.lattice
        weights: Vec = np.maximum(lattice.prior.attraction[kind], 1e-300)
        inside = lattice.items[lattice.first[state] : lattice.first[state + 1]]
        weights[inside] = lattice.shares_at(state, kind) * weights[inside].sum()
        return weights

    def _chain_weights(self, number: int, state: int, order: list[int], left: list[int]) -> Vec:
        """Of a Markov chain: where it goes next, tilted by what it expects from there."""
        lattice, values = self.lattice, self.lattice.chain_values[number]
        gains = values[state, : lattice.assortments.n_items].copy()
        moves = slice(lattice.first[state], lattice.first[state + 1])
        inside, following = lattice.items[moves], lattice.following[moves]
        gains[inside] = values[following, inside] - lattice.costs[moves]
        weights: Vec = self._next_visit(number, order) * np.exp(gains - gains[left].max())
        return weights

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


def redraw(
    model: RankingModel, assortments: Assortments, guide: RankingLaw, draws: int = 3, seed: int = 0
) -> RankingModel:
    """The same probabilities on these offers, and a guide's opinion on all others.

    Every ranking is drawn again from the guide given its choices from the offers: a(ranking) and with it the fit and
    its certificate stay as they are.

    Parameters
    ----------
    model : RankingModel
        The model to redraw.
    assortments : Assortments
        The offers whose probabilities stay.
    guide : RankingLaw
        Who decides the rest. All three must have the same items in the same order.
    draws : int
        How often each ranking is drawn again: the model grows at most by this factor.
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
