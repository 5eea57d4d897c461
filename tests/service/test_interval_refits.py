"""When refits for intervals are started, what is remembered of them, and what is said meanwhile."""

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from rankstream.service import intervals
from rankstream.service.intervals import GIVEN_UP, NOT_YET, REFIT_PAUSE, RETRY_SECONDS, Intervals
from rankstream.service.limits import RefusedError

pytestmark = pytest.mark.quick
ROW: Any = SimpleNamespace(id=7)
OFFERS: list[tuple[Any, ...]] = [("tea", "pie")]


class Service:
    """As much of a service as intervals need: it writes down what it is asked."""

    def __init__(self) -> None:
        self.refitting, self.asked = "refitting", list[dict[str, Any]]()
        self.refuse: dict[str, RefusedError] = {}
        self.digest = "first"
        self.published = SimpleNamespace(of=lambda _: None if self.digest == "" else self.model)

    @property
    def model(self) -> Any:
        return SimpleNamespace(digest=self.digest, facts={"position": 1234})

    async def ask(self, _: Any, question: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(question)
        if question["kind"] in self.refuse:
            raise self.refuse[question["kind"]]
        return {"position": 1234, "ends": question.get("offers")}

    @property
    def kinds(self) -> list[str]:
        kinds = [question["kind"] for question in self.asked]
        self.asked.clear()
        return kinds


class Clock:
    now = 5000.0

    def monotonic(self) -> float:
        return self.now


def run(
    monkeypatch: pytest.MonkeyPatch, story: Callable[[Service, Intervals, Clock], Coroutine[Any, Any, None]]
) -> None:
    clock, service = Clock(), Service()
    monkeypatch.setattr(intervals, "time", clock)
    made: Any = Intervals(service)  # type: ignore[arg-type]
    asyncio.run(story(service, made, clock))


def test_a_refit_comes_first_and_ends_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(service: Service, found: Intervals, _clock: Clock) -> None:
        assert await found.of(ROW, service.model, OFFERS) == (None, NOT_YET)
        assert service.asked == [{"kind": "refit", "market": 7, "digest": "first", "position": 1234}]
        service.asked.clear()
        ends, origin = await found.of(ROW, service.model, OFFERS, 0.9, {"tea": 2.0, "pie": 1.0})
        assert ends is not None
        assert service.asked == [
            {
                "kind": "interval",
                "market": 7,
                "level": 0.9,
                "offers": (("tea", "pie"),),
                "margins": (("pie", 1.0), ("tea", 2.0)),
            }
        ]
        assert origin == "from refits of the model at record 1,234"
        service.asked.clear()
        again, _ = await found.of(ROW, service.model, OFFERS, 0.9, {"tea": 2.0, "pie": 1.0})
        assert again is ends
        assert service.kinds == []  # it is remembered
        await found.of(ROW, service.model, OFFERS, 0.95)
        assert service.kinds == ["interval"]  # another level is another question

    run(monkeypatch, story)


def test_a_new_model_is_refitted_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(service: Service, found: Intervals, clock: Clock) -> None:
        for _ in range(2):
            await found.of(ROW, service.model, OFFERS)
        assert service.kinds == ["refit", "interval"]
        service.digest = "second"
        clock.now += REFIT_PAUSE
        assert (await found.of(ROW, service.model, [("pie",)]))[0] is not None  # from the refits of the first
        assert service.kinds == ["interval"]
        clock.now += 0.1
        assert (await found.of(ROW, service.model, [("pie",)]))[0] is not None  # known, so that nothing is asked
        assert service.kinds == []
        assert await found.of(ROW, service.model, [("tea",)]) == (None, NOT_YET)
        assert service.kinds == ["refit"]
        assert (await found.of(ROW, service.model, [("pie",)]))[0] is not None  # asked again: other refits
        assert service.kinds == ["interval"]

    run(monkeypatch, story)


def test_refits_that_took_too_long_are_tried_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(service: Service, found: Intervals, clock: Clock) -> None:
        service.refuse["refit"] = RefusedError(503, "busy")
        assert await found.of(ROW, service.model, OFFERS) == (None, GIVEN_UP)
        assert service.kinds == ["refit"]
        clock.now += RETRY_SECONDS
        assert await found.of(ROW, service.model, OFFERS) == (None, GIVEN_UP)
        assert service.kinds == []
        clock.now += 0.1
        assert await found.of(ROW, service.model, OFFERS) == (None, GIVEN_UP)
        assert service.kinds == ["refit"]
        service.digest, service.refuse = "second", {}
        clock.now += REFIT_PAUSE + 0.1
        assert await found.of(ROW, service.model, OFFERS) == (None, NOT_YET)  # a new model need not wait as long
        assert service.kinds == ["refit"]

    run(monkeypatch, story)


def test_a_reason_of_the_model_is_said_and_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(service: Service, found: Intervals, clock: Clock) -> None:
        service.refuse["refit"] = RefusedError(409, "fractional counts")
        assert await found.of(ROW, service.model, OFFERS) == (None, "fractional counts")
        clock.now += 10 * RETRY_SECONDS
        assert await found.of(ROW, service.model, OFFERS) == (None, "fractional counts")
        assert service.kinds == ["refit"]

    run(monkeypatch, story)


def test_a_model_that_was_replaced_is_refitted_at_the_next_question(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(service: Service, found: Intervals, _clock: Clock) -> None:
        old = service.model
        service.refuse["refit"], service.digest = RefusedError(404, "replaced"), "second"
        assert await found.of(ROW, old, OFFERS) == (None, NOT_YET)
        service.refuse.clear()
        await found.of(ROW, service.model, OFFERS)
        assert [question["digest"] for question in service.asked] == ["first", "second"]

    run(monkeypatch, story)


def test_ends_that_cannot_be_had_start_other_refits(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(service: Service, found: Intervals, _clock: Clock) -> None:
        await found.of(ROW, service.model, OFFERS)
        service.refuse["interval"] = RefusedError(404, "restarted")
        assert await found.of(ROW, service.model, OFFERS) == (None, NOT_YET)
        assert await found.of(ROW, service.model, OFFERS) == (None, NOT_YET)
        assert service.kinds == ["refit", "interval", "refit"]

    run(monkeypatch, story)


def test_a_thousand_questions_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(service: Service, found: Intervals, _clock: Clock) -> None:
        monkeypatch.setattr(intervals, "MAX_REMEMBERED", 2)
        for offer in (("a",), ("a",), ("b",), ("a",)):
            await found.of(ROW, service.model, [offer])
        assert service.kinds == ["refit", "interval", "interval"]
        await found.of(ROW, service.model, [("c",)])
        await found.of(ROW, service.model, [("a",)])
        assert service.kinds == ["interval", "interval"]  # forgotten with all others

    run(monkeypatch, story)


def test_one_question_at_a_time_and_nobody_waits_long(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(service: Service, found: Intervals, _clock: Clock) -> None:
        release = asyncio.Event()

        async def slowly(_: Any, question: dict[str, Any]) -> dict[str, Any]:
            service.asked.append(question)
            await release.wait()
            return {"position": 1}

        monkeypatch.setattr(service, "ask", slowly)
        monkeypatch.setattr(intervals, "MAX_WAIT_SECONDS", 0.01)
        assert await found.of(ROW, service.model, OFFERS) == (None, NOT_YET)
        assert await found.of(ROW, service.model, [("a",)]) == (None, NOT_YET)
        assert service.kinds == ["refit"]
        release.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (await found.of(ROW, service.model, [("a",)]))[0] is not None

    run(monkeypatch, story)
