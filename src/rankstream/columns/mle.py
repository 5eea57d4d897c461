"""Van Ryzin and Vulcano's estimator: maximum likelihood over rankings, by column generation and an interior point."""

from dataclasses import dataclass, field
from functools import cached_property
from math import log
from time import perf_counter

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from rankstream._core import Codes, Vec, Watch, number_between, unwatched, whole_number
from rankstream._core.threads import one_blas_thread
from rankstream.columns.data import ColumnFinder, Columns, Limits, MakeOracle, Observed, observe, on_top
from rankstream.data.counts import ChoiceCounts
from rankstream.models.rankings import RankingModel
from rankstream.oracles import Ties

CENTRING = 0.2  # target of the barrier as a share of the proven gap; benchmarks/baselines.py times the fits
MAX_STEP_TO_BOUNDARY = 0.99  # of the step at which the first weight would be 0: all stay positive; a usual value
MAX_HALVINGS = 30  # of a step, which is then as small as rounding


@dataclass(frozen=True, eq=False)
class KullbackLeibler:
    """The loss of the likelihood: sum of q log(p / x) over all choices, in nats per observation (Appendix B.2).

    Coordinates without choices drop out, since 0 log 0 = 0.
    """

    observed: Observed

    def __post_init__(self) -> None:
        for place in self.observed.impossible.tolist():
            offers = self.observed.assortments
            item, offer = offers.items[offers.members[place]], offers.offers[offers.owner[place]]
            raise ValueError(
                f"The choice {item!r} of the offer {offer!r} contradicts the order, which ranks another item "
                "of the offer first: correct the record, or leave out the order."
            )

    @cached_property
    def places(self) -> Codes:
        """The coordinates with choices."""
        return np.flatnonzero(self.observed.frequencies > 0.0)

    @cached_property
    def _shares(self) -> Vec:
        return self.observed.shares[self.places]

    def value(self, point: Vec) -> float:
        """The divergence."""
        return float(self._shares @ np.log(self.observed.frequencies[self.places] / point))

    def slope(self, point: Vec) -> Vec:
        """Minus shares over probabilities."""
        return -self._shares / point

    def curvature(self, point: Vec) -> Vec:
        """The second derivatives: shares over squared probabilities."""
        return self._shares / point**2

    def slack(self, progress: float) -> float:
        """Bound how much less any distribution can lose, from the least <slope, vertex>.

        The log of the largest <q / x, vertex>: by Jensen's inequality, and less than the usual (largest - 1).
        """
        return log(max(-progress, 1.0))


