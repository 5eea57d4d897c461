"""The study's instances: a simulated market, its oracle, and the data that every method on it is given."""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from experiments.settings import StudyRun
from rankstream import oracles
from rankstream._core.types import Vec
from rankstream.data import simulate
from rankstream.data.counts import Target

BLOCK = 256


class Instance:
    """One market of the study; methods that are compared on it share its data and its oracle."""

    def __init__(self, run: StudyRun) -> None:
        self.market = simulate.market(
            run.instance, run.items, run.segments, run.spread, run.offers, run.test_offers, sizes=_sizes(run)
        )
        self.oracle = oracles.auto(self.market.assortments, _ties(run), run.instance)
        self.truth = self.market.frequencies()
        self.test = self.market.truth.probabilities(self.market.test)
        self._streams: dict[tuple[int, int], Stream] = {}

    @property
    def target(self) -> Target:
        """The static setting's data: the true probabilities, in every round."""
        return Target(self.truth)

    def stream(self, per_round: int, first: int) -> "Stream":
        """The dynamic setting's data, drawn once for all methods."""
        key = (per_round, first)
        if key not in self._streams:
            self._streams[key] = Stream(self.market, per_round, first)
        return self._streams[key]


class Stream:
    """The frequencies of a market's stream in blocks of rounds, remembered so that they can be read again."""

    def __init__(self, market: simulate.Market, per_round: int, first: int) -> None:
        self._source = market.stream(per_round, first)
        self._blocks: list[tuple[Vec, Vec]] = []

    def blocks(self) -> Iterator[tuple[Vec, Vec]]:
        """Frequencies, one row per round, and how many observations they rest on; without end."""
        number = 0
        while True:
            if number == len(self._blocks):
                self._blocks.append(self._next_block())
            yield self._blocks[number]
            number += 1

    def _next_block(self) -> tuple[Vec, Vec]:
        rows = [(counts.frequencies(), float(counts.observations)) for counts in islice(self._source, BLOCK)]
        frequencies, observations = (np.array(column) for column in zip(*rows, strict=True))
        if np.isnan(frequencies).any():
            raise ValueError(f"After {observations[0]:g} choices some offer was never shown: raise the argument first.")
        return frequencies, observations


def _sizes(run: StudyRun) -> simulate.Sizes:
    return "sizes" if run.sizes == "sizes" else "subsets"


def _ties(run: StudyRun) -> oracles.Ties:
    return "first" if run.ties == "first" else "last" if run.ties == "last" else "random"
