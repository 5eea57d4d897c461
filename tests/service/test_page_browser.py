"""The pages in a real browser: they load, stay live, answer what if, and can be used by everybody."""

import csv
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from browser_pages import MISSING, TABS, WIDTHS, Seen, answered, axe, browser, findings, needs_browser, shares, show
from html_pages import HOSTILE
from local_service import CAFE
from rankstream.cli import main
from rankstream.plots.models import wilson
from rankstream.service.processes.questions import ENDED
from rankstream.service.storage import tokens
from service import Served
from waits import LONG, patient_client, wait_for

__all__ = ["axe", "browser"]
pytestmark = needs_browser
MARGINS = {"tea": 1.0, "pie": 3.0, "cake": 2.0}
FORMULAS = ("=1+1", "+tea", "-cake", "@pie", '"a", b')  # as a spreadsheet reads them, and a cell that is quoted
ODD = [{"offered": [*HOSTILE[place:], "nothing"], "chosen": HOSTILE[-1]} for place in range(4) for _ in range(9)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    folder = tmp_path_factory.mktemp("browser") / "shop"
    found = Served(folder)
    token = tokens.create(folder, ["*"], ["write", "read", "manage"])
    with patient_client(found.url, token) as client:
        for market, records in (("cafe", CAFE * 3), ("bar", CAFE * 3), ("odd", ODD)):
            client.send(market, records)
            client.settings(market, served="sparse", no_choice="nothing")
        for item in FORMULAS:
            client.send("sheet", [{"offered": [*FORMULAS, "nothing"], "chosen": item}] * 8)
        client.settings("sheet", served="sparse", no_choice="nothing")
        client.send("kiosk", [{"offered": ["tea", "nothing"], "chosen": "tea"}] * 40)  # a single offer
        wait_for(lambda: all(one["learned"] == one["records"] and one["kind"] for one in client.markets()))
    yield found, token
    assert found.stop() == 0


@pytest.fixture
def see(browser: Any, served: tuple[Served, str]) -> Iterator[Callable[..., Seen]]:
    made: list[Seen] = []

    def make(width: int = 1280, has_token: bool = True) -> Seen:
        made.append(Seen(browser, served[0].url, width))
        if has_token:
            made[-1].log_in(served[1])
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_log_in_watch_ask_and_log_out(see: Callable[..., Seen], served: tuple[Served, str]) -> None:
    seen = see(has_token=False)
    page = seen.open("/markets/cafe")
    assert urlsplit(page.url).path == "/login"
    page.get_by_label("Token").fill(served[1])
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="cafe").wait_for()
    page.get_by_text("Live.").wait_for()
    assert page.evaluate("document.cookie") == ""  # no script reads it
    show(page, "what-if")
    answered(page)
    before = shares(page)
    page.get_by_role("checkbox", name="pie").uncheck()
    page.locator("#summary tr", has_text="pie").wait_for()
    after = shares(page)
    assert set(before) - set(after) == {"pie"}
    assert sum(after.values()) == pytest.approx(100.0, abs=0.3)
    assert sum(share > before[item] for item, share in after.items()) > 0
    with patient_client(served[0].url, served[1]) as client:
        client.send("cafe", CAFE)
    page.locator("#records", has_text=str(4 * len(CAFE))).wait_for()
    page.locator(f"#status[data-position='{4 * len(CAFE)}']").wait_for()
    page.get_by_role("link", name="All markets").click()
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("heading", name="Log in").wait_for()
    assert urlsplit(seen.open("/").url).path == "/login"
    seen.said = [one for one in seen.said if "401" not in one]  # of what was on its way when the token went


def test_every_tab_is_reached_and_drawn(see: Callable[..., Seen]) -> None:
    page = see().open("/markets/cafe")
    for tab in TABS:
        shown = show(page, tab)
        assert page.locator("main > .tab:visible").count() == 1
        assert page.locator(".tabs a[aria-current]").get_attribute("href") == f"#{tab}"
        for figure in shown.locator("figure[data-kind]:not(#periods-chart)").all():  # whose table is open below it
            figure.locator("details table").wait_for(state="attached")  # also of a chart that is drawn anew
    show(page, "customers").get_by_label("When this item is gone").select_option("pie")
    page.locator("#customers svg", has_text="Buyers of pie").wait_for()
    show(page, "changes")
    page.locator("#periods summary").click()
    page.locator("#periods-table td").first.wait_for()
    page.locator("#course").get_by_text("gap: how much the fit could still improve", exact=True).first.wait_for()


