"""A turn of the learner by a clock that is told: how many records at a time, and what becomes of a refresh."""

from concurrent.futures import Future
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from rankstream.service.processes import learner
from rankstream.service.processes.learner import FollowedMarket, LogLearner

pytestmark = pytest.mark.quick
BATCH_RECORDS: int = vars(learner)["BATCH_RECORDS"]


def refreshed(result: Any, is_saved: bool) -> tuple[list[Any], bool, list[str]]:
    """What a market takes over from a refresh with this result, whether it is saved, and what is noted."""
    taken: list[Any] = []
    followed: Any = FollowedMarket(SimpleNamespace(take=taken.append), 1, is_saved=is_saved)  # type: ignore[arg-type]
    future: Future[Any] = Future()
    future.set_exception(result) if isinstance(result, Exception) else future.set_result(result)
    one: Any = LogLearner.__new__(LogLearner)
    one._refreshing, one._weighing_rests = (7, followed, future, None), 0.0
    notes: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learner, "note", lambda text, **_: notes.append(text))
        one._take_refreshed()
    assert one._refreshing is None
    return taken, followed.is_saved, notes


@pytest.mark.parametrize("is_saved", [False, True])
def test_a_refresh_is_taken_over_or_noted(is_saved: bool) -> None:
    assert refreshed("a model", is_saved) == (["a model"], False, [])
    for failure in (None, ValueError("no")):
        assert refreshed(failure, is_saved) == ([None], is_saved, ["a model could not be refreshed"])


def test_a_refresh_that_runs_is_left_alone() -> None:
    one: Any = LogLearner.__new__(LogLearner)
    running: Any = (7, None, Future(), None)
    one._refreshing = running
    one._take_refreshed()
    assert one._refreshing is running


class Live:
    """A model that takes some seconds for each batch."""

    def __init__(self, clock: Any, seconds: float) -> None:
        self.clock, self.takes, self.position, self.live = clock, seconds, 0, SimpleNamespace(effort=1.0)

    def observe(self, records: list[Any], position: int, arrived: float) -> None:
        assert arrived == 5.0
        self.clock.now += self.takes
        self.position = position


def turn(
    monkeypatch: pytest.MonkeyPatch, seconds: float, waiting: int, lasts: float = 1.0
) -> tuple[list[int], Any, Any]:
    """How many records were asked for at a time in a turn, the market, and the model."""
    clock: Any = SimpleNamespace(now=100.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(learner, "time", clock)
    asked: list[int] = []

    def batches(_: Any, market: int, position: int, _offers: Any, chunk: int) -> list[Any]:
        assert market == 3
        asked.append(chunk)
        return [SimpleNamespace(records=["r"], position=min(waiting, position + chunk), arrived=5.0)]

    monkeypatch.setattr(learner, "log", SimpleNamespace(batches_after=batches))
    live = Live(clock, seconds)
    followed: Any = FollowedMarket(live, 1)  # type: ignore[arg-type]
    one: Any = LogLearner.__new__(LogLearner)
    one.log, one.stop = None, Event()
    one._learn(followed, SimpleNamespace(id=3, records=waiting), lasts)
    return asked, followed, live


def test_quick_batches_grow_and_slow_ones_shrink(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, followed, live = turn(monkeypatch, 1e-4, 10 * BATCH_RECORDS)
    assert asked[0] == BATCH_RECORDS
    assert (followed.seconds, live.live.effort, followed.is_saved) == (1e-3, 1.0, False)
    assert live.position == 10 * BATCH_RECORDS
    for number in (1, 2, 100):  # twice as many after each, up to a limit
        followed = turn(monkeypatch, 1e-4, number * BATCH_RECORDS)[1]
        assert followed.chunk == min(vars(learner)["MAX_RECORDS_AT_ONCE"], 2**number * BATCH_RECORDS)
    asked, followed, live = turn(monkeypatch, 4.0, 10 * BATCH_RECORDS)
    assert asked == [BATCH_RECORDS]  # the turn is over
    assert followed.seconds == pytest.approx(4.0)
    assert live.live.effort == pytest.approx(max(learner.MIN_EFFORT, 0.25))
    assert followed.chunk == (BATCH_RECORDS // 2 if learner.SLOW_SECONDS < 4.0 else 2 * BATCH_RECORDS)
    assert followed.rests_until == pytest.approx(108.0 if learner.EVERY < 4.0 else 0.0)
