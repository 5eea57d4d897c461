from typing import Any
from unittest.mock import patch

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from decide_cases import KINDS, cases, make_model
from naive_decide import Constraints, ranked_offers, worth
from offer_programs import best_by_milp
from rankstream import RankingModel
from rankstream._core.types import Label
from rankstream._core.watch import unwatched
from rankstream.decide import best_offer, value
from rankstream.decide.engines import branch, selection
from rankstream.decide.engines.lists import make_lists
from rankstream.decide.engines.selection import all_offers, branch_and_bound, by_sampling, one_by_one
from rankstream.decide.problem.offers import make_problem


@settings(max_examples=250)
@given(cases(), st.integers(1, 4))
def test_the_best_offers_are_those_of_brute_force(case: tuple[Any, dict[Label, float], Constraints], top: int) -> None:
    model, margins, said = case
    wanted = ranked_offers(model, margins, said)
    if not wanted:
        with pytest.raises(ValueError, match=r"contradict|No offer meets|fill|may be in it|both must and never"):
            best_offer(model, margins, **said)
        return
    found = best_offer(model, margins, top=top, **said)
    values = [found.value, *(runner.value for runner in found.runners_up)]
    assert values == pytest.approx([pair[0] for pair in wanted[:top]], abs=1e-9)
    assert found.proven
    assert found.bound == found.value
    assert found.engine == "all offers"
    assert worth(model, found.offer, margins, said.get("listing_costs", {})) == pytest.approx(found.value, abs=1e-9)
    best: dict[int, float] = {}
    for one, offer in wanted:
        best.setdefault(len(offer), one)
    assert found.by_size == pytest.approx(best, abs=1e-9)
    assert found.shares == pytest.approx(model.predict(found.menu) if found.menu else {})


@settings(max_examples=150)
@given(cases(("rankings",)), st.integers(1, 3), st.sampled_from([0, 2, 20]))
def test_branch_and_bound_finds_and_proves_the_best_offers(
    case: tuple[Any, dict[Label, float], Constraints], top: int, table: int
) -> None:
    model, margins, said = case
    wanted = ranked_offers(model, margins, said)
    if not wanted:
        return
    problem = make_problem(model, margins, **said)
    with patch.object(branch, "MAX_TABLE_ITEMS", table):  # the most items of a part that are decided by a table
        found = branch_and_bound(problem, top, 60.0, 0, unwatched)
    assert found.proven
    assert found.values == pytest.approx([pair[0] for pair in wanted[:top]], abs=1e-7)
    assert found.bound == found.values[0]
    assert all(problem.is_feasible(held) for held in found.offers)
    assert callable(found.sizes)
    assert max(found.sizes().values()) == pytest.approx(wanted[0][0], abs=1e-7)


def test_a_table_of_a_part_keeps_the_room_that_is_left() -> None:
    model = RankingModel(
        ("a", "b", "c", "no"), [("b", "no", "a", "c"), ("c", "no", "a", "b")], [0.5, 0.5], no_choice_code=3
    )
    problem = make_problem(model, 1.0, space={"a": 2, "b": 1.5, "c": 1.5}, capacity=4)
    search = branch.Branching(make_lists(model, problem), problem)
    whole = branch.Node(
        np.zeros(3, dtype=np.int8), np.arange(3), search.lists.arrays, np.zeros(search.lists.item.size), 0.0, np.inf,
    )  # fmt: skip
    search._try_all(search._shrunk(whole, np.array([1, 0, 0], dtype=np.int8)))
    assert list(search.found.values()) == [0.5]  # beside a there is room for b or c, not for both


@settings(max_examples=30)
@given(cases(("rankings",)), st.sampled_from(["bertsimas-misic", "exclusion-set"]))
def test_the_referee_agrees(case: tuple[Any, dict[Label, float], Constraints], form: Any) -> None:
    model, margins, said = case
    wanted = ranked_offers(model, margins, said)
    if not wanted:
        return
    problem = make_problem(model, margins, **said)
    if problem.free.size:
        found = best_by_milp(model, problem, form)
        assert found.optimal
        assert found.value == pytest.approx(wanted[0][0], abs=1e-6)
        assert problem.is_feasible(found.offer_mask)


