"""The exact oracles against brute force, against each other, and on structures that occur in practice."""

import pickle
from collections.abc import Callable
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import strategies
from experiments.counting_oracle import CountingOracle
from milp_oracle import MilpOracle
from oracle_problems import TIES, rounding_slack
from rankstream import Assortments, checks
from rankstream._core.types import Vec
from rankstream.oracles import (
    DenseOracle,
    LaminarOracle,
    LatticeOracle,
    Ties,
)
from rankstream.oracles.reductions import reduce
from rankstream.oracles.tables.lattice import unions


@given(strategies.problems(most_items=6), st.sampled_from(TIES), st.integers(0, 2**63 - 1))
def test_lattice_equals_brute_force(problem: tuple[Assortments, Vec], ties: Ties, seed: int) -> None:
    offers, costs = problem
    answer = LatticeOracle(offers, ties, seed).cheapest(costs)
    assert sorted(answer.ranking) == list(range(offers.n_items))
    assert answer.value == pytest.approx(naive.cheapest_value(offers, costs), abs=rounding_slack(costs))
    assert answer.value == pytest.approx(costs @ naive.vertex(offers, list(answer.ranking)), abs=rounding_slack(costs))
    assert answer.exact


@strategies.examples(20)
@given(strategies.problems(most_items=7), st.sampled_from(TIES))
def test_lattice_equals_brute_force_at_seven_items(problem: tuple[Assortments, Vec], ties: Ties) -> None:
    offers, costs = problem
    value = LatticeOracle(offers, ties).cheapest(costs).value
    assert value == pytest.approx(naive.cheapest_value(offers, costs), abs=rounding_slack(costs))


@given(strategies.problems(most_items=6), st.sampled_from(TIES), st.integers(0, 99))
def test_lattice_and_dense_oracles_give_the_same_ranking(
    problem: tuple[Assortments, Vec], ties: Ties, seed: int
) -> None:
    offers, costs = problem
    whole = np.round(costs)  # sums of whole numbers are exact, so that ties are the same for both
    one, other = LatticeOracle(offers, ties, seed).cheapest(whole), DenseOracle(offers, ties, seed).cheapest(whole)
    assert one.ranking.tolist() == other.ranking.tolist()


@pytest.mark.parametrize("no_choice", [True, False])
@pytest.mark.parametrize(
    ("n", "m"),
    [
        (8, 12),
        (11, 20),
        pytest.param(12, 40, marks=strategies.compiled_only),
        pytest.param(14, 25, marks=strategies.compiled_only),
    ],
)
def test_lattice_equals_the_recursion_on_sets(n: int, m: int, no_choice: bool) -> None:
    random = np.random.default_rng(n * m)
    subsets = [s for size in range(1, 5) for s in combinations(range(n), size)]
    picked = random.choice(len(subsets), size=m, replace=False)
    offers = Assortments(
        [(*subsets[k], "nothing") if no_choice else subsets[k] for k in picked], [*range(n), "nothing"]
    )
    costs = random.normal(size=offers.n_coordinates)
    expected = DenseOracle(offers).cheapest(costs).value
    assert LatticeOracle(offers).cheapest(costs).value == pytest.approx(expected)
    if n <= 11:
        assert expected == pytest.approx(naive.cheapest_value_by_sets(offers, costs))


def test_unions_are_all_unions() -> None:
    random = np.random.default_rng(0)
    sets = random.integers(1, 2**8, size=6).astype(np.uint64)
    expected = {0}
    for size in range(1, 7):
        expected |= {int(np.bitwise_or.reduce(np.array(some))) for some in combinations(sets, size)}
    assert unions(sets, 1000).tolist() == sorted(expected)
    with pytest.raises(ValueError, match="more than 3 unions"):
        unions(sets, 3)


def laminar_offers(no_choice: bool, seed: int) -> Assortments:
    """A random laminar family: recursive splits of the items, some offered more than once."""
    random = np.random.default_rng(seed)
    offers: list[tuple[int | str, ...]] = []

    def split(items: list[int]) -> None:
        offers.append((*items, "x") if no_choice else tuple(items))
        if len(items) > 1:
            cut = int(random.integers(1, len(items)))
            for part in (items[:cut], items[cut : cut + int(random.integers(1, len(items)))]):
                if part and random.random() < 0.8:
                    split(part)

    order = random.permutation(6).tolist()
    split(order[:4])
    split(order[4:])
    offers += offers[:1]
    return Assortments(offers, [*range(6), "x"])