def test_any_two_periods_are_compared(see: Callable[..., Seen]) -> None:
    page = see().open("/markets/cafe")
    show(page, "changes")
    page.locator("#periods summary").click()
    values = json.loads(page.locator("#changes figure[data-kind=trend]").get_attribute("data-values"))
    tea = next(one["shares"] for one in values["items"] if one["item"] == "tea")
    for before, after in ((range(5), range(6, 12)), (range(4), range(4, 9))):
        for name, part in (("before", before), ("after", after)):
            page.get_by_label(f"{name.capitalize()}, from").select_option(str(part[0]))
            page.get_by_label(f"{name.capitalize()}, to").select_option(str(part[-1]))
        cells = page.locator("#periods-table tr", has_text="tea").locator("td").all_inner_texts()
        for part, cell in zip((before, after), cells, strict=False):
            known = [(values["choices"][at], tea[at][0]) for at in part if tea[at]]  # periods in which it was offered
            share = 100 * sum(size * one for size, one in known) / sum(size for size, _ in known)
            assert float(cell.split(" %")[0]) == pytest.approx(share, abs=0.06)
            size = np.array(sum(size for size, _ in known))
            ends = [100 * float(end) for end in wilson(np.array(share / 100), size)]
            assert [float(end) for end in cell.split("[")[1].rstrip("]").split(", ")] == pytest.approx(ends, abs=0.06)


def test_the_first_tab_says_what_sells_what_to_change_and_what_that_is_worth(see: Callable[..., Seen]) -> None:
    page = see().open("/markets/bar")
    show(page, "overview")
    page.locator("#advice", has_text="Enter what a sale earns").wait_for()  # no margins
    found = page.locator(".findings p").all_inner_texts()
    assert len(found) > 3
    assert re.match(r"tea sells most: 33\.3\s% \[.*\] of all customers\.", found[0])
    assert re.search(r"When only \w+ is out of stock, \d+\.\d\s% .*of its buyers leave without buying", found[2])
    show(page, "best-offer")
    for item, margin in MARGINS.items():
        page.get_by_label(f"Margin of {item}").fill(str(margin))
    page.get_by_label("Currency").fill("EUR")
    page.locator(".tabs a[href='#overview']").click()
    page.locator("#advice .figure", has_text=re.compile(r"^\+[\d.]+ EUR per 100 customers$")).wait_for()
    page.locator("#advice li.added", has_text="Add cake").wait_for()
    page.locator("#advice-ends", has_text=re.compile(r"\[\u2212?[\d.]+, [\d.]+\]")).wait_for()  # how sure, later


AMOUNTS = """async (numbers) => {
  const script = document.querySelector("script[type=module]").src.replace("page.js", "server.js");
  const { amount } = await import(script);
  return numbers.map((number) => amount(number));
}"""


def test_amounts_have_as_many_decimals_as_their_size_deserves(see: Callable[..., Seen]) -> None:
    page = see().open("/markets/bar")
    texts = page.evaluate(AMOUNTS, [1234.56, 131.4, 26.34, 1.519, 0.973, 0.0432, -2.694, -0.0, 0])
    assert texts == ["1,235", "131", "26.3", "1.52", "0.97", "0.043", "\u22122.69", "0", "0"]


ENDS = """async (pairs) => {
  const script = document.querySelector("script[type=module]").src.replace("page.js", "best_offer.js");
  const { ends } = await import(script);
  return pairs.map((pair) => ends(pair));
}"""


