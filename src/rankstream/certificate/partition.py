"""A certificate for the fit where no oracle is exact: how near to the data any ranking model can be, from groups."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from rankstream._types import Vec
from rankstream.assortments import Assortments
from rankstream.certificate.gap import ROUNDING
from rankstream.counts import ChoiceCounts, Target, as_target
from rankstream.oracles.groups import Groups
from rankstream.oracles.splitting import Relaxation
from rankstream.validate import number_between, whole_number

PATIENCE = 20
PROGRESS = 1e-5


@dataclass(frozen=True)
class FitBound:
    """``lower`` <= the least Euclidean distance of any ranking model from the frequencies <= ``upper``.

    ``upper`` is the distance of the model at hand, infinite if none was given. ``sweeps`` is how many passes were made.
    """

    upper: float
    lower: float
    sweeps: int

    @property
    def ratio(self) -> float:
        """How much of the model's distance is proven unavoidable: a low one means "search harder, or larger groups"."""
        return self.lower / self.upper if self.upper > 0.0 else 1.0


def fit_bound(
    assortments: Assortments,
    frequencies: ChoiceCounts | Target | ArrayLike,
    upper: float = np.inf,
    *,
    seconds: float = 10.0,
    sweeps: int | None = None,
    states: int = 500,
    overlap: int = 3,
    enough: float = 0.999,
) -> FitBound:
    """A proven lower bound on min over ranking models of |x - p|_2, from groups of offers with exact oracles.

    A model is a model of every group, so the nearest point whose parts are models of their groups is no farther. It is
    found by Dykstra's method: with u_g the normal vectors of the groups' projections, Y their sum and h_g the least
    value of a group, (sum of h_g(u_g) - <Y, p>) / |Y| is a bound after any sweep. ``overlap=1`` is a partition: the
    bound then is the root of the sum of the groups' own squared distances. Groups have at most ``states`` states each.
    Offers without data are left out. It stops after the seconds or sweeps, at ``enough`` of ``upper``, or when the
    bound no longer rises.

    >>> offers = Assortments([("tea", "pie", "nothing"), ("tea", "nothing")])
    >>> bound = fit_bound(offers, [0.5, 0.5, 0.0, 0.25, 0.75], upper=0.4)
    >>> round(bound.lower, 3), round(bound.ratio, 2)
    (0.231, 0.58)
    """
    limit = number_between("seconds", seconds, 0.0)
    most = np.inf if sweeps is None else whole_number("sweeps", sweeps, least=1)
    number_between("upper", upper, 0.0)
    number_between("enough", enough, 0.0, 1.0)
    started = perf_counter()
    offers, data = _seen(assortments, as_target(assortments, frequencies))
    relaxation = Relaxation(Groups(offers, states, overlap, partition=overlap == 1))
    best, marked, stale, done = 0.0, 0.0, 0, 0
    while done < most and stale < PATIENCE and perf_counter() - started < limit and best < enough * upper:
        relaxation.sweep(data)
        done += 1
        best = max(best, _bound(relaxation, data))
        stale = 0 if best <= 0.0 or best > marked * (1.0 + PROGRESS) else stale + 1
        marked = best if stale == 0 else marked
    return FitBound(float(upper), best, done)


def _bound(relaxation: Relaxation, data: Vec) -> float:
    """The bound that the groups' pulls prove, less what rounding may have added."""
    total = -relaxation.total()
    norm = float(np.linalg.norm(total))
    if norm == 0.0:
        return 0.0
    size = float(np.abs(relaxation.pulls).sum()) + float(np.abs(total) @ data)
    rounding = ROUNDING * relaxation.pulls.size * size
    return (relaxation.least(-relaxation.pulls) - float(total @ data) - rounding) / (
        norm * (1.0 + ROUNDING * data.size)
    )


def _seen(assortments: Assortments, target: Target) -> tuple[Assortments, Vec]:
    """The offers that have data, with those data."""
    if target.seen is None:
        return assortments, target.frequencies
    seen = target.seen[assortments.indptr[:-1]]
    if not seen.any():
        raise ValueError("No offer has been seen yet: there is nothing to be near to.")
    offers = [offer for offer, has in zip(assortments.offers, seen.tolist(), strict=True) if has]
    return Assortments(offers, assortments.items), target.frequencies[target.seen]
