"""How sure a prediction is: standard errors and intervals of predicted shares, by a parametric bootstrap."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Label, Vec
from rankstream.data.assortments import Assortments, as_offer
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observed import observed
from rankstream.estimation.drawn import draw_counts, sizes_of
from rankstream.estimation.methods import MaxEntropy, Method, Nearest, make, pick
from rankstream.estimation.misfit import Misfit, measure_misfit
from rankstream.estimation.price_intervals import PriceIntervals, Share
from rankstream.estimation.task import Task
from rankstream.models.answers import Substitution, favourites, substitution
from rankstream.models.entropy.fit import fit_max_entropy
from rankstream.models.entropy.laws import Prior
from rankstream.models.prices import everything
from rankstream.models.protocol import ChoiceModel

GAP = 1e-2
"""How exactly a replicate is fitted: far below its own sampling noise."""


class Bootstrap(PriceIntervals):
    """Models refitted to simulated data, and how much their predictions differ from the model's.

    Every replicate draws as many choices from each offer as were counted (of counts that forget: as many as make its
    frequencies as certain, ``effective_totals``) with the model's own probabilities, and is
    fitted by the same method as the model: by maximum entropy with its prior fitted anew, both from where the first fit
    ended, or by any other with ties broken by another seed. An interval is share -+ z * sqrt(se^2 + shift^2 + misfit),
    cut to [0, 1]: ``se`` is the standard deviation of the replicates' shares, ``shift`` the distance of their mean from
    the share, a bias that the bootstrap sees. What no replicate can show, that the truth is unlike the prior where no
    data are, is measured on offers that were held out, for maximum entropy with its usual prior: ``misfit``
    (``docs/answers.md`` says how often intervals cover). For other methods and priors it is 0, and intervals cover
    sampling noise, the estimation of the prior and, for rankings, the choice among models that fit equally well. That
    tastes moved while choices were remembered is in none of these: intervals of counts that forget are about the
    average over what they remember.

    Parameters
    ----------
    counts : ChoiceCounts
        Whole choices that all count the same, or counts that forget.
    method : str or settings
        As for ``estimate``.
    replicates : int
        How many refits.
    seed : int
        The simulated choices, and what the method draws.
    model : optional
        The model that was fitted to these counts before; without it, one is fitted here.
    refit_prior : bool
        False is many times faster for maximum entropy, and takes its prior for known: intervals far too narrow.
    warm : bool
        False fits replicates of maximum entropy from scratch, which takes twice as long.
    watch : callable, optional
        Called with how many replicates are done, and of how many.
    sizes : array, optional
        For each offer of the counts, how many choices a replicate draws; for weights whose squares nobody has added up.

    >>> counts = ChoiceCounts(Assortments([("tea", "pie", "no"), ("tea", "no")]), [50, 30, 20, 70, 30])
    >>> found = Bootstrap(counts, replicates=20).predict(("tea", "no"))["tea"]
    >>> 0.5 < found.low < found.share < found.high < 0.9
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
        refit_prior: bool = True,
        warm: bool = True,
        watch: Callable[[int, int], None] | None = None,
        sizes: Vec | None = None,
    ) -> None:
        whole_number("replicates", replicates, least=2)
        random = np.random.default_rng(whole_number("seed", seed))
        data = observed(counts)
        drawn = sizes_of(counts, data, sizes)
        task = Task(data.assortments, data, seed)
        self.method = make(method) or pick(task)
        refit: Callable[[ChoiceCounts, int], ChoiceModel] = partial(_refit, self.method)
        if isinstance(self.method, MaxEntropy):
            refit = _Dense(self.method, data, seed, refit_prior, warm)
        self.model: ChoiceModel = model or (refit.first.model if isinstance(refit, _Dense) else self.method.model(task))
        shares = self.model.probabilities(data.assortments)
        self.models: list[ChoiceModel] = []
        self.misfit = Misfit()
        for number in range(replicates):
            self.models.append(refit(draw_counts(data, shares, random, drawn), seed + 1 + number))
            if watch is not None:
                watch(number + 1, replicates)
        if isinstance(refit, _Dense) and refit.first.stack is not None:
            self.misfit = measure_misfit(data, *self.spread(data.assortments), refit.first.stack.misfit, drawn)

    def spread(self, assortments: Assortments) -> tuple[Vec, Vec, Vec]:
        """For every coordinate of any offers: the share, its standard error, and the shift of the replicates' mean."""
        return self._spread(lambda model: model.probabilities(assortments))

    def _spread(self, measure: Callable[[ChoiceModel], Vec]) -> tuple[Vec, Vec, Vec]:
        value = measure(self.model)
        table = np.array([measure(model) for model in self.models])
        return value, table.std(axis=0, ddof=1), table.mean(axis=0) - value

    def bounds(self, assortments: Assortments, interval: float = 0.95) -> tuple[Vec, Vec, Vec]:
        """For every coordinate of any offers: the share, and the ends of its interval."""
        share, error, shift = self.spread(assortments)
        reach = _quantile(interval) * np.sqrt(
            self.misfit.variance(share, error**2 + shift**2, self.misfit.has(assortments))
        )
        return share, np.maximum(0.0, share - reach), np.minimum(1.0, share + reach)

    def bounds_of(
        self, measure: Callable[[ChoiceModel], Vec], interval: float = 0.95, low: float = 0.0, high: float = 1.0
    ) -> tuple[Vec, Vec, Vec]:
        """Any numbers that can be asked of a model, and the ends of their intervals, cut to [``low``, ``high``].

        Parameters
        ----------
        measure : callable
            From a model to an array of numbers.
        interval : float
            How often an interval should cover.
        low, high : float
            What the numbers can be.

        >>> counts = ChoiceCounts(Assortments([("tea", "pie", "no"), ("tea", "no")]), [50, 30, 20, 70, 30])
        >>> ahead = lambda model: np.array([model.predict(("tea", "pie"))["tea"] - model.predict(("pie", "no"))["pie"]])
        >>> value, *ends = Bootstrap(counts, "mnl", replicates=20).bounds_of(ahead, low=-1.0)
        >>> float(ends[0][0]) < float(value[0]) < float(ends[1][0])
        True

        """
        z = _quantile(interval)
        value, error, shift = self._spread(measure)
        reach = z * np.sqrt(self.misfit.stretched(error**2 + shift**2))
        return value, np.maximum(low, value - reach), np.minimum(high, value + reach)

    def substitution(
        self, offer: Iterable[Label] | None = None, interval: float = 0.95, gone: Iterable[Label] | None = None
    ) -> Substitution:
        """Where each item's buyers go when it is gone, with the ends of the intervals of these parts.

        >>> counts = ChoiceCounts(Assortments([("tea", "pie", "no"), ("tea", "no")]), [50, 30, 20, 70, 30])
        >>> moves = Bootstrap(counts, "mnl", replicates=20).substitution()
        >>> bool((moves.low <= moves.shares).all() and (moves.shares <= moves.high).all())
        True
        """
        whole = as_offer("The offer", everything(self.model) if offer is None else offer)
        rows = None if gone is None else tuple(gone)
        _, low, high = self.bounds_of(lambda model: substitution(model, whole, rows).shares, interval)
        return replace(substitution(self.model, whole, rows), low=low, high=high)

    def favourites(
        self,
        no_choice: Label | None = None,
        places: int = 2,
        interval: float = 0.95,
        gone: Iterable[Label] | None = None,
    ) -> dict[tuple[Label, ...], Share]:
        """The customer types by their first one or two choices, largest first, with the ends of their intervals.

        Of a model with price levels, they are those at middle levels.
        Whole rankings have none: many mixtures of rankings give the same choices, and data do not say which it is.

        Parameters
        ----------
        no_choice : optional
            The item that stands for taking nothing, which ends a ranking.
        places : int
            1 or 2: how many of their choices types differ by.
        interval : float
            How often an interval should cover.
        gone : optional
            Only types that like one of these best.

        """
        rows = None if gone is None else tuple(gone)
        whole = everything(self.model)

        def types(model: ChoiceModel) -> dict[tuple[Label, ...], float]:
            return favourites(substitution(model, whole, rows), no_choice, places)

        known = list(types(self.model))

        def measure(model: ChoiceModel) -> Vec:
            shares = types(model)
            return np.array([shares.get(key, 0.0) for key in known])

        columns = (column.tolist() for column in self.bounds_of(measure, interval))
        return {key: Share(*row) for key, row in zip(known, zip(*columns, strict=True), strict=True)}

    def predict(self, offer: Iterable[Label], interval: float = 0.95) -> dict[Label, Share]:
        """The shares of one offer, seen before or not, with the ends of their intervals; also of items at prices."""
        if isinstance(offer, Mapping):
            return self.predict_at(offer, interval)
        single = as_offer("The offer", offer)
        columns = (column.tolist() for column in self.bounds(Assortments([single]), interval))
        return {item: Share(*row) for item, row in zip(single, zip(*columns, strict=True), strict=True)}

    def standard_errors(self, offer: Iterable[Label]) -> dict[Label, float]:
        """The standard deviations of the replicates' shares of one offer."""
        single = as_offer("The offer", offer)
        return dict(zip(single, self.spread(Assortments([single]))[1].tolist(), strict=True))

    def __repr__(self) -> str:
        return f"Bootstrap({len(self.models)} replicates of a {type(self.model).__name__})"


