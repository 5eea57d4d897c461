"""Microseconds per round and per oracle call, against the paper's integer program in HiGHS, in one run.

Rounds are timed one by one through ``Solver.step``, and in compiled chunks on constant and on moving data; a whole
estimate goes to a mean absolute error of 0.001. Those times are the best of several. Both oracles get the same duals,
taken from the late rounds of a real fit (n = 11 items, m = 20 offers); the program is built once and only its objective
changes. Run with ``python benchmarks/rounds.py``.
"""

import time
from collections.abc import Callable, Sequence

import numpy as np

from milp_oracle import MilpOracle
from rankstream import Solver, distances, estimate, learners, oracles, simulate
from rankstream._core.types import Vec
from rankstream.data.counts import Target
from rankstream.oracles import Oracle
from rankstream.solver.runs import CHUNK_ROUNDS, Run

ROUNDS, LATE, PROGRAMS, REPEATS, SEED = 2000, 1500, 12, 50, 0


def late_duals(solver: Solver, frequencies: Vec) -> tuple[list[Vec], float]:
    """The duals of the last rounds of a fit, and the seconds per round."""
    state, duals = solver.init(), []
    target = Target(solver.assortments.check_frequencies(frequencies))
    for number in range(ROUNDS):
        if number >= LATE:
            duals.append(solver.learner.play(state.learner))
        state = solver.step(state, target)
    return duals, least(lambda: [solver.step(state, target) for _ in range(100)]) / 100


def seconds_per_call(oracle: Oracle, duals: Sequence[Vec]) -> tuple[float, list[float]]:
    """The mean time of a call, and the values."""
    oracle.cheapest(duals[0])
    start = time.perf_counter()
    values = [oracle.cheapest(dual).value for dual in duals]
    return (time.perf_counter() - start) / len(duals), values


def least(play: Callable[[], object]) -> float:
    """The least seconds of several calls, after one that is not timed."""
    times = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        play()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def chunk_rounds(solver: Solver, frequencies: Vec, step: Vec) -> tuple[float, float]:
    """The seconds per compiled round on constant data, and on data that move towards them by this step."""
    still, moving = Run(solver, tolerance=0.0), Run(solver, tolerance=0.0)
    rows = frequencies + step / np.arange(1.0, CHUNK_ROUNDS + 1.0)[:, np.newaxis]
    constant = least(lambda: still.advance_many(Target(frequencies), CHUNK_ROUNDS))
    return constant / CHUNK_ROUNDS, least(lambda: moving.advance_block(rows)) / CHUNK_ROUNDS


def main() -> None:
    """Print the times and the ratio."""
    market = simulate.market(SEED)
    offers = market.assortments
    oracle = oracles.auto(offers)
    solver = Solver(offers, distances.L2(offers), learners.MirrorDescent(10_000), oracle)
    duals, per_round = late_duals(solver, market.frequencies())
    p = market.frequencies()
    uniform = 1.0 / np.diff(offers.indptr)[offers.owner]
    constant, moving = chunk_rounds(solver, p, uniform - p)
    whole = least(lambda: estimate(offers, p, method="primal-dual"))
    ours, _ = seconds_per_call(oracle, duals)
    picked = duals[:: len(duals) // PROGRAMS]
    _, values = seconds_per_call(oracle, picked)
    program, program_values = seconds_per_call(MilpOracle(offers), picked)
    assert np.allclose(values, program_values, atol=1e-6)
    print(f"{offers}, duals of rounds {LATE} to {ROUNDS}, seed {SEED}")
    print(f"whole round           {1e6 * per_round:12.1f} microseconds")
    print(f"  in a chunk          {1e6 * constant:12.1f} microseconds")
    print(f"  in a moving chunk   {1e6 * moving:12.1f} microseconds")
    rounds = estimate(offers, p, method="primal-dual").rounds
    print(f"whole estimate        {1e6 * whole:12.1f} microseconds ({rounds} rounds)")
    print(f"oracle call           {1e6 * ours:12.1f} microseconds")
    print(f"integer program       {1e6 * program:12.1f} microseconds (HiGHS, {len(picked)} calls, same values)")
    print(f"ratio                 {program / ours:12.0f}")


if __name__ == "__main__":
    main()
