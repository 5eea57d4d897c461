import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import t as student_t

from rankstream import Assortments, ChoiceCounts, RankingModel, plots
from rankstream.data import simulate
from rankstream.data.observations import splits
from rankstream.evaluate.compare import MODELS, compare, score
from rankstream.evaluate.comparison import Comparison, Row, Score, ranked, standard_error, student
from rankstream.models.entropy.fit import fit_max_entropy
from rankstream.models.parametric.latent_class import fit_latent_class
from rankstream.models.parametric.mnl import fit_mnl
from rankstream.models.protocol import ChoiceModel

pytestmark = pytest.mark.quick


def sampled(segments: int, size: int, seed: int = 0, n_offers: int = 20, n_items: int = 10) -> ChoiceCounts:
    market = simulate.market(seed, segments=segments, n_offers=n_offers, n_items=n_items, n_test=1)
    counts = ChoiceCounts(market.assortments)
    generator = np.random.default_rng(seed + 1)
    counts.observe_coordinates(simulate.draw_choices(market.assortments, market.frequencies(), size, generator))
    return counts


def as_tallies(counts: ChoiceCounts) -> dict[tuple[frozenset[object], object], float]:
    offers = counts.assortments
    labels = [(frozenset(offer), item) for offer in offers.offers for item in offer]
    return {label: float(tally) for label, tally in zip(labels, counts.tallies, strict=True) if tally}


def test_offers_are_held_out_whole() -> None:
    counts = sampled(5, 500)
    parts = splits(counts, "assortments", folds=6, seed=1)
    held_out = [offer for _, tested in parts for offer in tested.assortments.offers]
    assert len(held_out) == counts.assortments.n_offers
    assert set(held_out) == set(counts.assortments.offers)
    for fitted, tested in parts:
        assert fitted.assortments.items == tested.assortments.items == counts.assortments.items
        assert not set(fitted.assortments.offers) & set(tested.assortments.offers)
        assert as_tallies(fitted) | as_tallies(tested) == as_tallies(counts)


def test_equal_offers_are_held_out_together() -> None:
    offers = Assortments([("a", "b"), ("b", "a"), ("a", "c"), ("b", "c")])
    for fitted, tested in splits(ChoiceCounts(offers, np.arange(8)), folds=3):
        sets = [set(map(frozenset, part.assortments.offers)) for part in (fitted, tested)]
        assert not sets[0] & sets[1]


def test_choices_are_dealt_out_once_each() -> None:
    counts = sampled(5, 10**6)
    total = np.zeros(counts.assortments.n_coordinates)
    for fitted, tested in splits(counts, "choices", folds=4):
        whole = ChoiceCounts(counts.assortments, fitted.tallies)
        assert whole.observations + tested.observations == counts.observations
        assert tested.observations == pytest.approx(250_000, rel=0.01)
        total += counts.tallies - fitted.tallies
    np.testing.assert_array_equal(total, counts.tallies)


def test_huge_counts_are_dealt_out() -> None:
    counts = ChoiceCounts(Assortments([("a", "b"), ("b", "c"), ("a", "c")]), [1e9, 2e9, 5e8, 4e9, 1e9, 1e9])
    parts = splits(counts, "choices", folds=3)
    assert sum(tested.observations for _, tested in parts) == counts.observations


