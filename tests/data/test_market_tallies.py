"""Choices of many markets as they are read: by group or row by row, from one file or a folder, with bad records."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rankstream.data.readers import read, results, tallies
from rankstream.data.readers.markets import Partition, parts_of_folder, read_markets, unused_in_parts
from rankstream.data.readers.options import check_options
from rankstream.data.readers.tallies import Tallies, check_number

pytestmark = pytest.mark.quick

HOW = check_options()
ROWS = [("York", "tea;pie", "tea"), ("York", "pie;tea", "pie"), ("Bath", "tea;pie", "tea"), ("York", "tea", "tea")]


def frame(*more: tuple[str, str, Any], rows: list[tuple[str, str, str]] = ROWS) -> pd.DataFrame:
    return pd.DataFrame([*rows, *more], columns=["store", "offered", "chosen"])


def told(found: Tallies) -> dict[Any, list[tuple[str, str, float]]]:
    """Sums by market, with offers as sorted text."""
    return {
        market: sorted((";".join(sorted(offer)), chosen, weight) for (offer, chosen), weight in tally.items())
        for market, tally in found.tallies()
    }


WANTED = {
    ("Bath",): [("pie;tea", "tea", 1.0)],
    ("York",): [("pie;tea", "pie", 1.0), ("pie;tea", "tea", 1.0), ("tea", "tea", 1.0)],
}


def test_markets_are_counted_apart() -> None:
    found = read_markets(frame(), ["store"], HOW)
    assert told(found) == WANTED
    assert (found.by, found.format, found.failed, found.skipped, found.unused) == (
        ("store",),
        "transactions",
        {},
        0,
        (),
    )
    assert sum(found.together().values()) == 4.0
    counts = dict(found.counts())
    assert [market for market, _ in found.counts()] == [("Bath",), ("York",)]
    assert counts["York",].assortments.n_offers == 2  # type: ignore[union-attr]
    assert counts["Bath",].tallies.tolist() == [0.0, 1.0]  # type: ignore[union-attr]


@pytest.mark.parametrize("blank", [False, True])
def test_a_bad_record_fails_its_market_or_is_skipped(tmp_path: Path, blank: bool) -> None:
    path = tmp_path / "choices.csv"
    bad = ("Bath", "tea;pie", "rum"), ("Hull", "tea", "rum"), ("Bath", "tea;pie", "gin")
    path.write_text(frame(*bad).to_csv(index=False) + "\n" * blank)
    found = read_markets(path, ["store"], HOW)
    assert told(found) == {("York",): WANTED["York",]}
    assert found.failed.keys() == {("Bath",), ("Hull",)}
    assert "the choice 'rum' is not in its offer" in found.failed["Bath",]  # the first of its records
    assert found.skipped == 0
    assert list(dict(found.counts())) == [("York",), ("Bath",), ("Hull",)]  # those that failed at the end
    skipped = read_markets(path, ["store"], HOW, "skip")
    assert told(skipped) == WANTED
    assert (skipped.failed, skipped.skipped) == ({}, 3)
    assert dict(skipped.tallies()) == dict(skipped.tallies())


def test_a_record_without_a_market_stops_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "choices.csv"
    frame(("", "tea;pie", "tea")).to_csv(path, index=False)
    with pytest.raises(ValueError, match="has records without a value in 'store': fill it in, or remove them"):
        read_markets(path, ["store"], HOW)
    path.write_text("store,offered,chosen\nYork,tea;pie,rum\n")
    with pytest.raises(ValueError, match="has no usable records: correct it, or give another file"):
        read_markets(path, ["store"], HOW, "skip")
    assert "rum" in read_markets(path, ["store"], HOW).failed["York",]


def test_a_line_that_is_no_row_is_of_no_market(tmp_path: Path) -> None:
    path = tmp_path / "choices.csv"
    path.write_text(frame().to_csv(index=False) + "York\n")
    with pytest.raises(ValueError, match="there are fewer values than columns"):
        read_markets(path, ["offered"], HOW)
    assert read_markets(path, ["store"], HOW).failed.keys() == {("York",)}


def test_folders_name_markets(tmp_path: Path) -> None:
    for name, rows in (("store=York", ROWS[:2]), ("store=York", ROWS[3:]), ("store=Bath", ROWS[2:3])):
        (tmp_path / name).mkdir(exist_ok=True)
        part = frame(rows=rows).drop(columns="store").assign(day=[f"day {n}" for n in range(len(rows))])
        part.to_csv(tmp_path / name / f"{len(rows)}.csv", index=False)
    (tmp_path / "store=York" / "_notes.csv").write_text("hidden")
    (tmp_path / ".old").mkdir()
    (tmp_path / ".old" / "1.csv").write_text("hidden")
    (tmp_path / "store=York" / "notes.md").write_text("of another kind")
    parts = parts_of_folder(tmp_path, ["store"])
    assert [(part.partitions, part.values, len(part.paths)) for part in parts] == [
        (("store",), ("Bath",), 1), (("store",), ("York",), 2),
    ]  # fmt: skip
    assert parts[1].market(["store", "kind"]) == ("York", "*")
    total = Tallies(("store",), HOW, "")
    for each in parts:
        total.update(each.read(["store"], HOW, "stop"))
    assert told(total) == WANTED
    assert (total.format, total.failed) == ("transactions", {})
    for some in (parts, parts[:1], parts[1:]):
        assert [column.name for column in unused_in_parts(some, ["store"], HOW)] == ["day"]
    (whole,) = parts_of_folder(tmp_path, ["kind"])
    assert (whole.partitions, len(whole.paths)) == ((), 3)
    (tmp_path / "store=").mkdir()
    (tmp_path / "store=" / "1.csv").write_text("offered,chosen\ntea,tea\n")
    with pytest.raises(ValueError, match=r"is in a folder store=\.\.\. without a value"):
        parts_of_folder(tmp_path, ["store"])


def test_a_part_that_cannot_be_read_fails_its_market(tmp_path: Path) -> None:
    (tmp_path / "choices.csv").write_text("a,b\n1,2\n")
    part = Partition((tmp_path / "choices.csv",), ("store",), ("York",))
    found = part.read(["store"], HOW, "stop")
    assert found.failed.keys() == {("York",)}
    assert "choices.csv" in found.failed["York",]
    assert unused_in_parts([part], ["store"], HOW) == ()


def test_too_many_markets_are_taken_for_customers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "MAX_MARKETS", 2)
    check_number(2, ("York",), ("store",))
    with pytest.raises(ValueError, match="The columns 'store', 'kind' define more than 2 markets, such as 'York;hot'"):
        check_number(3, ("York", "hot"), ("store", "kind"))
    assert len(read_markets(frame(), ["store"], HOW).markets) == 2
    with pytest.raises(ValueError, match="define more than 2 markets"):
        read_markets(frame(("Hull", "tea", "tea")), ["store"], HOW)
    bad = [(f"{place}", "tea", "rum") for place in range(3)]
    with pytest.raises(ValueError, match=r"define more than 2 markets, such as '[0-2]'"):
        read_markets(frame(rows=bad), ["store"], HOW)
    assert len(read_markets(frame(rows=bad[:2]), ["store"], HOW).failed) == 2


def test_groups_share_a_limit_on_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MAX_GROUP_CELLS", 6)  # two groups of offers with 2 and 1 items
    assert read(frame(), by="store").groups.keys() == {"York", "Bath"}
    monkeypatch.setattr(results, "MAX_GROUP_CELLS", 5)
    with pytest.raises(
        ValueError, match="2 groups over 3 pairs of an offer and an item are 6 cells, beyond 5: use fewer"
    ):
        read(frame(), by="store")
