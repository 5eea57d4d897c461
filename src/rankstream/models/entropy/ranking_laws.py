"""Laws over rankings with known probabilities: mixtures of Plackett-Luce models and Markov chains."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankstream._core.types import Codes, Label, Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.data.assortments import Assortments
from rankstream.models.base import finite_array
from rankstream.models.lifts import Chains, closed_offers, frozen, lift
from rankstream.models.rankings import RankingModel

MAX_STATES = 2**16  # of an exact program over unions of offers, whose tables have some hundred megabytes
ARRAYS = ("class_weights", "attraction", "chain_weights", "arrivals", "moves")


@dataclass(frozen=True, eq=False)
class RankingLaw:
    """A distribution over rankings of ``items``: Plackett-Luce classes and, with the rest of the weight, Markov chains.

    A class ranks from the top, in proportion to attraction; a chain ranks by first visits.

    Parameters
    ----------
    items : tuple of items
        The items to rank.
    class_weights, chain_weights : array
        The probability of each class and of each chain, which sum to 1 together.
    attraction : array
        ``attraction[k, i]`` is that of item i in class k; rows sum to 1.
    arrivals : array
        ``arrivals[c, i]`` is the probability that chain c begins at item i.
    moves : array
        ``moves[c, i, k]`` is the probability that chain c moves from item i to item k.
    order : tuple of tuples of item codes
        Chains of items, best first, that all rankings respect: rankings are lifted to do so (see ``lifts``).
    """

    items: tuple[Label, ...]
    class_weights: Vec
    attraction: Vec
    chain_weights: Vec
    arrivals: Vec
    moves: Vec
    order: Chains = ()

    def __post_init__(self) -> None:
        size, classes, chains = len(self.items), len(self.class_weights), len(self.chain_weights)
        shapes = (self.attraction.shape, self.arrivals.shape, self.moves.shape)
        if shapes != ((classes, size), (chains, size), (chains, size, size)):
            raise ValueError(
                f"A prior of {size} items, {classes} classes and {chains} chains has attractions, arrivals and moves "
                f"of the shapes {shapes}: give one row per class or chain, and one column per item."
            )
        parts = (self.class_weights, self.attraction, self.chain_weights, self.arrivals, self.moves)
        if not all(np.isfinite(part).all() and (part >= 0.0).all() for part in parts):
            raise ValueError("A prior contains a number that is negative, infinite or NaN: all must be at least 0.")
        sums = (self.attraction.sum(axis=1), self.arrivals.sum(axis=1), self.moves.sum(axis=2).ravel())
        if not all(np.allclose(part, 1.0, atol=1e-6) for part in sums):
            raise ValueError(
                "A row of attractions, arrivals or moves of a prior does not sum to 1: divide it by its sum."
            )
        if (np.diagonal(self.moves, axis1=1, axis2=2) > 1.0 - 1e-9).any():
            raise ValueError("A chain of a prior never leaves an item: let it move on from every item.")
        total = float(self.class_weights.sum() + self.chain_weights.sum())
        if not (abs(total - 1.0) <= 1e-9 and (self.class_weights >= 0).all() and (self.chain_weights >= 0).all()):
            raise ValueError(f"The weights of a prior sum to {total}: they must be at least 0 and sum to 1.")
        ordered = [item for chain in self.order for item in chain]
        if len(set(ordered)) < len(ordered) or not set(ordered) <= set(range(size)):
            raise ValueError(
                "The chains of a prior's order name an item twice, or one that does not exist: correct them."
            )

    def to_content(self) -> dict[str, Any]:
        """Return its arrays as lists, for a file."""
        return {name: getattr(self, name).tolist() for name in ARRAYS}

    @classmethod
    def from_content(cls, items: Sequence[Label], content: Mapping[str, Any], order: Chains) -> "RankingLaw":
        """Return the law over these items whose arrays ``to_content`` wrote."""
        size = len(items)
        shapes = {"attraction": (-1, size), "arrivals": (-1, size), "moves": (-1, size, size)}
        arrays = {name: finite_array(name, content[name], shapes.get(name, (-1,))) for name in ARRAYS}
        return cls(tuple(items), **arrays, order=order)

    def probabilities(self, assortments: Assortments) -> Vec:
        """Return the choice probability of every coordinate, for any offers of the items."""
        from rankstream.models.parametric.em_kernels import chain_shares  # compiled, and not needed to ask a model
        from rankstream.models.parametric.latent_class import mixed_shares

        code = {item: number for number, item in enumerate(self.items)}
        members = frozen([code[assortments.items[item]] for item in assortments.members.tolist()])
        closed = closed_offers(assortments.indptr, members, self.order) if self.order else None
        indptr, members = (assortments.indptr, members) if closed is None else (closed.indptr, closed.members)
        out = mixed_shares(self.class_weights, np.maximum(self.attraction, 1e-300), indptr, members)
        shares = np.empty(len(members))
        for weight, arrival, moves in zip(self.chain_weights.tolist(), self.arrivals, self.moves, strict=True):
            chain_shares(indptr, members, arrival, moves, shares)
            out += weight * shares
        return out if closed is None else closed.gather(out, assortments.n_coordinates)

    def sample(self, size: int, seed: int | np.random.Generator = 0, watch: Watch = unwatched) -> Codes:
        """Draw independent rankings, best first, one per row; fewer, in hundreds, if ``watch`` returns True."""
        from rankstream.models.parametric.markov_chain import first_visits  # compiled, as above

        generator = np.random.default_rng(seed)
        weights = np.concatenate([self.class_weights, self.chain_weights])
        kinds = generator.choice(len(weights), size=size, p=weights / weights.sum())
        n_items, n_classes = len(self.items), len(self.class_weights)
        out = np.empty((size, n_items), dtype=np.int64)
        for row, kind in enumerate(kinds.tolist()):
            if kind < n_classes:
                clocks = generator.exponential(size=n_items) / np.maximum(self.attraction[kind], 1e-300)
                out[row] = np.argsort(clocks)
            else:
                out[row] = first_visits(self.arrivals[kind - n_classes], self.moves[kind - n_classes], generator)
            if row % 100 == 99 and watch(f"{row + 1:,} rankings drawn"):
                return lift(out[: row + 1], self.order)
        return lift(out, self.order)


def plackett_luce(items: Sequence[Label], attraction: Any, weights: Any = (1.0,), order: Chains = ()) -> RankingLaw:
    """Return a mixture of Plackett-Luce models; one row of attractions per class.

    With an ``order``, an item counts with the attraction of itself and those after it in its chain.

    Examples
    --------
    >>> first = plackett_luce(["tea", "pie"], [[1.0, 3.0]]).sample(4000)[:, 0]
    >>> 0.72 < (first == 1).mean() < 0.78
    np.True_
    """
    n_items = len(items)
    table = np.atleast_2d(np.array(attraction, dtype=np.float64))
    return RankingLaw(
        tuple(items), np.array(weights, dtype=np.float64), table / table.sum(axis=1, keepdims=True),
        np.zeros(0), np.zeros((0, n_items)), np.zeros((0, n_items, n_items)), order,
    )  # fmt: skip


def markov_chain(items: Sequence[Label], arrival: Any, moves: Any) -> RankingLaw:
    """Return the law of first-visit orders of one Markov chain."""
    n_items = len(items)
    return RankingLaw(
        tuple(items), np.zeros(0), np.zeros((0, n_items)), np.ones(1),
        np.array(arrival, dtype=np.float64)[np.newaxis], np.array(moves, dtype=np.float64)[np.newaxis],
    )  # fmt: skip


def mix(parts: Sequence[RankingLaw], weights: Sequence[float]) -> RankingLaw:
    """Mix several priors over the same items."""
    if any(part.items != parts[0].items for part in parts):
        raise ValueError("Priors over different items cannot be mixed: give the same items in the same order.")
    if any(part.order != parts[0].order for part in parts):
        raise ValueError("Priors that respect different orders cannot be mixed: give all of them the same chains.")
    return RankingLaw(
        parts[0].items,
        np.concatenate([weight * part.class_weights for part, weight in zip(parts, weights, strict=True)]),
        np.concatenate([part.attraction for part in parts]),
        np.concatenate([weight * part.chain_weights for part, weight in zip(parts, weights, strict=True)]),
        np.concatenate([part.arrivals for part in parts]),
        np.concatenate([part.moves for part in parts]),
        parts[0].order,
    )


class SampledLaw:
    """Rankings sampled from a prior, weighted by their frequencies, to be tilted."""

    def __init__(
        self, assortments: Assortments, prior: RankingLaw, size: int, seed: int, watch: Watch = unwatched
    ) -> None:
        from rankstream.data.vertex_kernels import vertex  # compiled, as above

        self.assortments, self.items = assortments, prior.items
        self.orders, times = np.unique(prior.sample(size, seed, watch), axis=0, return_counts=True)
        self.logs = np.log(times / times.sum())
        self.vertices = np.empty((len(self.orders), assortments.n_coordinates))
        for order, row in zip(self.orders, self.vertices, strict=True):
            vertex(order, assortments.indptr, assortments.members, row)

    def weights(self, duals: Vec) -> tuple[float, Vec]:
        """Return log E exp(-<duals, a>) and the tilted weights of the rankings."""
        exponents = self.logs - self.vertices @ duals
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        return top + float(np.log(total)), weights / total

    def evaluate(self, duals: Vec) -> tuple[float, Vec]:
        """Return log E exp(-<duals, a>) and the tilted choice probabilities."""
        value, weights = self.weights(duals)
        return value, weights @ self.vertices

    def model(self, duals: Vec) -> RankingModel:
        """Return the sampled rankings with their tilted weights."""
        return RankingModel.from_codes(self.items, self.orders, self.weights(duals)[1], self.assortments.no_choice_code)