def test_intervals_have_the_decimals_of_the_value_between(see: Callable[..., Seen]) -> None:
    page = see().open("/markets/bar")
    texts = page.evaluate(ENDS, [[-0.036, 0.185], [1.304, 1.461], [0.08, 0.13], [-0.01, 0.0102]])
    assert texts == ["[\u22123.60, 18.50]", "[130, 146]", "[8.0, 13.0]", "[\u22121.00, 1.02]"]


def test_a_chip_explains_itself(see: Callable[..., Seen]) -> None:
    page = see().open("/markets/cafe")
    page.locator(".chip summary", has_text="fit").click()
    page.get_by_text("how much closer another ranking model could be").first.wait_for()
    page.locator("#change-chip summary").click()
    page.locator("#change-chip p:not(:empty)").wait_for()


def test_the_address_holds_what_is_asked_and_no_margins(see: Callable[..., Seen]) -> None:
    seen = see()
    page = seen.open("/markets/cafe")
    show(page, "best-offer")
    page.get_by_label("Margin of tea").fill("2.75")
    show(page, "what-if")
    assert urlsplit(page.url).query == ""  # everything, at usual prices
    page.get_by_role("checkbox", name="pie").uncheck()
    answered(page)
    address = page.url
    assert "2.75" not in address
    assert urlsplit(address).fragment == "what-if"
    other = see()
    other.page.goto(address)
    other.page.locator("body[data-begun]").wait_for()
    assert not other.page.get_by_role("checkbox", name="pie").is_checked()
    assert other.page.get_by_role("checkbox", name="tea").is_checked()
    answered(other.page)
    assert set(shares(other.page)) == {"tea", "cake", "nothing"}


def test_an_outdated_answer_and_an_old_error_are_not_shown(see: Callable[..., Seen]) -> None:
    page = see().open("/markets/cafe")
    show(page, "what-if")
    answered(page)
    held = list[Any]()

    def hold(route: Any) -> None:
        """The first question takes long."""
        if not held:
            held.append(route)
            return
        route.continue_()

    page.route("**/page/cafe/predict", hold)
    page.get_by_role("checkbox", name="pie").uncheck()
    wait_for_held(page, held)
    page.get_by_role("checkbox", name="cake").uncheck()
    page.locator("#summary tr", has_text="cake").wait_for()
    now = shares(page)
    assert set(now) == {"tea", "nothing"}
    with suppress(Exception):  # the browser has given it up
        held[0].continue_()
    answered(page)
    assert shares(page) == now
    page.get_by_role("button", name="None").click()
    page.get_by_text("No item is ticked. Tick one.").wait_for()
    page.get_by_role("button", name="All").click()
    answered(page)
    assert page.locator("#ask-problem").inner_text() == ""


def wait_for_held(page: Any, held: list[Any]) -> None:
    limit = time.monotonic() + LONG
    while not held:
        assert time.monotonic() < limit
        page.wait_for_timeout(20)


def test_intervals_arrive_and_move_nothing(see: Callable[..., Seen]) -> None:
    page = see().open("/markets/cafe")
    show(page, "what-if")
    answered(page)
    places = "[...document.querySelectorAll('#answer tr')].map((one) => one.getBoundingClientRect().top)"
    before = page.evaluate(places)
    page.locator("#answer .ends:not(:empty)").first.wait_for()
    assert page.evaluate(places) == before
    row = page.locator("#answer tr", has_text="tea")
    low, high = row.locator(".ends").inner_text().rstrip(" %").split(" to ")
    assert float(low) <= float(row.locator(".share").inner_text().rstrip(" %")) <= float(high)
    assert row.locator(".range").bounding_box()["width"] > 2


def test_a_baseline_and_presets(see: Callable[..., Seen]) -> None:
    page = see().open("/markets/cafe")
    show(page, "what-if")
    answered(page)
    for preset, name in (("Today's offer", "today's offer"), ("All", "everything on offer")):
        page.get_by_role("button", name=preset, exact=True).click()
        page.locator("#baseline-name", has_text=name).wait_for()  # until another one is set
        answered(page)
    page.get_by_role("checkbox", name="cake").uncheck()
    page.locator("#summary tr", has_text="cake").wait_for()
    page.get_by_role("button", name="Set as baseline").click()
    page.get_by_text("No share changes by 0.1 points").wait_for()
    page.get_by_role("button", name="Save as today's offer").click()
    page.get_by_role("button", name="All").click()
    page.locator("#summary tr", has_text="cake").wait_for()
    page.get_by_role("button", name="Today's offer", exact=True).click()
    page.get_by_text("No share changes by 0.1 points").wait_for()
    assert set(shares(page)) == {"tea", "pie", "nothing"}
    page.get_by_label("Find an item").fill("ca")
    page.locator("#answer tbody tr", has_text="tea").wait_for(state="hidden")
    assert page.locator("#answer tbody tr:visible").count() == 1


