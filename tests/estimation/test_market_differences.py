"""Which markets differ from all others together: the test of each against the rest, written out, and its words."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from rankstream.data.readers.options import check_options
from rankstream.data.readers.tallies import Tallies
from rankstream.estimation.many.comparison import Difference, Differences, compare_markets

pytestmark = pytest.mark.quick
DRINKS, FOOD = ("tea", "rum"), ("pie", "egg")


def counted(markets: dict[str, dict[tuple[str, ...], tuple[float, float]]]) -> Tallies:
    """Tallies of markets; for each offer of two items how often they were chosen."""
    found = Tallies(("store",), check_options(), "transactions")
    for market, offers in markets.items():
        for offer, weights in offers.items():
            for item, weight in zip(offer, weights, strict=True):
                found.add((market,), (offer, item), weight)
    return found


def test_each_market_is_compared_with_the_rest() -> None:
    tables = {"Bath": (60.0, 40.0), "Hull": (150.0, 150.0), "York": (80.0, 20.0)}
    tallies = counted({market: {DRINKS: weights} for market, weights in tables.items()})
    tallies.add(("Hull",), (FOOD, "pie"), 9.0)  # which no other market offers
    found = compare_markets(tallies, 0.05, "fdr")
    assert [row.market for row in found.markets] == [("York",), ("Hull",), ("Bath",)]
    for row in found.markets:
        own = np.array(tables[row.market[0]])
        rest = np.sum([weights for market, weights in tables.items() if market != row.market[0]], axis=0)
        assert (row.offers, row.freedom) == (1, 1)
        assert row.p_value == pytest.approx(chi2_contingency([rest, own], correction=False)[1], rel=0.02)
    least = found.markets[0]
    assert least.adjusted == pytest.approx(3 * least.p_value)
    assert (least.differs, least.item) == (True, "tea")
    assert least.change == pytest.approx(0.8 - 210 / 400)
    assert [row.market for row in found.differing] == [row.market for row in found.markets if row.adjusted <= 0.05]
    assert (found.alone, found.level, found.control) == ((), 0.05, "fdr")


def test_markets_alone_and_rankings_cannot_be_compared() -> None:
    found = compare_markets(counted({"Bath": {DRINKS: (5.0, 5.0)}, "Hull": {FOOD: (5.0, 5.0)}}), 0.05, "fdr")
    assert (found.markets, found.alone) == ((), (("Bath",), ("Hull",)))
    few = compare_markets(counted({"Bath": {DRINKS: (1.0, 0.0)}, "Hull": {DRINKS: (0.0, 1.0)}}), 0.05, "fdr")
    assert [(row.offers, row.freedom, row.p_value, row.differs) for row in few.markets] == [(1, 0, 1.0, False)] * 2
    tallies = counted({"Bath": {DRINKS: (5.0, 5.0)}})
    tallies.format = "rankings"
    with pytest.raises(ValueError, match="compare choices only"):
        compare_markets(tallies, 0.05, "fdr")


@pytest.mark.parametrize(
    ("differing", "alone", "words"),
    [
        (0, 0, "0 of 3 markets differ from the others (fdr, level 0.05)"),
        (
            1,
            1,
            "1 of 3 markets differs from the others (fdr, level 0.05)\nshop 0: tea +12.5 points (p = 0.012)\n1 shares "
            "no offer with others",
        ),
        (
            2,
            2,
            "2 of 3 markets differ from the others (fdr, level 0.05)\nshop 0: tea +12.5 points (p = 0.012)\nshop 1 (p "
            "= 0.012)\n2 share no offer with others",
        ),
    ],
)
def test_differences_in_words(differing: int, alone: int, words: str) -> None:
    rows = [
        Difference((f"shop {n}",), 1, 9.0, 1, 0.004, 0.01234, n < differing, *(("tea", 0.125) if n == 0 else ()))
        for n in range(3)
    ]
    nobody: Any = tuple((f"island {n}",) for n in range(alone))
    assert str(Differences(tuple(rows), nobody, 0.05, "fdr")) == words
