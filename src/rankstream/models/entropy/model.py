"""EntropyModel: a distribution over all rankings whose every probability is computed exactly."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankstream._core import UNCOMPILED_STEPS, Codes, Label, Vec, number_between, uncompiled, whole_number
from rankstream.data.assortments import Assortments
from rankstream.data.attributes import Attributes, Rows, attribute_rows
from rankstream.models.base import finite_array
from rankstream.models.entropy.new_items import Importance, add_items, explain_worths
from rankstream.models.entropy.ranking_laws import MAX_STATES, RankingLaw
from rankstream.models.lifts import pairs_of
from rankstream.models.rankings import DenseModel, RankingModel

if TYPE_CHECKING:
    from rankstream.models.entropy.soft_lattice import SoftLattice

N_RANDOM_OFFERS = 300  # for herding, with the no-choice item, and as many without
N_SAMPLED_RANKINGS = 4000  # if a program is too large: shares with a standard error of at most 0.008
MAX_REMEMBERED_ANSWERS = 100_000  # offers in the cache, some ten megabytes
MAX_HERDED_ITEMS = 16  # with more, the table for herding is slow


@dataclass(frozen=True, eq=False)
class EntropyModel(DenseModel):
    """A distribution over all rankings, proportional to ``prior(ranking) * exp(-<duals, a(ranking)>)``.

    ``duals`` has a number per coordinate of ``assortments``, the offers it was fitted to. Probabilities come from a
    dynamic program over unions of offers. If an offer makes that too large, 4,000 rankings drawn from the model answer
    instead. ``to_rankings`` makes a sparse ``RankingModel``. With ``attributes``, ``with_items`` adds new items.

    Examples
    --------
    >>> from rankstream.models.entropy.ranking_laws import plackett_luce
    >>> offers = Assortments([("tea", "pie")], ["tea", "pie", "cake"])
    >>> model = EntropyModel(plackett_luce(offers.items, [1.0, 1.0, 2.0]), offers, np.array([0.0, np.log(3.0)]))
    >>> model.predict(("tea", "pie"))
    {'tea': 0.75, 'pie': 0.25}
    >>> {item: round(share, 3) for item, share in model.predict(("tea", "pie", "cake")).items()}
    {'tea': 0.375, 'pie': 0.125, 'cake': 0.5}
    """

    FORMAT: ClassVar[str] = "rankstream-entropy-model"
    VERSION: ClassVar[int] = 2  # of models that respect an order; others are written as version 1
    prior: RankingLaw
    assortments: Assortments
    duals: Vec
    attributes: Attributes | None = None
    widened: "tuple[EntropyModel, Rows] | None" = field(init=False, repr=False, default=None)
    """For a model that ``with_items`` made: the model before, and the rows of the new items, for refits."""
    items: tuple[Label, ...] = field(init=False)
    no_choice_code: int | None = field(init=False)
    _answers: dict[frozenset[Label], dict[Label, float]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        with np.errstate(over="ignore"):
            total = np.abs(self.duals).sum()  # bounds the sum of any ranking
        if self.duals.shape != (self.assortments.n_coordinates,) or not np.isfinite(total):
            raise ValueError(f"The model needs {self.assortments.n_coordinates} finite duals, one per coordinate.")
        object.__setattr__(self, "items", self.prior.items)
        object.__setattr__(self, "no_choice_code", self.assortments.no_choice_code)
        object.__setattr__(self, "_answers", {})

    def __repr__(self) -> str:
        new = f", {len(self.never_offered)} of them never offered" if self.never_offered else ""
        return f"EntropyModel({len(self.items)} items{new}, fitted to {self.assortments.n_offers} offers)"

    def probabilities(self, assortments: Assortments) -> Vec:
        """Return the choice probability of every coordinate, for any offers of the model's items."""
        if (steps := UNCOMPILED_STEPS.get()) > 0:
            law, n_items = self.prior, len(self.items)
            parts = self.assortments.n_offers + len(law.class_weights) + n_items**2 * len(law.chain_weights)
            with uncompiled():
                self.exact_probabilities(assortments, steps // (n_items * parts))  # caches what is small enough
        shares = self.exact_probabilities(assortments)
        unknown = np.isnan(shares)
        return np.where(unknown, self._drawn.probabilities(assortments), shares) if unknown.any() else shares

    @cached_property
    def _drawn(self) -> RankingModel:
        """Sampled rankings for offers whose program is too large; drawing them takes seconds."""
        return self.draw(N_SAMPLED_RANKINGS)

    def exact_probabilities(self, assortments: Assortments, max_states: int = MAX_STATES) -> Vec:
        """Return exact probabilities: NaN for offers that would make the program larger than twice ``max_states``."""
        known = set(self.items)
        for item in {assortments.items[code] for code in assortments.members.tolist()}:
            if item not in known:
                raise ValueError(f"The model has no item {item!r}: its items are {', '.join(map(repr, self.items))}.")
        keys, answers = [frozenset(offer) for offer in assortments.offers], self._answers
        new = [offer for offer, key in zip(assortments.offers, keys, strict=True) if key not in answers]
        if len(answers) + len(new) > MAX_REMEMBERED_ANSWERS:  # a new dict, as another thread may still read the old one
            object.__setattr__(self, "_answers", answers := {})
            new = list(assortments.offers)
        # answers are cached because building the program takes longer than running it
        offers = list({frozenset(offer): offer for offer in new}.values())
        unknown: dict[frozenset[Label], dict[Label, float]] = {}
        for offer, shares in zip(offers, self._exact(offers, max_states) if offers else [], strict=True):
            cache = unknown if np.isnan(shares).any() else answers
            cache[frozenset(offer)] = dict(zip(offer, shares.tolist(), strict=True))
        pairs = zip(assortments.offers, keys, strict=True)
        return np.array([(unknown.get(key) or answers[key])[item] for offer, key in pairs for item in offer])

    def remember(self, shares: Vec) -> None:
        """Cache the probabilities of the fitted offers, as the fit computed them."""
        numbers = iter(shares.tolist())
        for offer in self.assortments.offers:
            self._answers[frozenset(offer)] = {item: next(numbers) for item in offer}

    def _exact(self, offers: list[tuple[Label, ...]], max_states: int) -> list[Vec]:
        """Add the offers to the program at cost 0 and run it; split them in halves if they are too many.

        A single offer at most doubles the states, so a program of ``max_states`` answers for any offer.
        """
        from rankstream.models.entropy.soft_lattice import program_of  # compiled, and not needed to load a model
        from rankstream.oracles.tables.lattice import TooManyUnionsError

        added = Assortments(offers, self.items)
        if not self.duals.any():
            return np.split(self.prior.probabilities(added), added.indptr[1:-1])
        both = Assortments([*self.assortments.offers, *offers], self.items, self.assortments.order)
        duals = np.zeros(both.n_coordinates)
        duals[: self.duals.size] = self.duals
        most = max_states if len(offers) > 1 else 2 * max_states + 1
        try:
            shares = program_of(both, self.prior, most).evaluate(duals)[1][self.duals.size :]
        except TooManyUnionsError:
            if len(offers) == 1:
                return [np.full(len(offers[0]), np.nan)]
            half = len(offers) // 2
            return self._exact(offers[:half], max_states) + self._exact(offers[half:], max_states)
        return np.split(shares, added.indptr[1:-1])

    def program(self) -> "tuple[SoftLattice, Vec]":
        """Return the program of the offers that tilt the prior, and their duals; offers without duals do not matter."""
        from rankstream.models.entropy.soft_lattice import SoftLattice

        offers, starts = self.assortments, self.assortments.indptr[:-1]
        tilting = np.logical_or.reduceat(self.duals != 0.0, starts)
        if tilting.all():
            return SoftLattice(offers, self.prior), self.duals
        numbers = np.flatnonzero(tilting) if tilting.any() else np.zeros(1, dtype=np.int64)
        some = Assortments([offers.offers[number] for number in numbers.tolist()], self.items, offers.order)
        return SoftLattice(some, self.prior), self.duals[np.isin(offers.owner, numbers)]

    def to_rankings(self, size: int = 1000, seed: int = 0) -> RankingModel:
        """Return at most ``size`` rankings with nearly the same probabilities, equally weighted up to repetitions.

        They come from herding: each ranking best corrects the errors so far on the fitted and on other offers, with and
        without the no-choice item. That is Frank-Wolfe with equal weights on the model's own probabilities. With many
        items, where herding is slow, they are independent draws.
        """
        rounds = whole_number("size", size, least=1)
        if len(self.items) > MAX_HERDED_ITEMS:
            return self.draw(rounds, seed)
        from rankstream.oracles import auto

        offers = self._broad_offers(seed)
        oracle, wanted = auto(offers, seed=seed), self.probabilities(offers)
        excess = np.zeros(offers.n_coordinates)  # total error of the rankings so far
        picked: Counter[bytes] = Counter()
        for _ in range(rounds):
            ranking = oracle.cheapest(excess).ranking
            excess += offers.vertex(ranking) - wanted
            picked[ranking.tobytes()] += 1
        orders = np.array([np.frombuffer(key, dtype=np.int64) for key in picked])
        weights = np.array(list(picked.values())) / rounds
        return RankingModel.from_codes(self.items, orders, weights, self.no_choice_code)

    def draw_orders(self, size: int, random: np.random.Generator) -> Codes:
        """Exact draws from the tilted prior."""
        from rankstream.models.entropy.soft_lattice import TiltedRankings

        return TiltedRankings(*self.program()).draw(size, random)

    def relabel(self, items: Iterable[Label]) -> "EntropyModel":
        """Return the same model with other names for its items."""
        labels = tuple(items)
        named = dict(zip(self.items, labels, strict=True))
        offers = [[named[item] for item in offer] for offer in self.assortments.offers]
        order = pairs_of(self.prior.order, labels)
        same = EntropyModel(replace(self.prior, items=labels), Assortments(offers, labels, order), self.duals)
        return same.note(**self.about)

    def with_items(
        self, items: "str | os.PathLike[str] | Rows", random: np.random.Generator | None = None
    ) -> "EntropyModel":
        """Return the model with more items, which need a value for every attribute of the fit.

        New items are placed by the prior, given all choices of the ranking from the fitted offers. So the model is
        still a distribution over rankings, and its predictions of other offers stay the same. With ``random``, what
        new items are worth is drawn, as for one replicate of ``Bootstrap.with_items``.
        """
        if self.attributes is None:
            return super().with_items(items)
        rows = attribute_rows(items)
        if known := set(rows) & set(self.items):
            raise ValueError(f"The model already has the item {min(map(repr, known))}: give new items only.")
        prior, unknown = add_items(self.prior, self.attributes, self._n_known, rows, random)
        model = EntropyModel(prior, Assortments(self.assortments.offers, prior.items), self.duals, self.attributes)
        names = ", ".join(map(str, model.never_offered))
        notes = [f"Never offered, so predicted by their attributes alone: {names}.", *unknown]
        object.__setattr__(model, "widened", (self, rows))
        return model.note(**self.about | {"item_notes": notes})

    def importance(self, interval: float = 0.95, seed: int = 0) -> dict[str, Importance]:
        """Return which attributes explain choice: the share of the variance between items that each explains.

        The variance is that of log worths within classes; the rest is each item's own. Intervals are about how few
        items there are, given the fit; an attribute whose interval has 0 may explain nothing. Shares can be below 0
        where attributes go together.

        Examples
        --------
        >>> import rankstream as rs
        >>> counts = rs.read_counts("examples/bakery.csv")
        >>> weight = {"croissant": 60, "muffin": 110, "cookie": 50, "bagel": 105, "pretzel": 85, "scone": 95}
        >>> table = {item: {"weight": grams} for item, grams in weight.items()}
        >>> found = rs.estimate(counts, attributes=rs.read_attributes(table)).model.importance()["weight"]
        >>> found.low <= found.share <= found.high
        True
        """
        if self.attributes is None:
            return dict(super().importance())  # which raises
        number_between("interval", interval, 1e-6, 1.0 - 1e-6)
        random = np.random.default_rng(seed)
        return explain_worths(self.prior, self.attributes, self._n_known)[0].importance(
            self.attributes.coded, interval, random
        )

    @property
    def _n_known(self) -> int:
        return len(self.items) - len(self.never_offered)

    @property
    def never_offered(self) -> tuple[Label, ...]:
        """The items that ``with_items`` added."""
        offered = {item for offer in self.assortments.offers for item in offer}
        return tuple(item for item in self.items if item not in offered) if self.attributes else ()

    def _broad_offers(self, seed: int) -> Assortments:
        """Return the fitted offers, all pairs, and random offers of all sizes, half of them with the no-choice item.

        A random offer has at most one item of a chain, such as a price level.
        """
        generator, n_items = np.random.default_rng(seed), len(self.items)
        always = [] if self.no_choice_code is None else [self.no_choice_code]
        level_of = {chain[0]: chain for chain in self.prior.order}
        later = [code for chain in self.prior.order for code in chain[1:]]
        others = np.setdiff1d(np.arange(n_items), [*always, *later])
        picks = [list(pair) for pair in combinations([*others.tolist(), *always], 2)]
        sizes = np.resize(np.arange(1, len(others) + 1), N_RANDOM_OFFERS).tolist()
        for more in (always, []):
            picks += [generator.choice(others, size=size, replace=False).tolist() + more for size in sizes]
        sets = dict.fromkeys(frozenset(offer) for offer in self.assortments.offers)
        for pick in picks:
            codes = [int(generator.choice(level_of.get(code, (code,)))) for code in pick] if level_of else pick
            sets.setdefault(frozenset(self.items[code] for code in codes))
        offers = [[item for item in self.items if item in offer] for offer in sets]
        return Assortments(offers, self.items, self.assortments.order)

    def to_content(self) -> dict[str, Any]:
        """Return the content of a file."""
        content: dict[str, Any] = {
            "version": 2 if self.prior.order else 1,
            "items": list(self.items),
            "offers": [[self.items.index(item) for item in offer] for offer in self.assortments.offers],
            "duals": self.duals.tolist(),
            "prior": self.prior.to_content(),
        }
        if self.attributes is not None:
            content["attributes"] = self.attributes.to_content()
        if self.prior.order:
            content["order"] = [list(chain) for chain in self.prior.order]
        return content

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> "EntropyModel":
        """Return the model that ``to_content`` described."""
        items = tuple(content["items"])
        if any(type(code) is not int or code < 0 for offer in content["offers"] for code in offer):
            raise ValueError("an item number of its offers is negative or not whole")
        order = tuple(tuple(chain) for chain in content.get("order", ()))
        if any(type(code) is not int for chain in order for code in chain):
            raise ValueError("an item number of its order is not whole")
        prior = RankingLaw.from_content(items, content["prior"], order)
        offers = [[items[code] for code in offer] for offer in content["offers"]]
        table = Attributes(**content["attributes"]) if "attributes" in content else None
        duals = finite_array("duals", content["duals"], (-1,))
        return cls(prior, Assortments(offers, items, pairs_of(order, items)), duals, table)
