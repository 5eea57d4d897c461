"""Time on the page in a real browser: dates on every axis, the day of a change, progress, and what is there at once."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import rankstream as rs
from browser_pages import TABS, Seen, answered, browser, needs_browser, show, sync_api
from local_service import CAFE
from rankstream.service.processes.importer import Importer
from rankstream.service.processes.item_list import observed_listing
from rankstream.service.storage.database import transaction
from rankstream.service.storage.log import open_log
from rankstream.service.storage.publication import open_learned
from service import Served
from start import processes_of
from waits import LONG, patient_client, wait_for

__all__ = ["browser"]
pytestmark = needs_browser
DAY, FIRST, COUNT = 86_400.0, datetime(2026, 3, 2, tzinfo=UTC).timestamp(), 25
MONTHS = re.compile("Mar|Apr|May|Jun")
CAFE_FILE = Path(__file__).parents[2] / "examples" / "cafe.csv"


def days(chosen: str, first: int, number: int = 40) -> list[dict[str, Any]]:
    """A record a day, all of the same choice."""
    offer = {"offered": ["tea", "pie", "cake"], "count": COUNT}
    return [{**offer, "chosen": chosen, "time": FIRST + DAY * (first + day)} for day in range(number)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server without tokens: a market with times that changes, one without times, a small one, and a new one."""
    found = Served(tmp_path_factory.mktemp("times") / "shop")
    with patient_client(found.url) as client:
        client.send("dated", days("tea", 0))
        client.settings("dated", served="sparse", detect=True)
        client.send("dated", days("pie", 40))
        for market, records in (("plain", CAFE * 3), ("few", CAFE[10:14]), ("later", CAFE * 3)):
            client.send(market, records)
            client.settings(market, served="sparse", no_choice="nothing")
        wait_for(lambda: all(one["learned"] == one["records"] and one["kind"] for one in client.markets()))
        wait_for(lambda: client.certificate("dated")["alarms"])
    yield found
    assert found.stop() == 0


@pytest.fixture
def seen(browser: Any, served: Served) -> Iterator[Seen]:
    one = Seen(browser, served.url)
    yield one
    one.close()


@contextmanager
def paused(served: Served, name: str) -> Iterator[None]:
    """Stop one process of the service for a while, found by a word of its command."""
    assert served.process is not None
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in processes_of(served.process.pid)}
    (process,) = (pid for pid, command in commands.items() if name in command)
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def time_axes(page: Any) -> list[tuple[bool, list[str]]]:
    """Every chart over time: whether its records have times, and all of its texts."""
    found = []
    for tab in TABS:
        show(page, tab)
        for figure in page.locator(f"#{tab} figure[data-kind]").all():
            values = json.loads(figure.get_attribute("data-values"))
            if isinstance(values, dict) and "dated" in values:
                found.append((values["dated"], figure.locator("svg text").all_text_contents()))
    return found


def test_every_time_axis_has_dates_where_records_have_times(seen: Seen) -> None:
    page = seen.open("/markets/dated")
    axes = time_axes(page)
    assert len(axes) == 2  # on the first tab, and among the changes
    for dated, texts in axes:
        assert dated
        assert len({month for text in texts for month in MONTHS.findall(text)}) >= 2, texts
        assert not [text for text in texts if re.fullmatch(r"[\d,]{4,}", text)]  # no records, and no seconds
    show(page, "changes")
    for name in ("Before, from", "Before, to", "After, from", "After, to"):
        options = page.get_by_label(name).locator("option").all_inner_texts()
        assert all(re.fullmatch(r"\d+ (Mar|Apr|May) 2026", option) for option in options), options
    page.locator("#changes figure[data-kind=trend] summary").click()
    starts = page.locator("#changes figure[data-kind=trend] tbody th").all_inner_texts()
    assert all(re.fullmatch(r"2026-0[345]-\d\d \d\d:\d\d", start) for start in starts)
    plain = time_axes(seen.open("/markets/plain"))
    assert len(plain) == 2
    for dated, texts in plain:
        assert not dated
        assert any("record" in text for text in texts)
        assert not any(MONTHS.search(text) for text in texts)


