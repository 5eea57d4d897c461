"""Markets: the models of many markets in a folder, read one by one as they are asked for."""

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from shutil import copy2
from typing import Any

from rankstream._core.arguments import optional
from rankstream._core.terminal import plural
from rankstream._core.types import Label
from rankstream.data.counts import ChoiceCounts
from rankstream.data.drift import Control
from rankstream.data.readers import Problems, Reading
from rankstream.data.readers.tallies import Tallies
from rankstream.estimation.many.comparison import Differences, compare_markets
from rankstream.estimation.many.markets import COLUMNS, Market, MarketFit, find_market
from rankstream.estimation.many.store import COUNTS, INDEX, POOL, SETTINGS, MarketStore
from rankstream.models.files import load_model

MAX_MODELS_IN_MEMORY = 64
"""Models that stay in memory."""


class Markets:
    """The models of many markets, in a folder that ``estimate_many`` wrote; ``load`` opens one.

    Iterating gives the keys of all markets with a model: tuples of text, in the order of ``by``.
    """

    def __init__(self, store: MarketStore) -> None:
        if store.settings is None:
            raise ValueError(f"{store.folder} is not a folder of markets: choose one that estimate_many wrote.")
        self.folder, self.by = store.folder, tuple(store.settings["by"])
        self.rows = tuple(store.rows[key] for key in sorted(store.rows))
        self._fitted = {row.key: row for row in self.rows if row.file is not None}
        self._models: dict[Market, Any] = {}

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Markets":
        """Open a folder of markets."""
        if not Path(folder).is_dir():
            raise ValueError(f"The folder {folder} does not exist: choose one that estimate_many wrote.")
        return cls(MarketStore(folder))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Copy everything to another folder, which must be new or empty."""
        target = Path(folder)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise ValueError(f"{folder} already exists: choose a new or an empty folder.")
        target.mkdir(parents=True, exist_ok=True)
        files = [row.file for row in self._fitted.values() if row.file is not None]
        for name in (*files, COUNTS, POOL, INDEX, SETTINGS):
            if (self.folder / name).is_file():
                copy2(self.folder / name, target / name)

    def __len__(self) -> int:
        return len(self._fitted)

    def __iter__(self) -> Iterator[Market]:
        return iter(self._fitted)

    def __contains__(self, key: object) -> bool:
        return key in self._fitted or (key,) in self._fitted

    def __repr__(self) -> str:
        return f"Markets({plural(len(self), 'market')} by {', '.join(self.by)}, {len(self.failed)} failed)"

    @property
    def failed(self) -> dict[Market, str]:
        """The markets without a model, and why."""
        return {row.key: row.error or "" for row in self.rows if row.status == "failed"}

    def row(self, key: Any) -> MarketFit:
        """Return the index row of a market with a model."""
        return self._fitted[find_market(key, self._fitted)]

    def model(self, key: Any) -> Any:
        """Return the model of a market: by its key, as ("York", "tea"), or by its name, as "York;tea"."""
        row = self.row(key)
        if row.key not in self._models:
            if len(self._models) >= MAX_MODELS_IN_MEMORY:
                self._models.pop(next(iter(self._models)))
            self._models[row.key] = load_model(self.folder / str(row.file))
        return self._models[row.key]

    def predict(self, key: Any, offer: Iterable[Label]) -> dict[Label, float]:
        """Return the choice probabilities of one offer in a market."""
        found: dict[Label, float] = self.model(key).predict(offer)
        return found

    def frame(self) -> Any:
        """Return the index as a pandas data frame, a row per market, failed ones as well."""
        frames = optional("pandas", "A data frame of markets")
        names = [name for name in COLUMNS if name not in ("key", "digest", "written")]
        rows = [{**dict(zip(self.by, row.key, strict=True)), **row.to_row()} for row in self.rows]
        columns = [*(name for name in self.by if name not in names), *names]
        return frames.DataFrame(rows, columns=columns)

    @cached_property
    def tallies(self) -> Tallies:
        """What was chosen in every market."""
        return Tallies.load(self.folder / COUNTS)

    def counts(self, key: Any) -> ChoiceCounts:
        """Return the choices of a market, as its model was fitted to them."""
        wanted = self.row(key).key
        for market, tally in self.tallies.tallies():
            if market == wanted:
                return self.tallies.count(tally)
        raise ValueError(f"The choices of {wanted!r} were only in an earlier run: run estimate_many with them again.")

    def compare(self, *, level: float = 0.05, control: Control = "fdr") -> Differences:
        """Test which markets differ significantly from all others together, corrected for their number.

        For every offer that a market shares with others, Pearson's test of homogeneity against these others together,
        as in ``drift_report``; its statistics and degrees of freedom add up to one p-value for the market.

        Parameters
        ----------
        level : float
            How often the test may be wrong, in the sense of ``control``.
        control : "holm" or "fdr"
            Whether ``level`` bounds the probability of any false alarm, or the expected share of false ones.
        """
        return compare_markets(self.tallies, level, control)


def stored_choices(folder: Path, market: Sequence[str]) -> Reading:
    """The choices of a market that its folder keeps, as they were read for the fit; their times are not there."""
    path = folder / COUNTS
    if not path.is_file():
        raise ValueError(f"{folder} is not a folder of markets: give a file of choices, or a folder that fit wrote.")
    markets = _opened(folder.resolve(), path.stat().st_mtime_ns)
    counts = markets.counts(tuple(market))
    read = markets.tallies
    facts = counts, round(counts.observations), Problems("stop"), read.format
    return Reading(*facts, unused=read.unused, notes=read.notes)


@lru_cache(maxsize=1)
def _opened(folder: Path, written: int) -> Markets:  # noqa: ARG001
    return Markets.load(folder)
