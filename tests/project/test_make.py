"""The targets of the Makefile that show the project: what they run, with a command that only says how it was called."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.quick,
    pytest.mark.skipif(shutil.which("make") is None, reason="There is no make: install it."),
]


@pytest.mark.parametrize(
    ("display", "last"),
    [(":0", "rankstream open rankstream-demo/choices.csv"), ("", "There is no display: 'rankstream open")],
)
def test_the_demo_writes_a_report_and_ends_with_the_page(tmp_path: Path, display: str, last: str) -> None:
    for name in ("python", "rankstream"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $@"\n')
        (tmp_path / name).chmod(0o755)
    variables = os.environ | {"DISPLAY": display, "WAYLAND_DISPLAY": ""}
    words = ["make", "--silent", "--old-file=setup", "demo", f"BIN={tmp_path}"]
    done = subprocess.run(words, cwd=ROOT, env=variables, capture_output=True, text=True, check=True)
    said = [line for line in done.stdout.splitlines() if not line.startswith("Fitting")]
    assert [line.split()[:2] for line in said[:2]] == [["python", "examples/demo.py"], ["rankstream", "report"]]
    assert said[0].endswith(" --out rankstream-demo")
    assert "--out rankstream-demo/report.html" in said[1]
    assert len(said) == 3
    assert said[2].startswith(last)
