"""What a fit is predicted to take, and what "auto" makes of it."""

from itertools import combinations
from math import inf

import numpy as np
import pytest

from rankstream import Assortments, ChoiceCounts, methods
from rankstream.estimation.methods import work
from rankstream.estimation.task import Task

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
