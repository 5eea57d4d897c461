"""Pictures of the report and the pages, in a real browser: ``python docs/screenshots.py`` draws docs/images."""

import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from playwright.sync_api import Browser, sync_playwright

import rankstream as rs
from service import Served

IMAGES = Path(__file__).parent / "images"
WIDE, TALL = 1000, 1250
NAMES = ("tea", "coffee", "juice", "cake", "pie", "scone")


def picture(browser: Browser, url: str, name: str, scheme: str, wait: str = "", width: int = WIDE) -> None:
    """The beginning of a page, as soon as a text is there."""
    context = browser.new_context(
        viewport={"width": width, "height": TALL}, color_scheme="dark" if scheme == "dark" else "light"
    )
    page = context.new_page()
    page.goto(url)
    if wait:
        page.get_by_role("checkbox", name="juice").uncheck()
        page.locator("#answer tr", has_text="juice").wait_for(state="detached")
        page.get_by_text(wait).first.wait_for(timeout=120_000)
    page.screenshot(path=IMAGES / name)
    context.close()


def simulated(seed: int, number: int) -> list[rs.Record]:
    """Choices from a simulated market."""
    market = rs.simulate.market(seed, n_items=6, items=NAMES, n_offers=12, n_test=1)
    offers = market.assortments
    each = [rs.Record(offers.offers[j], offers.items[k]) for j, k in zip(offers.owner, offers.members, strict=True)]
    random = np.random.default_rng(seed)
    return [each[k] for k in rs.simulate.draw_choices(offers, market.frequencies(), number, random).tolist()]


def serve(browser: Browser, folder: Path) -> None:
    """The page of a market, once intervals are there."""
    served, choices = Served(folder), simulated(3, 6000)
    try:
        with rs.Client(served.url) as client:
            for records in np.array_split(np.arange(6000), 6):
                client.send("cafe", choices[int(records[0]) : int(records[-1]) + 1])
                time.sleep(2.0)
            client.settings("cafe", no_choice="nothing")
            while client.markets()[0]["learned"] < 6000 or client.markets()[0]["kind"] != "max-entropy":
                time.sleep(0.5)
        for name, scheme, width in (("page.png", "light", WIDE), ("page-dark.png", "dark", 390)):
            picture(browser, f"{served.url}/markets/cafe", name, scheme, "by refits of the model", width)
    finally:
        served.stop()


def main() -> None:
    """Draw all of them."""
    command = [str(Path(sys.executable).parent / "rankstream")]
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        serve(browser, Path(folder) / "shop")
        subprocess.run([*command, "demo", "--out", "demo"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        words = ["report", "demo/model.json", "--data", "demo/choices.csv", "--margins", "demo/items.csv"]
        subprocess.run([*command, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        picture(browser, f"file://{folder}/report.html", "report.png", "light")
        browser.close()


if __name__ == "__main__":
    main()
