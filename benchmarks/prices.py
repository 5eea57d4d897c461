"""The oracle for price levels: seconds to make it and milliseconds a call, beside HiGHS with precedence rows.

Usage: python benchmarks/prices.py [--quick] [--offers 200] [--limit 60]

Offers are drawn: each item is in one with probability 0.6, at a level drawn uniformly, and "nothing" is in all. Costs
are normal. All times are of this run; a call is the least of some. HiGHS solves the integer program of the smallest
market once, with the rows of the order, and is stopped after ``--limit`` seconds: the ratio is then "at least".
"""

import argparse
from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np

from milp_oracle import MilpOracle
from rankstream import Assortments, PriceLevels, oracles
from rankstream._core.types import Label, Vec

SIZES = ((8, 3), (12, 2), (10, 3), (10, 4))
AIMS = {(8, 3): 3.0, (10, 3): 30.0, (12, 2): 20.0, (10, 4): 400.0}


def market(n_items: int, n_levels: int, n_offers: int, seed: int = 1) -> tuple[Assortments, Vec]:
    """Offers of items at levels, and costs."""
    draw = np.random.default_rng(seed)
    levels = PriceLevels({f"item {k}": [1.0 + level for level in range(n_levels)] for k in range(n_items)})
    offers: dict[tuple[Label, ...], None] = {}
    while len(offers) < n_offers:
        shown = np.flatnonzero(draw.random(n_items) < 0.6)
        prices = [(f"item {k}", 1.0 + draw.integers(n_levels)) for k in shown]
        offers[levels.offer([*prices, ("nothing", None)])] = None
    assortments = Assortments(offers, order=levels.order)
    return assortments, draw.normal(size=assortments.n_coordinates)


def seconds(call: Callable[[], object], times: int = 1) -> float:
    """The least time of some calls."""
    least = np.inf
    for _ in range(times):
        began = perf_counter()
        call()
        least = min(least, perf_counter() - began)
    return float(least)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="without HiGHS")
    parser.add_argument("--offers", type=int, default=200)
    parser.add_argument("--limit", type=float, default=60.0)
    options = parser.parse_args()
    small = market(3, 2, 5)
    oracles.ChainOracle(small[0]).cheapest(small[1])  # compiled before anything is timed
    print("items x levels    states  offers  set-up s  call ms  aim ms  columns ms")
    first = 0.0
    for size in SIZES:
        offers, costs = market(*size, options.offers)
        made = seconds(partial(oracles.auto, offers))
        oracle = oracles.ChainOracle(offers)
        call = seconds(partial(oracle.cheapest, costs), 7)
        columns = seconds(partial(oracle.cheapest_by_first, costs), 3)
        first = first or call
        times = f"{made:8.2f} {1e3 * call:8.2f} {AIMS[size]:7.0f} {1e3 * columns:11.2f}"
        print(f"{size[0]:5} x {size[1]:<6} {oracle.n_states:9,} {offers.n_offers:7}  {times}", flush=True)
    if not options.quick:
        referee(options.offers, options.limit, first)


def referee(n_offers: int, limit: float, call: float) -> None:
    """HiGHS on the smallest market: build once, solve once."""
    offers, costs = market(*SIZES[0], n_offers)
    began = perf_counter()
    milp = MilpOracle(offers)
    built = perf_counter() - began
    milp._highs.setOptionValue("time_limit", limit)
    began = perf_counter()
    answer = milp.cheapest(costs)
    took = perf_counter() - began
    exact = oracles.ChainOracle(offers).cheapest(costs)
    stopped = not answer.exact
    end = "stopped" if stopped else "solved"
    print(f"HiGHS at {SIZES[0][0]} x {SIZES[0][1]}: built in {built:.1f} s, {end} after {took:.1f} s")
    print(f"its cost {answer.value:.6f}, bound {answer.bound:.6f}; the table's cost {exact.value:.6f}")
    print(f"one call of the table is {'at least ' if stopped else ''}{took / call:,.0f} times faster")


if __name__ == "__main__":
    main()
