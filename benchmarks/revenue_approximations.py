"""The two ways in which Farias, Jagabathula and Shah solve their problem, to compare with the exact range."""

from collections.abc import Iterable, Mapping
from itertools import combinations, permutations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.sparse import coo_array

from rankstream import Assortments, ChoiceCounts
from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Label, Vec
from rankstream.columns.data import Columns, observe
from rankstream.columns.master import FEASIBILITY_TOLERANCE, Ball, Master, Norm, ball
from rankstream.columns.plausible import margins_of
from rankstream.data.assortments import as_offer

Interval = tuple[float, float, float]


def revenue_by_sampling(
    data: ChoiceCounts | ArrayLike,
    offer: Iterable[Label],
    prices: Mapping[Label, float],
    tolerance: float = 0.0,
    *,
    assortments: Assortments | None = None,
    norm: Norm = "l1",
    samples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Low and high over distributions on ``samples`` random rankings, and the tolerance at which any of them fit.

    Constraint sampling on the dual (Calafiore and Campi): it can only be narrower than ``revenue_range`` at the same
    tolerance, and when few rankings matter it fits the data badly, however many are drawn.
    """
    number_between("tolerance", tolerance, 0.0)
    observed = observe(data, assortments)
    labels = as_offer("The offer", offer)
    gains = margins_of(labels, prices, observed.whole)
    whole = Assortments([*observed.assortments.offers, labels], observed.whole.items)
    columns = Columns(whole)
    random = np.random.default_rng(seed)
    columns.add(random.permutation(whole.n_items) for _ in range(whole_number("samples", samples, least=1)))
    size = observed.assortments.n_coordinates
    master = Master(observed, ball(observed.frequencies.size, norm))
    master.add(columns.vertices[:, :size])
    weights = master.solve()[0]
    nearest = master.ball.distance(weights @ columns.vertices[:, :size] - observed.frequencies)
    radius = max(tolerance, nearest) + FEASIBILITY_TOLERANCE
    earned = columns.vertices[:, size:] @ gains
    ends = []
    for sign in (1.0, -1.0):
        master.fix_radius(radius, sign * earned)
        ends.append(float(master.solve()[0] @ earned))
    return ends[0], ends[1], radius


def revenue_by_relaxation(
    data: ChoiceCounts | ArrayLike,
    offer: Iterable[Label],
    prices: Mapping[Label, float],
    tolerance: float = 0.0,
    *,
    assortments: Assortments | None = None,
    norm: Norm = "l1",
) -> Interval:
    """Low and high over a polyhedron that contains all ranking distributions, and the tolerance used.

    The polyhedron is the relaxation of the paper's integer program (Section 4.3): pairwise orders between 0 and 1 that
    are transitive in threes, and choices that no pairwise order contradicts. It stands in for the robust constraint's
    uncertainty set; it can only be wider than ``revenue_range`` at the same tolerance.
    """
    number_between("tolerance", tolerance, 0.0)
    observed = observe(data, assortments)
    labels = as_offer("The offer", offer)
    gains = margins_of(labels, prices, observed.whole)
    whole = Assortments([*observed.assortments.offers, labels], observed.whole.items)
    program = _Relaxed(whole, observed.frequencies, ball(observed.frequencies.size, norm))
    radius = max(tolerance, program.least(program.radius_cost(), np.inf)) + FEASIBILITY_TOLERANCE
    costs = program.choice_costs(gains)
    return program.least(costs, radius), -program.least(-costs, radius), radius


class _Relaxed:
    """Variables: pairwise orders, choices, up and down parts of the residual, and the radius."""

    def __init__(self, offers: Assortments, frequencies: Vec, region: Ball) -> None:
        self._pairs = {pair: k for k, pair in enumerate(combinations(range(offers.n_items), 2))}
        self._rows: tuple[list[int], list[int], list[float]] = ([], [], [])
        self._right: list[float] = []
        self.n_choices, self.size = offers.n_coordinates, frequencies.size
        self._first_choice = len(self._pairs)
        self._first_up = self._first_choice + self.n_choices
        self.n_columns = self._first_up + 2 * self.size + 1
        self._order_rows(offers)
        up = self._first_up + np.arange(self.size)
        for group, budget in enumerate(region.budgets.tolist()):
            own = np.flatnonzero(region.groups == group)
            spent = [(int(column), 1.0) for k in own for column in (up[k], up[k] + self.size)]
            self._row([*spent, (self.n_columns - 1, -budget)], 0.0)
        n_sums, sums = offers.n_offers, self._first_choice + np.arange(self.n_choices)
        rows = np.concatenate((offers.owner, *[n_sums + np.arange(self.size)] * 3))
        columns = np.concatenate((sums, sums[: self.size], up, up + self.size))
        values = np.concatenate((np.ones(self.n_choices + 2 * self.size), -np.ones(self.size)))
        self._equal = coo_array((values, (rows, columns)), shape=(n_sums + self.size, self.n_columns)).tocsr()
        self._equal_right = np.concatenate((np.ones(n_sums), frequencies))

    def _order_rows(self, offers: Assortments) -> None:
        for a, b, c in permutations(range(offers.n_items), 3):
            if a < b and a < c:
                self._row([], 2.0, before=[(a, b), (b, c), (c, a)])
        members, starts = offers.members.tolist(), offers.indptr.tolist()
        for number in range(offers.n_offers):
            for k, other in permutations(range(starts[number], starts[number + 1]), 2):
                self._row([(self._first_choice + k, 1.0)], 1.0, before=[(members[other], members[k])])

    def _row(self, terms: list[tuple[int, float]], most: float, before: Iterable[tuple[int, int]] = ()) -> None:
        """A row "terms and orders add up to at most"; the order of b before a is 1 - that of a before b."""
        number = len(self._right)
        for a, b in before:
            if a > b:
                most -= 1.0
            terms = [*terms, (self._pairs[min(a, b), max(a, b)], 1.0 if a < b else -1.0)]
        rows, columns, values = self._rows
        for column, value in terms:
            rows.append(number)
            columns.append(column)
            values.append(value)
        self._right.append(most)

    def radius_cost(self) -> Vec:
        """Costs that make the radius small."""
        costs = np.zeros(self.n_columns)
        costs[-1] = 1.0
        return costs

    def choice_costs(self, gains: Vec) -> Vec:
        """Costs of the choices from the last offer."""
        costs = np.zeros(self.n_columns)
        costs[self._first_up - gains.size : self._first_up] = gains
        return costs

    def least(self, costs: Vec, radius: float) -> float:
        """The least cost within the radius."""
        rows, columns, values = self._rows
        at_most = coo_array((values, (rows, columns)), shape=(len(self._right), self.n_columns)).tocsr()
        bounds = np.column_stack((np.zeros(self.n_columns), np.full(self.n_columns, np.inf)))
        bounds[: self._first_up, 1] = 1.0
        bounds[-1, 1] = radius
        found = linprog(costs, at_most, self._right, self._equal, self._equal_right, bounds, method="highs")
        return float(found.fun)
