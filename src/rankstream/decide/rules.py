"""What constrains the free items alone, once the items that must be offered have taken their place."""

from dataclasses import dataclass, field

import numpy as np

from rankstream._core.types import Bits, Bytes, Codes, Vec
from rankstream.decide.problem import OfferProblem, propagate
from rankstream.decide.rows import FREE, IN, OUT, Rows


@dataclass(frozen=True, eq=False)
class FreeRules:
    """Sizes, space, pairs and rows of the free items, which are numbered from 0.

    ``room``, ``least`` and ``most`` are what the items that must be offered leave. ``requires`` and ``excludes`` are
    pairs in rows; a pair with an item that is not free is settled already, and left out.
    """

    space: Vec
    room: float
    least: int
    most: int
    requires: Codes
    excludes: Codes
    rows: Rows = field(default_factory=Rows)

    @property
    def arrays(self) -> tuple[Vec, float, int, int, Codes, Codes, Codes, Codes]:
        """What the kernels take."""
        limits = self.space, self.room, self.least, self.most
        return *limits, self.requires, self.excludes, self.rows.factors, self.rows.limits

    def pair_masks(self, codes: Codes) -> tuple[Bits, Bits]:
        """For each of some free items, which of them it needs and which it bans, as bits in their order."""
        place = {int(code): bit for bit, code in enumerate(codes)}
        needs, bans = np.zeros((2, codes.size), dtype=np.uint64)
        for pairs, out in ((self.requires, needs), (self.excludes, bans)):
            for first, second in pairs.tolist():
                if first in place and second in place:
                    out[place[first]] |= np.uint64(1 << place[second])
        return needs, bans

    def follow(self, state: Bytes) -> bool:
        """Fix all that follows from what is decided in ``state``, in place; False where the rules cannot be kept."""
        while True:
            before = state.copy()
            for pairs, required in ((self.requires, True), (self.excludes, False)):
                if len(pairs) and not _follow_pairs(state, pairs, required):
                    return False
            if not self.rows.follow(state):
                return False
            if self.room < np.inf:
                left = self.room - float(self.space[state == IN].sum())
                if left < 0.0:
                    return False
                state[(state == FREE) & (self.space > left)] = OUT
            taken, possible = int((state == IN).sum()), int((state != OUT).sum())
            if taken > self.most or possible < self.least:
                return False
            if (state == before).all():
                return True


def rules_of(problem: OfferProblem) -> FreeRules:
    """The rules of a problem's free items."""
    free, inside = problem.free, problem.state == IN
    place = np.full(len(problem.items), -1, dtype=np.int64)
    place[free] = np.arange(free.size)
    taken = int(inside.sum())
    requires, excludes = (place[pairs] for pairs in (problem.requires, problem.excludes))
    requires, excludes = (pairs[(pairs >= 0).all(axis=1)] for pairs in (requires, excludes))
    limited = problem.capacity < np.inf
    return FreeRules(
        problem.space[free],
        problem.room - float(problem.space[inside].sum()) if limited else np.inf,
        problem.least - taken,
        problem.most - taken,
        requires,
        excludes,
        problem.rows.left(free, inside),
    )


def _follow_pairs(state: Bytes, pairs: Codes, required: bool) -> bool:
    wrong = OUT if required else IN
    for first, second in pairs.tolist():
        propagate(state, first, second, required)
        if state[first] == IN and state[second] == wrong:
            return False
    return True
