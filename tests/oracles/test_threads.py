"""Threads: the same answers bit for bit whatever their number, one call at a time, one thread in worker processes."""

import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numba.core import config
from threadpoolctl import threadpool_info

import strategies
from oracle_problems import random_problem
from rankstream import Assortments, ChoiceCounts, Estimate, estimate, methods
from rankstream._core import threads
from rankstream._core.threads import crew, thread_count
from rankstream._core.types import Vec
from rankstream.estimation.task import Task
from rankstream.models.entropy import soft_kernels, soft_lattice
from rankstream.models.entropy.ranking_laws import RankingLaw, markov_chain, mix, plackett_luce
from rankstream.models.entropy.soft_lattice import SoftLattice
from rankstream.oracles import DenseOracle
from rankstream.oracles.tables import dense, dense_kernels
from waits import LONG

MANY = [1, 2, 3, 7]
several = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def always_shared(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """However small the work, threads share it."""
    monkeypatch.setattr(dense, "MIN_THREADED_SETS", 1)
    monkeypatch.setattr(soft_lattice, "SHARED_FROM", 1)
    return monkeypatch


def filled(oracle: DenseOracle, costs: Vec) -> tuple[bytes, bytes]:
    answer = oracle.cheapest(costs)
    return oracle._to_go.tobytes(), answer.ranking.tobytes()


@strategies.compiled_only
@several
@given(st.integers(12, 18), st.integers(1, 120), st.booleans(), st.integers(0, 10**6))
def test_dense_tables_are_the_same_on_any_number_of_threads(
    always_shared: pytest.MonkeyPatch, n: int, m: int, no_choice: bool, seed: int
) -> None:
    offers, costs = random_problem(n, m, no_choice, seed)
    found = set()
    for number in MANY:
        always_shared.setattr(threads, "thread_count", lambda number=number: number)
        found.add(filled(DenseOracle(offers), costs))
    assert len(found) == 1


@strategies.compiled_only
@pytest.mark.skipif(numba.get_num_threads() < 2, reason="there is only one core")
def test_numba_says_how_many_threads_there_are(always_shared: pytest.MonkeyPatch) -> None:
    offers, costs = random_problem(14, 50, True)
    before, found, used = numba.get_num_threads(), list[tuple[bytes, bytes]](), list[int]()
    kernel = dense_kernels.fill_part

    def noted(part: np.uint64, n_blocks: np.uint64, *others: Any) -> None:
        used.append(int(n_blocks))
        kernel(part, n_blocks, *others)

    always_shared.setattr(dense_kernels, "fill_part", noted)
    try:
        for number in (1, 2):
            numba.set_num_threads(number)
            assert thread_count() == number
            found.append(filled(DenseOracle(offers), costs))
    finally:
        numba.set_num_threads(before)
    assert found[0] == found[1]
    assert len(used) > 2  # one thread takes the table in one part, two share it
    assert used[0] > used[1]


def random_prior(offers: Assortments, seed: int) -> RankingLaw:
    random, n = np.random.default_rng(seed), offers.n_items
    moves = random.uniform(0.01, 1.0, (n, n))
    laws = [plackett_luce(offers.items, random.uniform(0.1, 1.0, n)) for _ in range(3)]
    moves /= moves.sum(axis=1, keepdims=True)
    laws += [markov_chain(offers.items, random.dirichlet(np.ones(n)), moves) for _ in range(2)]
    return mix(laws, random.dirichlet(np.ones(5)).tolist())


@strategies.compiled_only
@several
@given(st.integers(5, 10), st.integers(1, 30), st.booleans(), st.integers(0, 10**6))
def test_soft_programs_are_the_same_on_any_number_of_threads(
    always_shared: pytest.MonkeyPatch, n: int, m: int, no_choice: bool, seed: int
) -> None:
    offers, duals = random_problem(n, m, no_choice, seed)
    prior, found = random_prior(offers, seed), set()
    for number in MANY:
        always_shared.setattr(threads, "thread_count", lambda number=number: number)
        value, chosen = SoftLattice(offers, prior).evaluate(duals)
        found.add((value, chosen.tobytes()))
    assert len(found) == 1
    with always_shared.context() as alone:
        alone.setattr(soft_lattice, "SHARED_FROM", 2**60)
        np.testing.assert_allclose(chosen, SoftLattice(offers, prior).evaluate(duals)[1], atol=1e-12)


@given(strategies.assortments())
def test_transitions_are_listed_where_they_lead(offers: Assortments) -> None:
    lattice = SoftLattice(offers, plackett_luce(offers.items, np.ones(offers.n_items)))
    for state in range(lattice.states.size):
        own = slice(lattice.first_into[state], lattice.first_into[state + 1])
        assert lattice.into[own].tolist() == np.flatnonzero(lattice.following == state)[::-1].tolist()
        before = [int(np.searchsorted(lattice.first, move, "right")) - 1 for move in lattice.into[own]]
        assert lattice.origin[own].tolist() == before


@given(strategies.assortments(), st.integers(2, 5))
def test_parts_of_a_layer_do_not_depend_on_each_other(offers: Assortments, number: int) -> None:
    lattice = SoftLattice(offers, plackett_luce(offers.items, np.ones(offers.n_items)))
    done: set[int] = set()
    for layer in lattice._layers(number):
        for part in layer:
            known = set(done)
            for state in part.tolist():
                assert known >= set(lattice.following[lattice.first[state] : lattice.first[state + 1]].tolist())
                known.add(state)
        done |= {state for part in layer for state in part.tolist()}
    assert done == set(range(lattice.states.size))


@strategies.compiled_only
def test_two_threads_may_call_at_once(always_shared: pytest.MonkeyPatch) -> None:
    always_shared.setattr(threads, "thread_count", lambda: 2)
    problems = [random_problem(13, 40, True, seed) for seed in range(4)]
    expected = [DenseOracle(offers).cheapest(costs).ranking.tolist() for offers, costs in problems]
    made = [DenseOracle(offers) for offers, _ in problems]

    def ask(turn: int) -> list[int]:
        return [int(item) for item in made[turn % 4].cheapest(problems[turn % 4][1]).ranking]

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(40), timeout=LONG))
    assert answers == [expected[turn % 4] for turn in range(40)]