@strategies.examples(60)
@given(st.booleans(), st.integers(0, 10_000), st.sampled_from(TIES))
def test_laminar_equals_brute_force(no_choice: bool, seed: int, ties: Ties) -> None:
    offers = laminar_offers(no_choice, seed)
    random = np.random.default_rng(seed)
    for costs in (random.normal(size=offers.n_coordinates), random.integers(-2, 3, offers.n_coordinates).astype(float)):
        answer = LaminarOracle(offers, ties, seed).cheapest(costs)
        assert sorted(answer.ranking) == list(range(7))
        expected = DenseOracle(offers).cheapest(costs).value
        assert answer.value == pytest.approx(expected, abs=1e-9)
        assert answer.value == pytest.approx(costs @ offers.vertex(answer.ranking))


@strategies.compiled_only
def test_laminar_takes_hundreds_of_items() -> None:
    items = list(range(500))
    offers = Assortments([(*items[:size], "nothing") for size in range(1, 500, 7)])
    random = np.random.default_rng(0)
    costs = random.normal(size=offers.n_coordinates)
    oracle = LaminarOracle(offers)
    answer = oracle.cheapest(costs)
    for _ in range(20):  # no swap of neighbours, and no other ranking, is cheaper
        other = random.permutation(offers.n_items)
        assert costs @ offers.vertex(other) >= answer.value - 1e-9
    assert "laminar family" in oracle.explain()


@pytest.mark.parametrize("oracle", [LatticeOracle, LaminarOracle, DenseOracle])
def test_every_exact_oracle_conforms(oracle: Callable[..., LatticeOracle]) -> None:
    for offers in (
        Assortments([("a", "b", "c", "x"), ("a", "b", "x"), ("d", "x")]),
        Assortments([("a", "b", "c"), ("a", "b"), ("d", "e")]),
        Assortments([("a", "b")]),
        Assortments([("a",), ("b",)]),
        Assortments([("a", "b", "c")] * 3),
        Assortments([("a",)], items=["a", "b", "never"]),
    ):
        for ties in TIES:
            checks.check_oracle(oracle(offers, ties), offers)
        copied = pickle.loads(pickle.dumps(oracle(offers, "random", 5)))
        costs = np.arange(offers.n_coordinates, dtype=float)
        assert copied.cheapest(costs).ranking.tolist() == oracle(offers, "random", 5).cheapest(costs).ranking.tolist()


@strategies.examples(30)
@given(strategies.problems(most_items=5))
def test_best_rankings_for_every_beginning(problem: tuple[Assortments, Vec]) -> None:
    offers, costs = problem
    oracle = LatticeOracle(offers)
    values = {order: float(costs @ offers.vertex(order)) for order in permutations(range(offers.n_items))}
    singles, pairs = oracle.cheapest_by_first(costs), oracle.cheapest_by_first_pair(costs)
    for length, answers in ((1, singles), (2, pairs)):
        found: dict[tuple[int, ...], float] = {}
        for answer in answers:
            start = tuple(answer.ranking[:length].tolist())
            found[start] = min(found.get(start, np.inf), answer.value)
            assert answer.value == pytest.approx(values[tuple(answer.ranking.tolist())], abs=rounding_slack(costs))
            assert answer.bound <= min(values.values()) + rounding_slack(costs)
        for start in permutations(range(offers.n_items), min(length, offers.n_items)):
            least = min(value for order, value in values.items() if order[:length] == start)
            assert found[start] == pytest.approx(least, abs=rounding_slack(costs))
    assert [int(answer.ranking[0]) for answer in singles] == list(range(offers.n_items))
    dense = DenseOracle(offers).cheapest_by_first(costs)
    assert [a.value for a in singles] == pytest.approx([a.value for a in dense], abs=rounding_slack(costs))


