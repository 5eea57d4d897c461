"""What if, on the pages without a browser: intervals, offers under constraints, and what takes a while."""

import re
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from html_pages import Page
from rankstream.service.page import market
from rankstream.service.page import process as working
from rankstream.service.page.process import key_of
from service_pages import ask, cafe, page_of
from serving import CAFE, PIE, Shop, drawn, shop
from waits import LONG, wait_for

__all__ = ["cafe"]


def test_intervals_come_later(cafe: Shop) -> None:
    fields = {"on": [key_of("tea"), key_of("pie")]}
    texts: list[str] = []

    def is_there() -> bool:
        texts.append(ask(cafe, "cafe", "what-if", **fields).text)
        return "by refits of the model of record 144" in texts[-1]

    wait_for(is_there)
    low, high = map(float, re.findall(r"([\d.]+) to ([\d.]+) %", texts[-1])[0])
    share = float(re.findall(r"([\d.]+) %</td><td><meter", texts[-1])[0])
    assert low <= share <= high
    assert low < high


def test_the_best_offer_and_the_next(cafe: Shop) -> None:
    margins = {f"margin__{key_of(item)}": [value] for item, value in (("tea", 1), ("pie", 3), ("cake", 2))}
    best = ask(cafe, "cafe", "what-if", ask=["best"], at_most=["1"], **margins)
    decision = cafe.post("/cafe/decide", {
        "margins": {"tea": 1, "pie": 3, "cake": 2}, "at_most": 1, "no_choice": "nothing"
    }).json()["decision"]  # fmt: skip
    assert f"The best offer: {decision['offer'][0]}." in best.text
    assert f"{decision['value']:.4g} per customer" in best.text
    assert {*re.findall(r'data-ticked="([^"]+)', best.text)[0].split()} == {
        key_of(decision["offer"][0]),
        key_of("nothing"),
    }
    assert "The next offer to try: " in ask(cafe, "cafe", "what-if", ask=["next"], **margins).text
    for text in ("much", "nan", "1e99"):
        bad = ask(cafe, "cafe", "what-if", ask=["best"], **{f"margin__{key_of('tea')}": [text]}).text
        assert "write a number, such as 1.5" in bad
    assert "No item has a margin" in ask(cafe, "cafe", "what-if", ask=["best"]).text


def test_the_best_offer_under_constraints(cafe: Shop) -> None:
    margins = {f"margin__{key_of(item)}": [value] for item, value in (("tea", 1), ("pie", 3), ("cake", 2))}
    every = {"tea", "pie", "cake"}

    def best(**fields: Any) -> set[str]:
        answer = ask(cafe, "cafe", "what-if", ask=["best"], **{**margins, **fields})
        (offer,) = re.findall(r"The best offer: ([^.]+)\.", answer.text)
        return set(offer.split(", "))

    assert best(at_least=["3"]) == every
    assert best(among=["ticked"], on=[key_of("tea")]) <= {"tea"}
    assert "tea" in best(among=["more"], on=[key_of("tea")], at_most=["2"])
    unpriced = {f"margin__{key_of('tea')}": [""]}
    assert "tea" in best(among=["more"], on=[key_of("tea")], **unpriced)  # it stays, and earns nothing
    assert "tea" not in best(among=["all"], **unpriced)
    assert best(among=["nobody knows"]) == best()
    for name in ("at_most", "at_least"):
        text = ask(cafe, "cafe", "what-if", ask=["best"], **{**margins, name: ["many"]}).text
        assert "write a whole number of items" in text
    impossible = ask(cafe, "cafe", "what-if", ask=["best"], **{**margins, "at_least": ["3"], "at_most": ["2"]})
    assert impossible.status_code == 200
    assert "The best offer" not in impossible.text


def test_nobody_waits_long_for_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop(tmp_path) as one:
        drawn(one)
        one.send("cafe", CAFE)
        one.settle("cafe", served="sparse")
        one.learn()
        monkeypatch.setattr(market, "WAIT", 0.05)
        begin, draw = Event(), one.service.drawing.ask
        monkeypatch.setattr(one.service.drawing, "ask", lambda question: begin.wait(LONG) and draw(question))
        early = one.http.request("GET", "/markets/cafe")
        assert "being drawn" in "".join(page_of(early).texts["p"])
        assert ("http-equiv", "refresh") in Page(early.text).attributes  # where no script does that
        begin.set()
        wait_for(lambda: "What if" in one.http.request("GET", "/markets/cafe").text)
        begin.clear()
        monkeypatch.setattr(market, "FRESH_SECONDS", 0.0)
        one.send("cafe", CAFE)
        one.learn()
        assert "What if" in one.http.request("GET", "/markets/cafe").text  # the pictures of before
        begin.set()
        wait_for(lambda: ">72<" in one.http.request("GET", "/markets/cafe").text)


@pytest.mark.parametrize("settings", [{"half_life": 50}, {"window": 60}, {"detect": True}])
def test_a_market_that_forgets_has_intervals_of_what_it_remembers(tmp_path: Path, settings: dict[str, Any]) -> None:
    with shop(tmp_path) as one:
        drawn(one)
        one.send("cafe", CAFE * 20)
        one.send("cafe", [PIE] * 400)  # a change, after which a market that looks for changes goes on from faded counts
        one.settle("cafe", served="sparse", **settings)
        one.learn()
        assert bool(one.get("/cafe/certificate").json()["alarms"]) == ("detect" in settings)
        assert "The model follows the change: with its settings" in one.http.request("GET", "/markets/cafe").text
        texts: list[str] = []

        def is_there() -> bool:
            texts.append(ask(one, "cafe", "what-if", on=[key_of("tea"), key_of("pie")]).text)
            return "by refits of the model" in texts[-1]

        wait_for(is_there)
        ends = [tuple(map(float, pair)) for pair in re.findall(r"([\d.]+) to ([\d.]+) %", texts[-1])]
        shares = [float(share) for share in re.findall(r"([\d.]+) %</td><td><meter", texts[-1])]
        assert len(ends) == len(shares)
        assert all(low <= share <= high for (low, high), share in zip(ends, shares, strict=True))


def test_records_that_count_in_parts_have_no_intervals(tmp_path: Path) -> None:
    with shop(tmp_path) as one:
        drawn(one)
        one.send("cafe", [{**record, "count": 0.7} for record in CAFE])
        one.settle("cafe", served="sparse")
        one.learn()
        ticked = [key_of("tea"), key_of("pie")]
        wait_for(lambda: "fractional counts" in ask(one, "cafe", "what-if", on=ticked).text)
        assert not re.search(r"\d to \d", ask(one, "cafe", "what-if", on=ticked).text)  # no cell has one


def test_a_market_that_is_too_large_for_refits_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working, "MAX_SIZES", (1, 64, 4000))
    with shop(tmp_path) as one:
        drawn(one)
        one.send("cafe", CAFE)
        one.settle("cafe", served="sparse")
        one.learn()
        ticked = [key_of("tea"), key_of("pie")]
        wait_for(lambda: "400 offers, 64 items" in ask(one, "cafe", "what-if", on=ticked).text)
        monkeypatch.setattr(one.service.refitting, "ask", lambda _: (503, "It died."))
        one.send("bar", CAFE)
        one.learn()
        wait_for(lambda: "took too long" in ask(one, "bar", "what-if", on=ticked).text)
