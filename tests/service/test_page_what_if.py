"""What the script of a page asks, without a browser: intervals that come later, offers and what they are worth."""

import asyncio
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from local_service import CAFE, PIE, Shop, drawn, shop
from rankstream import Assortments, ChoiceCounts, RankingModel
from rankstream.decide import best_offer
from rankstream.service import intervals
from rankstream.service.intervals import Intervals, Refits
from rankstream.service.limits import RefusedError
from rankstream.service.processes import questions, refits
from service_pages import ask, cafe
from waits import wait_for

__all__ = ["cafe"]
OFFER = ["tea", "pie", "nothing"]


def with_intervals(one: Shop, market: str, offers: list[Any], **more: Any) -> dict[str, Any]:
    """The answer, once intervals are there or it is known why not."""
    found: list[dict[str, Any]] = []

    def is_there() -> bool:
        found.append(ask(one, market, "predict", {"offers": offers, "interval": 0.95, **more}).json())
        return bool(found[-1]["intervals"] != "not yet")

    wait_for(is_there)
    return found[-1]


def test_intervals_come_later(cafe: Shop) -> None:
    answer = with_intervals(cafe, "cafe", [OFFER])
    assert answer["intervals"] == "from refits of the model at record 144"
    (found,) = answer["predictions"]
    for item, (low, high) in found["intervals"].items():
        assert low <= found["shares"][item] <= high
        assert low < high


def test_offers_have_a_worth_and_a_gain_with_intervals(cafe: Shop) -> None:
    margins = {"tea": 1.0, "pie": 3.0}
    answer = with_intervals(cafe, "cafe", [["tea", "nothing"], OFFER], margins=margins)
    first, second = answer["predictions"]
    for one in (first, second):
        assert one["worth"] == pytest.approx(sum(margins.get(item, 0.0) * part for item, part in one["shares"].items()))
        assert one["worth_interval"][0] < one["worth"] < one["worth_interval"][1]
    assert first["gain"] == [0.0, 0.0]
    assert second["gain"][0] < second["worth"] - first["worth"] < second["gain"][1]
    plain = ask(cafe, "cafe", "predict", {"offers": [OFFER]}).json()["predictions"][0]
    assert not {"worth", "gain", "intervals"} & set(plain)


def test_the_best_offer_and_the_next(cafe: Shop) -> None:
    question = {"margins": {"tea": 1, "pie": 3, "cake": 2}, "at_most": 1, "no_choice": "nothing", "present": ["tea"]}
    best = ask(cafe, "cafe", "decide", question).json()["decision"]
    program = cafe.post("/cafe/decide", question).json()["decision"]
    assert best["offer"] == program["offer"]
    assert best["context"]["present"] == ["tea"]
    assert best["value"] - best["context"]["present_value"] == pytest.approx(best["context"]["gain"])
    assert best["context"]["nearness"]["shown"] == 0
    assert "offer" in ask(cafe, "cafe", "next-offer", question).json()["decision"]


