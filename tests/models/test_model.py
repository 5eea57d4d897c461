import json
import pickle
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import rankstream as rs
import strategies
from rankstream import Assortments, RankingModel, load_model
from rankstream.models import files
from rankstream.models.parametric.mnl import LogitModel

pytestmark = pytest.mark.quick

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


def test_taking_nothing_is_in_every_prediction_unless_the_choice_is_forced() -> None:
    items = ["tea", "pie", "no"]
    model = rs.RankingModel(items, [("tea", "no", "pie"), ("no", "pie", "tea")], [0.7, 0.3], no_choice_code=2)
    assert model.predict(["tea"]) == pytest.approx({"tea": 0.7, "no": 0.3})
    assert model.predict(["tea", "pie"], forced=True) == pytest.approx({"tea": 0.7, "pie": 0.3})
    assert model.predict(("no", "tea")) == model.predict(["tea"])
    assert set(model.sample(["tea"], 50)) == {"tea", "no"}
    counts = rs.ChoiceCounts(rs.Assortments([("pie", "no"), ("tea", "no")]), [30, 20, 70, 30])
    refits = rs.Bootstrap(counts, "mnl", replicates=2)
    assert list(refits.predict(("tea",))) == ["tea", "no"]
    assert list(refits.predict(("tea",), forced=True)) == ["tea"]


def test_an_item_that_merely_was_in_every_offer_is_not_added() -> None:
    counts = rs.ChoiceCounts(rs.Assortments([("tea", "pie"), ("pie", "cake")]), [60, 20, 10, 10])
    model = rs.estimate(counts, method="mnl").model
    assert set(model.predict(("tea", "cake"))) == {"tea", "cake"}  # what if there is no pie?
    assert set(model.note(reading={"no_choice": "pie"}).predict(("tea", "cake"))) == {"tea", "cake", "pie"}


def test_with_prices_taking_nothing_is_added_and_an_item_that_is_sold_everywhere_is_not() -> None:
    labels = ["tea @ 3.00", "tea @ 4.00", "no"]
    model = rs.RankingModel(labels, [("tea @ 3.00", "no", "tea @ 4.00"), labels], [0.25, 0.75], no_choice_code=2)
    assert model.predict({"tea": 4}) == pytest.approx({"tea": 0.75, "no": 0.25})
    assert model.predict({"tea": 4}, forced=True) == {"tea": 1.0}
    sold = rs.RankingModel(["tea @ 3.00", "pie"], [("tea @ 3.00", "pie")], [1.0], no_choice_code=0)
    assert sold.predict({"pie": None}) == {"pie": 1.0}


def test_predict_sums_to_one_and_refuses_unknown_items() -> None:
    assert MODEL.predict(("tea", "pie", "nothing")) == {"tea": 0.75, "pie": 0.25, "nothing": 0.0}
    assert MODEL.predict(["nothing"]) == {"nothing": 1.0}
    with pytest.raises(ValueError, match="has no item 'rum'"):
        MODEL.predict(("tea", "rum"))
    empty: list[Any] = [(), {}]
    for nothing in empty:
        with pytest.raises(ValueError, match=r"(The offer|Offer 0) is empty"):
            MODEL.predict(nothing)


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
    for load in (RankingModel.load, load_model):
        for missing in (tmp_path / "none.json", tmp_path):
            with pytest.raises(ValueError, match=f"There is no model file {re.escape(str(missing))}: give one"):
                load(missing)
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(ValueError, match="is not a rankstream model"):
        RankingModel.load(tmp_path / "list.json")


