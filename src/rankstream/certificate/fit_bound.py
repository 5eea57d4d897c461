"""A certificate for the fit where no oracle is exact: how near to the data any ranking model can be, from groups."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.rounding import ROUNDING
from rankstream._core.types import Vec
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts, Target, as_target
from rankstream.data.observed import some_offers
from rankstream.distances.projection_kernels import project_onto_simplices
from rankstream.oracles.bounds.groups import Groups
from rankstream.oracles.bounds.parts import ItemParts
from rankstream.oracles.bounds.splitting import Relaxation

PATIENCE = 20
PROGRESS = 1e-5
FIRST = 8  # parts to begin with
CALLS = 60  # dynamic programs for the projection on a part
KEEPS_UP = 0.9  # of its limit that the bound must have come to before parts are added
GROWING = 0.75  # of the seconds


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
    states: int = 300,
    overlap: int = 2,
    items: int = 12,
    enough: float = 0.999,
) -> FitBound:
    """A proven lower bound on min over ranking models of |x - p|_2, from groups of offers with exact oracles.

    A model is a model of every group, so the nearest point whose parts are models of their groups is no farther. It is
    computed by Dykstra's method: with u_g the normal vectors of the groups' projections, Y their sum and h_g the least
    value of a group, (sum of h_g(u_g) - <Y, p>) / |Y| is a bound after any sweep. It also stops when the bound no
    longer rises. Groups know no order of the items: rankings that keep one are some of all, so the bound holds for them
    too, but it may be far from sharp.

    Parameters
    ----------
    assortments : Assortments
        The offers.
    frequencies : ChoiceCounts, Target or array
        The data; offers without any are left out.
    upper : float
        The distance of the model at hand.
    seconds : float
        The most seconds.
    sweeps : int, optional
        The most passes over all groups.
    states : int
        The most states of a group of whole offers.
    overlap : int
        In how many groups an offer is at least; 1 with ``items=0`` is a partition, and the bound then is the root of
        the sum of the groups' own squared distances.
    items : int
        The most items of a group of items, with all that the offers contain of them; 0 for no such groups. They are
        added where the data are hard to meet, as long as the bound keeps up with them.
    enough : float
        The part of ``upper`` at which it stops, from 0 to 1.

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
    cover = _Cover(offers, data, Groups(offers, states, overlap, partition=overlap == 1), whole_number("items", items))
    best, marked, stale, done = 0.0, 0.0, 0, 0
    while done < most and stale < PATIENCE and perf_counter() - started < limit and best < enough * upper:
        cover.sweep()
        done += 1
        best = max(best, cover.bound())
        stale = 0 if best <= 0.0 or best > marked * (1.0 + PROGRESS) else stale + 1
        marked = best if stale == 0 else marked
        if best > KEEPS_UP * cover.distance() and perf_counter() - started < GROWING * limit:
            stale = 0 if cover.grow() else stale
    return FitBound(float(upper), best, done)


class _Cover:
    """Groups of offers, parts of items and the simplex of every offer, on which one Dykstra's method projects."""

    def __init__(self, offers: Assortments, data: Vec, groups: Groups, items: int) -> None:
        self.offers, self.data = offers, data
        self.groups, self.parts = Relaxation(groups), ItemParts(offers, items)
        self.pulls: Vec = np.zeros(data.size)
        self.point: Vec = data.copy()
        for _ in range(FIRST):
            self.parts.grow(data)

    def grow(self) -> bool:
        """Add some parts where the point is far from the data; False if there are none to add."""
        before = len(self.parts.items)
        for _ in range(1 + before // 8):
            self.parts.grow(self.point - self.data)
        return len(self.parts.items) > before

    def distance(self) -> float:
        """How far the point is from the data: the bound's limit, if no parts are added."""
        return float(np.linalg.norm(self.point - self.data))

    def total(self) -> Vec:
        """The sum of all pulls."""
        return self.groups.total() + self.parts.total() + self.pulls

    def sweep(self) -> None:
        """One round of Dykstra's method."""
        point = self.groups.sweep(self.data - self.parts.total() - self.pulls)
        self.parts.sweep(point, CALLS)
        aim = point + self.pulls
        project_onto_simplices(aim, self.offers.indptr, self.point)
        self.pulls = aim - self.point

    def bound(self) -> float:
        """The bound that the pulls prove, less what rounding may have added."""
        total = -self.total()
        norm = float(np.linalg.norm(total))
        if norm == 0.0:
            return 0.0
        pulls = [self.groups.pulls, self.pulls, *(piece.pull for piece in self.parts.pieces)]
        size = sum(float(np.abs(pull).sum()) for pull in pulls) + float(np.abs(total) @ self.data)
        rounding = ROUNDING * sum(pull.size for pull in pulls) * size
        least = self.groups.least(-self.groups.pulls) + self.parts.least()
        least -= float(np.maximum.reduceat(self.pulls, self.offers.indptr[:-1]).sum())
        return (least - float(total @ self.data) - rounding) / (norm * (1.0 + ROUNDING * self.data.size))


def _seen(assortments: Assortments, target: Target) -> tuple[Assortments, Vec]:
    """The offers that have data, with those data."""
    if target.seen is None:
        return assortments, target.frequencies
    shown = np.flatnonzero(target.seen[assortments.indptr[:-1]])
    if not shown.size:
        raise ValueError("No offer has been seen yet: observe some choices first.")
    offers, places = some_offers(assortments, shown)
    return offers, target.frequencies[places]
