"""Microseconds per round and per oracle call, against the paper's integer program in HiGHS, in one run.

Both oracles get the same duals, taken from the late rounds of a real fit (n = 11 items, m = 20 offers); the program is
built once and only its objective changes. Run with ``python benchmarks/rounds.py``.
"""

import time
from collections.abc import Sequence

import numpy as np

from rankstream import distances, learners, oracles, simulate
from rankstream._types import Vec
from rankstream.oracles import Oracle
from rankstream.oracles.milp import MilpOracle
from rankstream.solver import Solver

ROUNDS, LATE, PROGRAMS, SEED = 2000, 1500, 12, 0


def late_duals(solver: Solver, frequencies: Vec) -> tuple[list[Vec], float]:
    """The duals of the last rounds of a fit, and the seconds per round."""
    state, duals = solver.init(), []
    target = solver.assortments.check_frequencies(frequencies)
    solver.step(solver.init(), target)
    start = time.perf_counter()
    for number in range(ROUNDS):
        if number >= LATE:
            duals.append(solver.learner.play(state.learner))
        state = solver.step(state, target)
    return duals, (time.perf_counter() - start) / ROUNDS


def seconds_per_call(oracle: Oracle, duals: Sequence[Vec]) -> tuple[float, list[float]]:
    """The mean time of a call, and the values found."""
    oracle.cheapest(duals[0])
    start = time.perf_counter()
    values = [oracle.cheapest(dual).value for dual in duals]
    return (time.perf_counter() - start) / len(duals), values


def main() -> None:
    """Print the times and the ratio."""
    market = simulate.market(SEED)
    offers = market.assortments
    oracle = oracles.auto(offers)
    solver = Solver(offers, distances.L2(offers), learners.MirrorDescent(10_000), oracle)
    duals, per_round = late_duals(solver, market.frequencies())
    ours, _ = seconds_per_call(oracle, duals)
    picked = duals[:: len(duals) // PROGRAMS]
    _, values = seconds_per_call(oracle, picked)
    program, program_values = seconds_per_call(MilpOracle(offers), picked)
    assert np.allclose(values, program_values, atol=1e-6)
    print(f"{offers}, duals of rounds {LATE} to {ROUNDS}, seed {SEED}")
    print(f"whole round           {1e6 * per_round:12.1f} microseconds")
    print(f"oracle call           {1e6 * ours:12.1f} microseconds")
    print(f"integer program       {1e6 * program:12.1f} microseconds (HiGHS, {len(picked)} calls, same values)")
    print(f"ratio                 {program / ours:12.0f}")


if __name__ == "__main__":
    main()
