"""The page in a browser: from a tick to the paint, from ``rankstream open`` to the first answer, and its weight.

python benchmarks/page.py [--items 30] [--ticks 30]
"""

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from playwright.sync_api import Page, sync_playwright

import rankstream as rs

TICK = """async (place) => {
  const boxes = [...document.querySelectorAll('#answer input[name=on]:not([disabled])')];
  const box = boxes[place % boxes.length];
  const began = performance.now();
  box.click();
  await new Promise((resolve) => {
    const table = document.getElementById('answer');
    const isDone = () => table.getAttribute('aria-busy') === 'false';
    const look = () => (isDone() ? requestAnimationFrame(resolve) : setTimeout(look, 1));
    look();
  });
  return performance.now() - began;
}"""


def write_choices(path: Path, items: int) -> None:
    """A simulated market with that many items."""
    market = rs.simulate.market(11, n_items=items, n_offers=40, n_test=1)
    offers, random = market.assortments, np.random.default_rng(11)
    drawn = rs.simulate.draw_choices(offers, market.truth.probabilities(offers), 8000, random).tolist()
    with path.open("w", encoding="utf-8") as file:
        for place in drawn:
            offer = [str(item) for item in offers.offers[int(offers.owner[place])]]
            chosen = str(offers.items[int(offers.members[place])])
            file.write(json.dumps({"offered": offer, "chosen": chosen}) + "\n")


WEIGH = """() => ["navigation", "resource"].flatMap((kind) => performance.getEntriesByType(kind))
  .reduce((sum, one) => sum + one.encodedBodySize, 0)"""


def weigh(page: Page, url: str) -> int:
    """Load a page, and return the compressed bytes of everything that came."""
    page.goto(url)
    page.locator("body[data-begun]").wait_for()
    page.locator("[data-panel] .loading").first.wait_for(state="detached")
    return int(page.evaluate(WEIGH))


def measure(page: Page, process: "subprocess.Popen[str]", began: float, items: int, ticks: int) -> None:
    """Follow a page from its address to its ticks, and print what each takes, with the load of the machine."""
    told = json.loads(process.stdout.readline() if process.stdout else "{}")
    page.goto(told["open"])
    print(f"rankstream open to the page: {time.perf_counter() - began:.1f} s", flush=True)
    page.locator("#answer .share:not(:empty)").first.wait_for(state="attached")
    print(f"rankstream open to the first answer, {items} items: {time.perf_counter() - began:.1f} s", flush=True)
    page.locator("[data-panel] .loading").first.wait_for(state="detached")
    other = page.context.new_page()
    print(f"compressed weight of the page: {weigh(other, page.url.partition('#')[0]) / 1000:.0f} kB", flush=True)
    other.close()
    page.locator(".tabs a[href='#what-if']").click()
    page.locator("#answer[aria-busy=false]").wait_for()
    page.locator("#intervals", has_text=re.compile("interval$|no|not available")).wait_for()  # refits use the cores
    taken = sorted(page.evaluate(TICK, place) for place in range(ticks))
    middle, late = statistics.median(taken), taken[int(0.95 * len(taken))]
    load = f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"
    print(f"tick to paint, {items} items, {ticks} ticks: median {middle:.0f} ms, 95 % {late:.0f} ms ({load})")


def main(words: Sequence[str] | None = None) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=30)
    parser.add_argument("--ticks", type=int, default=30)
    given = parser.parse_args(words)
    chromium = os.environ.get("RANKSTREAM_CHROMIUM") or shutil.which("chromium")
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        write_choices(Path(folder) / "choices.jsonl", given.items)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context()
        context.set_default_timeout(600_000)
        page = context.new_page()
        command = [sys.executable, "-m", "rankstream", "open", f"{folder}/choices.jsonl", "--no-browser", "--json"]
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            measure(page, process, began, given.items, given.ticks)
            page.close()  # which listens to events
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
        browser.close()


if __name__ == "__main__":
    main()
