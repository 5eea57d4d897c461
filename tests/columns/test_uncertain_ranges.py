"""Ranges where offers are known in part: beside all sets between, all rankings of four items, and one program."""

from functools import cache
from itertools import chain, combinations, permutations
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog

import rankstream as rs
from rankstream.columns.uncertain import average_bounds, bound_shares
from rankstream.data.uncertain import UncertainCounts
from strategies import examples

ITEMS = ("tea", "pie", "cake", "no")
RANKINGS = list(permutations(ITEMS))
Offer = frozenset[Any]
BOUNDED = {"maxiter": 100_000}  # pivots: HiGHS has no limit of its own, and a degenerate program may cycle


@cache
def takers(offer: Offer, item: Any) -> Any:
    """For every ranking, whether it takes the item from the offer."""
    return np.array([next(one for one in ranking if one in offer) == item for ranking in RANKINGS], dtype=float)


def share(weights: Any, offer: Offer, item: Any) -> float:
    """The share of an item by weights of all rankings."""
    return float(weights @ takers(offer, item))


def between(smallest: Offer, largest: Offer) -> list[Offer]:
    rest = sorted(largest - smallest)
    return [smallest | set(some) for some in chain(*(combinations(rest, k) for k in range(len(rest) + 1)))]


subsets = st.sets(st.sampled_from(ITEMS), min_size=1).map(frozenset)
seeds = st.integers(0, 999)


@pytest.mark.quick
@examples(60)
@given(subsets, subsets, seeds)
def test_shares_lie_between_those_of_the_largest_and_the_smallest_set(one: Offer, other: Offer, seed: int) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.full(24, 0.3))
    smallest, largest = one, one | other
    for offer in between(smallest, largest):
        for item in offer:
            assert share(weights, offer, item) <= share(weights, smallest | {item}, item) + 1e-12
            if item in smallest:
                assert share(weights, largest, item) <= share(weights, offer, item) + 1e-12


def counts_of(data: Any) -> UncertainCounts:
    counts = UncertainCounts(ITEMS)
    for largest, smallest, slots in data:
        counts.observe_period(smallest & largest, sorted(largest), [
            {item: count for item, count in slot.items() if item in largest} for slot in slots
        ])  # fmt: skip
    return counts


slots = st.lists(st.dictionaries(st.sampled_from(ITEMS), st.integers(1, 30), min_size=2), min_size=1, max_size=3)
periods = st.lists(
    st.tuples(st.sets(st.sampled_from(ITEMS), min_size=3).map(frozenset), subsets, slots), min_size=1, max_size=4
)


def slow_rows(counts: UncertainCounts) -> list[tuple[float, float, int, Any]]:
    """Frequency, number, side and what each ranking adds, of every inequality: choice by choice."""
    found = []
    for largest in {frozenset(period.largest): None for period in counts.periods}:
        pool = [
            (slot.smallest, item, count)
            for period in counts.periods
            if frozenset(period.largest) == largest
            for slot in period.slots
            for item, count in slot.chosen.items()
        ]
        total = sum(count for *_, count in pool)
        for item in sorted(largest, key=str) if total else ():
            frequency = sum(count for _, one, count in pool if one == item) / total
            least = takers(largest, item) * sum(n for s, _, n in pool if item in s) / total
            most = sum(n * takers(s | {item}, item) for s, _, n in pool) / total
            found += [(frequency, total, 1, least), (frequency, total, -1, most)]
    return found


def slow_range(rows: list[Any], slack: Any, radius: float, offer: Offer, item: Any) -> tuple[float, float] | None:
    """The ends by one linear program over all rankings; ``slack`` is by row, or None for an l1 radius of all."""
    size = len(rows)
    signs = np.array([side for _, _, side, _ in rows])
    matrix = signs[:, np.newaxis] * np.array([row for *_, row in rows])
    right = signs * np.array([frequency for frequency, *_ in rows])
    costs = takers(offer, item)
    whole = np.hstack((matrix, -np.eye(size)))  # what is broken
    limits = [(0, 1)] * 24 + ([(0, None)] * size if slack is None else [(0, float(one)) for one in slack])
    if slack is None:
        whole, right = np.vstack((whole, np.append(np.zeros(24), np.ones(size)))), np.append(right, radius)
    total = np.append(np.ones(24), np.zeros(size))[np.newaxis]
    ends = []
    for sign in (1.0, -1.0):
        goal = np.append(sign * costs, np.zeros(size))
        found = linprog(goal, A_ub=whole, b_ub=right, A_eq=total, b_eq=[1.0], bounds=limits, options=BOUNDED)
        assert found.status in (0, 2), found.message  # solved, or infeasible
        if found.status == 2:
            return None
        ends.append(sign * found.fun)
    return ends[0], ends[1]


@examples(25)
@given(periods, subsets, st.data(), st.sampled_from(["confidence", "l1", "linf"]))
def test_ranges_are_those_of_a_program_over_all_rankings(data: Any, offer: Offer, draw: Any, region: Any) -> None:
    counts = counts_of(data)
    if not counts.observations:
        return
    item, tolerance = draw.draw(st.sampled_from(sorted(offer))), 0.4
    rows = slow_rows(counts)
    slack: Any = np.full(len(rows), tolerance)
    if region == "confidence":
        frequencies, totals, sides = (np.array([row[k] for row in rows]) for k in range(3))
        low, high = average_bounds(frequencies, totals, 0.1 / len(rows))
        slack = np.where(sides > 0, high - frequencies, frequencies - low)
    expected = slow_range(rows, None if region == "l1" else slack, tolerance, offer, item)
    found = rs.probability_range(counts, sorted(offer), item, tolerance, region=region, confidence=0.9)
    assert found.feasible == (expected is not None)
    if expected is not None:
        assert (found.low, found.high) == pytest.approx(expected, abs=2e-6)


