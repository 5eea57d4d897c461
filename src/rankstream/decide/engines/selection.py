"""The engines behind ``best_offer``, and the choice among them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from rankstream._core import Deadline, Mask, Watch, process_seconds, seconds_left, until
from rankstream.decide.engines import logit
from rankstream.decide.engines.branch import Branching
from rankstream.decide.engines.lists import Lists, make_lists
from rankstream.decide.engines.tables import Cells, predicted_seconds, scan, table_of
from rankstream.decide.moves import improve
from rankstream.decide.offer_values import values, verify_answer
from rankstream.decide.problem.offers import OfferProblem
from rankstream.models.rankings import DenseModel, RankingModel

QUICK_SECONDS = 0.2
"""Seconds: a table that takes no longer is made for the best values by size, or where constraints or many runners-up
make a search hard to predict. An estimate of what nobody notices; no benchmark chose it.
"""
MAX_ITEMS_ONE_BY_ONE = 12
"""Free items of a model of another kind, all of whose offers are asked for one by one; and of a logit that is not
sorted: 4,096 at most. No benchmark chose it, nor the next two.
"""
N_CANDIDATES = 20  # best offers of drawn rankings that the model itself values; not tuned
MAX_BRANCHING = 0.5
"""The part of the time after which a search among drawn rankings ends: single changes go on from its best offer."""
N_DRAWN_RANKINGS, DRAWS_AT_ONCE = 2000, 100
"""Rankings of a sample, for standard errors of shares of at most 0.012, and how many between two looks at the time."""
SEARCH_SHARE = 0.9
"""The part of the time that an engine may take; the local search on the model has the rest."""
SEARCH_SECONDS, SECONDS_PER_ENTRY, MAX_USUAL_TOP = 1e-3, 6e-7, 3
"""About how many seconds a search among some 20 items takes, at least and for every entry of the lists; for up to this
many of the best offers (``benchmarks/decide.py`` times searches).
"""

Sizes = dict[int, float] | Callable[[], dict[int, float]]


@dataclass(frozen=True, eq=False)
class EngineAnswer:
    """Offers, best first, with their values by the model, and a bound."""

    offers: list[Mask]
    values: list[float]
    bound: float
    proven: bool
    engine: str
    sizes: Sizes
    sizes_quick: bool = False


def solve(problem: OfferProblem, top: int, budget: float, seed: int, watch: Watch) -> EngineAnswer:
    """Find the best offers by the engine that suits the model and should be the fastest to prove them.

    - A table of all offers if it fits the budget and no other exact engine is faster.
    - Sorting for a logit of more than a few items, without listing costs, space or pairs.
    - Branch and bound for ranking models.
    - All offers one by one for your own models with few items.
    - Sampling otherwise.

    If the result is not proven, a local search on the model ensures that no single change improves the offer. Every
    answer is verified with the model and the constraints; a wrong one raises a ``WrongAnswerError``.
    """
    answer = run_engine(problem, top, budget, seed, until(watch, SEARCH_SHARE))
    if not answer.proven:
        answer = polished(problem, answer, top, watch)
    verify_answer(problem, answer.offers, answer.values, answer.bound, answer.proven, answer.engine)
    return answer


def run_engine(problem: OfferProblem, top: int, budget: float, seed: int, watch: Watch) -> EngineAnswer:
    """Run the engine that ``solve`` describes, without verification."""
    model, seconds = problem.model, predicted_seconds(problem)
    if logit.suits(problem) and problem.free.size > MAX_ITEMS_ONE_BY_ONE:
        return by_sorting(problem, top, watch)
    if isinstance(model, RankingModel):
        if seconds <= min(predicted_search(problem, top), budget):
            return all_offers(problem, top)
        return branch_and_bound(problem, top, budget, seed, watch)
    if seconds <= budget:
        return all_offers(problem, top)
    if np.isinf(seconds) and Cells(problem).count <= 2**MAX_ITEMS_ONE_BY_ONE:
        return one_by_one(problem, top)
    return by_sampling(problem, top, budget, seed, watch)


def polished(problem: OfferProblem, answer: EngineAnswer, top: int, watch: Watch) -> EngineAnswer:
    """Add the offers that a local search on the model itself finds."""
    better = improve(problem, answer.offers[0], answer.values[0], watch)
    if not better:
        return answer
    known = {mask.tobytes() for _, mask in better}
    rest = [pair for pair in zip(answer.values, answer.offers, strict=True) if pair[1].tobytes() not in known]
    worths, offers = map(list, zip(*[*better, *rest][: max(1, top)], strict=True))
    return replace(answer, offers=offers, values=worths, bound=max(answer.bound, worths[0]))


def predicted_search(problem: OfferProblem, top: int) -> float:
    """Predict the seconds of branch and bound for as few items as a table can have.

    At least ``QUICK_SECONDS`` with more constraints than sizes, or more than a few offers.
    """
    seconds = SEARCH_SECONDS + SECONDS_PER_ENTRY * float(problem.model.orders.size) / 2
    plain = problem.capacity == np.inf and not problem.rows.limits.size
    return seconds if plain and top <= MAX_USUAL_TOP else max(QUICK_SECONDS, seconds)


def all_offers(problem: OfferProblem, top: int) -> EngineAnswer:
    """Compute every offer's value in one table."""
    scanned = scan(table_of(problem), problem, top)
    exact = values(problem, scanned.offers[:1]).tolist()
    shift = exact[0] - scanned.values[0]  # rounding: the table's last digits differ from the model's
    worths = [value + shift for value in scanned.values]
    sizes = scanned.by_size | {int(scanned.offers[0].sum()): exact[0]}
    return EngineAnswer(scanned.offers, worths, exact[0], True, "all offers", sizes)


