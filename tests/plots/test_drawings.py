"""What charts draw, call by call, against a file that was looked at: every number, colour and word.

After a change that is meant, look at the charts, run ``python tests/plots/test_drawings.py`` and read the difference.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock
from zlib import crc32

import numpy as np
import pytest

import rankstream as rs
from rankstream.evaluate.comparison import Comparison, Row, Score
from rankstream.models.answers import Substitution
from rankstream.models.sparse import Frontier
from rankstream.plots import fits, models

pytestmark = pytest.mark.quick
DRAWN = Path(__file__).with_name("drawings.txt")
OFFERS = rs.Assortments([("tea", "pie", "no"), ("tea", "no"), ("pie", "rum", "no"), ("rum", "no")])
MODEL = rs.RankingModel(
    ["tea", "pie", "rum", "no"],
    [
        ("tea", "pie", "no", "rum"),
        ("pie", "rum", "no", "tea"),
        ("no", "tea", "pie", "rum"),
        ("rum", "no", "pie", "tea"),
    ],
    [0.4, 0.3, 0.2, 0.1],
    no_choice_code=3,
)


def text_of(value: Any) -> str:
    """A value of a call, with numbers to six digits."""
    if isinstance(value, np.ma.MaskedArray):
        return text_of(value.filled(-1.0).tolist())
    if isinstance(value, np.ndarray | range):
        return text_of(list(value))
    if isinstance(value, bool | np.bool_ | str | None):
        return repr(value if not isinstance(value, np.bool_) else bool(value))
    if isinstance(value, int | float | np.number):
        return f"{round(float(value), 9) + 0.0:.6g}"
    if isinstance(value, list | tuple):
        texts = [text_of(entry) for entry in value]
        rest = f"{len(texts)} in all, {crc32(''.join(texts).encode()):x}"
        return f"({', '.join(texts if len(texts) <= 13 else [*texts[:5], rest])})"
    if isinstance(value, dict):
        return f"({', '.join(f'{name}={text_of(own)}' for name, own in value.items())})"
    return type(value).__name__


def drawn(picture: Callable[[Any], Any]) -> list[str]:
    """The calls of a picture to its axes or its figure."""
    axes = MagicMock()
    picture(axes)
    lines = []
    for name, given, named in axes.mock_calls:
        if "__" not in name:
            parts = [*map(text_of, given), *(f"{key}={text_of(value)}" for key, value in named.items())]
            lines.append(f"    {name}({', '.join(parts)})")
    return lines


def counts(*tallies: int) -> rs.ChoiceCounts:
    return rs.ChoiceCounts(OFFERS, tallies)


def several(n_offers: int) -> tuple[rs.RankingModel, rs.ChoiceCounts]:
    """A model of pairs of items, and counts of them."""
    names = [f"i{number:02}" for number in range(n_offers + 1)]
    offers = rs.Assortments([(names[number], names[-1]) for number in range(n_offers)], names)
    model = rs.RankingModel(names, [names, names[::-1]], [0.5, 0.5])
    return model, rs.ChoiceCounts(offers, [3, 5] * n_offers)


def moves(size: int, with_ends: bool = False) -> Substitution:
    shares = np.ones((size, size)) - np.eye(size)
    shares[0] *= np.arange(size) / 10.0
    shares[-1] = 0.0
    before = np.linspace(0.0, 0.5, size)
    low, high = (0.5 * shares, 0.5 + 0.5 * shares) if with_ends else (None, None)
    return Substitution(tuple(f"item {number}" for number in range(size)), before, shares, low, high, "90 % intervals")


def decision(n_runners: int, interval: tuple[float, float] | None) -> Any:
    runners = [SimpleNamespace(offer=offer, value=value) for offer, value in ((("tea",), 1.25), (("tea", "rum"), 1.1))]
    return SimpleNamespace(
        offer=("tea", "pie"), value=1.50321, expect=float, runners_up=runners[:n_runners], interval=interval,
        problem=SimpleNamespace(items=("egg", "tea", "pie", "rum")), by_size={3: 1.4, 1: 1.25, 2: 1.50321},
    )  # fmt: skip


def estimate(observations: list[float], gap: list[float]) -> Any:
    distance, seen = np.array([0.3, 0.2, 0.1]), np.array(observations)
    return SimpleNamespace(history=SimpleNamespace(distance=distance, observations=seen, gap=np.array(gap)))


def compared() -> Comparison:
    scores = tuple(Score(-1.0 - 0.1 * fold, -1.1, 0.2, 0.1, 0.5, 4) for fold in range(3))
    rows = [("best", 0.0, 0.0), ("near", 0.01, 0.02), ("far", 0.3, 0.1), ("alone", 0.2, float("nan"))]
    found = tuple(Row(name, scores, "rankings", behind, 0.5 * margin, margin) for name, behind, margin in rows)
    return Comparison(found, "assortments", 1e-3, 300.0, -2.0, -0.9)


def many_shares(n_items: int) -> tuple[list[rs.ChoiceCounts], list[str]]:
    items = [f"i{number:02}" for number in range(n_items)]
    offers = rs.Assortments([items])
    return [rs.ChoiceCounts(offers, 1 + (np.arange(n_items) + shift) % 5) for shift in (0, 2)], items


TYPES: Any = {("tea", "pie"): (0.3, 0.5), ("pie", "rum"): (0.2, 0.45), (): (0.1, 0.3), ("rum",): (0.05, 0.2)}
PERIODS = [counts(30, 50, 20, 4, 6, 1, 1, 1, 1, 1), counts(0, 0, 0, 4, 6, 1, 1, 1, 1, 1), counts(60, 30, 10, *[0] * 7)]
DEMAND: Any = {"tea": {4.0: 0.2, 3.0: 0.3}, "pie": {2.0: (0.3, 0.2, 0.35), 3.0: (0.1, 0.0, 0.2)}}
PICTURES: dict[str, Callable[[Any], Any]] = {
    "fit": lambda axes: models.predicted_against_observed(MODEL, counts(60, 20, 20, 5, 5, 0, 0, 0, 90, 10), axes),
    "fit, 80 %": lambda axes: models.predicted_against_observed(MODEL, counts(6, 2, 2, 5, 5, 0, 0, 0, 0, 0), axes, 0.8),
    "fit, 100 dots": lambda axes: models.predicted_against_observed(*several(50), axes),
    "fit, 102 dots": lambda axes: models.predicted_against_observed(*several(51), axes),
    "types": lambda axes: models.segments(MODEL, axes, top=3),
    "types by three places": lambda axes: models.segments(MODEL, axes, places=3),
    "types by one place": lambda axes: models.segments(MODEL, axes, places=1),
    "types with intervals": lambda axes: models.segments(MODEL, axes, ends=TYPES),
    "types of two items": lambda axes: models.segments(rs.RankingModel("ab", [("a", "b")], [1.0]), axes),
    "substitution with intervals": lambda axes: models.substitution(moves(3, with_ends=True), axes),
    "demand": lambda axes: models.demand(DEMAND, axes),
    "demand for one": lambda axes: models.demand({"tea": DEMAND["tea"]}, axes),
    "convergence": lambda axes: fits.convergence(estimate([10.0, 20.0, 20.0], [np.nan, 0.5, 0.4]), axes),
    "convergence at rest": lambda axes: fits.convergence(estimate([10.0] * 3, [0.6, 0.5, 0.4]), axes),
    "convergence unknown": lambda axes: fits.convergence(estimate([np.nan, 20.0, 30.0], [0.6, 0.5, 0.4]), axes),
    "truth": lambda axes: fits.predicted_against_true(np.array([0.25, 0.75]), np.array([0.5, 0.5]), axes),
    "comparison": lambda axes: fits.comparison(compared(), axes),
    "frontier": lambda axes: fits.frontier(Frontier(np.array([1, 3]), np.array([0.2, 0.1]), (), ()), axes),
    "periods": lambda axes: fits.shares_over_time(PERIODS, ("pie", "tea", "no"), axes),
    "periods with models": lambda axes: fits.shares_over_time(
        PERIODS, ("pie", "tea", "no"), axes, [10.0, 20.0, 40.0], [MODEL] * 3
    ),
    "dates": fits.date_axis,
    "value by size": lambda axes: fits.value_by_size(decision(0, None), axes),
    "runners-up": lambda axes: fits.runners_up(decision(2, (1.41234, 1.6)), axes),
    "the offer": lambda axes: fits.runners_up(decision(0, None), axes),
}


def every_drawing() -> str:
    drawings = {name: drawn(picture) for name, picture in PICTURES.items()}
    for size in (3, 6, 7, 12, 13, 20, 21):
        drawings[f"substitution of {size}"] = drawn(partial(models.substitution, moves(size)))
    for size in (5, 6, 7, 10, 11, 31):
        drawings[f"periods of {size}"] = drawn(partial(fits.shares_over_time, *many_shares(size)))
    return "".join(f"{name}\n{chr(10).join(_brief(lines))}\n" for name, lines in drawings.items())


def _brief(lines: list[str]) -> list[str]:
    """The calls of a picture; of more than 40, the first and a checksum of all."""
    checksum = f"    {len(lines)} in all, {crc32(''.join(lines).encode()):x}"
    return lines if len(lines) <= 40 else [*lines[:8], checksum, *lines[-3:]]


def test_every_chart_is_drawn_as_it_was() -> None:
    assert every_drawing() == DRAWN.read_text(encoding="utf-8")


if __name__ == "__main__":
    DRAWN.write_text(every_drawing(), encoding="utf-8")
