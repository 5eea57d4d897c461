"""best_offer: which offer to make, by any model and under any of the constraints."""

from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.watch import Deadline, Watch, process_seconds, seconds_left, until, unwatched
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.decide.context import context_of
from rankstream.decide.decision import Decision, RunnerUp
from rankstream.decide.engines.selection import EngineAnswer, solve
from rankstream.decide.problem.margins import Numbers
from rankstream.decide.problem.offers import Constraints, OfferProblem, constrained, make_problem

if TYPE_CHECKING:
    from rankstream.estimation.intervals import Bootstrap

MAX_TOP = 1000
PART_FOR_SEARCH = 0.5
"""The part of the budget for the search where refits for intervals follow."""


@constrained
def best_offer(
    model: Any,
    margins: Numbers | None = None,
    *,
    top: int = 1,
    budget: float = 10.0,
    counts: "ChoiceCounts | Bootstrap | None" = None,
    interval: float | None = 0.95,
    seed: int = 0,
    watch: Watch | None = None,
    **constraints: Unpack[Constraints],
) -> Decision:
    """Find the feasible offer with the highest expected margin per customer, less listing costs.

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
        What is on offer now, as items or as ``{"tea": 3.5}``, which the decision is compared with, and how many items
        may come, go or change their price.
    no_choice : item, optional
        What is always on offer and earns 0; without it, the model's own. Where there is none, the empty offer is
        infeasible.
    top : int
        How many of the best offers: the best one and ``top - 1`` runners-up.
    budget : float
        Processor seconds for everything: the search, its runners-up and sizes, single changes and the refits behind
        intervals. What is not proven by then is given with its bound; too few refits by then give no intervals.
    counts : ChoiceCounts or Bootstrap, optional
        The data behind the model: the decision then has intervals of its value, lead and gain, and ``context`` tells
        how near it is to offers in the data. Without ``present``, the most frequent offer counts as the present one.
    interval : float or None
        How often those intervals are to cover; None leaves them out.
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
    if whole_number("top", top, least=1) > MAX_TOP:
        raise ValueError(f"top is {top}: it must be at most {MAX_TOP}.")
    number_between("budget", budget, 0.0)
    if interval is not None:
        number_between("interval", interval, 1e-6, 1.0 - 1e-6)
    return decide(problem, top, budget, seed, watch, counts, interval)


def decide(
    problem: OfferProblem,
    top: int = 1,
    budget: float = 10.0,
    seed: int = 0,
    watch: Watch | None = None,
    counts: "ChoiceCounts | Bootstrap | None" = None,
    interval: float | None = 0.95,
) -> Decision:
    """``best_offer`` for a problem that was checked already."""
    began, clock = perf_counter(), Budget(budget, watch or unwatched)
    refits = counts is not None and interval is not None
    part = until(clock, PART_FOR_SEARCH) if refits and isinstance(counts, ChoiceCounts) else clock
    answer = solve(problem, max(top, 2) if refits else top, seconds_left(part), seed, part)
    found = _decision(problem, answer)
    data = counts if counts is None or isinstance(counts, ChoiceCounts) else counts.counts
    if data is not None:
        from rankstream.decide.intervals import check_items  # refits need every kind of model, a plain answer does not

        check_items(problem, data)
    around = context_of(problem, found.held, found.value, data, clock)
    found = replace(found, context=around)
    if counts is not None and interval is not None:
        from rankstream.decide.intervals import with_interval

        found = with_interval(found, counts, interval, seed, top, clock)
    return replace(found, seconds=perf_counter() - began)


class Budget:
    """A watch that has had enough after so many processor seconds of the process, or when another one has."""

    def __init__(self, seconds: float, watch: Watch) -> None:
        self.clock, self.watch = Deadline(seconds, clock=process_seconds), watch

    def __call__(self, text: str, share: float = 1.0) -> bool:
        """As ``Watch`` says."""
        return self.clock(text, share) or self.watch(text, share)

    def left(self, share: float = 1.0) -> float:
        """As ``seconds_left`` says."""
        return self.clock.left(share)


def _decision(problem: OfferProblem, answer: EngineAnswer) -> Decision:
    offers = [tuple(problem.items[code] for code in np.flatnonzero(held)) for held in answer.offers]
    menu = problem.labels(answer.offers[0])
    found = problem.model.probabilities(Assortments([menu])).tolist() if menu else []
    shares = problem.by_item(dict(zip(menu, found, strict=True)))
    runners = tuple(RunnerUp(*pair) for pair in zip(offers[1:], answer.values[1:], strict=True))
    return Decision(
        offers[0], answer.values[0], answer.bound, answer.proven, answer.engine, runners, shares, 0.0, problem,
        answer.error, sizes=answer.sizes, sizes_quick=answer.sizes_quick,
    )  # fmt: skip
