import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import strategies
from rankstream import Assortments, RankingModel

ITEMS = ["tea", "pie", "nothing"]
MODEL = RankingModel(ITEMS, [("tea", "nothing", "pie"), ("pie", "tea", "nothing")], [0.75, 0.25], no_choice_code=2)


@given(strategies.assortments(), st.integers(0, 2**32 - 1))
def test_probabilities_equal_their_twin_for_any_offers(offers: Assortments, seed: int) -> None:
    generator = np.random.default_rng(seed)
    orders = [generator.permutation(offers.n_items) for _ in range(5)]
    model = RankingModel.from_codes(offers.items, orders, generator.dirichlet(np.ones(5)))
    expected = naive.probabilities(offers, list(model.rankings), model.weights)
    assert model.probabilities(offers) == pytest.approx(expected)
    assert np.add.reduceat(expected, offers.indptr[:-1]) == pytest.approx(np.ones(offers.n_offers))


def test_predict_sums_to_one_and_refuses_unknown_items() -> None:
    assert MODEL.predict(("tea", "pie", "nothing")) == {"tea": 0.75, "pie": 0.25, "nothing": 0.0}
    assert MODEL.predict(["nothing"]) == {"nothing": 1.0}
    with pytest.raises(ValueError, match="does not know the item 'rum'"):
        MODEL.predict(("tea", "rum"))
    with pytest.raises(ValueError, match="The offer is empty"):
        MODEL.predict(())


def test_large_models_are_evaluated_in_pieces() -> None:
    generator = np.random.default_rng(0)
    offers = Assortments([generator.permutation(9).tolist() for _ in range(600)], items=range(9))
    orders = np.array([generator.permutation(9) for _ in range(2000)])
    model = RankingModel.from_codes(range(9), orders, np.full(2000, 1 / 2000))
    expected = np.bincount(orders[:, 0], minlength=9)[offers.members] / 2000
    assert model.probabilities(offers) == pytest.approx(expected)


def test_sample_is_seeded_and_follows_the_model() -> None:
    picks = MODEL.sample(("tea", "pie"), size=4000, seed=1)
    assert picks == MODEL.sample(("tea", "pie"), size=4000, seed=1)
    assert picks.count("tea") / 4000 == pytest.approx(0.75, abs=0.03)


def test_describe_cuts_after_the_no_choice_item() -> None:
    assert MODEL.describe() == [" 75.0 %  tea > (nothing)", " 25.0 %  pie > tea > (nothing)"]
    assert RankingModel("ab", ["ba"], [1.0]).describe() == ["100.0 %  b > a"]


@pytest.mark.parametrize("labels", [["a", "b"], [1, 2], [None, True], ["é", 3], [np.str_("x"), np.int64(7)]])
def test_saved_models_load_equal(tmp_path: Path, labels: list[object]) -> None:
    model = RankingModel(labels, [labels, labels[::-1]], [1 / 3, 2 / 3], no_choice_code=0)
    model.save(tmp_path / "model.json")
    loaded = RankingModel.load(tmp_path / "model.json")
    assert loaded == model
    assert [type(item) for item in loaded.items] == [type(item) for item in model.items]
    assert hash(loaded) == hash(model)
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]


def test_labels_that_cannot_be_saved_are_refused_by_name(tmp_path: Path) -> None:
    model = RankingModel([("a", 1), 2.5], [(("a", 1), 2.5)], [1.0])
    with pytest.raises(ValueError, match=r"item \('a', 1\) of type tuple cannot be saved"):
        model.save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


def test_every_truncation_of_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    MODEL.save(path)
    whole = path.read_text()
    for length in range(len(whole) - 1):
        path.write_text(whole[:length])
        with pytest.raises(ValueError, match="may be truncated"):
            RankingModel.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "has version 99, this rankstream reads up to 1: update"),
        ({"version": None}, "damaged model file .*version is None"),
        ({"version": True}, "damaged model file .*version is True"),
        ({"version": 0}, "damaged model file .*version is 0"),
        ({"items": "abc"}, "damaged model file .*not a list"),
        ({"items": [1.5, 2, 3]}, "damaged model file .*not a list"),
        ({"format": "recipe"}, "is not a rankstream model"),
        ({"weights": [0.5, 0.6]}, "damaged model file .*sum to 1"),
        ({"weights": [0.5]}, "damaged model file .*2 rankings"),
        ({"weights": None}, "damaged model file"),
        ({"rankings": [[0, 1, 2], [0, 1, 1]]}, "damaged model file .*does not order all 3"),
        ({"rankings": [["x", "y"]]}, "damaged model file"),
        ({"no_choice": 7}, "damaged model file .*no-choice code 7"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, change: dict[str, object], message: str) -> None:
    path = tmp_path / "model.json"
    MODEL.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=message):
        RankingModel.load(path)


def test_missing_files_are_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        RankingModel.load(tmp_path / "none.json")
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(ValueError, match="is not a rankstream model"):
        RankingModel.load(tmp_path / "list.json")


def test_bad_models_are_refused() -> None:
    with pytest.raises(ValueError, match="holds 'rum', which is not among the items"):
        RankingModel(["a"], [("rum",)], [1.0])
    with pytest.raises(ValueError, match="hold a label twice"):
        RankingModel(["a", "a"], [("a", "a")], [1.0])
    with pytest.raises(ValueError, match="at least 0 and sum to 1"):
        RankingModel("ab", ["ab", "ba"], [1.5, -0.5])
    with pytest.raises(ValueError, match="read-only"):
        MODEL.weights[0] = 1.0
    assert MODEL != "a model"