def test_a_model_without_its_choices_decides_without_them(cafe: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    question = {"margins": {"tea": 1, "pie": 3, "cake": 2}, "no_choice": "nothing", "present": ["tea"]}

    def refuse(*_: Any) -> Any:
        raise RefusedError(409, "Only the model was opened.")

    whole = ask(cafe, "cafe", "decide", question).json()["decision"]
    for known in (refuse, lambda *_: (None, ChoiceCounts(Assortments([("tea", "rum")]), [1, 2]))):
        monkeypatch.setattr(questions.Answerer, "learned", known)
        found = ask(cafe, "cafe", "decide", question).json()["decision"]
        assert found["offer"] == whole["offer"]
        assert found["context"]["nearness"] is None


def test_a_search_ends_by_the_clock_where_the_machine_is_busy(cafe: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two CPU seconds may take minutes then, and whoever asks has the best offer so far."""
    watches = list[Any]()

    def search(model: Any, watch: Any, **said: Any) -> Any:
        watches.append(watch)
        return best_offer(model, watch=watch, **said)

    monkeypatch.setattr(questions, "best_offer", search)
    monkeypatch.setattr(questions, "MIN_SEARCH_SECONDS", 0.0)
    question = {"margins": {"tea": 1.0, "pie": 3.0, "cake": 2.0}, "no_choice": "nothing"}
    for seconds in (0.0, 1e6):
        monkeypatch.setattr(questions, "SEARCH_SECONDS", seconds)
        assert ask(cafe, "cafe", "decide", question).json()["decision"]["warnings"] == []  # it is proven best
        assert ask(cafe, "cafe", "next-offer", question).status_code == 200
    assert [watch("searching") for watch in watches] == [True, False]


def test_a_search_counts_the_time_that_its_question_waited() -> None:
    now = monotonic()
    assert questions.search_deadline({"asked": now}).timeout == pytest.approx(questions.SEARCH_SECONDS, abs=1.0)
    assert questions.search_deadline({"asked": now - 15.0}).timeout == pytest.approx(5.0, abs=1.0)
    late = questions.search_deadline({"asked": now - 500.0})
    assert late.timeout == questions.MIN_SEARCH_SECONDS
    model = RankingModel(["tea", "no"], [("tea", "no")], [1.0])
    assert questions.notes_on(model, {"asked": now - 500.0}, ended=False)["warnings"] == []
    (note,) = questions.notes_on(model, {"asked": now - 500.0}, ended=True)["warnings"]
    assert note == "The server is busy, so the search ended after 500 s: this is the best offer so far."


def test_a_search_waits_for_no_panels(cafe: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    question = {"margins": {"tea": 1.0, "pie": 3.0, "cake": 2.0}, "no_choice": "nothing"}
    monkeypatch.setattr(cafe.service.slow, "ask", lambda _: pytest.fail("behind the panels"))
    for word in ("decide", "next-offer"):
        assert ask(cafe, "cafe", word, question).status_code == 200


@pytest.mark.parametrize("settings", [{"half_life": 50}, {"window": 60}, {"detect": True}])
def test_a_market_that_forgets_has_intervals_of_what_it_remembers(tmp_path: Path, settings: dict[str, Any]) -> None:
    with shop(tmp_path) as one:
        drawn(one)
        one.send("cafe", CAFE * 20)
        one.send("cafe", [PIE] * 400)  # a change, after which a market that looks for changes goes on from faded counts
        one.settle("cafe", served="sparse", **settings)
        one.learn()
        assert bool(one.get("/cafe/certificate").json()["alarms"]) == ("detect" in settings)
        page = one.http.request("GET", "/markets/cafe").text
        assert "The model follows the change: with these settings" in page
        assert ("Changed at record" in page) == ("detect" in settings)
        (found,) = with_intervals(one, "cafe", [OFFER])["predictions"]
        assert all(low <= found["shares"][item] <= high for item, (low, high) in found["intervals"].items())


def test_records_that_count_in_parts_have_no_intervals(tmp_path: Path) -> None:
    with shop(tmp_path) as one:
        drawn(one)
        one.send("cafe", [{**record, "count": 0.7} for record in CAFE])
        one.settle("cafe", served="sparse")
        one.learn()
        answer = with_intervals(one, "cafe", [OFFER])
        assert "fractional counts" in answer["intervals"]
        assert answer["predictions"][0]["intervals"] is None


def test_a_market_that_is_too_large_for_refits_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refits, "MAX_SIZES", (1, 64, 4000))
    with shop(tmp_path) as one:
        drawn(one)
        one.send("cafe", CAFE)
        one.settle("cafe", served="sparse")
        one.learn()
        assert "400 offers, 64 items" in with_intervals(one, "cafe", [OFFER])["intervals"]
        with monkeypatch.context() as busy:
            busy.setattr(one.service.refitting, "ask", lambda _: (503, "It died."))
            one.send("bar", CAFE)
            one.learn()
            assert "took too long" in with_intervals(one, "bar", [OFFER])["intervals"]
        monkeypatch.setattr(refits, "MAX_SIZES", (400, 64, 4000))
        assert "took too long" in with_intervals(one, "bar", [OFFER])["intervals"]
        monkeypatch.setattr(intervals, "RETRY_SECONDS", 0.0)  # some minutes later
        assert "from refits" in with_intervals(one, "bar", [OFFER])["intervals"]


def test_refits_of_a_model_that_was_replaced_are_not_given_up(tmp_path: Path) -> None:
    with shop(tmp_path) as one:
        drawn(one)
        one.send("cafe", CAFE)
        one.settle("cafe", served="sparse")
        one.learn()
        row = one.service.row("cafe")
        before = one.service.model_of(row)
        one.send("cafe", [PIE] * 40)
        one.learn()
        refits = Refits(digest=before.digest)
        asyncio.run(Intervals(one.service)._refit(row, before, refits))
        assert (refits.digest, refits.sentence) == ("", "")  # the next question asks for those of the new model
