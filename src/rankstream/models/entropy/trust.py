"""How far data may tilt a prior: the trust that predicts held-out offers best."""

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.data.counts import ChoiceCounts
from rankstream.models.entropy.problem import TiltProblem
from rankstream.models.entropy.soft_lattice import SoftLattice
from rankstream.models.entropy.stacking import Fold, Stack
from rankstream.oracles.lattice import TooManyUnionsError

PATH = (None, 300.0, 100.0, 30.0, 10.0, 3.0)
"""From not tilting at all to following the data closely."""
MODERATE = 100.0
FAR = 3.0  # nats below the best so far, where going on along the path ends
MOST_STATES = 3000
MOST_FOLDS = 5
ENOUGH = 0.02  # the duality gap of a tilt that is only to be compared, in nats


def choose_trust(stack: Stack, counts: ChoiceCounts, watch: Watch = unwatched) -> tuple[float | None, dict[str, float]]:
    """The trust on the path with the highest held-out likelihood, and what each step that was tried scored.

    One nat is asked for every step away from 100 (from no tilt, if the logit has most of the weight). Without folds, or
    with more than 3,000 unions of offers, where every step takes long, it is 100.
    """
    if not stack.folds:
        return MODERATE, {}
    try:
        program = SoftLattice(counts.assortments, stack.prior, MOST_STATES)
    except TooManyUnionsError:
        return MODERATE, {}
    begin = 0 if stack.logit_weight > 0.5 else PATH.index(MODERATE)
    step = max(1, len(stack.folds) // MOST_FOLDS)
    tests = [_HeldOut(program, counts, fold, stack) for fold in stack.folds[::step][:MOST_FOLDS]]
    scores = {begin: sum(test.score(PATH[begin]) for test in tests)}
    for direction in (1, -1):
        place = begin + direction
        while 0 <= place < len(PATH) and not watch("choosing the trust"):
            scores[place] = sum(test.score(PATH[place]) for test in tests) - abs(place - begin)
            if scores[place] < max(scores.values()) - FAR:
                break
            place += direction
    best = max(scores, key=lambda place: scores[place])
    named = {"none" if PATH[place] is None else f"{PATH[place]:g}": scores[place] for place in sorted(scores)}
    return PATH[best], {name: round(score - scores[best], 2) for name, score in named.items()}


class _HeldOut:
    """The program over all offers with the prior of one fold; duals only on the offers that are not held out.

    So the choice probabilities of the held-out offers come with every evaluation.
    """

    def __init__(self, program: SoftLattice, counts: ChoiceCounts, fold: Fold, stack: Stack) -> None:
        self.program = program.with_prior(fold.prior(stack))
        whole = counts.assortments
        self.rest, self.test = (_places(counts, part) for part in (fold.rest, fold.test))
        self.frequencies = counts.frequencies()[self.rest]
        self.totals = counts.totals[whole.owner][self.rest]
        self.tallies = counts.tallies[self.test]
        self.duals = np.zeros(self.rest.size)
        self.held: Vec = np.zeros(self.test.size)

    def evaluate(self, duals: Vec) -> tuple[float, Vec]:
        """As ``Tilted`` says."""
        spread = np.zeros(self.program.assortments.n_coordinates)
        spread[self.rest] = duals
        value, chosen = self.program.evaluate(spread)
        self.held = chosen[self.test]
        return value, chosen[self.rest]

    def score(self, trust: float | None) -> float:
        """The log-likelihood of the choices held out, in nats; the next tilt starts where this one ended."""
        if trust is None:
            self.evaluate(np.zeros(self.rest.size))
        else:
            problem = TiltProblem(self, self.frequencies, self.totals / trust, ENOUGH)
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
