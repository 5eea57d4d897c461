"""The fully corrective engine against mirror descent: milliseconds, oracle calls and rankings, in one run.

Both fit the same frequencies, exact or those of 100 sampled choices per offer, first to a mean absolute error of 0.001
(on noisy data, where no model may come so near, to 0.001 above the error of the nearest one), then to a certified gap
of 1e-6. Mirror descent cannot reach that gap in any reasonable time: it stops after CAP rounds, and its gap is shown.
The nearest model in l1 is found beside them: on noisy data by linear programs, which exact data do not need.
Times are the best of several, compilation left out. Run with ``python benchmarks/corrective.py``.
"""

import time
from collections.abc import Callable
from typing import Literal

from rankstream import Assortments, Estimate, RankingModel, estimate, methods, oracles, simulate
from rankstream._core.types import Vec
from rankstream._core.watch import Deadline
from rankstream.columns.corrective import fit_nearest
from rankstream.oracles import Oracle

SIZES = ((10, 20), (10, 50), (10, 100), (15, 100))  # items without "nothing", offers
SEED, CAP, PER_OFFER = 1, 5000, 100
MAE, GAP = 1e-3, 1e-6
MOST_SECONDS = 20.0


Fit = Estimate[RankingModel]


def best_of(times: int, run: Callable[[], Fit]) -> tuple[float, Fit]:
    """The least seconds, and the result."""
    least = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        found = run()
        least = min(least, time.perf_counter() - start)
    return least, found


def show(label: str, seconds: float, fit: Fit) -> None:
    """One line of the table."""
    mae, gap, size = fit.history.mae[-1], fit.certificate.gap, len(fit.model.weights)
    end = "" if fit.converged else "  (not reached)"
    print(
        f"  {label:34}{1e3 * seconds:9.1f} ms{fit.rounds:7} calls{size:6} rankings   MAE {mae:.1e}  gap {gap:.1e}{end}"
    )


def compare(offers: Assortments, data: Vec, oracle: Oracle) -> None:
    """Both engines on the same data with the same oracle."""

    def corrective(tolerance: float, stop: Literal["mae", "gap"]) -> Fit:
        return fit_nearest(offers, data, oracle=oracle, tolerance=tolerance, stop=stop)

    def descent(mae: float, gap: float | None = None) -> Fit:
        every = None if gap is None else CAP
        method = methods.PrimalDual(oracle=oracle, tolerance_mae=mae, gap=gap, max_rounds=CAP, certify_every=every)
        return estimate(offers, data, method=method)

    corrective(GAP, "gap")
    descent(0.5)
    exact_time, exact = best_of(7, lambda: corrective(GAP, "gap"))
    error = float(exact.history.mae[-1]) + MAE
    rough_time, rough = best_of(7, lambda: corrective(error, "mae"))
    slow_time, slow = best_of(2, lambda: descent(error))
    cap_time, cap = best_of(1, lambda: descent(MAE, GAP))
    show(f"to MAE {error:.4f}: fully corrective", rough_time, rough)
    show(f"to MAE {error:.4f}: mirror descent", slow_time, slow)
    show("to gap 1e-6: fully corrective", exact_time, exact)
    show("to gap 1e-6: mirror descent", cap_time, cap)
    fewer = len(rough.model.weights) / len(slow.model.weights)
    print(f"  to the same MAE: {slow_time / rough_time:.1f} times faster, with {fewer:.2f} of the rankings")
    beside(offers, data, exact_time)


def beside(offers: Assortments, data: Vec, exact_time: float) -> None:
    """The same data in l1."""
    start = time.perf_counter()
    other = fit_nearest(offers, data, "l1", tolerance=1e-7, watch=Deadline(MOST_SECONDS))
    other_time = time.perf_counter() - start
    end = "" if other.converged else f"  (stopped after {MOST_SECONDS:g} s)"
    print(
        f"  {'nearest in l1, proven':34}{1e3 * other_time:9.1f} ms{other.rounds:7} calls"
        f"{len(other.model.weights):6} rankings   gap {other.certificate.gap:.1e}{end}: "
        f"{other_time / exact_time:.0f} times as long"
    )


def main() -> None:
    """Print the table."""
    for n_items, n_offers in SIZES:
        market = simulate.market(SEED, n_items=n_items, n_offers=n_offers)
        oracle = oracles.auto(market.assortments)
        noisy = next(market.stream(first=PER_OFFER * n_offers)).target().frequencies
        for kind, data in (("noisy", noisy), ("exact", market.frequencies())):
            print(f"n = {n_items + 1}, m = {n_offers}, {kind} data, seed {SEED}")
            compare(market.assortments, data, oracle)


if __name__ == "__main__":
    main()
