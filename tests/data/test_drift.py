from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import chi2

from rankstream import Assortments, ChoiceCounts, RankingModel
from rankstream.data import simulate
from rankstream.data.change import RecordCounts, _most_changed
from rankstream.data.decay import DecayingCounts
from rankstream.data.drift import adjust, drift_report
from rankstream.data.item_changes import ItemCells, by_offers, fit_logit
from rankstream.evaluate.customer_types import favourite_changes

OFFERS = Assortments([("tea", "cake", "nothing"), ("pie", "nothing")])


def test_the_statistic_is_pearsons() -> None:
    before, after = ChoiceCounts(OFFERS, [50, 30, 20, 40, 60]), ChoiceCounts(OFFERS, [80, 70, 50, 45, 55])
    report = drift_report(before, after)
    for movement, table in zip(
        sorted(report.movements, key=lambda one: len(one.offer)),
        ([[40, 60], [45, 55]], [[50, 30, 20], [80, 70, 50]]),
        strict=True,
    ):
        expected = stats.chi2_contingency(table, correction=False)
        assert movement.statistic == pytest.approx(expected.statistic)
        assert movement.p_value == pytest.approx(expected.pvalue)
        assert (movement.freedom, movement.before, movement.after) == (expected.dof, 100, np.sum(table[1]))


@pytest.mark.parametrize("kind", ["few", "many", "decaying"])
def test_without_drift_findings_are_as_rare_as_promised(kind: str) -> None:
    market = simulate.market(2, n_items=6, n_offers=10, n_test=5)
    offers, shares = market.assortments, market.frequencies()
    random, found, tested, wrong = np.random.default_rng(0), 0, 0, 0
    for _ in range(300):
        pair: list[Any] = []
        for _ in range(2):
            counts = DecayingCounts(offers, 300) if kind == "decaying" else ChoiceCounts(offers)
            size = {"few": 300, "many": 3000, "decaying": 2000}[kind]
            counts.observe_coordinates(simulate.draw_choices(offers, shares, size, random))
            pair.append(counts)
        report = drift_report(*pair)
        found += bool(report.moved)
        wrong += sum(one.p_value <= 0.05 for one in report.movements)
        tested += len(report.movements)
    assert wrong / tested < 0.05 + 3 * np.sqrt(0.05 * 0.95 / tested)
    assert found / 300 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_drift_is_found_where_it_is() -> None:
    before = ChoiceCounts(OFFERS, [500, 300, 200, 400, 600])
    after = ChoiceCounts(Assortments([("nothing", "pie"), ("nothing", "tea", "cake")]), [610, 390, 350, 350, 300])
    report = drift_report(before, after)
    (movement,) = report.moved
    assert movement.offer == ("tea", "cake", "nothing")
    assert movement.item == "tea"
    assert movement.change == pytest.approx(-0.15)
    words = ["Tastes changed: tea -15.0 points.", "1 of 2 offers changed (holm, level 0.05)"]
    assert str(report).splitlines()[:2] == words
    assert "tea -15.0 points in (tea, cake, nothing): p = " in str(report)


def test_snapshots_and_offers_that_come_and_go() -> None:
    before = ChoiceCounts(OFFERS, [500, 300, 200, 400, 600])
    later = before.extend([("tea", "rum")])
    later.observe_coordinates([0, 5], [700, 3])
    report = drift_report(before, later, cumulative=True)
    assert [(one.offer[0], one.after) for one in report.movements] == [("tea", 700)]
    assert report.appeared == (("tea", "rum"),)
    assert report.vanished == (("pie", "nothing"),)
    assert "new: (tea, rum)" in str(report)
    assert drift_report(later, before).vanished == (("tea", "rum"),)
    with pytest.raises(ValueError, match="fewer choices after than before"):
        drift_report(later, before, cumulative=True)
    with pytest.raises(ValueError, match="lack their earlier choices"):
        drift_report(DecayingCounts(OFFERS, 5), before, cumulative=True)
    with pytest.raises(ValueError, match="lack their earlier choices"):
        drift_report(before, DecayingCounts(OFFERS, 5), cumulative=True)


def test_too_few_choices_tell_nothing() -> None:
    report = drift_report(ChoiceCounts(OFFERS, [2, 0, 0, 0, 1]), ChoiceCounts(OFFERS, [0, 2, 0, 9, 0]))
    assert [one.p_value for one in report.movements] == [1.0, 1.0]
    assert not drift_report(ChoiceCounts(OFFERS), ChoiceCounts(OFFERS)).movements
    twice = Assortments([("a", "b"), ("b", "a")])
    (movement,) = drift_report(ChoiceCounts(twice, [10, 20, 30, 40]), ChoiceCounts(twice, [1, 2, 3, 4])).movements
    assert (movement.before, movement.after) == (100, 10)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.sampled_from(["holm", "fdr"]))