@settings(max_examples=40)
@given(cases())
def test_all_offers_one_by_one_are_those_of_the_table(case: tuple[Any, dict[Label, float], Constraints]) -> None:
    model, margins, said = case
    if ranked_offers(model, margins, said):
        problem = make_problem(model, margins, **said)
        slow, quick = one_by_one(problem, 3), all_offers(problem, 3)
        assert slow.values == pytest.approx(quick.values, abs=1e-9)
        assert slow.sizes == pytest.approx(quick.sizes, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_sampling_finds_a_good_offer_and_claims_no_proof(kind: str) -> None:
    model = make_model(kind, 6, True, 3)
    margins: dict[Label, float] = {item: float(number) for number, item in enumerate(model.items) if number}
    said: Constraints = {"at_most": 3, "excludes": [("i4", "i5")]}
    wanted = ranked_offers(model, margins, said)
    problem = make_problem(model, margins, **said)
    found = by_sampling(problem, 3, 5.0, 0, unwatched)
    assert not found.proven
    assert found.bound == 5.0
    assert found.values[0] == pytest.approx(wanted[0][0], abs=1e-9)
    assert found.values == sorted(found.values, reverse=True)
    assert len({held.tobytes() for held in found.offers}) == 3
    assert all(problem.is_feasible(held) for held in found.offers)
    assert "sampling" in found.engine
    assert not found.sizes_quick  # a search for every size, which takes as long as this one


def test_the_bound_of_sampling_counts_what_listing_costs_at_least() -> None:
    """Everybody takes the dearest item; what must be listed is paid, and what pays for its listing is listed."""
    model = make_model("classes", 6, True, 3)
    margins: dict[Label, float] = {item: float(number) for number, item in enumerate(model.items) if number}
    problem = make_problem(model, margins, must=["i2"], listing_costs={"i2": 0.5, "i3": -0.25, "i4": 0.125})
    assert by_sampling(problem, 1, 5.0, 0, unwatched).bound == 5.0 - 0.5 + 0.25


def test_offers_have_values() -> None:
    model = make_model("rankings", 4, True, 1)
    margins: dict[Label, float] = {"i1": 1.0, "i2": 2.0, "i3": 3.0}
    frame = value(model, [("i1",), ("i1", "i3"), ()], margins, listing_costs={"i3": 0.5})
    assert frame["value"].tolist() == pytest.approx(
        [worth(model, offer, margins, {"i3": 0.5}) for offer in (("i1",), ("i1", "i3"), ())]
    )
    with pytest.raises(ValueError, match="'soup', which the model lacks"):
        value(model, [("soup",)], margins)


def test_one_margin_or_a_series_serve_as_well() -> None:
    import pandas as pd

    model = make_model("logit", 4, True, 1)
    assert best_offer(model, 2.0).offer == ("i1", "i2", "i3")
    series = pd.Series({"i1": 1.0, "i2": 2.0, "i3": 3.0})
    assert best_offer(model, series).value == best_offer(model, series.to_dict()).value


@pytest.mark.parametrize(
    ("margins", "said", "message"),
    [
        ({"i1": 1, "i2": 1}, {}, "'i3' has no margin"),
        ({"i1": 1, "i2": 1, "i3": float("nan")}, {}, "margin of 'i3' is nan"),
        (
            {"i1": 1, "i2": 1, "i3": 1, "soup": 1},
            {},
            "margin of 'soup', which the model lacks: its items are",
        ),
        ({"i0": 1, "i1": 1, "i2": 1, "i3": 1}, {}, "no-purchase option 'i0' has the margin 1"),
        ("much", {}, "give a dict, a Series or one number"),
        (1, {"must": ["i1"], "never": ["i1"]}, "both must and never"),
        (1, {"must": "i1"}, "must is 'i1': give a list"),
        (1, {"must": ["soup"]}, "must names 'soup'"),
        (1, {"never": ["i0"]}, "no-purchase option 'i0', which is always on offer"),
        (
            1,
            {"must": ["i1"], "never": ["i2"], "requires": [("i1", "i2")]},
            "The item 'i1' must be offered and requires 'i2', which cannot be: the constraints contradict each other",
        ),
        (
            1,
            {"must": ["i1", "i2"], "excludes": [("i1", "i2")]},
            "The item 'i1' must be offered and excludes 'i2', which must be: the constraints contradict each other",
        ),
        (1, {"must": ["i1", "i2"], "at_most": 1}, "contradict each other"),
        (1, {"at_least": 3, "at_most": 2}, "contradict each other"),
        (1, {"at_least": 3, "never": ["i1"]}, "only 2 may be in it"),
        (1, {"requires": [("i1", "i1")]}, "with itself"),
        (1, {"requires": ["i1", "i2", "i3"]}, "give pairs of items"),
        (1, {"space": {"i1": -1}, "capacity": 3}, "space of 'i1' is -1"),
        (1, {"space": {"i1": 1}}, "Give space and capacity together"),
        (1, {"space": {"i1": 4}, "capacity": 3, "must": ["i1"]}, "fill 4 of a capacity of 3"),
        (1, {"space": 2, "capacity": 3, "at_least": 2}, "No offer meets all constraints"),
        (1, {"excludes": [("i1", "i2"), ("i2", "i3"), ("i1", "i3")], "at_least": 2}, "No offer meets"),
        (1, {"listing_costs": {"i0": 1}}, "no-purchase option 'i0' has the listing cost 1"),
        (1, {"top": 0}, "top is 0"),
        (1, {"top": 2000}, "at most 1000"),
        (1, {"budget": -1}, "budget is -1"),
        (1, {"no_choice": "soup"}, "no-purchase option 'soup' is not one of the model's"),
    ],
)
@pytest.mark.parametrize("kind", ["rankings", "logit"])
def test_what_is_wrong_is_said_in_a_sentence(kind: str, margins: Any, said: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        best_offer(make_model(kind, 4, True, 0), margins, **said)


def test_without_a_no_choice_item_something_must_be_offered() -> None:
    model = make_model("rankings", 3, False, 0)
    assert len(best_offer(model, -1.0).offer) >= 1
    named = best_offer(model, {"i1": -1.0, "i2": -1.0}, no_choice="i0")
    assert named.offer == ()
    assert named.menu == ("i0",)


def test_a_pair_need_not_be_in_a_list() -> None:
    model = make_model("rankings", 4, True, 0)
    assert best_offer(model, 1.0, must=["i1"], requires=("i1", "i2")).offer[:2] == ("i1", "i2")
    assert best_offer(model, 1.0, must=["i1"], requires={"i1": "i2"}).offer[:2] == ("i1", "i2")


def test_searches_for_every_size_find_what_the_table_has(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model("rankings", 6, True, 3)
    margins: dict[Label, float] = {item: float(number) for number, item in enumerate(model.items) if number}
    problem = make_problem(model, margins, at_most=4)
    table = all_offers(problem, 1).sizes
    monkeypatch.setattr(selection, "QUICK_SECONDS", -1.0)  # no table is quick enough
    assert selection._sizes(problem, make_lists(model, problem), 60.0, 0) == pytest.approx(table, abs=1e-9)


def test_rankings_are_drawn_until_there_are_enough_or_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "DRAWS_AT_ONCE", 10)
    monkeypatch.setattr(selection, "N_DRAWN_RANKINGS", 30)
    model = make_model(KINDS[1], 4, True, 3)
    problem = make_problem(model, {item: 1.0 for item in model.items if item != model.no_choice})
    assert selection.draw(problem, 0, unwatched)[1] == 30
    assert selection.draw(problem, 0, lambda *_: True)[1] == 10
