"""The best offers of a logit by sorting, against every offer and against other exact engines."""

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from decide_cases import make_model, offer_mask
from naive_decide import Constraints, ranked_offers
from rankstream._core.types import Label
from rankstream._core.watch import unwatched
from rankstream.decide import best_offer
from rankstream.decide.engines.logit import suits
from rankstream.decide.engines.selection import all_offers, by_sorting
from rankstream.decide.offer_values import values
from rankstream.decide.problem.offers import make_problem
from rankstream.models.parametric.mnl import LogitModel
from strategies import compiled_only


@st.composite
def questions(draw: st.DrawFn) -> tuple[LogitModel, dict[Label, float], Constraints]:
    """A logit, margins, and what sorting can take: sizes, must and never."""
    n, nothing = draw(st.integers(2, 7)), draw(st.booleans())
    model = make_model("logit", n, nothing, draw(st.integers(0, 10**6)))
    own = [item for item in model.items if item != model.no_choice]
    margins: dict[Label, float] = {item: draw(st.integers(-3, 9)) / 2 for item in own}
    said: Constraints = {}
    for name, some in {
        "at_most": st.integers(0, n), "at_least": st.integers(0, 3),
        "must": st.lists(st.sampled_from(own), max_size=1), "never": st.lists(st.sampled_from(own), max_size=2),
    }.items():  # fmt: skip
        if draw(st.booleans()):
            said[name] = draw(some)
    return model, margins, said


@settings(max_examples=150)
@given(questions(), st.integers(1, 8))
def test_sorting_finds_the_best_offers_of_brute_force(
    question: tuple[LogitModel, dict[Label, float], Constraints], top: int
) -> None:
    model, margins, said = question
    wanted = ranked_offers(model, margins, said)
    if not wanted:
        return
    problem = make_problem(model, margins, **said)
    found = by_sorting(problem, top, unwatched)
    assert found.values == pytest.approx([value for value, _ in wanted[:top]], abs=1e-12)
    assert found.bound == found.values[0]
    assert found.proven
    assert len({held.tobytes() for held in found.offers}) == len(found.offers)
    assert all(problem.is_feasible(held) for held in found.offers)
    assert values(problem, found.offers) == pytest.approx(found.values, abs=1e-12)
    best: dict[int, float] = {}
    for value, offer in wanted:
        best.setdefault(len(offer), value)
    assert callable(found.sizes)
    assert found.sizes() == pytest.approx(best, abs=1e-12)


@compiled_only
@pytest.mark.parametrize("said", [{"at_most": 4}, {"at_least": 9, "never": ["i3"]}, {"must": ["i1"], "at_most": 5}])
def test_sorting_agrees_with_a_table_of_all_offers(said: Constraints) -> None:
    model = make_model("logit", 17, True, 5)
    random = np.random.default_rng(5)
    margins: dict[Label, float] = {item: float(random.uniform()) for item in model.items[1:]}
    problem = make_problem(model, margins, **said)
    slow, quick = all_offers(problem, 10), by_sorting(problem, 10, unwatched)
    assert quick.values == pytest.approx(slow.values, abs=1e-9)
    found = best_offer(model, margins, top=10, **said)
    assert found.engine == "sorting"
    assert found.value == pytest.approx(slow.values[0], abs=1e-9)
    assert found.by_size == pytest.approx(slow.sizes, abs=1e-9)
    assert found.to_json()["by_size"]


def test_a_logit_of_any_size_is_proven() -> None:
    """Without sizes the best offer is the items above some margin; with one no exchange may improve it."""
    model = make_model("logit", 300, True, 2)
    random = np.random.default_rng(2)
    margins: dict[Label, float] = {item: float(random.uniform()) for item in model.items[1:]}
    problem = make_problem(model, margins)
    ordered = sorted(margins, key=lambda item: -margins[item])
    prefixes = [offer_mask(ordered[:size], model.items) for size in range(300)]
    found = best_offer(model, margins)
    assert found.proven
    assert found.value == pytest.approx(float(values(problem, prefixes).max()))
    few = best_offer(model, margins, at_most=7)
    assert few.proven
    assert len(few.offer) == 7
    rivals = [
        offer_mask({*few.offer, new} - {gone}, model.items)
        for gone in few.offer
        for new in set(margins) - set(few.offer)
    ]
    assert few.value >= float(values(problem, rivals).max()) - 1e-12


@pytest.mark.parametrize(
    "said",
    [{"listing_costs": 0.1}, {"space": 1.0, "capacity": 3}, {"requires": [("i1", "i2")]}, {"excludes": [("i1", "i2")]}],
)
def test_what_sorting_cannot_take_goes_elsewhere(said: dict[str, Any]) -> None:
    model = make_model("logit", 5, True, 0)
    assert suits(make_problem(model, 1.0, at_most=2))
    assert not suits(make_problem(model, 1.0, **said))
    assert not suits(make_problem(make_model("latent", 5, True, 0), 1.0))


@pytest.mark.parametrize(("stops", "calls", "number"), [(1, 1, 1), (3, 3, 3), (9, 4, 5)])
def test_sorting_ends_where_it_is_told_to(stops: int, calls: int, number: int) -> None:
    """It asks after every offer but the last one that is wanted."""
    model = make_model("logit", 6, True, 5)
    problem = make_problem(model, {item: float(place) for place, item in enumerate(model.items[1:])})
    said: list[str] = []

    def count(words: str) -> bool:
        said.append(words)
        return len(said) == stops

    watch: Any = count

    found = by_sorting(problem, 5, watch)
    assert (len(said), len(found.offers)) == (calls, number)
    best = by_sorting(problem, 5, unwatched).values
    assert found.values == pytest.approx(best[:number])
    assert said == [f"{place + 1} offers, the last worth {best[place]:.6g}" for place in range(calls)]
