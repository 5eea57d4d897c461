"""What a table is, by the names of its columns alone: roles, items, prices, and what is refused."""

from typing import Any

import pytest

from rankstream.data.readers import roles as roles_module
from rankstream.data.readers.formats import Layout, recognise
from rankstream.data.readers.roles import (
    check_names,
    item_with_price,
    items_of,
    listed_names,
    parsed,
    price_columns,
    roles_of,
)

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("words", "roles"),
    [
        ("chosen=c", {"chosen": "c"}), (" chosen = c , item = i ", {"chosen": "c", "item": "i"}),
        ("items=a", {"items": ["a"]}), ("offered=a;b", {"offered": ["a", "b"]}),
        ("items= a ; b ", {"items": ["a", "b"]}),
        (' {"items": ["a, b"]}', {"items": ["a, b"]}),
    ],
)  # fmt: skip
def test_columns_in_words(words: str, roles: dict[str, Any]) -> None:
    assert parsed(words) == roles


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("chosen", "are not of the form"), ("=c", "are not of the form"), ("chosen=", "are not of the form"),
        ("a=b,,c=d", "are not of the form"), ("a=b,a=c", "map 'a' twice"), ("{", "are not JSON"),
        ('{"a"', "are not JSON"),
    ],
)  # fmt: skip
def test_columns_in_words_that_are_none(words: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parsed(words)


@pytest.mark.parametrize(
    ("columns", "given", "roles"),
    [
        (["Offered ", "CHOSEN", "x"], {}, {"offered": "Offered ", "chosen": "CHOSEN"}),
        (["a", "b"], {"chosen": "b"}, {"chosen": "b"}),
        (["chosen", "choice"], {"chosen": "choice"}, {"chosen": "choice"}),
        (["choice", "chosen"], {}, {"chosen": "chosen"}),
        (
            ["id", "item", "chosen_item"],
            {},
            {"observation": "id", "item": "item", "chosen_item": "chosen_item", "chosen": "chosen_item"},
        ),
        (["chosen", "chosen_item"], {}, {"chosen": "chosen", "chosen_item": "chosen_item"}),
        (["chosen", "x"], {"chosen_item": "x"}, {"chosen": "x", "chosen_item": "x"}),
        (["ranking", "votes"], {}, {"ranking": "ranking", "count": "votes"}),
        (["ranking", "number of ballots"], {}, {"ranking": "ranking", "count": "number of ballots"}),
        (["offered", "chosen", "votes"], {}, {"offered": "offered", "chosen": "chosen"}),
        (["ranking", "count", "votes"], {}, {"ranking": "ranking", "count": "count"}),
        (["receipt", "sku", "quantity"], {}, {"observation": "receipt", "item": "sku", "chosen": "quantity"}),
        (["receipt", "sku", "quantity", "chosen"], {}, {"observation": "receipt", "item": "sku", "chosen": "chosen"}),
        (["in_stock", "sku"], {}, {"available": "in_stock", "item": "sku", "offered": "in_stock", "chosen": "sku"}),
        (
            ["in_stock", "sku", "quantity"],
            {},
            {"available": "in_stock", "item": "sku", "offered": "in_stock", "count": "quantity"},
        ),
        (["in_stock", "chosen"], {}, {"available": "in_stock", "chosen": "chosen", "offered": "in_stock"}),
        (
            ["id", "item", "chosen", "in_stock"],
            {},
            {"observation": "id", "item": "item", "chosen": "chosen", "available": "in_stock"},
        ),
    ],
)
def test_roles_by_name(columns: list[str], given: dict[str, Any], roles: dict[str, str]) -> None:
    assert roles_of("data", columns, given) == roles


def test_roles_that_cannot_be() -> None:
    cases: tuple[tuple[Any, str], ...] = (
        ({"who": "a"}, "Unknown column role 'who'"), ({"chosen": ""}, "is '', which is not a name"),
        ({"chosen": "z"}, r"has no column 'z' for 'chosen' \(it has 'a', 'b'\)"), ({"chosen": 3}, "has no column 3"),
    )  # fmt: skip
    for given, message in cases:
        with pytest.raises(ValueError, match=message):
            roles_of("data", ["a", "b"], given)
    with pytest.raises(ValueError, match="may have counts in"):
        roles_of("data", ["ranking", "votes", "weight"], {})
    assert roles_of("data", ["time", "chosen"], {}, absent=["time"]) == {"chosen": "chosen"}


def test_names_are_listed_up_to_twenty() -> None:
    assert listed_names(["a", "b"]) == "'a', 'b'"
    assert listed_names(["a"] * 20).count("'a'") == 20
    assert listed_names(["a"] * 21).endswith("'a' and 1 more")


def test_columns_differ_in_more_than_case(monkeypatch: pytest.MonkeyPatch) -> None:
    check_names("data", ["a", "b"])
    for columns in (["a", "A"], ["a", "b", "a"]):
        with pytest.raises(ValueError, match="as case does not count"):
            check_names("data", columns)
    monkeypatch.setattr(roles_module, "MOST_COLUMNS", 2)
    check_names("data", ["a", "b"])
    with pytest.raises(ValueError, match="more than 2 columns"):
        check_names("data", ["a", "b", "c"])


@pytest.mark.parametrize(
    ("wanted", "codes"),
    [
        (None, {"tea_av": "tea", "av.pie": "pie"}),
        (["x", "tea_av:3"], {"x": "x", "tea_av": "3"}),
        ({"x": 1}, {"x": "1"}),
        ("x", {"x": "x"}),
        (5, {}),
    ],
)
def test_items_of_a_wide_table(wanted: Any, codes: dict[str, str]) -> None:
    columns = ["id", "tea_av", "x", "av.pie", "a:b"]
    assert items_of("data", columns, wanted, {"id"}) == codes
    assert items_of("data", columns, ["a:b"], set()) == {"a:b": "a:b"}
    assert items_of("data", ["id", "tea_av", "x"], None, {"id"}) == {"tea_av": "tea", "x": "x"}  # one mark says little
    with pytest.raises(ValueError, match="no column 'z' for an item"):
        items_of("data", columns, ["z"], set())


@pytest.mark.parametrize(
    ("given", "columns", "by_item"),
    [
        (None, (), {}), ("p1", ("p1",), {}), ("p1, p2", ("p1", "p2"), {}), (["p1"], ("p1",), {}),
        ("tea=p1, pie = p2", ("p1", "p2"), {"tea": "p1", "pie": "p2"}), ({"tea": "p1"}, ("p1",), {"tea": "p1"}),
        ('{"tea": "p1"}', ("p1",), {"tea": "p1"}), ('["p1", "p2"]', ("p1", "p2"), {}), ("offered", ("offered",), {}),
        ("a,b", ("a,b",), {}),
    ],
)  # fmt: skip
def test_columns_of_prices(given: Any, columns: tuple[str, ...], by_item: dict[str, str]) -> None:
    found = price_columns("data", ["p1", "p2", "a,b"], given)
    assert (found.columns, dict(found.by_item)) == (columns, by_item)
    assert found.beside("p2") == set(columns) - {"offered", "p2"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("p3", "has no price column 'p3'"), ("p1,p1", "include one twice"), ("tea=p1,tea=p2", "include an item twice"),
        ([], "give one name"), ({}, "give one name"), ({"": "p1"}, "give one name"), ([3], "give one name"),
        ("[", "are not JSON"), ("tea=p1,p2", "has no price column 'tea=p1'"), ({"tea": 3}, "give one name"),
    ],
)  # fmt: skip
def test_columns_of_prices_that_are_none(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        price_columns("data", ["p1", "p2"], given)


def test_prices_where_an_offer_is_a_cell_a_row_or_many_columns() -> None:
    def prices(given: Any) -> Any:
        return price_columns("data", ["p1", "p2", "menu", "price_tea", "pie price"], given)

    prices("offered").in_offers("data", "menu")
    prices("menu").in_offers("data", "menu")
    for wrong in ("p1", "p1,p2", {"tea": "menu"}):
        with pytest.raises(ValueError, match="has each offer in one cell"):
            prices(wrong).in_offers("data", "menu")
    assert prices("p1").alone("data") == "p1"
    for wrong in ("offered", "p1,p2", {"tea": "p1"}):
        with pytest.raises(ValueError, match="has a row for each item"):
            prices(wrong).alone("data")
    codes = {"1": "tea", "tea": "tea"}
    assert prices("price_tea,pie price").of_items("data", codes, closed=False) == {
        "tea": "price_tea",
        "pie": "pie price",
    }
    assert prices({"1": "p1", "rum": "p2"}).of_items("data", codes, closed=True) == {"tea": "p1", "rum": "p2"}
    with pytest.raises(ValueError, match="has no item 'pie' for the prices"):
        prices("pie price").of_items("data", codes, closed=True)
    with pytest.raises(ValueError, match="two price columns for one item"):
        price_columns("data", ["price_tea", "tea_price"], "price_tea,tea_price").of_items("data", codes, closed=False)
    assert [item_with_price("data", name) for name in ("Prices.tea", "tea prices", "price_a_b")] == [
        "tea",
        "tea",
        "a_b",
    ]
    with pytest.raises(ValueError, match="matches no item"):
        item_with_price("data", "cost")


@pytest.mark.parametrize(
    ("columns", "given", "expected"),
    [
        (["obs_id", "alt_id", "choice", "n"], {}, ("long", ("obs_id", "alt_id", "choice"), None)),
        (["offered", "chosen", "count"], {}, ("transactions", ("offered", "chosen"), "count")),
        (["offered", "item", "count"], {}, ("counts", ("offered", "item"), "count")),
        (["ranking", "votes"], {}, ("rankings", ("ranking",), "votes")),
        (["tea", "pie", "chosen", "time"], {}, ("wide", ("chosen", "tea", "pie"), None)),
        (["tea", "chosen"], {"offered": ["tea", "no"]}, ("transactions", ("chosen",), None)),
        (["observation", "item", "chosen"], {}, ("long", ("observation", "item", "chosen"), None)),
        (["observation", "item", "chosen"], {"offered": ["tea", "no"]}, ("transactions", ("chosen",), None)),
        (["case", "pie", "chosen"], {}, ("wide", ("chosen", "case", "pie"), None)),
        (["id", "item", "chosen", "offered"], {}, ("transactions", ("offered", "chosen"), None)),
    ],
)
def test_formats_by_their_columns(columns: list[str], given: Any, expected: Any) -> None:
    found = recognise("data", columns, given=given)
    assert (found.format, found.raw, found.count) == expected


def test_details_of_layouts() -> None:
    assert recognise("data", ["tea", "chosen"], given="offered=tea;no").always == ("tea", "no")
    known = {"offer_id": "offer_id", "chosen": "chosen", "offered": "offer_id"}
    by_id = Layout("transactions", ("offer_id", "chosen"), roles=known, by_id=True)
    assert recognise("data", ["offer_id", "chosen"], by_id=True) == by_id
    assert recognise("data", ["menu", "chosen"], given={"offer_id": "menu"}).by_id
    assert recognise("data", ["id", "item", "chosen_item"]).naming is True
    assert recognise("data", ["id", "item", "chosen"]).naming is None
    wide = recognise("data", ["tea_av", "pie_av", "other", "chosen", "price_tea"], prices="price_tea")
    assert (wide.raw, wide.priced, wide.items) == (
        ("chosen", "tea_av", "pie_av", "price_tea"),
        ("tea",),
        ("tea", "pie"),
    )
    assert wide.codes == {"tea": "tea", "tea_av": "tea", "pie": "pie", "pie_av": "pie"}
    assert recognise("data", ["tea", "chosen", "price_pie"], prices="price_pie").priced == ("pie",)
    long = recognise("data", ["id", "item", "chosen", "cost"], prices="cost")
    assert (long.raw, long.has_prices) == (("id", "item", "chosen", "cost"), True)
    assert recognise("data", ["offered", "chosen"], prices="offered").has_prices
    assert recognise("data", ["tea", "pie", "rum", "chosen"], besides=["rum"]).items == ("tea", "pie")
    assert recognise("data", ["chosen", "x", "y"], format="wide", given={"items": ["x:1", "y:2"]}).codes["2"] == "y"


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (["a"], {"format": "none"}, "Unknown format 'none'"), ([], {}, "has no records"),
        (["offered", "x"], {}, "has no column 'chosen'"),
        (["ranking"], {"prices": "ranking"}, "rankings, which have no prices"),
        (["chosen"], {"format": "wide"}, "no columns for its items"),
        (["x", "y"], {"format": "long"}, "has no column 'observation'"),
        (["tea", "tea_av", "chosen"], {"given": {"items": ["tea", "tea_av"]}}, "two columns for one item"),
        (["a", "b", "chosen"], {"given": {"items": ["a:1", "b:1"]}}, "two items called '1'"),
        (["chosen", "a", " "], {}, "which is not a name"),
        (["chosen"], {"given": {"offered": ["a", "a"]}}, "list each once"),
        (["chosen"], {"given": {"offered": ["a", ""]}}, "list each once"),
    ],
)  # fmt: skip
def test_tables_that_are_none(columns: list[str], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        recognise("data", columns, **options)
