"""Simulated markets: the paper's ground truth, assortments and stream of choices, all from one seed (Appendix G)."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from math import comb
from typing import Literal

import numpy as np

from rankstream._core import Codes, Label, Vec, number_between, whole_number
from rankstream.data.assortments import Assortments, as_offer
from rankstream.data.counts import ChoiceCounts

__all__ = ["Market", "MixedMNL", "draw_choices", "market", "mixed_mnl", "random_offers"]

Sizes = Literal["subsets", "sizes"]
NOTHING = "nothing"


@dataclass(frozen=True)
class MixedMNL:
    """A mixture of multinomial logits over items and the no-choice option, which comes last.

    ``utilities[k, i]`` is the attraction of item i in segment k, ``mixture[k]`` the share of the segment.
    """

    items: tuple[Label, ...]
    utilities: Vec
    mixture: Vec

    def probabilities(self, assortments: Assortments) -> Vec:
        """Return the true choice probability of every coordinate."""
        column = {item: number for number, item in enumerate(self.items)}
        for item in {item for offer in assortments.offers for item in offer}:
            if item not in column:
                raise ValueError(f"The market has no item {item!r}: offer the items of ``truth.items``.")
        codes = np.array([column[item] for offer in assortments.offers for item in offer])
        attraction = self.utilities[:, codes]
        totals = np.add.reduceat(attraction, assortments.indptr[:-1], axis=1)
        shares: Vec = self.mixture @ (attraction / totals[:, assortments.owner])
        return shares


@dataclass(frozen=True)
class Market:
    """One simulated instance: the truth, the offers to learn from, offers to test on, and a stream of choices."""

    truth: MixedMNL
    assortments: Assortments
    test: Assortments
    seed: int

    def frequencies(self) -> Vec:
        """Return the true choice probabilities of the training offers: the solver's input in the static setting."""
        return self.truth.probabilities(self.assortments)

    def stream(self, per_round: int = 200, first: int = 2000) -> Iterator[ChoiceCounts]:
        """Yield counts that grow without end: ``first`` choices before round 1, then ``per_round`` more each round.

        Every round yields the same object. The choices depend on the market's seed alone.
        """
        generator, shares = _generators(self.seed)[3], self.frequencies() / self.assortments.n_offers
        shares /= shares.sum()
        counts, coordinates = ChoiceCounts(self.assortments), np.arange(self.assortments.n_coordinates)
        for number in chain([first], repeat(per_round)):  # offers are uniformly random
            counts.observe_coordinates(coordinates, generator.multinomial(number, shares))
            yield counts


