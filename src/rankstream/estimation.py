"""estimate: run the solver on data until the model is good enough, and keep the history."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from rankstream import learners, oracles
from rankstream._types import Vec
from rankstream.assortments import Assortments
from rankstream.certificate import Certificate
from rankstream.chunks import chunk
from rankstream.counts import ChoiceCounts, Target, as_target
from rankstream.distances import Distance
from rankstream.learners import Learner
from rankstream.model import RankingModel
from rankstream.oracles import Oracle, Ties
from rankstream.solver import Solver, State
from rankstream.validate import number_between, whole_number

Stop = Literal["mae", "gap"]
CHUNK = 256


@dataclass(frozen=True, eq=False)
class History:
    """One entry per round; ``gap`` is NaN where it was not certified, ``observations`` where they are not known.

    ``mae`` is that of the stopping rule, against the averaged frequencies p_bar; ``latest_mae`` is against those of the
    round itself. They differ while the data move.
    """

    observations: Vec
    mae: Vec
    latest_mae: Vec
    distance: Vec
    rankings: Vec
    gap: Vec


@dataclass(frozen=True, eq=False)
class Estimate:
    """What an estimation found: the model, what is proven about it, and how it got there."""

    model: RankingModel
    certificate: Certificate
    rounds: int
    converged: bool
    history: History


@dataclass
class Run:
    """A solver at work: one ``advance`` per round, and a ``result`` at any time."""

    solver: Solver
    tolerance: float = 1e-3
    stop: Stop = "mae"
    certify_every: int | None = None
    state: State = field(init=False)
    converged: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        number_between("tolerance", self.tolerance, 0.0)
        if self.stop not in ("mae", "gap"):
            raise ValueError(f"There is no stopping rule {self.stop!r}: choose 'mae' or 'gap'.")
        if self.certify_every is not None:
            whole_number("certify_every", self.certify_every, least=1)
        if self.certify_every is None and self.stop == "gap":
            self.certify_every = 10
        self.state = self.solver.init()
        self._rows: list[tuple[float, ...]] = []

    def advance(self, data: ChoiceCounts | Target | ArrayLike) -> bool:
        """Play one round; True once the tolerance is met."""
        state = self.solver.step(self.state, data)
        mae = state.mae
        latest = state.latest_mae if state.sums.moved else mae
        distance = self.solver.distance.value(state.sums.mean_vertex, state.sums.mean_frequencies)
        gap = np.nan
        if self.certify_every is not None and state.round % self.certify_every == 0:
            gap = self.solver.certificate(state).gap
        self._rows.append((state.observations, mae, latest, distance, len(state.weights), gap))
        self.converged = self._is_enough(mae, gap)
        return self.converged

    def _is_enough(self, mae: float, gap: float) -> bool:
        return not np.isnan(mae) and (mae if self.stop == "mae" else gap) <= self.tolerance

    def advance_many(self, target: Target, rounds: int) -> bool:
        """Play up to so many rounds on constant data, in compiled chunks where all parts are built in."""
        compiled = chunk(self.solver) if self._stays(target) else None
        left = rounds
        while left > 0 and not self.converged:
            if compiled is None:
                self.advance(target)
                left -= 1
            else:
                every = self.certify_every or CHUNK
                enough = self.tolerance if self.stop == "mae" else -1.0
                size = min(left, CHUNK, every - self.state.round % every)
                left -= self._record(target, compiled.play(self.state, target.frequencies, size, enough))
        return self.converged

    def _stays(self, target: Target) -> bool:
        """Whether the target is all that this run has seen, and whole."""
        sums = self.state.sums
        same = not self.state.round or np.array_equal(sums.latest, target.frequencies)
        return target.seen is None and same and not sums.moved

    def _record(self, target: Target, history: Vec) -> int:
        """Take a chunk into the history, and certify at its end where that is due; how many rounds it had."""
        self.state.seen, self.state.observations = None, target.observations
        gap = np.nan
        if self.certify_every is not None and self.state.round % self.certify_every == 0:
            gap = self.solver.certificate(self.state).gap
        for mae, distance, rankings in history.tolist():
            self._rows.append((target.observations, mae, mae, distance, rankings, np.nan))
        self._rows[-1] = (*self._rows[-1][:-1], gap)
        self.converged = self._is_enough(self._rows[-1][1], gap)
        return len(history)

    @property
    def last(self) -> dict[str, float]:
        """The last round's entry of the history."""
        return dict(zip(History.__dataclass_fields__, self._rows[-1], strict=True))

    def result(self) -> Estimate:
        """The model so far, certified."""
        model, certificate = self.solver.snapshot(self.state)
        columns = np.array(self._rows).T.copy()
        columns[-1, -1] = certificate.gap
        converged = self._is_enough(self.last["mae"], certificate.gap)
        return Estimate(model, certificate, self.state.round, converged, History(*columns))


