"""An oracle that counts and times the calls of another."""

import time

from rankstream._core.types import Vec
from rankstream.oracles import Answer, Oracle


class CountingOracle:
    """Counts the calls of another oracle and the seconds they took."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.calls = 0
        self.seconds = 0.0

    def cheapest(self, costs: Vec) -> Answer:
        """Return the other oracle's answer."""
        start = time.perf_counter()
        answer = self.oracle.cheapest(costs)
        self.seconds += time.perf_counter() - start
        self.calls += 1
        return answer
