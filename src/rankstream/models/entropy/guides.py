"""Guides: the parametric models whose rankings a maximum-entropy model starts from where data say nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankstream._core.types import Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.data.assortments import Assortments
from rankstream.data.attributes import Attributes
from rankstream.data.counts import ChoiceCounts
from rankstream.data.prices import PriceLevels
from rankstream.models.entropy.ranking_laws import RankingLaw, markov_chain, mix, plackett_luce
from rankstream.models.lifts import chains_of
from rankstream.models.parametric.attribute_logit import fit_attribute_logit
from rankstream.models.parametric.latent_class import fit_latent_class
from rankstream.models.parametric.markov_chain import fit_markov_chain
from rankstream.models.parametric.mnl import SHRUNK_SMOOTHING, fit_never_buyers
from rankstream.models.parametric.nests import CLASSES, fit_nests
from rankstream.models.parametric.normal_taste import fit_normal_taste

# chosen on markets of benchmarks/truths.py; benchmarks/accuracy.py prints the errors of others
MAX_NATS_PER_CHOICE = 1e-6  # at which a fit ends where there are few choices
MAX_EXACT_CHOICES = 500_000.0  # up to which a fit ends by its nats; beyond, by nats per choice: less is noise
MAX_ROUNDS = 3000  # steps of one climb of EM
IMAGINED_CHOICES = 1.0  # of each item, by its attributes; benchmarks/attributes.py
PSEUDO_CHOICES = 0.3  # for every guide but the logit: what 500 choices cannot decide is averaged
MIN_RELATIVE_LIKELIHOOD = 0.01  # an end of EM this much less likely than the best one is dropped


@dataclass(frozen=True)
class Guide:
    """A kind of model to fit: latent classes by their number and smoothing, or one of the others by its name alone.

    ``before`` are choices that it has been right about in advance, where guides are weighed. With ``attributes``,
    classes have part-worths; such a logit is of the same family as the one without, and counts as it does.
    """

    name: str
    family: str
    classes: int = 0
    smoothing: float = 0.5
    before: float = PSEUDO_CHOICES
    attributes: Attributes | None = None

    def fit(
        self,
        counts: ChoiceCounts,
        seed: int = 0,
        starts: int = 1,
        nats: float = 5e-4,
        watch: Watch = unwatched,
        before: "FittedGuide | None" = None,
        max_rounds: int = MAX_ROUNDS,
    ) -> "FittedGuide":
        """Fit to counts; latent classes from several starts, or from where an earlier fit to nearly the same ended.

        EM ends when three steps gain less than ``nats``, which is the same accuracy however many choices there are, up
        to half a million.
        """
        options: dict[str, Any] = {"seed": seed, "watch": watch}
        tolerance = min(MAX_NATS_PER_CHOICE, nats / min(max(counts.observations, 1.0), MAX_EXACT_CHOICES))
        start, offers = None if before is None else before.models[0], counts.assortments
        if self.family in ("uniform", "pool"):
            return FittedGuide(self, (self.law(counts),), np.ones(1))
        if self.family == "taste":
            taste = fit_normal_taste(counts, start=start, attributes=self.attributes, **options)
            return FittedGuide(self, (taste,), np.ones(1))
        if self.attributes is not None or self.family in PRICED_FAMILIES:
            options |= {"classes": self.classes, "starts": starts, "tolerance": tolerance}
            model = fit_attribute_logit(counts, self.attributes, start=start, **options)
            return FittedGuide(self, (model if self.attributes else model.falling(chains_of(offers)),), np.ones(1))
        if self.family == "logit" and not offers.order:
            return FittedGuide(self, *fit_never_buyers(counts))
        if self.family == "nests":
            return FittedGuide(self, (fit_nests(counts, watch=watch),), np.ones(1))
        options |= {"tolerance": tolerance, "max_rounds": max_rounds}
        if self.family == "chain":
            return _by_likelihood(self, [fit_markov_chain(counts, start=start, starts=1, **options)])
        options |= {"classes": max(self.classes, 1), "smoothing": self.smoothing, "starts": 1}
        if before is not None:
            return _by_likelihood(self, [fit_latent_class(counts, start=model, **options) for model in before.models])
        ends: list[Any] = []
        for number in range(starts if self.classes else 1):
            if number and watch(f"latent classes, start {number + 1}"):
                break
            ends.append(fit_latent_class(counts, **(options | {"seed": seed + number})))
        return _by_likelihood(self, ends)

    def law(self, counts: ChoiceCounts) -> RankingLaw:
        """The law of a guide that has nothing to fit: all items of these counts are worth the same."""
        offers = counts.assortments
        return plackett_luce(offers.items, np.ones(offers.n_items), order=chains_of(offers))


def _by_likelihood(guide: Guide, ends: Sequence[Any]) -> "FittedGuide":
    """Several ends of EM, weighted by their likelihoods: the higher one is not always the better one."""
    heights = np.array([end.log_likelihood for end in ends])
    weights = np.exp(heights - heights.max())
    kept = weights >= MIN_RELATIVE_LIKELIHOOD
    models = tuple(end for end, keep in zip(ends, kept.tolist(), strict=True) if keep)
    return FittedGuide(guide, models, weights[kept] / weights[kept].sum(), sum(end.iterations for end in ends))


@dataclass(frozen=True, eq=False)
class FittedGuide:
    """A guide after its fit: one model, or several ends of EM with their weights, and the steps they took."""

    guide: Guide
    models: tuple[Any, ...]
    weights: Vec
    steps: int = 0

    def law(self) -> RankingLaw:
        """The rankings behind it."""
        return mix([_law(model) for model in self.models], self.weights.tolist())

    def probabilities(self, offers: Assortments) -> Vec:
        """Its choice probabilities."""
        parts = [weight * model.probabilities(offers) for weight, model in zip(self.weights, self.models, strict=True)]
        total: Vec = np.sum(parts, axis=0)
        return total


def _law(model: Any) -> RankingLaw:
    if isinstance(model, RankingLaw):
        return model
    if hasattr(model, "transitions"):
        return markov_chain(model.items, model.arrival, model.transitions)
    return plackett_luce(model.items, model.attraction, getattr(model, "mixture", (1.0,)), getattr(model, "order", ()))


LOGIT = Guide("logit", "logit", before=0.0)
HEAVY = tuple(Guide(f"{size} classes", "heavy", size, 0.5) for size in (3, 5, 8, 10))
LIGHT = tuple(Guide(f"{n} classes, light", "light", n, least) for n, least in ((20, 0.1), (10, 0.02), (30, 0.005)))
TASTE = Guide("normal taste", "taste")
NESTS = Guide("nests", "nests", CLASSES)
CHAIN = Guide("Markov chain", "chain")
UNIFORM = Guide("uniform", "uniform")
GUIDES = (LOGIT, *HEAVY, *LIGHT, TASTE, NESTS, CHAIN, UNIFORM)
"""What is tried; of a family with several sizes, the one that predicts held-out offers best is kept."""
PRICED_LOGIT = Guide("logit with a price", "priced logit", 1, before=0.0)
PRICED = (PRICED_LOGIT, *(Guide(f"{size} classes with a price", "priced classes", size) for size in (2, 3, 5)))
PRICED_FAMILIES = {guide.family for guide in PRICED}
ATTRIBUTE_GUIDES = (
    Guide("logit with attributes", LOGIT.family, 1, SHRUNK_SMOOTHING, before=0.0),
    Guide("3 classes with attributes", "attribute classes", 3, SHRUNK_SMOOTHING),
    Guide("normal taste with attributes", TASTE.family),
)


def with_attributes(table: Attributes | None) -> tuple[Guide, ...]:
    """The guides with these attributes, if any; a Markov chain has no place for an item that was never offered."""
    if table is None:
        return GUIDES
    known = (replace(guide, attributes=table) for guide in ATTRIBUTE_GUIDES)
    # normal taste without attributes is behind that with them even where they are irrelevant
    return (*known, *(guide for guide in GUIDES if guide not in (CHAIN, TASTE)))


def imagine(counts: ChoiceCounts, guides: Sequence[Guide]) -> ChoiceCounts:
    """Return counts with choices from an offer of all items, as a logit with attributes predicts; for other guides.

    So these place an item that was hardly offered by its attributes, too.
    """
    guide = next((guide for guide in guides if guide.attributes is not None), None)
    if guide is None or not IMAGINED_CHOICES:
        return counts
    offers = counts.assortments.extend([counts.assortments.items])
    shares = replace(guide, classes=1).fit(counts).probabilities(Assortments([offers.items]))
    tallies = np.append(counts.tallies, np.zeros(offers.n_coordinates - counts.tallies.size))
    first = offers.indptr[offers.number(offers.items)]
    tallies[first : first + offers.n_items] += IMAGINED_CHOICES * offers.n_items * shares
    return ChoiceCounts(offers, tallies)


def guides_for(offers: Assortments, guides: Sequence[Guide] = GUIDES) -> Sequence[Guide]:
    """The guides that can be fitted to choices from these offers: all without an order.

    With one, Markov chain, nests and normal taste are left out; logits with a price coefficient come first where the
    order is that of the prices in the items' names: they matter most, and what comes first is fitted in little time.
    """
    if not offers.order:
        return guides
    chains_of(offers)  # which refuses other orders
    levels = PriceLevels.from_labels(offers.items)
    priced = levels is not None and set(offers.order) <= set(levels.order)
    return [*(PRICED if priced else ()), *(guide for guide in guides if guide not in (TASTE, NESTS, CHAIN))]
