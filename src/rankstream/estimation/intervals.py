"""How sure a prediction is: standard errors and intervals of predicted shares, by a parametric bootstrap."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Label, Vec
from rankstream.data.assortments import Assortments, as_offer
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observed import observed
from rankstream.estimation.methods import MaxEntropy, Method, Nearest, make, pick
from rankstream.estimation.task import Task
from rankstream.models.entropy.fit import fit_max_entropy
from rankstream.models.entropy.laws import Prior
from rankstream.models.protocol import ChoiceModel

GAP = 1e-2
"""How exactly a replicate is fitted: far below its own sampling noise."""


class Share(NamedTuple):
    """A predicted share, and the ends of its interval."""

    share: float
    low: float
    high: float


class Bootstrap:
    """Models refitted to simulated data, and how much their predictions differ from the model's.

    Every replicate draws as many choices from each offer as were counted, with the model's own probabilities, and is
    fitted by the same method as the model: by maximum entropy with its prior fitted anew, both from where the first fit
    ended, or by any other with ties broken by another seed. An interval is share -+ z * sqrt(se^2 + shift^2), cut to
    [0, 1]: ``se`` is the standard deviation of the replicates' shares, ``shift`` the distance of their mean from the
    share, a bias that the bootstrap sees.

    So intervals cover sampling noise, the estimation of the prior and, for rankings, the choice among models that fit
    equally well; not what no replicate can show: that the truth is unlike the prior where no data are, or unlike any
    ranking model. On offers with data they cover nearly as often as they say, on others less (docs/answers.md).

    Parameters
    ----------
    counts : ChoiceCounts
        Whole choices that all count the same.
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
        Is told how many replicates are done, and of how many.

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
    ) -> None:
        whole_number("replicates", replicates, least=2)
        random = np.random.default_rng(whole_number("seed", seed))
        data = observed(_whole(counts))
        task = Task(data.assortments, data, seed)
        self.method = make(method) or pick(task)
        refit: Callable[[ChoiceCounts, int], ChoiceModel] = partial(_refit, self.method)
        if isinstance(self.method, MaxEntropy):
            refit = _Dense(self.method, data, seed, refit_prior, warm)
        self.model: ChoiceModel = model or (refit.first.model if isinstance(refit, _Dense) else self.method.model(task))
        shares = self.model.probabilities(data.assortments)
        self.models: list[ChoiceModel] = []
        for number in range(replicates):
            self.models.append(refit(draw_counts(data, shares, random), seed + 1 + number))
            if watch is not None:
                watch(number + 1, replicates)

    def spread(self, assortments: Assortments) -> tuple[Vec, Vec, Vec]:
        """For every coordinate of any offers: the share, its standard error, and the shift of the replicates' mean."""
        share = self.model.probabilities(assortments)
        table = np.array([model.probabilities(assortments) for model in self.models])
        return share, table.std(axis=0, ddof=1), table.mean(axis=0) - share

    def bounds(self, assortments: Assortments, interval: float = 0.95) -> tuple[Vec, Vec, Vec]:
        """For every coordinate of any offers: the share, and the ends of its interval."""
        from scipy.special import ndtri

        z = float(ndtri(0.5 + 0.5 * number_between("interval", interval, 1e-6, 1.0 - 1e-6)))
        share, error, shift = self.spread(assortments)
        reach = z * np.sqrt(error**2 + shift**2)
        return share, np.maximum(0.0, share - reach), np.minimum(1.0, share + reach)

    def predict(self, offer: Iterable[Label], interval: float = 0.95) -> dict[Label, Share]:
        """The shares of one offer, seen before or not, with the ends of their intervals, each for itself."""
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
    """The predicted shares of one offer with their intervals, in one call; for several offers, keep a ``Bootstrap``."""
    number_between("interval", interval, 1e-6, 1.0 - 1e-6)
    return Bootstrap(counts, method, replicates, seed).predict(offer, interval)


def draw_counts(counts: ChoiceCounts, shares: Vec, random: np.random.Generator) -> ChoiceCounts:
    """Counts of as many choices from each offer, with these shares."""
    offers, tallies = counts.assortments, np.zeros(shares.size)
    ends = offers.indptr.tolist()
    for first, last, total in zip(ends[:-1], ends[1:], counts.totals.tolist(), strict=True):
        part = np.maximum(shares[first:last], 0.0)
        tallies[first:last] = random.multinomial(int(total), part / part.sum())
    return ChoiceCounts(offers, tallies)


def _whole(counts: ChoiceCounts) -> ChoiceCounts:
    if counts.forgets or (counts.tallies != np.floor(counts.tallies)).any():
        raise ValueError("Intervals need whole choices that all count the same: give ChoiceCounts without weights.")
    return counts


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