def test_time_tests_on_the_next_period() -> None:
    first = ChoiceCounts(Assortments([("a", "b")]), [3, 1])
    second = ChoiceCounts(Assortments([("b", "a"), ("b", "c")]), [2, 2, 5, 1])
    third = ChoiceCounts(Assortments([("c", "b")]), [1, 1])
    parts = splits([first, ChoiceCounts(first.assortments), second, third], "time")
    assert len(parts) == 2
    assert as_tallies(parts[0][0]) == as_tallies(first)
    assert as_tallies(parts[0][1]) == as_tallies(second)
    assert parts[1][0].observations == 14
    assert as_tallies(parts[1][0])[frozenset("ab"), "a"] == 5
    assert as_tallies(parts[1][1]) == as_tallies(third)
    assert parts[0][0].assortments.items == ("a", "b", "c")
    assert compare([first, second, third], ["mnl", "markov-chain"], holdout="time").observations == 12


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"holdout": "luck"}, "Unknown holdout 'luck'"),
        ({"folds": 1}, "folds is 1"),
        ({"folds": 50}, "set folds=20 or holdout='choices'"),
        ({"holdout": "time"}, "a list of ChoiceCounts"),
        ({"models": ["nonsense"]}, "Unknown model 'nonsense': choose from max-entropy"),
        ({"models": []}, "no model to compare"),
        ({"epsilon": 0.0}, "epsilon is 0.0"),
    ],
)
def test_wrong_arguments_are_named(change: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        compare(sampled(1, 500), **change)  # type: ignore[arg-type]


def test_data_that_cannot_be_split_are_named() -> None:
    offers = Assortments([("a", "b"), ("b", "c")])
    with pytest.raises(ValueError, match="no observations"):
        compare(ChoiceCounts(offers))
    with pytest.raises(ValueError, match=r"count 0\.5 is not a whole number"):
        splits(ChoiceCounts(offers, [0.5, 1, 1, 1]), "choices")
    with pytest.raises(ValueError, match="is 1 offer with choices but 5 folds: set holdout='choices'"):
        splits(ChoiceCounts(Assortments([("a", "b")]), [3, 1]), "assortments")
    with pytest.raises(ValueError, match="are 2 different offers with choices but 3 folds: set folds=2 or"):
        splits(ChoiceCounts(offers, [3, 1, 3, 1]), "assortments", 3)
    with pytest.raises(ValueError, match="too few for 5 folds"):
        splits(ChoiceCounts(offers, [1, 0, 1, 0]), "choices")
    with pytest.raises(ValueError, match="1 periods with choices"):
        splits([ChoiceCounts(offers, [1, 0, 1, 0])], "time")
    with pytest.raises(ValueError, match="give one ChoiceCounts"):
        splits([ChoiceCounts(offers, [1, 0, 1, 0])], "choices")


def test_a_failing_model_is_named() -> None:
    def fails(counts: ChoiceCounts) -> RankingModel:
        raise ValueError(f"{counts.observations} are too hard")

    with pytest.raises(ValueError, match=r"'mine' could not be fitted in fold 1: .* are too hard"):
        compare(sampled(1, 500), {"mine": fails})


def test_scores_by_hand() -> None:
    tested = ChoiceCounts(Assortments([("a", "b"), ("a", "b", "c")]), [3, 1, 0, 4, 4])
    model = RankingModel("abc", ["abc", "bca"], [0.25, 0.75])  # a, b: 1/4, 3/4; a, b, c: 1/4, 3/4, 0
    got = score(model, tested, epsilon=0.1)
    mixed = 3 * np.log(0.275) + np.log(0.725)
    mixed += 4 * np.log(0.9 * 0.75 + 0.1 / 3) + 4 * np.log(0.1 / 3)
    assert got.log_likelihood == pytest.approx(mixed / 12)
    assert got.raw_log_likelihood == -math.inf
    squares = 4 * (0.5**2 + 0.5**2) + 8 * (0.25**2 + 0.25**2 + 0.5**2)
    assert got.rmse == pytest.approx(np.sqrt(squares / (2 * 4 + 3 * 8)))
    assert got.mae == pytest.approx((4 * 1.0 + 8 * 1.0) / (2 * 4 + 3 * 8))


def folds_of(*values: float) -> list[Score]:
    return [Score(value, value, 0.0, 0.0, 0.0, 3) for value in values]


def rows_of(**heights: list[Score]) -> tuple[Row, ...]:
    return ranked(heights, dict.fromkeys(heights, "parameters"))


def test_differences_are_paired() -> None:
    rows = rows_of(low=folds_of(-1.2, -2.3, -3.1), high=folds_of(-1.0, -2.0, -3.0))
    assert [row.name for row in rows] == ["high", "low"]
    assert rows[1].behind == pytest.approx(0.2)
    assert rows[1].behind_error == pytest.approx(np.std([0.2, 0.3, 0.1], ddof=1) / np.sqrt(3))
    assert rows[1].margin == pytest.approx(rows[1].behind_error * student_t.ppf(0.975, 2), rel=1e-4)
    assert rows[0].behind == rows[0].behind_error == 0.0
    assert np.isnan(standard_error(np.array([1.0])))


@pytest.mark.parametrize("folds", [2, 3, 4, 5, 10, 30])
def test_margins_use_student(folds: int) -> None:
    assert student(folds) == pytest.approx(student_t.ppf(0.975, folds - 1), rel=1e-12)
    assert np.isnan(student(1))


def of(rows: tuple[Row, ...]) -> Comparison:
    return Comparison(rows, "assortments", 1e-3, 10, -2.0, -0.5)


def test_verdicts_say_what_the_folds_allow() -> None:
    clear = of(rows_of(a=folds_of(-1.0, -2.0, -3.0), b=folds_of(-1.5, -2.51, -3.49)))
    assert clear.verdict == "a predicts significantly better than b (0.5000 ± 0.0248)."  # 4.3027 * 0.01 / sqrt(3)
    assert repr(clear) == f"Comparison({clear.verdict})"
    table = clear.to_latex().splitlines()
    assert table[0] == r"\begin{tabular}{lrrrrrrr}"
    assert [line.split(" & ")[0] for line in table[4:6]] == [r"\textbf{a}", "b"]
    assert table[5].split(" & ")[2] == r"0.5000 $\pm$ 0.0248"
    assert all(line.endswith(r"\\") for line in (table[2], *table[4:6]))
    assert clear.winner == "a"
    noisy = of(rows_of(a=folds_of(-1.0, -2.0, -3.0), b=folds_of(-1.5, -1.5, -3.1), c=folds_of(-9.0, -10.0, -11.0)))
    assert noisy.verdict.startswith("a is ahead, but not significantly ahead of b (")
    assert ". Significantly behind: c (8.0000 ± 0.0000)." in noisy.verdict
    assert "only model" in of(rows_of(a=folds_of(-1.0))).verdict
    one_fold = of(rows_of(a=folds_of(-1.0), b=folds_of(-5.0), c=folds_of(-6.0)))
    assert "not significantly ahead of b (4.0000 ± nan) and c (5.0000 ± nan)." in one_fold.verdict
    same = of(rows_of(a=folds_of(-1.0, -2.0), b=folds_of(-1.0, -2.0)))
    assert "a predicts as well as b." in same.verdict


def test_a_uniform_guess_takes_part_and_the_first_sentence_says_when_nothing_beats_it() -> None:
    guess = of(rows_of(a=folds_of(-2.0, -2.1, -2.0), uniform=folds_of(-1.0, -1.0, -1.0)))
    assert guess.verdict.startswith("A uniform guess predicts significantly better than a (1.0333 ± ")
    close = of(rows_of(a=folds_of(-1.5, -1.5, -3.1), uniform=folds_of(-1.0, -2.0, -3.0)))
    assert close.verdict.startswith("No model predicts better than a uniform guess, but a (0.0333 ± ")
    near = of(rows_of(a=folds_of(-1.0, -2.0, -3.0), uniform=folds_of(-1.5, -1.5, -3.1)))
    assert near.verdict.startswith(
        "Too few offers were held out to tell any model from a uniform guess: keep the default method. a is ahead, but "
    )
    counts = sampled(1, 500)
    found = compare(counts, ["mnl"], folds=2)
    [row] = [row for row in found.rows if row.name == "uniform"]
    assert row.mean("log_likelihood") == pytest.approx(found.uniform, abs=1e-12)
    mine = compare(counts, {"uniform": fit_mnl}, folds=2)
    assert [row.name for row in mine.rows] == ["uniform"]


def without_times(found: Comparison) -> list[dict[str, object]]:
    return [{key: value for key, value in record.items() if key != "seconds"} for record in found.to_records()]


SMALL_SAMPLE = sampled(5, 500, n_offers=9, n_items=4)


@pytest.fixture(scope="module")
def of_all_models() -> Comparison:
    return compare(SMALL_SAMPLE, folds=2, seed=4)


@pytest.mark.slow
def test_same_seed_same_comparison(of_all_models: Comparison) -> None:
    again = compare(SMALL_SAMPLE, folds=2, seed=4)
    assert without_times(of_all_models) == without_times(again)
    assert {row.name for row in again.rows} == {"uniform", *MODELS}


@pytest.mark.parametrize("holdout", ["assortments", "choices"])
def test_another_seed_holds_out_something_else(holdout: Any) -> None:
    names = ["mnl", "primal-dual"]
    first, again, other = (
        without_times(compare(SMALL_SAMPLE, names, holdout=holdout, folds=2, seed=seed)) for seed in (4, 4, 5)
    )
    assert first == again
    logits = [record["log_likelihood"] for found in (first, other) for record in found if record["model"] == "mnl"]
    assert len(logits) == 2
    assert logits[0] != logits[1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_small_sample_of_a_logit_is_best_served_by_a_logit(seed: int) -> None:
    found = compare(sampled(1, 400, seed), ["primal-dual", "mnl", "markov-chain"])
    assert next(row for row in found.rows if row.name == "mnl").within_noise


@pytest.mark.slow
def test_many_choices_of_a_mixture_are_not_served_by_a_logit() -> None:
    models: dict[str, Callable[[ChoiceCounts], ChoiceModel]] = {
        "max-entropy": lambda counts: fit_max_entropy(counts, "default").model,
        "latent-class": fit_latent_class,
        "mnl": fit_mnl,
    }
    found = compare(sampled(5, 50_000, n_offers=40), models)
    logit = next(row for row in found.rows if row.name == "mnl")
    assert not logit.within_noise
    assert found.uniform < logit.mean("log_likelihood") < found.hindsight


def test_models_plug_in_and_are_watched() -> None:
    seen = []
    mine = {"mine": fit_mnl, "yours": lambda counts: fit_mnl(counts, smoothing=5.0)}
    found = compare(sampled(1, 500), mine, folds=2, watch=lambda *words: seen.append(words))
    assert {row.name for row in found.rows} == {"uniform", "mine", "yours"}
    assert len({len(line) for line in found.table().splitlines()[2:6]}) == 1  # columns stand below each other
    assert seen == [("mine", 0.0), ("yours", 0.25), ("mine", 0.5), ("yours", 0.75)]


@pytest.mark.slow
def test_table_names_everything(of_all_models: Comparison) -> None:
    text = of_all_models.table()
    for word in ("log-likelihood", "rankings", "parameters", "± ", "A uniform guess", of_all_models.verdict, *MODELS):
        assert word in text
    assert max(len(line) for line in text.splitlines()[2 : 3 + len(MODELS)]) <= 120


@pytest.mark.slow
def test_picture_shows_every_model(of_all_models: Comparison) -> None:
    axes = plots.comparison(of_all_models, Figure().subplots())
    assert [label.get_text() for label in axes.get_yticklabels()] == [row.name for row in of_all_models.rows]
    assert of_all_models.winner in axes.get_xlabel()
