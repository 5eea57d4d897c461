"""How long the best offer takes to prove: all offers at once and branch and bound, against two MILPs in HiGHS.

Instances: K random rankings of n items and "nothing", at a random place (or, for "short", after about seven items),
weights from a Dirichlet, margins uniform, at most 10 items. One instance per row (seed 1); the steps of the search and
the costs by which ``best_offer`` picks an engine were tuned on other instances (seeds 101 to 103). Times are those of
one processor: the best of three repeats for our engines, whose milliseconds a busy machine blurs, one run for a MILP,
with the building of it. The ratio is that of the MILPs' quicker one to the engine that ``best_offer`` picks (with a
star); one that is not solved within the limit, which HiGHS reads off the wall clock, gives a lower bound (">") by the
processor time it had until then.

"Items at levels" are rankings of n items at L price levels each and "nothing", the levels of an item in order, each
item with a cost between 0 and 0.9 and prices from 1 to L; an offer has an item at one level or not at all, and any
number of items.

Run with ``python benchmarks/decide.py [limit seconds] [prices]``; with "prices", only that part is run.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
from time import process_time

import numpy as np

from offer_programs import Form, best_by_milp
from rankstream import PriceLevels, RankingModel
from rankstream._core.watch import Deadline
from rankstream.decide.engines.branch import Branching
from rankstream.decide.engines.lists import make_lists
from rankstream.decide.engines.selection import predicted_search
from rankstream.decide.engines.tables import predicted_seconds, scan, table_of
from rankstream.decide.problem.offers import OfferProblem, make_problem

CASES = ((11, 50), (11, 1000), (16, 50), (16, 1000), (20, 50), (20, 200), (20, 1000), (24, 50), (24, 1000), (30, 900),
         (50, 200), (50, 1000), (100, 250), (100, 1000))  # fmt: skip
FORMS: dict[Form, tuple[int, int]] = {"bertsimas-misic": (24, 100_000), "exclusion-set": (24, 2_000)}
"""Widths of columns, and the most entries of lists for which a MILP is tried: larger ones take minutes to begin."""
PRICED = ((8, 3, 200), (8, 3, 1000), (12, 2, 200), (10, 3, 200), (10, 3, 1000), (10, 4, 200), (15, 3, 200),
          (30, 3, 200))  # fmt: skip
REPEATS = 3


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


def priced_instance(n_items: int, n_levels: int, n_rankings: int, seed: int = 1) -> OfferProblem:
    """A random ranking model of items at price levels, with costs."""
    random = np.random.default_rng(seed)
    levels = PriceLevels({f"item {item}": [1.0 + level for level in range(n_levels)] for item in range(n_items)})
    items = (*levels.labels, "nothing")
    orders = np.array([random.permutation(len(items)) for _ in range(n_rankings)])
    for row in orders:
        for first in range(0, n_items * n_levels, n_levels):
            own = (row >= first) & (row < first + n_levels)
            row[own] = np.arange(first, first + n_levels)
    model = RankingModel.from_codes(items, orders, random.dirichlet(np.ones(n_rankings)), len(items) - 1)
    return make_problem(model, None, costs={item: random.uniform(0.0, 0.9) for item in levels.items})


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
    return f"{1000 * seconds:.{2 if seconds < 0.1 else 3}g} ms" if seconds < 1.0 else f"{seconds:.3g} s"


def row(problem: OfferProblem, limit: float) -> str:
    """The cells of an instance."""
    cells, spent = "", {"table": np.inf, "search": np.inf}
    if np.isfinite(predicted_seconds(problem)):
        spent["table"], value = min(timed_table(problem) for _ in range(REPEATS))
    runs = [timed_search(problem, 120.0) for _ in range(REPEATS)]
    spent["search"], best, proven, parts = min(runs)
    assert np.isinf(spent["table"]) or abs(value - best) < 1e-7
    pick = "table" if predicted_seconds(problem) <= predicted_search(problem, 1) else "search"
    for name in ("table", "search"):
        text = "-" if np.isinf(spent[name]) else show(spent[name]) if name == "table" or proven else "not proven"
        cells += f"{text + ('*' if name == pick else ' '):>12}"
    cells += f"{parts:>8}"
    ratios = []
    for form, (width, most) in FORMS.items():
        if make_lists(problem.model, problem).item.size > most:
            cells += f"{'-':>{width}}"
            continue
        seconds, found, optimal = timed_milp(problem, form, limit)
        assert not optimal or abs(found - best) < 1e-5
        cells += f"{('' if optimal else 'not solved in ') + show(seconds):>{width}}"
        ratios.append((seconds / spent[pick], optimal))
    if ratios and (proven or pick == "table"):
        least, optimal = min(ratios)
        cells += f"{('' if optimal else '> ') + format(least, ',.0f' if least >= 10 else '.1f'):>10}"
    return cells


def main(limit: float, prices_only: bool) -> None:
    """Print a row per instance."""
    for warm in (instance(6, 20, False), priced_instance(3, 2, 20)):
        timed_table(warm), timed_search(warm, 10.0)
    heads = {"all offers": 12, "branching": 12, "parts": 8, "Bertsimas-Misic": 24, "exclusion": 24, "ratio": 10}
    print(f"{'items x rankings':18}" + "".join(f"{head:>{width}}" for head, width in heads.items()), flush=True)
    for short in () if prices_only else (False, True):
        print("short lists:" if short else "long lists:")
        for n_items, n_rankings in CASES:
            cells = row(instance(n_items, n_rankings, short), limit)
            print(f"{f'{n_items} x {n_rankings}':18}{cells}", flush=True)
    print("items at levels:")
    for n_items, n_levels, n_rankings in PRICED:
        cells = row(priced_instance(n_items, n_levels, n_rankings), limit)
        print(f"{f'{n_items} x {n_levels} x {n_rankings}':18}{cells}", flush=True)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "prices"]
    main(float(words[0]) if words else 60.0, "prices" in sys.argv)
