"""Prices on the page in a real browser: ticks and price levels move the shares, with and without a script."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from browser_pages import TABS, WIDTHS, Seen, answered, axe, browser, findings, needs_browser, shares, show
from kiosk import LEVELS, SHOP
from rankstream.service.processes.item_list import key_of
from service import Served
from waits import patient_client, wait_for

__all__ = ["axe", "browser"]
pytestmark = needs_browser
COSTS = {"tea": 1.2, "cake": 2.5}


@pytest.fixture(scope="module")
def kiosk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    found = Served(tmp_path_factory.mktemp("kiosk") / "shop")
    with patient_client(found.url) as client:
        client.settings("kiosk", price_levels=LEVELS, served="sparse", no_choice="nothing")
        client.send("kiosk", SHOP)
        wait_for(lambda: all(one["learned"] == one["records"] and one["kind"] for one in client.markets()))
    yield found
    assert found.stop() == 0


def rises(page: Any, before: float) -> bool:
    """Whether the share of tea is larger than before."""
    return shares(page)["tea"] > before


def test_ticks_and_prices_move_the_shares(browser: Any, kiosk: Served) -> None:
    seen = Seen(browser, kiosk.url)
    page = seen.open("/markets/kiosk")
    show(page, "what-if")
    answered(page)
    price, cake = page.get_by_role("slider", name="Price of tea"), page.get_by_role("checkbox", name="cake")
    assert price.get_attribute("aria-valuetext") == "4.00"  # the usual price: the dearest of those most frequent
    found = {4.0: shares(page)["tea"]}
    for dearer, level in ((4.0, 3.5), (3.5, 3.0)):
        page.get_by_label("Lower the price of tea").click()
        page.locator("#answer tr", has_text="tea").locator("output", has_text=f"{level:.2f}").wait_for()
        page.locator("#summary tr", has_text="tea").wait_for()
        before = found[dearer]
        wait_for(partial(rises, page, before))  # intervals of the price before may answer first
        found[level] = shares(page)["tea"]
    assert found[3.0] > found[3.5] > found[4.0]
    assert "price-" in page.url
    for _ in range(2):
        page.get_by_label("Raise the price of tea").click()
    cake.uncheck()
    answered(page)
    wait_for(lambda: shares(page)["tea"] > found[4.0])
    with patient_client(kiosk.url) as client:
        best = client.decide("kiosk", costs=COSTS, no_choice="nothing")["offer"]
    show(page, "best-offer")
    for item, cost in COSTS.items():
        page.get_by_label(f"Cost of {item}").fill(str(cost))
    page.get_by_role("button", name="Find the best offer").click()
    page.get_by_role("button", name="Try it in What if").click()
    answered(page)
    for label in best:
        item, _, at = label.partition(" @ ")
        assert page.get_by_role("checkbox", name=item).is_checked()
        assert page.get_by_role("slider", name=f"Price of {item}").get_attribute("aria-valuetext") == at
    show(page, "prices")
    page.locator("#best-prices tbody tr", has_text="tea").wait_for()
    page.get_by_text("Price elasticity").first.wait_for()
    seen.close()


def test_a_slider_is_moved_and_the_address_has_its_price(browser: Any, kiosk: Served) -> None:
    seen = Seen(browser, kiosk.url)
    page = seen.open("/markets/kiosk")
    show(page, "what-if")
    answered(page)
    before = shares(page)["tea"]
    page.get_by_role("slider", name="Price of tea").press("Home")
    page.locator("#answer tr", has_text="tea").locator("output", has_text="3.00").wait_for()
    wait_for(partial(rises, page, before))
    page.locator("#answer .ends:not(:empty)").first.wait_for()
    now, other = shares(page), Seen(browser, kiosk.url)
    other.page.goto(page.url)
    other.page.locator("body[data-begun]").wait_for()
    answered(other.page)
    assert other.page.get_by_role("slider", name="Price of tea").get_attribute("aria-valuetext") == "3.00"
    assert shares(other.page) == now
    other.close()
    seen.close()


def test_demand_has_bands_and_best_prices_follow_the_costs(browser: Any, kiosk: Served) -> None:
    seen = Seen(browser, kiosk.url)
    page = seen.open("/markets/kiosk")
    show(page, "prices")
    page.locator("#prices figure[data-kind=demand][data-values*='\"low\"'] svg.plot").wait_for()  # after the refits
    values = json.loads(page.locator("#prices figure[data-kind=demand]").get_attribute("data-values"))
    points = [one for one in values["points"] if one["item"] == "tea"]
    assert [one["price"] for one in points] == LEVELS["tea"]
    assert all(one["low"] <= one["share"] <= one["high"] for one in points)
    assert any(one["low"] < one["high"] for one in points)
    assert page.locator("#prices .elasticity tbody tr").count() == 2
    for cost in (0.5, 2.9):
        show(page, "best-offer")
        page.get_by_label("Cost of tea").fill(str(cost))
        show(page, "prices")
        best = max(points, key=lambda one: (one["price"] - cost) * one["share"])
        row = page.locator("#best-prices tbody tr", has_text="tea").locator("td").all_inner_texts()
        told, prices, earns = row  # both are "usual → best" where they differ
        assert (told, prices.rpartition("→")[2].strip()) == (f"{cost:.2f}", f"{best['price']:.2f}")
        assert float(earns.rpartition("→")[2]) == pytest.approx(100 * (best["price"] - cost) * best["share"], abs=0.06)
    show(page, "data")
    exec(compile(page.locator("#as-python").inner_text(), "the page", "exec"), {})  # as it is
    seen.close()


def test_without_scripts_prices_are_read_as_well(browser: Any, kiosk: Served) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{kiosk.url}/markets/kiosk?on={key_of('tea')}&price-{key_of('tea')}=0")
    assert page.get_by_label("Price of tea", exact=True).input_value() == "0"
    assert not page.get_by_role("checkbox", name="cake").is_checked()
    context.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_with_prices_fits_on_the_screen(browser: Any, kiosk: Served, width: int) -> None:
    seen = Seen(browser, kiosk.url, width)
    page = seen.open("/markets/kiosk")
    for tab in TABS:
        show(page, tab)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, tab
    seen.close()


def test_everybody_can_choose_prices(browser: Any, kiosk: Served, axe: str) -> None:
    seen = Seen(browser, kiosk.url, 390)
    page = seen.open("/markets/kiosk")
    for tab in TABS:
        show(page, tab)
        page.evaluate("document.querySelectorAll('figure details').forEach((one) => { one.open = true; })")
        assert findings(page, axe) == [], tab
    seen.close()
