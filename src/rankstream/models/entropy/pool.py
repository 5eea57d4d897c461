"""A pool as a guide: a law learned from other markets, restricted to the items of one market."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankstream._core.types import Codes, Label, Vec
from rankstream.data.attributes import Attributes
from rankstream.data.counts import ChoiceCounts
from rankstream.data.prices import split_label
from rankstream.models.entropy.guides import NESTS, TASTE, Guide, with_attributes
from rankstream.models.entropy.ranking_laws import RankingLaw, plackett_luce
from rankstream.models.lifts import chains_of
from rankstream.models.parametric.latent_class import fit_latent_class
from rankstream.models.parametric.mnl import fit_mnl

MIN_TASTE_CHOICES = 300
"""With fewer of its own, a market with a pool skips normal taste and nests, which take nearly all of the time."""
MIN_ATTRACTION = 1e-12  # too small to change a prediction, but not 0


@dataclass(frozen=True, eq=False)
class PoolGuide(Guide):
    """The law of other markets as a guide; ``before`` is the number of choices that it starts with as evidence.

    It is not fitted to the market's own choices. Items that the law lacks are added by the market's own logit.
    """

    name: str = "pool"
    family: str = "pool"
    prior: RankingLaw = field(default_factory=lambda: plackett_luce(["nothing"], [1.0]))

    def law(self, counts: ChoiceCounts) -> RankingLaw:
        """Return the pool's law over the items of these counts, in their order."""
        items, known = counts.assortments.items, set(self.prior.items)
        if counts.assortments.order or self.prior.order:
            return law_at_prices(self.prior, counts)
        common = [item for item in items if item in known]
        if len(common) == len(items):
            return restrict_law(self.prior, items)
        worth = dict(zip(items, fit_mnl(counts).attraction.tolist(), strict=True))
        if not common:
            return plackett_luce(items, [worth[item] for item in items])
        return extend_law(restrict_law(self.prior, common), items, worth)


def guides_with(pool: PoolGuide, counts: ChoiceCounts, table: Attributes | None = None) -> tuple[Guide, ...]:
    """Return the guides of a market with a pool."""
    enough = counts.observations >= MIN_TASTE_CHOICES
    slow = () if enough else (TASTE.family, NESTS.family)
    return (*(guide for guide in with_attributes(table) if guide.family not in slow), pool)


def law_at_prices(prior: RankingLaw, counts: ChoiceCounts) -> RankingLaw:
    """Return the law over the items of these counts at their own price levels, which may differ from the law's.

    A level's worth is the sum over it and the dearer levels of its item (``lifts``). It is interpolated between two
    prices of the law, and constant beyond them. Items that the law lacks are added by the counts' own logit.
    """
    offers = counts.assortments
    own = fit_latent_class(counts, classes=1).attraction[0]
    known, wanted = _levels(prior.items), _levels(offers.items)
    if not len(prior.class_weights) or not known.keys() & wanted.keys():
        return plackett_luce(offers.items, own, order=chains_of(offers))
    table = np.zeros((len(prior.class_weights), offers.n_items))
    new = [place for item, levels in wanted.items() if item not in known for _, place in levels]
    for item in known.keys() & wanted.keys():
        prices, places = map(list, zip(*sorted(known[item]), strict=True))
        worth = prior.attraction[:, places][:, ::-1].cumsum(axis=1)[:, ::-1]
        new_prices, targets = map(list, zip(*sorted(wanted[item]), strict=True))
        at = np.array([np.interp(new_prices, prices, row) for row in worth])
        table[:, targets] = at - np.pad(at[:, 1:], ((0, 0), (0, 1)))
    rest = np.setdiff1d(np.arange(offers.n_items), new)
    table[:, new] = table[:, rest].sum(axis=1, keepdims=True) * own[new] / max(float(own[rest].sum()), MIN_ATTRACTION)
    weights = prior.class_weights / prior.class_weights.sum()
    return plackett_luce(offers.items, np.maximum(table, MIN_ATTRACTION), weights, chains_of(offers))


