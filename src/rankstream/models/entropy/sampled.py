"""A prior by rankings drawn from it, where a program over all rankings is too large."""

import numpy as np

from rankstream._core.types import Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.data.assortments import Assortments
from rankstream.models.entropy.laws import Prior
from rankstream.models.rankings import RankingModel


class SampledLaw:
    """Rankings sampled from a prior, as likely as they are frequent before they are tilted."""

    def __init__(self, assortments: Assortments, prior: Prior, size: int, seed: int, watch: Watch = unwatched) -> None:
        self.assortments, self.items = assortments, prior.items
        self.orders, times = np.unique(prior.sample(size, seed, watch), axis=0, return_counts=True)
        self.logs = np.log(times / times.sum())
        self.vertices = np.array([assortments.vertex(order) for order in self.orders])

    def weights(self, duals: Vec) -> tuple[float, Vec]:
        """Log E exp(-<duals, a>) and the tilted weights of the rankings."""
        exponents = self.logs - self.vertices @ duals
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        return top + float(np.log(total)), weights / total

    def evaluate(self, duals: Vec) -> tuple[float, Vec]:
        """As ``Tilted`` says."""
        value, weights = self.weights(duals)
        return value, weights @ self.vertices

    def model(self, duals: Vec) -> RankingModel:
        """The sampled rankings with their tilted weights."""
        return RankingModel.from_codes(self.items, self.orders, self.weights(duals)[1], self.assortments.no_choice_code)
