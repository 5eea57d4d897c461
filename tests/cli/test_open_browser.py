"""``rankstream open`` in a real browser: the link works once, and the page waits for the model by itself."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from browser_pages import Seen, answered, browser, needs_browser, show
from waits import wait_for

__all__ = ["browser"]
pytestmark = needs_browser
CAFE = Path(__file__).parents[2] / "examples" / "cafe.csv"


def test_the_browser_gets_a_link_and_the_page_becomes_ready_by_itself(browser: Any, tmp_path: Path) -> None:
    given = tmp_path / "given"
    script = tmp_path / "browser.sh"
    script.write_text(f'#!/bin/sh\necho "$1" > {given}.part && mv {given}.part {given}\n')
    script.chmod(0o755)
    command = [sys.executable, "-m", "rankstream", "open", str(CAFE), "--json"]
    variables = os.environ | {"BROWSER": f"{script} %s"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        try:
            wait_for(given.is_file)
            address = given.read_text().strip()
            assert address == told["open"]
            seen = Seen(browser, told["url"])
            page = seen.page
            page.goto(address)
            assert urlsplit(page.url)[2:4] == ("/markets/cafe", "")  # the key is gone from the address
            assert page.evaluate("document.cookie") == ""
            page.locator("body[data-begun]").wait_for()  # the page waits for the model, and nobody clicks
            show(page, "what-if")
            answered(page)
            page.goto(address)
            page.get_by_text("This link was used before").wait_for()
            seen.said = [text for text in seen.said if "403" not in text]
            seen.close()
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait() == 0
