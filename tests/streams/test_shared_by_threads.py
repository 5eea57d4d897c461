"""What several threads may share: a live model, a model that is asked, and a client; and what each needs of its own."""

import copy
import pickle
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import httpx
import numpy as np
import pytest

import strategies
from rankstream import Assortments, ChoiceCounts, Live, Record, Solver, distances, learners, oracles
from rankstream.data import simulate
from rankstream.models.entropy import model as entropy_model
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.entropy.ranking_laws import plackett_luce
from rankstream.service.client import Client
from waits import LONG

THREADS = 4
ITEMS = ("tea", "pie", "cake", "rum", "soup", "nothing")


@pytest.fixture(autouse=True)
def often_interrupted() -> Iterator[None]:
    """Let threads take turns a thousand times as often as they do otherwise."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """Run ``work(number)`` on all threads at the same time; what each returned."""
    start = Barrier(THREADS)

    def begin(number: int) -> Any:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


def counted(live: Live) -> float:
    """How many choices a live model has counted."""
    return 0 if live.counts is None else live.counts.observations


@pytest.mark.parametrize("settings", [{}, {"half_life": 200.0}, {"detect": True}])
def test_a_live_model_loses_nothing(settings: dict[str, Any], tmp_path: Path) -> None:
    live, batches = Live(rounds=2, publish="sparse", **settings), 6

    def work(number: int) -> None:
        random = np.random.default_rng(number)
        for _ in range(batches):
            offers = [tuple(random.permutation(ITEMS)[: random.integers(2, 6)].tolist()) for _ in range(20)]
            live.observe([Record(offer, offer[0]) for offer in offers])
            if live.ready:
                assert live.certificate.gap >= 0.0
                assert sum(live.model.predict(ITEMS[:3]).values()) == pytest.approx(1.0)
        live.save(tmp_path / f"{number}.npz")

    at_once(work)
    assert live.records == THREADS * batches * 20
    if live.detector is not None:
        assert live.detector.records + live.waiting == live.records
    elif "half_life" not in settings:
        assert counted(live) == live.records
    for path in tmp_path.iterdir():
        saved = Live.load(path)
        assert saved.records % 20 == 0


def test_a_lock_is_held_while_several_things_are_read() -> None:
    live = Live(rounds=2, publish="sparse")
    live.observe(Record(("tea", "pie"), "tea"))

    def work(number: int) -> bool:
        if number:
            for _ in range(20):
                live.observe(Record(("tea", "pie"), "tea"))
            return True
        same = []
        for _ in range(20):
            with live.lock:
                same.append(live.records == counted(live))
        return all(same)

    assert all(at_once(work))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda live: pickle.loads(pickle.dumps(live))])
def test_a_copy_of_a_live_model_has_a_lock_of_its_own(copied: Callable[[Live], Live]) -> None:
    live = Live(publish="sparse")
    live.observe(Record(("tea", "pie"), "tea", 3))
    other = copied(live)
    with live.lock, ThreadPoolExecutor(1) as pool:
        pool.submit(other.observe, Record(("tea", "pie"), "pie")).result(timeout=LONG)
    assert (live.records, other.records) == (1, 2)
    assert other.model.predict(("tea", "pie"))["tea"] < 1.0


def test_a_model_is_asked_by_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entropy_model, "MAX_REMEMBERED_ANSWERS", 5)  # so that answers are thrown away again and again
    fitted = Assortments([ITEMS, ITEMS[:3]])
    duals = np.linspace(-1.0, 1.0, fitted.n_coordinates)

    def make() -> EntropyModel:
        return EntropyModel(plackett_luce(ITEMS, np.arange(1.0, 7.0)), fitted, duals)

    shared, random = make(), np.random.default_rng(0)
    offers = [tuple(random.permutation(ITEMS)[: 2 + k % 4].tolist()) for k in range(40)]
    expected = [make().predict(offer) for offer in offers]

    def work(number: int) -> list[dict[Any, float]]:
        order = np.random.default_rng(number).permutation(len(offers)).tolist()
        answers = {place: shared.predict(offers[place]) for place in order}
        return [answers[place] for place in range(len(offers))]

    for answers in at_once(work):
        for found, wanted in zip(answers, expected, strict=True):
            assert found == pytest.approx(wanted, abs=1e-12)


@strategies.compiled_only
def test_solvers_of_their_own_do_not_disturb_each_other() -> None:
    market = simulate.market(3, n_items=8, n_offers=15, n_test=5)
    offers, shares = market.assortments, market.frequencies()

    def work(_: int) -> bytes:
        solver = Solver(offers, distances.L2(offers), learners.DualAveraging(), oracles.auto(offers))
        state = solver.init()
        for _ in range(60):
            state = solver.step(state, shares)
        return bytes(state.sums.vertex.tobytes())

    assert {*at_once(work)} == {work(0)}


def test_counts_of_their_own_add_up() -> None:
    offers = simulate.market(3, n_items=8, n_offers=15, n_test=5).assortments
    shared = np.random.default_rng(0).integers(0, offers.n_coordinates, (THREADS, 50, 20))

    def work(number: int) -> ChoiceCounts:
        counts = ChoiceCounts(offers)
        for batch in shared[number]:
            counts.observe_coordinates(batch)
        return counts

    parts = at_once(work)
    whole = sum(parts[1:], parts[0])
    assert whole.tallies.tolist() == np.bincount(shared.ravel(), minlength=offers.n_coordinates).tolist()


def test_a_client_is_shared_by_several_threads() -> None:
    keys: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["Idempotency-Key"])
        return httpx.Response(202, json={"position": int(request.url.path.split("/")[-2].removeprefix("m"))})

    with Client("http://127.0.0.1:1", transport=httpx.MockTransport(answer)) as client:
        records = {"offered": ["tea", "pie"], "chosen": "tea"}
        found = at_once(lambda number: {client.send(f"m{number}", records) for _ in range(30)})
    assert found == [{number} for number in range(THREADS)]
    assert len(set(keys)) == len(keys) == 30 * THREADS
