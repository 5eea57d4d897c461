"""Prices on the page without a browser: price levels in the form and the address, intervals, and sections."""

import re
from pathlib import Path
from typing import Any

import rankstream as rs
from kiosk import LEVELS, SHOP, kiosk, learned
from local_service import CAFE, Shop, drawn, shop
from rankstream.service.processes.item_list import key_of
from service_pages import ask, page_of
from waits import wait_for

__all__ = ["kiosk"]


def prices(page: str) -> dict[str, str]:
    """The price that each item of a form is at."""
    return dict(re.findall(r'name="price-(\w+)".*?<output>([^<]*)</output>', page))


def test_an_address_chooses_prices_without_a_script(kiosk: Shop) -> None:
    whole = kiosk.http.request("GET", "/markets/kiosk").text
    assert prices(whole) == {key_of("tea"): "4.00", key_of("cake"): "4.00"}
    assert "What prices do" in whole
    assert whole.count("All prices are the usual (most frequent) ones.") == 2
    shares = []
    for level in range(3):
        text = kiosk.http.request("GET", f"/markets/kiosk?on={key_of('tea')}&price-{key_of('tea')}={level}").text
        assert prices(text)[key_of("tea")] == ("3.00", "3.50", "4.00")[level]
        row = next(row for row in re.findall(r"<tr data-key=.*?</tr>", text) if key_of("tea") in row)
        shares.append(float(re.findall(r"share\">([\d.]+) %", row)[0]))
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[2]
    for odd in ("7", "-1", "x", "9" * 30):
        page = kiosk.http.request("GET", f"/markets/kiosk?on={key_of('tea')}&price-{key_of('tea')}={odd}")
        page_of(page)
        assert prices(page.text)[key_of("tea")] == "4.00"


def test_the_best_offer_is_at_its_prices(kiosk: Shop) -> None:
    question: dict[str, Any] = {"costs": {"tea": 1.2, "cake": 2.5}, "no_choice": "nothing"}
    found = ask(kiosk, "kiosk", "decide", {**question, "present": ["tea @ 3.00", "cake @ 4.00"]}).json()["decision"]
    best = rs.decide.best_offer(learned(kiosk).model, costs={"tea": 1.2, "cake": 2.5}, no_choice="nothing")
    assert found["offer"] == [str(item) for item in best.offer]
    assert found["prices"] == best.prices
    assert found["context"]["present"] == ["tea @ 3.00", "cake @ 4.00"]


def test_intervals_come_later_at_prices_too(kiosk: Shop) -> None:
    question = {"offers": [["tea @ 4.00", "nothing"]], "interval": 0.95, "margins": {"tea @ 4.00": 2.8}}
    found: list[Any] = []

    def is_there() -> bool:
        found.append(ask(kiosk, "kiosk", "predict", question).json())
        return bool(found[-1]["intervals"] == f"from refits of the model at record {len(SHOP)}")

    wait_for(is_there)
    (prediction,) = found[-1]["predictions"]
    low, high = prediction["intervals"]["tea @ 4.00"]
    assert low <= prediction["shares"]["tea @ 4.00"] <= high
    assert prediction["worth_interval"][0] < prediction["worth"] < prediction["worth_interval"][1]


def test_a_page_without_prices_says_how_to_get_them(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        drawn(opened)
        opened.send("cafe", CAFE * 2)
        opened.settle("cafe", served="sparse")
        opened.learn()
        text = opened.http.request("GET", "/markets/cafe").text
        assert 'name="price-' not in text
        assert "This market has no prices" in text
        assert "usual prices" not in text


def test_items_without_a_price_have_margins(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        drawn(opened)
        opened.settle("kiosk", served="sparse", no_choice="nothing", price_levels=LEVELS)
        pies = [{"offered": ["pie", "nothing"], "chosen": chosen} for chosen in ("pie", "pie", "nothing")]
        opened.send("kiosk", SHOP + 6 * pies)
        opened.learn()
        text = opened.http.request("GET", "/markets/kiosk").text
        assert ["Cost of tea" in text, "Cost of cake" in text, "Margin of pie" in text] == [True] * 3
        assert key_of("pie") not in prices(text)
