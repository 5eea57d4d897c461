"""The numbers of every section, against a file that was looked at: sentences may be reworded, numbers may not move.

After a change that is meant, run ``python tests/reports/test_report_numbers.py`` and read the difference.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from zlib import crc32

import numpy as np
import pytest

import rankstream as rs
from rankstream.data.drift import DriftReport, Movement
from rankstream.data.item_changes import ItemMovement
from rankstream.decide.decision import Units
from rankstream.estimation.intervals import Share
from rankstream.models.answers import Substitution
from rankstream.reports import blocks, findings, origin, sections

pytestmark = pytest.mark.quick
NUMBERS = Path(__file__).with_name("numbers.txt")
ITEMS = ("tea", "pie", "rum", "no")
OFFERS = rs.Assortments([("tea", "pie", "no"), ("tea", "no"), ("pie", "rum", "no"), ("rum", "no")])
COUNTS = rs.ChoiceCounts(OFFERS, [60, 30, 10, 7, 3, 0, 0, 0, 5, 15])
RANKINGS = [
    ("tea", "pie", "no", "rum"),
    ("pie", "rum", "no", "tea"),
    ("no", "tea", "pie", "rum"),
    ("rum", "no", "pie", "tea"),
]
MODEL = rs.RankingModel(ITEMS, RANKINGS, [0.4, 0.3, 0.2, 0.1], no_choice_code=3)
PLAIN = rs.RankingModel(ITEMS, RANKINGS, [0.4, 0.3, 0.2, 0.1])
NUMBER = re.compile(r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")


def numbers_of(text: str) -> str:
    """The numbers and items of a sentence, in their order."""
    return " ".join(re.findall(rf"{NUMBER.pattern}|\b(?:tea|pie|rum|egg|i\d\d)\b", text))


def lines_of(section: blocks.Section) -> Iterator[str]:
    """The numbers of a section: sentence by sentence, row by row, and the values of its charts."""
    yield from (f"    says {numbers_of(sentence)}" for sentence in section.sentences)
    for part in section.parts:
        shown = part if isinstance(part, blocks.TableBlock) else part.table
        if not isinstance(part, blocks.TableBlock):
            yield f"    {part.kind} {numbers_of(part.title)}: {rounded(part.values)}"
        note = f"{shown.most:,} {len(shown.rows):,}" if len(shown.rows) > shown.most else ""
        yield f"    table {shown.numbers}, {numbers_of(shown.caption)}: {note}"
        rows = [f"        {' | '.join(numbers_of(str(cell)) for cell in row)}" for row in shown.rows[: shown.most]]
        checksum = f"        {len(rows)} in all, {crc32(''.join(rows).encode()):x}"
        yield from rows if len(rows) <= 12 else [*rows[:3], checksum]


def rounded(values: Any) -> str:
    """The values of a chart as text, with numbers to six digits."""
    if isinstance(values, dict):
        return "{" + ", ".join(f"{name}: {rounded(value)}" for name, value in values.items()) + "}"
    if isinstance(values, list | tuple):
        texts = [rounded(value) for value in values]
        checksum = f"{len(texts)} in all, {crc32(''.join(texts).encode()):x}"
        return "[" + ", ".join(texts if len(texts) <= 12 else [*texts[:3], checksum]) + "]"
    return f"{values:.6g}" if isinstance(values, float) else str(values)


def moves(size: int, with_ends: bool = False) -> Substitution:
    """The first item loses to all others, more to later ones; nobody buys the last."""
    shares = (np.ones((size, size)) - np.eye(size)) / (size - 1.0)
    shares[0] = np.arange(size) / np.arange(size).sum()
    shares[-1] = 0.0
    names = ITEMS if size == 4 else tuple(f"i{number:02}" for number in range(size))
    low, high = (np.maximum(shares - 0.3, 0.0), shares + 0.1) if with_ends else (None, None)
    return Substitution(names, np.linspace(0.4, 0.1, size), shares, low, high, "90 % intervals")


def movement(number: int, moved: bool, freedom: int = 2) -> Movement:
    return Movement(OFFERS.offers[number], 100.0, 90.0, 7.5, freedom, 0.01, 0.02, moved, "tea", 0.125)


def drift(**given: Any) -> DriftReport:
    items = [
        ItemMovement(f"i{number:02}", 0.011 * (number - 4), 0.004 * number, 9, number, 0.1) for number in range(14)
    ]
    filled: dict[str, Any] = {"items": tuple(items), "tested_items": 14} | given
    movements = (movement(0, True), movement(1, False), movement(2, False, freedom=0))
    return DriftReport(movements, (("tea",),), (("pie",), ("rum",)), 0.05, "holm", **filled)


def periods(*totals: int) -> list[rs.ChoiceCounts]:
    """Choices over the same offers; of the first offer mostly, or of all alike."""
    return [rs.ChoiceCounts(OFFERS, total * np.array([6, 3, 1, 1, 1, 0, 1, 0, 1, 1])) for total in totals]


def curves(size: int) -> Any:
    return {f"i{number:02}": {3.0: 0.021 * number, 2.0: 0.03 * number, 4.0: 0.005} for number in range(size)}


def every_section() -> Iterator[tuple[str, Iterator[str]]]:
    """All sections, with what tells their branches apart."""
    yield "fit", lines_of(sections.fit_section(MODEL, COUNTS, ["proven 1.5"]))
    with patch.object(sections, "MOST_DOTS", 5):
        yield "fit, 5 dots", lines_of(sections.fit_section(MODEL, COUNTS))
    with patch.object(sections, "MOST_DOTS", 2):
        yield "fit, 2 dots", lines_of(sections.fit_section(MODEL, COUNTS))
    types: Any = {("tea", "pie"): 0.5, ("rum",): 0.3, (): 0.2}
    known: Any = {key: Share(share, share - 0.1, share + 0.05) for key, share in types.items()}
    whole = [{"ranking": list(ITEMS), "share": 0.25}, {"ranking": [f"i{n:02}" for n in range(12)], "share": 0.125}]
    for name, model in (("with", MODEL), ("without", PLAIN)):
        yield f"types {name} no-choice item", lines_of(sections.types_section(model, types, whole, top=2))
        yield f"types {name}, sure", lines_of(sections.types_section(model, known))
    yield "no types", lines_of(sections.types_section(MODEL, {}))
    ends: Any = {item: Share(0.3, 0.25, 0.35) for item in ITEMS}
    for size in (4, 12, 13, 22):
        yield f"substitution of {size}", lines_of(sections.substitution_section(moves(size)))
    yield "substitution, sure", lines_of(sections.substitution_section(moves(4, with_ends=True), ends, MODEL))
    for size in (3, 8, 9, 31):
        yield f"demand for {size}", lines_of(sections.demand_section(curves(size)))
    free: Any = {
        "tea": {0.0: 0.5, 2.0: 0.25},
        "pie": {2.0: 0.5, 4.0: 0.0},
        "rum": {3.0: 0.25},
        "egg": {2.0: 0.4, 8.0: 0.1},
    }
    yield "demand for free", lines_of(sections.demand_section(free))
    for name, model in (("with", MODEL), ("without", PLAIN)):
        for ends_known in (False, True):
            found = findings.findings_section(model, COUNTS, moves(4, ends_known), free, "90 % intervals")
            yield f"findings {name} no-choice item, {ends_known}", lines_of(found)
    small: Any = {"tea": {2.0: 0.5, 4.0: 0.475}, "pie": {2.0: 0.5, 4.0: 0.4751}}
    yield (
        "price effects of 5 %",
        iter(map(numbers_of, [*findings._prices(small), *findings._prices({"pie": small["pie"]})])),
    )
    yield "no choices", lines_of(findings.findings_section(MODEL, rs.ChoiceCounts(OFFERS), moves(4), {}, ""))
    yield "offers", lines_of(findings.offers_section(COUNTS, 2))
    yield "drift", lines_of(findings.drift_section(drift()))
    yield "drift without items", lines_of(findings.drift_section(drift(items=(), tested_items=0)))
    spans = [(1.7e9 + 1000.0 * n, 1.7e9 + 1000.0 * n + 500.0) for n in range(3)]
    yield "trend", lines_of(findings.drift_section(drift(), periods(1, 0, 3), spans, alarms=[1.7e9], nothing="no"))
    steps = [(float(n), n + 0.5) for n in range(3)]
    with patch.object(findings, "MIN_OFFER_SHARE", 0.7), patch.object(findings, "MAX_TREND_LINES", 2):
        yield "trend of all", lines_of(findings.drift_section(drift(), periods(1, 2, 3), steps, across="records"))


ABOUT: dict[str, Any] = {
    "prediction": {
        "weights": {"logit": 0.25, "chain": 0.75}, "held_out_nats": {"logit": 3.0, "chain": 7.5}, "trust": 30.0,
        "approximate": True, "held_out_by_trust": {"10": -4.5, "30": 0.0, "100": -2.5},
    },
    "data": {"file": "shop.csv", "digest": "0123456789abcdef"}, "choices": 1234, "times": ["1 May", "2 June"],
    "reading": {"by": "store", "no_choice": None, "half_life": 7}, "method": "nearest", "seed": 3, "version": "9.9",
    "certificate": {
        "distance": 0.25, "proven_least_distance": 0.125, "gap": 0.0625, "noise_distance": 0.5, "cut_short": True,
    },
}  # fmt: skip


def some_words() -> Iterator[tuple[str, str]]:
    """Sentences about where a model comes from, by their numbers."""
    for name in ("", *ABOUT):
        about = {key: value for key, value in ABOUT.items() if key != name}
        yield f"origin without {name}", " / ".join(map(numbers_of, origin.origin_lines(about)))
    prediction = ABOUT["prediction"]
    for name in ("", *prediction):
        about = {"prediction": {key: value for key, value in prediction.items() if key != name}}
        yield f"prediction without {name}", " / ".join(map(numbers_of, origin.prediction_lines(about)))
    for scores in ({"logit": 9.0, "chain": 7.5}, {"chain": 7.5}):
        about = {"prediction": prediction | {"held_out_nats": scores}}
        yield f"best of {scores}", " / ".join(map(numbers_of, origin.prediction_lines(about)))
    for adjustment in (None, 3, "x"):
        about = {"prediction": {"adjustment": adjustment}}
        yield f"adjustment {adjustment}", " / ".join(map(numbers_of, origin.prediction_lines(about)))
    for distance, least in ((1e-9, 0.0), (0.5, 0.25), (0.5, 0.75), (0.5, -1.0)):
        yield f"rest of {distance} and {least}", numbers_of(origin.remainder(distance, least))
    yield "period", f"{origin.period_of((1e8, 2e8))} {origin.period_of((1e8 - 1.0, 2e8))}"
    for seconds in (0.0, 119.0, 120.0, 7199.0, 7200.0, 172_799.0, 172_800.0):
        yield f"{seconds} s", blocks.ago(seconds)
    for size in (40, 41, 60):
        yield f"name of {size}", blocks.brief("".join(chr(97 + n % 26) for n in range(size)))
    for interval in (None, (-0.1, 0.2), (0.0, 0.2), (0.001, 0.009), (0.1, 0.99), (0.5, 1.5)):
        yield f"sure {interval}", numbers_of(findings._sure(0.1, interval, Units()))
    yield "differences", findings.differences(("tea @ 3.00", "pie", "a", "b", "c", "d"), ("tea @ 3.50", "no"))
    yield "brief", findings.differences(("tea @ 3.00", "a", "b", "c", "d"), ("tea @ 3.50", "e"), briefly=True)
    yield "joined", f"{sections.joined(range(12))} / {sections.joined(range(13))} / {sections.joined(range(3), 2)}"
    yield "values", str(blocks.presented({"a": [0.1234567, (1, "x")], "b": None, "c": 0.000004}))


def every_number() -> str:
    made = [f"{name}\n{chr(10).join(lines)}\n" for name, lines in every_section()]
    return "".join(made) + "".join(f"{name}: {words}\n" for name, words in some_words())


def test_the_numbers_of_reports_are_what_they_were() -> None:
    assert every_number() == NUMBERS.read_text(encoding="utf-8")


def test_markets_say_how_many_they_are() -> None:
    counts = SimpleNamespace(assortments=OFFERS, observations=130.0)
    problems = SimpleNamespace(total=0, summary=lambda: "")
    for size, more in ((8, False), (9, True)):
        keys = {(f"s{number}",) if number else "s0": None for number in range(size)}
        reading: Any = SimpleNamespace(
            rows=140, problems=problems, account=None, groups=keys, times=None, prices=None, notes=["note"]
        )
        words = list(origin.account_of(reading, counts))  # type: ignore[arg-type]
        assert words[2].partition(": ")[2].count("s") == 8
        assert ("…" in words[2]) == more
        assert words[-1] == "note"
    problems.total = 3
    assert "skipped" not in list(origin.account_of(reading, counts))[1]  # type: ignore[arg-type]


if __name__ == "__main__":
    NUMBERS.write_text(every_number(), encoding="utf-8")