def test_adjusted_p_values(p_values: list[float], control: Any) -> None:
    adjusted = adjust(np.array(p_values), control)
    if control == "fdr":
        assert adjusted == pytest.approx(stats.false_discovery_control(p_values))
        return
    order = np.argsort(p_values)
    for place, number in enumerate(order):
        steps = [(len(order) - k) * p_values[order[k]] for k in range(place + 1)]
        assert adjusted[number] == pytest.approx(min(1.0, max(steps)))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"level": 0.0}, "level is 0.0: it must lie strictly between 0 and 1"),
        ({"level": 1.0}, "level is 1.0: it must lie strictly between 0 and 1"),
        ({"level": 1.5}, "level is 1.5"),
        ({"level": -0.1}, "level is -0.1"),
        ({"level": "low"}, "level is 'low'"),
        ({"control": "none"}, "Unknown control 'none': choose 'holm' or 'fdr'"),
    ],
)
def test_impossible_settings_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        drift_report(ChoiceCounts(OFFERS), ChoiceCounts(OFFERS), **wrong)


def test_what_is_not_counted_in_whole_choices_is_not_tested() -> None:
    whole, halves = ChoiceCounts(OFFERS, [50, 30, 20, 40, 60]), ChoiceCounts(OFFERS, [25.5, 15, 10, 20, 30])
    for pair in ((whole, halves), (halves, whole)):
        with pytest.raises(ValueError, match="A test for drift needs whole choices, each counted once, but a tally is"):
            drift_report(*pair)


def test_a_snapshot_must_hold_all_that_it_held() -> None:
    before, less = ChoiceCounts(OFFERS, [5, 3, 2, 4, 6]), ChoiceCounts(OFFERS, [9, 3, 1, 4, 6])
    with pytest.raises(ValueError, match=r"'tea', 'cake', 'nothing'.* has fewer choices after than before"):
        drift_report(before, less, cumulative=True)
    same = drift_report(before, before, cumulative=True)
    assert not same.movements
    assert same.vanished == tuple(OFFERS.offers)


@settings(max_examples=25)
@given(st.integers(0, 2**31), st.booleans())
def test_favourites_are_counted_ranking_by_ranking(seed: int, named: bool) -> None:
    random = np.random.default_rng(seed)
    models, shares = [], []
    for items in (["tea", "pie", "cake", "no"], ["no", "tea", "rum", "pie"]):
        rankings = [tuple(random.permutation(items).tolist()) for _ in range(4)]
        rankings = sorted(set(rankings))
        models.append(RankingModel(items, rankings, random.dirichlet(np.ones(len(rankings)))))
        found: dict[tuple[str, ...], float] = {}
        for ranking, weight in zip(models[-1].rankings, models[-1].weights.tolist(), strict=True):
            first = tuple(str(item) for item in ranking if item in ("tea", "pie", "no"))[:2]
            key = first[: first.index("no")] if named and "no" in first else first
            found[key] = found.get(key, 0.0) + weight
        shares.append(found)
    changes = favourite_changes(models[0], models[1], "no" if named else None, least=0.0)
    listed = [one for word in ("appeared", "vanished", "grew", "shrank") for one in getattr(changes, word)]
    for one in listed:
        assert one.before == pytest.approx(shares[0].get(one.ranking, 0.0), abs=1e-12)
        assert one.after == pytest.approx(shares[1].get(one.ranking, 0.0), abs=1e-12)
    assert {one.ranking for one in listed} == {
        key for key in {**shares[0], **shares[1]} if shares[0].get(key, 0.0) != shares[1].get(key, 0.0)
    }


def test_models_of_other_items_have_no_types_in_common() -> None:
    one = RankingModel(["tea", "pie"], [("tea", "pie")], [1.0])
    with pytest.raises(ValueError, match="have only 'tea' in common"):
        favourite_changes(one, RankingModel(["tea", "rum"], [("tea", "rum")], [1.0]))


def drawn(offers: Assortments, shares: Any, size: int, random: np.random.Generator) -> ChoiceCounts:
    counts = ChoiceCounts(offers)
    counts.observe_coordinates(simulate.draw_choices(offers, shares, size, random))
    return counts


def random_offers(items: tuple[str, ...], number: int, random: np.random.Generator, always: str = "") -> Assortments:
    """So many different offers of two or more items, all with "no", and all with or without one more."""
    found: dict[frozenset[str], tuple[str, ...]] = {}
    while len(found) < number:
        own = [item for item in items if random.random() < 0.5 and item != always]
        offer = (*own, *([always] if always else []), "no")
        if len(offer) > 2:
            found[frozenset(offer)] = offer
    return Assortments(found.values(), (*items, "no"))


