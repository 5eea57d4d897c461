"""Sampling: where no table has all offers of a model, the best offer of rankings drawn from it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rankstream._core.types import Codes
from rankstream._core.watch import Watch
from rankstream.decide.engines.lists import Lists, make_lists
from rankstream.decide.problem.offers import OfferProblem
from rankstream.models.entropy.completion import TiltedRankings
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.entropy.ranking_laws import RankingLaw, markov_chain, plackett_luce
from rankstream.models.parametric.falling_demand import FallingClassModel
from rankstream.models.parametric.latent_class import LatentClassModel
from rankstream.models.parametric.markov_chain import MarkovChainModel
from rankstream.models.parametric.mnl import LogitModel
from rankstream.models.parametric.price_logit import PricedModel
from rankstream.models.rankings import RankingModel

N_DRAWN_RANKINGS = 2000  # shares have a standard error of at most 0.012; no benchmark chose it
DRAWS_AT_ONCE = 100  # between two questions whether there is still time


def law_of(model: Any) -> RankingLaw:
    """A parametric model as a law over rankings."""
    if isinstance(model, LogitModel):
        return plackett_luce(model.items, model.attraction)
    if isinstance(model, LatentClassModel):
        return plackett_luce(model.items, model.attraction, model.mixture / model.mixture.sum())
    if isinstance(model, MarkovChainModel):
        return markov_chain(model.items, model.arrival, model.transitions)
    raise ValueError(
        f"A {type(model).__name__} of {len(model.items)} items cannot be sampled: use a rankstream "
        "model, or allow fewer items in the offer."
    )


def draw(model: Any, seed: int, watch: Watch, size: int = N_DRAWN_RANKINGS) -> tuple[RankingModel, int]:
    """Rankings from a model, as a model, and how many: ``size``, or fewer batches when whoever watches says so."""
    random = np.random.default_rng(seed)
    batch: Callable[[int, np.random.Generator], Codes]
    if isinstance(model, EntropyModel):
        batch = TiltedRankings(*model.program()).draw
    elif isinstance(model, FallingClassModel | PricedModel):
        batch = model.draw_orders
    else:
        batch = law_of(model).sample

    rows: list[Codes] = []
    while len(rows) * DRAWS_AT_ONCE < size:
        rows.append(batch(DRAWS_AT_ONCE, random))
        if watch(f"{DRAWS_AT_ONCE * len(rows):,} rankings drawn", 0.3):
            break
    orders, times = np.unique(np.concatenate(rows), axis=0, return_counts=True)
    return RankingModel.from_codes(model.items, orders, times / times.sum()), int(times.sum())


def sampled_lists(model: Any, problem: OfferProblem, seed: int, watch: Watch) -> tuple[Lists, int]:
    """Wish lists of rankings drawn from a model, and how many were drawn."""
    drawn, total = draw(model, seed, watch)
    return make_lists(drawn, problem), total


def standard_error(lists: Lists, held: Any, drawn: int) -> float:
    """How far the mean of what ``drawn`` customers pay is from its expectation, typically."""
    gains = np.array(lists.end)
    for r in range(lists.weight.size):
        row = lists.item[lists.start[r] : lists.start[r + 1]]
        first = np.flatnonzero(held[row] > 0)
        if first.size:
            gains[r] = lists.margin[row[first[0]]]
    mean = float(lists.weight @ gains)
    return float(np.sqrt(lists.weight @ (gains - mean) ** 2 / max(1, drawn - 1)))


def most_possible(problem: OfferProblem) -> float:
    """The largest margin that can be earned at all: no offer is worth more, whatever customers do."""
    possible = problem.state >= 0
    gains = problem.margins[possible]
    best = float(gains.max(initial=-np.inf if problem.nothing < 0 else 0.0))
    costs = problem.costs
    return best - float(costs[problem.state > 0].sum()) - float(np.minimum(costs[problem.state == 0], 0.0).sum())