def by_sorting(problem: OfferProblem, top: int, watch: Watch) -> EngineAnswer:
    """Find the best offers of a logit."""
    pairs = logit.sorting(problem).ranked(problem.state, max(1, top), watch)
    worth = [value for value, _ in pairs]
    sizes = partial(logit.best_by_size, problem)
    return EngineAnswer([mask for _, mask in pairs], worth, worth[0], True, "sorting", sizes, sizes_quick=True)


def one_by_one(problem: OfferProblem, top: int) -> EngineAnswer:
    """Evaluate every offer with the model."""
    cells = Cells(problem)
    every = sorted((cells.mask(cell) for cell in range(cells.count)), key=np.sum)  # the smallest wins ties
    offers = [mask for mask in every if problem.is_feasible(mask)]
    if not offers:
        raise ValueError("No offer meets all constraints: relax a size, a capacity or a pair.")
    worth = values(problem, offers)
    order = np.argsort(-worth, kind="stable")[: max(1, top)].tolist()
    sizes: dict[int, float] = {}
    for mask, value in zip(offers, worth.tolist(), strict=True):
        sizes[int(mask.sum())] = max(value, sizes.get(int(mask.sum()), -np.inf))
    best = float(worth[order[0]])
    return EngineAnswer(
        [offers[n] for n in order], worth[order].tolist(), best, True, "all offers, one by one",
        dict(sorted(sizes.items())),
    )  # fmt: skip


def branch_and_bound(problem: OfferProblem, top: int, budget: float, seed: int, watch: Watch) -> EngineAnswer:
    """Find the best offers of a ranking model by a search with bounds."""
    lists = make_lists(problem.model, problem)
    search = Branching(lists, problem, top, watch)
    proven = search.run(seed=seed)
    best = sorted(search.found.items(), key=lambda pair: -pair[1])[: max(1, top)]
    offers = [lists.whole(problem, np.frombuffer(key, dtype=np.int8)) for key, _ in best]
    worth = [value for _, value in best]
    bound = worth[0] if proven else max(search.bound, worth[0])
    return EngineAnswer(
        offers, worth, bound, proven, "branch and bound", sizes_later(problem, lists, budget, seed, watch),
        sizes_quick=predicted_seconds(problem) <= QUICK_SECONDS,
    )  # fmt: skip