@dataclass
class _Interior:
    """A primal-dual interior-point method that adds columns at every step.

    Finding columns is cheap, so it does not wait for an optimal master problem; well-centred duals also give better
    columns. The barrier follows the proven gap: CENTRING * gap, shared by all columns.
    """

    loss: KullbackLeibler
    finder: ColumnFinder
    columns: Columns = field(init=False)
    seconds: dict[str, float] = field(default_factory=lambda: {"master": 0.0, "pricing": 0.0})

    def __post_init__(self) -> None:
        offers, frequencies = self.finder.assortments, self.loss.observed.frequencies
        self.columns = Columns(offers)
        self.columns.add([*on_top(offers), *self.finder.cheapest(-frequencies).rankings])
        self.weights = np.full(len(self.columns), 1.0 / len(self.columns))
        self.slack = np.full(len(self.columns), 0.1)
        self.barrier = np.inf

    @property
    def _matrix(self) -> Vec:
        return self.columns.vertices[:, self.loss.places]

    def run(self, limits: Limits) -> tuple[Codes, Vec, float, float, int]:
        """Iterate to the limits; return rankings, weights, loss, bound and the number of steps."""
        bound, best = -np.inf, (np.inf, self.weights)
        iterations = 0
        while iterations < limits.max_rounds:
            iterations += 1
            point = self.weights @ self._matrix
            value = self.loss.value(point)
            rankings, gap, seen = self._find_columns(point)
            if value <= best[0]:
                best = (value, self.weights)
            bound = max(bound, value - gap)
            stuck = seen <= 0.1 * limits.tolerance  # the oracle finds nothing better, but cannot prove it
            found = best[0] - bound <= limits.tolerance or stuck
            if found or limits.watch(f"step {iterations:,}, gap {best[0] - bound:.2g}"):
                break
            start = perf_counter()
            self._step(rankings, max(seen, 1e-15))
            self.seconds["master"] += perf_counter() - start
        return *self._prune(*best, bound, limits.tolerance), bound, iterations

    def _find_columns(self, point: Vec) -> tuple[Codes, float, float]:
        """Return rankings that pay, the proven bound on any improvement, and the improvement the oracle found."""
        start = perf_counter()
        slope = self.loss.slope(point)
        costs = np.zeros(self.finder.assortments.n_coordinates)
        costs[self.loss.places] = slope
        answer = self.finder.cheapest(costs, below=float(slope @ point))
        self.seconds["pricing"] += perf_counter() - start
        return answer.rankings, self.loss.slack(answer.bound), self.loss.slack(answer.value)

    def _step(self, rankings: Codes, gap: float) -> None:
        """Add the columns, and make one Newton step towards the central path."""
        new = len(self.columns.add(rankings))
        aim = CENTRING * gap / len(self.columns)
        self.barrier = aim if new else min(aim, self.barrier)
        if new:
            self.slack = np.append(self.slack, np.full(new, self.barrier**0.5))
            self.weights = np.append(self.weights, np.full(new, self.barrier**0.5))
            self.weights = self.weights / self.weights.sum()
        matrix = self._matrix
        point = self.weights @ matrix
        pull = self.barrier / self.weights - matrix @ self.loss.slope(point)
        solved = self._solve(matrix, self.loss.curvature(point), np.stack((pull, np.ones(pull.size)), axis=1))
        move = solved[:, 0] - solved[:, 1] * (solved[:, 0].sum() / solved[:, 1].sum())
        change = self.barrier / self.weights - self.slack - self.slack / self.weights * move
        weights = self.weights + self._length(matrix, move, float(pull @ move)) * move
        self.weights = weights / weights.sum()
        self.slack = self.slack + _longest(self.slack, change) * change

    def _length(self, matrix: Vec, move: Vec, gain: float) -> float:
        """Return a step length that keeps all weights positive and does not increase loss plus barrier."""

        def height(weights: Vec) -> float:
            return self.loss.value(weights @ matrix) - self.barrier * float(np.log(weights).sum())

        length, here = _longest(self.weights, move), height(self.weights)
        for _ in range(MAX_HALVINGS):
            if height(self.weights + length * move) <= here - 1e-4 * length * gain + 1e-14 * abs(here):
                break
            length *= 0.5
        return length

    def _solve(self, matrix: Vec, curvature: Vec, right: Vec) -> Vec:
        """Solve (matrix diag(curvature) matrix^T + diag(slack / weights)) x = right, regularised if necessary."""
        system = (matrix * curvature) @ matrix.T
        diagonal = np.diag_indices_from(system)
        largest = float(system[diagonal].max())
        system[diagonal] += self.slack / self.weights
        for extra in (0.0, 1e-15, 1e-12, 1e-9):
            system[diagonal] += extra * largest
            try:
                factor = cho_factor(system, lower=True, check_finite=False)
            except LinAlgError:
                continue
            solved: Vec = cho_solve(factor, right, check_finite=False)
            return solved
        raise RuntimeError("The Newton system is not positive definite: raise the tolerance.")

    def _prune(self, value: float, weights: Vec, bound: float, tolerance: float) -> tuple[Codes, Vec, float]:
        """Drop columns that are not needed at this tolerance; return rankings, weights and loss."""
        matrix, orders = self.columns.vertices[: weights.size], self.columns.orders[: weights.size]
        for least in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8):
            large = np.where(weights >= least, weights, 0.0)
            if not large.any() or not matrix[large > 0.0][:, self.loss.places].any(axis=0).all():
                continue
            large = large / large.sum()
            loss = self.loss.value((large @ matrix)[self.loss.places])
            if loss - bound <= tolerance:
                return orders, large, loss
        return orders, weights, value


