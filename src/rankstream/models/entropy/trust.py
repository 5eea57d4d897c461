"""How far data may tilt a prior: the trust that predicts held-out offers best."""

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.data.counts import ChoiceCounts
from rankstream.models.entropy.ensemble import Fold, Stack
from rankstream.models.entropy.problem import Tilted, TiltProblem
from rankstream.models.entropy.ranking_laws import Prior, SampledLaw
from rankstream.models.entropy.soft_lattice import SoftLattice

TRIED_TRUSTS = (None, 300.0, 100.0, 30.0, 10.0, 3.0)
"""From not tilting at all to following the data closely."""
# chosen on markets of benchmarks/truths.py; benchmarks/accuracy.py prints the errors of others
USUAL_TRUST = 100.0
MAX_NATS_BEHIND = 3.0  # nats below the best so far, where going on along the path ends
MAX_STATES, MAX_FOLDS = 3000, 5  # unions of offers, and folds: beyond, choosing would take longer than fitting
N_DRAWN_RANKINGS = 4000  # rankings that stand for a prior where its program is too large
COMPARED_GAP_NATS = 0.02  # the duality gap of a tilt that is only to be compared, in nats


def choose_trust(
    stack: Stack, counts: ChoiceCounts, program: SoftLattice | None, seed: int = 0, watch: Watch = unwatched
) -> tuple[float | None, dict[str, float]]:
    """The trust on the path with the highest held-out likelihood, and what each step that was tried scored.

    One nat is asked for every step away from 100 (from no tilt, if logit or pool have most of the weight). Without
    folds, or with more than 3,000 unions of offers, where every step takes long, it is 100.

    Parameters
    ----------
    stack : Stack
        The guides with their weights, and as they were fitted to the folds.
    counts : ChoiceCounts
        The choices, of offers with observations only.
    program : SoftLattice or None
        The exact program over all offers; None where it is too large. Then rankings drawn from the prior take its
        place, as they will in the fit, and whether to tilt at all is decided by what they predict.
    seed : int
        Seed of these rankings.
    watch : Watch
        When it says that it is enough, the steps so far decide.

    """
    if not stack.folds or (program is not None and program.states.size > MAX_STATES):
        return USUAL_TRUST, {}
    settled = max(stack.logit_weight, stack.pool_weight) > 0.5
    begin = 0 if program is None or settled else TRIED_TRUSTS.index(USUAL_TRUST)
    step = max(1, len(stack.folds) // MAX_FOLDS)
    tests = []
    for fold in stack.folds[::step][:MAX_FOLDS]:
        prior = fold.prior(stack)
        law: Tilted
        if program is None:
            law = SampledLaw(counts.assortments, prior, N_DRAWN_RANKINGS, seed)
        else:
            law = program.with_prior(prior)
        tests.append(_HeldOut(law, prior, counts, fold))
    scores = {begin: sum(test.score(TRIED_TRUSTS[begin]) for test in tests)}
    for direction in (1, -1):
        place = begin + direction
        while 0 <= place < len(TRIED_TRUSTS) and not watch("choosing how closely to follow the choices"):
            scores[place] = sum(test.score(TRIED_TRUSTS[place]) for test in tests) - abs(place - begin)
            if scores[place] < max(scores.values()) - MAX_NATS_BEHIND:
                break
            place += direction
    best = max(scores, key=lambda place: scores[place])
    words = ["none" if trust is None else f"{trust:g}" for trust in TRIED_TRUSTS]
    return TRIED_TRUSTS[best], {words[place]: round(scores[place] - scores[best], 2) for place in sorted(scores)}


class _HeldOut:
    """The program over all offers with the prior of one fold; duals only on the offers that are not held out.

    So the choice probabilities of the held-out offers come with every evaluation.
    """

    def __init__(self, program: Tilted, prior: Prior, counts: ChoiceCounts, fold: Fold) -> None:
        self.program, self.size = program, counts.assortments.n_coordinates
        self.untilted = prior.probabilities(fold.test.assortments)
        whole = counts.assortments
        self.rest, self.test = (_places(counts, part) for part in (fold.rest, fold.test))
        self.frequencies = counts.frequencies()[self.rest]
        self.totals = counts.totals[whole.owner][self.rest]
        self.tallies = counts.tallies[self.test]
        self.duals = np.zeros(self.rest.size)
        self.held: Vec = np.zeros(self.test.size)

    def evaluate(self, duals: Vec) -> tuple[float, Vec]:
        """As ``Tilted`` says."""
        spread = np.zeros(self.size)
        spread[self.rest] = duals
        value, chosen = self.program.evaluate(spread)
        self.held = chosen[self.test]
        return value, chosen[self.rest]

    def score(self, trust: float | None) -> float:
        """The log-likelihood of the choices held out, in nats; the next tilt starts where this one ended."""
        if trust is None:
            self.held = self.untilted
        else:
            problem = TiltProblem(self, self.frequencies, self.totals / trust, COMPARED_GAP_NATS)
            problem.solve(self.duals, 60)
            self.duals = problem.duals
            self.evaluate(problem.duals)
        chosen = self.tallies > 0.0
        return float(self.tallies[chosen] @ np.log(np.maximum(self.held[chosen], 1e-300)))


def _places(whole: ChoiceCounts, part: ChoiceCounts) -> Codes:
    """The coordinates of some of the offers among all."""
    offers = whole.assortments
    starts = [offers.coordinate(offer, offer[0]) for offer in part.assortments.offers]
    sizes = np.diff(part.assortments.indptr)
    return np.concatenate([np.arange(start, start + size) for start, size in zip(starts, sizes.tolist(), strict=True)])
