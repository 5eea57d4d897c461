"""Prices on the page without a browser: ticks, price levels, the best offer at its prices, intervals, and sections."""

import re
from pathlib import Path

import rankstream as rs
from kiosk import LEVELS, SHOP, kiosk, learned
from rankstream.service.page.process import key_of
from service_pages import ask as ask_page
from service_pages import page_of
from serving import CAFE, Shop, drawn, shop
from waits import wait_for

__all__ = ["kiosk"]


def options(page: str) -> dict[str, str]:
    """The price that is selected for each item of a form."""
    found = re.findall(r'<select name="price-(\w+)"[^>]*>(.*?)</select>', page)
    return {key: re.findall(r"<option [^>]*selected>([^<]*)", text)[0] for key, text in found}


def test_the_page_ticks_items_and_chooses_prices_without_a_script(kiosk: Shop) -> None:
    whole = kiosk.http.request("GET", "/markets/kiosk").text
    assert options(whole) == {key_of("tea"): "4.00", key_of("cake"): "4.00"}
    assert "What prices do" in whole
    assert whole.count("Every item that has prices is at its usual (most frequent) one: tea @ 4.00, cake @ 4.00.") == 2
    shares = []
    for level in range(3):
        fields = {"on": [key_of("tea")], f"price__{key_of('tea')}": [str(level)]}
        answer = ask_page(kiosk, "kiosk", "what-if", **fields).text
        price = ("3.00", "3.50", "4.00")[level]
        assert f"tea @ {price}" in answer
        shares.append(float(re.findall(r"tea @ [\d.]+</bdi></th><td class=\"number\">([\d.]+)", answer)[0]))
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[2]
    for text in ("7", "-1", "x", "9" * 30):
        fields = {"on": [key_of("tea")], f"price__{key_of('tea')}": [text]}
        page = ask_page(kiosk, "kiosk", "", **fields)
        page_of(page)
        assert options(page.text)[key_of("tea")] == "4.00"


def test_the_best_offer_on_the_page_is_at_its_prices(kiosk: Shop) -> None:
    costs = {f"margin__{key_of('tea')}": ["1.2"], f"margin__{key_of('cake')}": ["2.5"]}
    page = ask_page(kiosk, "kiosk", "", ask=["best"], **costs).text
    best = rs.decide.best_offer(learned(kiosk).model, costs={"tea": 1.2, "cake": 2.5}, no_choice="nothing")
    assert f"The best offer: {', '.join(map(str, best.offer))}." in page
    chosen = options(page)
    assert {item: float(chosen[key_of(item)]) for item in best.prices} == best.prices
    tried = ask_page(kiosk, "kiosk", "what-if", ask=["next"], **costs).text
    assert "The next offer to try: " in tried
    some = ask_page(kiosk, "kiosk", "what-if", ask=["best"], **{f"margin__{key_of('tea')}": ["1.2"]}).text
    assert "1 item without a cost or a margin was left out." in some
    assert "No item has a cost or a margin" in ask_page(kiosk, "kiosk", "what-if", ask=["best"]).text


def test_intervals_come_later_at_prices_too(kiosk: Shop) -> None:
    fields = {"on": [key_of("tea")], f"price__{key_of('tea')}": ["2"]}
    texts: list[str] = []

    def is_there() -> bool:
        texts.append(ask_page(kiosk, "kiosk", "what-if", **fields).text)
        return f"by refits of the model of record {len(SHOP)}" in texts[-1]

    wait_for(is_there)
    low, high = map(float, re.findall(r"tea @ 4.00.*?([\d.]+) to ([\d.]+) %", texts[-1])[0])
    share = float(re.findall(r"tea @ 4.00</bdi></th><td class=\"number\">([\d.]+) %", texts[-1])[0])
    assert low <= share <= high
    assert low < high


def test_a_page_without_prices_has_nothing_of_them(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        drawn(opened)
        opened.send("cafe", CAFE * 2)
        opened.settle("cafe", served="sparse")
        opened.learn()
        text = opened.http.request("GET", "/markets/cafe").text
        assert '<select name="price' not in text
        assert "What prices do" not in text
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
        assert key_of("pie") not in options(text)
        for given, left_out in (({"pie": "1"}, 2), ({"tea": "1", "cake": "2", "pie": "1.5"}, 0)):
            fields = {f"margin__{key_of(item)}": [number] for item, number in given.items()}
            answer = ask_page(opened, "kiosk", "what-if", ask=["best"], **fields).text
            assert "no feasible offer is worth more, proven" in answer
            gone = (
                "1 item without a cost or a margin was"
                if left_out == 1
                else f"{left_out} items without a cost or a margin were"
            )
            assert (f"{gone} left out." in answer) == bool(left_out)
            offer = re.findall(r"The best offer: (.*?)\.</p>", answer)[0].split(", ")
            assert {label.partition(" @ ")[0] for label in offer} <= set(given)
