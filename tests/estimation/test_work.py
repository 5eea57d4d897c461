"""What a fit is predicted to take, and what "auto" makes of it."""

from itertools import combinations
from math import inf

import numpy as np
import pytest

from rankstream import Assortments, ChoiceCounts, methods
from rankstream.estimation.methods import work
from rankstream.estimation.task import Task
from rankstream.models.entropy.ensemble import CHOICE_FOLDS
from rankstream.models.entropy.fit import SAMPLES
from rankstream.models.entropy.guides import MAX_EXACT_CHOICES
from rankstream.models.entropy.trust import MAX_FOLDS, N_DRAWN_RANKINGS

pytestmark = pytest.mark.quick


def counts_of(n_items: int, size: int, n_offers: int, each: int = 10) -> ChoiceCounts:
    """The first offers of a size and "nothing", chosen from evenly."""
    offers = [(*menu, "nothing") for menu in list(combinations(range(n_items), size))[:n_offers]]
    assortments = Assortments(offers, [*range(n_items), "nothing"])
    return ChoiceCounts(assortments, np.full(assortments.n_coordinates, each))


def picked(counts: ChoiceCounts, budget: float | None = None) -> str:
    return methods.pick(Task(counts.assortments, counts), budget=budget).name


def test_many_offers_of_few_items_get_maximum_entropy() -> None:
    assert picked(counts_of(10, 4, 200)) == "max-entropy"
    assert picked(counts_of(20, 2, 190)) == "max-entropy"  # where its program is sampled


def test_a_budget_moves_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = counts_of(6, 3, 20)
    assert picked(counts, budget=0.0) == "max-entropy"  # as small data take no time
    seconds = work.predict_work(counts)["max-entropy"].seconds
    monkeypatch.setattr(work, "DEFAULT_SECONDS", 0.9 * seconds)
    monkeypatch.setattr(work, "MIN_SECONDS", 0.0)
    assert [picked(counts, budget) for budget in (None, 0.2 * seconds, 0.3 * seconds)] == [
        "nearest", "nearest", "max-entropy",
    ]  # fmt: skip


def test_memory_and_items_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    few = counts_of(20, 2, 190)
    monkeypatch.setattr(work, "MAX_BYTES", 10**6)
    assert "GB" in work.affords_max_entropy(few)[1]
    assert not work.affords_max_entropy(few)[0]
    assert "2 to 64 items" in work.affords_max_entropy(counts_of(65, 1, 65))[1]


def test_more_coordinates_take_more_memory() -> None:
    few, many = (work.predict_work(counts_of(10, 4, number)) for number in (20, 200))
    assert all(few[name].bytes < many[name].bytes for name in ("max-entropy", "mnl", "nearest") if name in few)


@pytest.mark.parametrize("name", sorted(work.SECONDS))
def test_more_of_anything_takes_longer(name: str) -> None:
    small = work.Sizes(8, 30, 120, 1000.0, 200)
    first = work.terms(small)[name]
    assert len(first) == len(work.SECONDS[name])
    larger = [small._replace(offers=60), small._replace(coordinates=240), small._replace(choices=inf)]
    assert all(np.all(np.array(work.terms(one)[name]) >= first) for one in larger)
    assert np.isfinite(work.terms(larger[-1])[name]).all()


def test_an_explanation_names_the_method_and_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = counts_of(5, 2, 10)
    assert methods.explain(counts).startswith("max-entropy: it takes about ")
    monkeypatch.setattr(work, "DEFAULT_SECONDS", 0.5)
    text = methods.explain(counts)
    assert text.startswith("nearest: not max-entropy, as it takes about ")
    assert "and may take 0.5 s" in text


def test_items_with_an_order_are_told_of_no_method_that_refuses_it() -> None:
    offers = Assortments([("tea @ 3", "no"), ("tea @ 4", "no")], order=[("tea @ 3", "tea @ 4")])
    assert set(work.predict_work(ChoiceCounts(offers, [6, 4, 3, 7]))) == {"max-entropy"}
    crossed = Assortments([("a", "b", "c")], order=[("a", "b"), ("a", "c")])
    text = methods.explain(ChoiceCounts(crossed, [1, 1, 1]))
    assert text.startswith("nearest: not max-entropy, as the order of the items is not made of chains.\nnearest, ")