def sizes_later(problem: OfferProblem, lists: Lists, budget: float, seed: int, watch: Watch) -> Sizes:
    """Return a callable for the best value of every size, within the rest of the budget."""
    left = max(0.0, min(budget, seconds_left(watch)))
    return lambda: _sizes(problem, lists, left, seed)


def _sizes(problem: OfferProblem, lists: Lists, budget: float, seed: int) -> dict[int, float]:
    """Return the best value of every size: from a table if that is quick, else each by its own search.

    Sizes that are not proven within the budget are left out.
    """
    if isinstance(problem.model, RankingModel) and predicted_seconds(problem) <= QUICK_SECONDS:
        return scan(table_of(problem), problem).by_size
    watch = Deadline(budget, clock=process_seconds)
    best: dict[int, float] = {}
    for size in problem.possible_sizes:
        try:
            search = Branching(lists, problem.of_size(size), 1, watch)
            if search.run(2, seed):
                best[size] = max(search.found.values())
        except ValueError:  # no feasible offer of this size
            continue
        if watch("sizes"):
            break
    return best


def by_sampling(problem: OfferProblem, top: int, budget: float, seed: int, watch: Watch) -> EngineAnswer:
    """Find the best offers of sampled rankings, improved by single changes and valued by the model; nothing is proven.

    Rankings and changes are those of the model before its tilt (``OfferProblem.untilted``).
    """
    plain = problem.untilted
    rankings, drawn = draw(plain, seed, watch)
    lists = make_lists(rankings, problem)
    search = Branching(lists, problem, 1, until(watch, MAX_BRANCHING))
    search.run(seed=seed)
    best = sorted(search.found.items(), key=lambda pair: -pair[1])[: max(top, N_CANDIDATES)]
    offers = [lists.whole(problem, np.frombuffer(key, dtype=np.int8)) for key, _ in best]
    first = float(values(plain, offers[:1])[0])
    better = [mask for _, mask in improve(plain, offers[0], first, watch)][:N_CANDIDATES]
    offers = list({mask.tobytes(): mask for mask in (*better, *offers)}.values())
    worth = values(problem, offers)
    order = np.argsort(-worth, kind="stable")[: max(1, top)].tolist()
    gains, costs = problem.margins[problem.state >= 0], problem.costs
    most = float(gains.max(initial=-np.inf if problem.nothing < 0 else 0.0))  # whatever customers choose
    most -= float(costs[problem.state > 0].sum()) + float(np.minimum(costs[problem.state == 0], 0.0).sum())
    bound = max(most, float(worth[order[0]]))
    return EngineAnswer(
        [offers[n] for n in order], worth[order].tolist(), bound, False, f"sampling, {drawn:,} rankings",
        sizes_later(problem, lists, budget, seed, watch),
    )  # fmt: skip


def draw(problem: OfferProblem, seed: int, watch: Watch) -> tuple[RankingModel, int]:
    """Draw rankings from a problem's model, fewer if ``watch`` stops it; return them as a model, and their number."""
    model = problem.model
    if not isinstance(model, DenseModel):
        raise ValueError(
            f"A {type(model).__name__} of {len(model.items)} items cannot be sampled: use a rankstream "
            "model, or allow fewer items in the offer."
        )
    random = np.random.default_rng(seed)
    rows = [model.draw_orders(DRAWS_AT_ONCE, random)]
    while (done := len(rows) * DRAWS_AT_ONCE) < N_DRAWN_RANKINGS and not watch(f"{done:,} rankings drawn", 0.3):
        rows.append(model.draw_orders(DRAWS_AT_ONCE, random))
    orders, times = np.unique(np.concatenate(rows), axis=0, return_counts=True)
    return RankingModel.from_codes(model.items, orders, times / times.sum()), done
