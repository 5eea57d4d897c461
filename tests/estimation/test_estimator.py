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

from choice_frames import choices
from rankstream import RankingEstimator
from rankstream.estimation.methods import PrimalDual

REASONS = {
    "check_estimators_dtypes": "its random integers hold rows of zeros, and an offer of nothing is refused",
}


@parametrize_with_checks([RankingEstimator()], expected_failed_checks=lambda _: REASONS)  # type: ignore[untyped-decorator]
@pytest.mark.filterwarnings("ignore:X has other values")
@pytest.mark.filterwarnings("ignore:Position . is past")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.filterwarnings("ignore:X has other values")
def test_feature_names_are_checked() -> None:
    check_dataframe_column_names_consistency("RankingEstimator", RankingEstimator())


def test_frames_have_items_for_columns() -> None:
    frame, chosen = choices(0, 3000)
    model = RankingEstimator(PrimalDual(max_rounds=500)).fit(frame, chosen)
    shares = model.predict_proba(frame)
    assert shares.shape == frame.shape
    assert shares.sum(axis=1) == pytest.approx(np.ones(3000))
    assert not shares[frame.to_numpy() == 0].any()
    assert set(model.predict(frame)) <= set(frame.columns)
    assert model.model_.rankings[0][0] in frame.columns
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
    with pytest.raises(ValueError, match="contains 1 more than once"):
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


def test_a_seed_of_a_random_state_is_any_number_of_31_bits() -> None:
    seeds = [RankingEstimator(random_state=np.random.RandomState(number))._seed() for number in range(50)]
    assert len(set(seeds)) == 50
    assert 2**30 < max(seeds) < 2**31


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
        pytest.raises(ValueError, match="Position 3, no column of X, did not occur"),
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