def _longest(values: Vec, move: Vec) -> float:
    down = move < 0.0
    return float(min(1.0, MAX_STEP_TO_BOUNDARY * (values[down] / -move[down]).min(initial=np.inf)))


@dataclass(frozen=True, eq=False)
class MaximumLikelihood:
    """The most likely model: its divergence ``value`` from the data in nats per observation, and a proven ``bound``.

    No distribution over rankings has a smaller divergence than that; ``proven`` is whether their gap is within the
    tolerance. ``log_likelihood`` is that of all observations; no model's is more than ``observations * gap`` higher.
    ``seconds`` times the parts of the search.
    """

    model: RankingModel
    value: float
    bound: float
    proven: bool
    iterations: int
    seconds: dict[str, float]
    log_likelihood: float

    @property
    def gap(self) -> float:
        """How far the value can be from the minimum."""
        return self.value - self.bound


def fit_mle(
    counts: ChoiceCounts,
    *,
    tolerance: float = 1e-4,
    max_rounds: int = 2000,
    oracle: MakeOracle | None = None,
    ties: Ties = "random",
    seed: int = 0,
    watch: Watch = unwatched,
) -> MaximumLikelihood:
    """Fit the most likely distribution over rankings (Appendix B.2), proven up to ``tolerance`` nats per choice.

    The gap comes from the pricing problem. With q as shares of all observations, log-likelihoods per observation
    differ by at most log(max over rankings of sum of q a / x), by Jensen's inequality. At the optimum that is 0 (where
    the paper's rule says K, read 1).

    Parameters
    ----------
    counts : ChoiceCounts
        The choices; frequencies do not work, because they have no weights for the offers.
    tolerance : float
        The proven gap at which to stop, in nats per choice.
    max_rounds : int
        Maximum number of oracle calls.
    oracle, ties, seed : optional
        As for ``revenue_range``.
    watch : Watch
        Called after every step; the fit stops when it returns True (see ``proven``).

    Examples
    --------
    >>> from rankstream import Assortments
    >>> counts = ChoiceCounts(Assortments([("tea", "pie"), ("tea", "pie", "nothing")]), [40, 60, 5, 2, 3])
    >>> found = fit_mle(counts)
    >>> found.proven, 0.0 <= found.gap <= 1e-4, found.log_likelihood < 0.0
    (True, True, True)
    """
    started = perf_counter()
    if not isinstance(counts, ChoiceCounts):
        raise ValueError(
            f"A likelihood needs ChoiceCounts, not {type(counts).__name__}: frequencies lack the number of choices."
        )
    number_between("tolerance", tolerance, 0.0)
    whole_number("max_rounds", max_rounds, least=1)
    limits = Limits(tolerance, max_rounds=max_rounds, watch=watch)
    observed = observe(counts)
    finder = observed.finder(oracle, ties, seed)
    begun = perf_counter()
    loss = KullbackLeibler(observed)
    with one_blas_thread():  # systems are small: with more threads, busy cores wait for each other
        interior = _Interior(loss, finder)
        orders, weights, value, bound, iterations = interior.run(limits)
    point = weights @ interior.columns.vertices[: weights.size]
    height = float(observed.totals.sum() * (observed.shares[loss.places] @ np.log(point[loss.places])))
    seconds = interior.seconds | {"start": begun - started, "total": perf_counter() - started}
    model, proven = observed.model(orders, weights, ties, seed), value - bound <= tolerance
    return MaximumLikelihood(model, value, bound, proven, iterations, seconds, log_likelihood=height)
