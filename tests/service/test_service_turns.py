"""The turns of the learner: who learns next, which models are refitted first, and which markets are in memory."""

import time
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from local_service import CAFE, CAKE, PIE, TEA, shop
from rankstream.service.processes import learner
from rankstream.service.processes.learner import LogLearner
from rankstream.streams import background
from rankstream.streams.background import BackgroundLive, RefreshJob, refreshed
from rankstream.streams.live import Record
from waits import LONG, wait_for

SPARSE = {"served": "sparse"}


@pytest.fixture(autouse=True)
def without_memory_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let markets stay in memory, however much of it earlier tests left in use."""
    monkeypatch.setattr(learner, "resident_memory", lambda: 0)


def test_a_slow_market_lets_others_have_their_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, turns = [1000.0], []
    real = BackgroundLive.observe

    def observe(learning: BackgroundLive, batch: Any, position: int, arrived: float) -> None:
        is_slow = len(batch[0].offered) == 3
        turns.append(("slow" if is_slow else "quick", len(batch)))
        clock[0] += 3.0 if is_slow else 0.01
        real(learning, batch, position, arrived)

    class Clock:
        monotonic, time = staticmethod(lambda: clock[0]), staticmethod(time.time)

    with shop(tmp_path) as opened:
        for market, record in (("a-slow", TEA), ("quick", CAKE)):
            opened.send(market, [record])
            opened.settle(market, **SPARSE)
        for _ in range(10):
            opened.send("a-slow", [TEA] * 200)
        one = LogLearner(tmp_path, refreshed)
        monkeypatch.setattr(BackgroundLive, "observe", observe)
        monkeypatch.setattr(learner, "time", Clock)
        for _ in range(8):
            clock[0] += 0.1
            opened.send("quick", [CAKE] * 5)
            one.step()
        assert [size for which, size in turns if which == "slow"] == [1001]  # in 3 seconds; now it waits for as long
        assert sum(size for which, size in turns if which == "quick") == 41
        clock[0] += 3.0
        opened.send("quick", [CAKE] * 5)
        one.step()
        assert [size for which, size in turns if which == "slow"] == [1001, 600]  # fewer records at a time
        one.step()
        one.step()
        one.close()
    assert sum(size for which, size in turns if which == "slow") == 2001  # nobody else waits


def test_all_that_waits_is_learned_in_one_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where batches take a time of their own, whatever their size, they become larger, and have fewer rounds."""
    clock, sizes, efforts = [1000.0], [], []
    real = BackgroundLive.observe

    def observe(learning: BackgroundLive, batch: Any, position: int, arrived: float) -> None:
        sizes.append(len(batch))
        efforts.append(learning.live.effort)
        clock[0] += 0.1 + learning.live.effort
        real(learning, batch, position, arrived)

    class Clock:
        monotonic, time = staticmethod(lambda: clock[0]), staticmethod(time.time)

    with shop(tmp_path) as opened:
        opened.send("cafe", [TEA])
        opened.settle("cafe", **SPARSE)
        one = LogLearner(tmp_path, refreshed)
        monkeypatch.setattr(BackgroundLive, "observe", observe)
        monkeypatch.setattr(learner, "time", Clock)
        for number in range(8):
            for _ in range(2**number):
                opened.send("cafe", [TEA] * 100)
            one.step(at_once=True)
            clock[0] += 10.0
        one.close()
    assert sizes == [101, *(100 * 2**number for number in range(1, 8))]  # 1,000 at a time would leave some over
    assert efforts[0] == 1.0
    assert efforts[-1] == pytest.approx(0.4, abs=0.05)  # 0.1 + 0.4 seconds are a turn


def test_proofs_wait_while_much_is_to_be_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proofs: list[str] = []

    def proven(*_: Any, **__: Any) -> None:
        proofs.append("made")

    monkeypatch.setattr("rankstream.streams.proofs.prove_lower_bound", proven)
    monkeypatch.setattr("rankstream.streams.proofs.MIN_PROVEN_SHARE", 2.0)  # rounds never prove enough
    monkeypatch.setattr(learner, "PROOF_REST", 1e9)
    with shop(tmp_path) as opened:
        one = LogLearner(tmp_path, refreshed)
        for number in range(3):
            for _ in range(3 ** (number + 1)):
                opened.send("cafe", CAFE * 10)
            opened.settle("cafe", **SPARSE)
            one.step(at_once=True)
        followed = one.markets[1].learning.live.proof
        assert (len(proofs), followed.is_owed) == (1, True)

        def proven_again() -> bool:
            one.step(at_once=True)
            return len(proofs) == 2

        wait_for(proven_again)  # once nothing is left to learn, which takes a busy machine several turns
        assert not followed.is_owed
        one.step(at_once=True)
        assert len(proofs) == 2
        one.close()


