"""Tables of items, line by line: what each cell may be, and which sentence says what is wrong with it."""

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rankstream.cli.items import read_items, word_pairs
from rankstream.cli.stream import unless_hung_up

pytestmark = pytest.mark.quick
NAMES: dict[str, Any] = {"tea": "tea", "pie": 7, "none": "none"}


def read(folder: Path, text: str, *more: Any, **named: Any) -> Any:
    (folder / "items.csv").write_text(text, encoding="utf-8")
    return read_items(folder / "items.csv", NAMES, "none", *more, **named)


def test_a_line_is_found_by_its_name_and_may_have_blanks(tmp_path: Path) -> None:
    found = read(tmp_path, "\ufeffitem , margin,listing_cost,space\n tea , 1.5 ,,0\npie,-2, 0.25 ,\n")
    assert found.margins == {"tea": 1.5, 7: -2.0}
    assert (found.listing_costs, found.space, found.unit_costs) == ({7: 0.25}, {"tea": 0.0}, None)


def test_buying_nothing_may_be_left_out_or_earn_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "item,margin\ntea,1\npie,2\n").margins == {"tea": 1.0, 7: 2.0}
    assert read(tmp_path, "item,margin\ntea,1\npie,2\nnone,0\n").margins == {"tea": 1.0, 7: 2.0, "none": 0.0}
    with pytest.raises(ValueError, match=r"Line 2 of .* gives 'none' a margin, but it means buying nothing"):
        read(tmp_path, "item,margin\nnone,0.5\ntea,1\npie,2\n")
    priced = read(tmp_path, "item,margin,unit_cost\nnone,,\ntea,,1.25\n", ["tea"])
    assert (priced.margins, priced.unit_costs) == ({"none": 0.0}, {"tea": 1.25})


@pytest.mark.parametrize("cell", ["inf", "-inf", "nan", "one", "", "1,5"])
def test_every_number_is_finite(tmp_path: Path, cell: str) -> None:
    for text, column in (
        ('item,margin\ntea,"{}"\npie,1\n', "margin"),
        ('item,price,unit_cost\ntea,"{}",1\npie,1,1\n', "price"),
        ('item,price,unit_cost\ntea,1,"{}"\npie,1,1\n', "unit_cost"),
    ):
        with pytest.raises(ValueError, match="Line 2 of ") as refused:
            read(tmp_path, text.format(cell))
        assert str(refused.value).endswith(f"has the {column} {cell!r} for 'tea': it must be a finite number.")
    if cell:
        with pytest.raises(ValueError, match=f"has the space '{cell}' for 'pie'"):
            read(tmp_path, f'item,margin,space\ntea,1,1\npie,1,"{cell}"\n')


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("item,margin\ntea,1\npie,1\ntea,2\n", "Line 4 of {} lists 'tea' again: keep one line per item."),
        (
            "item,margin,space\ntea,1,-0.5\npie,1,1\n",
            "Line 2 of {}: the space of 'tea' is -0.5. It must be at least 0.",
        ),
        ("item,margin\ntea,1\n", "{} has no line for 'pie': give every item a margin, 0 if it earns nothing."),
        ("item,margin\n", "{} has no items: add a line for each."),
        ("item,margin\ntea,1\npie,1,1\n", "Line 3 of {} has more fields than columns: write 1.3, not 1,3."),
        ("item,margin,margin\ntea,1,1\n", "{} has a column twice: it has ['item', 'margin', 'margin']."),
        (
            "item,cost\ntea,1\n",
            "{} needs the columns item and margin (or price and unit_cost); it has ['item', 'cost'].",
        ),
        (
            "item,price\ntea,1\n",
            "{} needs the columns item and margin (or price and unit_cost); it has ['item', 'price'].",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match="items") as refused:
        read(tmp_path, text)
    assert str(refused.value) == sentence.format(tmp_path / "items.csv")


def test_lines_of_other_markets_are_skipped_and_unknown_ones_are_not(tmp_path: Path) -> None:
    text = "item,margin\nrum,9\ntea,1\npie,2\n"
    assert read(tmp_path, text, others=["rum", "tea"]).margins == {"tea": 1.0, 7: 2.0}
    with pytest.raises(ValueError, match=r"Line 2 of .* names 'rum'"):
        read(tmp_path, text)


def test_semicolons_separate_columns_and_commas_may_be_decimal_marks(tmp_path: Path) -> None:
    found = read(tmp_path, "item;margin;space\ntea;1,3;2\npie;-0,25;1.5\n")
    assert (found.margins, found.space) == ({"tea": 1.3, 7: -0.25}, {"tea": 2.0, 7: 1.5})


def test_items_with_prices_to_decide_have_unit_costs(tmp_path: Path) -> None:
    found = read(tmp_path, "item,unit_cost,margin\ntea,1,\npie,,0.5\n", ["tea"])
    assert (found.margins, found.unit_costs) == ({7: 0.5}, {"tea": 1.0})
    assert read(tmp_path, "item,unit_cost\ntea,1\n", ["tea"]).margins == {}  # others may have no line
    with pytest.raises(ValueError, match="'tea' needs a unit cost to decide its price"):
        read(tmp_path, "item,margin\ntea,1\n", ["tea"])
    with pytest.raises(ValueError, match="'pie' has no price to decide, so it needs a margin"):
        read(tmp_path, "item,unit_cost\npie,1\n", ["tea"])
    with pytest.raises(ValueError, match="lists 'tea' again"):
        read(tmp_path, "item,unit_cost\ntea,1\ntea,1\n", ["tea"])
    with pytest.raises(ValueError, match=r"needs the columns item and unit_cost \(or margin, for levels\)"):
        read(tmp_path, "item,price\ntea,1\n", ["tea"])


@pytest.mark.parametrize("text", ["tea", "", "tea:pie:rum", "a:b:c"])
def test_a_pair_is_two_known_items(text: str) -> None:
    names: dict[str, Any] = {"a:b": 1, "c": 2, "a": 3, "b:c": 4}
    with pytest.raises(ValueError, match="give two items as cream:tea"):
        word_pairs("--requires", [text], names)
    assert word_pairs("--requires", [" cream : tea "], names) == [("cream", "tea")]  # checked where they are used


def test_a_terminal_that_is_gone_stops_the_stream_and_other_errors_stay() -> None:
    follower: Any = SimpleNamespace(stopped=False)

    def write(error: OSError | None) -> bool:
        with unless_hung_up(follower):
            if error is not None:
                raise error
        return bool(follower.stopped)

    assert not write(None)
    with pytest.raises(OSError, match="full"):
        write(OSError(errno.ENOSPC, "full"))
    assert not follower.stopped
    assert write(OSError(errno.EIO, "hung up"))
