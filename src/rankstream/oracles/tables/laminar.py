"""The cheapest ranking for nested offers, in time linear in their entries."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.compilation import compiled
from rankstream._core.types import Codes, Vec
from rankstream.data import Assortments, refuse_order
from rankstream.oracles.protocol import Answer, TieRule, Ties, finite_costs
from rankstream.oracles.reductions import reduce


@compiled
def choose_winners(
    entries: Vec, starts: Codes, above: Codes, inner: Codes, stop: float, whole: Vec, won: Vec, winner: Codes
) -> None:
    """The cheapest winner of every offer of a laminar family, smaller offers first.

    ``won[e]`` is the least cost of an offer and all inside it if the entry's item is the best ranked: its own cost, the
    least of each offer inside without the item, and ``won`` of the one inside with it (``inner[e]``, -1: none).
    ``whole`` is the least over all items, or ``stop`` where the no-choice item may win. ``winner`` becomes the entry of
    the best ranked item of every offer, -1 for no-choice; ``above`` is the smallest offer around each, -1 for none.
    """
    n_offers = starts.size - 1
    # what the offers right inside cost at least, complete when an offer's turn comes: smaller ones are before it
    inside = np.zeros(n_offers)
    owner = np.zeros(entries.size, dtype=np.int64)
    for v in range(n_offers):
        best = stop
        # no-choice, until an item is cheaper; without it stop is infinite, and some item is
        winner[v] = -1
        for e in range(starts[v], starts[v + 1]):
            owner[e] = v
            won[e] = entries[e] + inside[v]
            # the offer inside with the item cannot be won by another: what the item costs there, not the least
            if inner[e] >= 0:
                won[e] += won[inner[e]] - whole[owner[inner[e]]]
            if won[e] < best:
                best = won[e]
                winner[v] = e
        whole[v] = best
        if above[v] >= 0:
            inside[above[v]] += best
    # from the largest: what wins around an offer decides whether it can keep the winner of its own
    for v in range(n_offers - 1, -1, -1):
        if above[v] < 0:
            continue
        over = winner[above[v]]
        # no-choice is ahead of all items there, so ahead of those inside
        if over < 0:
            winner[v] = -1
        elif inner[over] >= 0 and owner[inner[over]] == v:
            winner[v] = inner[over]


class LaminarOracle(TieRule):
    """Any two offers are nested or share no item (apart from no-choice): offers nested by revenue, clusters of items.

    If an item wins an offer, it wins every smaller offer inside that contains it, and the others inside are free: costs
    add up from the smallest offers to the largest (a structure of Jagabathula and Rusmevichientong, Section 4.3). Works
    with and without a no-choice item, for any number of items.

    Examples
    --------
    >>> oracle = LaminarOracle(Assortments([("tea", "pie", "cake"), ("tea", "pie"), ("soup", "salad")]))
    >>> answer = oracle.cheapest([0.0, 1.0, 0.0, 2.0, 0.0, 1.0, 0.0])
    >>> answer.value, answer.exact
    (0.0, True)
    """

    def __init__(self, assortments: Assortments, ties: Ties = "random", seed: int = 0) -> None:
        super().__init__(assortments, ties, seed)
        refuse_order(assortments.order, "The oracle for nested offers", "use LatticeOracle, or oracles.auto")
        self.reduced = reduce(assortments)
        if not self.reduced.is_laminar:
            raise ValueError("Some offers overlap without one containing the other: use oracles.auto.")
        self._order = np.argsort([len(offer) for offer in self.reduced.offers], kind="stable")
        self._read_family()

    def _read_family(self) -> None:
        """Entries from the smallest offer to the largest, the same item's entry one offer further in, and parents."""
        offers = [self.reduced.offers[number] for number in self._order]
        self._starts = np.cumsum([0, *(len(offer) for offer in offers)])
        self._items = np.array([item for offer in offers for item in offer], dtype=np.int64)
        self._inner = np.full(self._items.size, -1, dtype=np.int64)
        self._above = np.full(len(offers), -1, dtype=np.int64)
        latest: dict[int, int] = {}
        owner = np.repeat(np.arange(len(offers)), np.diff(self._starts))
        for entry, item in enumerate(self._items.tolist()):
            if item in latest:
                self._inner[entry] = latest[item]
                self._above[owner[latest[item]]] = owner[entry]
            latest[item] = entry
        old_starts = np.cumsum([0, *(len(offer) for offer in self.reduced.offers)])
        moved = np.concatenate([np.arange(old_starts[k], old_starts[k + 1]) for k in self._order] or [np.zeros(0, int)])
        self._moved = moved.astype(np.int64)

    def cheapest(self, costs: ArrayLike) -> Answer:
        """Return the cheapest ranking, proven: bound and value are equal."""
        vector = finite_costs(self.assortments, costs)
        entries = self.reduced.fold(vector)[self._moved]
        n_offers = self._above.size
        winner = np.empty(n_offers, dtype=np.int64)
        stop = 0.0 if self._universal >= 0 else np.inf
        choose_winners(
            entries, self._starts, self._above, self._inner, stop, np.zeros(n_offers), np.zeros(entries.size), winner
        )
        ranking = self._rank(winner)
        value = self.keep(vector, ranking)
        return Answer(ranking, value, value)

    def _rank(self, winner: Codes) -> Codes:
        """A ranking with these winners: larger offers first, then no-choice and the rest."""
        # the winner of a larger offer comes before those inside that it does not win
        top = list(dict.fromkeys(self._items[winner[::-1][winner[::-1] >= 0]].tolist()))
        if self._universal >= 0:
            top.append(self._universal)
        rest = [item for item in range(self.assortments.n_items) if item not in set(top)]
        return np.array(top + rest, dtype=np.int64)

    def explain(self) -> str:
        """Say why this oracle was chosen."""
        return f"exact, in linear time ({self.reduced.explain()})"

    def __reduce__(self) -> tuple[Any, ...]:
        return LaminarOracle, (self.assortments, self.ties, self.seed)
