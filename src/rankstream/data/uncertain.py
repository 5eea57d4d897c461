"""UncertainCounts: choices from offers that are only known to lie between a smallest and a largest set."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rankstream._core import Label, number_between
from rankstream.data.assortments import Assortments, as_offer, plain
from rankstream.data.counts import ChoiceCounts

Term = tuple[frozenset[Label], Label]  # a set that may have been on offer, and an item of it


class Slot(NamedTuple):
    """A part of a period: the items that were on offer all the time, what was chosen, and how long it lasted."""

    smallest: frozenset[Label]
    chosen: dict[Label, float]
    duration: float


class Period(NamedTuple):
    """The time between two looks at a shelf. Items of ``largest`` may sell out one after the other, and stay away.

    Items leave between slots: let a slot end with the last sale of an item. ``start`` is in the unit of the durations,
    for example seconds since 1970.
    """

    largest: tuple[Label, ...]
    slots: tuple[Slot, ...]
    place: Label = None
    start: float = 0.0

    @property
    def doubtful(self) -> tuple[Label, ...]:
        """The items that may have sold out before the end."""
        return tuple(item for item in self.largest if item not in self.slots[-1].smallest)


def matrix_over_sets(rows: Sequence[Mapping[Term, float]], items: Sequence[Label]) -> tuple[Assortments, Any]:
    """Return all sets of some rows as assortments, and the rows as a sparse matrix over their coordinates."""
    from scipy.sparse import csr_array  # slow to import, and needed here alone

    sets = dict.fromkeys(offer for row in rows for offer, _ in row)
    offers = Assortments([tuple(item for item in items if item in offer) for offer in sets], items)
    places = {offer: offers.place(offer) for offer in sets}
    entries = [(n, places[offer][item], value) for n, row in enumerate(rows) for (offer, item), value in row.items()]
    numbers, columns, values = zip(*entries, strict=True)
    return offers, csr_array((values, (numbers, columns)), shape=(len(rows), offers.n_coordinates))


class UncertainCounts:
    """How often each item was chosen, where the offer is known in part only.

    Parameters
    ----------
    items : list of items, optional
        All items in their order; without it, in the order of their first use.

    Examples
    --------
    >>> counts = UncertainCounts()
    >>> counts.observe(smallest=("pie", "nothing"), largest=("tea", "pie", "nothing"), chosen="pie", count=3)
    >>> counts.observe_period(("pie", "nothing"), ("tea", "pie", "nothing"), [{"tea": 2, "pie": 1}, {"pie": 4}])
    >>> [sorted(slot.smallest) for slot in counts.periods[1].slots]      # tea was there as long as it was sold
    [['nothing', 'pie', 'tea'], ['nothing', 'pie']]
    >>> counts
    UncertainCounts(10 choices in 2 periods, 7 of them from offers that are uncertain)
    """

    def __init__(self, items: Iterable[Label] | None = None) -> None:
        self._items = dict.fromkeys(() if items is None else as_offer("The list of items", items))
        self._fixed = items is not None
        self.periods: list[Period] = []

    def observe(self, smallest: Iterable[Label], largest: Iterable[Label], chosen: Label, count: float = 1) -> None:
        """Add choices of one item, all from one offer that lies between two sets."""
        self.observe_period(smallest, largest, [{chosen: count}])

    def observe_period(
        self,
        smallest: Iterable[Label],
        largest: Iterable[Label],
        slots: Sequence[Mapping[Any, float]],
        durations: Sequence[float] | None = None,
        *,
        place: Label = None,
        start: float = 0.0,
    ) -> None:
        """Add a period in which items of the largest set sold out, at most down to the smallest.

        Parameters
        ----------
        smallest, largest : items
            What was surely on offer until the end, and what was on offer at the beginning.
        slots : sequence of mappings from items to counts
            What was chosen in one slot after the other. An item that was chosen was on offer until that slot's end.
        durations : sequence of float, optional
            How long each slot lasted; without it all lasted 1.
        place, start : optional
            Where and when the period was, for ``availability``.
        """
        most, least = as_offer("The largest set", largest), {plain(item) for item in smallest}
        lengths = [1.0] * len(slots) if durations is None else list(durations)
        if not slots or len(lengths) != len(slots):
            raise ValueError(f"There are {len(slots)} slots and {len(lengths)} durations: give one for each slot.")
        for item in least - set(most):
            raise ValueError(f"The smallest set contains {item!r}, the largest does not: add it there.")
        unknown = [item for item in most if item not in self._items] if self._fixed else []
        if unknown:
            raise ValueError(f"The largest set contains {unknown[0]!r}, which is not among the items: add it.")
        found: list[Slot] = []
        sure = frozenset(least)
        for slot, length in zip(reversed(slots), reversed(lengths), strict=True):
            chosen = {plain(item): number_between(f"The count of {item!r}", n, 0.0) for item, n in slot.items()}
            for item, count in chosen.items():
                if item not in most or not np.isfinite(count):
                    raise ValueError(f"{count:g} choices of {item!r} cannot be from {most!r}: correct the record.")
            chosen = {item: count for item, count in chosen.items() if count}
            sure = sure.union(chosen)
            found.append(Slot(sure, chosen, number_between("A duration", length, 0.0)))
        self._items.update(dict.fromkeys(most))
        self.periods.append(Period(most, tuple(reversed(found)), place, float(start)))

    @property
    def items(self) -> tuple[Label, ...]:
        """All items."""
        return tuple(self._items)

    @property
    def assortments(self) -> Assortments:
        """The largest sets, each once."""
        return self.naive_counts().assortments

    @property
    def observations(self) -> float:
        """Number of choices."""
        total = float(sum(sum(slot.chosen.values()) for period in self.periods for slot in period.slots))
        return int(total) if total.is_integer() else total

    def require_choices(self) -> None:
        """Refuse counts without choices."""
        if not self.observations:
            raise ValueError("The counts have no observations yet: observe some choices first.")

    def naive_counts(self) -> ChoiceCounts:
        """Return the choices as if nothing had sold out: each from the largest set of its period."""
        self.require_choices()
        offers = {frozenset(period.largest): period.largest for period in self.periods}
        counts = ChoiceCounts(Assortments(offers.values(), self.items))
        chosen = [
            (period.largest, item, count)
            for period in self.periods
            for slot in period.slots
            for item, count in slot.chosen.items()
        ]
        counts.observe(*map(list, zip(*chosen, strict=True)))
        return counts

    @property
    def unsure(self) -> float:
        """Number of choices from offers that are uncertain."""
        pairs = [(len(period.largest), slot) for period in self.periods for slot in period.slots]
        return float(sum(sum(slot.chosen.values()) for size, slot in pairs if len(slot.smallest) < size))

    def __repr__(self) -> str:
        return (
            f"UncertainCounts({self.observations:g} choices in {len(self.periods)} periods, {self.unsure:g} of them "
            "from offers that are uncertain)"
        )
