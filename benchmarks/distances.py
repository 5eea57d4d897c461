"""What a round costs with each distance and learner, as a ratio to l2 with mirror descent in the same run.

Run with ``python benchmarks/distances.py``.
"""

import time

from rankstream import Solver, learners, oracles, simulate

ROUNDS, REPEATS, SEED = 1000, 5, 0
NAMES = ["l2", "l1", "l3", "linf", "max-difference", "squared-l2", "kl", "l1.5"]
PLAYERS = [
    "mirror-descent",
    "dual-averaging",
    "strongly-convex-mirror-descent",
    "follow-the-leader",
    "naive-frank-wolfe",
]


def main() -> None:
    """Print one row per distance, one column per learner."""
    market = simulate.market(SEED)
    offers, oracle = market.assortments, oracles.auto(market.assortments)
    target = offers.check_frequencies(market.frequencies())
    solvers = {}
    for name in NAMES:
        for player in PLAYERS:
            if name == "kl" and player not in ("mirror-descent", "dual-averaging"):
                continue
            solvers[name, player] = Solver(offers, *learners.match(name, player, offers, 10_000), oracle)
    times = dict.fromkeys(solvers, float("inf"))
    for _ in range(REPEATS):
        for key, solver in solvers.items():
            state = solver.step(solver.init(), target)
            start = time.perf_counter()
            for _ in range(ROUNDS):
                state = solver.step(state, target)
            times[key] = min(times[key], (time.perf_counter() - start) / ROUNDS)
    base = times["l2", "mirror-descent"]
    print(f"{offers}: a round of l2 with mirror descent takes {1e6 * base:.1f} microseconds; ratios to it:")
    print(f"{'':16}" + "".join(f"{player[:18]:>20}" for player in PLAYERS))
    for name in NAMES:
        row = [times.get((name, player)) for player in PLAYERS]
        print(f"{name:16}" + "".join(f"{'-' if t is None else f'{t / base:.2f}':>20}" for t in row))


if __name__ == "__main__":
    main()
