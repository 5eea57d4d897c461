"""Runs of a solver on data, round by round or in compiled chunks, with their history."""

from array import array
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core import Codes, Vec, number_between, whole_number
from rankstream.certificate import Certificate
from rankstream.certificate.gap import distance_on
from rankstream.data.counts import ChoiceCounts, Target
from rankstream.distances import L1, L2, HighNorm, LInf
from rankstream.distances import domain_kernels as domains
from rankstream.learners import (
    DualAveraging,
    FollowTheLeader,
    MirrorDescent,
    NaiveFrankWolfe,
    StronglyConvexMirrorDescent,
)
from rankstream.learners.players import Averaged, Moved
from rankstream.models.rankings import RankingModel
from rankstream.oracles import LatticeOracle
from rankstream.oracles.tables.lattice import NOT_FINITE, UNFORCED
from rankstream.solver import chunk_kernels as kernels
from rankstream.solver.loop import Solver, State

LEARNERS = {
    MirrorDescent: kernels.CONSTANT_STEP,
    StronglyConvexMirrorDescent: kernels.FALLING_STEP,
    FollowTheLeader: kernels.LEADER,
    NaiveFrankWolfe: kernels.NAIVE,
    DualAveraging: kernels.AVERAGING,
}
DOMAINS: dict[type, int] = {L2: domains.BALL, HighNorm: domains.BALL, L1: domains.BOX, LInf: domains.SIMPLEX}
Stop = Literal["mae", "gap"]
CHUNK_ROUNDS = 256  # per compiled call; the watch is checked between calls (benchmarks/rounds.py times chunks)


@dataclass(frozen=True)
class Chunk:
    """A solver made of built-in parts, which plays many rounds in one compiled call.

    It uses the same oracle kernels as ``Solver.step``, but adds sums in a different order, so results agree only up
    to rounding.
    """

    solver: Solver
    oracle: LatticeOracle
    domain: int
    learner: int
    settings: Vec
    scale: Vec

    def play(self, state: State, frequencies: Vec, rounds: int, tolerance: float) -> Vec:
        """Play up to ``rounds`` rounds, until the error is at most ``tolerance``.

        ``frequencies`` has one row per round, or a single row for all rounds. Returns one row per round played:
        error against p_bar, error against p_t, distance, and number of rankings so far.
        """
        sums, before = state.sums, state.round
        dual, memory, squares = _read(self.learner, state)
        settings = self.settings.copy()
        if self.learner == kernels.CONSTANT_STEP:
            settings[kernels.STEP] = state.learner.step
        totals = np.array([before, sums.total_weight, sums.answer, sums.offset, sums.potential, squares])
        rankings = np.empty((rounds, self.oracle.assortments.n_items), dtype=np.int64)
        history = np.empty((rounds, 4))
        at_rest = sums.rounds_at_rest(frequencies[:rounds])
        if at_rest and len(frequencies) == 1:
            at_rest = rounds
        data: Any = (frequencies, at_rest, tolerance)
        problem: Any = (self.domain, self.learner, settings, self.scale, *data, *self.oracle.tables, UNFORCED)
        space: Any = (np.empty((3, frequencies.shape[1])), np.empty((2, dual.size)))
        running: Any = (totals, sums.vertex, sums.frequencies, sums.dual, dual, memory, *space, rankings, history)
        played = kernels.play_rounds(*problem, *running)
        if not played:
            raise ValueError(NOT_FINITE)
        state.round = int(totals[kernels.ROUND])
        sums.total_weight, sums.answer, sums.offset, sums.potential = totals[1:5].tolist()
        sums.moved = played > at_rest
        sums.latest = frequencies[min(played, len(frequencies)) - 1].copy()
        history[:played, kernels.RANKINGS] = self._collect(state, rankings[:played])
        _write(self.learner, state, dual, memory, float(totals[kernels.SQUARES]))
        return history[:played]

    def _collect(self, state: State, rankings: Codes) -> list[int]:
        """Add the rankings of the latest rounds to the state; return the number of distinct ones after each round."""
        weights, counts = state.weights, []
        keys: Any = rankings.view(np.dtype((np.void, rankings[0].nbytes))).ravel().tolist()
        for number, key in enumerate(keys, start=state.round - len(rankings) + 1):
            weights[key] = weights.get(key, 0.0) + self.solver.learner.round_weight(number)
            counts.append(len(weights))
        return counts


