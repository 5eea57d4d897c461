"""The statistics behind reports of change, against their formulas written out offer by offer."""

from dataclasses import replace
from itertools import combinations
from math import erfc, isnan, nan, sqrt
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, t

from rankstream.data import item_changes as item_changes_module
from rankstream.data.item_changes import ItemMovement

pytestmark = pytest.mark.quick
item_changes: Any = item_changes_module
ItemCells: Any = item_changes.ItemCells
ITEMS = tuple("abcde")
OFFERS = [offer for size in (2, 3, 4) for offer in combinations(ITEMS, size)]


def two_periods(seed: int, offers: list[tuple[str, ...]] = OFFERS, boost: float = 1.0) -> Any:
    """Choices of a logit in two periods; in the second the first item is worth more."""
    random, rows = np.random.default_rng(seed), []
    for factor in (1.0, boost):
        worth = {item: 1.0 + place for place, item in enumerate(ITEMS)} | {"a": factor}
        tallies = [
            random.multinomial(
                random.integers(60, 90), np.array([worth[i] for i in offer]) / sum(worth[i] for i in offer)
            )
            for offer in offers
        ]
        rows.append(np.concatenate(tallies).astype(float))
    return ItemCells.of(list(offers), np.array(rows))


def table_of(cells: Any, left: np.ndarray) -> np.ndarray:
    """The choices by period, offer and item."""
    table = np.zeros((2, len(cells.offers), len(cells.items)))
    for period in range(2):
        for cell, (offer, item) in enumerate(zip(cells.owner, cells.item, strict=True)):
            table[period, offer, item] += cells.tallies[period, cell] * left[cell]
    return table


