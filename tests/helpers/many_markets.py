"""What the tests of many markets share: choices of some stores, a slow method, and the bytes of a folder."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from rankstream.estimation.methods import Nearest
from rankstream.estimation.task import Task
from rankstream.models.protocol import ChoiceModel

OFFERS = ("tea;pie;none", "tea;none", "pie;cake;none", "tea;cake;none", "tea;pie;cake;none")


def choices(stores: Sequence[str] = ("York", "Bath", "Ely"), size: int = 60, seed: int = 0) -> pd.DataFrame:
    """As many choices in every store, and two categories of the same items."""
    rng = np.random.default_rng(seed)
    rows = []
    for store in stores:
        worth = dict(zip(("tea", "pie", "cake", "none"), rng.gamma(2.0, size=4).tolist(), strict=True))
        for offer in rng.choice(OFFERS, size).tolist():
            items = offer.split(";")
            shares = np.array([worth[item] for item in items])
            rows.append((store, rng.choice(["hot", "cold"]), offer, rng.choice(items, p=shares / shares.sum())))
    return pd.DataFrame(rows, columns=["store", "kind", "offered", "chosen"])


def model_bytes(folder: Path) -> dict[str, bytes]:
    """The model files of a folder."""
    return {path.name: path.read_bytes() for path in folder.glob("*.json") if path.name != "settings.json"}


@dataclass(frozen=True, kw_only=True)
class Slow:
    """The nearest model, after a while."""

    name: ClassVar[str] = "slow"
    tolerance: ClassVar[str] = ""
    seconds: float = 0.1

    def fit(self, task: Task) -> Any:
        """As ``Method`` says."""
        time.sleep(self.seconds)
        return Nearest().fit(task)

    def model(self, task: Task) -> ChoiceModel:
        """As ``Method`` says."""
        return Nearest().model(task)


@dataclass(frozen=True, kw_only=True)
class Deadly:
    """Ends its process in one market, as when memory runs out."""

    name: ClassVar[str] = "deadly"
    tolerance: ClassVar[str] = ""
    choices: int = 0

    def fit(self, task: Task) -> Any:
        """As ``Method`` says."""
        if task.counts.observations == self.choices:
            import os

            os._exit(9)
        return Nearest().fit(task)

    def model(self, task: Task) -> ChoiceModel:
        """As ``Method`` says."""
        return Nearest().model(task)
