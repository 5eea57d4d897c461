"""A comparison from given scores: the ranking, the margins, the verdict and the tables."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rankstream import Assortments, ChoiceCounts, RankingModel
from rankstream.estimation.methods import Logit
from rankstream.evaluate.compare import _size, compare, fit_by_method, score
from rankstream.evaluate.comparison import Comparison, Score, ranked, standard_error, student
from rankstream.evaluate.customer_types import TypeChange, _sorted

pytestmark = pytest.mark.quick


def scores(*heights: float, seconds: float = 1.0) -> list[Score]:
    return [
        Score(height, height - 1.0, 0.2 + place, 0.1, seconds + place, 3 + place)
        for place, height in enumerate(heights)
    ]


def compared(**models: list[Score]) -> Comparison:
    rows = ranked(models, {name: "" if name == "uniform" else "types" for name in models})
    return Comparison(rows, "time", 0.001, 1234.56, -1.3863, -0.75)


def test_models_are_ranked_by_their_mean_with_paired_differences() -> None:
    found = compared(low=scores(-2.0, -2.2, -1.8), high=scores(-1.0, -1.4, -0.9), middle=scores(-1.2, -1.4, -1.0))
    assert [row.name for row in found.rows] == ["high", "middle", "low"]
    first, second, third = found.rows
    assert (first.behind, first.behind_error, first.margin) == (0.0, 0.0, 0.0)
    assert second.behind == pytest.approx(0.1)
    assert second.behind_error == pytest.approx(np.std([0.2, 0.0, 0.1], ddof=1) / np.sqrt(3.0))
    assert second.margin == pytest.approx(4.302653 * second.behind_error)
    assert (second.within_noise, third.within_noise, first.within_noise) == (True, False, True)
    assert third.mean("rmse") == pytest.approx(1.2)
    assert third.error("log_likelihood") == pytest.approx(0.2 / np.sqrt(3.0))
    assert third.seconds == 2.0
    assert found.winner == "high"


def test_one_fold_has_no_error() -> None:
    assert np.isnan(standard_error(np.array([1.0])))
    assert np.isnan(student(1))
    assert student(2) == pytest.approx(12.7062, abs=1e-4)
    assert standard_error(np.array([1.0, 3.0])) == pytest.approx(1.0)
    assert compared(a=scores(-1.0), b=scores(-2.0)).rows[1].within_noise  # as nothing is known


def test_verdicts() -> None:
    near, best, far = scores(-1.2, -1.4, -1.0), scores(-1.0, -1.4, -0.9), scores(-3.0, -3.2, -2.8)
    assert compared(a=best).verdict == "a is the only model: there is nothing to compare it with."
    assert compared(a=best, c=far).verdict.startswith("a predicts significantly better than c (1.9")
    assert compared(uniform=best, c=far).verdict.startswith("A uniform guess predicts significantly better than c")
    words = compared(a=best, b=near, c=far).verdict
    assert words.startswith("a is ahead, but not significantly ahead of b (0.1000 ± 0.2484).")
    assert " Significantly behind: c (1.9" in words
    assert compared(a=best, uniform=near).verdict.startswith("Too few periods were held out to tell any model")
    assert "close" in compared(uniform=best, b=near).verdict
    assert " b (0.1000 ± 0.2484) is close" in compared(uniform=best, b=near).verdict
    both = compared(uniform=best, b=near, d=near).verdict
    assert "b (0.1000 ± 0.2484) and d (0.1000 ± 0.2484) are close." in both
    three = compared(a=best, b=near, d=near, e=near).verdict
    assert "b (0.1000 ± 0.2484), d (0.1000 ± 0.2484) and e (0.1000 ± 0.2484)." in three


def test_tables_have_the_numbers_of_every_model() -> None:
    found = compared(
        a=scores(-1.0, -1.4, -0.9), a_long_name_of_a_model=scores(-1.2, -1.4, -1.0), uniform=scores(-3.0, -3.2, -2.8)
    )
    verdict, _, *lines = found.table().splitlines()
    assert lines[1].split() == [
        "a",
        "-1.1000",
        "±",
        "0.6572",
        "-",
        "-2.1000",
        "1.2000",
        "0.1000",
        "2.000",
        "4",
        "types",
    ]
    assert lines[2].split()[:7] == ["a_long_name_of_a_model", "-1.2000", "±", "0.4968", "0.1000", "±", "0.2484"]
    assert lines[3].endswith(f"{'-':>16}")
    assert len({len(line) for line in lines[:4]}) == 1
    assert "0.1 % of a uniform guess" in lines[5]
    assert "3 folds" in lines[5]
    assert "1,234.6 choices" in lines[5]
    assert "-1.3863" in lines[5]
    assert "-0.7500" in lines[5]
    assert verdict == found.verdict
    latex = found.to_latex().splitlines()
    assert latex[0] == r"\begin{tabular}{lrrrrrrr}"
    assert latex[4].startswith(r"\textbf{a} & -1.1000 $\pm$ 0.6572 & - & ")
    assert latex[5].startswith(r"\textbf{a\_long\_name\_of\_a\_model} & ")
    assert latex[6].startswith("uniform & ")
    record = found.to_records()[1]
    assert record["rmse_error"] == pytest.approx(1.0 / np.sqrt(3.0))
    assert "raw_log_likelihood_error" not in record
    assert (record["folds"], record["unit"], record["size"], record["within_noise"]) == (3, "types", 4.0, True)
    content = found.to_json()
    assert (content["winner"], content["holdout"], content["epsilon"]) == ("a", "time", 0.001)
    assert [one["model"] for one in content["models"]] == ["a", "a_long_name_of_a_model", "uniform"]


def test_types_are_new_where_less_than_a_tenth_was_there() -> None:
    given = [
        TypeChange(("new",), 0.0099, 0.1), TypeChange(("grew",), 0.05, 0.5), TypeChange(("gone",), 0.2, 0.0199),
        TypeChange(("shrank",), 0.5, 0.05), TypeChange(("same",), 0.2, 0.2), TypeChange(("little",), 0.2, 0.205),
        TypeChange(("more",), 0.3, 0.5), TypeChange(("exactly",), 0.5, 0.51), TypeChange(("none",), 0.0, 0.0),
    ]  # fmt: skip
    found = _sorted(given, 0.51 - 0.5)
    names = {
        word: [one.ranking[0] for one in getattr(found, word)] for word in ("appeared", "vanished", "grew", "shrank")
    }
    assert names == {
        "appeared": ["new"], "vanished": ["gone"], "grew": ["grew", "more", "exactly"], "shrank": ["shrank"],
    }  # fmt: skip
    assert found.to_json()["appeared"] == [{"ranking": ["new"], "before": 0.0099, "after": 0.1}]
    assert str(found).splitlines()[0] == "appeared: new, 1.0 % to 10.0 %"
    assert str(_sorted([], 0.025)) == "no type changed by 2.5 points"


class Fixed:
    """A model that predicts these shares, whatever it is asked."""

    def __init__(self, *shares: float) -> None:
        self.shares = np.array(shares)

    def probabilities(self, _: Assortments) -> np.ndarray:
        return self.shares


def test_scores_are_by_choice() -> None:
    tested = ChoiceCounts(Assortments([("a", "b"), ("b", "c", "d")]), [6, 2, 1, 0, 1])
    found = score(Fixed(0.5, 0.5, 0.2, 0.2, 0.6), tested, 0.1, 2.5, 7)  # type: ignore[arg-type]
    mixed = 0.9 * np.array([0.5, 0.5, 0.2, 0.2, 0.6]) + 0.1 * np.array([0.5, 0.5, 1 / 3, 1 / 3, 1 / 3])
    tallies = np.array([6.0, 2.0, 1.0, 0.0, 1.0])
    assert found.log_likelihood == pytest.approx(tallies @ np.log(mixed) / 10.0)
    assert found.raw_log_likelihood == pytest.approx((8 * np.log(0.5) + np.log(0.2) + np.log(0.6)) / 10.0)
    apart, weights = np.array([0.25, 0.25, 0.3, 0.2, 0.1]), np.array([8.0, 8.0, 2.0, 2.0, 2.0])
    assert found.mae == pytest.approx(apart @ weights / 22.0)
    assert found.rmse == pytest.approx(np.sqrt(apart**2 @ weights / 22.0))
    assert (found.seconds, found.size) == (2.5, 7)
    for wrong in (Fixed(0.5, 0.5), Fixed(0.5, 0.5, -0.1, 0.5, 0.6)):
        with pytest.raises(ValueError, match="does not give a probability"):
            score(wrong, tested)  # type: ignore[arg-type]


def test_fits_are_timed_and_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["rankstream.evaluate.compare"], "perf_counter", Ticks(2.0))
    counts, seen = ChoiceCounts(Assortments([("a", "b"), ("b", "c")]), [60, 40, 30, 70]), list[tuple[str, float]]()
    models = {name: lambda _: RankingModel(["a", "b", "c"], [("a", "b", "c")], [1.0]) for name in ("one", "two")}
    found = compare(counts, models, holdout="choices", folds=2, watch=lambda name, done: seen.append((name, done)))
    assert seen == [("one", 0.0), ("two", 0.25), ("one", 0.5), ("two", 0.75)]
    assert {row.name: row.seconds for row in found.rows} == {"one": 2.0, "two": 2.0, "uniform": 0.0}
    assert {row.name: (row.mean("size"), row.unit) for row in found.rows}["one"][0] == 1.0
    assert found.observations == 200.0


class Ticks:
    """A clock that advances by a step whenever it is read."""

    def __init__(self, step: float) -> None:
        self.step, self.now = step, 5000.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def test_a_model_counts_its_parameters_or_rankings_or_nothing() -> None:
    rankings = RankingModel("ab", [("a", "b"), ("b", "a")], [0.5, 0.5])
    assert _size(rankings) == (2, "rankings")
    assert _size(SimpleNamespace(n_parameters=7, weights=[1.0])) == (7, "parameters")
    assert _size(SimpleNamespace()) == (0, "")


def test_the_method_auto_is_picked_for_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = ChoiceCounts(Assortments([("a", "b"), ("b", "c"), ("x", "y")]), [5, 3, 2, 4, 0, 0])
    tasks: list[Any] = []

    def picked(task: Any) -> Any:
        tasks.append(task)
        return Logit()

    monkeypatch.setattr("rankstream.evaluate.compare.pick", picked)
    assert fit_by_method("auto", counts, seed=3).items == fit_by_method("mnl", counts, seed=3).items
    assert [(task.seed, task.assortments.offers) for task in tasks] == [(3, (("a", "b"), ("b", "c")))]
