"""Van Ryzin and Vulcano's estimator: the ranking model of maximum likelihood, by column generation."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.old_names import old_keywords
from rankstream._core.types import Codes
from rankstream._core.watch import Watch, unwatched
from rankstream.columns.data import Limits, MakeOracle, Observed, ProvenFit, observe
from rankstream.columns.interior_point import minimise
from rankstream.columns.losses import KullbackLeibler
from rankstream.data.counts import ChoiceCounts, Target
from rankstream.distances import L2
from rankstream.learners import MirrorDescent
from rankstream.oracles import Ties, auto
from rankstream.solver.loop import Solver
from rankstream.solver.runs import Run


@dataclass(frozen=True, eq=False)
class MaximumLikelihood(ProvenFit):
    """The likeliest model; ``value`` is its divergence from the data in nats per observation.

    ``log_likelihood`` is that of all observations; the largest one is at most ``observations * gap`` above it.
    """

    log_likelihood: float


@old_keywords(max_iterations="max_rounds", max_seconds="budget")
def fit_mle(
    counts: ChoiceCounts,
    *,
    tolerance: float = 1e-4,
    warm_rounds: int = 0,
    max_rounds: int = 2000,
    budget: float = np.inf,
    oracle: MakeOracle | None = None,
    ties: Ties = "random",
    seed: int = 0,
    watch: Watch = unwatched,
) -> MaximumLikelihood:
    """Fit the likeliest distribution over rankings (Appendix B.2), proven up to ``tolerance`` nats per choice.

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
    max_rounds : int
        How often the oracle is asked at most.
    budget : float
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
            f"A likelihood needs ChoiceCounts, not {type(counts).__name__}: frequencies lack the number of choices."
        )
    number_between("tolerance", tolerance, 0.0)
    number_between("budget", budget, 0.0)
    whole_number("max_rounds", max_rounds, least=1)
    limits = Limits(tolerance, max_rounds=max_rounds, budget=budget, watch=watch)
    observed = observe(counts)
    finder = observed.finder(oracle, ties, seed)
    first = warm_start(observed, whole_number("warm_rounds", warm_rounds), seed)
    begun = perf_counter()
    loss = KullbackLeibler(observed)
    found = minimise(loss, finder, limits, first)
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


def warm_start(observed: Observed, rounds: int, seed: int) -> Codes:
    """The rankings that mirror descent finds for the l2 distance in ``rounds`` rounds, one per row."""
    offers = observed.assortments
    if not rounds:
        return np.empty((0, offers.n_items), dtype=np.int64)
    solver = Solver(offers, L2(offers), MirrorDescent(horizon=rounds), auto(offers, seed=seed))
    run = Run(solver, tolerance=0.0)
    run.advance_many(Target(observed.frequencies), rounds)
    return np.array(solver.model(run.state).orders, dtype=np.int64)
