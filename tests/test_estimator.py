import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    parametrize_with_checks,
)

import rankstream as rs
from rankstream import RankingEstimator
from rankstream.data import simulate
from rankstream.estimation.methods import PrimalDual

REASONS = {
    "check_estimators_dtypes": "its random integers hold rows of zeros, and an offer of nothing is refused",
}


@parametrize_with_checks([RankingEstimator()], expected_failed_checks=lambda _: REASONS)  # type: ignore[untyped-decorator]
@pytest.mark.filterwarnings("ignore:X holds other values")
@pytest.mark.filterwarnings("ignore:Position . is past")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.filterwarnings("ignore:X holds other values")
def test_feature_names_are_checked() -> None:
    check_dataframe_column_names_consistency("RankingEstimator", RankingEstimator())


def choices(seed: int, size: int) -> tuple[pd.DataFrame, list[str]]:
    """Choices from a simulated market, as a data frame of availability and a list of labels."""
    market = simulate.market(seed, n_items=5, n_offers=8, n_test=5)
    drawn = simulate.draw_choices(market.assortments, market.frequencies(), size, np.random.default_rng(seed))
    rows = np.zeros((size, 6), dtype=int)
    for row, coordinate in zip(rows, drawn, strict=True):
        offer = market.assortments.offers[market.assortments.owner[coordinate]]
        row[[market.assortments.code(item) for item in offer]] = 1
    chosen = [str(market.assortments.items[market.assortments.members[k]]) for k in drawn]
    return pd.DataFrame(rows, columns=list(market.assortments.items)), chosen


def test_frames_have_items_for_columns() -> None:
    frame, chosen = choices(0, 3000)
    model = RankingEstimator(PrimalDual(max_rounds=500)).fit(frame, chosen)
    shares = model.predict_proba(frame)
    assert shares.shape == frame.shape
    assert shares.sum(axis=1) == pytest.approx(np.ones(3000))
    assert not shares[frame.to_numpy() == 0].any()
    assert set(model.predict(frame)) <= set(frame.columns)
    assert model.rankings_[0][0] in frame.columns
    assert model.weights_.sum() == pytest.approx(1.0)
    assert model.n_rounds_ <= 500
    assert model.certificate_.gap >= 0.0
    assert model.model_.predict(["item 1", "nothing"]).keys() == {"item 1", "nothing"}


def test_positions_mean_the_same_as_names() -> None:
    frame, chosen = choices(1, 500)
    positions = [frame.columns.get_loc(item) for item in chosen]
    by_name = RankingEstimator(PrimalDual(max_rounds=100)).fit(frame, chosen)
    by_position = RankingEstimator(PrimalDual(max_rounds=100)).fit(frame.to_numpy(), positions)
    assert by_name.predict_proba(frame).tolist() == by_position.predict_proba(frame.to_numpy()).tolist()
    assert by_position.predict(frame.to_numpy())[0] in range(6)


def test_sample_weights_are_counts() -> None:
    frame, chosen = choices(2, 200)
    weight = np.arange(200) % 3
    repeated = np.repeat(np.arange(200), weight)
    weighted = RankingEstimator(PrimalDual(max_rounds=100)).fit(frame, chosen, sample_weight=weight)
    copied = RankingEstimator(PrimalDual(max_rounds=100)).fit(frame.iloc[repeated], [chosen[k] for k in repeated])
    assert weighted.predict_proba(frame).tolist() == copied.predict_proba(frame).tolist()
    assert weighted.counts_.observations == weight.sum()
    assert weighted.score(frame, chosen, sample_weight=weight) == pytest.approx(
        copied.score(frame.iloc[repeated], [chosen[k] for k in repeated])
    )


def test_score_mixes_in_epsilon_and_the_raw_value_is_there() -> None:
    rows, chosen = [[1, 1], [1, 1], [1, 1]], [0, 0, 0]
    model = RankingEstimator(PrimalDual(ties="first"), epsilon=0.01).fit(rows, chosen)
    assert model.score([[1, 1]], [1]) == pytest.approx(np.log(0.005))
    assert model.log_likelihood([[1, 1]], [1])[0] == -np.inf
    assert model.log_likelihood([[1, 1]], [0])[0] == 0.0


def test_partial_fit_goes_on_and_takes_new_offers() -> None:
    frame, chosen = choices(3, 2000)
    model = RankingEstimator(rounds_per_batch=50)
    for start in range(0, 2000, 500):
        model.partial_fit(frame[start : start + 500], chosen[start : start + 500])
    assert model.counts_.observations == 2000
    assert model.n_rounds_ >= 50
    before = model.counts_.assortments.n_offers
    model.partial_fit(pd.DataFrame([[1, 0, 0, 0, 0, 0]], columns=frame.columns), ["item 1"])
    assert model.counts_.assortments.n_offers == before + 1
    assert model.counts_.observations == 2001
    whole = RankingEstimator(rounds_per_batch=200).partial_fit(frame, chosen)
    assert np.abs(model.predict_proba(frame) - whole.predict_proba(frame)).mean() < 0.1