def market(
    seed: int,
    n_items: int = 10,
    segments: int = 5,
    spread: float = 5.0,
    n_offers: int = 20,
    n_test: int = 100,
    sizes: Sizes = "subsets",
    items: Sequence[Label] | None = None,
    unseen: bool = False,
) -> Market:
    """Return the paper's simulated market: a mixture of logits, and random offers of up to half the items.

    Parameters
    ----------
    seed : int
        Seed of the truth, the offers and the choices.
    n_items : int
        How many items, the no-purchase option not counted.
    segments : int
        How many kinds of customers (the paper's K).
    spread : float
        How strongly they prefer their four favourites (the paper's L).
    n_offers, n_test : int
        How many offers to learn from, and to test on (at most as many as exist).
    sizes : "subsets" or "sizes"
        Whether offers are uniform among all subsets, or their size is drawn first.
    items : sequence of items, optional
        ``n_items`` labels; "item 1" and so on without it.
    unseen : bool
        Whether to keep test offers distinct from those to learn from; the paper draws both independently.

    Examples
    --------
    >>> example = market(seed=1)
    >>> example.assortments.n_offers, example.assortments.n_items, example.test.n_offers
    (20, 11, 100)
    >>> next(example.stream()).observations
    2000
    """
    labels = tuple(f"item {number + 1}" for number in range(n_items)) if items is None else tuple(items)
    if len(labels) != n_items:
        raise ValueError(f"There are {len(labels)} labels for {n_items} items: give one for each.")
    as_offer("The list of items", (*labels, NOTHING))
    whole_number("seed", seed)
    for name, value in (("segments", segments), ("n_offers", n_offers), ("n_test", n_test)):
        whole_number(name, value, least=1)
    number_between("spread", spread, 0.0)
    for_truth, for_offers, for_test, _ = _generators(seed)
    truth = mixed_mnl(labels, segments, spread, for_truth)
    training = random_offers(labels, n_offers, for_offers, sizes)
    available = _count_offers(n_items, max(1, n_items // 2)) - (n_offers if unseen else 0)
    test = random_offers(labels, min(n_test, max(1, available)), for_test, sizes, exclude=training if unseen else ())
    return Market(truth, Assortments(training, truth.items), Assortments(test, truth.items), seed)


def mixed_mnl(items: Sequence[Label], segments: int, spread: float, generator: np.random.Generator) -> MixedMNL:
    """Return a random ground truth: four favourites per segment get attraction L * U(0, 1), the others U(0, 1) / 10."""
    n_all = len(items) + 1
    utilities = generator.uniform(size=(segments, n_all))
    for row in utilities:
        favourite = np.zeros(n_all, dtype=bool)
        favourite[generator.choice(n_all, size=min(4, n_all), replace=False)] = True
        row *= np.where(favourite, spread, 0.1)
    return MixedMNL((*items, NOTHING), utilities, generator.dirichlet(np.ones(segments)))


def random_offers(
    items: Sequence[Label],
    n_offers: int,
    generator: np.random.Generator,
    sizes: Sizes = "subsets",
    exclude: Collection[tuple[Label, ...]] = (),
    largest: int | None = None,
) -> list[tuple[Label, ...]]:
    """Return distinct random offers, each with the no-purchase option "nothing" appended.

    Parameters
    ----------
    items : sequence of items
        The items to offer.
    n_offers : int
        How many offers; more than exist is a ValueError.
    generator : numpy.random.Generator
        The source of randomness.
    sizes : "subsets" or "sizes"
        Whether offers are uniform among all subsets, or their size is drawn first.
    exclude : offers
        Offers not to draw, written with "nothing".
    largest : int, optional
        The maximum number of items in an offer (default: half of all).
    """
    most = max(1, len(items) // 2) if largest is None else min(largest, len(items))
    excluded = {frozenset(offer) for offer in exclude}
    available = _count_offers(len(items), most) - len(excluded)
    if n_offers > available:
        raise ValueError(
            f"There are only {available} different offers of up to {most} of {len(items)} items, not {n_offers}: "
            "ask for fewer, or for larger ones."
        )
    if sizes not in ("subsets", "sizes"):
        raise ValueError(f"Unknown way {sizes!r} to draw offers: choose 'subsets' or 'sizes'.")
    by_size = np.array([comb(len(items), size) for size in range(1, most + 1)], dtype=np.float64)
    if sizes == "sizes":
        by_size[:] = 1.0
    offers: dict[frozenset[Label], tuple[Label, ...]] = {}
    while len(offers) < n_offers:
        size = 1 + int(generator.choice(most, p=by_size / by_size.sum()))
        picked = sorted(generator.choice(len(items), size=size, replace=False).tolist())
        offer = (*(items[number] for number in picked), NOTHING)
        if frozenset(offer) not in excluded:
            offers.setdefault(frozenset(offer), offer)
    return list(offers.values())


def draw_choices(assortments: Assortments, probabilities: Vec, size: int, generator: np.random.Generator) -> Codes:
    """Return the coordinates of random choices: an offer uniformly at random, then an item by its probability."""
    offers = generator.integers(assortments.n_offers, size=size)
    cumulative = np.cumsum(probabilities)
    starts = assortments.indptr[:-1]
    before = cumulative[starts] - probabilities[starts]
    totals = cumulative[assortments.indptr[1:] - 1] - before
    points = before[offers] + generator.uniform(size=size) * totals[offers]
    picked = np.searchsorted(cumulative, points, side="right")
    return np.clip(picked, starts[offers], assortments.indptr[1:][offers] - 1)


def _count_offers(n_items: int, most: int) -> int:
    return sum(comb(n_items, size) for size in range(1, most + 1))


def _generators(seed: int) -> list[np.random.Generator]:
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(4)]