def test_the_best_offer_is_compared_taken_over_and_downloaded(
    see: Callable[..., Seen], served: tuple[Served, str], tmp_path: Path
) -> None:
    with patient_client(served[0].url, served[1]) as client:
        best = client.decide("cafe", MARGINS, no_choice="nothing")
    page = see().open("/markets/cafe")
    show(page, "best-offer")
    page.get_by_label("Margin of tea").fill("")  # another test may have left one
    page.get_by_role("button", name="Find the best offer").click()
    page.get_by_text("No item has a margin or a cost").wait_for()
    (tmp_path / "costs.csv").write_text("item,price,unit_cost\npie,5.5,1.5\n")
    page.get_by_label("From a file").set_input_files(tmp_path / "costs.csv")
    wait_for_value(page.get_by_label("Margin of pie"), "4")  # the price less the cost, never the price
    (tmp_path / "items.csv").write_text("item;margin\n" + "".join(f"{item};{one}\n" for item, one in MARGINS.items()))
    page.get_by_label("From a file").set_input_files(tmp_path / "items.csv")
    wait_for_value(page.get_by_label("Margin of pie"), "3.0")
    page.get_by_label("Currency").fill("EUR")
    page.get_by_role("button", name="Find the best offer").click()
    page.locator("#decision-title").wait_for()
    assert page.locator("#decide-problem").inner_text() == ""  # the error of the question before is gone
    decision = page.locator("#decision").inner_text()
    value = float(f"{100 * best['value']:.3g}")  # three digits
    assert f"{value:,.12g}" in decision
    assert "EUR" in decision
    assert ("Proven best" in decision) == best["proven"]
    page.locator("#gain-ends", has_text="[").wait_for()  # how sure, later
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download as CSV").click()
    lines = saved.value.path().read_text().splitlines()
    assert lines[0] == "item,price,share,margin"
    assert {line.split(",")[0] for line in lines[1:]} == set(best["offer"])
    page.get_by_role("button", name="Try it in What if").click()
    answered(page)
    assert set(shares(page)) == {*best["offer"], "nothing"}
    show(page, "best-offer")
    page.get_by_label("At least").fill("many")
    page.get_by_role("button", name="Find the best offer").click()
    page.get_by_text("is not a whole number").wait_for()


