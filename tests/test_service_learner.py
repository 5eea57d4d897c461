"""The learner: every record counts once, whatever ends when; and the processes that do the work."""

import sqlite3
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from rankstream.service import learner, store
from rankstream.service.folder import purge
from rankstream.service.learner import LogLearner, learn
from rankstream.streams import background
from rankstream.streams.background import BackgroundLive, RefreshJob, refreshed
from rankstream.streams.live import Record
from serving import CAFE, CAKE, NONE, PIE, TEA, Shop, shop, wait_for

SPARSE = {"served": "sparse"}


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
        monkeypatch.setattr(one, "_save_all", lambda: None)  # killed before it could save
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
        before = store.learned(one.store, 1)
        one.store.execute("CREATE TRIGGER full BEFORE INSERT ON served BEGIN SELECT raise(ABORT, 'disk'); END")
        opened.send("cafe", [CAKE])
        with pytest.raises(sqlite3.DatabaseError):
            one.step(at_once=True)
        assert store.learned(one.store, 1) == before
        one.store.execute("DROP TRIGGER full")
        one.step(at_once=True)  # what it has in memory was not lost
        after = store.learned(one.store, 1)
        assert after is not None
        assert after.position == len(CAFE) + 1
        assert BackgroundLive.from_bytes(after.state).live.records == len(CAFE) + 1
        one.close()


def test_the_best_predictor_is_made_in_the_background(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", CAFE * 2)
        opened.settle("cafe", seed=1)
        go_on = Event()

        def slow(job: RefreshJob) -> Any:
            go_on.wait(20)
            return refreshed(job)

        one = LogLearner(tmp_path, slow)
        one.step(at_once=True)
        assert one.is_refreshing
        assert opened.get("/cafe/certificate").json()["model"]["kind"] == "sparse"
        opened.send("cafe", [TEA] * 3)
        one.step(at_once=True)  # learning does not wait
        assert facts(opened) == (75, 75)
        go_on.set()
        wait_for(lambda: not one.is_refreshing or one.step(at_once=True))
        one.step(at_once=True)
        model = opened.get("/cafe/certificate").json()["model"]
        assert (model["kind"], model["position"], model["learned"]) == ("max-entropy", 72, 75)
        one.close()
        kept = store.learned(opened.service.published.connection, 1)
        assert kept is not None
        assert BackgroundLive.from_bytes(kept.state).serves == "max-entropy"


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
        assert (len(asked), one.is_refreshing) == (1, False)
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
        assert opened.get("/cafe/certificate").status_code == 409  # no block of 50 choices yet
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
        assert '"a market cannot be learned", "market": 1, "kind": "KeyError"' in capsys.readouterr().err


def test_every_market_gets_its_model_however_few_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "IN_MEMORY", 1)
    names = [f"market-{number}" for number in range(4)]
    with shop(tmp_path) as opened:
        for name in names:
            opened.send(name, CAFE * 2)
        opened.learn()
        assert [one["kind"] for one in opened.get("").json()["markets"]] == ["max-entropy"] * 4
        opened.settle(names[0], **SPARSE)
        opened.settle(names[0])
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


def test_a_market_that_outruns_its_model_is_not_refreshed(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = [Record(("tea", "pie"), "tea", 40), Record(("tea", "pie"), "pie", 20)]
    learning = BackgroundLive({})
    monkeypatch.setattr(background, "may_serve", lambda *_: False)
    learning.observe(batch, 2)
    assert learning.job() is None
    assert BackgroundLive.from_bytes(learning.to_bytes()).job() is None
    monkeypatch.undo()
    assert BackgroundLive.from_bytes(learning.to_bytes()).job() is not None
