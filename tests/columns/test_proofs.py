import numpy as np
import pytest

from rankstream import Assortments
from rankstream._core.types import Vec
from rankstream._core.watch import Deadline, seconds_left, until, unwatched
from rankstream.certificate import Proof
from rankstream.columns import corrective
from rankstream.columns import proofs as proving
from rankstream.columns.corrective import ColumnSearch, Goal
from rankstream.columns.data import ColumnFinder
from rankstream.columns.proofs import Prover, TableSchedule
from rankstream.data.counts import Target
from rankstream.distances import L2
from rankstream.models.nearest import NearestMixture
from rankstream.models.rankings import RankingModel
from rankstream.oracles import Answer, DenseOracle, SearchOracle
from rankstream.oracles import selection as choosing
from rankstream.oracles.tables.dense import table_bytes
from rankstream.solver.runs import Estimate


class Clock:
    """A clock that stands still unless it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search halts after three rounds instead of many, and cuts have one round."""
    monkeypatch.setattr(proving, "STALL_ROUNDS", 3)
    monkeypatch.setattr(proving, "FIRST_ROUNDS", 1)


def noisy(n: int = 9, m: int = 60, seed: int = 0) -> tuple[Assortments, Vec]:
    """Offers of four of n items and no-choice, with frequencies that no model meets."""
    random = np.random.default_rng(seed)
    offers = Assortments([(*random.choice(n - 1, 4, replace=False).tolist(), n - 1) for _ in range(m)], range(n))
    return offers, random.dirichlet(np.ones(5), m).ravel()


def by_search(norm: L2, data: Vec, gap: float, prove: bool) -> Estimate[RankingModel]:
    """A fit whose oracle proves next to nothing."""
    oracle = SearchOracle(norm.assortments)
    return corrective.fit_nearest(norm.assortments, data, norm, oracle, tolerance=gap, max_rounds=400, prove=prove)


WEIGHTS = [None, tuple(1.0 + np.arange(60.0) % 3)]


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_table_proves_what_a_search_cannot(weights: tuple[float, ...] | None) -> None:
    offers, data = noisy()
    norm = L2(offers, weights=weights)
    least = corrective.fit_nearest(offers, data, norm, DenseOracle(offers), tolerance=1e-9).certificate
    plain, proven = (by_search(norm, data, 1e-4 * least.upper, prove) for prove in (False, True))
    assert plain.certificate.lower < 0.9 * least.upper
    assert 0.999 * least.upper <= proven.certificate.lower <= least.upper + 1e-12
    assert proven.converged
    assert proven.certificate.upper >= least.lower - 1e-12
    assert sum((proven.certificate.dual_regret or 0.0, proven.certificate.oracle_regret)) == pytest.approx(
        proven.certificate.gap
    )


@pytest.mark.parametrize("weights", WEIGHTS)
def test_cuts_prove_where_there_is_no_table(weights: tuple[float, ...] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corrective, "proving_table", lambda *_: None)
    monkeypatch.setattr(proving, "FIRST_ROUNDS", 1)
    offers, data = noisy(seed=1)
    norm = L2(offers, weights=weights)
    least = corrective.fit_nearest(offers, data, norm, DenseOracle(offers), tolerance=1e-9).certificate
    plain, proven = (by_search(norm, data, 1e-4 * least.upper, prove) for prove in (False, True))
    assert plain.certificate.lower < 0.7 * proven.certificate.lower
    assert 0.9 * least.upper <= proven.certificate.lower <= least.upper + 1e-12
    again = by_search(norm, data, 1e-4 * least.upper, True)
    assert again.certificate == proven.certificate  # nobody counted seconds


def test_a_large_table_is_asked_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corrective, "MIN_SLOW_SETS", 2)
    asked: list[int] = []
    offers, data = noisy()
    read = DenseOracle.cheapest_by_first

    def counted(self: DenseOracle, costs: Vec) -> list[Answer]:
        asked.append(1)
        return read(self, costs)

    monkeypatch.setattr(DenseOracle, "cheapest_by_first", counted)
    found = corrective.fit_nearest(offers, data, oracle=DenseOracle(offers), tolerance=1e-3, prove=True)
    assert 0 < len(asked) < found.rounds
    assert found.converged


