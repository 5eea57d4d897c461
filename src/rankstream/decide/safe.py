"""safe_offer: the offer with the best worst case over all ranking models that fit the data."""

from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from rankstream._core import Deadline, Label, Mask, Watch, number_between, unwatched, whole_number
from rankstream.columns.data import Limits
from rankstream.columns.master import Region
from rankstream.columns.plausible import PlausibleModels, plausible_models
from rankstream.data import ChoiceCounts, UncertainCounts
from rankstream.decide.best import decide
from rankstream.decide.decision import PER_100, Decision, named
from rankstream.decide.engines.tables import most_decided, scan, table_of
from rankstream.decide.offer_values import tolerance_of, values, verify_feasible, verify_order
from rankstream.decide.problem.items import Numbers
from rankstream.decide.problem.offers import Constraints, OfferProblem, constrained, make_problem
from rankstream.estimation.estimate import estimate
from rankstream.models.rankings import RankingModel


@dataclass(frozen=True, eq=False)
class SafeOffer:
    """An offer that is worth at least ``low`` under every ranking model in the region, and the best offer.

    Attributes
    ----------
    offer : tuple of items
        The items to show, without the no-purchase option.
    low : float
        Its value in the worst case.
    expected : float
        Its value by the model.
    bound : float
        No offer's worst case is better.
    proven : bool
        Whether ``low`` and ``bound`` are within ``accuracy``.
    scenarios : int
        Number of worst models considered.
    worst : RankingModel
        The model behind ``low``.
    best : Decision
        The best offer by the model alone.
    best_low : float
        The value of the best offer in its worst case.
    feasible : bool
        False if no ranking model is in the region; the nearest ones then count.
    """

    offer: tuple[Label, ...]
    low: float
    expected: float
    bound: float
    proven: bool
    scenarios: int
    worst: RankingModel
    best: Decision
    best_low: float
    feasible: bool

    def __str__(self) -> str:
        best, per = self.best, PER_100.per
        proof = "" if self.proven else f"; not proven: at most {per(self.bound)} can be guaranteed"
        lines = [f"Best: {named(best.offer)}: expected {per(best.value)}, at least {PER_100.amount(self.best_low)}."]
        if set(best.offer) == set(self.offer):
            lines.append(f"It is also the safest{proof}.")
        else:
            low = PER_100.amount(self.low)
            lines.append(f"Safest: {named(self.offer)}: expected {per(self.expected)}, at least {low}{proof}.")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        return {
            "offer": [str(item) for item in self.offer], "low": self.low, "expected": self.expected,
            "bound": self.bound, "proven": self.proven, "scenarios": self.scenarios, "feasible": self.feasible,
            "best": self.best.to_json(), "best_low": self.best_low,
        }  # fmt: skip


@constrained
def safe_offer(
    counts: ChoiceCounts | UncertainCounts,
    margins: Numbers | None = None,
    region: Region = "confidence",
    *,
    tolerance: float = 0.0,
    confidence: float = 0.95,
    model: Any = None,
    accuracy: float = 1e-4,
    max_scenarios: int = 50,
    budget: float = 60.0,
    seed: int = 0,
    watch: Watch | None = None,
    **constraints: Unpack[Constraints],
) -> SafeOffer:
    """Find the offer with the best worst case over all ranking models close to the data.

    It alternates between the best offer against the worst models so far and the worst model for that offer, until the
    two meet. The result is cautious: compare it with ``best_offer``, to see what caution costs.

    Parameters
    ----------
    counts : ChoiceCounts or UncertainCounts
        The data.
    margins, costs, at_most, at_least, must, never, requires, excludes, listing_costs, space, capacity : optional
        As for ``best_offer``.
    ladders, present, changes, no_choice : optional
        As for ``best_offer``.
    region : "confidence", "l1" or "linf"
        Models within the offers' confidence radii at this ``confidence``, or within a ``tolerance`` in a norm.
    tolerance, confidence : float
        The size of the region.
    model : optional
        The model for expected values; by default ``estimate(counts).model``.
    accuracy : float
        Largest gap between worst case and bound, relative to the largest margin.
    max_scenarios : int
        Maximum number of worst models.
    budget : float
        Time limit in seconds.
    seed : int
        Seed for ties between rankings, and for the fit.
    watch : callable, optional
        Called with the progress; returning True ends the search.

    Examples
    --------
    >>> from rankstream import Assortments
    >>> offers = Assortments([("tea", "no"), ("pie", "no"), ("tea", "pie", "no")])
    >>> found = safe_offer(ChoiceCounts(offers, [90, 10, 30, 70, 80, 15, 5]), {"tea": 1.0, "pie": 1.5})
    >>> found.offer, found.proven, found.low <= found.expected
    (('tea', 'pie'), True, True)
    """
    number_between("accuracy", accuracy, 1e-9)
    number_between("tolerance", tolerance, 0.0)
    whole_number("max_scenarios", max_scenarios, least=1)
    fitted = estimate(counts, seed=seed).model if model is None else model
    if set(fitted.items) != set(counts.assortments.items):
        raise ValueError("The counts and the model have different items: give the counts that the model was fitted to.")
    problem = make_problem(fitted, margins, **constraints)
    if too_many := most_decided(problem):
        raise ValueError(f"A safe offer can decide about {too_many}: use must= or never= for some.")
    enough = Deadline(number_between("budget", budget, 0.0), watch=watch or unwatched)
    cases = _WorstCases(problem, plausible_models(counts, region, tolerance, confidence, seed=seed), accuracy, enough)
    return _search(problem, cases, max_scenarios, decide(problem, 1, budget, seed, watch))


