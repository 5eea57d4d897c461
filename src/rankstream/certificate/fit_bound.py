"""A certificate for the fit where no oracle is exact: how near to the data any ranking model can be, in one call."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.arguments import number_between, whole_number
from rankstream.certificate.proof import Proof
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts, Target


@dataclass(frozen=True)
class FitBound:
    """``lower`` <= the least (weighted) Euclidean distance of any ranking model from the data <= ``upper``.

    ``upper`` is the distance of the model at hand, infinite if none was given. ``sweeps`` is how many rounds were made.
    """

    upper: float
    lower: float
    sweeps: int

    @property
    def ratio(self) -> float:
        """How much of the model's distance is proven unavoidable: a low one means "search harder, or go on proving"."""
        return self.lower / self.upper if self.upper > 0.0 else 1.0


def fit_bound(
    assortments: Assortments,
    frequencies: ChoiceCounts | Target | ArrayLike,
    upper: float = np.inf,
    *,
    weights: ArrayLike | None = None,
    seconds: float = 10.0,
    sweeps: int | None = None,
    items: int = 16,
    enough: float = 0.999,
) -> FitBound:
    """A proven lower bound on min over ranking models of |x - p|_2, from cuts that hold all models.

    A ``Proof`` that is asked once: it also stops when the bound no longer rises.

    Parameters
    ----------
    assortments : Assortments
        The offers.
    frequencies : ChoiceCounts, Target or array
        The data; offers without any are left out.
    upper : float
        The distance of the model at hand, in the same norm.
    weights : array, optional
        One number >= 0 per offer with which its differences count, as in ``distances.L2``; all 1 without it.
    seconds : float
        The most seconds.
    sweeps : int, optional
        The most rounds of cuts.
    items : int
        The most items of a part, whose table has 2^items numbers per item; 0 for cuts by sets that exclude alone.
    enough : float
        The part of ``upper`` at which it stops, from 0 to 1.

    >>> offers = Assortments([("tea", "pie", "nothing"), ("tea", "nothing")])
    >>> bound = fit_bound(offers, [0.5, 0.5, 0.0, 0.25, 0.75], upper=0.4)
    >>> round(bound.lower, 3), round(bound.ratio, 2)
    (0.231, 0.58)

    """
    number_between("seconds", seconds, 0.0)
    most = None if sweeps is None else whole_number("sweeps", sweeps, least=1)
    number_between("upper", upper, 0.0)
    number_between("enough", enough, 0.0, 1.0)
    proof = Proof(assortments, frequencies, weights, items=items)
    proof.advance(seconds, most, enough * upper)
    return FitBound(float(upper), proof.bound(), proof.rounds)
