"""The engines behind ``best_offer``, and which of them a problem gets."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np

from rankstream._core.types import Mask
from rankstream._core.watch import Deadline, Watch
from rankstream.decide.branch import Branching
from rankstream.decide.lists import Lists, make_lists
from rankstream.decide.problem import IN, OfferProblem
from rankstream.decide.sampling import most_possible, sampled_lists, standard_error
from rankstream.decide.tables import predicted_seconds, scan, table_of
from rankstream.decide.valuing import values
from rankstream.models.rankings import RankingModel

QUICK = 0.2
"""A ranking model gets a table of all offers that takes no longer; else branch and bound, which proves as much."""
FEW = 12
"""Free items of a model of another kind, all of whose offers are asked for one by one."""
CANDIDATES = 20

Sizes = dict[int, float] | Callable[[], dict[int, float]]


@dataclass(frozen=True, eq=False)
class EngineAnswer:
    """Offers, best first, their values by the model, and what is proven."""

    offers: list[Mask]
    values: list[float]
    bound: float
    proven: bool
    engine: str
    sizes: Sizes
    error: float = 0.0


def solve(problem: OfferProblem, top: int, budget: float, seed: int, watch: Watch) -> EngineAnswer:
    """The best offers by the engine that suits the model and the number of free items.

    - A table of all offers where it is quick, or fits the budget and the model has no other exact way.
    - Branch and bound for ranking models.
    - All offers one by one for models that are not the package's own, of few items.
    - Sampling beyond.
    """
    model, seconds = problem.model, predicted_seconds(problem)
    if seconds <= (min(QUICK, budget) if isinstance(model, RankingModel) else budget):
        return all_offers(problem, top)
    if isinstance(model, RankingModel):
        return branch_and_bound(problem, top, budget, seed, watch)
    if np.isinf(seconds) and problem.free.size <= FEW:
        return one_by_one(problem, top)
    return by_sampling(problem, top, budget, seed, watch)


def all_offers(problem: OfferProblem, top: int) -> EngineAnswer:
    """Every offer's value from one table."""
    found = scan(table_of(problem), problem, top)
    exact = values(problem, found.offers[:1]).tolist()
    shift = exact[0] - found.values[0]  # rounding: the table's last digits are not the model's
    worths = [value + shift for value in found.values]
    sizes = found.by_size | {int(found.offers[0].sum()): exact[0]}
    return EngineAnswer(found.offers, worths, exact[0], True, "all offers", sizes)


def one_by_one(problem: OfferProblem, top: int) -> EngineAnswer:
    """Every offer's value asked from the model."""
    free, must = problem.free, problem.state == IN
    offers = []
    for codes in chain.from_iterable(combinations(free.tolist(), size) for size in range(free.size + 1)):
        held = must.copy()
        held[list(codes)] = True
        if problem.is_feasible(held):
            offers.append(held)
    if not offers:
        raise ValueError("No offer keeps all constraints: relax a size, a capacity or a pair.")
    worth = values(problem, offers)
    order = np.argsort(-worth, kind="stable")[: max(1, top)].tolist()
    sizes: dict[int, float] = {}
    for held, one in zip(offers, worth.tolist(), strict=True):
        sizes[int(held.sum())] = max(one, sizes.get(int(held.sum()), -np.inf))
    best = float(worth[order[0]])
    return EngineAnswer(
        [offers[n] for n in order], worth[order].tolist(), best, True, "all offers, one by one",
        dict(sorted(sizes.items())),
    )  # fmt: skip


def branch_and_bound(problem: OfferProblem, top: int, budget: float, seed: int, watch: Watch) -> EngineAnswer:
    """The best offers of a ranking model by a search with bounds."""
    lists = make_lists(problem.model, problem)
    search = Branching(lists, problem, top, watch)
    proven = search.run(seed=seed)
    best = sorted(search.found.items(), key=lambda pair: -pair[1])[: max(1, top)]
    offers = [lists.whole(problem, np.frombuffer(key, dtype=np.int8)) for key, _ in best]
    worth = [value for _, value in best]
    bound = worth[0] if proven else max(search.bound, worth[0])
    return EngineAnswer(
        offers, worth, bound, proven, "branch and bound", lambda: _sizes(problem, lists, budget, seed, {})
    )


def _sizes(problem: OfferProblem, lists: Lists, budget: float, seed: int, known: dict[int, float]) -> dict[int, float]:
    """The best value of every size, each by a search of its own; sizes not proven within the budget are left out."""
    watch = Deadline(budget)
    found = dict(known)
    low = max(problem.least, problem.must.size)
    for size in range(low, min(problem.most, problem.must.size + lists.margin.size) + 1):
        try:
            search = Branching(lists, problem.of_size(size), 1, watch)
            if search.run(2, seed):
                found[size] = max(search.found.values())
        except ValueError:  # no feasible offer of this size
            continue
        if watch("sizes"):
            break
    return found


def by_sampling(problem: OfferProblem, top: int, budget: float, seed: int, watch: Watch) -> EngineAnswer:
    """The best offers of drawn rankings, valued by the model itself; nothing is proven."""
    lists, drawn = sampled_lists(problem.model, problem, seed, watch)
    search = Branching(lists, problem, 1, watch)
    search.run(seed=seed)
    best = sorted(search.found.items(), key=lambda pair: -pair[1])[: max(top, CANDIDATES)]
    helds = [np.frombuffer(key, dtype=np.int8) for key, _ in best]
    offers = [lists.whole(problem, held) for held in helds]
    worth = values(problem, offers)
    order = np.argsort(-worth, kind="stable")[: max(1, top)].tolist()
    error = standard_error(lists, helds[order[0]], drawn)
    picked: list[Any] = [offers[n] for n in order]
    bound = max(most_possible(problem), float(worth[order[0]]))
    return EngineAnswer(
        picked, worth[order].tolist(), bound, False, f"sampling, {drawn:,} rankings",
        lambda: _sizes(problem, lists, budget, seed, {}), error,
    )  # fmt: skip
