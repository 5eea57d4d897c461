"""Standard errors and intervals of predicted shares, by a parametric bootstrap."""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, NamedTuple

import numpy as np

from rankstream._core import Label, Progress, Vec, number_between, unwatched, whole_number
from rankstream._core.threads import one_blas_thread
from rankstream.data import Assortments, ChoiceCounts, as_offer, observed
from rankstream.data.observations import design_effect
from rankstream.estimation.methods import MaxEntropy, Method, Nearest, make, pick
from rankstream.estimation.misfit import Misfit, effective_sizes, measure_misfit, resample, resample_persons
from rankstream.estimation.task import Task
from rankstream.models import ChoiceModel, EntropyFit, EntropyModel, fit_max_entropy
from rankstream.models.answers import Substitution, favourites, missing_no_choice, substitution
from rankstream.models.entropy.saved_fit import saved_fit
from rankstream.models.entropy.soft_lattice import shared_programs
from rankstream.models.entropy.trust import Curvature
from rankstream.models.fit_warnings import interval_words
from rankstream.models.prices import (
    Elasticities,
    NearbyOffers,
    demand_offers,
    elasticities,
    everything,
    leaving_offer,
    nearby_offers,
    require_levels,
)

Variance = Callable[[Vec, Vec], Vec]
GAP = 1e-2
"""Accuracy of the refits, far below their sampling noise (``benchmarks/intervals.py`` measures coverage)."""


class Share(NamedTuple):
    """A predicted share, and the ends of its interval."""

    share: float
    low: float
    high: float


