"""Where a model comes from, in words: every line with all that a model may remember, and with parts of it."""

from types import SimpleNamespace
from typing import Any

import pytest

from rankstream import Assortments, ChoiceCounts, PriceLevels
from rankstream.reports.origin import account_of, items_in, origin_lines, prediction_lines

pytestmark = pytest.mark.quick
METHOD = {"method": "nearest", "seed": 3, "version": "0.4"}
CERTIFICATE = {"distance": 0.25, "proven_least_distance": 0.125, "gap": 0.125}
CERTIFIED = "No ranking model can be closer than 0.1250 (proven), so at most 0.1250 could still be gained"
SQUARES = "root of the summed squared errors"


@pytest.mark.parametrize(
    ("about", "lines"),
    [
        ({}, []),
        (METHOD, ["Fitted by nearest, seed 3, with rankstream 0.4."]),
        (METHOD | {"seed": None}, ["Fitted by nearest, with rankstream 0.4."]),
        (METHOD | {"seed": 0, "version": None}, ["Fitted by nearest, seed 0."]),
        (METHOD | {"method": 7}, []),
        ({"reading": {"no_choice": "none", "format": None}}, ["Read with --no-choice none."]),
        ({"reading": {"format": None}}, []),
        ({"certificate": CERTIFICATE}, [f"Distance from the observed shares 0.2500 ({SQUARES}). {CERTIFIED}."]),
        ({"certificate": CERTIFICATE | {"gap": True}}, []),
        (
            {"certificate": CERTIFICATE | {"norm": "l1", "cut_short": True, "noise_distance": 0.5}},
            [
                "Distance from the observed shares 0.2500 (l1; sampling noise alone: 0.5000). "
                f"{CERTIFIED}; the fit stopped early."
            ],
        ),
        ({"certificate": CERTIFICATE | {"cut_short": 1, "norm": 2}}, [
            f"Distance from the observed shares 0.2500 ({SQUARES}). {CERTIFIED}."
        ]),
        ({"changed": "It was changed.", "uncertain": 3, "contradiction": "Two."}, ["Two."]),
    ],
)  # fmt: skip
def test_origins(about: dict[str, Any], lines: list[str]) -> None:
    assert origin_lines(about) == lines


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        ({}, []),
        (
            {"weights": {"logit, light": 0.25, "5 classes": 0.75}, "held_out_log_likelihood": {"logit, light": -1.0}},
            [
                "Predictions for unseen offers start from a mix of simpler models, weighted by accuracy on held-out "
                "offers: latent-class logit with 5 classes (weight 75 %); logit, lightly regularised (weight 25 %)."
            ],
        ),
        (
            {"weights": {"logit": 1}, "held_out_nats": {"logit": -1.0}, "approximate": True},
            [
                "Predictions for unseen offers start from a simpler model, chosen by accuracy on held-out offers: "
                "logit.",
                "There are too many offers for an exact fit, so rankings were sampled.",
            ],
        ),
        (
            {"weights": {"logit": 0.5, "chain": 0.5}},
            [
                "With so few offers in the data, predictions for unseen offers start from 2 simpler models such as "
                "logit."
            ],
        ),
        (
            {"weights": {"logit": 1.0}, "approximate": "yes"},
            ["With so few offers in the data, predictions for unseen offers start from a simpler model, logit."],
        ),
        ({"weights": 3, "held_out_nats": {"logit": -1.0}}, []),
    ],
)
def test_predictions_for_unseen_offers(found: dict[str, Any], lines: list[str]) -> None:
    assert prediction_lines({"prediction": found}) == lines


def reading(**more: Any) -> Any:
    plain: dict[str, Any] = {
        "rows": 5,
        "problems": SimpleNamespace(total=0, summary=str),
        "account": None,
        "groups": {},
    }
    plain |= {"times": None, "prices": None, "slices": (), "unused": (), "notes": ()}
    return SimpleNamespace(**(plain | more))


def test_the_account_counts_items_without_buying_nothing() -> None:
    with_none = ChoiceCounts(Assortments([("tea", "none"), ("pie", "none")]), [1, 2, 4, 8])
    assert list(account_of(reading(), with_none)) == [
        "15 choices from 2 different offers of 2 items.", "The file has 5 records. Nothing was skipped.",
    ]  # fmt: skip
    one = ChoiceCounts(Assortments([("tea", "pie")]), [1, 0])
    groups = {("York", number): one for number in range(9)}
    more = reading(
        problems=SimpleNamespace(total=2, summary=lambda: "Two were skipped."),
        groups=groups,
        times=(1772438400.0, 1788100000.0),
        rows=1,
        prices=PriceLevels({"tea": [3.0]}),
        notes=("It has a note.",),
    )
    assert list(account_of(more, one)) == [
        "1 choice from 1 offer of 2 items.",
        "The file has 1 record.",
        f"9 markets: {', '.join(f'York {number}' for number in range(8))}, ….",
        "From 2 March 2026 to 30 August 2026.",
        "Prices of 1 item.",
        "It has a note.",
        "Two were skipped.",
    ]
    assert list(account_of(reading(groups={"York": one}), one))[-1] == "1 market: York."
    eight = list(account_of(reading(groups=dict.fromkeys(map(str, range(8)), one)), one))[-1]
    assert eight == "8 markets: 0, 1, 2, 3, 4, 5, 6, 7."


def test_items_are_counted_without_buying_nothing() -> None:
    assert items_in(SimpleNamespace(items=("tea", "none"), no_choice="none", price_levels=None)) == "1 item"
    assert items_in(SimpleNamespace(items=("tea", "pie"), no_choice=None, price_levels=None)) == "2 items"
