"""estimate: run the solver on data until the model is good enough, and keep the history."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from rankstream import distances
from rankstream._core.arguments import whole_number
from rankstream.columns import corrective
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts, Target, as_rows, as_target
from rankstream.distances import Distance
from rankstream.learners import Learner
from rankstream.oracles import Oracle, Ties
from rankstream.solver.make import make_solver
from rankstream.solver.runs import Estimate, History, Run, Stop

if TYPE_CHECKING:
    from rankstream.models.entropy.laws import Prior

__all__ = ["Estimate", "History", "Run", "Stop", "estimate"]

Method = Literal["primal-dual", "max-entropy", "auto"]
Weighting = Literal["observations", "equal"]
Data: TypeAlias = ChoiceCounts | ArrayLike | Iterable[ChoiceCounts | ArrayLike]


def estimate(
    assortments: Assortments | ChoiceCounts,
    data: Data | None = None,
    *,
    method: Method = "primal-dual",
    distance: str | Distance = "l2",
    learner: str | Learner[Any] = "mirror-descent",
    weights: Weighting = "observations",
    smoothing: float | None = None,
    oracle: Oracle | None = None,
    ties: Ties = "random",
    tolerance: float = 1e-3,
    stop: Stop = "mae",
    max_rounds: int = 10_000,
    certify_every: int | None = None,
    prior: "Prior | Literal['default', 'stacked']" = "default",
    seed: int = 0,
) -> Estimate[Any]:
    """Estimate a model from frequencies, from counts, or from an iterable that yields either once a round.

    Counts know their offers, and may be given alone.

    ``method="primal-dual"`` is the paper's: a solver plays rounds, and the model is a sparse ``RankingModel``. An array
    with one row of frequencies per round is a stream known in advance, which is checked and played faster than an
    iterable: that is asked for one round at a time, as its source may be live. It stops when MAE(x_bar, p_bar) <=
    ``tolerance`` (``stop="gap"``: when the certified gap is), after ``max_rounds``, which is also the horizon T where
    the learner needs one, or when the data end. A distance given by name is plain, or smoothed as is best for the
    horizon where the learner needs it; ``smoothing`` sets it. Counts leave offers that nobody has seen out of distance,
    error and certificate until their first observation, and weigh the others in a distance given by name by the root of
    their observations; ``weights="equal"`` does not.

    ``"max-entropy"`` gives the model that predicts unseen offers best (``entropy.fit``, with ``prior``): an
    ``EntropyModel``. Frequencies are taken as exact; ``tolerance`` is its duality gap in nats. ``"auto"`` is
    max-entropy where the exact program is small, the data stand still, and no option of the solver is set.

    The learner ``"fully-corrective"`` is for data that stand still: it chooses all weights anew after every oracle call
    (``corrective.fit``), and needs the fewest calls and rankings.

    >>> offers = Assortments([("tea", "nothing"), ("pie", "nothing")])
    >>> fit = estimate(offers, [0.5, 0.5, 0.25, 0.75])
    >>> fit.converged, round(fit.model.predict(("tea", "nothing"))["tea"], 2)
    (True, 0.5)
    >>> dense = estimate(ChoiceCounts(offers, [50, 50, 25, 75]), method="max-entropy")
    >>> round(dense.model.predict(("tea", "pie", "nothing"))["nothing"], 1)
    0.4
    """
    assortments, data = _offers_and_data(assortments, data)
    for name, value, kind in (("method", method, Method), ("weights", weights, Weighting)):
        if value not in get_args(kind):
            raise ValueError(f"{name} is {value!r}: choose one of {', '.join(map(repr, get_args(kind)))}.")
    constant = isinstance(data, ChoiceCounts) or _is_vector(data)
    if method == "max-entropy" and not constant:
        raise ValueError(
            "Maximum entropy needs one ChoiceCounts or frequency vector: fit it again as a stream goes on."
        )
    parts = (distance, learner, weights, smoothing, oracle, ties, stop, max_rounds, certify_every)
    plain = parts == ("l2", "mirror-descent", "observations", None, None, "random", "mae", 10_000, None)
    if method == "max-entropy" and not plain:
        raise ValueError(
            "Maximum entropy has no distance, learner, oracle, ties or rounds: leave the solver's options out."
        )
    if method == "max-entropy" or (method == "auto" and constant and plain):
        from rankstream.estimation.entropy_estimate import entropy_estimate
        from rankstream.models.entropy.fit import has_small_program  # what it needs takes time to import

        counts = _counts(assortments, data)
        if method == "max-entropy" or has_small_program(counts):
            return entropy_estimate(assortments, counts, prior=prior, tolerance=tolerance, seed=seed)
    whole_number("max_rounds", max_rounds, least=1)
    by_offer = None
    if isinstance(data, ChoiceCounts) and weights == "observations" and isinstance(distance, str) and data.observations:
        by_offer = distances.observation_weights(data, "share" if distance == "kl" else "root")
    if learner == corrective.NAME:
        if smoothing is not None:
            raise ValueError(f"The learner {learner!r} takes no smoothing: leave it out.")
        fixed = _at_rest(assortments, data)
        form = distances.L2(assortments, weights=by_offer) if by_offer and distance == "l2" else distance
        return corrective.fit(assortments, fixed, form, oracle, ties, tolerance, stop, max_rounds, seed)
    solver = make_solver(assortments, distance, learner, oracle, ties, max_rounds, seed, smoothing, by_offer)
    run = Run(solver, tolerance, stop, certify_every)
    if isinstance(data, ChoiceCounts) or _is_vector(data):
        run.advance_many(_constant(assortments, data), max_rounds)
    elif _is_table(data):
        run.advance_block(as_rows(assortments, np.asarray(data)[:max_rounds]))
    else:
        for _, target in zip(range(max_rounds), _stream(data), strict=False):
            if run.advance(target):
                break
    if not run.state.round:
        raise ValueError("The data ended before the first round: give at least one frequency vector or ChoiceCounts.")
    return run.result()


def _offers_and_data(assortments: Assortments | ChoiceCounts, data: Data | None) -> tuple[Assortments, Data]:
    if isinstance(assortments, ChoiceCounts):
        if data is not None:
            raise ValueError("Counts know their offers: give the counts alone, or assortments and data.")
        return assortments.assortments, assortments
    if data is None:
        raise ValueError("There are no data: give counts alone, or assortments and data.")
    return assortments, data


def _counts(assortments: Assortments, data: Any) -> ChoiceCounts:
    """Counts as they are, or frequencies as those of very many choices."""
    if isinstance(data, ChoiceCounts):
        as_target(assortments, data)
        return data
    from rankstream.models.entropy.fit import EXACT

    return ChoiceCounts(assortments, EXACT * assortments.check_frequencies(data))


def _constant(assortments: Assortments, data: Any) -> Target:
    if isinstance(data, ChoiceCounts) and not data.observations:
        raise ValueError("The counts hold no observations yet: observe some choices first.")
    return as_target(assortments, data)


def _at_rest(assortments: Assortments, data: Any) -> Target:
    if not (isinstance(data, ChoiceCounts) or _is_vector(data)):
        raise ValueError(
            f"The learner {corrective.NAME!r} is for one frequency vector or ChoiceCounts, not for a stream: "
            "use another learner, or fit again when the data have moved."
        )
    return _constant(assortments, data)


def _stream(data: Any) -> Iterator[ChoiceCounts | Target | ArrayLike]:
    if isinstance(data, str | bytes | dict) or not isinstance(data, Iterable):
        kind = type(data).__name__
        raise ValueError(f"The data are a {kind}: give frequencies, ChoiceCounts, or an iterable of them.")
    return iter(data)


def _is_table(data: Any) -> bool:
    return hasattr(data, "__array__") and np.ndim(data) == 2


def _is_vector(data: Any) -> bool:
    if hasattr(data, "__array__"):
        return np.ndim(data) < 2
    return isinstance(data, list | tuple) and all(
        np.ndim(value) == 0 and not isinstance(value, ChoiceCounts) for value in data
    )
