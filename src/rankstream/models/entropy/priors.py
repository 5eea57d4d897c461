"""Priors: laws over rankings that are fitted to choices, and stacked by what they predict of held-out offers."""

from collections.abc import Sequence

import numpy as np

from rankstream._core.watch import Watch, until, unwatched
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observed import restrict
from rankstream.models.entropy.laws import Prior, markov_chain, mix, plackett_luce
from rankstream.models.entropy.stacking import best_weights
from rankstream.models.parametric.latent_class import LatentClassModel, fit_latent_class
from rankstream.models.parametric.markov_chain import MarkovChainModel, fit_markov_chain
from rankstream.models.parametric.mnl import LogitModel, fit_mnl
from rankstream.models.protocol import ChoiceModel

__all__ = [
    "Prior",
    "best_weights",
    "fit_guides",
    "fit_prior",
    "markov_chain",
    "mix",
    "of_chain",
    "of_guides",
    "of_mixture",
    "plackett_luce",
    "stacked_prior",
]


def of_mixture(model: LatentClassModel) -> Prior:
    """The rankings behind a mixture of logits."""
    return plackett_luce(model.items, model.attraction, model.mixture)


def of_chain(model: MarkovChainModel) -> Prior:
    """The rankings behind a Markov chain choice model."""
    return markov_chain(model.items, model.arrival, model.transitions)


WEIGHTS = (0.1, 0.45, 0.45)
FOLDS = 4
CLASSES = 10
Guides = tuple[LogitModel, LatentClassModel, MarkovChainModel]


def fit_guides(
    counts: ChoiceCounts,
    classes: int = CLASSES,
    seed: int = 0,
    watch: Watch = unwatched,
    start: Guides | None = None,
) -> Guides:
    """A logit, latent classes and a Markov chain, fitted to the same counts: what the default prior mixes.

    When ``watch`` says that it is enough, the last two end where they are; half the time is for each.
    ``start`` are guides fitted to nearly the same counts, from which they begin.
    """
    _, classes_before, chain_before = start or (None, None, None)
    mixture = fit_latent_class(counts, classes=classes, seed=seed, watch=until(watch, 0.5), start=classes_before)
    return fit_mnl(counts), mixture, fit_markov_chain(counts, seed=seed, watch=watch, start=chain_before)


def of_guides(guides: Guides, weights: Sequence[float]) -> Prior:
    """The rankings behind the guides, mixed."""
    logit, mixture, chain = guides
    return mix([plackett_luce(logit.items, logit.attraction), of_mixture(mixture), of_chain(chain)], weights)


def fit_prior(
    counts: ChoiceCounts,
    weights: Sequence[float] = WEIGHTS,
    classes: int = CLASSES,
    seed: int = 0,
    watch: Watch = unwatched,
) -> Prior:
    """The default prior: 0.1 logit, 0.45 latent classes, 0.45 Markov chain.

    Parameters
    ----------
    counts : ChoiceCounts
        The choices, of offers that all have some.
    weights : three floats
        Those of the logit, the latent classes and the Markov chain, which sum to 1.
    classes : int
        How many latent classes.
    seed : int
        Seed for the random starts.
    watch : Watch
        When it says that it is enough, the fits end where they are; half the time is for the latent classes.

    """
    return of_guides(fit_guides(counts, classes, seed, watch), weights)


def stacked_prior(
    counts: ChoiceCounts, folds: int = FOLDS, classes: int = CLASSES, seed: int = 0, watch: Watch = unwatched
) -> Prior:
    """The same with weights that predict best: those of highest likelihood on offers held out, fold by fold.

    Parameters
    ----------
    counts : ChoiceCounts
        The choices, of offers that all have some.
    folds : int
        In how many parts offers are held out. With fewer offers than folds the weights are the default ones.
    classes : int
        How many latent classes.
    seed : int
        Seed for the folds and the random starts.
    watch : Watch
        When it says that it is enough, the fits end where they are; all get the same part of the time.

    """
    n_offers = counts.assortments.n_offers
    guides = fit_guides(counts, classes, seed, until(watch, 1.0 / (folds + 1)))
    if n_offers < folds:
        return of_guides(guides, WEIGHTS)
    order = np.random.default_rng(seed).permutation(n_offers)
    predicted, chosen = [], []
    for number, part in enumerate(np.array_split(order, folds)):
        test = restrict(counts, np.sort(part))
        others, share = restrict(counts, np.setdiff1d(order, part)), (number + 2) / (folds + 1)
        rest: Sequence[ChoiceModel] = fit_guides(others, classes, seed, until(watch, share))
        predicted.append(np.array([guide.probabilities(test.assortments) for guide in rest]))
        chosen.append(test.tallies)
    return of_guides(guides, best_weights(np.concatenate(predicted, axis=1), np.concatenate(chosen)).tolist())
