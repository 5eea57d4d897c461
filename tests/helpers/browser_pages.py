"""Pages in a real browser: what they say and ask for, and whether everybody can use them."""

import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from waits import LONG

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: make setup does that.")
CHROMIUM = os.environ.get("RANKSTREAM_CHROMIUM") or shutil.which("chromium")
needs_browser = [
    pytest.mark.browser,
    pytest.mark.server,
    pytest.mark.skipif(CHROMIUM is None, reason="There is no Chromium: make browser installs it."),
]
MISSING = "/markets/none"
WIDTHS = (390, 1280)


class Seen:
    """A page of a browser, with what it said and asked for."""

    def __init__(self, browser: Any, url: str, width: int = 1280) -> None:
        self.url, self.said, self.hosts = url, [], set()
        self.context = browser.new_context(viewport={"width": width, "height": 900})
        self.context.set_default_timeout(1000 * LONG)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", self.dismiss)
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).hostname))

    said: list[str]
    hosts: set[str | None]

    def dismiss(self, dialog: Any) -> None:
        self.said.append("a dialog")
        dialog.dismiss()

    def open(self, path: str) -> Any:
        self.page.goto(self.url + path)
        if path.startswith("/markets/") and urlsplit(self.page.url).path == path and path != MISSING:
            self.page.locator("body[data-begun]").wait_for()
        return self.page

    def log_in(self, token: str) -> None:
        self.open("/login")
        self.page.get_by_label("Token").fill(token)
        self.page.keyboard.press("Enter")
        self.page.get_by_role("heading", name="Markets").wait_for()

    def close(self) -> None:
        """Nothing went wrong, and nothing left this machine."""
        self.context.close()
        assert self.said == [], self.said
        assert self.hosts <= {"127.0.0.1", None}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


TABS = ("overview", "what-if", "best-offer", "prices", "changes", "customers", "data")


def show(page: Any, tab: str) -> Any:
    """Go to a tab, and wait until everything in it is there."""
    page.locator(f".tabs a[href='#{tab}']").click()
    shown = page.locator(f"#{tab}")
    shown.wait_for()
    page.locator("[data-panel] .loading").first.wait_for(state="detached")
    page.locator(f"#{tab} figure[data-kind]:not(:has(svg)):visible").first.wait_for(state="detached")
    return shown


def answered(page: Any) -> None:
    """Wait until no question of What if is under way."""
    page.locator("#answer[aria-busy=false] tr:not(.off) .share:not(:empty)").first.wait_for()


def shares(page: Any) -> dict[str, float]:
    """The predicted shares on a page, in percent."""
    read = "(rows) => rows.map((row) => [row.querySelector('bdi').innerText, row.querySelector('.share').innerText])"
    rows = page.locator("#answer tbody tr:not(.off)").evaluate_all(read)  # at one moment
    return {item: float(share.rstrip(" %")) for item, share in rows}


@pytest.fixture(scope="module")
def axe(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, from npm."""
    cache = getattr(request.config, "cache", None)  # there is none with -p no:cacheprovider
    folder = cache.mkdir("axe-core") if cache else tmp_path_factory.mktemp("axe-core")
    if not list(folder.glob("*.tgz")):
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("There is no npm to get axe-core with: install it.")
        try:
            subprocess.run([npm, "pack", "axe-core@4"], cwd=folder, check=True, capture_output=True, timeout=60)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            pytest.skip("axe-core cannot be had from npm: connect to it once.")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        file = archive.extractfile("package/axe.min.js")
        assert file is not None
        return file.read().decode()


CONTRAST = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}


def findings(page: Any, axe: str) -> list[str]:
    """What keeps somebody from using a page; in the dark colours alone differ."""
    page.evaluate(axe)
    found = []
    for scheme, rules in (("dark", CONTRAST), ("light", {})):
        page.emulate_media(color_scheme=scheme)
        found += page.evaluate("(rules) => axe.run(rules)", rules | {"resultTypes": ["violations"]})["violations"]
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {json.dumps([node['html'][:200] for node in one['nodes'][:3]])}" for one in serious]