def test_the_time_of_a_fit_is_the_sum_of_its_terms() -> None:
    """Worked out by hand for 200 choices from 6 of 5 items in 3 offers each of 4 and "nothing"."""
    sizes = work.Sizes(6, 3, 15, 32.0, 7)
    steps = 32.0**0.35
    assert work.terms(sizes) == {
        "max-entropy": pytest.approx((1.0, 3 * 15 * steps, 3 * 3 * 216 * steps, 7 * 36, 0)),
        "latent-class": pytest.approx((1.0, 15 * steps)),
        "markov-chain": pytest.approx((1.0, 3 * 216 * steps)),
        "mnl": pytest.approx((1.0, 3 * 36)),
    }
    ordered = work.terms(sizes._replace(ordered=True))
    assert ordered == {"max-entropy": pytest.approx((5.0, 3 * 15 * steps, 0.0, 7 * 6, 0))}
    assert work.terms(sizes._replace(sets=0))["max-entropy"][3:] == (0, 15)
    many = work.terms(sizes._replace(choices=1e30))["latent-class"][1]
    assert many == pytest.approx(15 * MAX_EXACT_CHOICES**0.35)


def test_sizes_count_the_unions_of_offers() -> None:
    offers = Assortments([("a", "no"), ("b", "no"), ("c", "no"), ("a", "b", "no")])
    found = work.sizes_of(ChoiceCounts(offers, [1, 2, 3, 4, 0, 0, 1, 1, 1]))
    # of a, b and a, b with "no" (nobody has seen c), and of nothing
    assert found == work.Sizes(found.items, 3, 7, 13.0, found.sets)
    assert found.sets in (3, 4)


def test_work_is_predicted_in_seconds_and_bytes() -> None:
    counts = counts_of(4, 2, 6, each=2)
    sizes = work.sizes_of(counts)
    found = work.predict_work(counts)
    for name, amounts in work.terms(sizes).items():
        assert found[name].seconds == pytest.approx(float(np.dot(work.SECONDS[name], amounts)))
    assert found["mnl"].bytes == 100.0 * sizes.coordinates
    assert found["max-entropy"].bytes == sizes.sets * (8.0 * 5 * 14 + 1500.0)
    assert sizes.sets > 0


def test_sampled_rankings_take_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "QUICK_STATES", 3)
    counts = counts_of(4, 2, 6)
    assert work.sizes_of(counts).sets == 0
    rankings = SAMPLES + (MAX_FOLDS + CHOICE_FOLDS) * N_DRAWN_RANKINGS
    assert work.predict_work(counts)["max-entropy"].bytes == 8.0 * 18 * rankings


@pytest.mark.parametrize(
    ("seconds", "size", "words"),
    [
        (9.99, 0.0, "about 10 s and 0.01 GB"),
        (10.0, 2**30, "about 10 s and 1 GB"),
        (1234.5, 2**31, "about 1,234 s and 2 GB"),
    ],
)
def test_predictions_in_words(seconds: float, size: float, words: str) -> None:
    assert str(work.PredictedWork(seconds, size)) == words


def test_a_budget_is_overrun_four_times_and_ten_seconds_are_always_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = counts_of(4, 2, 6)

    def affords(seconds: float, size: float, budget: float | None) -> tuple[bool, str]:
        monkeypatch.setattr(work, "predict_work", lambda _: {"max-entropy": work.PredictedWork(seconds, size)})
        return work.affords_max_entropy(counts, budget)

    assert [affords(seconds, 0.0, None)[0] for seconds in (60.0, 60.1)] == [True, False]
    assert [affords(seconds, 0.0, 20.0)[0] for seconds in (80.0, 80.1)] == [True, False]
    assert [affords(seconds, 0.0, 1.0)[0] for seconds in (10.0, 10.1)] == [True, False]
    assert [affords(1.0, size, None)[0] for size in (2.0**31, 2.0**31 + 1.0)] == [True, False]
    assert affords(1.0, 2.5 * 2**30, None)[1] == "it needs 2.5 GB, and may have 2"
    assert affords(1.0, 0.0, 20.0)[1] == "it takes about 1 s and 0.01 GB, and may take 80 s"
    one = ChoiceCounts(Assortments([("a",)]), [3])
    assert work.affords_max_entropy(one) == (False, "it needs 2 to 64 items, and there are 1")
