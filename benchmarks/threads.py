"""What threads bring: the same calls on one thread and on several, in turns within one run, and the ratio.

Every row is the best of several calls per number of threads, taken in turns for ``--seconds``; answers are compared bit
for bit. The first row is a loop that shares nothing, cut in equal parts: what the machine had to give while it was
measured. On a machine that does other things as well, no row can be expected to reach the number of threads, and the
first row says so. Run with ``python benchmarks/threads.py [--threads 1 2] [--items 20 22 24] [--seconds 5]``; with
more cores, ``--threads 1 2 4 8 16 --items 24 26 28 30`` shows how far it goes (8.6 GB of memory for 30 items).

``--plan 2 4 8 16`` measures no threads at all: it adds up the processor time of every part, run one after the other,
and prints the ratio for that many threads if all were free, woken at no cost, and did not share memory or caches. That
is the most to expect, and does not depend on what else the machine does.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numba
import numpy as np
from numba.core import config

from oracle import market
from rankstream._core.compilation import released
from rankstream._core.threads import Crew, crew
from rankstream._core.types import Vec
from rankstream.models.entropy import soft_lattice
from rankstream.models.entropy.ranking_laws import markov_chain, mix, plackett_luce
from rankstream.models.entropy.soft_lattice import SoftLattice
from rankstream.oracles import DenseOracle
from rankstream.oracles.tables import dense

SOFT = [(16, 100), (18, 100)]
LOOP = 4_000_000
CORES = int(getattr(config, "NUMBA_NUM_THREADS", 1))


@released
def spin(turns: int) -> float:
    """Work without memory: a sum of sines."""
    total = 0.0
    for turn in range(turns):
        total += np.sin(float(turn))
    return total


def loop() -> Vec:
    """Equal parts of one loop, as many as there are threads."""
    with crew() as threads:
        share = LOOP // threads.size
        sums = np.zeros(threads.size)

        def add(task: int) -> None:
            sums[task] = spin(share)

        threads.run(add, threads.size)
    return sums[:0]


def table(n: int) -> Callable[[], Vec]:
    """A call of the dense oracle for n items and 200 offers, with Gaussian costs; its ranking and value."""
    offers, _ = market(n, 200)
    oracle, costs = DenseOracle(offers), np.random.default_rng(0).normal(size=offers.n_coordinates)

    def call() -> Vec:
        answer = oracle.cheapest(costs)
        return np.append(answer.ranking, answer.value)

    return call


def soft(n: int, m: int) -> tuple[str, Callable[[], Vec]]:
    """An evaluation of the maximum-entropy program under a mixture of eight classes and a chain."""
    offers, _ = market(n, m)
    random = np.random.default_rng(0)
    moves = random.uniform(0.1, 1.0, (n, n))
    laws = [plackett_luce(offers.items, random.uniform(0.1, 1.0, n)) for _ in range(8)]
    laws.append(markov_chain(offers.items, random.dirichlet(np.ones(n)), moves / moves.sum(axis=1, keepdims=True)))
    lattice = SoftLattice(offers, mix(laws, [1.0 / 9.0] * 9))
    duals = random.normal(size=offers.n_coordinates)

    def call() -> Vec:
        value, chosen = lattice.evaluate(duals)
        return np.append(chosen, value)

    return f"soft program, {n} items, {lattice.states.size:,} states", call


def measure(name: str, call: Callable[[], Vec], threads: list[int], seconds: float) -> None:
    """Call in turns with each number of threads, and print the best times and their ratios to the first."""
    best, seen, answers = dict.fromkeys(threads, np.inf), 0, {}
    start = time.perf_counter()
    while seen < 3 or time.perf_counter() - start < seconds:
        for number in threads[:: -1 if seen % 2 else 1]:  # there and back: nobody is always the one who is interrupted
            numba.set_num_threads(number)
            began = time.perf_counter()
            answers[number] = call()
            best[number] = min(best[number], time.perf_counter() - began)
        seen += 1
        assert all(np.array_equal(answers[number], answers[threads[0]]) for number in threads), name
    times = "".join(f"{1e3 * best[number]:>12,.2f}" for number in threads)
    ratios = "".join(f"{best[threads[0]] / best[number]:>8.2f}" for number in threads[1:])
    print(f"{name:<45}{seen:>6}{times}{ratios}", flush=True)


class Planned(Crew):
    """Runs all tasks itself, and adds up when that many free threads would have done them."""

    def __init__(self, size: int) -> None:
        super().__init__(1, None)
        self.size, self.saved = size, 0.0

    def run(self, work: Callable[[int], None], count: int) -> None:
        """Give every task to the thread that is free first."""
        ends, total = [0.0] * self.size, 0.0
        for task in range(count):
            began = time.thread_time()
            work(task)
            took = time.thread_time() - began
            total += took
            ends[ends.index(min(ends))] += took
        self.saved += total - max(ends)


def plan(name: str, call: Callable[[], Vec], threads: list[int], seconds: float) -> None:
    """Print the least processor time of a call on one thread, and the ratios if other threads were free."""
    best = dict.fromkeys([1, *threads], np.inf)
    start, seen = time.perf_counter(), 0
    while seen < 3 or time.perf_counter() - start < seconds:
        for number in best:
            planned = Planned(number)

            @contextmanager
            def lent(wanted: bool = True, planned: Planned = planned) -> Iterator[Crew]:
                yield planned if wanted else Crew(1, None)

            with patch.object(dense, "crew", lent), patch.object(soft_lattice, "crew", lent):
                began = time.thread_time()
                call()
                best[number] = min(best[number], time.thread_time() - began - planned.saved)
        seen += 1
    ratios = "".join(f"{best[1] / best[number]:>8.2f}" for number in threads)
    print(f"{name:<45}{seen:>6}{1e3 * best[1]:>12,.2f}{ratios}", flush=True)


def main() -> None:
    """Print one row per piece of work."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, nargs="+", default=[1, CORES])
    parser.add_argument("--items", type=int, nargs="+", default=[20, 22, 24])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--plan", type=int, nargs="+", default=[])
    given = parser.parse_args()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"{CORES} cores may be used; load before the run: {load:.1f}; best of n, in ms")
    shown = [1] if given.plan else given.threads
    heads = "".join(f"{f'{number} threads':>12}" for number in shown)
    print(f"{'':<45}{'n':>6}{heads}" + "".join(f"{f'x {number}':>8}" for number in given.plan or given.threads[1:]))
    rows = [(f"dense oracle, {n} items", table(n)) for n in given.items] + [soft(n, m) for n, m in SOFT]
    if not given.plan:
        measure("a loop that shares nothing", loop, given.threads, given.seconds)
    for name, call in rows:
        if given.plan:
            plan(name, call, given.plan, given.seconds)
        else:
            measure(name, call, given.threads, given.seconds)


if __name__ == "__main__":
    main()
