"""The account of matched sales: which of its sentences and warnings appear, by its numbers alone."""

from typing import Any

import pytest

from rankstream.data.readers.account import Account, Exposure

pytestmark = pytest.mark.quick

PLAIN: dict[str, Any] = {
    "stock_format": "changes",
    "sales": 1000,
    "choices": 1200.0,
    "receipts": 800,
    "several": 0,
    "conflicts": 0.0,
    "conflict_share": 0.0,
    "rule": "extend",
    "left_out": {"return": 0},
    "offers": 12,
    "small_offers": 3,
    "unknown_time": 0.0,
}
FIRST = "1,200 units from 1,000 rows of receipts were matched with offers (stock log: changes)."
LAST = "3 of 12 offers have fewer than ten choices."
OUTSIDE = "The data do not include customers who bought nothing: give visits, or outside_share."


def account(**changes: Any) -> Account:
    return Account(**(PLAIN | changes))


def test_a_plain_account_says_what_was_matched_and_nothing_else() -> None:
    assert account().summary() == f"{FIRST} {LAST} {OUTSIDE}"
    assert account().warnings == ()
    assert account().to_json() == PLAIN | {
        "visits": None,
        "no_purchase": None,
        "shortfall": 0,
        "assumed": None,
        "per_receipt": "units",
        "ignored_items": (),
        "ignored_sales": 0.0,
        "offers_before": 0,
        "no_choice": None,
        "between": "present",
        "uncertain": 0.0,
        "doubtful_times": 0,
        "warnings": [],
        "summary": account().summary(),
    }


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"conflicts": 12.0, "conflict_share": 0.01},
            "12 units (1.0 %) sold while not in stock: counted as on offer for that sale.",
        ),
        (
            {"conflicts": 12.0, "conflict_share": 0.01, "rule": "skip"},
            "12 units (1.0 %) sold while not in stock: left out.",
        ),
        (
            {"between": "last sale"},
            "An item that one snapshot lists and the next does not counts as sold out at its last sale.",
        ),
        (
            {"between": "uncertain", "uncertain": 1234.0},
            "1,234 of the choices are from offers that are known in part: an item that one snapshot lists and the next "
            "does not sold out at a time that was not logged. Each possible offer counts as far as it explains the "
            "choices.",
        ),
        (
            {"left_out": {"return": 2, "odd": 1, "before": 0}},
            "Left out: 2 returns and cancelled lines. Left out: 1 odd.",
        ),
        ({"several": 8}, "1.0 % of 800 receipts have more than one unit: each unit is a choice."),
        (
            {"several": 8, "per_receipt": "first"},
            "1.0 % of 800 receipts have more than one unit: the first unit of each is its choice.",
        ),
        (
            {"several": 1, "receipts": 0, "per_receipt": "weighted"},
            "100.0 % of 0 receipts have more than one unit: their units share one choice.",
        ),
        (
            {"doubtful_times": 1},
            "1 row of receipts are in an hour that a clock change repeats or skips: the first was taken.",
        ),
        ({"unknown_time": 0.001}, "0.1 % of the time of sales has no known offer."),
        (
            {"ignored_items": ("tea",), "ignored_sales": 0.0512, "offers_before": 4000},
            "1 item with 5.1 % of the sales are ignored, so that 4,000 different offers become 12.",
        ),
    ],
)
def test_every_fact_has_its_sentence(changes: dict[str, Any], sentence: str) -> None:
    assert account(**changes).summary() == f"{FIRST} {sentence} {LAST} {OUTSIDE}"


def test_the_share_without_a_purchase_is_measured_assumed_or_unknown() -> None:
    few = account(visits=1000, no_purchase=200.0)
    assert few.summary().endswith("200 visits of 1,000 ended without a purchase. This share is measured, not assumed.")
    none = account(visits=0, shortfall=1)
    assert none.summary().endswith(
        "0 visits of 0 ended without a purchase; 1 receipt exceed the visits of their time. This share is measured, "
        "not assumed."
    )
    assumed = account(assumed=0.125)
    assert assumed.summary().endswith("12.5 % are assumed to have bought nothing: no visits were given.")


def test_more_than_one_in_twenty_is_a_warning() -> None:
    assert account(conflict_share=0.05).warnings == ()
    (warning,) = account(conflict_share=0.051).warnings
    assert warning.startswith("5.1 % of the sales are of items that were not in stock.")
    assert account(conflict_share=0.051).summary().startswith(f"Warning: {warning} {FIRST}")
    assert account(visits=100, shortfall=5).warnings == ()
    assert account(visits=100, shortfall=6).warnings[0].startswith("6 receipts exceed the visits of their time.")
    assert account(visits=0, shortfall=1).warnings  # as with one visit
    assert account(shortfall=1).warnings == ()  # nobody counted visits


def test_an_assumed_share_adds_customers() -> None:
    seen = Exposure("York", ("tea",), ("pie",), 30.0)
    assert seen.with_outside(0.25, "none") == Exposure("York", ("tea", "none"), ("pie",), 40.0)
