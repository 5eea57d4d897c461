"""Write expected.json: the means of a small fixed-seed part of the study, which a test holds later runs against.

Run ``python -m experiments.expectation`` from the root of the repository.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from experiments import settings, study
from experiments.tables import Results
from rankstream._core.files import write_whole

HERE = Path(__file__).parent
TOLERANCES = {"rounds": 0.15, "rankings": 0.15, "test_mae": 0.15}
"""Relative: another processor rounds otherwise, and a tie or a kink turns that into another path to the same fit."""


def measure(folder: Path) -> list[dict[str, Any]]:
    """The means of every cell of expected.toml, computed now."""
    part = settings.read_settings(HERE / "expected.toml")
    store = study.run_parts([part], 3, 1, folder, Console(quiet=True))
    names = ("kind", "segments", "offers", "norm", "method", "per_round")
    return [
        {
            "cell": {name: cell.setting(name) for name in names},
            "means": {name: round(cell.mean(name), 6) for name in TOLERANCES},
        }
        for cell in Results(store.rows(part.runs(3))).cells()
    ]


def main() -> None:
    """Write the file beside this one."""
    with tempfile.TemporaryDirectory() as folder:
        content = {"tolerances": TOLERANCES, "cells": measure(Path(folder))}
    write_whole(HERE / "expected.json", json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
