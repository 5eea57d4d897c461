"""What ``oracles.auto`` picks by the memory and the threads that there are, and what it says about it."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

import strategies
from rankstream import Assortments, oracles
from rankstream._core import memory
from rankstream.oracles import selection as choosing
from rankstream.oracles.search import local as search

pytestmark = pytest.mark.quick

GB = 10**9


class Table:
    """A dense oracle without its table."""

    def __init__(self, assortments: Assortments, ties: str, seed: int) -> None:
        self.assortments = assortments

    def cheapest(self, costs: object) -> oracles.Answer:
        raise AssertionError(costs)

    def explain(self) -> str:
        return "exact, by all sets of items"


def tangled(n: int) -> Assortments:
    """Offers of n items that have more unions than a table of them may have."""
    random = np.random.default_rng(n)
    ring = [(i, (i + 1) % n, "nothing") for i in range(n)]
    others = [(*random.choice(n, 3, replace=False).tolist(), "nothing") for _ in range(2 * n)]
    return Assortments([*ring, *others], [*range(n), "nothing"])


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine with 64 GB and 16 cores, on which no table is really made."""
    monkeypatch.setattr(choosing, "DenseOracle", Table)
    monkeypatch.setattr(choosing, "MAX_UNIONS", 500)
    monkeypatch.setattr(choosing, "MAX_STATES", 500)
    monkeypatch.setattr(choosing, "available_memory", lambda: 64.0 * GB)
    monkeypatch.setattr(choosing, "thread_count", lambda: 16)
    return monkeypatch


@strategies.compiled_only
@pytest.mark.parametrize(
    ("n", "free", "threads", "dense", "why"),
    [
        (30, 64, 16, True, "takes 8.59 GB of the 64 GB of memory that are free"),
        (30, 17, 16, False, "30 items needs 8.59 GB of memory, and may take at most 8.5 GB"),
        (30, 18, 16, True, "takes 8.59 GB of the 18 GB"),
        (30, 64, 8, False, r"all sets of 30 items are more than 2\*\*26 for each thread \(of 8\)"),
        (27, 64, 1, False, r"more than 2\*\*26 for each thread \(of 1\)\."),
        (27, 64, 2, True, "takes 1.07 GB"),
        (26, 64, 1, True, "takes 0.537 GB"),
        (26, 1, 1, False, "may take at most 0.5 GB"),
        (31, 640, 99, False, "a table of all sets of 31 items takes too long: 30 is the most"),
        (40, 64, 16, False, "a table of all sets of 40 items takes too long"),
    ],
)
def test_tables_go_as_far_as_memory_and_threads(
    machine: pytest.MonkeyPatch, n: int, free: float, threads: int, dense: bool, why: str
) -> None:
    machine.setattr(choosing, "available_memory", lambda: free * GB)
    machine.setattr(choosing, "thread_count", lambda: threads)
    offers = tangled(n)
    assert isinstance(oracles.auto(offers), Table if dense else oracles.SearchOracle)
    said = oracles.explain(offers)
    assert said.startswith("Table: exact" if dense else "SearchOracle: by local search")
    assert "There are more than 500 unions of offers" in said
    assert re.search(why, said), said


@strategies.compiled_only
def test_unions_take_no_more_memory_than_a_share(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(choosing, "MAX_UNIONS", 2**20)
    offers = tangled(18)
    few = Assortments(offers.offers[18:25], offers.items)
    assert oracles.explain(few).endswith("there are at most 500.")  # too few items that differ for a table of all sets
    for free, most in ((64.0 * GB, 2**18 // 6), (4.2e6, 3000), (0.1e6, 500)):
        machine.setattr(choosing, "available_memory", lambda free=free: free)
        assert f"more than {most:,} unions" in oracles.explain(offers)


@strategies.compiled_only
@pytest.mark.usefixtures("machine")
def test_tables_take_no_more_memory_than_they_may() -> None:
    offers = tangled(20)
    assert isinstance(oracles.auto(offers, memory=8 * 2**20), Table)
    assert isinstance(oracles.auto(offers, memory=8 * 2**20 - 1), oracles.SearchOracle)
    few = Assortments(offers.offers[18:25], offers.items)
    unions = oracles.auto(few)
    assert isinstance(unions, oracles.LatticeOracle)
    enough = choosing.UNION_BYTES * unions.n_states
    assert isinstance(oracles.auto(few, memory=enough), oracles.LatticeOracle)
    assert not isinstance(oracles.auto(few, memory=enough - 1), oracles.LatticeOracle)


@strategies.compiled_only
def test_hopeless_unions_are_not_counted(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(choosing, "MAX_UNIONS", 2**20)
    machine.setattr(choosing, "MAX_UNIONS_OF_A_QUARTER", 600)
    assert "more than 600 unions" in oracles.explain(tangled(20))  # a quarter of them has more than that
    machine.setattr(choosing, "MAX_UNIONS_OF_A_QUARTER", 30_000)
    assert f"more than {2**20 // 6:,} unions" in oracles.explain(tangled(20))  # a quarter has fewer: all are counted


@strategies.compiled_only
def test_a_search_has_fewer_rounds_on_a_large_problem(machine: pytest.MonkeyPatch) -> None:
    offers = tangled(40)
    machine.setattr(search, "LARGE_COORDINATES", offers.n_coordinates)
    oracle = oracles.auto(offers)
    assert isinstance(oracle, search.SearchOracle)
    assert oracle.rounds == 250
    machine.setattr(search, "LARGE_COORDINATES", offers.n_coordinates // 5)
    oracle = oracles.auto(offers)
    assert isinstance(oracle, search.SearchOracle)
    assert oracle.rounds == int(250 * (offers.n_coordinates // 5 / offers.n_coordinates) ** 2)
    with search.hurried(oracle):
        assert (oracle.rounds, oracle.sweeps) == (1, 0)  # never none
    assert oracle.rounds > 1


@strategies.compiled_only
def test_other_choices_are_explained() -> None:
    nested = Assortments([(*range(size), "x") for size in range(1, 40)])
    assert oracles.explain(nested).endswith("Any two offers are nested or share no item, and so need no table.")
    apart = [(*((k, i) for i in offer[:-1]), "nothing") for k in (0, 1) for offer in tangled(18).offers]
    said = oracles.explain(Assortments(apart))
    assert said.startswith("ComponentsOracle: part by part")
    assert said.endswith("Parts without a common item are solved one by one.")


def test_memory_is_what_the_system_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "GROUP", tmp_path)
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable:    5000 kB\n")
    assert memory.available_memory() == 5_120_000.0
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    assert memory.available_memory() == 5_120_000.0
    (tmp_path / "memory.max").write_text("3000000\n")
    assert memory.available_memory() == 2_000_000.0
    (tmp_path / "memory.max").write_text("500000\n")
    assert memory.available_memory() == 0.0


@pytest.mark.parametrize("text", [None, "", "MemAvailable: much kB\n", "MemAvailable:\n"])
def test_memory_without_a_word_from_the_system(
    text: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(memory, "GROUP", tmp_path)
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    if text is not None:
        (tmp_path / "meminfo").write_text(text)
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__, raising=False)
    assert memory.available_memory() == 2_048_000.0
    monkeypatch.delattr(os, "sysconf")
    assert memory.available_memory() == memory.UNKNOWN_MEMORY
