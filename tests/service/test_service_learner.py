"""The learner: every record counts once, whatever ends when; and the processes that do the work."""

import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from local_service import CAFE, CAKE, NONE, PIE, TEA, Shop, shop
from rankstream.service.processes import learner
from rankstream.service.processes.learner import LogLearner, learn
from rankstream.service.storage import states as store
from rankstream.service.storage.maintenance import purge
from rankstream.streams.background import BackgroundLive, RefreshJob, refreshed
from waits import LONG, wait_for

SPARSE = {"served": "sparse"}


@pytest.fixture(autouse=True)
def without_memory_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let markets stay in memory, however much of it earlier tests left in use."""
    monkeypatch.setattr(learner, "resident_memory", lambda: 0)


def facts(opened: Shop) -> tuple[int, int]:
    one = opened.get("").json()["markets"][0]
    return one["records"], one["learned"]


def test_it_goes_on_behind_the_last_record_that_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", CAFE)
        opened.settle("cafe", **SPARSE)
        opened.learn()
        opened.send("cafe", [TEA] * 5)
        one = LogLearner(tmp_path, refreshed)
        monkeypatch.setattr(one, "_save", lambda *_: None)  # killed before it could save
        one.step(at_once=True)
        assert one.markets[1].learning.position == len(CAFE) + 5
        one.close()
        assert facts(opened) == (len(CAFE) + 5, len(CAFE))
        opened.learn()
        assert facts(opened) == (len(CAFE) + 5, len(CAFE) + 5)
        proven = opened.get("/cafe/certificate").json()
        assert (proven["choices"], proven["model"]["position"]) == (len(CAFE) + 5, len(CAFE) + 5)


def test_state_and_position_are_one_transaction(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", CAFE)
        opened.settle("cafe", **SPARSE)
        opened.learn()
        one = LogLearner(tmp_path, refreshed)
        before = store.load_market(one.store, 1)
        one.store.execute("CREATE TRIGGER full BEFORE INSERT ON served BEGIN SELECT raise(ABORT, 'disk'); END")
        opened.send("cafe", [CAKE])
        with pytest.raises(sqlite3.DatabaseError):
            one.step(at_once=True)
        assert store.load_market(one.store, 1) == before
        one.store.execute("DROP TRIGGER full")
        one.step(at_once=True)  # what it has in memory was not lost
        after = store.load_market(one.store, 1)
        assert after is not None
        assert after.position == len(CAFE) + 1
        assert BackgroundLive.from_bytes(after.state).live.records == len(CAFE) + 1
        one.close()


def test_what_was_learned_of_a_purged_market_goes_with_the_next_step(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        for market in ("cafe", "bar"):
            opened.send(market, [TEA])
            opened.settle(market, **SPARSE)
        opened.learn()
        with closing(LogLearner(tmp_path, refreshed)) as one:
            assert store.positions(one.store).keys() == {1, 2}
            one.log.execute("DELETE FROM markets WHERE name = 'bar'")
            one.step()
            assert store.positions(one.store).keys() == {1}


def test_the_best_predictor_is_made_in_the_background(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", CAFE * 2)
        opened.settle("cafe", seed=1)
        go_on = Event()

        def slow(job: RefreshJob) -> Any:
            go_on.wait(LONG)
            return refreshed(job)

        one = LogLearner(tmp_path, slow)
        one.step(at_once=True)
        assert one._refreshing is not None
        assert opened.get("/cafe/certificate").json()["model"]["kind"] == "sparse"
        opened.send("cafe", [TEA] * 3)
        one.step(at_once=True)  # learning does not wait
        assert facts(opened) == (75, 75)
        assert opened.get("/cafe/certificate").json()["model"]["position"] == 75
        go_on.set()
        seen = []

        def is_better() -> bool:
            one.step(at_once=True)
            seen.append(opened.get("/cafe/certificate").json()["model"])
            return bool(seen[-1]["kind"] == "max-entropy")

        wait_for(is_better)
        # the first one knew 72 records, fewer than the sparse model that was given out: it had to catch up
        assert (seen[-1]["position"], seen[-1]["learned"]) == (75, 75)
        assert {model["position"] for model in seen} == {75}
        one.close()
        kept = store.load_market(opened.service.published.connection, 1)
        assert kept is not None
        assert BackgroundLive.from_bytes(kept.state).serves == "max-entropy"


def test_nothing_newer_is_given_out_while_a_model_catches_up(tmp_path: Path) -> None:
    """Otherwise a market that never rests would never get its best predictor."""
    with shop(tmp_path) as opened:
        opened.send("cafe", CAFE * 2)
        jobs: list[RefreshJob] = []
        turns = [Event(), Event()]

        def slow(job: RefreshJob) -> Any:
            jobs.append(job)
            if len(jobs) <= len(turns):
                turns[len(jobs) - 1].wait(LONG)
            return refreshed(job)

        def model() -> tuple[str, int, int]:
            found = opened.get("/cafe/certificate").json()["model"]
            return found["kind"], found["position"], found["learned"]

        one = LogLearner(tmp_path, slow)
        one.step(at_once=True)
        opened.send("cafe", [TEA] * 3)
        one.step(at_once=True)
        turns[0].set()
        wait_for(lambda: one.step(at_once=True) or len(jobs) == 2)
        assert (jobs[1].how, model()) == ("again", ("sparse", 75, 75))
        opened.send("cafe", [TEA] * 4)
        one.step(at_once=True)
        assert model() == ("sparse", 75, 79)  # it learns, and waits
        turns[1].set()
        wait_for(lambda: one.step(at_once=True) or model()[0] == "max-entropy")
        assert model() == ("max-entropy", 75, 79)
        one.close()


def test_an_older_model_never_replaces_a_newer_one(tmp_path: Path) -> None:
    with closing(store.open_store(tmp_path)) as kept:
        state = store.Learned(1, 5000, b"")

        def served(position: int, epoch: int = 1, model: str = "") -> int:
            facts = {"position": position}
            store.save_market(kept, 1, state._replace(epoch=epoch), model or f"model {position}", facts)
            return int(store.published_models(kept)[1].facts["position"])

        assert [served(3550), served(350), served(3551)] == [3550, 3550, 3551]
        assert served(10, model="model 3551") == 3551  # the same text, learned again from fewer
        assert served(5, epoch=2) == 5  # other settings
        store.forget(kept, 1)
        assert served(1) == 1


def test_a_refresh_that_fails_is_made_again_with_the_next_choices(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", CAFE * 2)
        asked: list[RefreshJob] = []

        def failing(job: RefreshJob) -> Any:
            asked.append(job)
            raise ChildProcessError("It died.")

        one = LogLearner(tmp_path, failing)
        one.step(at_once=True)
        wait_for(lambda: one._refreshing is None or one._refreshing[2].done())
        one.step(at_once=True)
        assert (len(asked), one._refreshing) == (1, None)
        opened.send("cafe", [TEA])
        one.step(at_once=True)
        wait_for(lambda: len(asked) == 2)
        one.close()


def test_other_settings_learn_everything_again(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", CAFE)
        opened.settle("cafe", **SPARSE)
        opened.learn()
        assert opened.settle("cafe", window=10, **SPARSE).json()["window"] == 10
        assert facts(opened) == (len(CAFE), 0)
        assert opened.post("/cafe/predict", {"offers": [["tea", "pie"]]}).status_code == 200  # by the model before
        opened.learn()
        assert facts(opened) == (len(CAFE), len(CAFE))
        assert opened.get("/cafe/certificate").json()["choices"] == 10.0
        same = opened.settle("cafe", window=10, **SPARSE)
        assert same.status_code == 200
        assert facts(opened) == (len(CAFE), len(CAFE))


def test_changes_are_noticed_where_that_is_set(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", [{**TEA, "count": 10}])
        opened.settle("cafe", detect=True, **SPARSE)
        opened.learn()
        assert opened.get("/cafe/certificate").json()["alarms"] == []
        opened.send("cafe", [{**TEA, "count": 700}, {**PIE, "count": 700}])
        opened.learn()
        assert opened.get("/cafe/certificate").json()["alarms"]


def test_a_purged_market_is_forgotten(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        for market in ("cafe", "bar"):
            opened.send(market, CAFE)
            opened.settle(market, **SPARSE)
            opened.send(market, [TEA])
        one = LogLearner(tmp_path, refreshed)
        one.step(at_once=True)
        assert purge(tmp_path, "cafe") == len(CAFE) + 1
        one.step(at_once=True)
        assert set(one.markets) == {2}
        one.close()
        assert [market["market"] for market in opened.get("").json()["markets"]] == ["bar"]
        assert opened.get("/cafe/certificate").status_code == 404
        assert opened.send("cafe", [NONE]).json()["position"] == 1  # a new market of the same name
        opened.learn()
        assert opened.get("/cafe/certificate").json()["choices"] == 1.0


def test_what_is_wrong_with_one_market_keeps_no_other_from_learning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with shop(tmp_path) as opened:
        for market in ("bad", "good"):
            opened.send(market, [TEA])
            opened.settle(market, **SPARSE)
        opened.service.writer.submit(
            lambda c: c.execute("UPDATE batches SET body = '[[9,9]]' WHERE market = 1")
        ).result()
        one = LogLearner(tmp_path, refreshed)
        one.step(at_once=True)
        assert not one.step(at_once=True)
        one.close()
        found = {market["market"]: market["learned"] for market in opened.get("").json()["markets"]}
        assert found == {"bad": 0, "good": 1}
        assert '"a market cannot be learned", "market": 1, "kind": "DamagedBatchError"' in capsys.readouterr().err


def test_it_follows_until_it_is_stopped(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", CAFE)
        opened.settle("cafe", **SPARSE)
        stop = Event()
        first, second = (Thread(target=learn, args=(tmp_path, refreshed, stop)) for _ in range(2))
        first.start()
        wait_for(lambda: facts(opened) == (len(CAFE), len(CAFE)))
        second.start()  # waits for the first
        opened.send("cafe", [TEA])
        wait_for(lambda: facts(opened) == (len(CAFE) + 1, len(CAFE) + 1))
        stop.set()
        first.join()
        second.join()


def test_a_disk_that_is_full_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", [TEA])
        stop, tried = Event(), []

        def full(_: LogLearner) -> bool:
            tried.append(1)
            if len(tried) > 1:
                stop.set()
            raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(LogLearner, "step", full)
        learn(tmp_path, refreshed, stop)
        assert len(tried) == 2


def test_zero_choices_are_no_model_and_no_harm(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", [{**TEA, "count": 0}])
        opened.learn()
        opened.send("cafe", [TEA])
        opened.learn()
        assert facts(opened) == (2, 2)
        assert opened.get("/cafe/certificate").json()["choices"] == 1.0


@pytest.mark.parametrize("change", ["SET state = x'00ff'", "SET position = 1000", "SET epoch = 99"])
def test_a_state_that_does_not_fit_the_log_is_learned_again(tmp_path: Path, change: str) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", CAFE)
        opened.settle("cafe", **SPARSE)
        opened.learn()
        opened.send("cafe", [TEA])
        one = LogLearner(tmp_path, refreshed)
        one.store.execute(f"UPDATE learned {change}")
        one.step(at_once=True)
        one.close()
        assert facts(opened) == (len(CAFE) + 1, len(CAFE) + 1)
        assert opened.get("/cafe/certificate").json()["choices"] == len(CAFE) + 1
