import numpy as np
import pytest

from rankstream import Assortments, RankingModel, estimate
from rankstream.data import simulate
from rankstream.estimation.methods import PrimalDual
from rankstream.models.answers import favourites
from rankstream.models.entropy import fit as entropy

pytestmark = pytest.mark.quick

RANKINGS = [
    ("tea", "pie", "no", "cake"),
    ("cake", "no", "pie", "tea"),
    ("pie", "no", "tea", "cake"),
    ("pie", "no", "cake", "tea"),
]
MODEL = RankingModel(["tea", "pie", "cake", "no"], RANKINGS, [0.4, 0.35, 0.15, 0.1], no_choice_code=3)


def test_segments_merge_what_differs_below_no_choice() -> None:
    found = [(segment.ranking, round(segment.share, 9)) for segment in MODEL.segments()]
    assert found == [(("tea", "pie"), 0.4), (("cake",), 0.35), (("pie",), 0.25)]
    assert MODEL.segments(top=1)[0].ranking == ("tea", "pie")
    everything = RankingModel(MODEL.items, MODEL.rankings, MODEL.weights)
    assert len(everything.segments()) == 4


def test_substitution_is_the_second_choice() -> None:
    market = simulate.market(0)
    model = estimate(market.assortments, market.frequencies(), method=PrimalDual(tolerance_mae=5e-3)).model
    offer = model.items[:5]
    found = model.substitution(offer)
    expected = np.zeros((5, 5))
    for ranking, weight in zip(model.rankings, model.weights, strict=True):
        first, second = [offer.index(item) for item in ranking if item in offer][:2]
        expected[first, second] += weight
    bought = expected.sum(axis=1)
    assert found.before == pytest.approx(bought, abs=1e-9)
    wanted = np.divide(expected, bought[:, None], out=np.zeros((5, 5)), where=bought[:, None] > 0)
    assert found.shares == pytest.approx(wanted, abs=1e-6)
    assert list(found.gains(offer[0]).values()) == sorted(found.gains(offer[0]).values(), reverse=True)


def test_an_item_that_nobody_buys_has_no_buyers_to_lose() -> None:
    model = RankingModel(["tea", "pie"], [("tea", "pie")], [1.0])
    assert model.substitution().shares.tolist() == [[0.0, 1.0], [0.0, 0.0]]
    with pytest.raises(ValueError, match="nothing to switch to"):
        model.substitution(["tea"])


def test_the_dense_model_answers_the_same_questions() -> None:
    market = simulate.market(0, n_items=5, n_offers=8, n_test=4)
    model = entropy.fit_max_entropy(next(market.stream(first=3000)), "default").model
    rows = model.substitution().shares
    assert (rows >= -1e-12).all()
    assert rows.sum(axis=1) == pytest.approx(np.ones(6))
    assert sum(segment.share for segment in model.segments()) == pytest.approx(1.0)


def test_frames() -> None:
    frame = MODEL.to_frame()
    assert frame["place 1"].tolist() == ["tea", "cake", "pie", "pie"]
    assert frame["weight"].sum() == pytest.approx(1.0)


def test_probabilities_of_offers_in_another_order_of_items() -> None:
    offers = Assortments([("no", "cake"), ("cake", "tea", "pie")])
    assert MODEL.probabilities(offers) == pytest.approx([0.65, 0.35, 0.35, 0.4, 0.25])


def test_first_two_choices_are_those_of_the_rankings() -> None:
    for no_choice_code in (None, 3):
        model = RankingModel(MODEL.items, MODEL.rankings, MODEL.weights, no_choice_code=no_choice_code)
        expected: dict[tuple[object, ...], float] = {}
        for segment in model.segments():
            expected[segment.ranking[:2]] = expected.get(segment.ranking[:2], 0.0) + segment.share
        found = favourites(model.substitution(), None if no_choice_code is None else "no")
        assert found == pytest.approx(expected)
        assert list(found.values()) == sorted(expected.values(), reverse=True)
