"""The table of attributes: coding, rules and errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankstream as rs
from rankstream import Assortments
from rankstream.data.attributes import Attributes, read_attributes
from rankstream.models.entropy.new_items import check_rows

pytestmark = pytest.mark.quick
TABLE = """item,brand,size
tea,A,250
pie,A,100
cake,B,150
rum,C,500
roll,B,200
bun,A,300
"""


def write(folder: Path, text: str) -> Path:
    (folder / "items.csv").write_text(text, encoding="utf-8")
    return folder / "items.csv"


def test_numbers_are_standardised_and_words_are_levels(tmp_path: Path) -> None:
    table = rs.read_attributes(write(tmp_path, TABLE))
    sizes = np.array([250, 100, 150, 500, 200, 300])
    assert table.items == ("tea", "pie", "cake", "rum", "roll", "bun")
    assert table.matrix[:, 3] == pytest.approx((sizes - sizes.mean()) / sizes.std())
    brands = [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert table.matrix[:, :3] == pytest.approx(np.array(brands) - [3 / 6, 2 / 6, 1 / 6])
    assert np.abs(table.matrix.mean(axis=0)).max() < 1e-12


def test_files_and_dicts_say_the_same(tmp_path: Path) -> None:
    rows = [line.split(",") for line in TABLE.splitlines()[1:]]
    known = read_attributes({item: {"brand": brand, "size": float(size)} for item, brand, size in rows})
    read = read_attributes(write(tmp_path, TABLE.replace(",", " , ")))
    assert (known.items, known.columns) == (read.items, read.columns)
    assert read_attributes(known) is known


def test_rows_are_found_by_name_and_the_outside_option_has_none(tmp_path: Path) -> None:
    table = read_attributes(write(tmp_path, TABLE))
    design, rated = table.design(["rum", "nothing", "tea"])
    assert rated.tolist() == [True, False, True]
    assert design[[0, 2]] == pytest.approx(table.matrix[[3, 0]])
    assert not design[1].any()
    assert Attributes(**table.to_content()).columns == table.columns


def test_new_items_are_coded_as_the_table_is_and_unknown_levels_are_average(tmp_path: Path) -> None:
    table = read_attributes(write(tmp_path, TABLE))
    coded, notes = table.code(
        {"new": {"brand": "B", "size": "150", "colour": "red"}, "odd": {"brand": "Z", "size": 250}}
    )
    assert coded[0] == pytest.approx(table.matrix[2])
    assert coded[1, :3].tolist() == [0.0, 0.0, 0.0]
    assert coded[1, 3] == table.matrix[0, 3]
    assert notes == ["No item of the fit has the brand 'Z' of 'odd': it counts as average."]


def test_items_with_the_same_attributes_are_allowed() -> None:
    table = Attributes(("a", "b", "c", "d"), {"size": [1, 1, 2, 2]})
    assert table.matrix[0].tolist() == table.matrix[1].tolist()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("tea,A,250", "tea,A,large"), r"'size' of 'tea' is 'large', other items have numbers: give a number"),
        (("tea,A,250", "tea,A,"), r"'size' of 'tea' is empty: give a value \(the no-purchase option needs no row\)"),
        (("tea,A,250", "tea,,250"), r"'brand' of 'tea' is empty"),
        (("tea,A,250", "pie,A,250"), r"Line 3 of .*items.csv has the item 'pie': give every item one line"),
        (("tea,A,250", ",A,250"), r"Line 2 of .*items.csv has the item ''"),
        (("tea,A,250", "tea,A,250,9"), r"Line 2 of .*items.csv has more fields than columns"),
        (("brand,size", "size,size"), r"has a column twice"),
        (("tea,A,250", "tea,A,nan"), r"'size' of 'tea' is 'nan', other items have numbers"),
        ((TABLE, "item,size\n"), r"has no items: add a line for each"),
        ((TABLE, ""), r"has no items"),
        ((TABLE, TABLE.replace(",B", ",A").replace(",C", ",A")), r"'brand' is the same for all 6 items: remove it"),
        ((TABLE, "\n".join(TABLE.splitlines()[:4])), r"3 items allow 1 to 0 columns of attributes, and these have 2"),
        ((TABLE, "item\na\nb\nc\nd\n"), r"4 items allow 1 to 1 columns of attributes, and these have 0"),
        (("A,100", "D,100"), r"6 items allow 1 to 3 columns of attributes, and these have 4 \(words count as one less"),
    ],
)
def test_errors_name_the_item_and_the_fix(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_attributes(write(tmp_path, TABLE.replace(*change, 1)))


def test_more_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"There is no file .*: give a CSV file whose first column is the item"):
        read_attributes(tmp_path / "none.csv")
    (tmp_path / "items.csv").write_bytes(b"item,size\nt\xe9,1\n")
    with pytest.raises(ValueError, match=r"is not a CSV file in UTF-8"):
        read_attributes(tmp_path / "items.csv")
    table = read_attributes(write(tmp_path, TABLE))
    with pytest.raises(ValueError, match=r"have no row for 'gin', which was offered: add one"):
        check_rows(Assortments([("tea", "gin", "nothing")]), table)
    check_rows(Assortments([("tea", "pie", "nothing"), ("tea", "nothing")]), table)
    with pytest.raises(ValueError, match=r"'size' of 'new' is 'big', other items have numbers"):
        table.code({"new": {"brand": "A", "size": "big"}})
    with pytest.raises(ValueError, match=r"'brand' of 'new' is empty"):
        table.code({"new": {"size": 3}})


def test_three_hundred_columns_are_refused() -> None:
    random = np.random.default_rng(0)
    columns: dict[str, Any] = {f"x{number}": random.normal(size=400).tolist() for number in range(300)}
    with pytest.raises(ValueError, match=r"400 items allow 1 to 100 columns of attributes, and these have 300"):
        Attributes(range(400), columns)
