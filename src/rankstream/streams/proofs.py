"""Lower bounds for a stream: proven now and then by a separate fit, and reused for all later counts."""

from dataclasses import replace

from rankstream._core.threads import one_blas_thread
from rankstream._core.types import Label
from rankstream.certificate import Certificate
from rankstream.columns.lower_bound import HalfSpace, is_plain_l2, prove_lower_bound
from rankstream.data import Assortments, ChoiceCounts
from rankstream.oracles import QuickOracle, auto
from rankstream.solver.runs import Run
from rankstream.streams.entropy_follower import can_follow
from rankstream.streams.pace import PROGRAM_BYTES
from rankstream.streams.runs.growth import tie_rule

MIN_PROVEN_SHARE = 0.9  # of the distance: if rounds prove less, a separate proof is computed
SERVICE_GROWTH = 1.2  # growth of the records after which the service computes another proof
OPEN_SHARE, PROOF_ROUNDS = 0.01, 100  # of the distance that a proof may leave open, and rounds (``prove_lower_bound``)


class StreamProof:
    """A separate proof for runs whose rounds prove only a small part of their distance.

    Few rounds, or an oracle that is a search, give a weak lower bound. So ``prove_lower_bound`` finds a half-space that
    contains all models. By default a new one is computed for new records whenever ``sharpen`` is called. With
    ``seldom`` that waits until there are that many times as many records. A half-space contains all models whatever
    the data, so it is reused in between, also if the market grows. Markets too large for a maximum-entropy model have
    no such proof. While ``is_paused`` none is computed, and ``is_owed`` tells whether one is due.
    """

    def __init__(self, seldom: float = 1.0) -> None:
        self._seldom = seldom
        self._space: HalfSpace | None = None
        self._offers: tuple[tuple[Label, ...], ...] = ()
        self._records = -1
        self.is_paused = self.is_owed = False

    def sharpen(self, proven: Certificate, run: Run, counts: ChoiceCounts, records: int) -> Certificate:
        """Return the certificate of a run at these counts, with the half-space's bound if it is better."""
        distance, target, offers = run.solver.distance, counts.target(), counts.assortments
        enough = proven.lower >= MIN_PROVEN_SHARE * proven.upper
        if enough or not counts.observations or not is_plain_l2(distance) or not can_follow(offers):
            return proven
        due = not self._covers(offers) or (records != self._records and records >= self._seldom * self._records)
        self.is_owed = due and self.is_paused
        if due and not self.is_paused:
            with one_blas_thread():
                oracle, gap = run.solver.oracle, OPEN_SHARE * proven.upper
                if isinstance(oracle, QuickOracle):  # without a time limit, a table is better than a search
                    oracle = auto(offers, *tie_rule(oracle), memory=PROGRAM_BYTES)
                self._space = prove_lower_bound(distance, target, oracle, gap, rounds=PROOF_ROUNDS)
            self._records, self._offers = records, offers.offers
        space = self._space if self._covers(offers) else None
        lower = 0.0 if space is None else space.over(offers).lower(distance, target)
        if lower <= proven.lower:
            return proven
        return replace(proven, lower=lower, oracle_regret=0.0, dual_regret=proven.upper - lower)

    def _covers(self, offers: Assortments) -> bool:
        """Whether these offers begin with those of the half-space: then it contains their models, too."""
        return offers.offers[: len(self._offers)] == self._offers
