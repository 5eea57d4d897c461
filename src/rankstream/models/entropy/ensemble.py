"""The prior of a maximum-entropy model from data: guides weighed by what they predict of held-out offers."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rankstream._core.types import Vec
from rankstream._core.watch import Watch, until, unwatched
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observations import observed, restrict
from rankstream.models.entropy.guides import (
    CHAIN,
    GUIDES,
    HEAVY,
    LOGIT,
    MAX_ROUNDS,
    PRICED_LOGIT,
    FittedGuide,
    Guide,
    guides_for,
    imagine,
)
from rankstream.models.entropy.ranking_laws import RankingLaw, mix

LOG = logging.getLogger("rankstream")
# chosen on markets of benchmarks/truths.py; benchmarks/accuracy.py prints the errors of others
MAX_FOLDS, MIN_HELD_OUT_OFFERS = 10, 5  # with fewer offers, those left teach too little
MANY_OFFERS, FOLDS_OF_MANY = 100, 5  # beyond so many offers, four fifths of them teach nearly as much as nine tenths
CHOICE_FOLDS, CHOICE_PARTS = 2, 5  # folds that hold out choices, and parts that these are dealt out to
MAX_NATS_BEHIND = 5.0  # of the best size of its family, after two folds or more: a size further behind leaves the race
EM_STARTS, FOLD_EM_STARTS = 4, 2  # of latent classes; a guide is fitted once to each fold, which takes most of the time
FOLD_NATS = 5e-3  # three steps of EM that gain less are the last
GATE_NATS, LOGIT_GATE_NATS = 1.0, 2.0  # by which a mixture must beat the best guide, and the logit, to be half believed
MAX_FOLD_STEPS = 150_000  # of EM in all folds; ordinary markets of up to 400,000 choices take 40,000 to 120,000
MIN_FIT_STEPS = 30  # that a fit may take, even when those are used up
POOL = "pool"  # the family of what was learned from other markets
HOMES = (POOL, PRICED_LOGIT.family, LOGIT.family)  # the first that is there has to be beaten last
MIN_GUIDE_WEIGHT = 0.01  # a guide with less weight is dropped
MIN_REFIT_WEIGHT = 0.05  # one with less is not fitted again with the others
QUICK_GUIDES, QUICK_WEIGHTS, QUICK_STARTS = (LOGIT, HEAVY[-1], CHAIN), (0.1, 0.45, 0.45), 3
"""Three guides with fixed weights, those of the default prior of version 0.2; and the starts of the classes."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Fitted guides, their weights, and what held-out offers said about them.

    ``scores`` are log-likelihoods of the held-out choices in nats, less that of a uniform guess; none where there were
    too few offers to hold any out. ``misfit`` is the squared error of the mixture on them beyond the sampling noise of
    their frequencies, in units of share * (1 - share); below 0 where it is less than that noise.
    """

    guides: tuple[FittedGuide, ...]
    weights: Vec
    folds: "tuple[Fold, ...]" = ()
    scores: dict[str, float] = field(default_factory=dict)
    misfit: float | None = None

    @property
    def prior(self) -> RankingLaw:
        """The mixture of all guides that carry weight."""
        return mix([guide.law() for guide in self.guides], self.weights.tolist())

    @property
    def logit_weight(self) -> float:
        """What the logit counts for, with or without a price."""
        return self._weight_of(LOGIT.family, PRICED_LOGIT.family)

    @property
    def pool_weight(self) -> float:
        """What the pool of other markets counts for."""
        return self._weight_of(POOL)

    def _weight_of(self, *families: str) -> float:
        return float(sum(self.weights[k] for k, fitted in enumerate(self.guides) if fitted.guide.family in families))

    def refit(self, counts: ChoiceCounts, seed: int = 0, warm: bool = True, watch: Watch = unwatched) -> "Stack":
        """The same guides with the same weights, fitted to other counts; to those of other items only without ``warm``.

        Warm, they begin where they are, and those that hardly count stay there.
        """
        known = counts, imagine(counts, [fitted.guide for fitted in self.guides])
        again = tuple(
            guide.guide.fit(
                known[guide.guide.attributes is None], seed, nats=FOLD_NATS, watch=watch, before=guide if warm else None
            )
            if weight >= MIN_REFIT_WEIGHT or not warm
            else guide
            for guide, weight in zip(self.guides, self.weights.tolist(), strict=True)
        )
        return Stack(again, self.weights, scores=self.scores, misfit=self.misfit)

    def describe(self) -> dict[str, Any]:
        """What a prediction rests on, as what JSON can write."""
        names = [guide.guide.name for guide in self.guides]
        # more digits than a reader needs: saved_fit tells by them how many ends of EM a guide has
        weights = {name: round(weight, 6) for name, weight in zip(names, self.weights.tolist(), strict=True)}
        scores = {name: round(score, 2) for name, score in self.scores.items()}
        misfit = {} if self.misfit is None else {"held_out_misfit": round(max(0.0, self.misfit), 6)}
        return {"weights": weights, "held_out_log_likelihood": scores} | misfit


@dataclass(frozen=True, eq=False)
class Fold:
    """What was held out, offers or choices, the rest, and the guides as fitted to that."""

    rest: ChoiceCounts
    test: ChoiceCounts
    guides: dict[str, FittedGuide]

    def prior(self, stack: Stack) -> RankingLaw:
        """The mixture of a stack, as fitted without what is held out."""
        return mix([self.guides[guide.guide.name].law() for guide in stack.guides], stack.weights.tolist())


def fit_stack(
    counts: ChoiceCounts,
    guides: Sequence[Guide] = GUIDES,
    seed: int = 0,
    watch: Watch = unwatched,
    by_choices: bool = False,
) -> Stack:
    """Fit all guides, and weigh them by the likelihood of offers held out in up to ten folds, five of many offers.

    Of a family with several sizes only the one that predicts best is kept; those far behind leave after two folds. The
    weights maximise the held-out likelihood, with a third of a choice for each guide in advance. Then the mixture has
    to beat the best single guide, and after that the logit, by more than noise of a nat or two; otherwise most of the
    weight goes there. A pool of other markets takes the place of the logit in this, and has to be beaten by as many
    nats as it has choices in advance. With fewer than five offers nothing can be held out: all guides count the same,
    or the pool alone; with ``by_choices``, fifths of the choices are held out then. Where there is an order, guides
    respect it (``guides_for``). All folds together take at most 150,000 steps of EM and 30 for each fit, whatever the
    counts. When ``watch`` says that it is enough, the whole folds so far decide, and fits end where they are.
    """
    n_offers = counts.assortments.n_offers
    guides = guides_for(counts.assortments, guides)
    held_out = by_choices or n_offers >= MIN_HELD_OUT_OFFERS
    folds = _fit_folds(counts, guides, seed, until(watch, 0.8)) if held_out else ()
    if not folds:
        guides = [guide for guide in guides if guide.family == POOL] or guides
        fitted = _fit_all(guides, counts, seed, watch)
        return Stack(fitted, np.full(len(fitted), 1.0 / len(fitted)))
    scored = _Scored(guides, folds)
    kept, weights = scored.weights()
    chosen = _fit_all(kept, counts, seed, watch)
    return Stack(chosen, weights, folds, scored.scores, _misfit(folds, kept, weights))


def _fit_all(guides: Sequence[Guide], counts: ChoiceCounts, seed: int, watch: Watch) -> tuple[FittedGuide, ...]:
    known = counts, imagine(counts, guides)
    return tuple(guide.fit(known[guide.attributes is None], seed, EM_STARTS, watch=watch) for guide in guides)


def fit_quick_stack(counts: ChoiceCounts, seed: int = 0, watch: Watch = unwatched) -> Stack:
    """Fit a logit, ten latent classes and a Markov chain, and give them fixed weights: a small part of the time.

    When ``watch`` says that it is enough, the last two end where they are; half the time is for the classes.
    """
    watches = (watch, until(watch, 0.5), watch)
    pairs = zip(QUICK_GUIDES, watches, strict=True)
    fitted = tuple(guide.fit(counts, seed, QUICK_STARTS, watch=own) for guide, own in pairs)
    return Stack(fitted, np.array(QUICK_WEIGHTS))


def hold_out_choices(stack: Stack, counts: ChoiceCounts, seed: int, watch: Watch = unwatched) -> list[Fold]:
    """Two folds that hold out a fifth of the choices of every offer, with the stack's guides fitted to the others.

    If no offers could be held out, there are five. Parts of choices, as where old ones fade, are never held out.
    """
    folds = []
    for rest, test in _without_choices(counts, CHOICE_FOLDS if stack.folds else CHOICE_PARTS, seed):
        again = stack.refit(rest, seed, watch=watch)
        folds.append(Fold(rest, test, {fitted.guide.name: fitted for fitted in again.guides}))
    return folds


def _without_choices(counts: ChoiceCounts, number: int, seed: int) -> list[tuple[ChoiceCounts, ChoiceCounts]]:
    """So many pairs of four fifths of the choices and the other fifth, without those that are empty."""
    offers, whole = counts.assortments, np.floor(counts.tallies).astype(np.int64)
    dealt = np.random.default_rng([seed, 1]).multinomial(whole, np.full(CHOICE_PARTS, 1.0 / CHOICE_PARTS)).T
    pairs = [(ChoiceCounts(offers, counts.tallies - part), ChoiceCounts(offers, part)) for part in dealt[:number]]
    return [(observed(rest), observed(test)) for rest, test in pairs if rest.observations and test.observations]


def _misfit(folds: Sequence[Fold], kept: Sequence[Guide], weights: Vec) -> float:
    """How far the mixture, as fitted without them, is from the frequencies of held-out offers beyond their noise."""
    beyond = total = 0.0
    for fold in folds:
        offers = fold.test.assortments
        parts = [fold.guides[guide.name].probabilities(offers) for guide in kept]
        share: Vec = np.asarray(weights @ np.array(parts))
        noise = share * (1.0 - share)
        beyond += float(((share - fold.test.frequencies()) ** 2 - noise / fold.test.totals[offers.owner]).sum())
        total += float(noise.sum())
    return beyond / max(total, 1e-300)


def n_folds(n_offers: int) -> int:
    """How many parts of the offers are held out in turn."""
    return min(MAX_FOLDS if n_offers <= MANY_OFFERS else FOLDS_OF_MANY, n_offers)


def _without_offers(counts: ChoiceCounts, seed: int) -> list[tuple[ChoiceCounts, ChoiceCounts]]:
    n_offers = counts.assortments.n_offers
    order = np.random.default_rng(seed).permutation(n_offers)
    parts = np.array_split(order, n_folds(n_offers))
    return [(restrict(counts, np.setdiff1d(order, part)), restrict(counts, np.sort(part))) for part in parts]


def _fit_folds(counts: ChoiceCounts, guides: Sequence[Guide], seed: int, watch: Watch) -> tuple[Fold, ...]:
    few = counts.assortments.n_offers < MIN_HELD_OUT_OFFERS
    pairs = _without_choices(counts, CHOICE_PARTS, seed) if few else _without_offers(counts, seed)
    folds: list[Fold] = []
    left = MAX_FOLD_STEPS
    for rest, test in pairs:
        fitted, known = {}, (rest, imagine(rest, guides))
        fits = (len(pairs) - len(folds)) * len(guides)
        for guide in guides:
            most = min(MAX_ROUNDS, max(MIN_FIT_STEPS, 4 * left // (FOLD_EM_STARTS * fits)))  # four times an even share
            fitted[guide.name] = guide.fit(
                known[guide.attributes is None], seed, FOLD_EM_STARTS, FOLD_NATS, watch, max_rounds=most
            )
            left, fits = left - fitted[guide.name].steps, fits - 1
        folds.append(Fold(rest, test, fitted))
        LOG.info("guides fitted without %d of %d offers", test.assortments.n_offers, counts.assortments.n_offers)
        if watch(f"{len(folds)} of {len(pairs)} folds held out"):
            # guides of this fold may have ended early, the last ones most: scores would favour those that came first
            return tuple(folds[: max(1, len(folds) - 1)])
        if 1 < len(folds) < len(pairs):
            guides = _drop_behind(guides, folds)
    return tuple(folds)


def _drop_behind(guides: Sequence[Guide], folds: Sequence[Fold]) -> Sequence[Guide]:
    """The guides without sizes that are far behind the best of their family; these leave the folds, too."""
    heights = dict(zip([guide.name for guide in guides], _Scored(guides, folds).heights.tolist(), strict=True))
    best: dict[str, float] = {}
    for guide in guides:
        best[guide.family] = max(best.get(guide.family, -np.inf), heights[guide.name])
    kept = [guide for guide in guides if heights[guide.name] >= best[guide.family] - MAX_NATS_BEHIND]
    for fold in folds:
        for guide in set(guides) - set(kept):
            del fold.guides[guide.name]
    return kept


class _Scored:
    def __init__(self, guides: Sequence[Guide], folds: Sequence[Fold]) -> None:
        self.guides = guides = [guide for guide in guides if guide.name in folds[0].guides]
        predicted = [
            np.array([fold.guides[guide.name].probabilities(fold.test.assortments) for guide in guides])
            for fold in folds
        ]
        tallies = np.concatenate([fold.test.tallies for fold in folds])
        table = np.concatenate(predicted, axis=1)
        chosen = (tallies > 0.0) & (table.max(axis=0) > 0.0)  # choices that contradict an order count for none
        self.tallies = tallies[chosen]
        self.predicted = np.maximum(table[:, chosen], 1e-300)
        sizes = np.concatenate([np.diff(fold.test.assortments.indptr)[fold.test.assortments.owner] for fold in folds])
        uniform = -float(self.tallies @ np.log(sizes[chosen]))
        self.heights = np.log(self.predicted) @ self.tallies
        self.scores = {guide.name: float(h) - uniform for guide, h in zip(guides, self.heights, strict=True)}

    def weights(self) -> tuple[list[Guide], Vec]:
        """The guides to keep, and their weights."""
        kept = [place for place, guide in enumerate(self.guides) if place == self._best_of(guide.family)]
        predicted, heights = self.predicted[kept], self.heights[kept]
        families = [self.guides[place].family for place in kept]
        weights = best_weights(predicted, self.tallies, np.array([self.guides[place].before for place in kept]))
        weights = self._gated(weights, predicted, heights, int(np.argmax(heights)), GATE_NATS)
        home = next((family for family in HOMES if family in families), "")
        if home in families:
            place = families.index(home)
            gate = self.guides[kept[place]].before if home == POOL else LOGIT_GATE_NATS
            weights = self._gated(weights, predicted, heights, place, gate)
        enough = weights >= MIN_GUIDE_WEIGHT
        guides = [self.guides[place] for place, keep in zip(kept, enough.tolist(), strict=True) if keep]
        return guides, weights[enough] / weights[enough].sum()

    def _best_of(self, family: str) -> int:
        members = [place for place, guide in enumerate(self.guides) if guide.family == family]
        return max(members, key=lambda place: float(self.heights[place]))

    def _gated(self, weights: Vec, predicted: Vec, heights: Vec, single: int, gate: float) -> Vec:
        """Weight for one guide alone as far as the mixture does not beat it on held-out offers."""
        gain = float(np.log(weights @ predicted) @ self.tallies - heights[single])
        share = 1.0 / (1.0 + np.exp(np.clip(gain - gate, -50.0, 50.0)))
        gated: Vec = (1.0 - share) * weights
        gated[single] += share
        return gated


def score_pool(folds: Sequence[Fold], guides: Sequence[Guide], before: Sequence[float]) -> Vec:
    """The log-likelihood of held-out choices, in nats, for each number of choices that the pool is given in advance.

    Every fold is predicted with the weights that the other folds give, so that a number has to pay for itself.
    """
    scores = np.zeros(len(before))
    for place, number in enumerate(before):
        told = [replace(guide, before=number) if guide.family == POOL else guide for guide in guides]
        for held, fold in enumerate(folds):
            kept, weights = _Scored(told, [*folds[:held], *folds[held + 1 :]]).weights()
            parts = np.array([fold.guides[guide.name].probabilities(fold.test.assortments) for guide in kept])
            chosen = fold.test.tallies > 0.0
            likely = np.maximum((weights @ parts)[chosen], 1e-300)
            scores[place] += float(fold.test.tallies[chosen] @ np.log(likely))
    return scores


def best_weights(predicted: Vec, chosen: Vec, before: Vec | float = 0.0, steps: int = 2000) -> Vec:
    """The mixture of several predictions with the highest likelihood, by EM: a row of probabilities per guide.

    ``before`` are choices that each has been right about in advance.

    >>> best_weights(np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([50.0, 50.0])).round(3).tolist()
    [0.5, 0.5]
    """
    weights = np.full(len(predicted), 1.0 / len(predicted))
    for _ in range(steps):
        shares = weights[:, np.newaxis] * predicted
        shares /= np.maximum(shares.sum(axis=0), 1e-300)
        new = shares @ chosen + before
        new /= new.sum()
        done = float(np.abs(new - weights).max()) < 1e-7
        weights = new
        if done:
            break
    return weights