LOGIT = {"attraction": [0.5, 0.25, 0.25]}
CLASSES = {"mixture": [0.5, 0.5], "attraction": [[0.5, 0.25, 0.25], [0.2, 0.2, 0.6]]}
CHAIN = {"arrival": [0.5, 0.25, 0.25], "transitions": [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]}
ENTROPY = {
    "offers": [[0, 2], [1, 2]],
    "duals": [0.5, 0.0, -0.5, 0.0],
    "prior": {
        "class_weights": [0.5], "attraction": [[0.5, 0.25, 0.25]], "chain_weights": [0.5],
        "arrivals": [[0.5, 0.25, 0.25]], "moves": [CHAIN["transitions"]],
    },
}  # fmt: skip
FITTED = {"log_likelihood": -7.0, "iterations": 3, "converged": True, "n_parameters": 2, "no_choice_code": 2}
KINDS: dict[str, dict[str, Any]] = {
    "model": {"no_choice": 2, "rankings": [[0, 2, 1], [1, 0, 2]], "weights": [0.75, 0.25]},
    "entropy-model": ENTROPY,
    "logit-model": LOGIT | FITTED,
    "latent-class-model": CLASSES | FITTED,
    "markov-chain-model": CHAIN | FITTED,
}
"""What a file of every kind holds, besides format, version and items."""


def numbers(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a parsed file has numbers."""
    if isinstance(content, dict | list):
        pairs = content.items() if isinstance(content, dict) else enumerate(content)
        for key, value in pairs:
            yield from numbers(value, (*path, key))
    elif isinstance(content, int | float) and not isinstance(content, bool):
        yield path


def changed(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The same with another value in one place."""
    content = json.loads(json.dumps(content))
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return content


def load_content(content: Any, path: Path) -> Any:
    path.write_text(json.dumps(content))
    return load_model(path)


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_every_kind_are_read_whole_or_refused(kind: str, tmp_path: Path) -> None:
    whole = {"format": f"rankstream-{kind}", "version": 1, "items": ITEMS, **KINDS[kind]}
    model = load_content(whole, tmp_path / "model.json")
    assert sum(model.predict(ITEMS).values()) == pytest.approx(1.0)
    assert (model.no_choice, model.about) == ("nothing", {})
    for key in whole:
        with pytest.raises(ValueError, match=r"damaged model file|is not a rankstream model"):
            load_content({name: value for name, value in whole.items() if name != key}, tmp_path / "model.json")
    for path in numbers(KINDS[kind]):
        wrong: tuple[Any, ...] = (-0.5, 1e308, float("nan"), float("inf"), 2**70, "tea", None, [], [0.5], {})
        for value in wrong:
            free = path[0] in ("log_likelihood", "duals", "iterations", "n_parameters")  # any number will do
            if (value is None and path[0].startswith("no_choice")) or (free and isinstance(value, int | float)):
                continue
            with pytest.raises(ValueError, match=r"damaged model file \([^\n]+\): save the model again\.$"):
                load_content(changed(whole, path, value), tmp_path / "model.json")


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        *((kind, {"no_choice" if kind == "model" else "no_choice_code": code})
          for kind in KINDS if kind != "entropy-model" for code in (1.0, True, 3, -1, "2")),
        ("logit-model", {"attraction": [[0.5, 0.25, 0.25]]}),
        ("logit-model", {"attraction": [0.5, 0.5]}),
        ("logit-model", {"log_likelihood": float("nan")}),
        ("logit-model", {"iterations": 1.5}),
        ("logit-model", {"converged": "yes"}),
        ("latent-class-model", {"mixture": [1.0]}),
        ("latent-class-model", {"mixture": [0.5, 0.25, 0.25]}),
        ("latent-class-model", {"attraction": [0.5, 0.25, 0.25, 0.2, 0.2, 0.6]}),
        ("markov-chain-model", {"transitions": [0.0, 0.5, 0.5, 0.5, 0.0, 0.5, 0.5, 0.5, 0.0]}),
        ("markov-chain-model", {"transitions": [[0.5, 0.5], [0.5, 0.5]]}),
        ("entropy-model", {"duals": [0.5, 0.0]}),
        ("entropy-model", {"duals": [1e308, 1e308, 1e308, 1e308]}),
        ("entropy-model", {"duals": [float("nan"), 0.0, 0.0, 0.0]}),
        ("entropy-model", {"offers": [[0, 7], [1, 2]]}),
        ("entropy-model", {"offers": [[0.0, 2.0], [1, 2]]}),
        ("entropy-model", {"prior": ENTROPY["prior"] | {"moves": [np.eye(3).tolist()]}}),  # type: ignore[operator]
        *((kind, {"about": ["tea"]}) for kind in KINDS),
    ],
)  # fmt: skip
def test_numbers_of_the_wrong_kind_or_shape_are_refused(kind: str, change: dict[str, Any], tmp_path: Path) -> None:
    whole = {"format": f"rankstream-{kind}", "version": 1, "items": ITEMS, **KINDS[kind], **change}
    with pytest.raises(ValueError, match=r"damaged model file \([^\n]+\): save the model again\.$"):
        load_content(whole, tmp_path / "model.json")


