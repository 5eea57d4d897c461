"""The cheapest ranking: our time, and how many times longer HiGHS, CP-SAT and Gurobi take, in one run.

Offers are drawn as in the paper, of up to n/2 and at most 8 items; n counts all items, no-choice included. Costs are
Gaussian, or duals from the late rounds of a real fit. Rivals get two threads and a time limit per call, and run in
processes of their own (``RIVALS`` names a Python that has them; its own by default). Run with
``python benchmarks/oracle.py [--quick]``.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from milp_oracle import MilpOracle
from rankstream import Assortments, Solver, distances, learners, oracles, simulate
from rankstream._core.types import Vec
from rankstream.oracles import DenseOracle

LIMIT, CALLS, SEED = 20.0, 3, 0
SIZES = [(8, 10), (8, 20), (8, 50), (11, 10), (11, 20), (11, 50), (11, 200), (16, 10), (16, 20), (16, 50), (16, 200)]
SIZES += [(21, 10), (21, 20), (21, 50), (21, 200)]
WITH_RIVALS = {(8, 10), (8, 20), (8, 50), (11, 10), (11, 20), (11, 50), (16, 20)}
SCALING = range(18, 26)
BUILDING = [(11, 20), (11, 40), (11, 200)]


def market(n: int, m: int, seed: int = SEED) -> tuple[Assortments, Vec]:
    """Offers of n items, no-choice included, and true choice probabilities."""
    random = np.random.default_rng(seed)
    items = [f"item {k}" for k in range(n - 1)]
    offers = Assortments(simulate.random_offers(items, m, random, largest=min(8, n // 2)), [*items, simulate.NOTHING])
    return offers, simulate.mixed_mnl(items, 5, 5.0, random).probabilities(offers)


def late_duals(offers: Assortments, p: Vec, oracle: oracles.Oracle, rounds: int) -> list[Vec]:
    """The duals of the last rounds of a fit."""
    solver = Solver(offers, distances.L2(offers), learners.MirrorDescent(10_000), oracle)
    state = solver.init()
    duals = []
    for number in range(rounds):
        if number >= rounds - 50:
            duals.append(solver.learner.play(state.learner))
        state = solver.step(state, p)
    return duals


def seconds(oracle: oracles.Oracle, costs: list[Vec], least: float = 0.2) -> tuple[float, list[float]]:
    """The mean time of a call over at least this long, and the values."""
    values = [oracle.cheapest(vector).value for vector in costs]
    calls, start = 0, time.perf_counter()
    while time.perf_counter() - start < least:
        for vector in costs:
            oracle.cheapest(vector)
        calls += len(costs)
    return (time.perf_counter() - start) / calls, values


def building(n: int, m: int, markets: int = 20) -> tuple[float, float, int]:
    """The least processor seconds to make an oracle, those of a call, and the median number of unions."""
    made, called, sizes = np.inf, np.inf, []
    for seed in range(markets):
        offers, _ = market(n, m, seed)
        oracle, costs = oracles.LatticeOracle(offers), np.random.default_rng(seed).normal(size=offers.n_coordinates)
        sizes.append(oracle.n_states)
        again = Assortments(offers.offers, offers.items)
        start = time.process_time()
        oracles.auto(again)
        made = min(made, time.process_time() - start)
        for _ in range(5):
            start = time.process_time()
            oracle.cheapest(costs)
            called = min(called, time.process_time() - start)
    return made, called, int(np.median(sizes))


def rival(name: str, offers: Assortments, costs: list[Vec], values: list[float]) -> float:
    """The mean seconds of a rival in a process of its own; NaN where it is not there or refuses."""
    problem = {
        "n": offers.n_items,
        "offers": [[offers.code(item) for item in offer] for offer in offers.offers],
        "costs": [vector.tolist() for vector in costs],
        "limit": LIMIT,
    }
    python = os.environ.get("RIVALS", sys.executable)
    script = str(Path(__file__).with_name("rivals.py"))
    done = subprocess.run(
        [python, script, name], input=json.dumps(problem), capture_output=True, text=True, check=False
    )
    if done.returncode:
        return float("nan")
    found = json.loads(done.stdout)
    for (took, value), ours in zip(found, values, strict=True):
        assert took >= LIMIT or abs(value - ours) <= 1e-5 * (1.0 + abs(ours)), (name, value, ours)
    return float(np.mean([took for took, _ in found]))


def main(quick: bool) -> None:
    """Print one row per size and kind of costs, then the scaling of the dense oracle."""
    print(
        f"{'n':>3}{'m':>5}  {'costs':9}{'ours':>13}{'HiGHS':>12}{'CP-SAT':>12}{'Gurobi':>12}   (times longer than ours)"
    )
    for n, m in SIZES:
        offers, p = market(n, m)
        oracle = oracles.auto(offers)
        late = late_duals(offers, p, oracle, 300 if n > 18 else 1500)
        gaussian = list(np.random.default_rng(SEED).normal(size=(50, offers.n_coordinates)))
        for kind, costs in (("gaussian", gaussian), ("late", late)):
            ours, _ = seconds(oracle, costs)
            ratios = ["", "", ""]
            if (n, m) in WITH_RIVALS and not quick:
                some = costs[:: len(costs) // CALLS][:CALLS]
                values = [oracle.cheapest(vector).value for vector in some]
                program = MilpOracle(offers)
                start = time.perf_counter()
                found = [program.cheapest(vector).value for vector in some] if n < 16 else []
                highs = (time.perf_counter() - start) / CALLS if found else float("nan")
                assert np.allclose(found, values[: len(found)], atol=1e-6)
                times = [highs, rival("cpsat", offers, some, values), rival("gurobi", offers, some, values)]
                ratios = ["-" if np.isnan(t) else f"{t / ours:,.0f}" for t in times]
            print(f"{n:>3}{m:>5}  {kind:9}{1e6 * ours:>10,.1f} us" + "".join(f"{r:>12}" for r in ratios), flush=True)
    print("\nmaking an oracle for a new market, in processor time, and how many of its calls take as long")
    for n, m in BUILDING:
        took, call, states = building(n, m)
        print(f"n = {n}, m = {m}: {1e3 * took:,.2f} ms, {took / call:,.0f} calls ({states:,} unions)", flush=True)
    print("\nall sets of items (dense oracle), m = 200, gaussian costs")
    for n in SCALING:
        offers, _ = market(n, 200)
        ours, _ = seconds(DenseOracle(offers), [np.random.default_rng(SEED).normal(size=offers.n_coordinates)])
        print(f"n = {n}: {1e3 * ours:,.2f} ms", flush=True)


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
