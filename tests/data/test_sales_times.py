"""Times of sales: slices, a half-life and periods are those of ``read`` for the same choices in a plain file."""

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import rankstream as rs
from rankstream.data.counts import ChoiceCounts
from strategies import examples

pytestmark = pytest.mark.quick
STOCK = pd.DataFrame(
    [("2026-03-01 00:00", "tea", 5), ("2026-03-01 00:00", "pie", 5), ("2026-03-20 00:00", "tea", 0)],
    columns=["time", "item", "on_hand"],
)
LAST_TEA = pd.Timestamp("2026-03-20")
hours = st.lists(st.tuples(st.integers(0, 24 * 60), st.sampled_from(("tea", "pie"))), min_size=2, max_size=12)


def as_tables(bought: list[tuple[int, str]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Sales, and the same choices with the offers that the stock log tells."""
    moments = [pd.Timestamp("2026-03-01") + pd.Timedelta(hours=hour) for hour, _ in bought]
    items = [item for _, item in bought]
    offers = [
        "pie;tea" if item == "tea" or moment <= LAST_TEA else "pie" for moment, item in zip(moments, items, strict=True)
    ]
    sales = pd.DataFrame({"time": list(map(str, moments)), "item": items})
    return sales, pd.DataFrame({"time": sales.time, "offered": offers, "chosen": items})


def same(one: ChoiceCounts, other: ChoiceCounts) -> bool:
    if one.assortments.offers != other.assortments.offers:
        return False
    pairs = [(one.tallies, other.tallies), (one.effective_totals, other.effective_totals)]
    return all(np.allclose(left, right) for left, right in pairs)


@examples(25)
@given(hours)
def test_slices_half_lives_and_periods_are_those_of_a_plain_file(bought: list[tuple[int, str]]) -> None:
    sales, choices = as_tables(bought)
    for options in ({"half_life": "5d", "time_slices": 3}, {"half_life": 86_400.0}, {"period": "week"}):
        given_options: dict[str, Any] = options
        found, expected = rs.read_sales(sales, STOCK, **given_options), rs.read(choices, look=False, **given_options)
        assert type(found.counts) is type(expected.counts)
        assert same(found.counts, expected.counts)
        assert found.times == pytest.approx(expected.times or found.times)
        assert found.slice_times == expected.slice_times
        for part, other in zip(found.slices or [], expected.slices or [], strict=True):
            assert same(part, other)
        assert list(found.groups) == list(expected.groups)
        assert all(same(counts, expected.groups[key]) for key, counts in found.groups.items())


def test_visits_without_a_purchase_fade_and_belong_to_the_slice_of_their_time() -> None:
    sales, _ = as_tables([(0, "pie"), (48, "pie")])
    door = pd.DataFrame({"time": ["2026-03-01 00:00", "2026-03-03 00:00"], "count": [9, 5]})
    found = rs.read_sales(sales, STOCK, visits=door, half_life="2d", time_slices=2)
    assert found.counts.tallies.tolist() == [1.5, 0.0, 8 / 2 + 4]
    assert found.slices is not None
    assert [part.tallies.tolist() for part in found.slices] == [[1.0, 0.0, 8.0], [1.0, 0.0, 4.0]]
    assert found.account is not None
    assert found.account.no_purchase == 12


def test_the_account_counts_choices_before_they_fade() -> None:
    sales, _ = as_tables([(hour, "pie") for hour in range(12)])
    faded = rs.read_sales(sales, STOCK, half_life="1h")
    assert faded.account is not None
    assert faded.account.small_offers == 0
    assert faded.counts.observations < 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"half_life": "soon"}, "'soon' is neither a number of choices nor a time"),
        ({"half_life": 0}, "half_life"),
        ({"time_slices": 0}, "time_slices"),
        ({"period": "decade"}, "Unknown period 'decade': the periods are hour, day"),
        ({"between": "uncertain", "half_life": "3d"}, "supports neither prices, outside_share nor half_life"),
    ],
)
def test_wrong_options_about_times_are_named(options: dict[str, Any], message: str) -> None:
    sales, _ = as_tables([(0, "pie"), (48, "pie")])
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace("...", r"\.\.\.")):
        rs.read_sales(sales, STOCK, **options)


def test_an_offer_that_nobody_bought_from_counts() -> None:
    sales = pd.DataFrame([("2026-03-05 00:00", "pie")], columns=["time", "item"])
    visits = pd.DataFrame([("2026-03-05 00:00", 3), ("2026-03-25 00:00", 4)], columns=["time", "count"])
    found = rs.read_sales(sales, STOCK, visits=visits)
    assert found.account is not None
    assert found.counts.tallies.sum() == 7
    assert found.counts.assortments.n_offers == 2  # from the second one, nobody bought
    assert (found.account.offers, found.account.offers_before) == (2, 2)
    one = rs.read_sales(sales, STOCK, visits=visits, max_offers=1).account
    assert one is not None
    assert (one.ignored_items, one.offers, one.offers_before) == (("tea",), 1, 2)
