"""The list of markets in a real browser: an overview that can be sorted, and a place to drop files on."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser_pages import WIDTHS, Seen, axe, browser, findings, needs_browser
from html_pages import HOSTILE
from local_service import CAFE
from service import Served
from waits import patient_client, wait_for

__all__ = ["axe", "browser"]
pytestmark = needs_browser
OFFERS = ("tea,nothing", "tea,pie,nothing", "tea,pie,nothing")
ROWS = [
    f"2026-05-{1 + number % 28:02d};{OFFERS[number % 3]};{'tea' if number % 5 else 'nothing'}" for number in range(300)
]
CHOICES = "\n".join(["Day;On the shelf;Sold", *ROWS])
DROP = """([name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name));
  for (const kind of ["dragover", "drop"]) {
    const event = new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true });
    document.getElementById("drop").dispatchEvent(event);
  }
}"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server without tokens, with two markets; files of a megabyte may be uploaded."""
    found = Served(tmp_path_factory.mktemp("markets") / "shop", "--limit", "upload=1000000")
    odd = [{"offered": [*HOSTILE[place:], "nothing"], "chosen": HOSTILE[-1]} for place in range(4) for _ in range(9)]
    with patient_client(found.url) as client:
        for market, records in (("cafe", CAFE * 3), ("odd", odd)):
            client.send(market, records)
            client.settings(market, served="sparse", no_choice="nothing")
        wait_for(lambda: all(one["learned"] == one["records"] and one["kind"] for one in client.markets()))
    yield found
    assert found.stop() == 0
    assert not (found.folder / "uploads").exists()


@pytest.fixture
def seen(browser: Any, served: Served) -> Iterator[Seen]:
    one = Seen(browser, served.url)
    yield one
    one.close()


def listed(page: Any) -> list[str]:
    found: list[str] = page.locator("#markets tbody th").all_inner_texts()
    return found


def opened(seen: Seen) -> Any:
    """The list, with the trend and the change of every market."""
    page = seen.open("/")
    page.locator("body[data-begun]").wait_for()
    return page


def test_all_markets_are_seen_at_once_and_sorted(seen: Seen) -> None:
    page = opened(seen)
    row = page.locator("tr[data-market=cafe]")
    assert "108" in row.inner_text()
    assert row.locator(".seller").first.inner_text().split() == ["tea", "33", "%"]
    assert row.locator(".is-change summary").inner_text() in ("Tastes stable", "Change not tested", "Changed lately")
    row.locator(".chip summary", has_text="fit").click()
    row.get_by_text("The model is based on 108 choices").wait_for()
    for head, first in (("choices", "cafe"), ("choices", "odd"), ("market", "cafe"), ("market", "odd")):
        page.get_by_role("button", name=head, exact=True).click()
        assert listed(page)[0] == first
    assert page.locator("[aria-sort]").get_attribute("aria-sort") == "descending"
    row.get_by_role("link", name="Best offer").click()
    page.get_by_role("heading", name="Find the best offer").wait_for()


def test_a_file_is_dropped_corrected_and_becomes_a_market(seen: Seen, served: Served) -> None:
    page = opened(seen)
    held = dict[str, Any]()  # the first question of each kind takes long

    def hold(route: Any) -> None:
        kind = route.request.url.rpartition("/")[2]
        route.continue_() if kind in held else held.update({kind: route})

    page.route(re.compile("/page/.*/(reading|import)$"), hold)
    page.evaluate(DROP, ["may 2026.csv", CHOICES])
    page.locator("#drop-state", has_text="Reading the file").wait_for()  # it says that it is working
    held["reading"].continue_()
    page.locator("#preview-problem", has_text="has no column").wait_for()
    assert page.locator("#sample tbody tr").count() == 20
    assert page.locator("#import").is_disabled()
    for column, role in (("On the shelf", "offered"), ("Sold", "chosen"), ("Day", "time")):
        page.get_by_label(f"Role of {column}").select_option(role)
        page.locator("#account[aria-busy=false]").wait_for(state="attached")
    page.locator("#account", has_text="300 choices from 2 different offers of 3 items").wait_for()
    page.locator("#account", has_text="From 1 May 2026 to 28 May 2026").wait_for()
    assert page.locator("#preview-problem").inner_text() == ""  # the error of the look before is gone
    page.get_by_label("Name for customers who bought nothing").fill("nothing")
    name = page.get_by_label("Name of the market")
    name.fill("cafe")
    name.blur()  # the name is checked when the field is left
    page.locator("#preview-problem", has_text="a market of this name already").wait_for()
    name.fill("May")
    name.blur()
    page.locator("#import:not([disabled])").press("Enter")
    page.locator("#import-state", has_text="Building the market").wait_for()
    held["import"].continue_()
    page.get_by_role("heading", name="May", exact=True).wait_for()
    page.locator("body[data-begun]").wait_for()
    assert "300 choices" in page.locator("#status").inner_text()
    assert "28 May 2026" in page.locator("#status").inner_text()
    wait_for(lambda: not list((served.folder / "uploads").iterdir()))
    assert "May" in listed(opened(seen))


def test_files_that_are_refused_say_why(seen: Seen, tmp_path: Path) -> None:
    page = opened(seen)
    for name, content, words in (
        ("huge.csv", b"x" * 1_000_001, "rankstream open"),
        ("empty.csv", b"", "is empty"),
        ("photo.parquet", bytes(range(256)) * 20, "photo.parquet"),
        ("archive.zip", b"PK", "is compressed"),
    ):
        (tmp_path / name).write_bytes(content)
        page.locator("#choices-file").set_input_files(tmp_path / name)
        page.locator("#drop-problem", has_text=words).wait_for()
        assert page.locator("#preview").is_hidden()
    hostile = [{"offered": [*HOSTILE, "tea"], "chosen": one, HOSTILE[0]: one} for one in HOSTILE]
    (tmp_path / "odd.jsonl").write_text("\n".join(map(json.dumps, hostile)))
    page.locator("#choices-file").set_input_files(tmp_path / "odd.jsonl")
    page.locator("#account .lead").wait_for()
    assert page.locator("#drop-problem").inner_text() == ""
    assert page.locator("#sample img, #sample script, #account script").count() == 0
    page.get_by_role("button", name="Cancel").click()
    assert page.locator("#preview").is_hidden()
    seen.said = [text for text in seen.said if "422" not in text]  # which the browser notes of refused files


@pytest.mark.parametrize("width", WIDTHS)
def test_everybody_can_use_the_list(browser: Any, served: Served, axe: str, width: int) -> None:
    seen = Seen(browser, served.url, width)
    page = opened(seen)
    page.evaluate(DROP, ["choices.csv", "offered,chosen\ntea;pie,tea\ntea;pie,pie\n"])
    page.locator("#account .lead").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert findings(page, axe) == []
    seen.close()
