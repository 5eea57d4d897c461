"""The process that refits models for intervals, for pages and the API alike."""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from rankstream.data.counts import ChoiceCounts
from rankstream.estimation.intervals import Bootstrap
from rankstream.models.rankings import RankingModel
from rankstream.service.limits import RefusedError
from rankstream.service.processes.questions import Answerer, asked_offer
from rankstream.service.processes.worker import answer_parent, lower_priority
from rankstream.streams.entropy_follower import MAX_SIZES
from rankstream.streams.live import Live

REPLICATES = 20  # enough for a standard error; percentiles would need hundreds (benchmarks/intervals.py)
TOO_LARGE = "none: refits of more than {:,} offers, {:,} items or {:,} pairs of both take too long".format(*MAX_SIZES)
MAX_REFITTED_MARKETS = 8  # markets whose refits are kept, 20 models each; not tuned, bounds memory


class RefitAnswerer(Answerer):
    """Refits the models of markets, and answers how sure predictions and values of offers are."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._refits: dict[int, tuple[int, Bootstrap]] = {}

    def refit(self, question: dict[str, Any]) -> dict[str, Any]:
        """Refit a market's model for intervals, which takes a while; what ``interval`` then answers from."""
        model, (live, counts) = self.model(question), self.learned(question)
        method = "nearest" if isinstance(model, RankingModel) else "max-entropy"
        found = Bootstrap(counts, method, REPLICATES, model=model, sizes=_sizes(live, counts))
        while len(self._refits) >= MAX_REFITTED_MARKETS:
            del self._refits[next(iter(self._refits))]
        self._refits[question["market"]] = question["position"], found
        return {"position": question["position"]}

    def interval(self, question: dict[str, Any]) -> dict[str, Any]:
        """The ends of the intervals of offers' shares, by the refits, and up to which record those know.

        Where margins are given, also what each offer is worth and gains on the first one, with the ends of intervals.
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
    """How many choices a refit draws where counts do not say that themselves; or why there are no refits.

    After a change, counts go on from faded choices, each of which weighs at most 1: together they are as certain as
    that many choices, or more, so that intervals are not too short.
    """
    offers = counts.assortments
    own = (offers.n_offers, offers.n_items, offers.n_coordinates)
    if any(size > most for size, most in zip(own, MAX_SIZES, strict=True)):
        raise RefusedError(409, TOO_LARGE)
    if counts.forgets or (counts.tallies == np.floor(counts.tallies)).all():
        return None
    if live.detector is None:
        raise RefusedError(409, "none: this market has fractional counts, and intervals need whole choices")
    return counts.totals


def main() -> None:
    """The process of refits, for a server that started it."""
    lower_priority(5)
    answer_parent(lambda: RefitAnswerer(Path(sys.argv[1])).answer)
