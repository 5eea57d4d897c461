import numpy as np
import pytest

from rankstream import Assortments
from rankstream._core.types import Vec
from rankstream._core.watch import Deadline, seconds_left, until, unwatched
from rankstream.columns import corrective, proving
from rankstream.columns.proving import TableProver, table_prover
from rankstream.distances import L2
from rankstream.oracles import DenseOracle, SearchOracle, choosing
from rankstream.oracles.dense import table_bytes


class Clock:
    """A clock that stands still unless it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search halts after three rounds instead of many."""
    monkeypatch.setattr(proving, "STALLED", 3)
    return


def noisy(n: int = 9, m: int = 60, seed: int = 0) -> tuple[Assortments, Vec]:
    """Offers of four of n items and no-choice, with frequencies that no model meets."""
    random = np.random.default_rng(seed)
    offers = Assortments([(*random.choice(n - 1, 4, replace=False).tolist(), n - 1) for _ in range(m)], range(n))
    return offers, random.dirichlet(np.ones(5), m).ravel()


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("weights", [None, tuple(1.0 + np.arange(60.0) % 3)])
def test_a_table_proves_what_a_search_cannot(weights: tuple[float, ...] | None) -> None:
    offers, data = noisy()
    norm = L2(offers, weights=weights)
    least = corrective.fit_nearest(offers, data, norm, DenseOracle(offers), tolerance=1e-9).certificate
    plain, proven = (
        corrective.fit_nearest(
            offers,
            data,
            norm,
            SearchOracle(offers, states=2),
            tolerance=1e-4 * least.upper,
            max_rounds=400,
            prove=prove,
        )
        for prove in (False, True)
    )
    assert plain.certificate.lower < 0.9 * least.upper
    assert 0.999 * least.upper <= proven.certificate.lower <= least.upper + 1e-12
    assert proven.converged
    assert proven.certificate.upper >= least.lower - 1e-12


def test_the_next_dual_lies_between_the_latest_and_the_best() -> None:
    offers, _ = noisy(5, 6)
    prover = TableProver(DenseOracle(offers, precision="single"), unwatched)
    latest, best = np.eye(4)[0], np.eye(4)[1]
    assert prover.dual(latest, None) is latest
    assert prover.dual(latest, best) == pytest.approx([0.5**0.5, 0.5**0.5, 0.0, 0.0])
    assert prover.dual(latest, -latest) is latest  # nothing lies between opposites


def test_it_is_asked_when_the_search_has_come_to_a_halt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proving, "STALLED", 3)
    offers, data = noisy(5, 6)
    prover = TableProver(DenseOracle(offers, precision="single"), unwatched)
    assert [prover.is_due(value, 0.0) for value in (1.0, 0.99, 0.985)] == [False, False, True]
    assert prover.is_due(0.95, 0.0) is False  # 0.04 nearer within three rounds
    assert prover.is_due(0.949, 0.9) is False  # of 0.049 that are open, 0.036 were gained
    prover(data)
    assert [prover.is_due(0.9, 0.0) for _ in range(3)] == [False, False, True]


def test_it_is_not_asked_where_time_is_short() -> None:
    offers, data = noisy(5, 6)
    clock = Clock()
    watch = Deadline(10.0, clock=clock)
    prover = TableProver(DenseOracle(offers, precision="single"), watch)
    for _ in range(proving.STALLED):
        prover.is_due(1.0, 0.0)
    prover.seconds = 4.0
    assert prover.is_due(1.0, 0.0)
    clock.now = 5.5
    assert not prover.is_due(1.0, 0.0)
    assert not watch.stopped  # asking how long there is cuts nothing short
    prover(data)
    assert prover.seconds < 4.0
    clock.now = 10.0
    assert table_prover(SearchOracle(offers), watch) is None


def test_tables_only_for_searches_and_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    offers, _ = noisy(5, 6)
    assert table_prover(DenseOracle(offers), unwatched) is None
    assert table_prover(SearchOracle(offers), unwatched) is not None
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
    assert seconds_left(lambda text, share=1.0: False) == np.inf  # noqa: ARG005
    asked.append(2)
    assert seconds_left(watch) == 0.0
