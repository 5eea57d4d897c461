"""Branch and bound over wish lists: the best offers of a ranking model, with a proof."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rankstream._core.types import Bytes, Codes, Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.decide import branch_kernels as kernels
from rankstream.decide.lists import Lists
from rankstream.decide.local import Found, climb, local_search
from rankstream.decide.problem import FREE, IN, OUT, OfferProblem, propagate

CLOSE = 1e-9
"""Relative to the largest margin: nearer than this, values count as equal."""
FIRST_STEPS, STEPS, PACE = 250, 30, 0.3
"""Steps of a whole problem and of a part of it, and how bold the first of them are."""


class Node(NamedTuple):
    """What is decided so far, the lists of what is not, the prices there, and a bound on all that it leaves open."""

    state: Bytes
    codes: Codes
    start: Codes
    item: Codes
    weight: Vec
    end: Vec
    price: Vec
    constant: float
    bound: float


@dataclass
class Branching:
    """The search: the best offers so far, and the parts of the problem that are still open, the next one last."""

    lists: Lists
    problem: OfferProblem
    top: int = 1
    watch: Watch = unwatched
    found: Found = field(default_factory=dict)
    nodes: int = 0
    open: list[Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        margins = np.append(np.abs(self.lists.margin), np.abs(self.lists.end).max(initial=0.0))
        self.close = CLOSE * max(float(margins.max()), 1e-300)
        self.space = self.problem.space[self.lists.free]
        place = {int(code): number for number, code in enumerate(self.lists.free)}
        self.pairs = [
            (place[a], place[b], required)
            for pairs, required in ((self.problem.requires, True), (self.problem.excludes, False))
            for a, b in pairs.tolist()
            if a in place and b in place
        ]
        self.room = self.problem.room - float(self.problem.space[self.problem.state == IN].sum())

    @property
    def threshold(self) -> float:
        """What a part must be able to exceed to be looked into: the least of the best ``top`` values."""
        values = sorted(self.found.values(), reverse=True)
        return values[self.top - 1] if len(values) >= self.top else -np.inf

    @property
    def bound(self) -> float:
        """What no offer exceeds."""
        best = max(self.found.values(), default=-np.inf)
        return max([best, *(node.bound for node in self.open)])

    def run(self, starts: int = 4, seed: int = 0) -> bool:
        """Search until all is proven, or whoever watches has had enough; whether it is proven."""
        self.found.update(local_search(self.lists, self.problem, starts, seed, self.watch))
        n = self.lists.margin.size
        lists = self.lists
        self.open = [
            Node(
                np.zeros(n, dtype=np.int8), np.arange(n), lists.start, lists.item, lists.weight, lists.end,
                np.zeros(lists.item.size), -lists.fixed_cost, np.inf,
            )
        ]  # fmt: skip
        while self.open:
            node = self.open.pop()
            self._explore(node)
            if self.open and self.watch(f"{self.nodes:,} parts, best {self.threshold:.6g}, bound {self.bound:.6g}"):
                return False
        return True

    def _explore(self, node: Node) -> None:
        """Bound a part, decide what the bound decides, and split what is left in two."""
        steps = FIRST_STEPS if not self.nodes else STEPS
        self.nodes += 1
        smaller: Node | None = self._shrunk(node, node.state)
        while smaller is not None:
            node = smaller
            slots = self.problem.most - self.problem.must.size - int((node.state == IN).sum())
            if not node.codes.size or slots <= 0:
                self._keep((node.state == IN).astype(np.int8))
                return
            arrays = self._arrays(node, slots)
            threshold = self.threshold
            target = threshold + self.close - node.constant
            best_price, offer = np.empty_like(node.price), np.zeros(node.codes.size)
            bound = kernels.descend(
                *arrays, target if np.isfinite(target) else 0.0, steps, PACE, node.price, best_price, offer
            )
            bound = min(bound + node.constant, node.bound)
            self._round(node, offer, slots)
            if bound <= self.threshold + self.close:
                return
            node = node._replace(price=best_price, bound=bound)
            into, out = np.zeros(node.codes.size), np.zeros(node.codes.size)
            kernels.penalties(*arrays, best_price, into, out)
            state = self._decided(node, into, out)
            if state is None:
                return
            if (state == node.state).all():
                self._split(node, into, out)
                return
            smaller = self._shrunk(node, state)
            steps = STEPS // 2

    def _arrays(self, node: Node, slots: int) -> tuple[Codes, Codes, Vec, Vec, Vec, Vec, Vec, int, float]:
        room = self.room - float(self.space[node.state == IN].sum())
        where = node.codes
        return (
            node.start, node.item, node.weight, node.end, self.lists.margin[where], self.lists.cost[where],
            self.space[where], slots, room if self.problem.capacity < np.inf else np.inf,
        )  # fmt: skip

    def _decided(self, node: Node, into: Vec, out: Vec) -> Bytes | None:
        """The state with every item fixed without which, or with which, a part could not exceed the threshold."""
        target = self.threshold + self.close - node.constant
        state = node.state.copy()
        state[node.codes[into <= target]] = OUT
        needed = node.codes[out <= target]
        if (state[needed] == OUT).any():
            return None
        state[needed] = IN
        return self._implied(state)

    def _implied(self, state: Bytes) -> Bytes | None:
        """With all that follows from constraints; None where they cannot be kept."""
        while True:
            before = state.copy()
            for first, second, required in self.pairs:
                propagate(state, first, second, required)
                wrong = OUT if required else IN
                if state[first] == IN and state[second] == wrong:
                    return None
            left = self.room - float(self.space[state == IN].sum())
            if left < 0.0 and self.problem.capacity < np.inf:
                return None
            if self.problem.capacity < np.inf:
                state[(state == FREE) & (self.space > left)] = OUT
            fixed = self.problem.must.size
            if fixed + int((state == IN).sum()) > self.problem.most:
                return None
            if fixed + int((state != OUT).sum()) < self.problem.least:
                return None
            if (state == before).all():
                return state

    def _split(self, node: Node, into: Vec, out: Vec) -> None:
        """Two smaller parts, with and without the item on which the bound depends most; the better one is next."""
        falls = np.maximum(node.bound - node.constant - np.stack([into, out]), 0.0)
        item = int(np.argmax(falls.min(axis=0) + 0.1 * falls.max(axis=0) + 1e-3 * self.lists.margin[node.codes]))
        parts = []
        for mark, bound in ((OUT, out[item]), (IN, into[item])):
            state = node.state.copy()
            state[node.codes[item]] = mark
            implied = self._implied(state)
            if implied is not None:
                parts.append(node._replace(state=implied, bound=min(node.bound, node.constant + float(bound))))
        self.open += sorted(parts, key=lambda part: part.bound)

    def _shrunk(self, node: Node, state: Bytes) -> Node:
        """The same part with lists of what is undecided only."""
        codes = np.flatnonzero(state == FREE)
        local = state[node.codes]
        place = np.cumsum(local == FREE) - 1
        start, item = np.empty_like(node.start), np.empty_like(node.item)
        weight, end, price = np.empty_like(node.weight), np.empty_like(node.end), np.empty_like(node.price)
        rows, done = kernels.shrink(
            node.start, node.item, node.weight, node.end, self.lists.margin[node.codes], node.price, local, place,
            start, item, weight, end, price,
        )  # fmt: skip
        entered = node.codes[local == IN]
        size = int(start[rows])
        return Node(
            state, codes, start[: rows + 1].copy(), item[:size].copy(), weight[:rows].copy(), end[:rows].copy(),
            price[:size].copy(), node.constant + done - float(self.lists.cost[entered].sum()), node.bound,
        )  # fmt: skip

    def _round(self, node: Node, offer: Vec, slots: int) -> None:
        """The offer that the prices suggest, improved while that pays, may be a better one."""
        held = (node.state == IN).astype(np.int8)
        held[node.codes[np.argsort(-offer, kind="stable")[: min(slots, int((offer > 0.5).sum()))]]] = 1
        if held.tobytes() in self.found or not self.problem.is_feasible(self.lists.whole(self.problem, held)):
            return
        best = max(self.found.values(), default=-np.inf)
        if self.lists.value(held) > best - 0.02 * abs(best):
            climb(self.lists, self.problem, held, self.found)

    def _keep(self, held: Bytes) -> None:
        if self.problem.is_feasible(self.lists.whole(self.problem, held)):
            self.found[held.tobytes()] = self.lists.value(held)