def ranking_market(items: tuple[str, ...], random: np.random.Generator) -> RankingModel:
    rankings = {tuple(random.permutation([*items, "no"]).tolist()) for _ in range(6)}
    return RankingModel([*items, "no"], sorted(rankings), random.dirichlet(np.ones(len(rankings))))


ITEMS = tuple("abcdefgh")


@pytest.mark.slow
def test_offers_that_differ_are_compared_through_a_logit_with_few_false_alarms() -> None:
    random, alarms, tested = np.random.default_rng(0), 0, 0
    for number in range(80):  # half of the truths are logits, half are mixtures of six rankings
        worth = dict(zip((*ITEMS, "no"), np.exp(random.normal(size=9)), strict=True))
        model, periods = ranking_market(ITEMS, random), []
        for _ in range(2):
            offers = random_offers(ITEMS, 25, random)
            weights = np.array([worth[str(offers.items[code])] for code in offers.members])
            logit = weights / np.add.reduceat(weights, offers.indptr[:-1])[offers.owner]
            periods.append(drawn(offers, logit if number % 2 else model.probabilities(offers), 2500, random))
        report = drift_report(*periods)
        assert report.given_offers
        alarms += report.changed
        tested += report.tested_items
    assert alarms <= 10  # 5 % of 80, and three standard errors
    assert tested > 80 * 3


def test_a_change_at_other_offers_is_found_and_named() -> None:
    random, named = np.random.default_rng(1), 0
    for _ in range(10):
        model, periods = ranking_market(ITEMS, random), []
        for late in (False, True):
            offers = random_offers(ITEMS, 60, random)
            shares = model.probabilities(offers)
            if late:  # a quarter of all customers takes c wherever it is
                is_c = offers.members == offers.items.index("c")
                has_c = np.bincount(offers.owner, is_c)[offers.owner] > 0
                shares = np.where(has_c, 0.75 * shares + 0.25 * is_c, shares)
            periods.append(drawn(offers, shares, 12_000, random))
        report = drift_report(*periods)
        if report.items and report.items[0].item == "c":
            named += 1
            assert report.verdict.startswith(f"Tastes changed: c {100 * report.items[0].change:+.1f} points")
            assert report.items[0].change == pytest.approx(0.25 * (1 - 0.15), abs=0.15)
    assert named >= 8


def test_what_a_new_item_takes_from_others_is_no_change_of_tastes() -> None:
    random, alarms = np.random.default_rng(2), 0
    for _ in range(20):
        model = ranking_market(ITEMS, random)
        pair = [random_offers(ITEMS[1:], 30, random), random_offers(ITEMS, 30, random, always="a")]
        report = drift_report(*(drawn(offers, model.probabilities(offers), 6000, random) for offers in pair))
        alarms += report.changed
        assert report.verdict == "No offer occurs in both periods, so nothing could be compared."
    assert alarms == 0


def test_prices_explain_what_is_no_change_of_tastes() -> None:
    """The same shares at every price, and more offers at the low one later: overall tea gains, its tastes do not."""
    labels = [("tea @ 3.00", "pie @ 2.00", "no"), ("tea @ 4.00", "pie @ 2.00", "no"), ("tea @ 4.00", "no")]
    labels += [("tea @ 3.00", "no"), ("pie @ 2.00", "no"), ("tea @ 3.00", "pie @ 3.00", "no")]
    offers = Assortments(labels)
    worth = {"tea @ 3.00": 3.0, "tea @ 4.00": 1.0, "pie @ 2.00": 1.0, "pie @ 3.00": 0.5, "no": 1.0}
    weights = np.array([worth[str(offers.items[code])] for code in offers.members])

    def period(sizes: list[int], boost: float) -> ChoiceCounts:
        own = weights * np.where([str(offers.items[code]).startswith("pie") for code in offers.members], boost, 1.0)
        shares = own / np.add.reduceat(own, offers.indptr[:-1])[offers.owner]
        return ChoiceCounts(offers, np.round(shares * np.array(sizes)[offers.owner]))

    before = period([400, 4000, 4000, 400, 500, 400], 1.0)
    same = drift_report(before, period([4000, 400, 400, 4000, 500, 4000], 1.0))
    assert not same.changed
    more = drift_report(before, period([4000, 400, 400, 4000, 500, 4000], 2.0))
    assert [one.item for one in more.items] == ["pie"]
    assert more.items[0].change > 0.1 > more.items[0].overall


def test_the_verdict_is_one_for_offers_and_items() -> None:
    random, wrong = np.random.default_rng(3), 0
    market = simulate.market(2, n_items=6, n_offers=12, n_test=5)
    for _ in range(300):
        pair = [drawn(market.assortments, market.frequencies(), 3000, random) for _ in range(2)]
        report = drift_report(*pair)
        wrong += report.changed
        assert report.changed == (report.p_value <= 0.05)
        assert report.verdict.startswith("No evidence that tastes changed") != report.changed
    assert wrong / 300 < 0.05 + 2 * np.sqrt(0.05 * 0.95 / 300)