def test_constraints_are_kept_and_both_offers_are_valued(see: Callable[..., Seen], served: tuple[Served, str]) -> None:
    with patient_client(served[0].url, served[1]) as client:
        best = client.decide("bar", MARGINS, no_choice="nothing", must=["tea"], never=["cake"], at_most=2)
    page = see().open("/markets/bar")
    show(page, "best-offer")
    for item, margin in MARGINS.items():
        page.get_by_label(f"Margin of {item}").fill(str(margin))
    page.get_by_label("tea in the offer").select_option("must")
    page.get_by_label("cake in the offer").select_option("never")
    page.get_by_label("at most", exact=False).first.fill("2")
    answers = list[Any]()

    def change(route: Any) -> None:
        """Answer as the server does at first, then as if the search had ended without a proof."""
        answer = route.fetch()
        content = answer.json()
        answers.append(content["decision"])
        if len(answers) > 1:
            content["decision"] |= {"proven": False, "bound": 9.87, "warnings": [ENDED.format(20)]}
        route.fulfill(response=answer, json=content)

    page.route("**/page/bar/decide", change)
    page.get_by_role("button", name="Find the best offer").click()
    today, proposed = (page.locator(".pair > div", has_text=title) for title in ("Today", "Proposed"))
    proposed.wait_for()
    assert set(proposed.locator("li").all_inner_texts()) == set(best["offer"])
    assert set(today.locator("li").all_inner_texts()) == set(answers[0]["context"]["present"])
    for one in (today, proposed):  # what each earns, and how sure that is, later
        assert re.fullmatch(r"[\d.]+.*", one.locator(".figure").inner_text())
        one.locator(".note", has_text=re.compile(r"per 100 customers \[[\d.]+, [\d.]+\]")).wait_for()
    sizes = page.locator("#decision figure")
    sizes.locator("svg").wait_for()
    sizes.locator("summary").click()
    rows = sizes.locator("tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == list(answers[0]["by_size"])
    page.get_by_role("button", name="Find the best offer").click()
    page.locator("#proof", has_text=ENDED.format(20)).wait_for()
    assert "It is not proven best: another may earn up to 987" in page.locator("#proof").inner_text()


def test_changes_to_the_shelf_are_limited(see: Callable[..., Seen]) -> None:
    page = see().open("/markets/bar")
    show(page, "best-offer")
    for item, margin in MARGINS.items():
        page.get_by_label(f"Margin of {item}").fill(str(margin))
    for limit, title in (("", "The best offer"), ("0", "The best offer is today's")):
        page.get_by_label("changes to today's offer").fill(limit)
        page.locator("#decision").evaluate("(place) => place.replaceChildren()")
        page.get_by_role("button", name="Find the best offer").click()
        page.locator("#decision-title").wait_for()
        assert page.locator("#decision-title").inner_text() == title


def test_no_cell_of_a_download_is_a_formula(see: Callable[..., Seen]) -> None:
    page = see().open("/markets/sheet")
    show(page, "best-offer")
    page.get_by_label("Same for all").fill("1.5")
    for choice in page.locator("#margins select").all():
        choice.select_option("must")
    page.get_by_role("button", name="Find the best offer").click()
    page.locator("#decision-title").wait_for()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download as CSV").click()
    head, *rows = csv.reader(saved.value.path().read_text().splitlines())
    assert head == ["item", "price", "share", "margin"]
    assert {row[0] for row in rows} == {*(f"'{item}" for item in FORMULAS[:4]), FORMULAS[4]}
    assert {row[3] for row in rows} == {"1.5"}


def test_a_busy_server_is_asked_again_and_the_page_says_so(see: Callable[..., Seen]) -> None:
    seen = see()
    page = seen.open("/markets/cafe")
    show(page, "best-offer")
    page.get_by_label("Same for all").fill("1.5")
    for choice in page.locator("#margins select").all():
        choice.select_option("must")
    asked = list[Any]()

    def refuse(route: Any) -> None:
        """Be busy for the first two questions."""
        asked.append(route)
        busy = {"status": 503, "headers": {"Retry-After": "1"}, "json": {"error": "busy"}}
        route.fulfill(**busy) if len(asked) < 3 else route.continue_()

    page.route("**/page/cafe/decide", refuse)
    page.get_by_role("button", name="Find the best offer").click()
    page.locator("#searching", has_text="The server is busy. Still searching").wait_for()
    page.locator("#decision-title").wait_for()
    assert len(asked) >= 3
    assert page.locator("#searching").inner_text() == ""
    assert page.locator("#decide-problem").inner_text() == ""
    seen.said = [text for text in seen.said if "503" not in text]


def wait_for_value(box: Any, value: str) -> None:
    """Files and what the server remembers are read after the page is there."""
    from playwright.sync_api import expect

    expect(box).to_have_value(value, timeout=1000.0 * LONG)


def test_margins_are_remembered_here_and_on_the_server(see: Callable[..., Seen]) -> None:
    seen = see()
    page = seen.open("/markets/odd")
    show(page, "best-offer")
    box = page.locator("#margins input").first
    with page.expect_response(lambda found: found.request.method == "PUT"):
        box.fill("1.25")
    page = seen.open("/markets/odd")
    wait_for_value(page.locator("#margins input").first, "1.25")
    other = see()  # another browser, with a token that may manage
    page = other.open("/markets/odd")
    wait_for_value(page.locator("#margins input").first, "1.25")
    page.evaluate("localStorage.setItem('rankstream odd', 'no JSON')")
    wait_for_value(other.open("/markets/odd").locator("#margins input").first, "1.25")


def test_the_shelf_and_the_currency_are_remembered(see: Callable[..., Seen]) -> None:
    seen = see()
    page = seen.open("/markets/bar")
    show(page, "what-if")
    page.get_by_role("checkbox", name="pie").uncheck()
    answered(page)
    with page.expect_response(lambda found: found.request.method == "PUT"):
        page.get_by_role("button", name="Save as today's offer").click()
    show(page, "best-offer")
    with page.expect_response(lambda found: found.request.method == "PUT"):
        page.get_by_label("Currency").fill("CHF")
    for one in (seen, see()):  # this browser, and another one
        page = one.open("/markets/bar")
        wait_for_value(page.get_by_label("Currency"), "CHF")
        show(page, "what-if")
        page.get_by_role("button", name="All").click()
        page.get_by_role("button", name="Today's offer", exact=True).click()
        assert not page.get_by_role("checkbox", name="pie").is_checked()
        assert page.get_by_role("checkbox", name="cake").is_checked()
    page.get_by_role("button", name="All").click()
    with page.expect_response(lambda found: found.request.method == "PUT"):
        page.get_by_role("button", name="Save as today's offer").click()


def test_model_counts_and_report_are_downloaded(see: Callable[..., Seen]) -> None:
    seen = see()
    page = seen.open("/markets/cafe")
    show(page, "data")
    texts = {}
    for name in ("Model", "Counts", "Report"):
        with page.expect_download() as saved:
            page.get_by_role("link", name=name, exact=True).click()
            if name == "Report":  # which takes some seconds
                page.locator("#making", has_text="Writing the report").wait_for()
        texts[name] = saved.value.path().read_text()
    assert json.loads(texts["Model"])["format"].startswith("rankstream")
    assert json.loads(texts["Counts"].splitlines()[0])["chosen"]
    assert "What customers choose: cafe" in texts["Report"]
    page.locator("#making:empty").wait_for(state="attached")
    busy = '<p role="alert">It is busy.</p>'
    page.route("**/page/cafe/report", lambda route: route.fulfill(status=503, body=busy, content_type="text/html"))
    page.get_by_role("link", name="Report", exact=True).click()
    page.locator("#making", has_text="It is busy.").wait_for()
    seen.said = [text for text in seen.said if "503" not in text]


def test_a_market_of_one_offer_says_what_is_missing(see: Callable[..., Seen]) -> None:
    page = see().open("/markets/kiosk")
    page.locator(".notice", has_text="All choices are from one offer.").wait_for()
    for tab in TABS:
        show(page, tab)
    show(page, "prices").get_by_text("This market has no prices").wait_for()


def test_a_keyboard_is_enough(see: Callable[..., Seen]) -> None:
    page = see().open("/markets/cafe")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    page.locator(".tabs a[href='#what-if']").focus()
    page.keyboard.press("Enter")
    answered(page)
    page.get_by_role("checkbox", name="cake").focus()
    page.keyboard.press("Space")
    page.locator("#summary tr", has_text="cake").wait_for()
    page.locator(".tabs a[href='#best-offer']").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Margin of tea").focus()
    page.keyboard.type("2")
    page.keyboard.press("Enter")  # finds the best offer, as the first button does
    page.locator("#decision-title").wait_for()
    page.locator(".tabs a[href='#overview']").focus()
    page.keyboard.press("Enter")
    summary = page.locator("#overview figure summary").first
    summary.focus()
    page.keyboard.press("Enter")
    page.locator("#overview figure details[open]").first.wait_for()


def test_without_scripts_everything_can_be_read(browser: Any, served: tuple[Served, str]) -> None:
    context = browser.new_context(java_script_enabled=False)
    context.set_default_timeout(1000 * LONG)
    page = context.new_page()
    page.goto(f"{served[0].url}/login?to=/markets/cafe")
    page.get_by_label("Token").fill(served[1])
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("checkbox", name="pie").uncheck()
    page.get_by_role("button", name="Predict").click()
    assert not page.get_by_role("checkbox", name="pie").is_checked()
    assert page.locator("main > .tab:visible").count() == len(TABS)  # one below the other
    assert page.locator("#overview table").count()
    context.close()


@pytest.mark.parametrize("width", [*WIDTHS, 2560])
def test_nothing_is_wider_than_the_screen(see: Callable[..., Seen], width: int) -> None:
    seen = see(width)
    for path in ("/", "/markets/cafe", "/markets/odd", MISSING):
        page = seen.open(path)
        for tab in TABS if path.startswith("/markets/") and path != MISSING else ("",):
            if tab:
                show(page, tab)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, tab)
        cells = page.locator("#answer tbody th:visible").all()
        assert all(cell.bounding_box()["width"] >= 70 for cell in cells)  # a name is not a column of letters
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 26)"
            assert dark == (scheme == "dark")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, scheme)
    seen.said = [text for text in seen.said if "404" not in text]  # there is no market 'none'


