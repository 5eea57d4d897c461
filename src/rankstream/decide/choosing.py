"""best_offer: which offer to make, by any model and under any of the constraints."""

from time import perf_counter
from typing import Any, Unpack

import numpy as np

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.watch import Deadline, Watch, unwatched
from rankstream.data.counts import ChoiceCounts
from rankstream.decide.constraints import Constraints, constrained
from rankstream.decide.decision import Decision, RunnerUp
from rankstream.decide.engines import EngineAnswer, solve
from rankstream.decide.margins import Numbers
from rankstream.decide.problem import OfferProblem, make_problem
from rankstream.decide.uncertainty import with_interval
from rankstream.estimation.intervals import Bootstrap

MOST_TOP = 1000


@constrained
def best_offer(
    model: Any,
    margins: Numbers | None = None,
    *,
    top: int = 1,
    budget: float = 10.0,
    counts: ChoiceCounts | Bootstrap | None = None,
    interval: float = 0.95,
    seed: int = 0,
    watch: Watch | None = None,
    **constraints: Unpack[Constraints],
) -> Decision:
    """The offer of the highest expected margin per customer, less listing costs, among all that are feasible.

    Of a model with price levels, an offer has each item at one level or not at all. Constraints may then name an item,
    "tea", whatever its price, or one of its levels, "tea @ 3.50".

    Parameters
    ----------
    model : RankingModel, EntropyModel, LogitModel, LatentClassModel, MarkovChainModel or any ChoiceModel
        Who chooses what.
    margins : dict, Series or number
        What a sale of each item earns; a missing one is an error. The no-choice item earns 0.
    costs : dict, Series or number, optional
        Of a model with price levels, instead of margins: what a sale of each item costs, so that it earns the price
        less that. Items without a price still need a margin.
    at_most, at_least : int, optional
        How many items an offer may have, the no-choice item not counted.
    must, never : items
        What has to be, and cannot be, in the offer.
    requires : pairs of items
        ``(a, b)``: a only with b.
    excludes : pairs of items
        ``(a, b)``: not both.
    listing_costs : dict, Series or number, optional
        What showing an item costs per customer.
    space, capacity : dict, Series or number, and float, optional
        What items fill (0 where nothing is said), and how much there is.
    ladders : tuples of items
        ``("small", "large")``: where both are on offer, the first costs at most as much as the second.
    present, changes : offer and int, optional
        What is on offer now, as items or as ``{"tea": 3.5}``, and how many items may come, go or change their price.
    no_choice : item, optional
        What is always on offer and earns 0; without it, the model's own. Where there is none, the empty offer is
        infeasible.
    top : int
        How many of the best offers: the best one and ``top - 1`` runners-up.
    budget : float
        Seconds for the search; what is not proven by then is given with its bound. Intervals take their own time.
    counts : ChoiceCounts or Bootstrap, optional
        The data behind the model: the decision then has an interval of its value and of its lead.
    interval : float
        How often those intervals are to cover.
    seed : int
        What is drawn at random: starts of searches, samples, simulated choices.
    watch : callable, optional
        Called with what is going on; may end the search, or the refits of an interval, by returning True.

    >>> from rankstream import RankingModel
    >>> rankings = [("tea", "pie", "no", "cake"), ("cake", "tea", "no", "pie"), ("pie", "cake", "tea", "no")]
    >>> model = RankingModel(["tea", "pie", "cake", "no"], rankings, [0.5, 0.3, 0.2], no_choice_code=3)
    >>> found = best_offer(model, {"tea": 1.0, "pie": 3.0, "cake": 2.0}, top=2)
    >>> found.offer, round(found.value, 2), found.proven, found.engine
    (('pie', 'cake'), 2.7, True, 'all offers')
    >>> found.runners_up[0].offer, {size: round(value, 2) for size, value in found.by_size.items()}
    (('pie',), {0: 0.0, 1: 2.1, 2: 2.7, 3: 1.7})

    With prices:

    >>> labels = ["tea @ 3.00", "tea @ 4.00", "no"]
    >>> model = RankingModel(labels, [("tea @ 3.00", "no", "tea @ 4.00"), labels], [0.2, 0.8], no_choice_code=2)
    >>> found = best_offer(model, costs={"tea": 1.0})
    >>> found.offer, found.prices, round(found.value, 2), found.shares
    (('tea @ 4.00',), {'tea': 4.0}, 2.4, {'tea': 0.8, 'no': 0.2})

    """
    problem = make_problem(model, margins, **constraints)
    if whole_number("top", top, least=1) > MOST_TOP:
        raise ValueError(f"top is {top}: it must be at most {MOST_TOP}.")
    number_between("budget", budget, 0.0)
    number_between("interval", interval, 1e-6, 1.0 - 1e-6)
    return decide(problem, top, budget, seed, watch, counts, interval)


def decide(
    problem: OfferProblem,
    top: int = 1,
    budget: float = 10.0,
    seed: int = 0,
    watch: Watch | None = None,
    counts: ChoiceCounts | Bootstrap | None = None,
    interval: float = 0.95,
) -> Decision:
    """``best_offer`` for a problem that was checked already."""
    began = perf_counter()
    deadline = Deadline(budget)

    def enough(text: str, share: float = 1.0) -> bool:
        return deadline(text, share) or (watch is not None and watch(text, share))

    answer = solve(problem, max(top, 2) if counts is not None else top, budget, seed, enough)
    found = _decision(problem, answer, perf_counter() - began)
    return found if counts is None else with_interval(found, counts, interval, seed, top, watch or unwatched)


def _decision(problem: OfferProblem, answer: EngineAnswer, seconds: float) -> Decision:
    offers = [tuple(problem.items[code] for code in np.flatnonzero(held)) for held in answer.offers]
    menu = problem.labels(answer.offers[0])
    shares = problem.by_item(problem.model.predict(menu) if menu else {})
    runners = tuple(RunnerUp(*pair) for pair in zip(offers[1:], answer.values[1:], strict=True))
    return Decision(
        offers[0], answer.values[0], answer.bound, answer.proven, answer.engine, runners, shares, seconds, problem,
        answer.error, sizes=answer.sizes, sizes_quick=answer.sizes_quick,
    )  # fmt: skip