def estimate(
    assortments: Assortments,
    data: ChoiceCounts | ArrayLike | Iterable[ChoiceCounts | ArrayLike],
    *,
    distance: str | Distance = "l2",
    learner: str | Learner[Any] = "mirror-descent",
    smoothing: float | None = None,
    oracle: Oracle | None = None,
    ties: Ties = "random",
    tolerance: float = 1e-3,
    stop: Stop = "mae",
    max_rounds: int = 10_000,
    certify_every: int | None = None,
    seed: int = 0,
) -> Estimate:
    """Estimate a ranking model from frequencies, from counts, or from an iterable that yields either once a round.

    It stops when MAE(x_bar, p_bar) <= ``tolerance`` (``stop="gap"``: when the certified gap is), after ``max_rounds``,
    which is also the horizon T where the learner needs one, or when the data end. A distance given by name is plain, or
    smoothed as is best for the horizon where the learner needs it; ``smoothing`` sets it. Counts leave offers that
    nobody has seen out of distance, error and certificate until their first observation.

    >>> offers = Assortments([("tea", "nothing"), ("pie", "nothing")])
    >>> fit = estimate(offers, [0.5, 0.5, 0.25, 0.75])
    >>> fit.converged, round(fit.model.predict(("tea", "nothing"))["tea"], 2)
    (True, 0.5)
    """
    whole_number("max_rounds", max_rounds, least=1)
    solver = make_solver(assortments, distance, learner, oracle, ties, max_rounds, seed, smoothing)
    run = Run(solver, tolerance, stop, certify_every)
    if isinstance(data, ChoiceCounts) or _is_vector(data):
        run.advance_many(_constant(assortments, data), max_rounds)
    else:
        for _, target in zip(range(max_rounds), _stream(data), strict=False):
            if run.advance(target):
                break
    if not run.state.round:
        raise ValueError("The data ended before the first round: give at least one frequency vector or ChoiceCounts.")
    return run.result()


def make_solver(
    assortments: Assortments,
    distance: str | Distance,
    learner: str | Learner[Any],
    oracle: Oracle | None,
    ties: Ties,
    horizon: int,
    seed: int,
    smoothing: float | None = None,
) -> Solver:
    """A solver from names or objects."""
    if not isinstance(assortments, Assortments):
        raise ValueError(f"The assortments must be an Assortments, not {type(assortments).__name__}.")
    if oracle is None:
        oracle = oracles.auto(assortments, ties, whole_number("seed", seed))
    if not hasattr(oracle, "cheapest"):
        raise ValueError(f"The oracle {oracle!r} has no method cheapest: leave it out, or see oracles.Oracle.")
    form, player = learners.match(distance, learner, assortments, horizon, smoothing)
    return Solver(assortments, form, player, oracle)


def _constant(assortments: Assortments, data: Any) -> Target:
    if isinstance(data, ChoiceCounts) and not data.observations:
        raise ValueError("The counts hold no observations yet: observe some choices first.")
    return as_target(assortments, data)


def _stream(data: Any) -> Iterator[ChoiceCounts | Target | ArrayLike]:
    if isinstance(data, str | bytes | dict) or not isinstance(data, Iterable):
        kind = type(data).__name__
        raise ValueError(f"The data are a {kind}: give frequencies, ChoiceCounts, or an iterable of them.")
    return iter(data)


def _is_vector(data: Any) -> bool:
    if hasattr(data, "__array__"):
        return np.ndim(data) < 2
    return isinstance(data, list | tuple) and all(
        np.ndim(value) == 0 and not isinstance(value, ChoiceCounts) for value in data
    )
