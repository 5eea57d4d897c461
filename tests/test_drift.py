from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rankstream import Assortments, ChoiceCounts, RankingModel
from rankstream.data import simulate
from rankstream.data.drift import adjust, drift_report
from rankstream.data.forgetting import DecayingCounts
from rankstream.evaluate.customer_types import favourite_changes, type_changes

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
    assert str(report).startswith("1 of 2 offers moved (holm, level 0.05)\ntea -15.0 points in (tea, cake, nothing)")


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
    with pytest.raises(ValueError, match="do not include what they were"):
        drift_report(DecayingCounts(OFFERS, 5), before, cumulative=True)
    with pytest.raises(ValueError, match="do not include what they were"):
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
        ({"control": "none"}, "no control 'none': choose 'holm' or 'fdr'"),
    ],
)
def test_impossible_settings_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        drift_report(ChoiceCounts(OFFERS), ChoiceCounts(OFFERS), **wrong)


def test_what_is_not_counted_in_whole_choices_is_not_tested() -> None:
    whole, halves = ChoiceCounts(OFFERS, [50, 30, 20, 40, 60]), ChoiceCounts(OFFERS, [25.5, 15, 10, 20, 30])
    for pair in ((whole, halves), (halves, whole)):
        with pytest.raises(ValueError, match="A test for drift needs whole choices, each counted once, and a tally is"):
            drift_report(*pair)


def test_a_snapshot_must_hold_all_that_it_held() -> None:
    before, less = ChoiceCounts(OFFERS, [5, 3, 2, 4, 6]), ChoiceCounts(OFFERS, [9, 3, 1, 4, 6])
    with pytest.raises(ValueError, match=r"'tea', 'cake', 'nothing'.* has fewer choices after than before"):
        drift_report(before, less, cumulative=True)
    same = drift_report(before, before, cumulative=True)
    assert not same.movements
    assert same.vanished == tuple(OFFERS.offers)


def test_types_are_those_who_choose_alike() -> None:
    items = ["tea", "pie", "rum"]
    before = RankingModel(
        items, [("tea", "pie", "rum"), ("pie", "tea", "rum"), ("tea", "rum", "pie")], [0.4, 0.35, 0.25]
    )
    after = RankingModel([*items, "gin"], [("gin", "pie", "rum", "tea"), ("tea", "gin", "rum", "pie")], [0.6, 0.4])
    changes = type_changes(before, after, [("tea", "pie")])
    assert [(one.ranking, round(one.change, 3)) for one in changes.grew] == [(("pie", "tea"), 0.25)]
    assert [(one.ranking, one.after) for one in changes.shrank] == [(("tea", "pie"), 0.4)]
    assert not changes.appeared + changes.vanished
    changes = type_changes(before, after, [("tea", "pie"), ("pie", "rum"), ("tea", "rum")])
    assert [one.ranking for one in changes.appeared] == [("pie", "rum", "tea")]
    assert [one.ranking for one in changes.vanished] == [("tea", "pie", "rum"), ("pie", "tea", "rum")]
    assert [one.ranking for one in changes.grew] == [("tea", "rum", "pie")]
    assert "vanished: tea > pie > rum, 40.0 % to 0.0 %" in str(changes)
    with pytest.raises(ValueError, match="does not know the item 'gin'"):
        type_changes(before, after, [("tea", "gin")])


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
    with pytest.raises(ValueError, match="share 1 items"):
        favourite_changes(one, RankingModel(["tea", "rum"], [("tea", "rum")], [1.0]))
