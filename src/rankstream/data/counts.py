"""ChoiceCounts: mergeable tallies of what was chosen from which offer, and the target frequencies they define."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core import Codes, Label, Mask, Vec, number_between, whole_numbers
from rankstream.data.assortments import Assortments, Space
from rankstream.data.order import Order

MAX_OBSERVATIONS = 2.0**53  # beyond this, adding 1 to a float is lost to rounding
MAX_KNOWN_OFFERS = 100_000  # cached ways to write an offer; not tuned, bounds memory
SHORT_BATCH = 4096  # choices: longer batches are added up in one pass over all coordinates; an estimate


@dataclass(frozen=True)
class Target:
    """The target of a round: the frequencies p_t, which coordinates were seen (None: all), and how many choices."""

    frequencies: Vec
    seen: Mask | None = None
    observations: float = np.nan


class ChoiceCounts:
    """How often each item was chosen from each offer. The only mutable data.

    Not safe for use by several threads at once. Give every thread its own counts and add them up with ``+``, or share
    a ``Live``, which has a lock.

    Examples
    --------
    >>> counts = ChoiceCounts(Assortments([("tea", "nothing"), ("pie", "nothing")]))
    >>> counts.observe(offered=("tea", "nothing"), chosen="tea", count=3)
    >>> counts.observe(offered=[("tea", "nothing"), ("nothing", "tea")], chosen=["nothing", "tea"])
    >>> counts.observations, counts.frequencies()
    (5, array([0.8, 0.2, nan, nan]))
    >>> (counts + counts).observations
    10
    """

    forgets: ClassVar[bool] = False
    persons: Vec | None = None
    """The tallies of each group of persons, a row each, if the choices were read with a column of persons."""

    def __init__(self, assortments: Assortments, tallies: ArrayLike | None = None) -> None:
        if not isinstance(assortments, Assortments):
            raise ValueError(f"The assortments must be an Assortments, not {type(assortments).__name__}.")
        self.assortments = assortments
        self._tallies: Vec = np.zeros(assortments.n_coordinates)
        self._totals: Vec = np.zeros(assortments.n_offers)
        if tallies is not None:
            self.observe_coordinates(np.arange(assortments.n_coordinates), tallies)

    def observe(self, offered: Any, chosen: Any, count: Any = 1) -> None:
        """Add one record, or many: lists (or arrays) of offers and choices, with one count or one for each.

        A ``chosen`` that is one of the items is one record. Nothing is added when any record is wrong.
        """
        self.observe_coordinates(self.coordinates(offered, chosen), count)

    def coordinates(self, offered: Any, chosen: Any) -> Codes:
        """Return the coordinates of one record, or of many, as ``observe`` reads them."""
        if not isinstance(chosen, list | np.ndarray) and (
            self._is_item(chosen) or isinstance(chosen, str | bytes) or not isinstance(chosen, Iterable)
        ):
            return np.array([self.assortments.coordinate(offered, chosen)])
        offered, chosen = list(offered), list(chosen)
        places = self.assortments.places
        if len(places) > MAX_KNOWN_OFFERS:
            places.clear()
        try:
            try:
                codes = [places[offer][choice] for offer, choice in zip(offered, chosen, strict=True)]
            except KeyError:  # an offer that is not in the cache
                places |= {offer: self.assortments.place(offer) for offer in set(offered) - places.keys()}
                codes = [places[offer][choice] for offer, choice in zip(offered, chosen, strict=True)]
        except (KeyError, TypeError, ValueError):  # offers are lists, or a record is wrong: check them one by one
            codes = list(self._coordinates(offered, chosen))
        return np.fromiter(codes, np.int64, len(codes))

    def _is_item(self, label: Any) -> bool:
        try:
            self.assortments.code(label)
        except ValueError:
            return False
        return True

    def _coordinates(self, offered: list[Iterable[Label]], chosen: list[Label]) -> Iterator[int]:
        if len(offered) != len(chosen):
            raise ValueError(
                f"There are {len(offered)} offers but {len(chosen)} choices: give one choice for each offer."
            )
        for row, (offer, choice) in enumerate(zip(offered, chosen, strict=True)):
            try:
                yield self.assortments.coordinate(offer, choice)
            except ValueError as error:
                raise ValueError(f"Record {row}: {error}") from None

    def observe_coordinates(self, coordinates: ArrayLike, count: ArrayLike = 1) -> None:
        """Add choices given as coordinates (see ``Assortments.coordinate``): the fast way."""
        one: Any = count
        if isinstance(one, int) and one == 1 and self._add_ones(whole_numbers("Coordinates", coordinates)):
            return
        where, weights = self._checked(coordinates, count)
        added: Vec = np.bincount(where, weights=weights, minlength=self.tallies.size).astype(np.float64)
        if not self.observations + added.sum() < MAX_OBSERVATIONS:
            raise ValueError(
                f"{added.sum():g} more observations are too many to count exactly: at most {MAX_OBSERVATIONS:g} in all."
            )
        self._add(added)

    def _add(self, added: Vec) -> None:
        self.persons = None  # it is not known who made these choices
        self._tallies += added
        self._totals += np.add.reduceat(added, self.assortments.indptr[:-1])

    def _checked(self, coordinates: ArrayLike, count: ArrayLike) -> tuple[Codes, Vec]:
        where = whole_numbers("Coordinates", coordinates)
        try:
            amount = np.asarray(count, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"The count {count!r} is not a number: give one count, or one for each record.") from None
        if amount.shape not in ((), where.shape):
            raise ValueError(
                f"There are {where.size} records but counts of shape {amount.shape}: give one count for each."
            )
        if not np.all((amount >= 0) & np.isfinite(amount)):
            bad = amount.flat[np.flatnonzero(~((amount >= 0) & np.isfinite(amount)))[0]]
            raise ValueError(f"The count {bad} is not a finite number >= 0: correct the record.")
        if where.size and (where.min() < 0 or where.max() >= self.tallies.size):
            raise ValueError(
                f"Coordinates must lie between 0 and {self.tallies.size - 1}; got {where.min()} to {where.max()}."
            )
        return where, np.broadcast_to(amount, where.shape)

    def _add_ones(self, where: Codes) -> bool:
        """Add a short batch in time proportional to its length; return False where it needs the full checks."""
        if where.ndim != 1 or not 0 < where.size < SHORT_BATCH:
            return False
        if np.maximum.reduce(where.view(np.uint64)) >= self._tallies.size:  # negative numbers are huge as unsigned
            return False
        if not np.add.reduce(self._totals) + where.size < MAX_OBSERVATIONS:
            return False
        self.persons = None
        np.add.at(self._tallies, where, 1.0)
        np.add.at(self._totals, self.assortments.owner[where], 1.0)
        return True

    @property
    def tallies(self) -> Vec:
        """How often each coordinate was chosen; a read-only view."""
        view = self._tallies.view()
        view.flags.writeable = False
        return view

    @property
    def observations(self) -> float:
        """Number of choices counted."""
        total = float(self._totals.sum())
        return int(total) if total.is_integer() else total

    @property
    def totals(self) -> Vec:
        """Number of choices counted for each offer."""
        return self._totals.copy()

    @property
    def effective_totals(self) -> Vec:
        """For each offer, the effective number of choices behind its frequencies: here all of them."""
        return self._totals.copy()

    def frequencies(self) -> Vec:
        """Return the empirical choice frequencies p (paper, equation 1); NaN for offers without choices."""
        totals = self._totals[self.assortments.owner]
        shares: Vec = np.divide(self._tallies, totals, out=np.full(totals.shape, np.nan), where=totals > 0)
        return shares

    def digest(self) -> str:
        """Return a short hash of the offers and tallies that does not depend on their order."""
        offers = self.assortments
        parts = []
        for number, offer in enumerate(offers.offers):
            tallies = self.tallies[offers.indptr[number] : offers.indptr[number + 1]].tolist()
            parts.append(repr(sorted(zip(map(repr, offer), tallies, strict=True))))
        return blake2b("".join(sorted(parts)).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def target(self) -> Target:
        """Return the frequencies, with a mask of the offers that have choices, so that estimation uses only these."""
        if self._totals.min() > 0:
            return Target(self._tallies / self._totals[self.assortments.owner], None, self.observations)
        seen = (self._totals > 0)[self.assortments.owner]
        return Target(self.frequencies(), seen, self.observations)

    def require_whole(self, purpose: str) -> None:
        """Raise a ValueError unless all counts are whole and nothing is forgotten, as statistical tests need."""
        needs = f"{purpose} needs whole choices, each counted once"
        if self.forgets:
            raise ValueError(f"{needs}, but {type(self).__name__} forget: use ChoiceCounts.")
        fractions = self._tallies[self._tallies != np.floor(self._tallies)]
        if fractions.size:
            raise ValueError(f"{needs}, but a tally is {fractions[0]:g}: count without weights.")

    def extend(self, offers: Iterable[Iterable[Label]], items: Iterable[Label] = (), order: Order = ()) -> Self:
        """Return a copy over more offers, with no choices from the new ones."""
        grown = self._like(self.assortments.extend(offers, items, order))
        sizes = {"tallies": grown._tallies.size, "totals": grown._totals.size, "squares": grown._totals.size}
        state = self.memory()
        padded = {name: np.pad(state[name], (0, sizes[name] - state[name].size)) for name in state.keys() & sizes}
        grown.remember(state | padded)
        return grown

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = self._like(self.assortments)
        twin.remember(self.memory())
        return twin

    def _like(self, assortments: Assortments) -> Self:
        return type(self)(assortments)

    def memory(self) -> dict[str, Any]:
        """Return the whole state as arrays, for a checkpoint."""
        return {"tallies": self._tallies.copy(), "totals": self._totals.copy()}

    def remember(self, memory: dict[str, Any]) -> None:
        """Restore the state that ``memory`` returned."""
        self._tallies = np.array(memory["tallies"], dtype=np.float64)
        self._totals = np.array(memory["totals"], dtype=np.float64)

    def __add__(self, other: "ChoiceCounts") -> "ChoiceCounts":
        if not isinstance(other, ChoiceCounts):
            return NotImplemented
        if self.forgets or other.forgets:
            raise ValueError("Counts that forget cannot be added: observe both streams with the same counts.")
        if self.assortments != other.assortments:
            raise ValueError("Counts of different assortments cannot be added: count both with the same Assortments.")
        return ChoiceCounts(self.assortments, self.tallies + other.tallies)

    def __repr__(self) -> str:
        count, offers = self.observations, self.assortments.n_offers
        return f"ChoiceCounts({count} choice{'s'[: count != 1]} from {offers} offer{'s'[: offers != 1]})"


def as_target(assortments: Space, data: "ChoiceCounts | Target | ArrayLike") -> Target:
    """Convert counts, a frequency vector or a target to the target of one round, or raise a ValueError."""
    if isinstance(data, Target):
        return data
    if isinstance(data, ChoiceCounts):
        if data.assortments != assortments:
            raise ValueError(
                "The counts belong to other assortments than the ones to estimate: use the same Assortments."
            )
        return data.target()
    return Target(assortments.check_frequencies(data))


def as_rows(assortments: Assortments, rows: ArrayLike) -> Vec:
    """Check a stream that is known in advance, one frequency vector per row; an error names the row.

    >>> as_rows(Assortments([("tea", "pie")]), [[0.5, 0.5], [1, 0]]).shape
    (2, 2)
    """
    values = np.require(rows, dtype=np.float64, requirements=["C", "W"])
    if values.ndim != 2 or values.shape[1] != assortments.n_coordinates:
        size, shape = assortments.n_coordinates, values.shape
        raise ValueError(
            f"Rows of frequencies must have shape (rounds, {size}), one column per coordinate; got {shape}."
        )
    bad = ~(values >= 0.0).all(axis=1)
    if not bad.any():
        sums = np.add.reduceat(values, assortments.indptr[:-1], axis=1)
        bad = ~(np.abs(sums - 1.0) <= 1e-6).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        try:
            assortments.check_frequencies(values[row])
        except ValueError as error:
            raise ValueError(f"Row {row}: {error}") from None
    return values


def with_outside(
    counts: ChoiceCounts, share: float | Mapping[Any, float], no_choice: Label = "no choice"
) -> ChoiceCounts:
    """Add a no-purchase option to every offer, and assume that this share of customers took it.

    The share is one number, or one for each offer (a mapping from tuples of items). Offers that already have the item
    are unchanged: data take precedence over assumptions.

    Examples
    --------
    >>> counts = ChoiceCounts(Assortments([("tea", "pie")]), [6, 3])
    >>> with_outside(counts, 0.25).tallies
    array([6., 3., 3.])
    """
    before = counts.assortments
    shares = _shares(before, share)
    lacking = np.array([no_choice not in offer for offer in before.offers])
    offers = [(*offer, no_choice) if lacks else offer for offer, lacks in zip(before.offers, lacking, strict=True)]
    items = before.items if no_choice in before.items else (*before.items, no_choice)
    assumed = counts.totals * shares / (1.0 - shares)
    grown = np.insert(counts.tallies, before.indptr[1:][lacking], assumed[lacking])
    return ChoiceCounts(Assortments(offers, items, before.order), grown)


def _shares(assortments: Assortments, share: float | Mapping[Any, float]) -> Vec:
    if not isinstance(share, Mapping):
        return np.full(assortments.n_offers, number_between("The share", share, 0.0, 0.999))
    known = {frozenset(offer): value for offer, value in share.items()}
    for offer in assortments.offers:
        if frozenset(offer) not in known:
            raise ValueError(f"There is no share for the offer {offer!r}: give one for each offer, or one for all.")
    return np.array(
        [number_between(f"The share of {offer!r}", known[frozenset(offer)], 0.0, 0.999) for offer in assortments.offers]
    )
