"""The task of a method, with watches that limit the time; and the certificate of any model that was fitted to it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rankstream import distances, oracles
from rankstream._core import Vec, Watch, unwatched, whole_number
from rankstream.certificate import Certificate, certify
from rankstream.columns.lower_bound import HalfSpace, prove_lower_bound
from rankstream.data import Assortments, ChoiceCounts, Target, as_target
from rankstream.data.counts import as_rows
from rankstream.distances import Distance, HighNorm
from rankstream.learners.protocol import Sums
from rankstream.models import ChoiceModel, RankingModel
from rankstream.oracles import Oracle
from rankstream.solver.runs import Estimate, History

MAX_OPEN_PART, MIN_DISTANCE = 0.01, 1e-9  # of the distance may stay unproven; below the second, nothing is
EXACT = 100_000.0
"""Frequencies without counts are treated as those of this many choices from every offer."""
Weighting = Literal["observations", "equal"]
Data: TypeAlias = ChoiceCounts | ArrayLike | Iterable[ChoiceCounts | ArrayLike]


@dataclass(frozen=True, eq=False)
class Task:
    """Data to fit, the seed, and two watches: for the fit, and for the search for a bound afterwards.

    Static data are counts or one vector of frequencies. A stream is a table with a row of frequencies per round, or an
    iterable with one element per round.
    """

    assortments: Assortments
    data: Any
    seed: int = 0
    watch: Watch = unwatched
    proving: Watch = unwatched

    def __post_init__(self) -> None:
        whole_number("seed", self.seed)
        if not isinstance(self.assortments, Assortments):
            raise ValueError(f"The assortments must be an Assortments, not {type(self.assortments).__name__}.")

    @property
    def stands_still(self) -> bool:
        """Whether the data are one vector or one ChoiceCounts."""
        data: Any = self.data
        if hasattr(data, "__array__"):
            return np.ndim(data) < 2
        is_flat = isinstance(data, list | tuple) and not any(np.ndim(x) or isinstance(x, ChoiceCounts) for x in data)
        return is_flat or isinstance(data, ChoiceCounts)

    @cached_property
    def counts(self) -> ChoiceCounts:
        """Counts as they are; frequencies as those of very many choices."""
        if isinstance(self.data, ChoiceCounts):
            as_target(self.assortments, self.data)
            if not self.data.observations:
                raise ValueError("The counts have no observations yet: observe some choices first.")
            return self.data
        return ChoiceCounts(self.assortments, EXACT * self.assortments.check_frequencies(self.data))

    @cached_property
    def target(self) -> Target:
        """The target of every round, for static data."""
        if isinstance(self.data, ChoiceCounts):
            return self.counts.target()
        return as_target(self.assortments, self.data)

    @cached_property
    def oracle(self) -> Oracle:
        """The oracle for these offers."""
        return oracles.auto(self.assortments, seed=self.seed)

    def rows(self, most: int) -> Vec | None:
        """Return a stream that is known in advance as a checked table of at most ``most`` rounds; else None."""
        if hasattr(self.data, "__array__") and np.ndim(self.data) == 2:
            return as_rows(self.assortments, np.asarray(self.data)[:most])
        return None

    def stream(self) -> Iterator[ChoiceCounts | Target | ArrayLike]:
        """The data round by round."""
        if isinstance(self.data, str | bytes | dict) or not isinstance(self.data, Iterable):
            kind = type(self.data).__name__
            raise ValueError(f"The data are a {kind}: give frequencies, ChoiceCounts, or an iterable of them.")
        return iter(self.data)

    def require_still(self, method: str) -> None:
        """Raise a ValueError for a stream, for methods that need all data at once."""
        if not self.stands_still:
            self.stream()  # raises if the data are not iterable either
            raise ValueError(
                f"The method {method!r} needs one ChoiceCounts or frequency vector, not a stream: use method "
                "'primal-dual', or fit again when the data have changed."
            )


def offer_weights(distance: str | Distance, weights: Weighting, task: Task) -> tuple[float, ...] | None:
    """Return the weight of each offer in a distance given by name: the root of its observations, for KL their share."""
    if weights not in ("observations", "equal"):
        raise ValueError(f"weights is {weights!r}: choose 'observations' or 'equal'.")
    if not isinstance(distance, str) or weights == "equal":
        return None
    if not isinstance(task.data, ChoiceCounts) or not task.data.observations:
        return None
    return distances.observation_weights(task.data, "share" if distance == "kl" else "root")


def make_task(assortments: Assortments | ChoiceCounts, data: Data | None, seed: int) -> Task:
    """Return the task for counts alone, or for assortments and data."""
    if isinstance(assortments, ChoiceCounts):
        if data is not None:
            raise ValueError("Counts include their offers: give the counts alone, or assortments and data.")
        return Task(assortments.assortments, assortments, seed)
    if data is None:
        raise ValueError("No data given: pass counts alone, or assortments and data.")
    return Task(assortments, data, seed)


def estimate_of(model: ChoiceModel, task: Task, rounds: int, converged: bool) -> Estimate[Any]:
    """A model that was fitted in some other way as an Estimate, with the certificate and history that all have."""
    counts, target = task.counts, task.target
    seen = np.ones(task.assortments.n_coordinates, dtype=bool) if target.seen is None else target.seen
    fitted = np.zeros(task.assortments.n_coordinates)
    shown = np.flatnonzero(counts.totals > 0.0)
    offers = Assortments([task.assortments.offers[number] for number in shown.tolist()], task.assortments.items)
    fitted[seen] = model.probabilities(offers)
    certificate = certificate_of(fitted, counts, task.oracle, task.proving)
    mae = float(np.abs(fitted - target.frequencies)[seen].mean())
    size = float(len(model.weights)) if isinstance(model, RankingModel) else np.nan
    row = (float(counts.observations), mae, mae, certificate.upper, size, certificate.gap)
    history = History(*(np.array([value]) for value in row))
    return Estimate(model, certificate, rounds, converged, history)


def certificate_of(fitted: Vec, counts: ChoiceCounts, oracle: Oracle, watch: Watch = unwatched) -> Certificate:
    """How far a model's probabilities are from the counts in l2, and how near any ranking model could be.

    Offers weigh by their observations, as in every fit of counts. What is proven is the best of the residual's own
    direction, of the zero dual, which proves 0 without rounding, and of what ``prove_lower_bound`` finds until what is
    open is ``MAX_OPEN_PART`` of the model's own distance. The regrets are those of one round in which that dual was
    answered best: none of the oracle's.
    """
    assortments, target = counts.assortments, counts.target()
    data = target.frequencies if target.seen is None else np.where(target.seen, target.frequencies, fitted)
    distance = distances.L2(assortments, weights=distances.observation_weights(counts))
    dual = distance.respond(fitted, data) if (fitted != data).any() else distance.start()
    found = certify(Sums(fitted, data, dual, 1.0, latest=data), distance, oracle, seen=target.seen)
    found, space = replace(found, lower=max(found.lower, 0.0)), None
    if found.gap > MAX_OPEN_PART * found.upper > MIN_DISTANCE and not watch("proving"):
        space = prove_lower_bound(distance, target, oracle, MAX_OPEN_PART * found.upper, watch)
    return with_proof(found, space, distance, target)


def with_proof(found: Certificate, space: HalfSpace | None, distance: HighNorm, target: Target) -> Certificate:
    """The same certificate with what a half-space proves, where that is more."""
    lower = found.lower if space is None else max(found.lower, space.lower(distance, target))
    return replace(found, lower=lower, oracle_regret=0.0, dual_regret=found.upper - lower)
