"""Shrinkage: a model's shares of an observed offer, combined with the choices from it.

The result is no distribution over rankings, since an item may gain when another joins an offer. So it is for
predictions only; decisions, substitution and certificates use the model.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankstream._core.types import Label, Vec
from rankstream.data import Assortments, ChoiceCounts
from rankstream.models.protocol import Predicts

STRENGTHS = np.geomspace(1e6, 1.0, 61)
"""Numbers of choices that the model's shares may count for: from the model alone to following every choice."""
MAX_STORED_NUMBERS = 50_000  # coordinates whose tallies are stored in a model, some 400 kB of its file


def choose_strength(shares: Vec, counts: ChoiceCounts) -> float:
    """Return how many choices the model's shares count for, by leave-one-out likelihood within each offer.

    The model was fitted to the choice that is left out, which favours the model a little.
    """
    totals = counts.totals[counts.assortments.owner]
    chosen = counts.tallies > 0.0
    times, rest = counts.tallies[chosen], np.maximum(totals[chosen] - 1.0, 0.0)
    model = np.maximum(shares[chosen], 1e-300)
    others = np.maximum(times - 1.0, 0.0)
    scores = [float(times @ np.log((others + a * model) / (rest + a))) for a in STRENGTHS.tolist()]
    return float(STRENGTHS[int(np.argmax(scores))])


def shrink(shares: Vec, tallies: Vec, strength: float) -> Vec:
    """Combine the tallies of one offer with the model's shares, which count as ``strength`` more choices.

    >>> shrink(np.array([0.5, 0.5]), np.array([30.0, 0.0]), 10.0).tolist()
    [0.875, 0.125]
    """
    moved: Vec = (tallies + strength * shares) / (tallies.sum() + strength)
    return moved


def tally_facts(model: Predicts, counts: ChoiceCounts) -> dict[str, Any]:
    """Return what a model stores about the offers with choices, by item codes; nothing if that is too much."""
    offers = counts.assortments
    if offers.n_coordinates > MAX_STORED_NUMBERS or not counts.observations:
        return {}
    code = {item: number for number, item in enumerate(model.items)}
    rows = np.split(counts.tallies, offers.indptr[1:-1])
    chosen = [(offer, row.tolist()) for offer, row in zip(offers.offers, rows, strict=True) if row.sum() > 0.0]
    return {
        "seen": {
            "strength": choose_strength(model.probabilities(offers), counts),
            "offers": [[code[item] for item in offer] for offer, _ in chosen],
            "tallies": [row for _, row in chosen],
        }
    }


def shrink_prediction(
    shares: dict[Label, float], items: Sequence[Label], about: Mapping[str, Any]
) -> dict[Label, float]:
    """Combine the prediction for one offer with the stored choices; unchanged if the offer was not observed."""
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
    """A model whose predictions use ``seen="shrink"``, for comparisons with the model itself."""

    def __init__(self, model: Any) -> None:
        self.model, self.items = model, model.items

    def probabilities(self, assortments: Assortments) -> Vec:
        """Return the choice probability of every coordinate."""
        predictions = [self.model.predict(offer, forced=True, seen="shrink") for offer in assortments.offers]
        return np.array([share for shares in predictions for share in shares.values()])
