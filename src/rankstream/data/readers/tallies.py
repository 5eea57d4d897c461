"""The choices of many markets as arrays of numbers; equal outcomes are stored once for all markets."""

import json
import os
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rankstream._core.files import whole_file
from rankstream.data.counts import ChoiceCounts
from rankstream.data.prices import PriceLevels
from rankstream.data.readers.options import ReadOptions, check_options
from rankstream.data.readers.prices import market_levels, seen_prices, settled
from rankstream.data.readers.results import COUNTED
from rankstream.data.readers.unused_columns import UnusedColumn

Market = tuple[str, ...]
MIN_IN_COMMON = 0.5  # the share of prices that must occur in several markets for these to share levels: half; not tuned
MAX_MARKETS = 100_000  # markets that are kept apart at most: with more, a column most likely names customers


def check_number(number: int, market: Sequence[str], by: Sequence[str]) -> None:
    """Raise a ValueError if there are too many markets, as with a column of customers or times."""
    if number > MAX_MARKETS:
        raise ValueError(
            f"The columns {', '.join(map(repr, by))} define more than {MAX_MARKETS:,} markets, such as "
            f"{';'.join(market)!r}: choose columns with fewer values."
        )


@dataclass
class Tallies:
    """The choices of each market, 24 bytes for each of its outcomes; and the markets that could not be read.

    An outcome is an offer and the chosen item, or a ballot. ``how`` are the options that turn outcomes into counts.
    ``unused`` and ``notes`` are as in ``Reading``; tests compare records within a market.
    """

    by: tuple[str, ...]
    how: ReadOptions
    format: str
    failed: dict[Market, str] = field(default_factory=dict)
    skipped: int = 0
    unused: tuple[UnusedColumn, ...] = ()
    notes: tuple[str, ...] = ()
    markets: dict[Market, int] = field(default_factory=dict)
    outcomes: dict[Any, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._market, self._outcome, self._weight = array("q"), array("q"), array("d")
        self.levels: dict[Market, PriceLevels | None] = {}  # filled by ``counts``

    def add(self, market: Market, outcome: Any, weight: float) -> None:
        """Count an outcome in a market."""
        number = self.markets.get(market)
        if number is None:
            number = self.markets[market] = len(self.markets)
            check_number(number + 1, market, self.by)
        self._market.append(number)
        self._outcome.append(self.outcomes.setdefault(outcome, len(self.outcomes)))
        self._weight.append(weight)

    def update(self, other: "Tallies") -> None:
        """Add the counts of another Tallies."""
        self.format = self.format or other.format
        self.failed |= other.failed
        self.skipped += other.skipped
        markets, outcomes = list(other.markets), list(other.outcomes)
        for number, outcome, weight in zip(other._market, other._outcome, other._weight, strict=True):
            self.add(markets[number], outcomes[outcome], weight)

    def tallies(self) -> Iterator[tuple[Market, dict[Any, float]]]:
        """Yield the sums of each market that could be read, sorted by name."""
        market, outcome = (np.frombuffer(part, np.int64) for part in (self._market, self._outcome))
        weight = np.frombuffer(self._weight, np.float64)
        order = np.lexsort((weight, outcome, market))  # so that sums of fractions do not depend on the order of records
        ends = np.searchsorted(market[order], np.arange(len(self.markets) + 1))
        names = list(self.outcomes)
        for key in sorted(self.markets):
            if key in self.failed:
                continue
            number = self.markets[key]
            rows = order[ends[number] : ends[number + 1]]
            codes, place = np.unique(outcome[rows], return_inverse=True)
            sums = np.bincount(place, weights=weight[rows])
            yield key, {names[code]: total for code, total in zip(codes.tolist(), sums.tolist(), strict=True)}

    def counts(self) -> Iterator[tuple[Market, ChoiceCounts | str]]:
        """Yield the counts of each market over its offers and items, or an error message; sorted by name."""
        for key, tally in self.tallies():
            try:
                counts, self.levels[key] = self._counted(tally, strict=True)
                yield key, counts
            except ValueError as error:
                yield key, str(error)
        yield from sorted(self.failed.items())

    def together(self) -> dict[Any, float]:
        """Return the sums over all markets that could be read."""
        total: dict[Any, float] = defaultdict(float)
        for _, tally in self.tallies():
            for outcome, weight in tally.items():
                total[outcome] += weight
        return total

    def count(self, tally: dict[Any, float]) -> ChoiceCounts:
        """Convert the sums of a market to counts."""
        return self._counted(tally)[0]

    def _counted(self, tally: dict[Any, float], strict: bool = False) -> tuple[ChoiceCounts, PriceLevels | None]:
        part, levels = {(COUNTED, "", 0): tally}, None
        if self.how.prices is not None and (seen := seen_prices([tally])):
            levels = market_levels(seen, self.shared_levels or self.how.price_levels, strict)
            part, _ = settled("The market", part, levels)
        return self.how.counts(part, self.format, levels=levels)[COUNTED, "", 0], levels

    @cached_property
    def shared_levels(self) -> PriceLevels | None:
        """Levels for all markets, if a number of levels is requested and the markets have similar prices."""
        if not isinstance(self.how.price_levels, int) or self.in_common < MIN_IN_COMMON:
            return None
        return market_levels(seen_prices([self.together()]), self.how.price_levels)

    @property
    def sharing(self) -> str:
        """Which markets share price levels, in a few words."""
        if isinstance(self.how.price_levels, PriceLevels) or self.shared_levels is not None:
            return "the same in all markets"
        return "each market has its own" if isinstance(self.how.price_levels, int) else "one for each price"

    @cached_property
    def in_common(self) -> float:
        """The share of offered prices that also occur in another market; 1 if no two markets share an item."""
        each = [seen_prices([tally]) for _, tally in self.tallies()]
        markets = Counter((item, price) for seen in each for item in seen for price in seen[item])
        carried = Counter(item for seen in each for item in seen)
        total = common = 0.0
        for seen in each:
            for item in seen:
                if carried[item] > 1:
                    total += sum(seen[item].values())
                    common += sum(weight for price, weight in seen[item].items() if markets[item, price] > 1)
        return common / total if total else 1.0

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything needed to count to one file, atomically."""
        how: dict[str, Any] = {name: getattr(self.how, name) for name in ("items", "no_choice")}
        if self.how.prices is not None:
            levels = self.how.price_levels
            how["price_levels"] = levels.to_content() if isinstance(levels, PriceLevels) else levels
        share = self.how.outside_share
        how["outside_share"] = share if isinstance(share, float | int) else None
        words: dict[str, Any] = {
            "by": self.by,
            "format": self.format,
            "how": how,
            "markets": list(self.markets),
            "notes": self.notes,
        }
        words["unused"] = [column.to_content() for column in self.unused]
        text = json.dumps(words | {"outcomes": list(self.outcomes)})
        with whole_file(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(
                file, words=np.frombuffer(text.encode(), np.uint8), market=np.array(self._market, np.int64),
                outcome=np.array(self._outcome, np.int64), weight=np.array(self._weight, np.float64),
            )  # fmt: skip

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Tallies":
        """Read what ``save`` wrote."""
        try:
            with np.load(Path(path), allow_pickle=False) as file:
                words = json.loads(bytes(file["words"]).decode())
                arrays = [file[name].tolist() for name in ("market", "outcome", "weight")]
            how = words["how"]
            if isinstance(how.get("price_levels"), list):
                how["price_levels"] = PriceLevels.from_content(how["price_levels"])
            how |= {"prices": "read"} if "price_levels" in how else {}
            tallies = cls(tuple(words["by"]), check_options(**how), words["format"])
            tallies.notes = tuple(words.get("notes", ()))
            tallies.unused = tuple(UnusedColumn(**column) for column in words.get("unused", ()))
            tallies.markets = {tuple(market): number for number, market in enumerate(words["markets"])}
            tallies.outcomes = {_tuples(outcome): number for number, outcome in enumerate(words["outcomes"])}
            tallies._market, tallies._outcome = (array("q", part) for part in arrays[:2])
            tallies._weight = array("d", arrays[2])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is damaged ({type(error).__name__}): run estimate_many again.") from None
        return tallies


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