def test_offers_with_one_choice_in_each_period_are_mcnemars_pairs() -> None:
    first, second = [0] * 25 + [1] * 5 + [0] * 10, [1] * 25 + [0] * 5 + [0] * 10  # 1 is tea
    tallies = np.array([np.eye(2)[chosen].ravel() for chosen in (first, second)])
    item, owner = np.tile([0, 1], 40), np.repeat(np.arange(40), 2)
    cells = ItemCells(tallies, owner, item, item, ("pie", "tea"), (frozenset({"pie", "tea"}),) * 40)
    p_values, surplus = by_offers(cells, np.ones(80))
    assert p_values == pytest.approx(np.full(2, chi2.sf((25 - 5) ** 2 / (25 + 5), 1)))
    assert surplus == pytest.approx([-10.0, 10.0])


@pytest.mark.parametrize("seed", range(3))
def test_the_logit_behind_changes_of_items_is_the_likeliest(seed: int) -> None:
    random = np.random.default_rng(seed)
    inside = (random.random((30, 8)) < 0.5).astype(np.float64)
    inside[:, 0] = 1.0
    worth = np.exp(3.0 * random.normal(size=8))
    counts = random.poisson(200.0 * inside * worth / (inside @ worth)[:, np.newaxis]).astype(np.float64)
    shares = fit_logit(inside, counts)
    slope = counts.sum(axis=0) - counts.sum(axis=1) @ shares  # 0 for every item at the greatest likelihood
    assert np.abs(slope).max() <= 1e-8 * counts.sum()


def test_the_item_that_changed_most_is_of_offers_that_both_periods_saw() -> None:
    offers = Assortments([("tea", "pie", "rum"), ("tea", "rum"), ("pie", "rum")])
    before = ChoiceCounts(offers, [50, 30, 20, 50, 50, 0, 0])
    after = ChoiceCounts(offers, [60, 24, 16, 0, 0, 9, 0])
    item, points = _most_changed(before, after)
    assert (item, round(points, 9)) == ("tea", 10.0)


def test_the_verdict_says_how_much_could_be_compared() -> None:
    items = ["tea", "pie", "no"]
    only = Assortments([("tea", "no")], items)
    apart = drift_report(ChoiceCounts(only, [50, 50]), ChoiceCounts(Assortments([("pie", "no")], items), [50, 50]))
    assert apart.verdict == "No offer occurs in both periods, so nothing could be compared."
    few = drift_report(ChoiceCounts(only, [20, 9]), ChoiceCounts(only, [500, 0]))
    assert few.verdict.startswith("Not enough choices yet: 29 before and 500 after, and a comparison needs 30 in each")
    assert (few.changed, few.tested, few.tested_items, few.p_value) == (False, 0, 0, 1.0)
    enough = drift_report(ChoiceCounts(only, [20, 10]), ChoiceCounts(only, [0, 500]))
    assert enough.changed
    many = Assortments([("tea", "pie", "no"), *(("tea", "no", str(k)) for k in range(90))])
    tallies = np.zeros((2, many.n_coordinates))
    tallies[:, :3] = 100
    tallies[0, 3::3] = 1
    one = drift_report(*(ChoiceCounts(many, row) for row in tallies))
    assert one.verdict == "No change found, but only 1 of 91 offers could be compared."
    thin = drift_report(ChoiceCounts(only, [40, 0]), ChoiceCounts(only, [40, 0]))
    assert thin.verdict == "No offer has enough choices in both periods, so nothing could be compared."


def test_records_with_counts_are_single_moments() -> None:
    offers = Assortments([("tea", "pie")])
    pair = [RecordCounts(offers), RecordCounts(offers)]
    pair[0].observe(("tea", "pie"), "tea", 60)
    pair[1].observe(("tea", "pie"), "pie", 60)
    report = drift_report(*pair)
    assert not report.changed
    assert report.verdict.startswith("Not enough choices yet: 1 before and 1 after")
    assert "share a record count once" in report.verdict
    whole = [ChoiceCounts(offers, [60, 0]), ChoiceCounts(offers, [0, 60])]
    assert drift_report(*whole).changed
    singles = [RecordCounts(offers), RecordCounts(offers)]
    for counts, tallies in zip(singles, ([50, 10], [20, 40]), strict=True):
        counts.observe([("tea", "pie")] * 60, ["tea"] * tallies[0] + ["pie"] * tallies[1])
        assert counts.effective_totals.tolist() == [60.0]
    same = drift_report(ChoiceCounts(offers, [50, 10]), ChoiceCounts(offers, [20, 40]))
    assert drift_report(*singles).p_value == same.p_value
