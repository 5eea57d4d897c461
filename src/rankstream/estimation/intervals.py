"""How sure a prediction is: standard errors and intervals of predicted shares, by a parametric bootstrap."""

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, get_args

import numpy as np

from rankstream import distances
from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Label, Vec
from rankstream.columns import corrective
from rankstream.data.assortments import Assortments, as_offer
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observed import observed
from rankstream.models.entropy import fit as entropy
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.entropy.priors import WEIGHTS, fit_guides, of_guides
from rankstream.models.rankings import RankingModel

Refit = Literal["max-entropy", "primal-dual"]
Model = RankingModel | EntropyModel
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
    fitted in the same way as the model: by maximum entropy with its prior fitted anew, both from where the first fit
    ended (``warm=False``: from scratch, which takes twice as long), or (``"primal-dual"``) as the nearest mixture of
    rankings, with ties broken by another seed. An interval is
    share -+ z * sqrt(se^2 + shift^2), cut to [0, 1]: ``se`` is the standard deviation of the replicates' shares,
    ``shift`` the distance of their mean from the share, a bias that the bootstrap sees.

    So intervals cover sampling noise, the estimation of the prior and, for rankings, the choice among models that fit
    equally well; not what no replicate can show: that the truth is unlike the prior where no data are, or unlike any
    ranking model. On offers with data they cover nearly as often as they say, on others less (docs/answers.md).
    ``refit_prior=False`` is many times faster and takes the prior for known: its intervals are far too narrow.

    ``model`` may be one that was fitted to these counts before; without it, one is fitted here. Replicates follow from
    ``seed`` alone; ``watch`` is told how many are done, and of how many.

    >>> counts = ChoiceCounts(Assortments([("tea", "pie", "no"), ("tea", "no")]), [50, 30, 20, 70, 30])
    >>> found = Bootstrap(counts, replicates=20).predict(("tea", "no"))["tea"]
    >>> 0.5 < found.low < found.share < found.high < 0.9
    True
    """

    def __init__(
        self,
        counts: ChoiceCounts,
        method: Refit = "max-entropy",
        replicates: int = 100,
        seed: int = 0,
        *,
        model: Model | None = None,
        refit_prior: bool = True,
        warm: bool = True,
        watch: Callable[[int, int], None] | None = None,
    ) -> None:
        if method not in get_args(Refit):
            raise ValueError(f"There is no method {method!r}: choose one of {', '.join(map(repr, get_args(Refit)))}.")
        whole_number("replicates", replicates, least=2)
        random = np.random.default_rng(whole_number("seed", seed))
        data = observed(_whole(counts))
        refit: Callable[[ChoiceCounts, int], Model] = _nearest
        if method == "max-entropy":
            refit = _Dense(data, seed, refit_prior, warm)
        self.model: Model = model or (refit.first.model if isinstance(refit, _Dense) else _nearest(data, seed, 1e-3))
        shares = self.model.probabilities(data.assortments)
        self.models: list[Model] = []
        for number in range(replicates):
            self.models.append(refit(draw(data, shares, random), seed + 1 + number))
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
    method: Refit = "max-entropy",
    replicates: int = 100,
    seed: int = 0,
) -> dict[Label, Share]:
    """The predicted shares of one offer with their intervals, in one call; for several offers, keep a ``Bootstrap``."""
    number_between("interval", interval, 1e-6, 1.0 - 1e-6)
    return Bootstrap(counts, method, replicates, seed).predict(offer, interval)


def draw(counts: ChoiceCounts, shares: Vec, random: np.random.Generator) -> ChoiceCounts:
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


class _Dense:
    """Maximum entropy: the first fit, and others from where it ended, in its prior's parameters and in its duals."""

    def __init__(self, counts: ChoiceCounts, seed: int, refit_prior: bool, warm: bool) -> None:
        self.seed, self.refit_prior, self.warm = seed, refit_prior, warm
        self.guides = fit_guides(counts, seed=seed)
        self.prior = of_guides(self.guides, WEIGHTS)
        self.first = entropy.fit(counts, self.prior, seed=seed)

    def __call__(self, counts: ChoiceCounts, _: int) -> Model:
        prior = self.prior
        if self.refit_prior:
            prior = of_guides(fit_guides(counts, seed=self.seed, start=self.guides if self.warm else None), WEIGHTS)
        start = self.first if self.warm else None
        return entropy.fit(counts, prior, start=start, tolerance=GAP, seed=self.seed).model


def _nearest(counts: ChoiceCounts, seed: int, gap: float = GAP) -> RankingModel:
    """The mixture of rankings nearest in the distance of ``estimate``, offers weighed by their observations."""
    weighted = distances.L2(counts.assortments, weights=distances.observation_weights(counts))
    return corrective.fit(counts.assortments, counts, weighted, None, "random", gap, "gap", seed=seed).model
