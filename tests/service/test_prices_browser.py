"""Prices on the page in a real browser: ticks and price levels move the shares, with and without a script."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser_pages import SIZES, Seen, axe, browser, findings, needs_browser, shares
from kiosk import LEVELS, SHOP
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


def test_ticks_and_prices_move_the_shares(browser: Any, kiosk: Served) -> None:
    seen = Seen(browser, kiosk.url)
    page = seen.open("/markets/kiosk")
    answer, price = page.locator("#answer"), page.get_by_label("Price of tea")
    assert price.locator("option").all_inner_texts() == ["3.00", "3.50", "4.00"]
    assert price.input_value() == "2"  # the usual price: the dearest of those that are most frequent
    found = {}
    for level in LEVELS["tea"]:
        price.select_option(f"{level:.2f}")
        answer.locator("tr", has_text=f"tea @ {level:.2f}").wait_for()
        found[level] = shares(answer)[f"tea @ {level:.2f}"]
    assert found[3.0] > found[3.5] > found[4.0]
    page.get_by_role("checkbox", name="cake").uncheck()
    answer.locator("tr", has_text="cake").wait_for(state="detached")
    assert shares(answer)["tea @ 4.00"] > found[4.0]
    answer.get_by_text("by refits of the model of record").wait_for()
    with patient_client(kiosk.url) as client:
        best = client.decide("kiosk", costs=COSTS, no_choice="nothing")["offer"]
    for item, cost in COSTS.items():
        page.get_by_label(f"Cost of {item}").fill(str(cost))
    page.get_by_role("button", name="Best offer").click()
    answer.get_by_text(f"The best offer: {', '.join(best)}.").wait_for()
    for label in best:
        item, _, at = label.partition(" @ ")
        assert page.get_by_role("checkbox", name=item).is_checked()
        assert page.get_by_label(f"Price of {item}").locator("option:checked").inner_text() == at
    page.get_by_role("heading", name="What prices do").wait_for()
    seen.close()


def test_without_scripts_prices_are_chosen_as_well(browser: Any, kiosk: Served) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{kiosk.url}/markets/kiosk")
    page.get_by_label("Price of tea").select_option("4.00")
    page.get_by_role("checkbox", name="cake").uncheck()
    page.get_by_role("button", name="Predict").click()
    assert list(shares(page.locator("#answer"))).count("tea @ 4.00") == 1
    assert page.get_by_label("Price of tea").input_value() == "2"
    assert page.locator("#answer tr", has_text="cake").count() == 0
    context.close()


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_a_page_with_prices_fits_on_the_screen(
    browser: Any, kiosk: Served, tmp_path: Path, width: int, scheme: str
) -> None:
    seen = Seen(browser, kiosk.url, width, scheme)
    page = seen.open("/markets/kiosk")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.screenshot(path=tmp_path / f"kiosk-{width}-{scheme}.png", full_page=True)
    seen.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_choose_prices(browser: Any, kiosk: Served, axe: str, scheme: str) -> None:
    seen = Seen(browser, kiosk.url, 390, scheme)
    page = seen.open("/markets/kiosk")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert findings(page, axe) == []
    seen.close()
