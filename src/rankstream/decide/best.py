"""best_offer: the best offer by any model, under constraints."""

from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Unpack

from rankstream._core import (
    Deadline,
    Watch,
    number_between,
    process_seconds,
    seconds_left,
    until,
    unwatched,
    whole_number,
)
from rankstream.data import Assortments, ChoiceCounts
from rankstream.decide.context import context_of
from rankstream.decide.decision import Decision, RunnerUp
from rankstream.decide.engines.selection import EngineAnswer, solve
from rankstream.decide.problem.items import Numbers
from rankstream.decide.problem.offers import Constraints, OfferProblem, constrained, make_problem

if TYPE_CHECKING:
    from rankstream.estimation.intervals import Bootstrap

MAX_TOP = 1000  # offers in an answer; bounds its size, not tuned
PART_FOR_SEARCH = 0.5
"""The share of the budget for the search and single changes if refits for intervals follow; no benchmark chose it."""


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
    """Find the feasible offer with the highest expected margin per customer, minus listing costs.

    With price levels, an offer has each item at one level or not at all. Constraints may then name an item, "tea", at
    any price, or one of its levels, "tea @ 3.50".

    Parameters
    ----------
    model : RankingModel, EntropyModel, LogitModel, LatentClassModel, MarkovChainModel or any ChoiceModel
        Predicts what customers choose.
    margins : dict, Series or number
        What a sale of each item earns; every item needs one. The no-purchase option earns 0.
    costs : dict, Series or number, optional
        Instead of margins, for a model with price levels: what a sale of each item costs. It earns the price minus
        this cost. Items without a price still need a margin.
    at_most : int, optional
        Maximum number of items in an offer, not counting the no-purchase option.
    at_least : int, optional
        Minimum number of items in an offer, not counting the no-purchase option.
    must : items
        Items that have to be in the offer.
    never : items
        Items that cannot be in the offer.
    requires : pairs of items
        ``(a, b)``: a only with b.
    excludes : pairs of items
        ``(a, b)``: not both.
    listing_costs : dict, Series or number, optional
        What showing an item costs per customer.
    space : dict, Series or number, optional
        The space that each item takes; 0 if it has no entry.
    capacity : float, optional
        The total space.
    ladders : tuples of items
        ``("small", "large")``: if both are on offer, the first costs at most as much as the second.
    present : offer, optional
        Today's offer, as items or as ``{"tea": 3.5}``. The decision is compared with it.
    changes : int, optional
        Maximum number of items to add, drop or reprice, compared with ``present``.
    no_choice : item, optional
        The no-purchase option, which is always available and earns 0. By default that of the model. Without one, the
        empty offer is infeasible.
    top : int
        Number of offers to return: the best one and ``top - 1`` runners-up.
    budget : float
        CPU seconds for everything: the search, its runners-up and sizes, single changes and the refits behind
        intervals. An unfinished search returns the best offer so far with its bound; too few refits, no intervals.
    counts : ChoiceCounts or Bootstrap, optional
        The data behind the model: adds intervals of value, lead and gain, and how near the offer is to offers in the
        data (``context``). Without ``present``, the most frequent offer counts as the present one.
    interval : float or None
        Confidence level of the intervals; None skips them.
    seed : int
        Random seed of searches, samples and simulated choices.
    watch : callable, optional
        Called with the progress; returning True ends the search, or the refits of an interval.

    Examples
    --------
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
    """Run ``best_offer`` for a checked problem."""
    began, clock = perf_counter(), Deadline(budget, clock=process_seconds, watch=watch or unwatched)
    refits = counts is not None and interval is not None
    part = until(clock, PART_FOR_SEARCH) if refits and isinstance(counts, ChoiceCounts) else clock
    answer = solve(problem, max(top, 2) if refits else top, seconds_left(part), seed, part)
    decision = _decision(problem, answer)
    data = counts if counts is None or isinstance(counts, ChoiceCounts) else counts.counts
    if data is not None:
        from rankstream.decide.intervals import check_items  # local, as it imports every kind of model

        check_items(problem, data)
    decision = replace(decision, context=context_of(problem, decision.offer_mask, decision.value, data, part))
    if counts is not None and interval is not None:
        from rankstream.decide.intervals import with_interval

        decision = with_interval(decision, counts, interval, seed, top, clock)
    return replace(decision, seconds=perf_counter() - began)


def _decision(problem: OfferProblem, answer: EngineAnswer) -> Decision:
    offers = [problem.offer(mask) for mask in answer.offers]
    menu = problem.labels(answer.offers[0])
    predicted = problem.model.probabilities(Assortments([menu])).tolist() if menu else []
    shares = problem.by_item(dict(zip(menu, predicted, strict=True)))
    runners = tuple(RunnerUp(*pair) for pair in zip(offers[1:], answer.values[1:], strict=True))
    return Decision(
        offers[0], answer.values[0], answer.bound, answer.proven, answer.engine, runners, shares, 0.0, problem,
        sizes=answer.sizes, sizes_quick=answer.sizes_quick,
    )  # fmt: skip