def test_works_with_the_tools_of_scikit_learn() -> None:
    frame, chosen = choices(4, 600)
    model = RankingEstimator(PrimalDual(max_rounds=200))
    scores = cross_val_score(model, frame, chosen, cv=3)
    assert np.isfinite(scores).all()
    search = GridSearchCV(model, {"method": [PrimalDual(max_rounds=50), "mnl"], "epsilon": [0.01, 0.1]}, cv=2).fit(
        frame, chosen
    )
    assert search.best_params_.keys() == {"method", "epsilon"}
    fitted = clone(model).fit(frame, chosen)
    assert (pickle.loads(pickle.dumps(fitted)).predict(frame) == fitted.predict(frame)).all()


def test_one_position_past_the_columns_is_the_outside_option() -> None:
    rows = np.array([[1, 0], [1, 1], [0, 1], [1, 1]])
    with pytest.warns(UserWarning, match="Position 2 is past the last column of X"):
        model = RankingEstimator().fit(rows, [2, 0, 2, 1])
    assert model.items_ == [0, 1, 2]
    assert model.predict_proba(rows).shape == (4, 3)
    assert model.predict([[1, 0]])[0] == 2
    with pytest.raises(ValueError, match="Row 0: unknown item 2"):
        RankingEstimator(outside="refuse").fit(rows, [2, 0, 2, 1])
    model = RankingEstimator(epsilon=0.3).fit(rows, [0, 0, 1, 1])
    with pytest.warns(UserWarning, match="past the last column"):
        assert model.score([[1, 1]], [2]) == pytest.approx(np.log(0.1))


def test_frames_with_numbers_for_columns_name_items() -> None:
    frame = pd.DataFrame(1, index=range(4), columns=[1, 2, 3])
    model = RankingEstimator(method="primal-dual").fit(frame, [1, 1, 1, 2])
    assert model.items_ == [1, 2, 3]
    assert model.predict_proba(frame)[0] == pytest.approx([0.75, 0.25, 0.0], abs=0.01)
    assert model.classes_.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="are not those of the fit"):
        model.predict_proba(pd.DataFrame(1, index=range(4), columns=[1, 2, 4]))
    with pytest.raises(ValueError, match="are not those of the fit"):
        model.partial_fit(pd.DataFrame(1, index=range(4), columns=[3, 2, 1]), [1, 1, 1, 2])
    with pytest.raises(ValueError, match="holds 1 more than once"):
        RankingEstimator().fit(pd.DataFrame(1, index=range(2), columns=[1, 1]), [1, 1])


def test_partial_fit_follows_data_that_change() -> None:
    model = RankingEstimator(PrimalDual(tolerance_mae=1e-6, max_rounds=3000)).fit([[1, 1, 1]] * 3, [0, 1, 2])
    for _ in range(20):
        model.partial_fit([[1, 1, 1]] * 500, [0] * 500)
    assert model.predict_proba([[1, 1, 1]])[0, 0] > 0.85
    shares = np.array([10_001, 1, 1]) / 10_003
    assert model.certificate_.upper == pytest.approx(
        np.linalg.norm(model.predict_proba([[1, 1, 1]])[0] - shares), abs=1e-9
    )


def test_random_state_follows_the_convention() -> None:
    rows, chosen = [[1, 1, 1]] * 3, [0, 1, 2]
    for state in (None, 3, np.random.RandomState(5)):
        assert RankingEstimator(PrimalDual(max_rounds=20), random_state=state).fit(rows, chosen).n_rounds_ > 0


def test_other_numbers_than_0_and_1_are_read_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="other values than 0 and 1"):
        model = RankingEstimator(PrimalDual(max_rounds=10)).fit([[2, 1], [0, 3]], [0, 1])
    assert model.counts_.assortments.offers == ((1,), (0, 1))