class Now:
    """The time of ``BackgroundLive``, which tests set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1000.0
        monkeypatch.setattr("rankstream.streams.background.time.time", lambda: self.seconds)


def teas(choices: float) -> list[Record]:
    return [Record(("tea", "pie"), "tea", choices)]


def test_an_old_model_is_fitted_again_once_enough_choices_came(monkeypatch: pytest.MonkeyPatch) -> None:
    now, learning = Now(monkeypatch), BackgroundLive({})
    learning.observe([Record(("tea", "pie"), "tea", 600), Record(("tea", "pie"), "pie", 300)], 2)
    learning.take(refreshed(learning.job()))  # type: ignore[arg-type]
    assert (learning.serves, learning.due, learning.is_stale) == ("max-entropy", None, False)
    learning.observe(teas(29), 3)
    now.seconds += 9.0
    learning.observe(teas(1), 4)  # the square root of 900 choices, but within 10 seconds
    assert learning.due is None
    now.seconds += 1.0
    assert learning.is_stale
    assert str(learning.due) == "again"
    learning.take(None)  # it failed, and is not tried again at once
    assert learning.due is None
    learning.observe(teas(1), 5, arrived=1005.0)
    job = learning.job()
    assert job is not None
    assert (job.how, learning.due) == ("again", None)
    learning.take(refreshed(job))
    assert (learning.known, learning.known_since) == (5, 1005.0)  # as old as its last record, not as its fit
    now.seconds += 100.0
    learning.observe(teas(30), 6)  # fewer than the root of 931
    assert learning.due is None


def test_old_models_go_before_better_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three markets, all due to be weighed anew, the old ones are fitted again first, the oldest of them first."""
    now, jobs, go_on = Now(monkeypatch), [], Event()

    def slow(job: RefreshJob) -> Any:
        jobs.append((job.how, job.counts.observations))
        go_on.wait(LONG)
        return refreshed(job)

    def settled() -> bool:
        one.step(at_once=True)
        return one._refreshing is None

    with shop(tmp_path) as opened:
        go_on.set()
        one = LogLearner(tmp_path, slow)
        for number, market in enumerate("abc"):
            now.seconds += 1.0
            opened.send(market, CAFE * (2 + number))
            wait_for(settled)
        go_on.clear()
        jobs.clear()
        for followed in one.markets.values():
            followed.learning.observe([Record(("tea", "pie", "nothing"), "tea", 500)], followed.learning.position)
        now.seconds += 60.0
        monkeypatch.setattr(one, "_weighing_rests", float("inf"))
        one.step(at_once=True)
        go_on.set()
        wait_for(lambda: one.step(at_once=True) or len(jobs) >= 6)
        assert [how for how, _ in jobs] == ["again"] * 3 + ["anew"] * 3
        assert [choices for _, choices in jobs[:3]] == [572.0, 608.0, 644.0]
        one.close()


def test_markets_leave_memory_where_it_is_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "resident_memory", lambda: 2.0 * learner.MAX_MEMORY)
    with shop(tmp_path) as opened:
        for market in ("a", "b", "c"):
            opened.send(market, [TEA])
            opened.settle(market, **SPARSE)
        one = LogLearner(tmp_path, refreshed)
        one.step(at_once=True)
        assert set(one.markets) == {3}
        one.close()
        assert [market["learned"] for market in opened.get("").json()["markets"]] == [1, 1, 1]


def test_every_market_gets_its_model_however_few_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "IN_MEMORY", 1)
    names = [f"market-{number}" for number in range(4)]
    with shop(tmp_path) as opened:
        for name in names:
            opened.send(name, CAFE * 2)
        opened.learn()
        assert [one["kind"] for one in opened.get("").json()["markets"]] == ["max-entropy"] * 4
        opened.settle(names[0], **SPARSE)
        opened.settle(names[0], served=None)
        one = LogLearner(tmp_path, lambda _: None)
        one.step(at_once=True)  # the learner ends before the model is there
        one.close()
        assert opened.get("").json()["markets"][0]["kind"] == "sparse"
        opened.learn()  # and the next one makes it, although no choices came
        assert opened.get("").json()["markets"][0]["kind"] == "max-entropy"


def test_few_markets_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "IN_MEMORY", 1)
    with shop(tmp_path) as opened:
        for market in ("a", "b", "c"):
            opened.send(market, [TEA])
            opened.settle(market, **SPARSE)
        one = LogLearner(tmp_path, refreshed)
        one.step(at_once=True)
        assert set(one.markets) == {3}
        opened.send("a", [PIE])
        one.step(at_once=True)
        one.close()
        assert opened.get("/a/certificate").json()["choices"] == 2.0


def test_a_market_that_outruns_its_model_is_not_refreshed(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = [Record(("tea", "pie"), "tea", 40), Record(("tea", "pie"), "pie", 20)]
    learning = BackgroundLive({})
    monkeypatch.setattr(background, "may_serve", lambda *_: False)
    learning.observe(batch, 2)
    assert learning.job() is None
    assert BackgroundLive.from_bytes(learning.to_bytes()).job() is None
    monkeypatch.undo()
    assert BackgroundLive.from_bytes(learning.to_bytes()).job() is not None