def test_after_the_proof_the_search_has_the_rest_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that moves a second with every look: the search ends at three fifths, and goes on after the cuts."""
    monkeypatch.setattr(corrective, "proving_table", lambda *_: None)
    monkeypatch.setattr(proving, "LAST_ROUNDS", 1)
    monkeypatch.setattr(Proof, "advance", lambda *_: 0.0)
    offers, data = noisy()
    looks: list[float] = []

    def clock() -> float:
        looks.append(float(len(looks)))
        return looks[-1]

    oracle = SearchOracle(offers)
    watch = Deadline(40.0, clock=clock)
    found = corrective.fit_nearest(offers, data, oracle=oracle, tolerance=0.0, watch=watch, prove=True)
    assert watch.stopped
    assert 30 < found.rounds <= 40


def test_the_next_dual_lies_between_the_latest_and_the_best() -> None:
    offers, _ = noisy(5, 6)
    schedule = TableSchedule(DenseOracle(offers, precision="single"), unwatched)
    latest, best = np.eye(4)[0], np.eye(4)[1]
    assert schedule.dual(latest, None) is latest
    assert schedule.dual(latest, best) == pytest.approx([0.5**0.5, 0.5**0.5, 0.0, 0.0])
    assert schedule.dual(latest, -latest) is latest  # nothing lies between opposites


def test_it_is_asked_when_the_search_has_come_to_a_halt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proving, "STALL_ROUNDS", 3)
    offers, data = noisy(5, 6)
    schedule = TableSchedule(DenseOracle(offers, precision="single"), unwatched)
    assert [schedule.is_due(value, 0.0) for value in (1.0, 0.99, 0.985)] == [False, False, True]
    assert schedule.is_due(0.95, 0.0) is False  # 0.04 nearer within three rounds
    assert schedule.is_due(0.949, 0.9) is False  # of 0.049 that are open, 0.036 were gained
    schedule(data)
    assert [schedule.is_due(0.9, 0.0) for _ in range(3)] == [False, False, True]


def test_it_is_not_asked_where_time_is_short() -> None:
    offers, data = noisy(5, 6)
    clock = Clock()
    watch = Deadline(10.0, clock=clock)
    schedule = TableSchedule(DenseOracle(offers, precision="single"), watch)
    for _ in range(proving.STALL_ROUNDS):
        schedule.is_due(1.0, 0.0)
    schedule.seconds = 4.0
    assert schedule.is_due(1.0, 0.0)
    clock.now = 5.5
    assert not schedule.is_due(1.0, 0.0)
    assert not watch.stopped  # asking how long there is cuts nothing short
    schedule(data)
    assert schedule.seconds < 4.0
    clock.now = 10.0
    table = DenseOracle(offers, precision="single")
    late, early = (Prover(L2(offers), Target(data), table, watch) for watch in (watch, unwatched))
    assert (late.table, late.searching, early.searching) == (None, proving.SEARCH_TIME_SHARE, 1.0)


def test_tables_only_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    offers, _ = noisy(5, 6)
    assert choosing.proving_table(offers) is not None
    ordered = Assortments(offers.offers, offers.items, [(0, 1)])
    assert choosing.proving_table(ordered) is None
    many = Assortments([(k, (k + 1) % 32, (k + 5) % 32) for k in range(32)])
    assert choosing.proving_table(many) is None
    monkeypatch.setattr(choosing, "available_memory", lambda: 2.0 * table_bytes(1, 5, "single") - 1.0)
    assert choosing.proving_table(offers) is None


def test_seconds_left() -> None:
    clock = Clock()
    asked: list[int] = []
    watch = Deadline(10.0, asked, clock=clock)
    clock.now = 2.0
    assert (seconds_left(watch), seconds_left(watch, 0.5), seconds_left(until(watch, 0.5))) == (8.0, 3.0, 3.0)
    assert seconds_left(until(until(watch, 0.5), 0.8)) == 2.0
    assert seconds_left(unwatched) == np.inf
    asked.append(2)
    assert seconds_left(watch) == 0.0


def test_an_offer_without_weight_has_no_part_in_the_dual() -> None:
    offers, data = noisy()
    weights = np.ones(offers.n_offers)
    weights[0] = 0.0
    prover = Prover(L2(offers, weights=tuple(weights.tolist())), Target(data), None)
    prover.begin()
    dual, lower = prover.proven()
    assert lower > 0.0
    assert dual is not None
    assert np.linalg.norm(dual) == pytest.approx(1.0)
    assert not dual[offers.owner == 0].any()


def test_the_rankings_of_a_table_are_taken() -> None:
    offers, data = noisy()
    norm, target, oracle = L2(offers), Target(data), SearchOracle(offers)
    prover = Prover(norm, target, DenseOracle(offers, precision="single"))
    search = ColumnSearch(norm, target, ColumnFinder(oracle, offers), Goal("gap", 0.0), 1, prover=prover)
    nearest = NearestMixture(offers, data, np.ones(offers.n_offers))
    nearest.take(np.arange(offers.n_items)[np.newaxis])
    before = nearest.squared_distance
    assert prover.table is not None
    assert search._query(prover.table, nearest, norm)
    assert nearest.count > 1
    assert nearest.squared_distance < before
    assert search.lower < nearest.squared_distance**0.5