@strategies.compiled_only
def test_threads_that_share_an_oracle_get_the_answers_to_their_own_costs() -> None:
    offers, _ = random_problem(13, 40, True)
    costs = np.random.default_rng(1).normal(size=(8, offers.n_coordinates))
    expected = [DenseOracle(offers).cheapest(row) for row in costs]
    shared = DenseOracle(offers)  # whose one table each of these calls fills with other numbers
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda turn: shared.cheapest(costs[turn % 8]), range(200), timeout=LONG))
    for turn, answer in enumerate(answers):
        assert answer.ranking.tolist() == expected[turn % 8].ranking.tolist()
        assert (answer.value, answer.bound) == (expected[turn % 8].value, expected[turn % 8].bound)


def test_only_one_call_at_a_time_has_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "thread_count", lambda: 3)
    with crew() as outer, crew() as inner:
        assert (outer.size, inner.size) == (3, 1)
    with crew(wanted=False) as small, crew() as again:
        assert (small.size, again.size) == (1, 3)


@pytest.mark.parametrize("number", [1, 2, 5])
def test_every_task_is_done_once_and_what_goes_wrong_is_raised(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "thread_count", lambda: number)
    for count in (0, 1, 2, 50):
        done: list[int] = []
        with crew() as workers:
            workers.run(done.append, count)
        assert sorted(done) == list(range(count))
    with crew() as workers, pytest.raises(ZeroDivisionError):
        workers.run(lambda task: done.append(1 // (task - 7)), 20)
    with crew() as workers:
        assert workers.size == number


def test_worker_processes_use_one_thread_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(thread_count).result(timeout=LONG) == 1
    monkeypatch.setattr(numba, "get_num_threads", lambda: 6)
    monkeypatch.setattr(config, "DISABLE_JIT", 0)
    assert thread_count() == 6
    monkeypatch.setattr(threads, "parent_process", lambda: "somebody")
    assert thread_count() == 1
    monkeypatch.setenv("NUMBA_NUM_THREADS", "6")  # as joblib sets it
    assert thread_count() == 6
    monkeypatch.setattr(config, "DISABLE_JIT", 1)
    assert thread_count() == 1


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    code = """
import os
from rankstream._core import threads
threads.thread_count = lambda: 3
def work():
    done = []
    with threads.crew() as workers:
        assert workers.size == 3
        workers.run(done.append, 100)
    assert sorted(done) == list(range(100))
work()
with threads.crew():  # the child must not wait for a lock that only the parent can release
    child = os.fork()
    if not child:
        work()
        os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=LONG)
    assert done.returncode == 0, done.stderr


@strategies.compiled_only
def test_kernels_for_threads_let_go_of_the_interpreter() -> None:
    shared = [dense_kernels.fill_part, soft_kernels.tilts_of, soft_kernels.mixture_values]
    shared += [soft_kernels.mixture_flow, soft_kernels.chain_values, soft_kernels.chain_flow, soft_kernels.hitting]
    shared += [soft_kernels.transition_costs, soft_kernels.collect]
    for kernel in shared:
        assert getattr(kernel, "options", {}).get("nogil") is True, kernel


def test_fits_use_one_thread_for_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[set[int]] = []

    def note(task: Task) -> Estimate[Any]:
        used.append({each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"})
        return fit_mnl(task)

    fit_mnl = methods.Logit().fit
    monkeypatch.setattr(methods.Logit, "fit", lambda _, task: note(task))
    before = threadpool_info()
    estimate(ChoiceCounts(Assortments([("tea", "pie")]), [3, 2]), method="mnl")
    assert used == [{1}]
    assert threadpool_info() == before
