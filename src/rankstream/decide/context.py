"""The context of a decision: today's offer, single changes to it, and the offers in the data."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankstream._core import Label, Mask, Watch
from rankstream._core.terminal import plural
from rankstream.data.counts import ChoiceCounts
from rankstream.decide.moves import OfferChange, best_of_each_kind, mask_of, single_changes
from rankstream.decide.offer_values import values
from rankstream.decide.problem.offers import OfferProblem
from rankstream.models.nearness import Nearness as Nearness
from rankstream.models.nearness import compare_offer

if TYPE_CHECKING:
    from rankstream.data.readers.reading import Reading

FOUR_WEEKS = 28 * 86400.0  # seconds; not tuned


@dataclass(frozen=True, eq=False)
class Context:
    """Today's offer and its value, what the decision gains over it, and how near the data are.

    Attributes
    ----------
    present : tuple of items or None
        Today's offer without the no-purchase option: as given, or the most frequent one in the counts.
    present_value : float
        What it earns by the model.
    present_shown : float or None
        How often it was shown; None without counts.
    gain, gain_interval : float, and pair of floats or None
        The expected value of the decision minus the value of today's offer, and its interval.
    changes : tuple of OfferChange
        The best feasible single changes to today's offer, best first.
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
        content["nearness"] = None if near is None else near.to_json()
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
    """Return the offer that was shown most often; of several, that of the items shown most, then the highest prices.

    >>> from rankstream import Assortments
    >>> most_frequent_offer(ChoiceCounts(Assortments([("tea", "no"), ("pie", "no")]), [4, 1, 9, 2]))
    ('pie', 'no')
    >>> most_frequent_offer(ChoiceCounts(Assortments([("tea @ 2.00", "no"), ("tea @ 3.00", "no")]), [4, 1, 3, 2]))
    ('tea @ 3.00', 'no')
    """
    offers, totals = counts.assortments, counts.totals
    shown = np.bincount(offers.members, totals[offers.owner], offers.n_items)
    by_items = np.bincount(offers.owner, shown[offers.members], offers.n_offers)
    return tuple(offers.offers[int(np.lexsort((np.arange(offers.n_offers), by_items, totals))[-1])])


def equally_often(counts: ChoiceCounts, offer: tuple[Label, ...]) -> int:
    """Return how many offers were shown as often as this one, if it is not alone; otherwise 0."""
    alike = int((counts.totals == counts.totals[counts.assortments.offers.index(offer)]).sum())
    return alike if alike > 1 else 0


def origin_of_offer(known: "Reading", latest: ChoiceCounts, offer: tuple[Label, ...]) -> str:
    """Say why an offer counts as today's: it was the most frequent in the latest choices."""
    when = " of the last four weeks" if latest.observations < known.counts.observations else ""
    which = f"one of the {ties} most frequent" if (ties := equally_often(latest, offer)) else "the most frequent"
    times = plural(float(latest.totals[latest.assortments.offers.index(offer)]), "time")
    return f"{which}{when}, shown {times}{' each' * bool(ties)}; set yours with --present"


def recent_choices(known: "Reading") -> ChoiceCounts:
    """Return the choices of the last four weeks; all choices where their times are not known."""
    if known.slices is None or known.slice_times is None:
        return known.counts
    begin, parts = known.slice_times[-1][1] - FOUR_WEEKS, zip(known.slices, known.slice_times, strict=True)
    late = [part for part, (first, _) in parts if first >= begin] or known.slices[-1:]
    return sum(late[1:], late[0])


def nearness(problem: OfferProblem, mask: Mask, counts: ChoiceCounts) -> Nearness:
    """Compare an offer with those in the counts; an item at another price is one difference."""
    nothing = problem.items[problem.nothing] if problem.nothing >= 0 else None
    known = zip(counts.assortments.offers, counts.totals.tolist(), strict=True)
    near = compare_offer(problem.offer(mask), known, nothing, problem.levels)
    return replace(near, nearest=problem.offer(mask_of(problem, near.nearest)))
