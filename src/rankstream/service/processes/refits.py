"""The process that refits models for intervals, for pages and the API."""

import sys
from typing import Any

import numpy as np

from rankstream.data.counts import ChoiceCounts
from rankstream.estimation.intervals import Bootstrap
from rankstream.models.rankings import RankingModel
from rankstream.service.limits import RefusedError
from rankstream.service.processes.questions import Answerer, asked_offer
from rankstream.service.processes.worker import answer_parent, lower_priority
from rankstream.service.storage.database import Place, place_of
from rankstream.streams.entropy_follower import MAX_SIZES
from rankstream.streams.live import Live

REPLICATES = 20  # enough for a standard error; percentiles would need hundreds (benchmarks/intervals.py)
TOO_LARGE = "none: refits of more than {:,} offers, {:,} items or {:,} pairs of both take too long".format(*MAX_SIZES)
MAX_REFITTED_MARKETS = 8  # markets with refits in memory; 20 models each; not tuned, bounds memory


class RefitAnswerer(Answerer):
    """Refits the models of markets, and returns intervals of predictions and of values of offers."""

    def __init__(self, folder: Place) -> None:
        super().__init__(folder)
        self._refits: dict[int, tuple[int, Bootstrap]] = {}

    def refit(self, question: dict[str, Any]) -> dict[str, Any]:
        """Refit a market's model, which takes a while, for the answers of ``interval``."""
        model, (live, counts) = self.model(question), self.learned(question)
        method = "nearest" if isinstance(model, RankingModel) else "max-entropy"
        refits = Bootstrap(counts, method, REPLICATES, model=model, sizes=_sizes(live, counts))
        while len(self._refits) >= MAX_REFITTED_MARKETS:
            del self._refits[next(iter(self._refits))]
        self._refits[question["market"]] = question["position"], refits
        return {"position": question["position"]}

    def interval(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the intervals of offers' shares, and the log position of the refitted model.

        With margins, also the value of each offer and its gain over the first one, with intervals.
        """
        if question["market"] not in self._refits:
            raise RefusedError(409, "not yet")
        position, found = self._refits[question["market"]]
        try:
            offers = [asked_offer(found.model, offer) for offer in question["offers"]]
        except ValueError:  # an item that came later
            raise RefusedError(409, "not yet") from None
        level, margins = question["level"], dict(question["margins"])
        shares = [found.predict(offer, level) for offer in offers]
        ends = [{str(item): [share.low, share.high] for item, share in one.items()} for one in shares]
        if not margins:
            return {"position": position, "ends": ends, "worth": None}

        def values(model: Any) -> Any:
            shares = [model.predict(offer).items() for offer in offers]
            each = [sum(margins.get(str(item), 0.0) * share for item, share in one) for one in shares]
            return np.array([*each, *(value - each[0] for value in each)])

        rows = np.transpose(found.bounds_of(values, level, -np.inf, np.inf)).tolist()
        pairs = zip(rows[: len(offers)], rows[len(offers) :], strict=True)
        return {"position": position, "ends": ends, "worth": [{"worth": one, "gain": gain} for one, gain in pairs]}


def _sizes(live: Live, counts: ChoiceCounts) -> Any:
    """Return how many choices a refit draws, or None if that follows from the counts; or raise a RefusedError.

    After a detected change, counts continue from faded choices with weights of at most 1. These are as certain as that
    many choices, or more, so intervals are not too short.
    """
    offers = counts.assortments
    sizes = (offers.n_offers, offers.n_items, offers.n_coordinates)
    if any(size > limit for size, limit in zip(sizes, MAX_SIZES, strict=True)):
        raise RefusedError(409, TOO_LARGE)
    if counts.forgets or (counts.tallies == np.floor(counts.tallies)).all():
        return None
    if live.detector is None or live.restarted is None or live.detector.stopped is not None:
        raise RefusedError(409, "none: this market has fractional counts, and intervals need whole choices")
    return counts.totals


def main() -> None:
    """Run the process of refits."""
    lower_priority(5)
    answer_parent(lambda: RefitAnswerer(place_of(sys.argv[1])).answer)