class _WorstCases:
    """The worst values of offers over the distributions that fit, one offer at a time."""

    def __init__(self, problem: OfferProblem, plausible: PlausibleModels, accuracy: float, watch: Watch) -> None:
        self.problem, self.plausible, self.watch = problem, plausible, watch
        self.close = accuracy * max(float(np.abs(problem.margins).max()), 1e-300)
        self.limits, self.feasible = Limits(0.1 * accuracy, watch=watch), True
        self.gain = dict(zip(problem.items, problem.margins.tolist(), strict=True))

    def __call__(self, mask: Mask) -> tuple[float, RankingModel]:
        """Return the proven worst value of an offer, and its model."""
        menu = self.problem.labels(mask)
        worst, fits = self.plausible.worst(menu, np.array([self.gain[item] for item in menu]), self.limits)
        self.feasible &= fits
        return worst.bound - float(self.problem.costs[mask].sum()), worst.model


def _search(problem: OfferProblem, cases: _WorstCases, most: int, best: Decision) -> SafeOffer:
    """Add scenarios until the guarantee of some offer meets the bound for all offers."""
    offer, close = best.offer_mask, cases.close
    low, worst = cases(offer)
    best_low, safest, table = low, (low, offer, worst), None
    bound, number = np.inf, 0
    while number < most:
        number += 1
        scenario = table_of(replace(problem, model=_in_order(worst, problem)))
        if table is None:
            table = scenario
        else:
            np.minimum(table.values, scenario.values, out=table.values)
        scanned = scan(replace(scenario, values=table.values), problem)
        bound, offer = scanned.values[0], scanned.offers[0]
        if bound <= safest[0] + close:
            break
        low, worst = cases(offer)
        if low > safest[0]:
            safest = (low, offer, worst)
        if bound <= safest[0] + close or cases.watch(f"{number} scenarios, {safest[0]:.4g} of at most {bound:.4g}"):
            break
    (low, offer, worst), engine = safest, "safe offer"
    verify_feasible(problem, [offer], engine)
    by_worst, near = float(values(problem, [offer], worst)[0]), max(close, tolerance_of(problem))
    verify_order(low, by_worst, near, "the guarantee, and the worst model", engine)
    verify_order(low, bound, near, "the guarantee, and the bound", engine)
    expected, bound = float(values(problem, [offer])[0]), max(bound, low)  # they differ by rounding, as just verified
    proven, items = bound <= low + close, problem.offer(offer)
    return SafeOffer(items, low, expected, bound, proven, number, worst, best, best_low, cases.feasible)


def _in_order(model: RankingModel, problem: OfferProblem) -> RankingModel:
    if model.items == problem.items:
        return model
    number = np.array([problem.items.index(item) for item in model.items])
    return RankingModel.from_codes(problem.items, number[model.orders], model.weights)