@examples(25)
@given(st.lists(st.tuples(subsets, subsets, subsets, seeds), min_size=1, max_size=3), seeds, subsets)
def test_ranges_contain_the_truth_whatever_was_on_the_shelf(data: Any, seed: int, asked: Offer) -> None:
    weights, many = np.random.default_rng(seed).dirichlet(np.full(24, 0.3)), 10**6
    counts = UncertainCounts(ITEMS)
    for smallest, middle, more, number in data:
        largest = smallest | middle | more
        sets = sorted(between(smallest, largest), key=lambda offer: -len(offer))
        shown = sets[number % len(sets)]
        later = [one for one in sets if one <= shown]
        chosen = [{item: round(many * share(weights, offer, item)) for item in offer} for offer in (shown, later[-1])]
        counts.observe_period(smallest, sorted(largest), chosen)
    for item in asked:
        found = rs.probability_range(counts, sorted(asked), item, 1e-5, region="linf")
        assert found.feasible
        assert found.low - 1e-6 <= share(weights, asked, item) <= found.high + 1e-6


def test_certain_offers_give_the_ranges_of_plain_counts() -> None:
    counts = rs.ChoiceCounts(rs.Assortments([("tea", "no"), ("pie", "no")], ITEMS), [50, 50, 25, 75])
    seen = UncertainCounts(ITEMS)
    seen.observe_period(("tea", "no"), ("tea", "no"), [{"tea": 50, "no": 50}])
    seen.observe_period(("pie", "no"), ("pie", "no"), [{"pie": 25, "no": 75}])
    menu = ("tea", "pie", "no")
    margins: dict[Any, float] = {"tea": 2.0, "pie": 4.0}
    plain, found = (rs.revenue_range(data, menu, margins) for data in (counts, seen))
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))
    assert found.predicted == pytest.approx(plain.predicted, abs=1.0)


@pytest.mark.parametrize(("region", "far"), [("l1", 0.25), ("linf", 0.125), ("confidence", None)])
def test_a_share_is_bounded_from_both_sides_and_each_bound_counts_what_breaks_it(
    region: Any, far: float | None
) -> None:
    seen = UncertainCounts(ITEMS)
    seen.observe_period(("tea", "no"), ("tea", "pie", "no"), [{"tea": 10, "pie": 10, "no": 20}])
    found, ball = bound_shares(seen, region, 0.9)
    assert ball.sides is not None
    assert ball.sides.tolist() == [1, -1] * 3
    assert sorted(found.frequencies) == [0.25, 0.25, 0.25, 0.25, 0.5, 0.5]
    residual = np.array([0.125, -0.125, -0.125, 0.125, 0.0, 0.0])  # two bounds are broken, two are kept
    if far is not None:
        assert ball.distance(residual) == ball.distance(-residual) == far
    else:
        low, high = average_bounds(np.array([0.25]), np.array([40.0]), 0.1 / 6)
        rare = found.frequencies < 0.5
        assert ball.budgets[rare & (ball.sides < 0)] == pytest.approx(0.25 - low[0])
        assert ball.budgets[rare & (ball.sides > 0)] == pytest.approx(high[0] - 0.25)


def test_averages_of_probabilities_that_depend_on_the_past_stay_within_bounds() -> None:
    random, failures = np.random.default_rng(0), 0
    for _ in range(300):
        chances, happened = list[float](), list[bool]()
        for number in range(200):
            chances.append(0.4 if sum(happened) <= 0.2 * number else 0.05)
            happened.append(random.random() < chances[-1])
        low, high = average_bounds(np.array([np.mean(happened)]), np.array([200.0]), 0.05)
        failures += not low[0] <= np.mean(chances) <= high[0]
    assert failures <= 30


def test_the_safe_offer_takes_uncertain_offers() -> None:
    seen = UncertainCounts(ITEMS)
    chosen = [{"tea": 90, "pie": 40, "no": 20}, {"pie": 60, "no": 30}, {"no": 20}]
    seen.observe_period(["no"], ITEMS, chosen)
    seen.observe_period(["cake", "no"], ITEMS, chosen)
    model = rs.estimate(seen, method="mnl").model
    found = rs.safe_offer(seen, {"tea": 1.0, "pie": 1.5, "cake": 2.0}, model=model)
    assert found.proven
    assert found.feasible
    again = rs.revenue_range(seen, (*found.offer, "no"), {"tea": 1.0, "pie": 1.5, "cake": 2.0}, region="confidence")
    assert again.low == pytest.approx(found.low, abs=1e-3)


def test_what_cannot_be_bounded_is_refused() -> None:
    seen = UncertainCounts(ITEMS)
    with pytest.raises(ValueError, match="no observations yet"):
        rs.probability_range(seen, ITEMS, "tea")
    seen.observe(["tea"], ["tea", "no"], "tea", 0)
    with pytest.raises(ValueError, match="no observations yet"):
        rs.probability_range(seen, ITEMS, "tea")
    seen.observe(["tea"], ["tea", "no"], "tea", 2)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        rs.probability_range(seen, ["tea", "no"], "tea", region="confidence", confidence=1.0)
    with pytest.raises(ValueError, match="the norm 'l2'"):
        rs.probability_range(seen, ["tea", "no"], "tea", region="l2")  # type: ignore[arg-type]
    seen.observe(["tea"], ["tea", "no"], "tea", 0.5)
    with pytest.raises(ValueError, match="whole choices"):
        rs.probability_range(seen, ["tea", "no"], "tea")