def maximum_likelihood(inside: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Shares of a logit by plain Newton steps, with the worth of the first label fixed."""
    used = np.flatnonzero(counts.sum(axis=0) > 0.0)
    level = np.full(inside.shape[1], -np.inf)
    level[used] = 0.0
    free = used[1:]
    for _ in range(60):
        weight = inside * np.exp(level)
        shares = weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
        slope, bend = counts.sum(axis=0), np.zeros((inside.shape[1],) * 2)
        for offer, total in enumerate(counts.sum(axis=1)):
            slope = slope - total * shares[offer]
            bend += total * (np.diag(shares[offer]) - np.outer(shares[offer], shares[offer]))
        level[free] += np.clip(np.linalg.solve(bend[np.ix_(free, free)], slope[free]), -1.0, 1.0)
    return np.asarray(shares)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("without", ["", "b"])
def test_the_test_within_offers_is_that_of_mantel_and_haenszel(seed: int, without: str) -> None:
    cells = two_periods(seed, boost=1.6)
    left = np.array([cells.items[item] != without for item in cells.item], dtype=float)
    table = table_of(cells, left)
    p_values, surplus = item_changes.by_offers(cells, left)
    for place, item in enumerate(cells.items):
        beyond = variance = first_expected = second_expected = 0.0
        for offer, inside in enumerate(cells.offers):
            if item in inside and item != without:
                first, second = table[0, offer].sum(), table[1, offer].sum()
                chosen, total = table[:, offer, place].sum(), first + second
                beyond += table[1, offer, place] - second * chosen / total
                variance += first * second * chosen * (total - chosen) / (total**2 * (total - 1.0))
                first_expected += first * chosen / total
                second_expected += second * chosen / total
        assert surplus[place] == pytest.approx(beyond)
        if min(first_expected, second_expected) >= 5.0:
            assert p_values[place] == pytest.approx(chi2.sf(beyond**2 / variance, 1))
        else:
            assert p_values[place] == 1.0


def test_items_need_five_expected_choices_in_both_periods() -> None:
    offers = [("a", "b", "c")]
    for few, counts in ((4, False), (5, True)):
        tallies = np.array([[few, 45.0, 50.0], [few, 25.0, 70.0]])
        p_values, _ = item_changes.by_offers(ItemCells.of(offers, tallies), np.ones(3))
        expected = 2 * few * np.array([(few + 95.0), (few + 95.0)]) / (2 * few + 190.0)
        assert (expected.min() >= 5.0) == counts
        shifted = np.array([[few + 2.0, 45.0, 50.0], [few - 2.0, 25.0, 72.0]])
        p_values, _ = item_changes.by_offers(ItemCells.of(offers, shifted), np.ones(3))
        assert (p_values[0] < 1.0) == (2 * few * min(97 + few, 95 + few) / (2 * few + 192) >= 5.0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("without", ["", "b"])
def test_the_test_through_a_logit_is_its_score_test(seed: int, without: str) -> None:
    """Scores of an item's change, net of the effects of all items, over offers: written out one offer at a time."""
    cells = two_periods(seed, boost=1.5)
    left = np.array([cells.items[item] != without for item in cells.item], dtype=float)
    table = table_of(cells, left)
    n_offers, n_items = len(cells.offers), len(cells.items)
    inside = np.array(
        [[item in offer and item != without for item in cells.items] for offer in cells.offers], dtype=float
    )
    shares = maximum_likelihood(inside, table.sum(axis=0))
    spreads = np.zeros((2, n_items, n_items))
    for period in range(2):
        for offer in range(n_offers):
            own = np.diag(shares[offer]) - np.outer(shares[offer], shares[offer])
            spreads[period] += table[period, offer].sum() * own
    explained = spreads[1] @ np.linalg.pinv(spreads.sum(axis=0), rcond=1e-10)
    scores = np.zeros((n_offers, n_items))
    for offer in range(n_offers):
        apart = [table[period, offer] - table[period, offer].sum() * shares[offer] for period in range(2)]
        scores[offer] = apart[1] - explained @ (apart[0] + apart[1])
    p_values, change = item_changes.by_logit(cells, left)
    for place, item in enumerate(cells.items):
        information = (spreads[1] - explained @ spreads[1])[place, place]
        squares, fourth = (scores[:, place] ** 2).sum(), (scores[:, place] ** 4).sum()
        effective = squares**2 / max(fourth, 1e-300)
        if item == without or effective < 4.0:
            assert (p_values[place], change[place]) == (1.0, 0.0)
            continue
        variance = max(information, squares * n_offers / (n_offers - 1.0))
        surplus = scores[:, place].sum()
        assert p_values[place] == pytest.approx(2.0 * t.sf(abs(surplus) / sqrt(variance), effective - 1.0), rel=1e-6)
        seen = [offer for offer in range(n_offers) if inside[offer, place]]
        choices = [table[:, offer].sum() for offer in seen]
        spread = np.average(shares[seen, place] * (1.0 - shares[seen, place]), weights=choices)
        assert change[place] == pytest.approx(surplus / information * spread, rel=1e-6, abs=1e-12)


def test_a_logit_fits_the_choices_of_every_item() -> None:
    random = np.random.default_rng(4)
    inside = np.array([[1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 0]], dtype=float)
    counts = inside * random.integers(1, 400, inside.shape)
    counts[:, 3] = inside[:, 3] * [0, 1, 1, 0]  # chosen seldom
    shares = item_changes.fit_logit(inside, counts)
    assert shares == pytest.approx(maximum_likelihood(inside, counts), abs=1e-7)
    assert (shares[inside == 0.0] == 0.0).all()
    nobody = np.column_stack([counts[:, :3], np.zeros(4)])
    assert (item_changes.fit_logit(inside, nobody)[:, 3] == 0.0).all()


def test_offers_are_divided_by_items_that_one_period_has_more_often() -> None:
    offers = [("a", "b"), ("a", "c"), ("b", "c")]

    def strata(*rows: tuple[int, ...]) -> Any:
        tallies = np.array([[part for size in row for part in (size, size)] for row in rows], dtype=float)
        return item_changes._strata(ItemCells.of(offers, tallies)).tolist()

    assert strata((10, 10, 10), (10, 10, 10)) == [0, 0, 0]
    # shares of offers with a: 2/3 and 1/2; with b: 2/3 and 3/4; with c: 2/3 and 3/4
    assert strata((10, 10, 10), (5, 5, 10)) == [1, 1, 0]
    # a: 2/3, and 0.13 or 0.16 more
    assert strata((40, 40, 40), (48, 48, 24)) == [0, 0, 0]
    assert strata((50, 50, 50), (62, 62, 26)) == [1, 1, 0]
    # with b: from 0.6 to 0.9; with c: from 0.8 to 0.5, the same; with a unchanged
    assert sorted(set(strata((20, 40, 40), (50, 10, 40)))) == [1, 2, 3]


def test_at_most_four_items_divide_the_offers() -> None:
    singles = [(f"i{number}", "no") for number in range(6)]
    tallies = np.array([[10.0, 10.0] * 6, [10.0, 10.0] * 6])
    tallies[1, :6] = 200.0
    assert len(set(item_changes._strata(ItemCells.of(singles, tallies)).tolist())) <= 5
    both = [tuple(f"i{n}" for n in range(6)), ("no", "i6")]
    cells = ItemCells.of(both, np.array([[10.0] * 6 + [1.0] * 2, [1.0] * 6 + [10.0] * 2]))
    assert max(item_changes._strata(cells)) < 2**4


@pytest.mark.parametrize("seed", range(3))
def test_mean_changes_weigh_offers_as_a_difference_of_means(seed: int) -> None:
    cells = two_periods(seed, boost=2.0)
    table = table_of(cells, np.ones(cells.owner.size))
    for place, item in enumerate(cells.items):
        parts, weights = [], []
        for offer, inside in enumerate(cells.offers):
            if item in inside:
                first, second = table[0, offer].sum(), table[1, offer].sum()
                parts.append(table[1, offer, place] / second - table[0, offer, place] / first)
                weights.append(1.0 / (1.0 / first + 1.0 / second))
        assert item_changes.mean_change(cells)[place] == pytest.approx(np.average(parts, weights=weights))


@pytest.mark.parametrize("given_offers", [False, True])
def test_items_that_changed_are_named_with_all_their_numbers(given_offers: bool) -> None:
    cells = two_periods(7, boost=9.0)
    moved = {frozenset(OFFERS[0]), frozenset(OFFERS[-1]), frozenset("ab")}
    found = item_changes.changed_items(cells, moved, 0.05, 2, given_offers)
    test = item_changes.by_logit if given_offers else item_changes.by_offers
    p_values, shift = test(cells, np.ones(cells.owner.size))
    change = shift if given_offers else item_changes.mean_change(cells)
    with_a = [number for number, offer in enumerate(OFFERS) if "a" in offer]
    table = table_of(cells, np.ones(cells.owner.size))
    first, second = (table[period, with_a, 0].sum() / table[period, with_a].sum() for period in range(2))
    assert found[0] == ItemMovement(
        "a",
        pytest.approx(change[0]),  # type: ignore[arg-type]
        pytest.approx(2 * 5 * p_values[0]),  # type: ignore[arg-type]
        len(with_a),
        sum("a" in offer for offer in moved & set(map(frozenset, OFFERS))),
        pytest.approx(second - first),  # type: ignore[arg-type]
    )
    least = found[0].p_value
    assert len(item_changes.changed_items(cells, moved, least, 2, given_offers)) >= 1  # not above the level
    assert item_changes.changed_items(cells, moved, 0.999 * least, 2, given_offers) == ()
    others = np.array([cells.items[item] != "a" for item in cells.item], dtype=float)
    later, _ = test(cells, others)
    assert [one.item for one in found[1:]] == [
        cells.items[place] for place in np.argsort(later)[: len(found) - 1] if 10 * later[place] <= 0.05
    ]


def test_two_items_that_exchange_choices_are_one_change() -> None:
    cells = ItemCells.of([("a", "b")], np.array([[50.0, 50.0], [90.0, 10.0]]))
    (found,) = item_changes.changed_items(cells, set(), 0.05, 1, given_offers=False)
    assert (found.item, found.offers, found.moved) == ("a", 1, 0)
    assert (found.change, found.overall) == (pytest.approx(0.4), pytest.approx(0.4))


def test_comparable_items_are_counted() -> None:
    assert item_changes.count_comparable(ItemCells.of([], np.zeros((2, 0))), given_offers=False) == 0
    cells = two_periods(1)
    assert item_changes.count_comparable(cells, given_offers=False) == 5
    assert item_changes.count_comparable(cells, given_offers=True) == 5
    few = ItemCells.of(
        OFFERS[10:13], cells.tallies[:, 20:29]
    )  # three offers are too few for a comparison through a logit
    assert item_changes.count_comparable(few, given_offers=False) == 5
    assert item_changes.count_comparable(few, given_offers=True) == 0


def test_levels_of_an_item_are_one_item_unless_an_offer_has_two() -> None:
    offers = [("tea @ 3.00", "pie"), ("tea @ 4.00", "pie")]
    cells = ItemCells.of(offers, np.ones((2, 4)))
    assert cells.items == ("tea", "pie")
    assert (cells.owner.tolist(), cells.label.tolist(), cells.item.tolist()) == (
        [0, 0, 1, 1],
        [0, 1, 2, 1],
        [0, 1, 0, 1],
    )
    assert cells.by_item(np.array([1.0, 2.0, 4.0, 8.0])).tolist() == [5.0, 10.0]
    assert cells.period_totals(np.array([[1.0, 2.0, 4.0, 8.0]])).tolist() == [[3.0, 3.0, 12.0, 12.0]]
    both = ItemCells.of([*offers, ("tea @ 3.00", "tea @ 4.00")], np.ones((2, 6)))
    assert both.items == ("tea @ 3.00", "pie", "tea @ 4.00")


def priced_strata(seed: int, slope: float) -> Any:
    """Weights, choices and prices of the records of some offers in two groups."""
    random, strata = np.random.default_rng(seed), dict[Any, Any]()
    for group in ("north", "south"):
        for offer in (("a", "b"), ("a", "b", "c"), ("b", "c")):
            prices = random.choice([2.0, 3.0, 4.0], (40, len(offer)))
            worth = np.exp(-slope * prices)
            chosen = np.array([random.choice(len(offer), p=row / row.sum()) for row in worth])
            strata[group, offer] = random.integers(1, 4, 40).astype(float), chosen, prices
    return strata


@pytest.mark.parametrize(("seed", "slope"), [(0, 0.0), (1, 0.0), (2, 0.15)])
def test_prices_matter_within_offers_by_all_ways_to_shuffle_the_choices(seed: int, slope: float) -> None:
    strata = priced_strata(seed, slope).values()
    total = variance = 0.0
    for weights, chosen, prices in strata:
        size, mean = weights.sum(), np.average(prices, axis=0, weights=weights)
        share = [weights[chosen == item].sum() / size for item in range(prices.shape[1])]
        spread = 0.0
        for weight, took, row in zip(weights, chosen, prices, strict=True):
            total += weight * (row[took] - mean[took])
            expected = sum(part * (price - usual) for part, price, usual in zip(share, row, mean, strict=True))
            spread += weight * sum(
                part * (price - usual - expected) ** 2 for part, price, usual in zip(share, row, mean, strict=True)
            )
        variance += spread * size / (size - 1.0)
    assert item_changes.price_p_value(strata) == pytest.approx(erfc(abs(total) / sqrt(2.0 * variance)))


def test_nothing_is_said_of_prices_without_two_records_that_differ() -> None:
    one = np.ones(1), np.array([0]), np.array([[2.0, 3.0]])
    same = np.ones(4), np.array([0, 1, 0, 1]), np.array([[2.0, 3.0]] * 4)
    assert all(isnan(item_changes.price_p_value(strata)) for strata in ([], [one], [same], [one, same]))
    half = np.array([0.5, 0.75]), np.array([0, 1]), np.array([[2.0, 3.0], [3.0, 2.0]])
    assert not isnan(item_changes.price_p_value([half]))  # more than one choice


@pytest.mark.parametrize(("seed", "slope"), [(0, 0.0), (1, 0.0), (2, 0.15)])
def test_prices_matter_between_offers_by_the_score_of_a_price_in_a_logit(seed: int, slope: float) -> None:
    strata = priced_strata(seed, slope)
    labels = sorted({(group, item) for group, offer in strata for item in offer})
    rows: dict[Any, Any] = {}
    for (group, offer), (weights, chosen, prices) in strata.items():
        for weight, took, row in zip(weights, chosen, prices, strict=True):
            cell = rows.setdefault((group, offer, tuple(row)), np.zeros(len(labels)))
            cell[labels.index((group, offer[took]))] += weight
    counts = np.array(list(rows.values()))
    inside, price = np.zeros(counts.shape), np.zeros(counts.shape)
    for number, (group, offer, levels) in enumerate(rows):
        for item, level in zip(offer, levels, strict=True):
            inside[number, labels.index((group, item))], price[number, labels.index((group, item))] = 1.0, level
    free = [place for place in range(len(labels)) if labels[place][1] != "a"]  # one effect of each group is fixed
    level = np.zeros(len(labels))
    for _ in range(40):
        weight = inside * np.exp(level)
        shares = weight / weight.sum(axis=1, keepdims=True)
        totals = counts.sum(axis=1)
        spread = sum(size * (np.diag(row) - np.outer(row, row)) for size, row in zip(totals, shares, strict=True))
        level[free] += np.linalg.solve(spread[np.ix_(free, free)], (counts.sum(axis=0) - totals @ shares)[free])
    pull = sum(
        size * (np.diag(row) - np.outer(row, row)) @ own for size, row, own in zip(totals, shares, price, strict=True)
    )
    effect = np.zeros(len(labels))
    effect[free] = np.linalg.solve(spread[np.ix_(free, free)], pull[free])
    scores = np.array(
        [
            (found - size * row) @ (own - effect)
            for found, size, row, own in zip(counts, totals, shares, price, strict=True)
        ]
    )
    squared = sum(
        size * own @ (np.diag(row) - np.outer(row, row)) @ own
        for size, row, own in zip(totals, shares, price, strict=True)
    )
    information = squared - pull @ effect
    squares, n_rows = (scores**2).sum(), len(rows)
    effective = squares**2 / (scores**4).sum()
    variance = max(information, squares * n_rows / (n_rows - 1.0))
    expected = 2.0 * t.sf(abs(scores.sum()) / sqrt(variance), effective - 1.0)
    assert item_changes.logit_price_p_value(strata) == pytest.approx(expected, rel=1e-5)


def test_prices_between_offers_need_four_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    strata = {("", offer): priced_strata(0, 0.3)["north", offer] for offer in (("a", "b"), ("b", "c"))}
    assert not isnan(item_changes.logit_price_p_value(strata))
    same = {key: (weights, chosen, np.full_like(prices, 2.0)) for key, (weights, chosen, prices) in strata.items()}
    assert isnan(item_changes.logit_price_p_value(same))
    rows = sum(len(np.unique(prices, axis=0)) for _, _, prices in strata.values())
    monkeypatch.setattr(item_changes, "MAX_CELLS", rows * 3)  # rows times labels: not beyond
    assert not isnan(item_changes.logit_price_p_value(strata))
    monkeypatch.setattr(item_changes, "MAX_CELLS", rows * 3 - 1)
    assert isnan(item_changes.logit_price_p_value(strata))


@pytest.mark.parametrize("seed", range(3))
def test_groups_differ_by_the_test_of_mantel_and_haenszel(seed: int) -> None:
    """With the last group and the last item left out, the covariance can be inverted."""
    random = np.random.default_rng(seed)
    tables = [random.integers(1, 30, (3, 4)).astype(float) for _ in range(4)]
    tables[1][:, 2] = 0.0  # not in this offer
    tables[2][1] = 0.0  # not a group of this offer
    beyond, spread, seen = np.zeros((3, 4)), np.zeros((6, 6)), np.zeros(3)
    for table in tables:
        size, rows, columns = table.sum(), table.sum(axis=1), table.sum(axis=0)
        beyond += table - np.outer(rows, columns) / size
        seen += rows
        for at, (r, c) in enumerate(np.ndindex(2, 3)):
            for to, (s, d) in enumerate(np.ndindex(2, 3)):
                own = rows[r] * ((r == s) * size - rows[s]) * columns[c] * ((c == d) * size - columns[d])
                spread[at, to] += own / (size**2 * (size - 1.0))
    part = beyond[:2, :3].ravel()
    p_value, points = item_changes.group_p_value(tables)
    assert p_value == pytest.approx(chi2.sf(part @ np.linalg.solve(spread, part), 6))
    assert points == pytest.approx(100.0 * beyond / seen[:, None])


def test_groups_that_share_no_offer_cannot_be_compared() -> None:
    alone, all_one = np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([[3.0, 0.0], [5.0, 0.0]])
    single = np.array([[0.5, 0.0], [0.0, 0.5]])
    for tables in ([], [alone], [all_one], [single]):
        p_value, points = item_changes.group_p_value(tables)
        assert isnan(p_value)
        assert points.shape == (0, 0)
    both = item_changes.group_p_value([np.array([[30.0, 10.0], [10.0, 30.0]]), alone, all_one])
    assert both[0] == pytest.approx(chi2.sf(10.0**2 / (40.0**4 / (80.0**2 * 79.0)), 1))
    assert both[1] == pytest.approx(np.array([[25.0, -25.0], [-25.0, 25.0]]))
    assert nan not in both[1]


def test_too_many_labels_or_no_choices_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = two_periods(7, boost=9.0)
    left = np.ones(cells.owner.size)
    monkeypatch.setattr(item_changes, "MAX_LABELS", len(ITEMS))
    assert item_changes.by_logit(cells, left)[0].min() < 1.0
    monkeypatch.setattr(item_changes, "MAX_LABELS", len(ITEMS) - 1)
    for some, weights in ((cells, left), (replace(cells, tallies=0.0 * cells.tallies), left), (cells, 0.0 * left)):
        p_values, change = item_changes.by_logit(some, weights)
        assert (p_values.tolist(), change.tolist()) == ([1.0] * len(ITEMS), [0.0] * len(ITEMS))
        monkeypatch.setattr(item_changes, "MAX_LABELS", 500)


def test_prices_are_tested_with_enough_offers_and_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    random, rows = np.random.default_rng(3), 40
    prices = np.column_stack([np.linspace(0.8, 1.2, rows).repeat(2), np.ones(2 * rows)])
    weights, chosen = random.integers(20, 40, 2 * rows).astype(float), np.tile([0, 1], rows)
    strata = {("", ("tea", "pie")): (weights, chosen, prices)}
    assert 0.0 < item_changes.logit_price_p_value(strata) <= 1.0
    monkeypatch.setattr(item_changes, "MAX_CELLS", 2 * rows)
    assert 0.0 < item_changes.logit_price_p_value(strata) <= 1.0
    monkeypatch.setattr(item_changes, "MAX_CELLS", 2 * rows - 1)
    assert isnan(item_changes.logit_price_p_value(strata))
    monkeypatch.undo()
    monkeypatch.setattr(item_changes, "MIN_OFFERS", rows + 1)
    assert isnan(item_changes.logit_price_p_value(strata))
    monkeypatch.undo()
    constant = {("", ("tea", "pie")): (weights, chosen, np.ones((2 * rows, 2)))}
    assert isnan(item_changes.logit_price_p_value(constant))


def test_prices_that_never_change_cannot_be_tested() -> None:
    random, price = np.random.default_rng(5), dict(zip(ITEMS, (1.1, 0.7, 2.3, 1.9, 0.3), strict=True))
    strata = {
        ("", offer): (
            random.integers(20, 90, len(offer)).astype(float),
            np.arange(len(offer)),
            np.tile([price[item] for item in offer], (len(offer), 1)),
        )
        for offer in OFFERS
    }
    assert isnan(item_changes.logit_price_p_value(strata))  # an effect for each item explains them