def chunk(solver: Solver) -> Chunk | None:
    """Return the solver in compiled form, or None if one of its parts is not built in."""
    distance: Any = solver.distance
    learner: Any = solver.learner
    oracle = solver.oracle
    if type(learner) not in LEARNERS or type(oracle) is not LatticeOracle or type(solver) is not Solver:
        return None
    domain = DOMAINS.get(type(distance))
    if domain is None or getattr(distance, "q", 2.0) != 2.0 or learner.weighting is not None:
        return None
    firmness = learner.firmness(distance) if isinstance(learner, DualAveraging) else 0.0
    settings = np.array([distance.smoothing, getattr(distance, "radius", 1.0), 0.0, learner.power, firmness])
    scale = np.ones(oracle.assortments.n_coordinates) if distance.scale is None else distance.scale
    return Chunk(solver, oracle, domain, LEARNERS[type(learner)], settings, scale)


def _read(learner: int, state: State) -> tuple[Vec, Vec, float]:
    """Copy the learner's next dual and memory, and return its sum of squared weights."""
    if learner == kernels.AVERAGING:
        return state.learner.dual.copy(), state.learner.pulls.copy(), state.learner.squares
    if learner in (kernels.CONSTANT_STEP, kernels.FALLING_STEP):
        return state.learner.dual.copy(), state.learner.image.copy(), 0.0
    return state.learner.copy(), np.zeros(0), 0.0


def _write(learner: int, state: State, dual: Vec, memory: Vec, squares: float) -> None:
    if learner == kernels.AVERAGING:
        state.learner = Averaged(dual, memory, squares)
    elif learner in (kernels.CONSTANT_STEP, kernels.FALLING_STEP):
        state.learner = Moved(dual, memory, state.learner.step)
    else:
        state.learner = dual


@dataclass(frozen=True, eq=False)
class History:
    """One entry per round; ``gap`` is NaN in rounds without a certificate, ``observations`` if unknown.

    ``mae`` compares the model with the averaged frequencies p_bar (the stopping rule), ``latest_mae`` with those of
    the round itself. They differ while the data change.
    """

    observations: Vec
    mae: Vec
    latest_mae: Vec
    distance: Vec
    rankings: Vec
    gap: Vec


COLUMNS = tuple(History.__dataclass_fields__)


M = TypeVar("M", covariant=True)


@dataclass(frozen=True, eq=False)
class Estimate(Generic[M]):
    """The result of an estimation: the model, its certificate, and the history of the fit.

    Attributes
    ----------
    model : ChoiceModel
        The fitted model; its class depends on the method.
    certificate : Certificate
        How far the model is from the data, and how near any ranking model can come.
    rounds : int
        How many rounds, iterations or evaluations the method took.
    converged : bool
        Whether the method's tolerance was met.
    history : History
        Errors, distances and gaps, round by round, if the method has rounds.
    method : settings or None
        The settings that were used (for ``"auto"``, the ones it picked); None for a ``Run`` of your own.
    cut_short : bool
        Whether a time budget or Ctrl-C ended the fit early.
    details : EntropyFit or None
        For maximum entropy, the starting point of refits.
    """

    model: M
    certificate: Certificate
    rounds: int
    converged: bool
    history: History
    method: Any = None
    cut_short: bool = False
    details: Any = None


