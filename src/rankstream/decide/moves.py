"""Single changes to an offer (add, drop or swap an item, change a price), and a local search with them."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, Literal

import numpy as np

from rankstream._core import Label, Mask, Watch, unwatched
from rankstream.data.prices import price_text, split_label
from rankstream.decide.offer_values import OFFERS_AT_ONCE, values
from rankstream.decide.problem.offers import OfferProblem
from rankstream.decide.problem.rules import OUT

Kind = Literal["add", "drop", "swap", "price"]
Move = tuple[Kind, int, int, Mask]  # the items that come and go, -1 for none, and the offer after it
MIN_RELATIVE_GAIN = 1e-9  # relative to the largest margin: smaller gains count as none

CHANGES_AT_ONCE = 15
"""Changes of each kind that a tilted model values at a time: hundreds take seconds (``benchmarks/advice.py``)."""


@dataclass(frozen=True)
class OfferChange:
    """A single change to an offer.

    Attributes
    ----------
    kind : str
        "add", "drop", "swap" or "price".
    comes, goes : item or None
        The item that is added, and the item that is removed.
    offer : tuple of items
        The offer after the change.
    value, gain : float
        The value of that offer, and the gain over the offer before.
    interval : pair of floats or None
        The ends of an interval of the gain, if counts were given.
    """

    kind: Kind
    comes: Label | None
    goes: Label | None
    offer: tuple[Label, ...]
    value: float
    gain: float
    interval: tuple[float, float] | None = None

    @property
    def words(self) -> str:
        """The change as the beginning of a sentence."""
        if self.kind == "add":
            return f"Adding {self.comes}"
        if self.kind == "drop":
            return f"Dropping {self.goes}"
        if self.kind == "price" and self.comes is not None and self.goes is not None:
            (item, price), (_, before) = split_label(self.comes), split_label(self.goes)
            return f"Pricing {item} at {price_text(price)} instead of {price_text(before)}"
        return f"Offering {self.comes} instead of {self.goes}"

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        comes, goes = (None if item is None else str(item) for item in (self.comes, self.goes))
        numbers = {"value": self.value, "gain": self.gain, "interval": self.interval}
        return {"kind": self.kind, "comes": comes, "goes": goes, **numbers}


def least_gain(problem: OfferProblem) -> float:
    """Return the least gain that counts."""
    return MIN_RELATIVE_GAIN * max(float(np.abs(problem.margins).max()), 1e-300)


def single_changes(
    problem: OfferProblem, mask: Mask, value: float, watch: Watch = unwatched, enough: float = inf
) -> list[OfferChange]:
    """Return the feasible single changes to an offer, best first: all, or those valued before ``watch`` stops it.

    At least a first batch is valued. The rest is left out once a change gains more than ``enough``.
    """
    key = mask.tobytes()
    if key not in problem.valued_changes:
        problem.valued_changes[key] = _batches(problem, mask), []
    batches, changes = problem.valued_changes[key]
    while batches and not (changes and (changes[0].gain > enough or watch("single changes"))):
        batch = batches.pop(0)
        worths = values(problem, [after for *_, after in batch]).tolist()
        for (kind, comes, goes, after), worth in zip(batch, worths, strict=True):
            new, gone = (None if code < 0 else problem.items[code] for code in (comes, goes))
            changes.append(OfferChange(kind, new, gone, problem.offer(after), worth, worth - value))
        changes.sort(key=lambda change: -change.gain)
    return changes


def _batches(problem: OfferProblem, mask: Mask) -> list[list[Move]]:
    """Return all feasible single changes in batches; of a tilted model, the best of each kind before its tilt first."""
    moves, size = list(_moves(problem, mask)), OFFERS_AT_ONCE
    if problem.untilted is not problem and len(moves) > CHANGES_AT_ONCE:
        likely = np.argsort(-values(problem.untilted, [after for *_, after in moves]), kind="stable")
        moves, size = [moves[number] for number in likely.tolist()], CHANGES_AT_ONCE
    batches, seen = defaultdict[int, list[Move]](list), Counter[Kind]()
    for move in moves:
        batches[seen[move[0]] // size].append(move)
        seen[move[0]] += 1
    return list(batches.values())


def _moves(problem: OfferProblem, mask: Mask) -> Iterator[Move]:
    owner, inside = problem.names.owner, np.flatnonzero(mask).tolist()
    new = np.flatnonzero(~mask & (problem.state != OUT)).tolist()
    for comes in (-1, *new):
        for goes in (-1, *inside):
            if comes < 0 and goes < 0:
                continue
            after = mask.copy()
            if goes >= 0:
                after[goes] = False
            if comes >= 0:
                after[comes] = True
            if problem.is_feasible(after):
                kind: Kind = "drop" if comes < 0 else "add" if goes < 0 else "swap"
                same = min(comes, goes) >= 0 and owner[comes] == owner[goes]
                yield "price" if same else kind, comes, goes, after


def improve(problem: OfferProblem, mask: Mask, value: float, watch: Watch) -> list[tuple[float, Mask]]:
    """Improve an offer while a single change pays by the model; return the better offers on the way, best first."""
    steps: list[tuple[float, Mask]] = []
    while not watch("single changes"):
        best = next(iter(single_changes(problem, mask, value, watch, least_gain(problem))), None)
        if best is None or best.gain <= least_gain(problem):
            break
        mask, value = mask_of(problem, best.offer), best.value
        steps.insert(0, (value, mask))
    return steps


def mask_of(problem: OfferProblem, offer: tuple[Label, ...]) -> Mask:
    """Return for every item of the model whether it is in an offer."""
    inside = set(offer)
    return np.array([item in inside for item in problem.items])


def best_of_each_kind(changes: list[OfferChange], most: int = 2) -> list[OfferChange]:
    """Return the best changes, best first, at most ``most`` of each kind."""
    kinds = [change.kind for change in changes]
    return [change for place, change in enumerate(changes) if kinds[:place].count(change.kind) < most]
