"""The pages in a real browser: they load, stay live, answer what if, and can be used by everybody."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from browser_pages import MISSING, SIZES, Seen, axe, browser, findings, needs_browser, shares
from html_pages import HOSTILE
from rankstream.cli import main
from rankstream.service.storage import tokens
from service import Served
from serving import CAFE
from waits import patient_client, wait_for

__all__ = ["axe", "browser"]
pytestmark = needs_browser
ODD = [{"offered": [*HOSTILE[place:], "nothing"], "chosen": HOSTILE[-1]} for place in range(4) for _ in range(9)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    folder = tmp_path_factory.mktemp("browser") / "shop"
    found = Served(folder)
    token = tokens.create(folder, ["*"], ["write", "read", "manage"])
    with patient_client(found.url, token) as client:
        for market, records in (("cafe", CAFE * 3), ("odd", ODD)):
            client.send(market, records)
            client.settings(market, served="sparse", no_choice="nothing")
        wait_for(lambda: all(one["learned"] == one["records"] and one["kind"] for one in client.markets()))
    yield found, token
    assert found.stop() == 0


@pytest.fixture
def see(browser: Any, served: tuple[Served, str]) -> Iterator[Callable[..., Seen]]:
    made: list[Seen] = []

    def make(width: int = 1280, scheme: str = "light", has_token: bool = True) -> Seen:
        made.append(Seen(browser, served[0].url, width, scheme))
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
    answer = page.locator("#answer")
    answer.locator("tbody tr").first.wait_for()  # on a busy machine the pictures are drawn first
    before = shares(answer)
    page.get_by_role("checkbox", name="pie").uncheck()
    answer.locator("tr", has_text="pie").wait_for(state="detached")
    after = shares(answer)
    assert set(before) - set(after) == {"pie"}
    assert sum(after.values()) == pytest.approx(100.0, abs=0.3)
    assert sum(share > before[item] for item, share in after.items()) > 0
    answer.get_by_text("by refits of the model of record").wait_for()
    margins = {"tea": 1.0, "pie": 3.0, "cake": 2.0}
    with patient_client(served[0].url, served[1]) as client:
        best = client.decide("cafe", margins, no_choice="nothing")["offer"]
    for item, margin in margins.items():
        page.get_by_label(f"Margin of {item}").fill(str(margin))
    page.get_by_role("button", name="Best offer").click()
    answer.get_by_text(f"The best offer: {', '.join(best)}.").wait_for()
    for item in margins:
        assert page.get_by_role("checkbox", name=item).is_checked() == (item in best)
    with patient_client(served[0].url, served[1]) as client:
        client.send("cafe", CAFE)
    page.locator("#records", has_text=str(4 * len(CAFE))).wait_for()
    page.locator("#position", has_text=str(4 * len(CAFE))).wait_for()
    page.get_by_role("link", name="All markets").click()
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("heading", name="Log in").wait_for()
    assert urlsplit(seen.open("/").url).path == "/login"


def test_a_look_for_intervals_overtakes_no_question(see: Callable[..., Seen]) -> None:
    seen, held = see(), list[Any]()
    seen.page.clock.install()
    page = seen.open("/markets/cafe")
    answer = page.locator("#answer")
    answer.locator("tbody tr").first.wait_for()

    def wait_on(route: Any) -> None:
        """Answers have no intervals yet, and the first best offer takes long."""
        if "ask=best" in (route.request.post_data or "") and not held:
            held.append(route)
            return
        found = route.fetch()
        route.fulfill(
            response=found, body=found.text().replace("<table data-ticked", "<table data-waiting data-ticked")
        )

    page.route("**/markets/cafe", wait_on)
    page.get_by_role("checkbox", name="pie").uncheck()
    answer.locator("[data-waiting]").wait_for()
    page.get_by_label("Margin of tea").fill("2")
    page.get_by_role("button", name="Best offer").click()
    page.clock.run_for(4000)
    held[0].continue_()
    best = answer.get_by_text("The best offer: tea.")
    best.wait_for()
    page.get_by_label("Margin of cake").fill("1")
    page.get_by_role("button", name="Predict").click()
    best.wait_for(state="detached")
    page.get_by_label("Margin of cake").fill("")
    page.get_by_role("button", name="Best offer").click()
    best.wait_for()
    with page.expect_response(lambda found: found.request.method == "POST"):
        page.clock.run_for(4000)
    page.wait_for_function("!document.getElementById('answer').hasAttribute('aria-busy')")
    assert best.is_visible()


def test_the_browser_remembers_margins(see: Callable[..., Seen]) -> None:
    seen = see()
    page = seen.open("/markets/cafe")
    page.get_by_label("Margin of tea").fill("1.25")
    seen.open("/")
    page = seen.open("/markets/cafe")
    assert page.get_by_label("Margin of tea").input_value() == "1.25"
    assert page.get_by_label("Margin of pie").input_value() == ""
    page.get_by_label("Margin of tea").fill("")
    assert seen.open("/markets/cafe").get_by_label("Margin of tea").input_value() == ""
    page.evaluate("localStorage.setItem('rankstream margins cafe', 'no JSON')")
    assert seen.open("/markets/cafe").get_by_label("Margin of tea").input_value() == ""


def test_a_keyboard_is_enough(see: Callable[..., Seen]) -> None:
    page = see().open("/markets/cafe")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the content"
    page.keyboard.press("Enter")
    assert urlsplit(page.url).fragment == "main"
    answer = page.locator("#answer")
    answer.locator("tbody tr").first.wait_for()
    for _ in range(3):  # the list of items, cake and its margin come first
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "on":
            break
    page.keyboard.press("Space")
    answer.locator("tr", has_text="cake").wait_for(state="detached")
    page.get_by_label("Margin of tea").focus()
    page.keyboard.type("2")
    with page.expect_response(lambda found: found.request.method == "POST"):
        page.keyboard.press("Enter")  # predicts, as the first button does
    page.get_by_role("button", name="Best offer").focus()
    page.keyboard.press("Enter")
    answer.get_by_text("The best offer: tea.").wait_for()
    summary = page.locator("summary").first
    summary.focus()
    page.keyboard.press("Enter")
    assert page.locator("details").first.get_attribute("open") is not None


def test_without_scripts_the_form_works(browser: Any, served: tuple[Served, str]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{served[0].url}/login?to=/markets/cafe")
    page.get_by_label("Token").fill(served[1])
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("checkbox", name="pie").uncheck()
    page.get_by_role("button", name="Predict").click()
    assert page.locator("#answer tr", has_text="pie").count() == 0
    assert not page.get_by_role("checkbox", name="pie").is_checked()
    context.close()


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_nothing_is_wider_than_the_screen(see: Callable[..., Seen], tmp_path: Path, width: int, scheme: str) -> None:
    seen = see(width, scheme)
    for path in ("/", "/markets/cafe", "/markets/odd", MISSING):
        page = seen.open(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        page.screenshot(path=tmp_path / f"{path.rpartition('/')[2] or 'markets'}-{width}-{scheme}.png", full_page=True)
        cells = page.locator("#answer tbody th").all()
        assert all(cell.bounding_box()["width"] >= 70 for cell in cells)  # a name is not a column of letters
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
        assert dark == (scheme == "dark")
    seen.said = [text for text in seen.said if "404" not in text]  # there is no market 'none'


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_the_pages(see: Callable[..., Seen], axe: str, scheme: str) -> None:
    seen = see(390, scheme)
    for path in ("/login", "/", "/markets/cafe", "/markets/odd"):
        page = seen.open(path)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert findings(page, axe) == [], path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_a_report(browser: Any, axe: str, tmp_path: Path, scheme: str) -> None:
    choices, model, report = (str(tmp_path / name) for name in ("choices.jsonl", "model.json", "report.html"))
    Path(choices).write_text("".join(json.dumps(one) + "\n" for one in ODD))
    for words in (
        ["fit", choices, "-o", model, "--method", "mnl"],
        ["report", model, "--data", choices, "-o", report, "--replicates", "3", "--folds", "2"],
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert not ended.value.code
    seen = Seen(browser, "file://", 390, scheme)
    page = seen.open(report)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert findings(page, axe) == []
    seen.close()