@dataclass
class Run:
    """A solver and its state: ``advance`` plays one or many rounds, ``result`` returns the model at any time.

    With ``keep_history=False`` only the last round's entry is kept, for runs without an end.
    """

    solver: Solver
    tolerance: float = 1e-3
    stop: Stop = "mae"
    certify_every: int | None = None
    keep_history: bool = True
    state: State = field(init=False)
    converged: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        number_between("tolerance", self.tolerance, 0.0)
        if self.stop not in ("mae", "gap"):
            raise ValueError(f"Unknown stopping rule {self.stop!r}: choose 'mae' or 'gap'.")
        if self.certify_every is not None:
            whole_number("certify_every", self.certify_every, least=1)
        if self.certify_every is None and self.stop == "gap":
            self.certify_every = 10
        self.state = self.solver.init()
        self._rows = array("d")

    def advance(self, data: ChoiceCounts | Target | ArrayLike) -> bool:
        """Play one round. Returns True once the tolerance is met."""
        state = self.solver.step(self.state, data)
        mae = state.mae
        latest = state.latest_mae if state.sums.moved else mae
        means = state.sums.mean_vertex, state.sums.mean_frequencies
        distance = distance_on(self.solver.distance, *means, state.seen)
        gap = np.nan
        if self.certify_every is not None and state.round % self.certify_every == 0:
            gap = self.solver.certificate(state).gap
        self._keep(np.array((state.observations, mae, latest, distance, len(state.weights), gap)))
        self.converged = self._meets_tolerance(mae, gap)
        return self.converged

    def _meets_tolerance(self, mae: float, gap: float) -> bool:
        return not np.isnan(mae) and (mae if self.stop == "mae" else gap) <= self.tolerance

    def advance_many(self, target: Target, rounds: int) -> bool:
        """Play up to ``rounds`` rounds on constant data, in compiled chunks if all parts are built in.

        Returns True once the tolerance is met; ``state.round`` has the number of rounds.
        """
        compiled = chunk(self.solver) if target.seen is None else None
        if compiled is not None:
            observations = np.full(1, target.observations)
            return self._advance_compiled(compiled, target.frequencies[np.newaxis], observations, rounds)
        return any(self.advance(target) for _ in range(rounds))

    def advance_block(self, frequencies: Vec, observations: Vec | None = None) -> bool:
        """Play a round on every row of a matrix of checked frequencies (``counts.as_rows``), compiled if possible.

        ``observations`` has the number of choices behind each row. Stops and returns True once the tolerance is met;
        ``state.round`` tells where. The caller may overwrite the rows afterwards.
        """
        rows = np.require(frequencies, dtype=np.float64, requirements=["C", "W"])
        totals = np.full(len(rows), np.nan) if observations is None else np.asarray(observations, dtype=np.float64)
        if rows.ndim != 2 or totals.shape != rows.shape[:1]:
            raise ValueError(f"The rows have shape {rows.shape} and the observations {totals.shape}: give one per row.")
        compiled = chunk(self.solver)
        if compiled is not None:
            return self._advance_compiled(compiled, rows, totals, len(rows))
        pairs = zip(rows, totals.tolist(), strict=True)
        return any(self.advance(Target(row.copy(), None, total)) for row, total in pairs)

    def _advance_compiled(self, compiled: Chunk, rows: Vec, observations: Vec, rounds: int) -> bool:
        """Play chunks that end where a certificate is due; a single row is used for all rounds."""
        every = self.certify_every or CHUNK_ROUNDS
        max_error = self.tolerance if self.stop == "mae" else -1.0  # no error is below -1: the gap decides
        done, self.converged = 0, False
        while done < rounds and not self.converged:
            size = min(rounds - done, CHUNK_ROUNDS, every - self.state.round % every)
            part = slice(done, done + size) if len(rows) > 1 else slice(None)
            history = compiled.play(self.state, rows[part], size, max_error)
            self._record(observations[part], history)
            done += len(history)
        return self.converged

    def _record(self, observations: Vec, history: Vec) -> None:
        """Add a chunk to the history, and certify at its end if that is due."""
        table = np.empty((len(history), len(COLUMNS)))
        table[:, 0] = observations[: len(history)]
        table[:, 1:-1] = history
        table[:, -1] = np.nan
        self.state.seen, self.state.observations = None, float(table[-1, 0])
        if self.certify_every is not None and self.state.round % self.certify_every == 0:
            table[-1, -1] = self.solver.certificate(self.state).gap
        self._keep(table)
        self.converged = self._meets_tolerance(float(table[-1, 1]), float(table[-1, -1]))

    def _keep(self, table: Vec) -> None:
        """Add entries to the history; without ``keep_history``, the last one replaces it."""
        if self.keep_history:
            self._rows.frombytes(table.tobytes())
        else:
            self._rows = array("d", table.ravel()[-len(COLUMNS) :])

    @property
    def last(self) -> dict[str, float]:
        """The last round's entry of the history."""
        return dict(zip(COLUMNS, self._rows[-len(COLUMNS) :], strict=True))

    @property
    def history(self) -> History:
        """The entries of all rounds so far, or of the last one without ``keep_history``."""
        return History(*np.frombuffer(self._rows).reshape(-1, len(COLUMNS)).T.copy())

    def result(self) -> Estimate[RankingModel]:
        """Return the current model with its certificate."""
        model, certificate = self.solver.snapshot(self.state)
        history = self.history
        history.gap[-1] = certificate.gap
        converged = self._meets_tolerance(self.last["mae"], certificate.gap)
        return Estimate(model, certificate, self.state.round, converged, history)
