import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import strategies
from rankstream import Assortments, checks
from rankstream._core.types import Codes, Vec
from rankstream.columns.corrective import fit_nearest
from rankstream.oracles import DenseOracle, Ties
from rankstream.oracles.bounds.cuts import least_cost_bound
from rankstream.oracles.search import local as search
from rankstream.oracles.search.local import SearchOracle, hurried
from waits import Ticks

TIES: list[Ties] = ["first", "last", "random"]


def random_problem(seed: int, n: int, m: int, largest: int, no_choice: bool = True) -> tuple[Assortments, Vec]:
    generator = np.random.default_rng(seed)
    offers: set[tuple[int, ...]] = set()
    while len(offers) < m:
        size = int(generator.integers(2, largest + 1))
        offers.add(tuple(sorted(generator.choice(n - 1, size=size, replace=False).tolist())))
    held = [(*offer, n - 1) if no_choice else offer for offer in sorted(offers)]
    assortments = Assortments(held, items=range(n))
    return assortments, generator.normal(size=assortments.n_coordinates)


def room(costs: Vec) -> float:
    return 1e-12 * (1.0 + float(np.abs(costs).sum()))


@given(strategies.problems(most_items=6), st.sampled_from(TIES), st.integers(0, 3))
def test_search_brackets_the_minimum(problem: tuple[Assortments, Vec], ties: Ties, sweeps: int) -> None:
    offers, costs = problem
    answer = SearchOracle(offers, ties, rounds=3, sweeps=sweeps).cheapest(costs)
    least = naive.cheapest_value(offers, costs)
    assert sorted(answer.ranking) == list(range(offers.n_items))
    assert answer.value == pytest.approx(costs @ naive.vertex(offers, list(answer.ranking)), abs=room(costs))
    assert answer.bound <= least + room(costs)
    assert least <= answer.value + room(costs)


@strategies.examples(15)
@given(strategies.problems(most_items=6))
def test_a_hurried_search_brackets_the_minimum_too(problem: tuple[Assortments, Vec]) -> None:
    offers, costs = problem
    oracle, room = SearchOracle(offers), 1e-9 * (1.0 + np.abs(costs).sum())
    least, settings_before = naive.cheapest_value(offers, costs), (oracle.rounds, oracle.sweeps)
    with hurried(oracle):
        assert (oracle.rounds, oracle.sweeps) == (10, 0)
        quick = oracle.cheapest(costs)
    assert quick.bound - room <= least <= quick.value + room
    assert (oracle.rounds, oracle.sweeps) == settings_before


@strategies.examples(25)
@given(strategies.problems(most_items=7))
def test_bounds_hold_at_seven_items(problem: tuple[Assortments, Vec]) -> None:
    offers, costs = problem
    least, alone = naive.cheapest_value(offers, costs), np.minimum.reduceat(costs, offers.indptr[:-1]).sum()
    bounds = [least_cost_bound(offers, costs, rounds) for rounds in (0, 1, 8)]
    assert bounds[0] == pytest.approx(alone, abs=room(costs))
    assert bounds[0] <= bounds[1] <= bounds[2] <= least + room(costs)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_rounds_prove_most_of_what_offers_alone_leave_open(scale: float) -> None:
    offers, costs = random_problem(4, 9, 30, 5)
    least = DenseOracle(offers).cheapest(scale * costs).value
    alone, after = (least_cost_bound(offers, scale * costs, rounds) for rounds in (0, 60))
    assert alone < least - 0.5 * abs(least)  # else there is nothing to prove
    assert least - after <= 0.2 * (least - alone)
    assert after <= least + room(scale * costs)


def test_a_bound_is_the_same_whatever_was_asked_before() -> None:
    offers, costs = random_problem(5, 20, 60, 5)
    oracle = SearchOracle(offers, rounds=1)
    oracle.cheapest(-costs)
    again = oracle.cheapest(costs)
    assert again.bound == SearchOracle(offers, rounds=1).cheapest(costs).bound == least_cost_bound(offers, costs, 3)


def test_search_is_within_a_percent_on_most_instances() -> None:
    good = 0
    for seed in range(20):
        offers, costs = random_problem(seed, 14, 60, 5)
        least = DenseOracle(offers).cheapest(costs).value
        good += SearchOracle(offers, rounds=100, sweeps=0).cheapest(costs).value <= least + 0.01 * abs(least)
    assert good >= 18


def test_the_search_passes_the_checks() -> None:
    for no_choice in (True, False):
        offers, _ = random_problem(5, 7, 8, 3, no_choice)
        checks.check_oracle(SearchOracle(offers), offers)


def test_the_same_calls_get_the_same_answers() -> None:
    offers, costs = random_problem(6, 16, 50, 5)
    first, second = SearchOracle(offers, seed=3), pickle.loads(pickle.dumps(SearchOracle(offers, seed=3)))
    for vector in (costs, costs[::-1].copy(), costs):
        one, other = first.cheapest(vector), second.cheapest(vector)
        assert one.ranking.tolist() == other.ranking.tolist()
        assert one[1:] == other[1:]
    assert pickle.loads(pickle.dumps(SearchOracle(offers, budget=3.0))).budget == 3.0