@pytest.mark.parametrize(
    ("rows", "chosen", "message"),
    [
        ([[1, 0], [1, 1]], [1, 0], "Row 0: the choice 1 is not in its offer"),
        ([[1, 1], [0, 0]], [1, 0], "Row 1 of X offers nothing"),
        ([[1, 1], [1, 1]], [1, 7], r"Row 1: unknown item 7: it names none of the 2 feature\(s\)"),
        ([[1, 1], [1, 1]], [1, "tea"], "unknown item '1'"),
        ([[1, 1], [1, 1]], [1], "one choice for each of the 2 rows"),
        ([[1, np.nan], [1, 1]], [1, 0], "contains NaN"),
        (pd.DataFrame({"a": [1], "b": [1]}), ["c"], "Row 0: unknown item 'c'"),
        (pd.DataFrame({"a": [1], "b": [1]}), [2], "Row 0: unknown item"),
        ([[1, 1], [1, 1]], [0, np.inf], "Row 1: unknown item inf"),
        ([[1, 1], [1, 1]], [0, np.nan], "Row 1: unknown item nan"),
    ],
)
def test_bad_rows_are_refused(rows: Any, chosen: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RankingEstimator().fit(rows, chosen)


def test_partial_fit_with_other_items_is_refused() -> None:
    model = RankingEstimator(PrimalDual(max_rounds=10)).partial_fit(pd.DataFrame({"a": [1], "b": [1]}), ["a"])
    with pytest.raises(ValueError, match=r"feature names|those of the fit"):
        model.partial_fit(pd.DataFrame({"a": [1], "c": [1]}), ["a"])
    unnamed = RankingEstimator(PrimalDual(max_rounds=10)).partial_fit([[1, 1]], [0])
    with pytest.raises(ValueError, match="X has 3 features"):
        unnamed.partial_fit([[1, 1, 1]], [0])
    assert model.counts_.observations == 1


@pytest.mark.parametrize(
    "settings", [{"epsilon": 1.1}, {"epsilon": -0.1}, {"outside": "maybe"}, {"memory": 0}, {"rounds_per_batch": 0}]
)
def test_impossible_settings_are_refused_when_fitting(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"{next(iter(settings))} is "):
        RankingEstimator(**settings).fit([[1, 1]], [0])


def test_unfitted_models_say_so() -> None:
    with pytest.raises(NotFittedError):
        RankingEstimator().predict_proba([[1, 1]])


def test_a_failed_batch_leaves_the_model_as_it_was() -> None:
    rows = np.ones((4, 3))
    model = RankingEstimator().partial_fit(rows, [0, 1, 2, 0])
    with (
        pytest.warns(UserWarning, match="past the last column"),
        pytest.raises(ValueError, match="Position 3, none of these, was not among"),
    ):
        model.partial_fit(rows, [0, 1, 2, 3])
    assert model.partial_fit(rows, [0, 1, 2, 0]).counts_.observations == 8


def test_choices_are_all_names_or_all_positions() -> None:
    frame = pd.DataFrame([[1, 1, 1]] * 3, columns=[1, 2, 3])
    with pytest.raises(ValueError, match="Row 2: unknown item 0"):
        RankingEstimator().fit(frame, [1, 2, 0])
    named = pd.DataFrame([[1, 1, 1]] * 3, columns=["a", "b", "c"])
    with pytest.raises(ValueError, match="Row 1: unknown item 1"):
        RankingEstimator().fit(named, np.array(["a", 1, "c"], dtype=object))
    assert RankingEstimator().fit(named, [0, 1, 2]).predict(named)[0] in ("a", "b", "c")


def test_tuple_columns_are_predicted_as_tuples() -> None:
    frame = pd.DataFrame([[1, 1]] * 2, columns=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]))
    model = RankingEstimator(PrimalDual(max_rounds=20)).fit(frame.to_numpy(), [0, 0])
    model.items_ = [("a", 1), ("b", 2)]
    assert model.predict(frame.to_numpy())[0] == ("a", 1)


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
        assert sum(model.weights_) == pytest.approx(1.0)
        assert all(set(ranking) == {"tea", "pie", "cake"} for ranking in model.rankings_)
        assert model.certificate_.lower <= model.certificate_.upper
        assert model.model_.predict(("tea", "pie"))["tea"] == pytest.approx(model.predict_proba(frame)[0, 2])
        assert model.n_rounds_ >= 1
        assert model.converged_
    assert isinstance(RankingEstimator(PrimalDual(learner="dual-averaging")).fit(frame, chosen).model_, rs.RankingModel)
    model = RankingEstimator().fit(frame, chosen).partial_fit(frame, chosen)
    assert isinstance(model.model_, rs.RankingModel)
    assert model.counts_.observations == 240
    with pytest.raises(ValueError, match="no method 'best'"):
        RankingEstimator(method="best").fit(frame, chosen)


def test_a_fit_weighs_offers_by_their_observations() -> None:
    # Regularity is violated: the second offer, seen rarely, makes item 0 more popular.
    rows, chosen = [[1, 1, 0]] * 200 + [[1, 1, 1]] * 10, [0, 1] * 100 + [0] * 9 + [1]
    shares = []
    for distance in ("l2", "squared-l2"):
        model = RankingEstimator(PrimalDual(distance=distance, max_rounds=2000)).fit(rows, chosen)
        shares.append(model.predict_proba(rows)[0, 0])
    assert np.abs(np.array(shares) - 0.5).max() < 0.05
