"""Branch and bound over wish lists: the best offers of a ranking model, with a proof."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rankstream._core import Bytes, Codes, Vec, Watch, unwatched
from rankstream.decide.engines import branch_kernels as kernels
from rankstream.decide.engines import list_kernels, table_kernels
from rankstream.decide.engines.list_kernels import WishLists
from rankstream.decide.engines.lists import Found, Lists, climb, local_search
from rankstream.decide.engines.tables import best_cells
from rankstream.decide.problem.offers import OfferProblem
from rankstream.decide.problem.rules import FREE, IN, OUT, Rows

RELATIVE_TOLERANCE = 1e-9
"""Relative to the largest margin: values that differ by less count as equal."""
ROOT_ROUNDS, ROUND_STEPS, FIRST_PACE, PACE_FACTOR = 5, 40, 0.3, 0.8
"""Rounds of the whole problem before it is split, steps of each round, how bold the first is and how much less the
next; ``benchmarks/decide.py`` times them and all numbers below.
"""
PART_STEPS, PART_PACE = 8, 0.5
"""Steps of a part, from the prices of the whole it was split from, and how bold they are."""
MAX_TABLE_ITEMS, TABLE_TERMS_PER_STEP = 20, 50
"""The most items that are decided by a table of all offers of a part, and how many of its terms are worth one term of a
step: a part needs several rounds, and its own parts.
"""


class Node(NamedTuple):
    """A part of the problem: the decisions so far, the lists of undecided items, their prices, and a bound."""

    state: Bytes
    codes: Codes
    lists: WishLists
    price: Vec
    constant: float
    bound: float


@dataclass
class Branching:
    """The search: the best offers so far, and the open parts of the problem, the next one last."""

    lists: Lists
    problem: OfferProblem
    top: int = 1
    watch: Watch = unwatched
    found: Found = field(default_factory=dict)
    nodes: int = 0
    open: list[Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        margins = np.append(np.abs(self.lists.margin), np.abs(self.lists.end).max(initial=0.0))
        self.close = RELATIVE_TOLERANCE * max(float(margins.max()), 1e-300)
        self.rules = self.problem.free_rules
        self.charge, self.row_price = self.lists.cost, np.zeros(self.rules.rows.limits.size)

    @property
    def threshold(self) -> float:
        """The value that a part must be able to exceed to be explored: the least of the best ``top`` values."""
        if self.top == 1:
            return max(self.found.values(), default=-np.inf)
        values = sorted(self.found.values(), reverse=True)
        return values[self.top - 1] if len(values) >= self.top else -np.inf

    @property
    def bound(self) -> float:
        """An upper bound on the value of any offer."""
        return max([*self.found.values(), *(node.bound for node in self.open)], default=-np.inf)

    def run(self, starts: int = 4, seed: int = 0) -> bool:
        """Search until the result is proven or ``watch`` stops it. Returns whether it is proven."""
        self.found.update(local_search(self.lists, self.problem, starts, seed, self.watch))
        lists, n = self.lists.arrays, self.lists.margin.size
        price = np.zeros(lists.item.size)
        root = Node(np.zeros(n, dtype=np.int8), np.arange(n), lists, price, -self.lists.fixed_cost, np.inf)
        self._charge_rows(root)
        self.open = [root._replace(constant=root.constant + float(self.row_price @ self.rules.rows.limits))]
        while self.open:
            node = self.open.pop()
            self._explore(node)
            if self.open and self.watch(f"{self.nodes:,} parts, best {self.threshold:.6g}, bound {self.bound:.6g}"):
                return False
        return True

    def _charge_rows(self, root: Node) -> None:
        """Find a price for each row that makes the bound low.

        At any price of at least 0 for a row's sum, with the price of its limit paid back, offers that keep the row lose
        nothing: what bounds all offers then still bounds them, and those that break the row no longer pay.
        """
        rows, most = self.rules.rows, float(np.abs(self.lists.margin).max(initial=0.0))
        for number in chargeable(rows).tolist():
            tried = most * np.append(0.0, 2.0 ** -np.arange(8.0, -1.0, -1.0))
            for _ in range(2):
                bounds = []
                for price in tried.tolist():
                    self.row_price[number] = price
                    bounds.append(self._charged(root))
                best = int(np.argmin(bounds))
                self.row_price[number] = tried[best]
                tried = np.linspace(tried[max(0, best - 1)], tried[min(best + 1, tried.size - 1)], 7)
        if chargeable(rows).size:
            self._charged(root)

    def _charged(self, root: Node) -> float:
        """Return the bound of the whole problem at the current prices of rows, after a few steps."""
        rows = self.rules.rows
        self.charge = self.lists.cost + self.row_price @ rows.factors
        constant = root.constant + float(self.row_price @ rows.limits)
        limits, target = self._limits(root, self.rules.most), self.threshold + self.close - constant
        scratch = root.price.copy(), np.empty_like(root.price), np.zeros(root.codes.size)
        return constant + kernels.descend(root.lists, limits, target, PART_STEPS, FIRST_PACE, *scratch)

    def _explore(self, node: Node) -> None:
        """Bound a part, fix the items that the bound decides, and split the rest in two."""
        rounds, steps, pace = (1, PART_STEPS, PART_PACE) if self.nodes else (ROOT_ROUNDS, ROUND_STEPS, FIRST_PACE)
        self.nodes += 1
        node = self._shrunk(node, node.state)
        while True:
            slots = self.rules.most - int((node.state == IN).sum())
            if not node.codes.size or slots <= 0:
                self._keep((node.state == IN).astype(np.int8))
                return
            size = node.codes.size  # a table of all offers pays if it has no more terms than the next steps
            if size <= MAX_TABLE_ITEMS and 2**size * (size + 8) <= TABLE_TERMS_PER_STEP * steps * node.lists.item.size:
                self._try_all(node)
                return
            limits = self._limits(node, slots)
            target = self.threshold + self.close - node.constant
            best_price, offer = np.empty_like(node.price), np.zeros(node.codes.size)
            aim = target if np.isfinite(target) else 0.0
            bound = kernels.descend(node.lists, limits, aim, steps, pace, node.price, best_price, offer)
            bound = min(bound + node.constant, node.bound)
            self._round(node, offer, slots)
            if bound <= self.threshold + self.close:
                return
            node = node._replace(price=best_price, bound=bound)
            into, out = np.zeros(node.codes.size), np.zeros(node.codes.size)
            kernels.penalties(node.lists, limits, best_price, into, out)
            state = self._decided(node, into, out)
            if state is None:
                return
            rounds -= 1
            pace *= PACE_FACTOR
            changed = (state != node.state).any()
            if rounds <= 0 and not changed:
                self._split(node, into, out)
                return
            if changed:
                node = self._shrunk(node, state)

    def _limits(self, node: Node, slots: int) -> kernels.OfferLimits:
        where, capacity = node.codes, self.rules.capacity - float(self.rules.space[node.state == IN].sum())
        return kernels.OfferLimits(self.charge[where], self.rules.space[where], slots, capacity)

    def _decided(self, node: Node, into: Vec, out: Vec) -> Bytes | None:
        """Fix every item without which, or with which, the part could not exceed the threshold; None if none could."""
        target = self.threshold + self.close - node.constant
        state = node.state.copy()
        state[node.codes[into <= target]] = OUT
        needed = node.codes[out <= target]
        if (state[needed] == OUT).any():
            return None
        state[needed] = IN
        return state if self.rules.follow(state) else None

    def _split(self, node: Node, into: Vec, out: Vec) -> None:
        """Split a part by the item on which the bound depends most; the better half is next."""
        falls = np.maximum(node.bound - node.constant - np.stack([into, out]), 0.0)
        item = int(np.argmax(falls.min(axis=0) + 0.1 * falls.max(axis=0) + 1e-3 * self.lists.margin[node.codes]))
        parts = []
        for mark, bound in ((OUT, out[item]), (IN, into[item])):
            state = node.state.copy()
            state[node.codes[item]] = mark
            if self.rules.follow(state):
                parts.append(node._replace(state=state, bound=min(node.bound, node.constant + float(bound))))
        self.open += sorted(parts, key=lambda part: part.bound)

    def _shrunk(self, node: Node, state: Bytes) -> Node:
        codes = np.flatnonzero(state == FREE)
        local = state[node.codes]
        place = np.cumsum(local == FREE) - 1
        space: Any = map(np.empty_like, node.lists)
        new, price = WishLists(*space), np.empty_like(node.price)
        rows, done = kernels.shrink(node.lists, node.price, local, place, new, price)
        entered, size = node.codes[local == IN], int(new.start[rows])
        lists = WishLists(
            new.start[: rows + 1], new.item[:size], new.weight[:rows], new.end[:rows], self.lists.margin[codes]
        )
        constant = node.constant + done - float(self.charge[entered].sum())
        return Node(state, codes, lists, price[:size], constant, node.bound)

    def _try_all(self, node: Node) -> None:
        """Find the best offers of a part from a table of all its offers."""
        codes, bits = node.codes, node.codes.size
        table, inside, sizes = np.zeros(2**bits), node.state == IN, np.full(bits, 2)
        table_kernels.spread(*node.lists, 2 ** np.arange(bits), table)
        table_kernels.prefix_sums(table, sizes)
        digits = np.stack([np.arange(bits)[::-1], np.full(bits, -1)], axis=1)
        rules = self.rules.left(codes, inside)
        best, picks, _, _ = best_cells(table, digits, sizes, self.lists.cost[codes], rules, self.top)
        threshold = self.threshold
        paid_back = float(self.row_price @ self.rules.rows.slack(inside))  # for the unused part of each limit
        for value, pick in zip(best.tolist(), picks.tolist(), strict=True):
            if value + node.constant - paid_back > threshold:
                mask = inside.astype(np.int8)
                mask[codes] = [1 - (pick >> bit & 1) for bit in range(bits)]
                self.found[mask.tobytes()] = self.lists.value(mask)

    def _round(self, node: Node, offer: Vec, slots: int) -> None:
        """Round the relaxed offer, and improve it by local search if it is good enough."""
        mask = (node.state == IN).astype(np.int8)
        mask[node.codes[np.argsort(-offer, kind="stable")[: min(slots, int((offer > 0.5).sum()))]]] = 1
        if mask.tobytes() in self.found or not list_kernels.fits(mask, self.rules.arrays):
            return
        best = max(self.found.values(), default=-np.inf)
        if self.lists.value(mask) > best - 0.02 * abs(best):
            climb(self.lists, self.rules, mask, self.found)

    def _keep(self, mask: Bytes) -> None:
        if list_kernels.fits(mask, self.rules.arrays):
            self.found[mask.tobytes()] = self.lists.value(mask)


def chargeable(rows: Rows) -> Codes:
    """Return the rows worth a price: not pairs or "at most one of these", which branching settles soon."""
    one_of = (rows.factors >= 0).all(axis=1) & (rows.limits == 1)
    return np.flatnonzero(~one_of & ((rows.factors != 0).sum(axis=1) > 2))