@strategies.examples(25)
@given(strategies.problems(most_items=6), st.integers(0, 5))
def test_searches_around_rankings_lead_to_cheaper_ones(problem: tuple[Assortments, Vec], turn: int) -> None:
    offers, costs = problem
    oracle = SearchOracle(offers, seed=3)
    starts = np.random.default_rng(turn).permuted(np.tile(np.arange(offers.n_items), (3, 1)), axis=1)
    found = oracle.around(costs, starts, turn)
    values = [float(costs @ offers.vertex(ranking)) for ranking in found]
    assert np.sort(found, axis=1).tolist() == [list(range(offers.n_items))] * len(found)
    assert len(np.unique(found, axis=0)) == len(found)
    assert values == pytest.approx(sorted(values))
    assert min(values) <= min(float(costs @ offers.vertex(ranking)) for ranking in starts) + room(costs)
    assert found.tolist() == SearchOracle(offers, seed=3).around(costs, starts, turn).tolist()


def test_searches_begin_at_the_cheaper_rankings(monkeypatch: pytest.MonkeyPatch) -> None:
    offers, costs = random_problem(2, 18, 60, 4)
    best = DenseOracle(offers).cheapest(costs)
    others = np.random.default_rng(0).permuted(np.tile(np.arange(18), (40, 1)), axis=1)
    monkeypatch.setattr(search, "SHORT_ROUNDS", 1)  # one descent: from most rankings it does not lead to the least cost
    monkeypatch.setattr(search, "SHORT_SEARCHES", 1)
    found = SearchOracle(offers).around(costs, np.vstack([best.ranking, others]), 0)
    assert float(costs @ offers.vertex(found[0])) == pytest.approx(best.value)
    missed = SearchOracle(offers).around(costs, others, 0)
    assert float(costs @ offers.vertex(missed[0])) > best.value + 1e-6


class Hesitant(SearchOracle):
    """Finds nothing new for some turns."""

    def around(self, costs: Vec, rankings: Codes, turn: int) -> Codes:
        return rankings[:1].copy() if turn % 7 else super().around(costs, rankings, turn)


@pytest.mark.parametrize(("kind", "enough"), [(SearchOracle, 10), (Hesitant, 40)])
def test_a_fit_goes_on_where_a_search_finds_nothing_for_a_while(kind: type[SearchOracle], enough: int) -> None:
    offers, _ = random_problem(1, 9, 25, 5)
    p = np.concatenate([np.random.default_rng(5).dirichlet(np.ones(size)) for size in np.diff(offers.indptr)])
    best = fit_nearest(offers, p, tolerance=1e-9).certificate
    found = fit_nearest(offers, p, oracle=kind(offers), tolerance=1e-9)
    assert found.certificate.upper == pytest.approx(best.upper, rel=1e-4)
    assert found.certificate.lower <= best.upper
    assert found.rounds > enough


def test_the_pool_never_lets_a_good_ranking_go() -> None:
    offers, costs = random_problem(7, 20, 80, 5)
    oracle = SearchOracle(offers, rounds=200, sweeps=0)
    value = oracle.cheapest(costs).value
    oracle.rounds = 1
    oracle.cheapest(-costs)
    assert oracle.cheapest(costs).value <= value


def test_the_pool_has_every_answer_once() -> None:
    offers, costs = random_problem(4, 6, 5, 4)
    oracle = SearchOracle(offers, rounds=20)
    answers = [oracle.search(sign * costs) for sign in (1.0, -1.0, 1.0, 1.0)]
    pool = oracle.memory()["pool"]
    assert len(np.unique(pool, axis=0)) == len(pool)
    assert all((pool == answer).all(axis=1).any() for answer in answers)


def test_budgets_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    offers, costs = random_problem(8, 40, 150, 6)
    clock = Ticks(0.05)
    monkeypatch.setattr(search, "perf_counter", clock)
    answer = SearchOracle(offers, budget=0.5, rounds=10**9, sweeps=0).cheapest(costs)
    assert 0.5 / 0.05 <= clock.readings <= 2 * 0.5 / 0.05
    assert answer.bound <= answer.value


def test_bad_options_are_refused() -> None:
    offers = Assortments([("a", "b")])
    with pytest.raises(ValueError, match="Unknown tie rule 'middle'"):
        SearchOracle(offers, ties="middle")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="seed is -1"):
        SearchOracle(offers, seed=-1)
    with pytest.raises(ValueError, match="too large"):
        SearchOracle(offers, seed=2**63)
    with pytest.raises(ValueError, match=r"budget is -1\.0: it must be at least 0"):
        SearchOracle(offers, budget=-1.0)
    with pytest.raises(ValueError, match="rounds is 0"):
        SearchOracle(offers, rounds=0)
    with pytest.raises(ValueError, match="must be 2 costs"):
        SearchOracle(offers).cheapest(np.zeros(3))
    with pytest.raises(ValueError, match="NaN or infinity"):
        SearchOracle(offers).cheapest([0.0, np.nan])


def test_the_last_answer_is_remembered_for_equal_costs() -> None:
    offers, costs = random_problem(3, 6, 8, 4)
    oracle = SearchOracle(offers, rounds=2)
    first = oracle.cheapest(costs)
    assert oracle.cheapest(costs.copy()) is first
    assert oracle.cheapest(costs + 1.0) is not first
    assert oracle.cheapest(costs) is not first  # only the last one
