"""The scikit-learn estimator, batch after batch: new offers and items, a half-life, every method."""

import numpy as np
import pandas as pd
import pytest

import rankstream as rs
from choice_frames import choices
from rankstream import RankingEstimator
from rankstream.estimation.methods import PrimalDual


@pytest.mark.parametrize(
    ("learner", "horizon", "most"),
    [
        ("mirror-descent", 10_000, 0.85),  # its step is for the horizon, of which 2,000 rounds are a fifth
        ("mirror-descent", 2_000, 0.6),
        ("dual-averaging", 10_000, 0.6),
        ("follow-the-leader", 10_000, 0.2),
        ("strongly-convex-mirror-descent", 10_000, 0.2),
    ],
)
def test_batches_of_the_same_data_keep_improving(learner: str, horizon: int, most: float) -> None:
    frame, chosen = choices(5, 400)
    model = RankingEstimator(PrimalDual(learner=learner, tolerance_mae=0.0, max_rounds=horizon))
    gaps = [model.partial_fit(frame, chosen).certificate_.gap for _ in range(20)]
    assert gaps[-1] < most * gaps[1]


def test_new_offers_do_not_start_the_solver_again() -> None:
    frame, chosen = choices(6, 1500)
    first = (frame["item 1"] == 0).to_numpy()
    early, late = frame[first], frame[~first]
    model = RankingEstimator(PrimalDual(tolerance_mae=0.0)).partial_fit(early, np.array(chosen)[first])
    rounds = model.n_rounds_
    model.partial_fit(late, np.array(chosen)[~first])
    assert model.n_rounds_ == rounds + 100
    for _ in range(10):
        model.partial_fit(frame, chosen)
    whole = RankingEstimator(PrimalDual(tolerance_mae=0.0, max_rounds=2000)).fit(frame, chosen)
    assert model.certificate_.gap < 0.2
    assert np.abs(model.predict_proba(frame) - whole.predict_proba(frame)).mean() < 0.02


def test_items_may_come_and_go() -> None:
    model = RankingEstimator(PrimalDual(tolerance_mae=0.0, ties="last"), new_items="add")
    model.partial_fit(pd.DataFrame({"tea": [1] * 4, "pie": [1] * 4}), ["tea", "pie", "tea", "tea"])
    later = pd.DataFrame({"rum": [1, 1, 1, 1], "cake": [0, 0, 1, 1], "tea": [1, 1, 0, 0]})
    for _ in range(5):
        model.partial_fit(later, ["rum", "tea", "cake", "cake"])
    assert model.items_ == ["tea", "pie", "rum", "cake"]
    assert model.counts_.observations == 24
    assert model.counts_.assortments.items == (0, 1, 2, 3)
    assert model.feature_names_in_.tolist() == model.items_
    assert model.model_.predict(["tea", "pie"])["tea"] == pytest.approx(0.75, abs=0.05)
    assert model.classes_.tolist() == ["cake", "pie", "rum", "tea"]
    assert model.predict_proba(later)[2] == pytest.approx([1, 0, 0, 0], abs=0.05)
    assert model.predict_proba(later)[0] == pytest.approx([0, 0, 0.5, 0.5], abs=0.05)
    assert model.score(later, ["rum", "tea", "cake", "cake"]) == pytest.approx(-np.log(2) / 2, abs=0.05)
    before = model.items_
    with pytest.raises(ValueError, match="Row 0: the choice 'gin' is not in its offer"):
        model.partial_fit(pd.DataFrame({"gin": [0], "tea": [1]}), ["gin"])
    with pytest.raises(ValueError, match="The item 'gin' was in no batch so far"):
        model.predict(pd.DataFrame({"gin": [1]}))
    assert model.items_ == before


def test_a_half_life_forgets() -> None:
    rows = [[1, 1]] * 400
    model = RankingEstimator(PrimalDual(tolerance_mae=0.0), half_life=50).partial_fit(rows, [0] * 400)
    for _ in range(3):
        model.partial_fit(rows, [1] * 400)
    assert model.predict_proba([[1, 1]])[0, 1] > 0.9
    assert model.counts_.frequencies()[1] > 0.99
    model.partial_fit([[1, 0]] * 3, [0] * 3)
    assert model.counts_.assortments.n_offers == 2
    assert model.counts_.totals[0] < 75
    for settings in ({"half_life": 0}, {"new_items": "maybe"}):
        with pytest.raises(ValueError, match=r"half_life is 0|new_items is 'maybe'"):
            RankingEstimator(**settings).fit(rows, [0] * 400)


def test_every_method_has_all_fitted_attributes() -> None:
    frame = pd.DataFrame([[1, 1, 0], [1, 1, 1], [0, 1, 1]] * 40, columns=["tea", "pie", "cake"])
    chosen = ["tea", "cake", "pie", "pie", "tea", "cake"] * 20
    for method, dense in (("auto", True), ("max-entropy", True), ("primal-dual", False), ("nearest", False)):
        model = RankingEstimator(method=method).fit(frame, chosen)
        assert isinstance(model.model_, rs.EntropyModel) == dense
        assert model.predict_proba(frame).sum(axis=1) == pytest.approx(np.ones(120))
        rankings = model.model_.to_rankings() if dense else model.model_
        assert all(set(ranking) == {"tea", "pie", "cake"} for ranking in rankings.rankings)
        assert model.certificate_.lower <= model.certificate_.upper
        assert model.model_.predict(("tea", "pie"))["tea"] == pytest.approx(model.predict_proba(frame)[0, 2])
        assert model.n_rounds_ >= 1
        assert model.converged_
    assert isinstance(RankingEstimator(PrimalDual(learner="dual-averaging")).fit(frame, chosen).model_, rs.RankingModel)
    for method, kind in (("auto", rs.EntropyModel), ("primal-dual", rs.RankingModel)):
        model = RankingEstimator(method=method).fit(frame, chosen).partial_fit(frame, chosen)
        assert isinstance(model.model_, kind)
        assert model.counts_.observations == 240
    with pytest.raises(ValueError, match="Unknown method 'best'"):
        RankingEstimator(method="best").fit(frame, chosen)


def test_a_fit_weighs_offers_by_their_observations() -> None:
    # Regularity is violated: the second offer, seen rarely, makes item 0 more popular.
    rows, chosen = [[1, 1, 0]] * 200 + [[1, 1, 1]] * 10, [0, 1] * 100 + [0] * 9 + [1]
    shares = []
    for distance in ("l2", "squared-l2"):
        model = RankingEstimator(PrimalDual(distance=distance, max_rounds=2000)).fit(rows, chosen)
        shares.append(model.predict_proba(rows)[0, 0])
    assert np.abs(np.array(shares) - 0.5).max() < 0.05