CARDS = """(tab) => [...document.querySelectorAll(`#${tab} .card`)].filter((one) => one.checkVisibility())
  .map((one) => one.getBoundingClientRect()).map((box) => [box.left, box.top, box.right, box.bottom])"""
SCROLLING = """() => [...document.querySelectorAll("main *")].filter((one) => one.checkVisibility()
  && /auto|scroll/.test(getComputedStyle(one).overflow)
  && (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1))
  .map((one) => one.outerHTML.slice(0, 200))"""


@pytest.mark.parametrize("width", [1280, 1920])
def test_the_whole_width_is_used(see: Callable[..., Seen], width: int) -> None:
    page = see(width).open("/markets/cafe")
    for tab in TABS:
        show(page, tab)
        left, _, right, _ = zip(*page.evaluate(CARDS, tab), strict=True)
        assert max(right) - min(left) > 0.95 * width, tab


def test_no_box_scrolls_within_the_page_on_a_phone(see: Callable[..., Seen]) -> None:
    seen = see(390)
    for path in ("/", "/markets/cafe", "/markets/odd"):
        page = seen.open(path)
        for tab in TABS if path != "/" else ("",):
            if tab:
                show(page, tab)
            page.evaluate("document.querySelectorAll('figure details').forEach((one) => { one.open = true; })")
            assert page.evaluate(SCROLLING) == [], (path, tab)


