"""What is proven beside the rounds of a stream: a fit of its own, made seldom, and held against every later count."""

from dataclasses import replace

from rankstream._core.threads import one_blas_thread
from rankstream._core.types import Label
from rankstream.certificate import Certificate
from rankstream.columns.lower_bound import HalfSpace, is_plain_l2, prove_lower_bound
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.oracles import QuickOracle, auto
from rankstream.solver.runs import Run
from rankstream.streams.entropy_follower import can_follow
from rankstream.streams.pace import PROGRAM_BYTES
from rankstream.streams.runs.growth import tie_rule

MIN_PROVEN_SHARE = 0.9  # of the distance: where rounds prove less, a proof is looked for
SERVICE_GROWTH = 1.2  # growth of the records after which the service looks for another
OPEN_SHARE, PROOF_ROUNDS = 0.01, 100  # of the distance that a proof may leave open, and rounds (``prove_lower_bound``)


class StreamProof:
    """Where the rounds of a run prove little of its distance, what a proof of its own says.

    Rounds follow the data and prove little after few of them, or where the oracle is a search. So a half-space that
    holds all models is looked for (``prove_lower_bound``). By default that happens whenever there are new records, when
    it is asked: what is said then depends on the counts alone, and is no part of a state that is saved. With ``seldom``
    it happens when there are that many times as many records; as a half-space holds all models whatever the data, it is
    held against all counts in between, also of a market that has grown. Markets that are too large for a
    maximum-entropy model have none. While ``is_paused``, none is looked for, and ``is_owed`` says whether one was due.
    """

    def __init__(self, seldom: float = 1.0) -> None:
        self._seldom = seldom
        self._space: HalfSpace | None = None
        self._offers: tuple[tuple[Label, ...], ...] = ()
        self._records = -1
        self.is_paused = self.is_owed = False

    def sharpen(self, proven: Certificate, run: Run, counts: ChoiceCounts, records: int) -> Certificate:
        """The certificate of a run at these counts, with what the half-space proves where that is more."""
        distance, target, offers = run.solver.distance, counts.target(), counts.assortments
        enough = proven.lower >= MIN_PROVEN_SHARE * proven.upper
        if enough or not counts.observations or not is_plain_l2(distance) or not can_follow(offers):
            return proven
        due = not self._holds(offers) or (records != self._records and records >= self._seldom * self._records)
        self.is_owed = due and self.is_paused
        if due and not self.is_paused:
            with one_blas_thread():
                oracle, gap = run.solver.oracle, OPEN_SHARE * proven.upper
                if isinstance(oracle, QuickOracle):  # a search is not asked where nobody counts the seconds
                    oracle = auto(offers, *tie_rule(oracle), memory=PROGRAM_BYTES)
                self._space = prove_lower_bound(distance, target, oracle, gap, rounds=PROOF_ROUNDS)
            self._records, self._offers = records, offers.offers
        space = self._space if self._holds(offers) else None
        lower = 0.0 if space is None else space.over(offers).lower(distance, target)
        if lower <= proven.lower:
            return proven
        return replace(proven, lower=lower, oracle_regret=0.0, dual_regret=proven.upper - lower)

    def _holds(self, offers: Assortments) -> bool:
        """Whether these offers begin with those that the half-space is of: then it holds their models, too."""
        return offers.offers[: len(self._offers)] == self._offers
