"""Pictures of the report and the pages, in a real browser: ``python docs/screenshots.py`` draws docs/images."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

import rankstream as rs
from service import Served

IMAGES = Path(__file__).parent / "images"
WIDE, TALL, NARROW = 1280, 1250, 390
PAGES = (
    ("page.png", "light", WIDE), ("page-wide-dark.png", "dark", WIDE), ("page-narrow.png", "light", NARROW),
    ("page-dark.png", "dark", NARROW),
)  # fmt: skip
REPORTS = (("report.png", "light", WIDE), ("report-dark.png", "dark", NARROW))
NAMES = ("tea", "coffee", "juice", "cake", "pie", "scone")


def picture(browser: Browser, url: str, name: str, scheme: str, wait: str = "", width: int = WIDE) -> None:
    """The beginning of a page, as soon as a text is there."""
    context = browser.new_context(
        viewport={"width": width, "height": TALL}, color_scheme="dark" if scheme == "dark" else "light"
    )
    page = context.new_page()
    page.goto(url)
    if wait:
        page.locator("body[data-begun]").wait_for(timeout=120_000)
        page.get_by_role("checkbox", name="juice").uncheck()
        page.locator(wait).first.wait_for(timeout=400_000)
    end = page.evaluate("document.querySelector('main').getBoundingClientRect().bottom")
    height = min(TALL, end + 24)  # no empty space below a short page
    page.screenshot(path=IMAGES / name, clip={"x": 0, "y": 0, "width": width, "height": height})
    Image.open(IMAGES / name).convert("RGB").quantize(128).save(IMAGES / name, optimize=True)
    context.close()


def simulated(seed: int, number: int, other: int | None = None) -> list[rs.Record]:
    """Choices from a simulated market, by its own customers or by those of another one."""
    market = rs.simulate.market(seed, n_items=6, items=NAMES, n_offers=12, n_test=1)
    tastes = market if other is None else rs.simulate.market(other, n_items=6, items=NAMES, n_offers=12, n_test=1)
    offers = market.assortments
    each = [rs.Record(offers.offers[j], offers.items[k]) for j, k in zip(offers.owner, offers.members, strict=True)]
    random, shares = np.random.default_rng(seed), tastes.truth.probabilities(offers)
    return [each[k] for k in rs.simulate.draw_choices(offers, shares, number, random).tolist()]


def follow(client: rs.Client, market: str, choices: list[rs.Record], **settings: Any) -> None:
    """Send choices little by little, so that there is a course to see, and wait until the model is of all of them."""
    for place, first in enumerate(range(0, len(choices), 500)):
        client.send(market, choices[first : first + 500])
        if not place:
            client.settings(market, no_choice="nothing", **settings)
        time.sleep(1.0)

    def is_there() -> bool:
        (row,) = (one for one in client.markets() if one["market"] == market)
        return bool(row["learned"] == len(choices) and row["kind"] == "max-entropy")

    while not is_there():
        time.sleep(0.5)


def serve(browser: Browser, folder: Path) -> None:
    """The page of a market, once intervals are there, and the course of one that changes."""
    served = Served(folder)
    try:
        with rs.Client(served.url) as client:
            follow(client, "cafe", simulated(3, 6000))
            follow(client, "change", [*simulated(3, 4000), *simulated(3, 4000, other=9)], detect=True)
        for name, scheme, width in PAGES:
            picture(browser, f"{served.url}/markets/cafe#what-if", name, scheme, "#answer .ends:not(:empty)", width)
        page = browser.new_page(viewport={"width": 760, "height": TALL})
        page.goto(f"{served.url}/markets/change#changes")
        page.locator("#course").wait_for(timeout=120_000)
        page.locator("#course").screenshot(path=IMAGES / "page-course.png")
        page.close()
    finally:
        served.stop()


def bakery(folder: Path) -> None:
    """Write 45 weeks of visits to a simulated bakery, and what a sale earns; the latest shelf lacks what sells well."""
    names = ("croissant", "muffin", "bagel", "pretzel", "scone", "cookie", "brownie", "cinnamon roll")
    margins = (1.5, 1.3, 1.4, 0.7, 0.8, 0.6, 1.3, 1.7)
    random, rows = np.random.default_rng(5), []
    worth = np.array([1.2, 0.6, 0.9, 0.3, -0.1, -0.3, 0.5, 1.1]) + random.normal(0.0, 1.0, (4, len(names)))
    for week in range(45):
        if week % 2 == 0 and week < 41:  # five of the eight for two weeks, and the same ones in the last five weeks
            shelf = np.sort(random.permutation(len(names))[:5]) if week < 40 else np.array([0, 1, 2, 4, 6])
        for minute in np.sort(random.integers(0, 6 * 24 * 60, 220)).tolist():
            time = np.datetime64("2026-01-05") + np.timedelta64(week, "W") + np.timedelta64(minute, "m")
            liking = np.append(worth[random.integers(4), shelf], 1.3) + random.gumbel(size=6)
            offered = [*(names[code] for code in shelf), "nothing"]
            rows.append(f"{time},{';'.join(offered)},{offered[int(np.argmax(liking))]}")
    (folder / "bakery.csv").write_text("\n".join(["time,offered,chosen", *rows, ""]))
    (folder / "margins.csv").write_text("\n".join(["item,margin", *map("{},{}".format, names, margins), ""]))


def open_file(browser: Browser, *words: str) -> Iterator[tuple[Page, str]]:
    """Open a file as a page, and end that when the picture is there."""
    command = [str(Path(sys.executable).parent / "rankstream"), "open", *words, "--no-choice", "nothing", "--json"]
    with subprocess.Popen([*command, "--no-browser"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        page = browser.new_page(viewport={"width": WIDE, "height": TALL})
        page.set_default_timeout(600_000)
        page.goto(told["open"])
        yield page, told["url"]
        page.close()
        process.terminate()


def open_stores(browser: Browser, folder: Path) -> None:
    """The list of markets of a file with three stores."""
    simulate = Path(__file__).parents[1] / "examples" / "shop" / "simulate.py"
    subprocess.run([sys.executable, simulate, folder, "--visits", "5000"], check=True, stdout=subprocess.DEVNULL)
    for page, _ in open_file(browser, str(folder / "till.csv"), "--price-columns", "Price", "--by", "Store"):
        page.locator(".trend svg").nth(2).wait_for()  # the list renews itself
        whole_page(page, "page-markets.png")


def open_bakery(browser: Browser, folder: Path) -> None:
    """The first tab of a market, which says what to change: one swap on a shelf for five."""
    folder.mkdir()
    bakery(folder)
    for page, url in open_file(browser, str(folder / "bakery.csv")):
        page.goto(f"{url}/markets/bakery#best-offer")
        page.get_by_label("From a file").set_input_files(folder / "margins.csv")
        page.get_by_label("Currency").fill("EUR")
        page.locator("#at-least").fill("5")
        page.locator("#at-most").fill("5")
        page.locator(".tabs a[href='#overview']").click()
        page.locator("#advice-ends", has_text="[").wait_for()  # how sure the gain is
        page.locator("#overview figure[data-kind]:not(:has(svg)):visible").first.wait_for(state="detached")
        whole_page(page, "page-overview.png")


def whole_page(page: Page, name: str) -> None:
    """A page to the end of its content, in few colours: such pictures have large even areas."""
    end = page.evaluate("document.querySelector('main').getBoundingClientRect().bottom")
    page.screenshot(path=IMAGES / name, clip={"x": 0, "y": 0, "width": WIDE, "height": min(TALL, end)})
    Image.open(IMAGES / name).convert("RGB").quantize(128).save(IMAGES / name, optimize=True)


def main() -> None:
    """Draw all of them."""
    command = [str(Path(sys.executable).parent / "rankstream")]
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        serve(browser, Path(folder) / "shop")
        open_stores(browser, Path(folder) / "stores")
        open_bakery(browser, Path(folder) / "bakery")
        demo = [sys.executable, str(Path(__file__).parents[1] / "examples" / "demo.py"), "--out", "demo"]
        subprocess.run(demo, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        shutil.copy(Path(folder) / "demo" / "demo.png", IMAGES)
        words = ["report", "demo/model.json", "--data", "demo/choices.csv", "--margins", "demo/items.csv"]
        subprocess.run([*command, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for name, scheme, width in REPORTS:
            picture(browser, f"file://{folder}/report.html", name, scheme, width=width)
        browser.close()


if __name__ == "__main__":
    main()
