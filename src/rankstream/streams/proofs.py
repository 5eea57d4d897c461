"""What is proven beside the rounds of a stream: a fit of its own, made seldom, and held against every later count."""

from dataclasses import replace

from rankstream._core.threads import one_blas_thread
from rankstream._core.types import Label
from rankstream.certificate import Certificate
from rankstream.columns.least import HalfSpace, is_plain_l2, prove_least
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.oracles import Oracle, QuickOracle, auto
from rankstream.solver.runs import Run
from rankstream.streams.growth import tie_rule
from rankstream.streams.served import LARGEST

LITTLE = 0.5  # of the distance: where rounds prove less, a proof is looked for
ANEW = 1.2  # growth of the records after which another is looked for
NEAR = 0.01  # of the distance that a proof may leave open


class StreamProof:
    """Where the rounds of a run prove less than half of its distance, what a proof of its own says.

    Rounds follow the data and prove little after few of them, or where the oracle is a search. So a half-space that
    holds all models is looked for (``prove_least``), once and again when there are a fifth more records. As it holds
    all models whatever the data, it is held against all counts in between, also of a market that has grown. It is no
    part of a state that is saved: a run that goes on from a file looks for it again, when it is asked. Markets that are
    too large for a maximum-entropy model have none.
    """

    def __init__(self) -> None:
        self._space: HalfSpace | None = None
        self._offers: tuple[tuple[Label, ...], ...] = ()
        self._records = 0.0

    def sharpen(self, proven: Certificate, run: Run, counts: ChoiceCounts, records: float) -> Certificate:
        """The certificate of a run at these counts, with what the half-space proves where that is more."""
        distance, target = run.solver.distance, counts.target()
        if proven.lower >= LITTLE * proven.upper or not is_plain_l2(distance) or not _is_small(counts.assortments):
            return proven
        if records >= ANEW * self._records or not self._holds(counts.assortments):
            with one_blas_thread():
                self._space = prove_least(distance, target, _oracle(run, counts.assortments), NEAR * proven.upper)
            self._records, self._offers = records, counts.assortments.offers
        lower = 0.0 if self._space is None else self._space.over(counts.assortments).lower(distance, target)
        if lower <= proven.lower:
            return proven
        return replace(proven, lower=lower, oracle_regret=0.0, dual_regret=proven.upper - lower)

    def _holds(self, offers: Assortments) -> bool:
        """Whether these offers begin with those that the half-space is of: then it holds their models, too."""
        return offers.offers[: len(self._offers)] == self._offers


def _is_small(offers: Assortments) -> bool:
    sizes = offers.n_offers, offers.n_items, offers.n_coordinates
    return all(own <= most for own, most in zip(sizes, LARGEST, strict=True))


def _oracle(run: Run, offers: Assortments) -> Oracle:
    """The oracle of the run, unless it is only quick. (A search is not asked where nobody counts the seconds.)"""
    oracle = run.solver.oracle
    return auto(offers, *tie_rule(oracle)) if isinstance(oracle, QuickOracle) else oracle
