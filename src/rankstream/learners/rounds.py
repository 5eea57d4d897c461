"""One round of play, and the weighted sums over all rounds behind every mean and guarantee."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rankstream._core.types import Vec


@dataclass
class Sums:
    """Weighted sums over the rounds. Divided by the total weight, they are the running means."""

    vertex: Vec
    frequencies: Vec
    dual: Vec
    total_weight: float = 0.0
    answer: float = 0.0
    offset: float = 0.0
    potential: float = 0.0
    latest: Vec = field(default_factory=lambda: np.empty(0))
    moved: bool = False

    def add(self, weight: float, vertex: Vec, frequencies: Vec, dual: Vec) -> None:
        """Add one round."""
        self.total_weight += weight
        for total, term in ((self.vertex, vertex), (self.frequencies, frequencies), (self.dual, dual)):
            total += term if weight == 1.0 else weight * term
        self.watch(frequencies)

    def watch(self, frequencies: Vec) -> None:
        """Remember the latest frequencies, and whether they ever changed."""
        if self.latest is not frequencies:
            self.moved = self.moved or (self.latest.size > 0 and not np.array_equal(self.latest, frequencies))
            self.latest = frequencies

    def rounds_at_rest(self, rows: Vec) -> int:
        """Count the coming rounds, one row of frequencies each, before the data change."""
        if self.moved or (self.latest.size > 0 and not np.array_equal(self.latest, rows[0])):
            return 0
        moves = np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1))
        return int(moves[0]) + 1 if moves.size else len(rows)

    def scale(self, factor: float) -> None:
        """Multiply every sum: the weights of all rounds so far change by this factor."""
        for array in (self.vertex, self.frequencies, self.dual):
            array *= factor
        self.total_weight *= factor
        self.answer *= factor
        self.offset *= factor
        self.potential *= factor

    @property
    def mean_vertex(self) -> Vec:
        """The model's choice probabilities (the paper's x-bar)."""
        return self.vertex / self.total_weight

    @property
    def mean_frequencies(self) -> Vec:
        """The averaged data (the paper's p-bar)."""
        return self.frequencies / self.total_weight

    @property
    def mean_dual(self) -> Vec:
        """The averaged dual (the paper's y-bar)."""
        return self.dual / self.total_weight


class Round(NamedTuple):
    """The information a learner gets after round t; the sums include the round."""

    number: int
    weight: float
    dual: Vec
    vertex: Vec
    frequencies: Vec
    sums: Sums