def test_a_change_has_its_day_its_line_and_its_items(seen: Seen, served: Served) -> None:
    with patient_client(served.url) as client:
        (alarm,) = client.certificate("dated")["alarms"]
    day = datetime.fromtimestamp(FIRST + DAY * (round(alarm["choice"] / COUNT) - 1), UTC)
    page = seen.open("/markets/dated")
    show(page, "changes")
    assert page.locator("#change-chip summary").inner_text() == f"Changed on {day.day} {day:%B}"
    page.locator("#change-chip summary").click()
    page.locator("#change-chip p", has_text="Tastes changed").wait_for()
    page.locator("#changes p", has_text="Tastes changed").first.wait_for()  # the verdict
    assert page.locator("#changes figure[data-kind=trend] g[stroke-dasharray='4 3'] line").count() == 1
    moves = page.locator("#changes .drift figure[data-kind=moves]")
    change = {one["item"]: one["change"] for one in json.loads(moves.get_attribute("data-values"))}
    assert change.keys() & {"pie", "tea"}  # one of a pair may be left out
    assert change.get("pie", 1.0) > 0.0 > change.get("tea", -1.0)
    assert set(change) <= set(moves.locator("svg text").all_text_contents())
    status = page.locator("#status").inner_text()
    assert re.match(r"80 records, all processed. Last choice \d+ s ago. Updated \d+ s ago. Live.", status), status
    page.get_by_text("Model is current").click()
    page.get_by_text("The model includes 80 of 80 records.").wait_for()


def test_a_model_of_few_choices_is_provisional(seen: Seen) -> None:
    page = seen.open("/markets/few")
    page.locator("#reason:not(:empty)").wait_for()
    page.locator(".chip summary", has_text="Provisional").wait_for()
    page.locator("#overview figure[data-kind=bars] svg text", has_text="50.0 %").first.wait_for()  # as observed
    show(page, "what-if")
    answered(page)
    page.locator("#summary .notice", has_text="Provisional").wait_for()
    seen.open("/")
    page.locator("tr[data-market=few] .chip summary", has_text="Provisional").wait_for()


def test_the_form_and_the_shares_are_there_while_all_else_is_computed(seen: Seen, served: Served) -> None:
    seen.open("/markets/plain")  # so that the process which computes has started
    with paused(served, "batch_reader"):
        page = seen.open("/markets/later")
        page.locator("#overview figure[data-kind=bars] svg text", has_text="33.3 %").first.wait_for()
        assert page.locator(".loading").count() > 1
        page.locator(".tabs a[href='#what-if']").click()
        page.get_by_role("checkbox", name="pie").uncheck()
        page.locator("#answer[aria-busy=true]").wait_for()  # it says that it is working
    answered(page)
    show(page, "overview")
    page.locator(".findings p", has_text="tea sells most").wait_for()


def test_progress_is_shown_until_the_model_is_there(seen: Seen, served: Served) -> None:
    reading = rs.read(CAFE_FILE)
    log = open_log(served.folder)
    # the learner could make a model of its own in the moment between the choices and the first word on progress
    with closing(log), closing(open_learned(served.folder, log)) as learned, paused(served, "learner"):
        file = Importer(log, learned, "file", {"method": "mnl", "budget": None, "seed": 0})
        with transaction(log):
            file.store(reading, reading.counts)
        file.tell("Reading cafe.csv", 0.0)
        page = seen.page
        page.goto(f"{served.url}/markets/file")
        page.locator("#waiting", has_text="Reading cafe.csv").wait_for()
        file.tell("Fitting the model: round 3", 0.4, observed_listing(reading.counts))
        page.locator("#waiting", has_text="Fitting the model: round 3").wait_for()
        sync_api.expect(page.locator("progress")).to_have_js_property("value", 0.4, timeout=1000 * LONG)
        page.locator("figure[data-kind=bars] svg").wait_for()  # what was observed, before there is a model
        file.fit_model(reading, reading.counts)
        page.locator("body[data-begun]").wait_for()  # without a click
        show(page, "what-if")
        answered(page)
        assert page.locator("#reason").inner_text() == ""


def test_the_examples_for_curl_and_python_run_as_they_are(seen: Seen, served: Served) -> None:
    page = seen.open("/markets/plain")
    show(page, "data")
    program = page.locator("#as-python").inner_text()
    assert served.url in program
    exec(compile(program, "the page", "exec"), {})
    words = shlex.split(page.locator("#as-curl").inner_text())
    assert words[0] == "curl"
    if shutil.which("curl"):
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        (prediction,) = json.loads(done.stdout)["predictions"]
        assert sum(prediction["shares"].values()) == pytest.approx(1.0)
