"""Offers that were seen: a model's shares, moved toward what was chosen from the same offer.

The result is no distribution over rankings, as an item may gain when another joins an offer. So it is for predictions
alone: decisions, substitution and certificates stay with the model.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankstream._core.types import Label, Vec
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.models.protocol import Predicts

STRENGTHS = np.geomspace(1e6, 1.0, 61)
"""How many choices of an offer the model's shares may count for: from the model as it is to following every choice."""
MAX_STORED_NUMBERS = 50_000  # coordinates whose tallies are noted in a model, some 400 kB of its file


def choose_strength(shares: Vec, counts: ChoiceCounts) -> float:
    """How many choices the model's shares count for, by the likelihood of every choice given all others of its offer.

    The model has seen the choice that is left out, which favours the model: a little more than is right is left to it.
    """
    totals = counts.totals[counts.assortments.owner]
    chosen = counts.tallies > 0.0
    times, rest = counts.tallies[chosen], np.maximum(totals[chosen] - 1.0, 0.0)
    model = np.maximum(shares[chosen], 1e-300)
    others = np.maximum(times - 1.0, 0.0)
    scores = [float(times @ np.log((others + a * model) / (rest + a))) for a in STRENGTHS.tolist()]
    return float(STRENGTHS[int(np.argmax(scores))])


def shrink(shares: Vec, tallies: Vec, strength: float) -> Vec:
    """The shares of one offer: its tallies, and the model's shares as those of ``strength`` choices more.

    >>> shrink(np.array([0.5, 0.5]), np.array([30.0, 0.0]), 10.0).tolist()
    [0.875, 0.125]
    """
    moved: Vec = (tallies + strength * shares) / (tallies.sum() + strength)
    return moved


def tally_facts(model: Predicts, counts: ChoiceCounts) -> dict[str, Any]:
    """What a model notes of the offers with choices, by its item codes; nothing where that is too much to store."""
    offers = counts.assortments
    if offers.n_coordinates > MAX_STORED_NUMBERS or not counts.observations:
        return {}
    code = {item: number for number, item in enumerate(model.items)}
    rows = np.split(counts.tallies, offers.indptr[1:-1])
    kept = [(offer, row.tolist()) for offer, row in zip(offers.offers, rows, strict=True) if row.sum() > 0.0]
    return {
        "seen": {
            "strength": choose_strength(model.probabilities(offers), counts),
            "offers": [[code[item] for item in offer] for offer, _ in kept],
            "tallies": [row for _, row in kept],
        }
    }


def shrink_prediction(
    shares: dict[Label, float], items: Sequence[Label], about: Mapping[str, Any]
) -> dict[Label, float]:
    """The prediction for one offer, by what the model has noted; as it is where nobody saw the offer."""
    noted = about.get("seen")
    if noted is None:
        raise ValueError("The model has no tallies for seen='shrink': fit it to counts with estimate or fit_within.")
    code = {item: number for number, item in enumerate(items)}
    wanted = {code[item]: item for item in shares}
    for members, tallies in zip(noted["offers"], noted["tallies"], strict=True):
        if len(members) == len(wanted) and wanted.keys() == set(members):
            model = np.array([shares[wanted[member]] for member in members])
            moved = dict(zip(members, shrink(model, np.array(tallies), noted["strength"]).tolist(), strict=True))
            return {item: moved[code[item]] for item in shares}
    return shares


class ShrunkModel:
    """A model whose every prediction is one of ``seen="shrink"``, to be compared with the model itself."""

    def __init__(self, model: Any) -> None:
        self.model, self.items = model, model.items

    def probabilities(self, assortments: Assortments) -> Vec:
        """As ``Predicts`` says."""
        shares = [self.model.predict(offer, forced=True, seen="shrink") for offer in assortments.offers]
        return np.array([share for one in shares for share in one.values()])