class Bootstrap:
    """Bootstrap refits of a model, for standard errors and intervals of its predictions.

    Every replicate draws as many choices from each offer as were counted (``effective_totals`` for counts that forget),
    with the model's own probabilities. The same method refits it: maximum entropy from the end of the first fit, with
    its prior fitted anew; any other method with another seed for ties. An interval is share -+ z * sqrt(se^2 + shift^2
    + misfit), cut to [0, 1]. ``se`` is the standard deviation of the replicates' shares, and ``shift`` the distance of
    their mean from the share. ``misfit`` is the error that no replicate shows: the difference between truth and prior
    where there are no data. It is measured on held-out offers for maximum entropy with its default prior, and is 0 for
    other methods and priors. Their intervals cover sampling noise and, for rankings, the choice among models that fit
    equally well. If counts were read with a column of persons, replicates draw groups of persons instead of choices, so
    that intervals are wider where the choices of a person are alike. For counts that forget, intervals are about the
    weighted average of the choices, not about changes.

    Parameters
    ----------
    counts : ChoiceCounts
        Whole choices that all count the same, or counts that forget.
    method : str or settings
        As for ``estimate``.
    replicates : int
        Number of refits.
    seed : int
        Seed of the simulated choices and of the method.
    model : optional
        A model that was fitted to these counts; by default, one is fitted here.
    watch : callable, optional
        Called with a text and the fraction of replicates that are done; with 0 during a first fit. Returning True after
        two replicates ends the bootstrap with those that are done.
    sizes : array, optional
        For each offer of the counts, how many choices a replicate draws; for weights without known squares.
    first : EntropyFit, optional
        For maximum entropy, the fit that refits start from (``Estimate.details``); by default, one is made here.

    Examples
    --------
    >>> counts = ChoiceCounts(Assortments([("tea", "pie", "no"), ("tea", "no")]), [50, 30, 20, 70, 30])
    >>> tea = Bootstrap(counts, replicates=20).predict(("tea", "no"))["tea"]
    >>> 0.5 < tea.low < tea.share < tea.high < 0.9
    True
    """

    def __init__(
        self,
        counts: ChoiceCounts,
        method: str | Method = "auto",
        replicates: int = 100,
        seed: int = 0,
        *,
        model: ChoiceModel | None = None,
        watch: Progress = unwatched,
        sizes: Vec | None = None,
        first: EntropyFit | None = None,
    ) -> None:
        whole_number("replicates", replicates, least=2)
        if getattr(model, "never_offered", ()):
            raise ValueError("The model has items that were never offered: use Bootstrap(...).with_items(items).")
        # several BLAS threads would wait for each other and take ten times the CPU time
        with one_blas_thread(), shared_programs():
            random = np.random.default_rng(whole_number("seed", seed))
            data = observed(counts)
            drawn, persons = effective_sizes(counts, data, sizes), data.persons
            task = Task(data.assortments, data, seed)
            self.counts, self.method = data, make(method) or pick(task)
            refit: Callable[[ChoiceCounts, int], ChoiceModel] = partial(_refit, self.method)
            dense: EntropyFit | None = None
            if isinstance(self.method, MaxEntropy):
                dense = first or _saved(model, self.method, data)
                dense = dense or self.method.entropy_fit(replace(task, watch=partial(_first, watch)))
                refit = partial(_refit_dense, self.method, dense, dense.curvature(data, seed), seed)
            self.model: ChoiceModel = model or (self.method.model(task) if dense is None else dense.model)
            shares = self.model.probabilities(data.assortments)
            draw = partial(resample, data, shares, random, drawn)
            if persons is not None and len(persons) > 1:
                draw = partial(resample_persons, data, shares, persons, random)
                drawn = data.totals / design_effect(data, shares)
            self.models: list[ChoiceModel] = []
            self.misfit = Misfit()
            for number in range(replicates):
                self.models.append(refit(draw(), seed + 1 + number))
                if watch(f"refitted {number + 1} of {replicates} times", (number + 1) / replicates) and number:
                    break
            if dense is not None and dense.stack is not None:
                self.misfit = measure_misfit(data, *self.spread(data.assortments), dense.stack.misfit, drawn)

    def with_items(self, items: Any, seed: int = 0) -> "Bootstrap":
        """Return the bootstrap of ``model.with_items(items)``, with attributes of items that were never offered.

        In each replicate, what a new item is worth is drawn from the posterior of its regression on attributes. So
        intervals of new items are wide where attributes explain little.
        """
        wide, random = copy(self), np.random.default_rng(seed)
        model: Any = self.model
        wide.model = model.with_items(items)
        replicates: list[Any] = self.models
        wide.models = [replace(one, attributes=model.attributes).with_items(items, random) for one in replicates]
        return wide

    def spread(self, assortments: Assortments) -> tuple[Vec, Vec, Vec]:
        """Return share, standard error, and shift of the replicates' mean, for every coordinate of any offers."""
        return self._spread(lambda model: model.probabilities(assortments))

    def _spread(self, measure: Callable[[ChoiceModel], Vec]) -> tuple[Vec, Vec, Vec]:
        value, table = measure(self.model), self.table(measure)
        return value, table.std(axis=0, ddof=1), table.mean(axis=0) - value

    def table(self, measure: Callable[[ChoiceModel], Vec]) -> Vec:
        """Evaluate a function of a model for each replicate: one row each."""
        with shared_programs():  # all replicates have the same offers
            return np.array([measure(model) for model in self.models])

    def bounds(self, assortments: Assortments, interval: float = 0.95) -> tuple[Vec, Vec, Vec]:
        """Return the share and its interval for every coordinate of any offers."""
        share, reach = self.model.probabilities(assortments), _quantile(interval) * self.errors(assortments)
        return share, np.maximum(0.0, share - reach), np.minimum(1.0, share + reach)

    def errors(self, assortments: Assortments) -> Vec:
        """Return sqrt(se^2 + shift^2 + misfit) for every coordinate of any offers."""
        share, error, shift = self.spread(assortments)
        new = {*getattr(self.model, "never_offered", ())}
        drawn = np.array([not new.isdisjoint(offer) for offer in assortments.offers])[assortments.owner]
        return np.sqrt(self.misfit.variance(share, error**2 + shift**2, self.misfit.has(assortments), drawn))

    def bounds_of(
        self,
        measure: Callable[[ChoiceModel], Vec],
        interval: float = 0.95,
        low: float = 0.0,
        high: float = 1.0,
        variance: Variance | None = None,
    ) -> tuple[Vec, Vec, Vec]:
        """Return any numbers computed from a model, and the ends of their intervals, cut to [``low``, ``high``].

        Parameters
        ----------
        measure : callable
            From a model to an array of numbers.
        interval : float
            Confidence level.
        low, high : float
            The range of the numbers.
        variance : callable, optional
            From the numbers and the squared spread of their replicates to their squared standard errors, such as a
            method of ``misfit`` (default: ``misfit.stretched``).

        Examples
        --------
        >>> counts = ChoiceCounts(Assortments([("tea", "pie", "no"), ("tea", "no")]), [50, 30, 20, 70, 30])
        >>> ahead = lambda model: np.array([model.predict(("tea", "no"))["tea"] - model.predict(("pie", "no"))["pie"]])
        >>> value, *ends = Bootstrap(counts, "mnl", replicates=20).bounds_of(ahead, low=-1.0)
        >>> float(ends[0][0]) < float(value[0]) < float(ends[1][0])
        True
        """
        value, reach = measure(self.model), _quantile(interval) * self.errors_of(measure, variance)
        return value, np.maximum(low, value - reach), np.minimum(high, value + reach)

    def errors_of(self, measure: Callable[[ChoiceModel], Vec], variance: Variance | None = None) -> Vec:
        """Return the error behind each interval of ``bounds_of``."""
        value, error, shift = self._spread(measure)
        spread = error**2 + shift**2
        return np.sqrt(self.misfit.stretched(spread) if variance is None else variance(value, spread))

    def substitution(
        self, offer: Iterable[Label] | None = None, interval: float = 0.95, gone: Iterable[Label] | None = None
    ) -> Substitution:
        """Return what each item's buyers take when it is gone, with intervals.

        Examples
        --------
        >>> counts = ChoiceCounts(Assortments([("tea", "pie", "no"), ("tea", "no")]), [50, 30, 20, 70, 30])
        >>> moves = Bootstrap(counts, "mnl", replicates=20).substitution()
        >>> bool((moves.low <= moves.shares).all() and (moves.shares <= moves.high).all())
        True
        """
        whole = as_offer("The offer", everything(self.model) if offer is None else offer)
        rows = None if gone is None else tuple(gone)
        own = substitution(self.model, whole, rows)
        parts = partial(self.misfit.of_parts, buyers=own.before[:, np.newaxis])
        _, low, high = self.bounds_of(lambda model: substitution(model, whole, rows).shares, interval, variance=parts)
        name = interval_words(getattr(self.model, "about", {}), interval)
        return replace(own, low=low, high=high, interval_name=name)

    def favourites(
        self,
        no_choice: Label | None = None,
        places: int = 2,
        interval: float = 0.95,
        gone: Iterable[Label] | None = None,
    ) -> dict[tuple[Label, ...], Share]:
        """Return the customer types by their first one or two choices, largest first, with the ends of their intervals.

        With price levels, the types are those at usual prices. Whole rankings have no intervals, because many mixtures
        of rankings give the same choices.

        Parameters
        ----------
        no_choice : optional
            The no-purchase option, which ends a ranking.
        places : int
            1 or 2: how many top choices define a type.
        interval : float
            Confidence level.
        gone : optional
            Only types whose favourite is one of these.
        """
        rows = None if gone is None else tuple(gone)
        whole = everything(self.model)
        measure, known, variance = self.type_shares(lambda model: substitution(model, whole, rows), no_choice, places)
        return dict(zip(known, _shares(self.bounds_of(measure, interval, variance=variance)), strict=True))

    def type_shares(
        self, moves: Callable[[ChoiceModel], Substitution], no_choice: Label | None, places: int = 2
    ) -> tuple[Callable[[ChoiceModel], Vec], list[tuple[Label, ...]], Variance]:
        """Return the function that measures the shares of the model's customer types, the types, and their variance."""
        own = moves(self.model)
        known = list(favourites(own, no_choice, places))
        first = own.before[[own.items.index(key[0] if key else no_choice) for key in known]]

        def measure(model: ChoiceModel) -> Vec:
            shares = favourites(moves(model), no_choice, places)
            return np.array([shares.get(key, 0.0) for key in known])

        whole = np.array([places == 1 or not key for key in known])  # all with that favourite: their share is an item's
        seen = self.misfit.has(Assortments([own.items]))[0]

        def variance(share: Vec, spread: Vec) -> Vec:
            """Return squared standard errors; a type that is a whole share has the same as the share."""
            items, types = self.misfit.variance(share, spread, seen), self.misfit.of_types(share, spread, first)
            return np.where(whole, items, types)

        return measure, known, variance

    def predict(self, offer: Iterable[Label], interval: float = 0.95, *, forced: bool = False) -> dict[Label, Share]:
        """Return the shares of one offer with intervals, for offers seen or not, and for items at prices.

        As a model's own ``predict`` does, this adds a missing no-purchase option unless ``forced``.
        """
        single = offer if isinstance(offer, Mapping) else as_offer("The offer", offer)
        added = None if forced else missing_no_choice(self.model, single)
        if isinstance(single, Mapping):
            priced = single if added is None else {**single, added: None}
            around = nearby_offers(require_levels(self.model), self.model.items, priced)
            return dict(zip(around.items, self._shares(around, interval), strict=True))
        single = single if added is None else (*single, added)
        return dict(zip(single, _shares(self.bounds(Assortments([single]), interval)), strict=True))

    def demand(self, item: Label, others: Mapping[Any, Any], interval: float = 0.95) -> dict[float, Share]:
        """Return the share of an item at each of its price levels beside others, with the ends of its interval."""
        offers = demand_offers(self.model, item, others)
        return {price: self._shares(around, interval)[0] for price, around in offers.items()}

    def willingness(self, item: Label, price: Any, no_choice: Label | None = None, interval: float = 0.95) -> Share:
        """Return the share of customers for whom an item at a price beats leaving, with the ends of its interval."""
        return self.predict(leaving_offer(self.model, item, price, no_choice), interval, forced=True)[item]

    def elasticities(self, offer: Mapping[Any, Any], interval: float = 0.95) -> Elasticities:
        """Return arc elasticities of an offer, own and cross, with intervals."""
        return elasticities(self.model, offer, lambda measure, part: self.bounds_of(measure, part, -inf, inf), interval)

    def _shares(self, around: NearbyOffers, interval: float) -> list[Share]:
        """Interpolate shares and ends between price levels, as if the errors at all levels were fully correlated."""
        ends = self.bounds(Assortments(around.offers), interval)
        return _shares(around.weights @ part.reshape(len(around.offers), -1) for part in ends)

    def standard_errors(self, offer: Iterable[Label]) -> dict[Label, float]:
        """Return the standard deviations of the replicates' shares of one offer."""
        single = as_offer("The offer", offer)
        return dict(zip(single, self.spread(Assortments([single]))[1].tolist(), strict=True))

    def __repr__(self) -> str:
        return f"Bootstrap({len(self.models)} replicates of a {type(self.model).__name__})"


