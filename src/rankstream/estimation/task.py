"""The task of a method: checked data, a seed, and watches that limit the time."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rankstream import distances, oracles
from rankstream._core import Vec, Watch, unwatched, whole_number
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts, Target, as_rows, as_target
from rankstream.distances import Distance
from rankstream.oracles import Oracle

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