def test_a_file_without_memory_for_it_is_refused_with_the_kind_of_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {"format": "rankstream-logit-model", "version": 1, "items": ITEMS, **KINDS["logit-model"]}

    def fail(_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(LogitModel, "from_content", fail)
    with pytest.raises(ValueError, match=r"damaged model file \(MemoryError\): save the model again\.$"):
        load_content(whole, tmp_path / "model.json")


def test_what_is_noted_may_be_called_anything_that_a_file_can_hold(tmp_path: Path) -> None:
    facts = {"self": 1, "facts": [None], "": {"a": 0.5}}
    whole = {"format": "rankstream-logit-model", "version": 1, "items": ITEMS, "about": facts, **KINDS["logit-model"]}
    model = load_content(whole, tmp_path / "model.json")
    assert model.about == facts
    assert pickle.loads(pickle.dumps(model)).about == facts
    assert pickle.loads(pickle.dumps(MODEL.relabel(ITEMS).note(**facts))).about == facts
    with pytest.raises(ValueError, match=r"The model's notes cannot be saved \(.*bytes"):
        model.note(raw=b"").save(tmp_path / "other.json")
    assert not (tmp_path / "other.json").exists()
    with pytest.raises(ValueError, match="has the format 'rankstream-oracle', which is none of 'rankstream-model'"):
        load_content(whole | {"format": "rankstream-oracle"}, tmp_path / "model.json")


def test_an_offer_that_a_model_never_comes_to_is_named(tmp_path: Path) -> None:
    whole = {"format": "rankstream-logit-model", "version": 1, "items": ITEMS, **KINDS["logit-model"]}
    logit = load_content(whole | {"attraction": [1.0, 0.0, 0.0]}, tmp_path / "model.json")
    assert logit.predict(("tea", "pie"), forced=True) == {"tea": 1.0, "pie": 0.0}
    chain = load_content(
        whole | CHAIN | {"format": "rankstream-markov-chain-model", "transitions": np.eye(3).tolist()},
        tmp_path / "model.json",
    )
    assert chain.predict(ITEMS) == {"tea": 0.5, "pie": 0.25, "nothing": 0.25}
    for model in (logit, chain):
        with pytest.raises(ValueError, match=r"cannot predict the offer \('pie', 'nothing'\)"):
            model.predict(("pie", "nothing"))


def test_bad_models_are_refused() -> None:
    with pytest.raises(ValueError, match="contains 'rum', which is not among the items"):
        RankingModel(["a"], [("rum",)], [1.0])
    with pytest.raises(ValueError, match="include a label twice"):
        RankingModel(["a", "a"], [("a", "a")], [1.0])
    with pytest.raises(ValueError, match="at least 0 and sum to 1"):
        RankingModel("ab", ["ab", "ba"], [1.5, -0.5])
    with pytest.raises(ValueError, match="read-only"):
        MODEL.weights[0] = 1.0
    assert MODEL != "a model"


@pytest.mark.parametrize(("place", "name"), [kind.place.split(":") for kind in files.KINDS.values()])
def test_every_kind_of_model_file_has_a_reader(place: str, name: str) -> None:
    assert hasattr(getattr(import_module(f"rankstream.models.{place}"), name), "read")
