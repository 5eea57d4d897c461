"""How long the best offer takes to prove: all offers at once and branch and bound, against two MILPs in HiGHS.

Instances: K random rankings of n items and "nothing", at a random place (or, for "short", after about seven items),
weights from a Dirichlet, margins uniform, at most 10 items. Times are those of one processor, in one run; a MILP that
is not done within the limit gives a lower bound of the ratio (">"), which is the quicker of our engines against the
quicker MILP. Run with ``python benchmarks/decide.py [limit seconds]``.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
from time import process_time

import numpy as np

from rankstream import RankingModel
from rankstream._core.watch import Deadline
from rankstream.decide.branch import Branching
from rankstream.decide.lists import make_lists
from rankstream.decide.problem import OfferProblem, make_problem
from rankstream.decide.referee import Form, best_by_milp
from rankstream.decide.tables import scan, table_of

CASES = ((11, 50), (11, 1000), (16, 50), (16, 1000), (20, 50), (20, 200), (20, 1000), (24, 50), (24, 1000), (30, 900),
         (50, 200), (50, 1000), (100, 250), (100, 1000))  # fmt: skip
FORMS: dict[Form, tuple[int, int]] = {"bertsimas-misic": (18, 15_000), "exclusion-set": (14, 2_000)}
"""Widths of columns, and the most entries of lists for which a MILP is tried: larger ones take minutes to begin."""


def instance(n_items: int, n_rankings: int, short: bool, seed: int = 1) -> OfferProblem:
    """A random ranking model with margins, and at most ten items in the offer."""
    random = np.random.default_rng(seed)
    orders = np.array([random.permutation(n_items + 1) for _ in range(n_rankings)])
    if short:
        for row in orders:
            own = row[row < n_items]
            place = min(n_items, int(random.geometric(0.15)))
            row[:] = np.concatenate([own[:place], [n_items], own[place:]])
    items = (*range(n_items), "nothing")
    model = RankingModel.from_codes(items, orders, random.dirichlet(np.ones(n_rankings)), n_items)
    return make_problem(model, dict(enumerate(random.uniform(size=n_items))), at_most=10)


def timed_table(problem: OfferProblem) -> tuple[float, float]:
    """Seconds for all offers at once, and the best value."""
    began = process_time()
    value = scan(table_of(problem), problem).values[0]
    return process_time() - began, value


def timed_search(problem: OfferProblem, limit: float) -> tuple[float, float, bool, int]:
    """Seconds for branch and bound, the best value, whether it is proven, and how many parts it took."""
    began = process_time()
    search = Branching(make_lists(problem.model, problem), problem, 1, Deadline(limit, clock=process_time))
    proven = search.run()
    return process_time() - began, max(search.found.values()), proven, search.nodes


def timed_milp(problem: OfferProblem, form: Form, limit: float) -> tuple[float, float, bool]:
    """Seconds for a MILP with the building of it, its value, and whether it is optimal."""
    began = process_time()
    found = best_by_milp(problem.model, problem, form, limit)
    return process_time() - began, found.value, found.optimal


def show(seconds: float) -> str:
    """A time that reads well from microseconds to minutes."""
    return f"{1000 * seconds:.2g} ms" if seconds < 1.0 else f"{seconds:.3g} s"


def main(limit: float) -> None:
    """Print a row per instance."""
    warm = instance(6, 20, False)
    timed_table(warm), timed_search(warm, 10.0)
    heads = {"all offers": 12, "branching": 12, "parts": 8, "Bertsimas-Misic": 18, "exclusion": 14, "ratio": 10}
    print(f"{'items x rankings':18}" + "".join(f"{head:>{width}}" for head, width in heads.items()), flush=True)
    for short in (False, True):
        print("short lists:" if short else "long lists:")
        for n_items, n_rankings in CASES:
            problem = instance(n_items, n_rankings, short)
            table = timed_table(problem) if n_items <= 24 else None
            spent, value, proven, parts = timed_search(problem, 120.0)
            cells = f"{n_items} x {n_rankings:<13}{show(table[0]) if table else '-':>12}"
            cells += f"{show(spent) if proven else 'not proven':>12}{parts:>8}"
            if table is not None:
                assert abs(table[1] - value) < 1e-7
            best, ratios = min(spent if proven else np.inf, table[0] if table else np.inf), []
            size = make_lists(problem.model, problem).item.size
            for form, (width, most) in FORMS.items():
                if size > most:
                    cells += f"{'-':>{width}}"
                    continue
                seconds, found, optimal = timed_milp(problem, form, limit)
                assert not optimal or abs(found - value) < 1e-5
                cells += f"{('' if optimal else '> ') + show(seconds):>{width}}"
                ratios.append((seconds / best, optimal))
            if ratios and np.isfinite(best):
                least, optimal = min(ratios)
                cells += f"{('' if optimal else '> ') + format(least, ',.0f'):>10}"
            print(cells, flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
