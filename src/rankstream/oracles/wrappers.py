"""Oracles around oracles: count and time calls, remember answers, try known rankings first."""

import time
from collections import OrderedDict

import numpy as np

from rankstream._core.rounding import ROUNDING
from rankstream._core.types import Vec
from rankstream.data.assortments import Assortments
from rankstream.oracles.protocol import Answer, Oracle, finite_costs, meet


class CountingOracle:
    """Counts the calls of another oracle and the seconds they took.

    >>> from rankstream import oracles
    >>> oracle = CountingOracle(oracles.auto(Assortments([("tea", "pie")])))
    >>> oracle.cheapest(np.array([1.0, 0.0])).value, oracle.calls
    (0.0, 1)
    """

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.calls = 0
        self.seconds = 0.0

    def cheapest(self, costs: Vec) -> Answer:
        """The other oracle's answer."""
        start = time.perf_counter()
        answer = self.oracle.cheapest(costs)
        self.seconds += time.perf_counter() - start
        self.calls += 1
        return answer


class CachingOracle:
    """Remembers the last answers of another oracle: the same costs are not solved twice."""

    def __init__(self, oracle: Oracle, size: int = 1024) -> None:
        self.oracle = oracle
        self.size = size
        self.hits = 0
        self._answers: OrderedDict[bytes, Answer] = OrderedDict()

    def cheapest(self, costs: Vec) -> Answer:
        """The remembered answer, or the other oracle's."""
        key = np.ascontiguousarray(costs, dtype=np.float64).tobytes()
        if key in self._answers:
            self.hits += 1
            self._answers.move_to_end(key)
            return self._answers[key]
        answer = self._answers[key] = self.oracle.cheapest(costs)
        answer.ranking.flags.writeable = False
        if len(self._answers) > self.size:
            self._answers.popitem(last=False)
        return answer


class LazyOracle:
    """Tries the rankings of earlier answers, and asks another oracle only when none of them is good enough.

    A known ranking is good enough if it costs at most ``slack`` more than the last proven minimum can have become:
    since then the minimum has fallen by at most the sum over offers of the largest fall of a cost in the offer. That
    bound, less what rounding can have added to it, is what the answer carries, so certificates stay valid; after much
    larger costs it is worth nothing, and the other oracle is asked.
    """

    def __init__(self, oracle: Oracle, assortments: Assortments, slack: float = 0.0, pool: int = 4096) -> None:
        self.oracle = oracle
        self.assortments = assortments
        self.slack = slack
        self.saved = 0
        self._most = pool
        self._rankings: dict[bytes, int] = {}
        self._vertices = np.zeros((0, assortments.n_coordinates))
        self._orders: list[Answer] = []
        self._asked: tuple[Vec, float] | None = None

    def cheapest(self, costs: Vec) -> Answer:
        """A known ranking with a proven bound, or the other oracle's answer."""
        vector = finite_costs(self.assortments, costs)
        if self._asked is not None and len(self._orders):
            values = self._vertices[: len(self._orders)] @ vector
            best = int(np.argmin(values))
            value = float(values[best])
            least = meet(self._least(vector, *self._asked), value, vector)
            if value <= least + self.slack:
                self.saved += 1
                return Answer(self._orders[best].ranking, value, least)
        answer = self.oracle.cheapest(vector)
        self._asked = (vector.copy(), answer.bound)
        self._remember(answer)
        return answer

    def _least(self, costs: Vec, before: Vec, bound: float) -> float:
        """How low the minimum can have become, from a bound for the costs asked about before; NaN where that overflows.

        No value is at most NaN, so that the other oracle is asked then.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            falls = np.minimum.reduceat(costs - before, self.assortments.indptr[:-1])
            room = 0.25 * ROUNDING * costs.size * float(np.abs(costs).sum() + np.abs(before).sum())
            return bound + float(falls.sum()) - room

    def _remember(self, answer: Answer) -> None:
        key = answer.ranking.tobytes()
        if key in self._rankings or len(self._orders) >= self._most:
            return
        if len(self._orders) == len(self._vertices):
            self._vertices = np.vstack(
                [self._vertices, np.zeros((max(16, len(self._vertices)), self._vertices.shape[1]))]
            )
        answer.ranking.flags.writeable = False
        self._vertices[len(self._orders)] = self.assortments.vertex(answer.ranking)
        self._rankings[key] = len(self._orders)
        self._orders.append(answer)