def _shares(ends: Iterable[Vec]) -> list[Share]:
    return [Share(*row) for row in zip(*(column.tolist() for column in ends), strict=True)]


def _quantile(interval: float) -> float:
    """Return half the width of a normal interval, in standard errors."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + 0.5 * number_between("interval", interval, 1e-6, 1.0 - 1e-6)))


def _refit(method: Method, counts: ChoiceCounts, seed: int) -> ChoiceModel:
    """Refit by the same method; ``nearest`` stops at an accuracy that the noise justifies."""
    quick = replace(method, gap=max(method.gap, GAP)) if isinstance(method, Nearest) else method
    return quick.model(Task(counts.assortments, counts, seed))


def _first(watch: Progress, text: str, _: float = 1.0) -> bool:
    """Report progress during the first fit, which is never cut short; a callback may raise an error to end it."""
    watch(text, 0.0)
    return False


def _saved(model: ChoiceModel | None, method: MaxEntropy, data: ChoiceCounts) -> EntropyFit | None:
    """Return the saved fit of a model with default settings and the same items; else None."""
    fit = saved_fit(model) if method.prior == "held-out" and method.trust == "auto" else None
    return fit if fit is not None and fit.model.items == data.assortments.items else None


def _refit_dense(
    method: MaxEntropy, first: EntropyFit, curvature: Curvature | None, seed: int, counts: ChoiceCounts, _: int
) -> ChoiceModel:
    """Refit by maximum entropy: the guides are fitted anew, their weights and the trust are those of the first fit."""
    prior: Any = method.prior if first.stack is None else first.stack.refit(counts, seed)
    refit = fit_max_entropy(
        counts, prior, trust=first.trust, start=first, curvature=curvature, seed=seed,
        tolerance=max(GAP, method.tolerance_nats), max_rounds=method.max_rounds,
    )  # fmt: skip
    if isinstance(refit.model, EntropyModel):
        refit.model.remember(refit.fitted)
    return refit.model
