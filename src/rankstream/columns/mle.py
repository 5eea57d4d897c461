"""Van Ryzin and Vulcano's estimator: the ranking model of maximum likelihood, by column generation."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.watch import Watch, unwatched
from rankstream.columns.data import MakeOracle, observe
from rankstream.columns.interior_point import minimise
from rankstream.columns.losses import KullbackLeibler
from rankstream.columns.solved import Limits, ProvenFit
from rankstream.columns.warm_start import warm_start
from rankstream.data.counts import ChoiceCounts
from rankstream.oracles import Ties


@dataclass(frozen=True, eq=False)
class MaximumLikelihood(ProvenFit):
    """The likeliest model; ``value`` is its divergence from the data in nats per observation.

    ``log_likelihood`` is that of all observations; the largest one is at most ``observations * gap`` above it.
    """

    log_likelihood: float


def fit_mle(
    counts: ChoiceCounts,
    *,
    tolerance: float = 1e-4,
    warm_rounds: int = 0,
    max_iterations: int = 2000,
    max_seconds: float = np.inf,
    oracle: MakeOracle | None = None,
    ties: Ties = "random",
    seed: int = 0,
    watch: Watch = unwatched,
) -> MaximumLikelihood:
    """The distribution over rankings of maximum likelihood (Appendix B.2), proven up to ``tolerance`` nats per choice.

    The gap rests on the pricing problem: with q as shares of all observations, log-likelihoods per observation differ
    by at most log(max over rankings of sum of q a / x), by Jensen's inequality, and that is 0 exactly at the optimum
    (where the paper's rule says K, read 1). Items that were never chosen from an offer need no probability there.

    Parameters
    ----------
    counts : ChoiceCounts
        The choices; frequencies are refused, as they do not weigh offers.
    tolerance : float
        The proven gap at which the search ends, in nats per choice.
    warm_rounds : int
        How many rounds of mirror descent find the first rankings.
    max_iterations : int
        How often the oracle is asked at most.
    max_seconds : float
        The most seconds; what is not proven by then is reported as such.
    oracle : callable, optional
        From assortments to an oracle; without it ``oracles.auto``.
    ties : "random", "first" or "last"
        Which of the rankings that choose alike from all offers is kept.
    seed : int
        Seed for the ties and the first rankings.
    watch : Watch
        Asked every few steps whether that is enough; the fit then ends with what it has.

    >>> from rankstream import Assortments
    >>> counts = ChoiceCounts(Assortments([("tea", "pie"), ("tea", "pie", "nothing")]), [40, 60, 5, 2, 3])
    >>> found = fit_mle(counts)
    >>> found.proven, 0.0 <= found.gap <= 1e-4, found.log_likelihood < 0.0
    (True, True, True)

    """
    started = perf_counter()
    if not isinstance(counts, ChoiceCounts):
        raise ValueError(
            f"A likelihood needs ChoiceCounts, not {type(counts).__name__}: frequencies do not weigh offers."
        )
    number_between("tolerance", tolerance, 0.0)
    number_between("max_seconds", max_seconds, 0.0)
    whole_number("max_iterations", max_iterations, least=1)
    limits = Limits(tolerance, max_iterations=max_iterations, max_seconds=max_seconds, watch=watch)
    observed = observe(counts)
    pricing = observed.pricing(oracle, ties, seed)
    first = warm_start(observed, whole_number("warm_rounds", warm_rounds), seed)
    begun = perf_counter()
    loss = KullbackLeibler(observed)
    found = minimise(loss, pricing, limits, first)
    model = observed.model(found.orders, found.weights, ties, seed)
    chosen = observed.shares[loss.places] @ np.log(found.point[loss.places])
    seconds = found.seconds | {"start": begun - started, "total": perf_counter() - started}
    return MaximumLikelihood(
        model,
        found.value,
        found.bound,
        found.value - found.bound <= tolerance,
        found.iterations,
        len(found.orders),
        seconds,
        log_likelihood=float(observed.totals.sum() * chosen),
    )
