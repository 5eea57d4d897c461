"""The page in a browser: from a tick to the paint, from ``rankstream open`` to the first answer, and its weight.

Each figure that has an aim is printed with its ratio to it: 1.00 or less is reached.

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
  const painted = performance.now() - began;
  const isNew = (one) => one.name.endsWith("/predict") && one.startTime >= began;
  const asked = performance.getEntriesByType("resource").filter(isNew);
  performance.clearResourceTimings();
  return [painted, asked.length ? asked[0].responseEnd - asked[0].startTime : 0];
}"""
AIMS = {"tick to paint": 100.0, "weight": 400.0, "form and shares": 1.0}  # milliseconds, kilobytes, seconds


def against(aim: str, value: float) -> str:
    """The ratio of a figure to its aim."""
    return f"{value / AIMS[aim]:.2f} of the aim of {AIMS[aim]:g}"


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


def load(page: Page, url: str) -> tuple[float, float]:
    """Load a page; return the seconds until its form and shares are there, and its compressed kilobytes."""
    began = time.perf_counter()
    page.goto(url, wait_until="commit")
    page.locator("#overview figure[data-kind=bars] svg").wait_for()
    seconds = time.perf_counter() - began
    page.locator("body[data-begun]").wait_for()
    page.locator("[data-panel] .loading").first.wait_for(state="detached")
    return seconds, page.evaluate(WEIGH) / 1000


def measure(page: Page, process: "subprocess.Popen[str]", began: float, items: int, ticks: int) -> None:
    """Follow a page from its address to its ticks, and print what each takes, with the load of the machine."""
    told = json.loads(process.stdout.readline() if process.stdout else "{}")
    page.goto(told["open"])
    print(f"rankstream open to the page: {time.perf_counter() - began:.1f} s", flush=True)
    page.locator("#answer .share:not(:empty)").first.wait_for(state="attached")
    print(f"rankstream open to the first answer, {items} items: {time.perf_counter() - began:.1f} s", flush=True)
    page.locator("[data-panel] .loading").first.wait_for(state="detached")
    other = page.context.new_page()
    seconds, weight = load(other, page.url.partition("#")[0])
    other.close()
    print(f"form and observed shares: {seconds:.2f} s, {against('form and shares', seconds)}", flush=True)
    print(f"compressed weight of the page: {weight:.0f} kB, {against('weight', weight)}", flush=True)
    page.locator(".tabs a[href='#what-if']").click()
    page.locator("#answer[aria-busy=false]").wait_for()
    there = re.compile("intervals?$|no intervals|not available")
    page.locator("#intervals", has_text=there).wait_for()  # refits use the cores
    times = []
    for place in range(ticks):
        page.wait_for_timeout(300)  # as a person ticks: the page holds a tick back that follows another within 60 ms
        times.append(page.evaluate(TICK, place))
    taken, answers = sorted(tick for tick, _ in times), statistics.median(answer for _, answer in times)
    middle, late = statistics.median(taken), taken[int(0.95 * len(taken))]
    busy = f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"
    print(f"tick to paint, {items} items, {ticks} ticks: median {middle:.0f} ms, {against('tick to paint', middle)}")
    print(f"95 % within {late:.0f} ms; the server's part is {answers:.0f} ms (median; {busy})")


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