def _levels(labels: Sequence[Label]) -> dict[Label, list[tuple[float, int]]]:
    levels: dict[Label, list[tuple[float, int]]] = {}
    for place, label in enumerate(labels):
        item, price = split_label(label)
        levels.setdefault(item, []).append((price or 0.0, place))
    return levels


def restrict_law(prior: RankingLaw, items: Sequence[Label]) -> RankingLaw:
    """Return the law of the order of some items within rankings of all items.

    A Plackett-Luce class keeps its attractions; a chain is observed only at these items.

    >>> law = plackett_luce(["tea", "pie", "cake"], [2.0, 1.0, 1.0])
    >>> restrict_law(law, ["pie", "tea"]).attraction.round(2).tolist()
    [[0.33, 0.67]]
    """
    place = {item: number for number, item in enumerate(prior.items)}
    codes = np.array([place[item] for item in items], dtype=np.int64)
    attraction = np.maximum(prior.attraction[:, codes], MIN_ATTRACTION)
    chains = [_restrict_chain(*chain, codes) for chain in zip(prior.arrivals, prior.moves, strict=True)]
    size = len(items)
    return RankingLaw(
        tuple(items), prior.class_weights, attraction / attraction.sum(axis=1, keepdims=True), prior.chain_weights,
        np.array([arrival for arrival, _ in chains]).reshape(-1, size),
        np.array([moves for _, moves in chains]).reshape(-1, size, size),
    )  # fmt: skip


def _restrict_chain(arrival: Vec, moves: Vec, codes: Codes) -> tuple[Vec, Vec]:
    """Return arrivals and moves of a chain that is observed only at some items."""
    hidden = np.setdiff1d(np.arange(len(arrival)), codes)
    first, after = arrival[codes], moves[np.ix_(codes, codes)]
    if hidden.size:
        back = np.linalg.solve(np.eye(hidden.size) - moves[np.ix_(hidden, hidden)], moves[np.ix_(hidden, codes)])
        first, after = first + arrival[hidden] @ back, after + moves[np.ix_(codes, hidden)] @ back
    return _shares(first), _without_stays(after)


def _without_stays(moves: Vec) -> Vec:
    """Return the moves without staying, which keeps the order of first visits; a dead end moves anywhere."""
    others: Vec = np.maximum(moves, MIN_ATTRACTION)
    if len(others) > 1:
        np.fill_diagonal(others, 0.0)
    return _shares(others)


def _shares(numbers: Vec) -> Vec:
    positive = np.maximum(numbers, 0.0)
    total: Vec = np.maximum(positive.sum(axis=-1, keepdims=True), 1e-300)
    return positive / total


def extend_law(prior: RankingLaw, items: Sequence[Label], worth: Mapping[Any, float]) -> RankingLaw:
    """Add items to a law, each as attractive relative to the known ones as in ``worth``.

    >>> law = extend_law(plackett_luce(["tea"], [1.0]), ["pie", "tea"], {"tea": 1.0, "pie": 3.0})
    >>> law.attraction.tolist()
    [[0.75, 0.25]]
    """
    place = {item: number for number, item in enumerate(prior.items)}
    total = max(sum(worth[item] for item in prior.items), MIN_ATTRACTION)
    size, new = len(items), np.array([item not in place for item in items])
    old = np.array([place.get(item, -1) for item in items], dtype=np.int64)
    added = np.array([worth[item] / total if item not in place else 0.0 for item in items])

    def spread(row: Vec) -> Vec:
        return np.where(new, added * row.sum(), row[old])

    attraction = np.array([spread(row) for row in prior.attraction]).reshape(-1, size)
    arrivals, moves = [], []
    for arrival, steps in zip(prior.arrivals, prior.moves, strict=True):
        begin = _shares(spread(arrival))
        arrivals.append(begin)
        table = [begin if new[row] else spread(steps[old[row]]) for row in range(size)]
        moves.append(_without_stays(np.array(table)))
    return RankingLaw(
        tuple(items), prior.class_weights, _shares(attraction), prior.chain_weights,
        np.array(arrivals).reshape(-1, size), np.array(moves).reshape(-1, size, size),
    )  # fmt: skip