def predict_interval(
    counts: ChoiceCounts,
    offer: Iterable[Label],
    interval: float = 0.95,
    method: str | Method = "auto",
    replicates: int = 100,
    seed: int = 0,
) -> dict[Label, Share]:
    """The predicted shares of one offer with their intervals, in one call; for several offers, keep a ``Bootstrap``.

    Parameters
    ----------
    counts : ChoiceCounts
        Whole choices that all count the same.
    offer : items
        The offer to predict, whether it occurs in the counts or not.
    interval : float
        How often an interval should cover: above 0 and below 1.
    method : str or settings
        As for ``estimate``.
    replicates : int
        How many refits, at least 2.
    seed : int
        The simulated choices, and what the method draws.

    >>> counts = ChoiceCounts(Assortments([("tea", "no"), ("pie", "no")]), [70, 30, 40, 60])
    >>> tea = predict_interval(counts, ("tea", "no"), method="mnl", replicates=20)["tea"]
    >>> 0.5 < tea.low < tea.share < tea.high < 0.9
    True

    """
    number_between("interval", interval, 1e-6, 1.0 - 1e-6)
    return Bootstrap(counts, method, replicates, seed).predict(offer, interval)


def _quantile(interval: float) -> float:
    """How many standard errors an interval of the normal law reaches to either side."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + 0.5 * number_between("interval", interval, 1e-6, 1.0 - 1e-6)))


def _refit(method: Method, counts: ChoiceCounts, seed: int) -> ChoiceModel:
    """Another fit by the same method; the nearest rankings only as near as noise makes worth while."""
    quick = replace(method, gap=max(method.gap, GAP)) if isinstance(method, Nearest) else method
    return quick.model(Task(counts.assortments, counts, seed))


class _Dense:
    """Maximum entropy: the first fit, and others with its guides fitted anew and its weights and trust kept."""

    def __init__(self, method: MaxEntropy, counts: ChoiceCounts, seed: int, refit_prior: bool, warm: bool) -> None:
        self.method, self.seed, self.warm = method, seed, warm
        self.refit_prior = refit_prior and not isinstance(method.prior, Prior)
        self.first = fit_max_entropy(
            counts, method.prior, trust=method.trust, tolerance=method.tolerance_nats,
            max_evaluations=method.max_evaluations, seed=seed,
        )  # fmt: skip

    def __call__(self, counts: ChoiceCounts, _: int) -> ChoiceModel:
        first = self.first
        prior: Any = self.method.prior if self.refit_prior else getattr(first.model, "prior", first.stack)
        if first.stack is not None and self.refit_prior:
            prior = first.stack.refit(counts, self.seed, self.warm)
        start = first if self.warm else None
        return fit_max_entropy(
            counts, prior, trust=first.trust, start=start, tolerance=max(GAP, self.method.tolerance_nats),
            max_evaluations=self.method.max_evaluations, seed=self.seed,
        ).model  # fmt: skip
