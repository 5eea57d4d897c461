"""Records with prices, in every layout: the same counts of items at levels, and a sentence for what is wrong."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rankstream as rs
from both_ways import agree
from rankstream.data.readers.job import Job
from rankstream.streams.sources.parser import record_of

Priced = dict[str, float | None]
RECORDS: list[tuple[Priced, str]] = [
    ({"tea": 3.5, "cake": 4.0, "nothing": None}, "tea"),
    ({"tea": 3.0, "nothing": None}, "nothing"),
    ({"cake": 4.0, "tea": 3.0, "nothing": None}, "tea"),
    ({"tea": 12.0, "cake": 4.0, "nothing": None}, "cake"),
    ({"tea": 3.5, "cake": 4.0, "nothing": None}, "cake"),
]
LABELS = ("cake @ 4.00", "nothing", "tea @ 3.00", "tea @ 3.50", "tea @ 12.00")
ORDER = (("tea @ 3.00", "tea @ 3.50"), ("tea @ 3.50", "tea @ 12.00"))


def joined(offer: Priced, mark: str = ";") -> str:
    return mark.join(item if price is None else f"{item}@{price:.2f}" for item, price in offer.items())


def layouts(records: list[tuple[Priced, str]]) -> dict[str, tuple[pd.DataFrame, Any]]:
    """The same records as tables, and what to say of their prices."""
    items = ("tea", "cake", "nothing")
    rows = [
        (number, item, int(item == chosen), chosen, price)
        for number, (offer, chosen) in enumerate(records)
        for item, price in offer.items()
    ]
    long = pd.DataFrame(rows, columns=["obs", "item", "chosen", "name", "price"])
    named = long[["obs", "item", "name", "price"]].set_axis(["obs", "item", "chosen_item", "price"], axis=1)
    flags = pd.DataFrame(
        [{item: int(item in offer) for item in items} | {"chosen": chosen} for offer, chosen in records]
    )
    prices = pd.DataFrame([{f"price_{item}": offer.get(item) for item in items[:2]} for offer, _ in records])
    wide = pd.concat([flags, prices], axis=1)
    lists = pd.DataFrame([(joined(offer), chosen) for offer, chosen in records], columns=["offered", "chosen"])
    marks = pd.DataFrame([(joined(offer, " | "), chosen) for offer, chosen in records], columns=["offered", "chosen"])
    counts = lists.set_axis(["offer", "item"], axis=1).assign(count=1)
    return {
        "long": (long.drop(columns="name"), "price"),
        "named": (named, "price"),
        "wide": (wide, "price_tea,price_cake"),
        "wide by name": (wide.set_axis([*flags, "p1", "p2"], axis=1), {"tea": "p1", "cake": "p2"}),
        "wide, prices alone": (wide.drop(columns=["tea", "cake"]), ["price_tea", "price_cake"]),
        "lists": (lists, "offered"),
        "other separator": (marks, "offered"),
        "counts": (counts, "offered"),
    }


def check(found: rs.ChoiceCounts) -> None:
    offers = found.assortments
    assert offers.items == LABELS
    assert offers.order == ORDER
    tallies = {
        (offers.offers[owner], offers.items[member]): tally
        for owner, member, tally in zip(offers.owner, offers.members, found.tallies, strict=True)
        if tally
    }
    both = ("cake @ 4.00", "nothing", "tea @ 3.50")
    assert tallies == {
        (("nothing", "tea @ 3.00"), "nothing"): 1,
        (("cake @ 4.00", "nothing", "tea @ 3.00"), "tea @ 3.00"): 1,
        (both, "tea @ 3.50"): 1,
        (both, "cake @ 4.00"): 1,
        (("cake @ 4.00", "nothing", "tea @ 12.00"), "cake @ 4.00"): 1,
    }


@pytest.mark.parametrize("name", layouts(RECORDS))
def test_every_layout_gives_the_same_counts(name: str, tmp_path: Path) -> None:
    frame, prices = layouts(RECORDS)[name]
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame.to_parquet(tmp_path / "data.parquet")
    for source in (tmp_path / "data.csv", tmp_path / "data.parquet", frame):
        found = rs.read(source, prices=prices)
        check(found.counts)
        assert found.prices == rs.PriceLevels({"tea": [3, 3.5, 12], "cake": [4]})
    agree(tmp_path / "data.csv", {"prices": prices})


def test_json_lines_have_prices_in_their_offers(tmp_path: Path) -> None:
    forms: list[Any] = [dict, lambda offer: json.dumps(offer), lambda offer: joined(offer).split(";")]
    for number, form in enumerate(forms):
        path = tmp_path / f"{number}.jsonl"
        lines = [json.dumps({"offered": form(offer), "chosen": chosen}) for offer, chosen in RECORDS]
        path.write_text("\n".join(lines) + "\n")
        check(rs.read_counts(path, prices="offered"))
        agree(path, {"prices": "offered"})
    with pytest.raises(ValueError, match=r"line 1: the offer .* has prices: give prices='offered'"):
        rs.read_counts(tmp_path / "0.jsonl")
    with pytest.raises(ValueError, match="has prices, but no price levels were given"):
        record_of(b'{"offered": {"tea": 3.5}, "chosen": "tea"}')


def test_numbered_offers_and_offers_to_all_have_prices_too(tmp_path: Path) -> None:
    pairs = [(number, label) for number, (offer, _) in enumerate(RECORDS) for label in joined(offer).split(";")]
    pd.DataFrame(pairs, columns=["offer_id", "item"]).to_csv(tmp_path / "offers.csv", index=False)
    choices = pd.DataFrame(
        [(number, chosen) for number, (_, chosen) in enumerate(RECORDS)], columns=["offer_id", "chosen"]
    )
    choices.to_csv(tmp_path / "choices.csv", index=False)
    check(rs.read_counts(tmp_path / "choices.csv", contents=tmp_path / "offers.csv", prices="offered"))
    always = {"offered": ["tea@3.50", "nothing"]}
    found = rs.read_counts(pd.DataFrame({"chosen": ["tea", "nothing", "tea@3.5"]}), columns=always, prices="offered")
    assert found.assortments.offers == (("nothing", "tea @ 3.50"),)
    assert found.tallies.tolist() == [1.0, 2.0]


def test_the_separator_is_recognised_beside_prices() -> None:
    frame = pd.DataFrame({"offered": ["tea@3 | pie@4", "pie@4 | tea@3"], "chosen": ["tea", "tea"]})
    assert rs.read_counts(frame, prices="offered").assortments.offers == (("pie @ 4.00", "tea @ 3.00"),)


def test_levels_may_be_quantiles_or_given() -> None:
    prices = [2.8, 3.0, 3.1, 3.4, 3.5, 3.5]
    frame = pd.DataFrame([(f"tea@{price};nothing", "tea") for price in prices], columns=["offered", "chosen"])
    found = rs.read(frame, prices="offered", price_levels=2)
    assert found.prices == rs.PriceLevels.quantiles({"tea": prices}, 2)
    assert found.counts.assortments.offers == (("nothing", "tea @ 3.00"), ("nothing", "tea @ 3.50"))
    assert found.counts.totals.tolist() == [3.0, 3.0]
    levels = rs.PriceLevels({"tea": [2.8, 3.5], "pie": [1]})
    found = rs.read(frame, prices="offered", price_levels=levels, no_choice="nothing")
    assert found.counts.totals.tolist() == [3.0, 3.0]
    assert found.counts.assortments.items == ("pie @ 1.00", "tea @ 2.80", "tea @ 3.50", "nothing")
    found = rs.read(frame, prices="offered", price_levels=levels, items=["tea", "pie", "nothing"])
    assert found.counts.assortments.items == ("tea @ 2.80", "tea @ 3.50", "pie @ 1.00", "nothing")


def test_no_choice_has_no_price_and_assumed_leavers_keep_the_order() -> None:
    frame = pd.DataFrame({"offered": ["tea@3;out@0", "tea@4;out"], "chosen": ["tea", ""]})
    found = rs.read_counts(frame, prices="offered", no_choice="out")
    assert found.assortments.items == ("tea @ 3.00", "tea @ 4.00", "out")
    assert found.tallies.tolist() == [1.0, 0.0, 0.0, 1.0]
    with pytest.raises(ValueError, match="row 0: the price of 'out' is 2, but it means buying nothing"):
        rs.read_counts(frame.replace("tea@3;out@0", "tea@3;out@2"), prices="offered", no_choice="out")
    sold = pd.DataFrame({"offered": ["tea@3;pie@1", "tea@4;pie@1"], "chosen": ["tea", "pie"]})
    found = rs.read_counts(sold, prices="offered", outside_share=0.5)
    assert found.assortments.order == (("tea @ 3.00", "tea @ 4.00"),)
    assert found.observations == 4


BAD = {
    "tea;nothing": "the price of 'tea' is missing: give a number",
    "tea@;nothing": "the price of 'tea' is missing",
    "tea@-1;nothing": "the price of 'tea' is -1.0: it must be a finite number of at least 0",
    "tea@nan;nothing": "the price of 'tea' is nan: it must be a finite number",
    "tea@inf;nothing": "the price of 'tea' is inf: it must be",
    "tea@cheap;nothing": "the price of 'tea' is 'cheap', which is not a number",
    "tea@3;tea@4;nothing": "the offer has two prices of 'tea', 3.0 and 4.0: give one, or make two offers",
    "tea@3;tea@3;nothing": "lists an item twice",
    '{"tea": 3, "tea": 4}': "gives one item two prices",
    '{"tea": 3': "is not JSON",
    "cake@4;nothing": "the choice 'tea' is not in its offer",
}


@pytest.mark.parametrize("offer", BAD)
def test_a_bad_price_is_one_sentence_with_its_line(offer: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    pd.DataFrame({"offered": ["tea@3;nothing", offer], "chosen": ["tea", "tea"]}).to_csv(path, index=False)
    with pytest.raises(ValueError, match="line 3: ") as caught:
        rs.read_counts(path, prices="offered")
    assert BAD[offer] in str(caught.value)
    found = rs.read(path, prices="offered", on_error="skip")
    assert found.problems.total == 1
    assert found.counts.observations == 1
    agree(path, {"prices": "offered"})


def test_bad_prices_in_tables_are_named_too(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("obs,item,chosen,price\n1,tea,1,3\n1,no,0,\n2,tea,1,\n2,no,0,\n3,tea,1,3\n3,tea,0,4\n3,no,0,\n")
    found = rs.read(path, prices="price", on_error="skip")
    assert found.problems.by_kind == {"price": 2}
    assert "two prices of 'tea', 3.0 and 4.0" in found.problems.summary()
    assert "line 4: the price of 'tea' is missing" in found.problems.summary()
    agree(path, {"prices": "price"})
    levels = rs.PriceLevels({"tea": [3, 5]})
    with pytest.raises(ValueError, match="the price 7 of 'tea' is outside its levels, which cover 3 to 5"):
        rs.read(pd.DataFrame({"offered": ["tea@7"], "chosen": ["tea"]}), prices="offered", price_levels=levels)
    with pytest.raises(ValueError, match="the item 'pie' has a price, but no levels"):
        rs.read(pd.DataFrame({"offered": ["pie@7"], "chosen": ["pie"]}), prices="offered", price_levels=levels)


def test_more_levels_than_the_data_support_are_refused() -> None:
    many = pd.DataFrame({"offered": [f"tea@{price}" for price in range(13)], "chosen": ["tea"] * 13})
    with pytest.raises(
        ValueError, match="'tea' at 13 prices, more than 12 levels: group them into fewer, such as price_levels=3"
    ):
        rs.read(many, prices="offered")
    with pytest.raises(ValueError, match="occurs at 13 prices, too few for 14 levels"):
        rs.read(many, prices="offered", price_levels=14)
    for levels, said in ((0, "price_levels is 0"), ("some", "price_levels is 'some'")):
        with pytest.raises(ValueError, match=said):
            rs.read(many, prices="offered", price_levels=levels)


def test_columns_that_cannot_have_the_prices_are_refused() -> None:
    tables = layouts(RECORDS)
    long, lists, wide = tables["long"][0], tables["lists"][0], tables["wide"][0]
    marked = wide.rename(
        columns={"tea": "tea_av", "cake": "cake_av", "nothing": "nothing_av", "price_tea": "price_Tea"}
    )
    for frame, prices, said in (
        (long, "cost", r"has no price column 'cost' \(it has 'obs'"),
        (long, "offered", "name its one column of prices"),
        (long, {"tea": "price"}, "name its one column of prices"),
        (lists.assign(price=3), "price", "has each offer in one cell: write the prices there"),
        (wide.rename(columns={"price_tea": "p1"}), ["p1"], "has prices in 'p1', which matches no item"),
        (marked, ["price_Tea"], "has no item 'Tea' for the prices in 'price_Tea'"),
        (wide, {}, "give one name, or"),
        (wide, "[1]", "give one name, or"),
        (wide, "{", "are not JSON"),
        (wide, "price_tea,price_tea", "include one twice"),
        (wide, "tea=price_tea,tea=price_cake", "include an item twice"),
        (pd.DataFrame({"ranking": ["a > b"]}).assign(price=1), "price", "has rankings, which have no prices"),
    ):
        with pytest.raises(ValueError, match=said.replace("[", r"\[")):
            rs.read(frame, prices=prices)
    with pytest.raises(ValueError, match="has no record with a price"):
        rs.read(long.assign(price=None), prices="price")
    with pytest.raises(ValueError, match="price_levels needs prices"):
        rs.read(long, price_levels=2)


PRICES = st.sampled_from(["", "3", "3.50", "4", "x", "-1", "nan"])
ROWS = st.lists(st.tuples(st.sampled_from("12345"), st.sampled_from("ab"), st.sampled_from("01"), PRICES), max_size=12)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS)
def test_both_ways_agree_on_long_tables_of_any_prices(tmp_path: Path, rows: list[tuple[str, ...]]) -> None:
    path = tmp_path / "any.csv"
    pd.DataFrame(rows, columns=["obs", "item", "chosen", "price"]).to_csv(path, index=False)
    agree(path, {"prices": "price"})


def test_good_prices_take_the_quick_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Job, "slowly", lambda *_: pytest.fail("row by row"))
    for name, (frame, prices) in layouts(RECORDS).items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        check(rs.read_counts(tmp_path / f"{name}.csv", prices=prices))
