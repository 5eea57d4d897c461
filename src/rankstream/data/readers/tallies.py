"""The choices of many markets, as numbers: an outcome that several markets share is kept once."""

import json
import os
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rankstream._core.files import whole_file
from rankstream.data.counts import ChoiceCounts
from rankstream.data.readers.opening import How, how_to_read
from rankstream.data.readers.walk import COUNTED

Market = tuple[str, ...]
MOST = 100_000
"""Markets that are kept apart at most."""


def check_number(number: int, market: Sequence[str], by: Sequence[str]) -> None:
    """That the markets are not too many: a column of customers or times does not name markets."""
    if number > MOST:
        raise ValueError(
            f"The columns {', '.join(map(repr, by))} name more than {MOST:,} markets, such as {';'.join(market)!r}: "
            "choose columns with fewer values."
        )


@dataclass
class Tallies:
    """What was chosen in each market, in 24 bytes for each of its outcomes; and the markets that could not be read.

    An outcome is an offer and the item chosen from it, or a ballot. ``how`` says how outcomes become counts.
    """

    by: tuple[str, ...]
    how: How
    format: str
    failed: dict[Market, str] = field(default_factory=dict)
    skipped: int = 0
    markets: dict[Market, int] = field(default_factory=dict)
    outcomes: dict[Any, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._market, self._outcome, self._weight = array("q"), array("q"), array("d")

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
        """Add all that others have counted."""
        self.format = self.format or other.format
        self.failed |= other.failed
        self.skipped += other.skipped
        markets, outcomes = list(other.markets), list(other.outcomes)
        for number, outcome, weight in zip(other._market, other._outcome, other._weight, strict=True):
            self.add(markets[number], outcomes[outcome], weight)

    def tallies(self) -> Iterator[tuple[Market, dict[Any, float]]]:
        """The sums of each market that could be read, in the order of their names."""
        market, outcome = (np.frombuffer(part, np.int64) for part in (self._market, self._outcome))
        weight = np.frombuffer(self._weight, np.float64)
        order = np.lexsort((weight, outcome, market))  # so that fractions add up the same in whatever order they came
        ends = np.searchsorted(market[order], np.arange(len(self.markets) + 1))
        names = list(self.outcomes)
        for key in sorted(self.markets):
            if key in self.failed:
                continue
            number = self.markets[key]
            own = order[ends[number] : ends[number + 1]]
            codes, place = np.unique(outcome[own], return_inverse=True)
            sums = np.bincount(place, weights=weight[own])
            yield key, {names[code]: total for code, total in zip(codes.tolist(), sums.tolist(), strict=True)}

    def counts(self) -> Iterator[tuple[Market, ChoiceCounts | str]]:
        """The counts of each market over its own offers and items, or why there are none; in the order of names."""
        for key, tally in self.tallies():
            try:
                yield key, self.how.counts({(COUNTED, "", 0): tally}, self.format)[COUNTED, "", 0]
            except ValueError as error:
                yield key, str(error)
        yield from sorted(self.failed.items())

    def together(self, markets: "set[Market] | None" = None) -> dict[Any, float]:
        """The sums of all markets that could be read, or of some."""
        total: dict[Any, float] = {}
        for key, tally in self.tallies():
            if markets is None or key in markets:
                for outcome, weight in tally.items():
                    total[outcome] = total.get(outcome, 0.0) + weight
        return total

    def count(self, tally: dict[Any, float]) -> ChoiceCounts:
        """Counts of such sums."""
        return self.how.counts({(COUNTED, "", 0): tally}, self.format)[COUNTED, "", 0]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all as one whole file; a table of contents was needed to read only, and is left out."""
        how = {name: value for name, value in asdict(self.how).items() if name in ("items", "no_choice")}
        share = self.how.outside_share
        how["outside_share"] = share if isinstance(share, float | int) else None
        words = {"by": self.by, "format": self.format, "how": how, "markets": list(self.markets)}
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
            found = cls(tuple(words["by"]), how_to_read(**words["how"]), words["format"])
            found.markets = {tuple(market): number for number, market in enumerate(words["markets"])}
            found.outcomes = {_tuples(outcome): number for number, outcome in enumerate(words["outcomes"])}
            found._market, found._outcome = (array("q", part) for part in arrays[:2])
            found._weight = array("d", arrays[2])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is damaged ({type(error).__name__}): run estimate_many again.") from None
        return found


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
