"""Methods that find a mixture of few rankings: the paper's solver for streams, and the nearest mixture."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rankstream import distances
from rankstream._core import number_between, until, unwatched, whole_number
from rankstream.columns import corrective
from rankstream.columns.lower_bound import is_plain_l2, prove_lower_bound
from rankstream.distances import Distance
from rankstream.estimation.task import Task, Weighting, offer_weights, with_proof
from rankstream.learners import Learner
from rankstream.models.protocol import ChoiceModel
from rankstream.oracles import Oracle, Ties
from rankstream.oracles.search.local import SearchOracle, hurried
from rankstream.solver.loop import make_solver
from rankstream.solver.runs import CHUNK_ROUNDS, Estimate, Run

ROUNDS_PART = 0.9
"""The part of the time for rounds if the oracle is a search; the rest is for a proof. Not tuned."""


@dataclass(frozen=True, kw_only=True)
class PrimalDual:
    """The paper's solver, round by round: for streams, and for every distance and learner.

    Parameters
    ----------
    distance : str or Distance
        The distance to minimise: "l1", "l2", "linf", "kl", "max-difference", "squared-l2", "l1.5", ... or an object.
    learner : str or Learner
        The dual player: "mirror-descent", "dual-averaging", "follow-the-leader", ... or an object.
    weights : "observations" or "equal"
        Whether offers of counts are weighted by the root of their observations (for "kl" by their share).
    smoothing : float, optional
        Smoothing of a distance given by name (default: the best for the horizon if the learner needs it, else none).
    oracle : Oracle, optional
        The oracle that finds the cheapest ranking (default: ``oracles.auto``).
    ties : "random", "first" or "last"
        The rule among rankings with the same choices from all offers.
    tolerance_mae : float
        The mean absolute error against the averaged frequencies at which the rounds end.
    gap : float, optional
        End at this certified gap instead.
    max_rounds : int
        Maximum number of rounds, and the horizon T if the learner needs one.
    certify_every : int, optional
        Number of rounds between certified gaps in the history.
    """

    name: ClassVar[str] = "primal-dual"
    tolerance: ClassVar[str] = "tolerance_mae"
    distance: str | Distance = "l2"
    learner: str | Learner[Any] = "mirror-descent"
    weights: Weighting = "observations"
    smoothing: float | None = None
    oracle: Oracle | None = None
    ties: Ties = "random"
    tolerance_mae: float = 1e-3
    gap: float | None = None
    max_rounds: int = 10_000
    certify_every: int | None = None

    def fit(self, task: Task) -> Estimate[Any]:
        """As ``Method`` says; where the oracle is a search, a tenth of the time is for a proof."""
        run = self.play(task)
        distance, oracle = run.solver.distance, run.solver.oracle
        proves = task.stands_still and isinstance(oracle, SearchOracle)
        if not proves or not is_plain_l2(distance) or task.proving("proving"):
            return run.result()
        space = prove_lower_bound(distance, task.target, oracle, 0.0, task.proving)
        found = run.result()
        return replace(found, certificate=with_proof(found.certificate, space, distance, task.target))

    def model(self, task: Task) -> ChoiceModel:
        """Fit; see ``Method``."""
        run = self.play(task)
        return run.solver.model(run.state)

    def play(self, task: Task) -> Run:
        """Return the run after its last round."""
        whole_number("max_rounds", self.max_rounds, least=1)
        run = self.start(task)
        if task.stands_still:
            self._play_still(run, task)
        elif (rows := task.rows(self.max_rounds)) is not None:
            run.advance_block(rows)
        else:
            for _, target in zip(range(self.max_rounds), task.stream(), strict=False):
                if run.advance(target) or task.watch(_told(run)):
                    break
        if not run.state.round:
            raise ValueError(
                "The data ended before the first round: give at least one frequency vector or ChoiceCounts."
            )
        return run

    def start(self, task: Task) -> Run:
        """Return a run before its first round."""
        by_offer = offer_weights(self.distance, self.weights, task)
        oracle = self.oracle if self.oracle is not None or self.ties != "random" else task.oracle
        solver = make_solver(
            task.assortments, self.distance, self.learner, oracle, self.ties, self.max_rounds, task.seed,
            self.smoothing, by_offer,
        )  # fmt: skip
        if self.gap is None:
            return Run(solver, number_between("tolerance_mae", self.tolerance_mae, 0.0), "mae", self.certify_every)
        return Run(solver, number_between("gap", self.gap, 0.0), "gap", self.certify_every)

    def _play_still(self, run: Run, task: Task) -> None:
        if task.watch is unwatched:
            run.advance_many(task.target, self.max_rounds)
            return
        with hurried(run.solver.oracle):
            searched = isinstance(run.solver.oracle, SearchOracle)
            step = 1 if task.target.seen is not None or searched else CHUNK_ROUNDS
            watch = until(task.watch, ROUNDS_PART) if searched else task.watch
            while run.state.round < self.max_rounds:
                done = run.advance_many(task.target, min(step, self.max_rounds - run.state.round))
                if done or watch(_told(run)):
                    break


def _told(run: Run) -> str:
    return f"round {run.state.round:,}, error {run.state.mae:.5f}, {len(run.state.weights):,} rankings"


@dataclass(frozen=True, kw_only=True)
class Nearest:
    """The mixture of rankings nearest to fixed data: few rankings, tight bounds on both sides.

    By the fully corrective engine: after every answer of the oracle, the best weights for all rankings so far.

    Parameters
    ----------
    distance : str or Distance
        "l1", "l2" or "linf"; an object brings weights of its own.
    weights : "observations" or "equal"
        Whether an offer counts by the root of its observations, for a distance given by name.
    gap : float
        The certified gap at which the fit ends, in the units of the distance.
    max_rankings : int, optional
        The most rankings to keep, those that lose least; the certificate is that of the smaller model.
    oracle, ties, max_rounds : optional
        As for ``PrimalDual``.
    """

    name: ClassVar[str] = "nearest"
    tolerance: ClassVar[str] = "gap"
    distance: str | Distance = "l2"
    weights: Weighting = "observations"
    gap: float = 1e-3
    max_rankings: int | None = None
    oracle: Oracle | None = None
    ties: Ties = "random"
    max_rounds: int = 10_000

    def fit(self, task: Task) -> Estimate[Any]:
        """Fit; see ``Method``."""
        task.require_still(self.name)
        number_between("gap", self.gap, 0.0)
        found = corrective.fit_nearest(
            task.assortments, task.target, self._form(task),
            self.oracle if self.oracle is not None or self.ties != "random" else task.oracle,
            self.ties, self.gap, "gap", self.max_rounds, task.seed, task.watch, self.oracle is None,
        )  # fmt: skip
        if self.max_rankings is None or len(found.model.weights) <= self.max_rankings:
            return found
        return corrective.with_fewer(found, task.target, self._form(task), self.max_rankings)

    def model(self, task: Task) -> ChoiceModel:
        """Fit; see ``Method``."""
        model: ChoiceModel = self.fit(task).model
        return model

    def _form(self, task: Task) -> Distance:
        weights = offer_weights(self.distance, self.weights, task)
        if isinstance(self.distance, str):
            return distances.make(self.distance, task.assortments, 0.0, weights)
        return self.distance
