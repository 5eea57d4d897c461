"""The context of a decision: the present offer, single changes to it, and the offers in the data."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from rankstream._core.terminal import plural
from rankstream._core.types import Label, Mask
from rankstream._core.watch import Watch
from rankstream.data.counts import ChoiceCounts
from rankstream.decide.moves import OfferChange, best_of_each_kind, mask_of, single_changes
from rankstream.decide.offer_values import values
from rankstream.decide.problem.offers import OfferProblem

MAX_NEAR_ITEMS = 2
"""An offer that differs in more items than this (one swap) from every offer in the data is an extrapolation."""


@dataclass(frozen=True)
class Nearness:
    """How close an offer is to the offers in the data.

    Attributes
    ----------
    shown : float
        How often the offer was shown.
    nearest : tuple of items
        The nearest offer in the data.
    differs : int
        Number of items that are added, dropped or repriced between the two.
    size : int
        Number of items in the offer.
    fewest, most : int
        Smallest and largest number of items of offers in the data.
    """

    shown: float
    nearest: tuple[Label, ...]
    differs: int
    size: int
    fewest: int
    most: int

    @property
    def is_extrapolation(self) -> bool:
        """Whether the offer is far from every offer in the data, or smaller or larger than all of them."""
        return not self.shown and (self.differs > MAX_NEAR_ITEMS or not self.fewest <= self.size <= self.most)

    @property
    def words(self) -> str:
        """The result in one sentence.

        Examples
        --------
        >>> Nearness(0, ("tea", "pie"), 3, 6, 8, 12).words
        'Never shown: the nearest offer in the data differs in 3 items. It has 6 items; offers in the data had 8 to 12.'
        >>> Nearness(312, ("tea",), 0, 1, 1, 3).words
        'It was shown 312 times.'
        """
        if self.shown:
            return f"It was shown {plural(self.shown, 'time')}."
        text = f"Never shown: the nearest offer in the data differs in {plural(self.differs, 'item')}."
        if not self.fewest <= self.size <= self.most:
            had = f"{self.fewest}" if self.fewest == self.most else f"{self.fewest} to {self.most}"
            text += f" It has {plural(self.size, 'item')}; offers in the data had {had}."
        return text


@dataclass(frozen=True, eq=False)
class Context:
    """The present offer and its value, what the decision gains over it, and how near the data are.

    Attributes
    ----------
    present : tuple of items or None
        The present offer without the no-choice item: as given, or the most frequent one in the counts.
    present_value : float
        What it earns by the model.
    present_shown : float or None
        How often it was shown; None without counts.
    gain, gain_interval : float, and pair of floats or None
        The value of the decision minus that of the present offer, and its interval.
    changes : tuple of OfferChange
        The best feasible single changes to the present offer, best first.
    unvalued : int
        Number of single changes that were not valued for want of time, the likely best ones being valued first.
    nearness : Nearness or None
        How near the decision is to offers in the data; None without counts.
    refits : int
        Number of refits behind the intervals; 0 without intervals.
    refit_seconds : float
        Without intervals for want of time, about the CPU seconds that their refits need; 0 if not known.
    """

    present: tuple[Label, ...] | None = None
    present_value: float = 0.0
    present_shown: float | None = None
    gain: float = 0.0
    gain_interval: tuple[float, float] | None = None
    changes: tuple[OfferChange, ...] = field(default=(), repr=False)
    unvalued: int = 0
    nearness: Nearness | None = None
    refits: int = 0
    refit_seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        near, names = self.nearness, ("present_value", "present_shown", "gain", "gain_interval", "unvalued", "refits")
        content: dict[str, Any] = {name: None if self.present is None else getattr(self, name) for name in names}
        content["present"] = None if self.present is None else [str(item) for item in self.present]
        content["changes"] = [change.to_json() for change in self.changes]
        content["nearness"] = near
        if near is not None:
            named = {"nearest": [str(item) for item in near.nearest], "is_extrapolation": near.is_extrapolation}
            content["nearness"] = asdict(near) | named
        return content


def context_of(problem: OfferProblem, mask: Mask, value: float, counts: ChoiceCounts | None, watch: Watch) -> Context:
    """Return the context of an offer, without intervals."""
    near, shown, present = None, None, problem.present
    if counts is not None:
        near = nearness(problem, mask, counts)
        if present is None:
            present = mask_of(problem, most_frequent_offer(counts))
            present[[problem.nothing] if problem.nothing >= 0 else []] = False
        shown = nearness(problem, present, counts).shown
    if present is None:
        return Context(nearness=near)
    now = float(values(problem, [present])[0])
    changes = best_of_each_kind(single_changes(problem, present, now, watch))
    offer = problem.offer(present)
    unvalued = sum(map(len, problem.valued_changes[present.tobytes()][0]))
    return Context(offer, now, shown, value - now, None, tuple(changes), unvalued, near)


def most_frequent_offer(counts: ChoiceCounts) -> tuple[Label, ...]:
    """Return the offer that was shown most often.

    >>> from rankstream import Assortments
    >>> most_frequent_offer(ChoiceCounts(Assortments([("tea", "no"), ("pie", "no")]), [4, 1, 9, 2]))
    ('pie', 'no')
    """
    return tuple(counts.assortments.offers[int(np.argmax(counts.totals))])


def nearness(problem: OfferProblem, mask: Mask, counts: ChoiceCounts) -> Nearness:
    """Compare an offer with those in the counts; an item at another price is one difference."""
    code = {item: number for number, item in enumerate(problem.items)}
    owner = problem.names.owner
    best, shown, sizes = None, 0.0, []
    for offer, total in zip(counts.assortments.offers, counts.totals.tolist(), strict=True):
        if not total:
            continue
        known = np.zeros_like(mask)
        known[[code[item] for item in offer if item in code]] = True
        if problem.nothing >= 0:
            known[problem.nothing] = False
        sizes.append(int(known.sum()))
        differs = len(set(owner[mask ^ known].tolist()))
        shown += total if not differs else 0.0
        if best is None or (differs, -total) < best[:2]:
            best = (differs, -total, tuple(problem.items[number] for number in np.flatnonzero(known)))
    if best is None:
        return Nearness(0.0, (), int(mask.sum()), int(mask.sum()), 0, 0)
    return Nearness(shown, best[2], best[0], int(mask.sum()), min(sizes), max(sizes))
