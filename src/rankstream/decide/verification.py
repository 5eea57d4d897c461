"""Verification of answers: an engine that is wrong raises an error instead of giving advice."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rankstream._core.types import Mask
from rankstream.decide.offer_values import values
from rankstream.decide.problem.offers import OfferProblem

VALUE_TOLERANCE = 1e-6
"""Largest difference between an engine's value and the model's, relative to the largest margin and listing cost:
tables and lists add the same terms in another order.
"""


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