def test_colours_are_looked_at_in_light_and_dark(browser: Any, axe: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    for scheme in ("light", "dark"):
        page.set_content(
            f"<html lang=en><title>x</title><style>@media (prefers-color-scheme: {scheme}) {{ p {{ color: #ddd }} }}"
            "</style><main><h1>x</h1><p>pale</p></main>"
        )
        assert [one.partition(":")[0] for one in findings(page, axe)] == ["color-contrast"], scheme
    context.close()


def test_everybody_can_use_the_pages(see: Callable[..., Seen], axe: str) -> None:
    seen = see(390)
    for path in ("/login", "/", "/markets/cafe", "/markets/odd"):
        page = seen.open(path)
        for tab in TABS if path.startswith("/markets/") else ("",):
            if tab:
                show(page, tab)
            page.evaluate("document.querySelectorAll('figure details').forEach((one) => { one.open = true; })")
            assert findings(page, axe) == [], (path, tab)


def test_everybody_can_read_a_report(browser: Any, axe: str, tmp_path: Path) -> None:
    choices, model, report = (str(tmp_path / name) for name in ("choices.jsonl", "model.json", "report.html"))
    Path(choices).write_text("".join(json.dumps(one) + "\n" for one in ODD))
    for words in (
        ["fit", choices, "-o", model, "--method", "mnl"],
        ["report", model, "--data", choices, "-o", report, "--replicates", "3"],
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert not ended.value.code
    seen = Seen(browser, "file://", 390)
    page = seen.open(report)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator("figure svg").first.wait_for()
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert findings(page, axe) == []
    seen.close()