@given(strategies.problems(most_items=6))
def test_reductions_change_nothing(problem: tuple[Assortments, Vec]) -> None:
    offers, costs = problem
    reduced = reduce(offers)
    entries = np.zeros(reduced.n_entries)
    base = np.where(reduced.base_at >= 0, costs[reduced.base_at], 0.0)
    np.add.at(entries, reduced.entry_at[reduced.entry_at >= 0], (costs - base)[reduced.entry_at >= 0])
    starts = np.cumsum([0, *map(len, reduced.offers)])
    constants = {
        round(
            float(costs @ offers.vertex(order))
            - sum(
                entries[starts[j] + offer.index(best)]
                for j, offer in enumerate(reduced.offers)
                for best in [min(offer, key=order.index)]
                if reduced.no_choice_code < 0 or order.index(best) < order.index(reduced.no_choice_code)
            ),
            6,
        )
        for order in permutations(range(offers.n_items))
    }
    assert np.ptp(list(constants)) <= 1e-5 * (1 + float(np.abs(costs).sum()))
    items = [reduced.items_of(component) for component in reduced.components]
    assert len({item for own in items for item in own}) == sum(map(len, items))
    assert sorted(j for component in reduced.components for j in component) == list(range(len(reduced.offers)))


def test_families_are_recognised() -> None:
    nested = reduce(Assortments([("a", "b", "c", "x"), ("a", "x"), ("a", "b", "x")]))
    assert nested.is_laminar
    clusters = reduce(Assortments([("a", "b", "x"), ("c", "d", "x"), ("c", "x")]))
    assert clusters.is_laminar
    assert len(clusters.components) == 2
    crossed = reduce(Assortments([("a", "b", "x"), ("b", "c", "x")]))
    assert not crossed.is_laminar
    with pytest.raises(ValueError, match="overlap without one containing the other"):
        LaminarOracle(Assortments([("a", "b", "x"), ("b", "c", "x")]))


def test_sparse_offers_of_many_items_stay_small() -> None:
    offers = Assortments([(k, k + 1, "x") for k in range(0, 60, 3)] + [(k, "x") for k in range(61)])
    oracle = LatticeOracle(offers)
    costs = np.random.default_rng(0).normal(size=offers.n_coordinates)
    assert oracle.n_states < 200
    assert oracle.cheapest(costs).exact
    with pytest.raises(ValueError, match="65 connected items"):
        LatticeOracle(Assortments([tuple(range(65)), (0, 1), (2, 3)]))


def test_wrappers_are_oracles() -> None:
    offers = Assortments([("a", "b", "x"), ("b", "c", "x")])
    checks.check_oracle(CountingOracle(LatticeOracle(offers)), offers)
    counting = CountingOracle(LatticeOracle(offers))
    for _ in range(3):
        counting.cheapest(np.ones(6))
    assert counting.calls == 3
    assert counting.seconds > 0.0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_costs_that_are_not_finite_are_refused(bad: float) -> None:
    for oracle in (LatticeOracle, LaminarOracle):
        with pytest.raises(ValueError, match="NaN or infinity"):
            oracle(Assortments([("a", "b")])).cheapest(np.array([0.0, bad]))
        with pytest.raises(ValueError, match="must be 2 costs"):
            oracle(Assortments([("a", "b")])).cheapest(np.zeros(3))


def test_the_integer_program_takes_side_constraints() -> None:
    offers = Assortments([("a", "b", "c"), ("b", "c", "d"), ("a", "d")])
    random = np.random.default_rng(0)
    for _ in range(5):
        costs = random.normal(size=offers.n_coordinates)
        values = {order: float(costs @ offers.vertex(order)) for order in permutations(range(4))}
        forced = MilpOracle(offers, before=[("d", "a"), ("c", "b")]).cheapest(costs)
        allowed = [v for o, v in values.items() if o.index(3) < o.index(0) and o.index(2) < o.index(1)]
        assert forced.value == pytest.approx(min(allowed))
        fixed = MilpOracle(offers, top=["c", "a"]).cheapest(costs)
        assert fixed.ranking[:2].tolist() == [2, 0]
        assert fixed.value == pytest.approx(min(v for o, v in values.items() if o[:2] == (2, 0)))
    with pytest.raises(ValueError, match="meets all the side constraints"):
        MilpOracle(offers, before=[("a", "b"), ("b", "a")]).cheapest(costs)
    with pytest.raises(ValueError, match="cannot be ranked before itself"):
        MilpOracle(offers, before=[("a", "a")])
    with pytest.raises(ValueError, match="Unknown item 'z'"):
        MilpOracle(offers, top=["z"])
