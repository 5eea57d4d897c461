"""What offers earn by a model, and the verification of answers: a wrong engine raises an error instead of advising."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rankstream._core import Label, Mask, Vec, optional
from rankstream.data.assortments import Assortments, as_offer
from rankstream.decide.problem.items import Numbers, margin_vector, names_of, number_vector
from rankstream.decide.problem.offers import OfferProblem

VALUE_TOLERANCE = 1e-6
"""Largest difference between an engine's value and the model's, relative to the largest margin and listing cost:
tables and lists add the same terms in another order.
"""
OFFERS_AT_ONCE = 500  # valued at a time, which limits memory; no benchmark chose it


def value(
    model: Any,
    offers: Iterable[Iterable[Label]],
    margins: Numbers | None = None,
    *,
    costs: Numbers | None = None,
    listing_costs: Numbers | None = None,
    no_choice: Label | None = None,
) -> Any:
    """Return a pandas data frame with a row per offer: its items, earnings, listing costs, and value.

    Parameters
    ----------
    model : any ChoiceModel
        Predicts what customers choose.
    offers : list of offers
        The offers to value: items or, with price levels, also ``{"tea": 3.5}``. If there is a no-purchase option, it
        is added to every offer.
    margins, costs, listing_costs, no_choice : optional
        As for ``best_offer``.

    Examples
    --------
    >>> from rankstream import RankingModel
    >>> model = RankingModel(["tea", "pie", "no"], [("tea", "pie", "no"), ("pie", "no", "tea")], [0.6, 0.4],
    ...                      no_choice_code=2)
    >>> value(model, [("tea",), ("tea", "pie")], {"tea": 2.0, "pie": 3.0}, listing_costs=0.1).round(2)
              offer  earned  listing  value
    0        (tea,)     1.2      0.1    1.1
    1    (tea, pie)     2.4      0.2    2.2
    """
    names = names_of(model, no_choice)
    items, nothing = names.items, names.leave
    gains = margin_vector(items, names.margins(margins, costs), nothing)
    listed = number_vector("listing cost", items, names.at_levels("listing cost", listing_costs), nothing)
    labels = [names.labels(offer) for offer in offers]
    full = [as_offer("The offer", _with(nothing, offer)) for offer in labels]
    earned, cost = earnings(model, full, gains), dict(zip(items, listed.tolist(), strict=True))
    listing = np.array([float(sum(cost[item] for item in offer)) for offer in full])
    frames = optional("pandas", "A data frame of offers")
    return frames.DataFrame({"offer": labels, "earned": earned, "listing": listing, "value": earned - listing})


def earnings(model: Any, offers: Sequence[tuple[Label, ...]], margins: Vec) -> Vec:
    """Return the expected margin of each offer; an offer without items earns 0."""
    out = np.zeros(len(offers))
    gain = dict(zip(model.items, margins.tolist(), strict=True))
    filled = [number for number, offer in enumerate(offers) if offer]
    for first in range(0, len(filled), OFFERS_AT_ONCE):
        numbers = filled[first : first + OFFERS_AT_ONCE]
        for number in numbers:
            for item in offers[number]:
                if item not in gain:
                    raise ValueError(
                        f"The offer {offers[number]!r} contains {item!r}, which the model lacks: leave it out."
                    )
        rows = Assortments([offers[number] for number in numbers], model.items)
        earned = model.probabilities(rows) * margins[rows.members]
        out[numbers] = np.add.reduceat(earned, rows.indptr[:-1])
    return out


def values(problem: OfferProblem, offers: Sequence[Mask], model: Any = None) -> Vec:
    """Return the values of offers by the problem's model (or another of the same items)."""
    used = problem.model if model is None else model
    margins = problem.margins
    if tuple(used.items) != problem.items:
        gain = dict(zip(problem.items, margins.tolist(), strict=True))
        margins = np.array([gain[item] for item in used.items])
    earned = earnings(used, [problem.labels(mask) for mask in offers], margins)
    listing: Vec = np.array([float(problem.costs[mask].sum()) for mask in offers])
    return earned - listing


def _with(nothing: Label | None, offer: tuple[Label, ...]) -> tuple[Label, ...]:
    return offer if nothing is None or nothing in offer else (*offer, nothing)


class WrongAnswerError(RuntimeError):
    """An engine returned an infeasible offer, a value that the model does not predict, or a bound that does not hold.

    This is a mistake of the package, or a model whose predictions change from one call to the next.
    """


def tolerance_of(problem: OfferProblem) -> float:
    """Return the largest difference allowed between two computations of the same value."""
    return VALUE_TOLERANCE * max(float(np.abs(problem.margins).max()), float(np.abs(problem.costs).max()), 1e-300)


def verify_answer(
    problem: OfferProblem, offers: Sequence[Mask], worths: Sequence[float], bound: float, proven: bool, engine: str
) -> None:
    """Check that offers are different and feasible, best first, worth what the model predicts, and within the bound."""
    close = tolerance_of(problem)
    verify_feasible(problem, offers, engine)
    for mask, stated, predicted in zip(offers, worths, values(problem, offers).tolist(), strict=True):
        if not abs(stated - predicted) <= close:
            offer = problem.labels(mask)
            raise _wrong(engine, f"the offer {offer!r} is worth {predicted:.9g} by the model, not {stated:.9g}")
    if any(not later <= earlier + close for earlier, later in pairwise(worths)):
        raise _wrong(engine, "a runner-up is worth more than an offer before it")
    if not bound >= worths[0] - close or (proven and not bound <= worths[0] + close):
        raise _wrong(engine, f"the bound {bound:.9g} does not fit the value {worths[0]:.9g}")


def verify_feasible(problem: OfferProblem, offers: Sequence[Mask], engine: str) -> None:
    """Check that there are offers, that they differ, and that each meets all constraints."""
    if not len(offers) or len({mask.tobytes() for mask in offers}) < len(offers):
        raise _wrong(engine, "there is no offer, or one offer twice")
    for mask in offers:
        if not problem.is_feasible(mask):
            raise _wrong(engine, f"the offer {problem.labels(mask)!r} breaks a constraint")


def verify_order(low: float, high: float, close: float, what: str, engine: str) -> None:
    """Check that a number is at most another, up to ``close``; ``what`` names both."""
    if not low <= high + close:
        raise _wrong(engine, f"{what}: {low:.9g} is more than {high:.9g}")


def _wrong(engine: str, what: str) -> WrongAnswerError:
    return WrongAnswerError(f"The search ({engine}) gave a wrong answer, which is not shown: {what}. Please report it.")
