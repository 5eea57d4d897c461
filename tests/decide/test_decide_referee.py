"""Every engine against every offer: random models of every kind, random constraints of every kind."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import naive_decide
import naive_prices_decide
import price_decide_cases as prices
from decide_cases import KINDS, cases, make_model
from rankstream import Assortments, ChoiceCounts
from rankstream._core.types import Label
from rankstream._core.watch import unwatched
from rankstream.decide import best_offer, next_offer, safe_offer
from rankstream.decide import next as learning
from rankstream.decide.best import decide
from rankstream.decide.engines import logit, tables
from rankstream.decide.engines import selection as engines
from rankstream.decide.engines.selection import EngineAnswer
from rankstream.decide.offer_values import WrongAnswerError, values, verify_answer
from rankstream.decide.problem.offers import OfferProblem, make_problem
from rankstream.models.rankings import RankingModel

NO_OFFER = prices.NONE


class Foreign:
    """A ChoiceModel that is not the package's own."""

    def __init__(self, model: Any) -> None:
        self.items, self.no_choice = model.items, model.no_choice
        self.predict, self.probabilities = model.predict, model.probabilities
        self.about: dict[str, Any] = {}


def answers(problem: OfferProblem, top: int) -> list[EngineAnswer]:
    """What every engine that accepts the problem answers."""
    found = [engines.one_by_one(problem, top), engines.solve(problem, top, 10.0, 0, unwatched)]
    if np.isfinite(tables.predicted_seconds(problem)):
        found.append(engines.all_offers(problem, top))
    if logit.suits(problem):
        found.append(engines.by_sorting(problem, top, unwatched))
    if isinstance(problem.model, RankingModel):
        found.append(engines.branch_and_bound(problem, top, 10.0, 0, unwatched))
        with patch("rankstream.decide.engines.branch.MAX_TABLE_ITEMS", 0):
            found.append(engines.branch_and_bound(problem, top, 10.0, 0, unwatched))
    elif not isinstance(problem.model, Foreign):
        with patch("rankstream.decide.engines.selection.N_DRAWN_RANKINGS", 100):
            found.append(engines.by_sampling(problem, top, 10.0, 0, unwatched))
    return found


def compare(problem: OfferProblem, wanted: list[float], top: int) -> None:
    """Same values, feasible offers, valid bounds."""
    close = 1e-9 * (1.0 + max(map(abs, wanted)))
    for found in answers(problem, top):
        verify_answer(problem, found.offers, found.values, found.bound, found.proven, found.engine)
        assert all(problem.is_feasible(held) for held in found.offers), found.engine
        assert values(problem, found.offers) == pytest.approx(found.values, abs=close), found.engine
        assert found.bound >= wanted[0] - close, found.engine
        if found.engine.startswith("sampling"):
            assert not found.proven
            assert found.values[0] <= wanted[0] + close
        else:
            assert found.proven
            assert found.values == pytest.approx(wanted[:top], abs=close), found.engine


@st.composite
def questions(draw: st.DrawFn) -> tuple[Any, dict[Any, float], dict[str, Any]]:
    """A model of any kind without prices, margins, and constraints of every kind."""
    model, margins, said = draw(cases(KINDS))
    own = [item for item in model.items if item != model.no_choice]
    if draw(st.booleans()):  # what rules out no engine
        said = {name: value for name, value in said.items() if name in ("at_most", "at_least", "must", "never")}
    if draw(st.booleans()):
        said["present"] = draw(st.lists(st.sampled_from(own), unique=True))
        said["changes"] = draw(st.integers(0, 3))
    return (Foreign(model) if draw(st.integers(0, 4)) == 0 else model), margins, said


@pytest.mark.slow
@settings(max_examples=250)
@given(questions(), st.integers(1, 3))
def test_every_engine_agrees_with_every_offer(question: tuple[Any, dict[Any, float], dict[str, Any]], top: int) -> None:
    model, margins, said = question
    wanted = [value for value, _ in naive_decide.ranked_offers(model, margins, said)]
    if not wanted:
        with pytest.raises(ValueError, match=NO_OFFER):
            best_offer(model, margins, **said)
        return
    with patch(
        "rankstream.decide.engines.selection.MAX_ITEMS_ONE_BY_ONE",
        len(model.items) if isinstance(model, Foreign) else 0,
    ):
        compare(make_problem(model, margins, **said), wanted, top)


@pytest.mark.slow
@settings(max_examples=150)
@given(prices.cases(prices.KINDS), st.integers(1, 3))
def test_every_engine_agrees_with_every_offer_at_prices(case: prices.Case, top: int) -> None:
    model, costs, said = case
    wanted = [value for value, _ in naive_prices_decide.ranked_offers(model, costs, said)]
    if wanted:
        compare(make_problem(model, costs=costs, **said), wanted, top)


@pytest.mark.parametrize(("n", "changes"), [(15, 1), (15, 3), (30, 2)])
def test_a_large_logit_keeps_to_the_changes_that_are_allowed(n: int, changes: int) -> None:
    model = make_model("logit", n, True, 5)
    margins = {item: float(number) for number, item in enumerate(model.items) if number}
    present = model.items[1:4]
    found = best_offer(model, margins, present=present, changes=changes, budget=2.0)
    assert found.problem.is_feasible(found.offer_mask)
    assert len(set(found.offer) ^ set(present)) <= changes
    said = {"present": list(present), "changes": changes}
    if n == 15:
        assert found.proven
        best = naive_decide.ranked_offers(model, margins, said)[0][0]
        assert found.value == pytest.approx(best, abs=1e-12)


def broken(found: EngineAnswer, how: str) -> EngineAnswer:
    """An answer with one mistake."""
    offers, worths, bound = list(found.offers), list(found.values), found.bound
    if how == "infeasible":
        offers[0] = np.ones_like(offers[0])
    elif how == "twice":
        offers[1] = offers[0]
    elif how == "value":
        worths = [worth + 1e-3 for worth in worths]
        bound += 1e-3
    elif how == "order":
        offers, worths = offers[::-1], worths[::-1]
        bound = worths[0]
    elif how == "bound":
        bound -= 1e-3
    elif how == "proof":
        bound += 1e-3
    elif how == "nan":
        worths = [float("nan")] * len(worths)
    return EngineAnswer(offers if how != "none" else [], worths, bound, True, "made up", {})


@pytest.mark.parametrize("how", ["infeasible", "twice", "value", "order", "bound", "proof", "nan", "none"])
def test_an_engine_that_is_wrong_is_an_error(how: str) -> None:
    model = make_model("rankings", 5, True, 3)
    margins = {"i1": 1.0, "i2": 2.0, "i3": 3.0, "i4": 4.0}
    right = engines.run_engine

    def wrong(*given: Any) -> EngineAnswer:
        return broken(right(*given), how)

    with patch.object(engines, "run_engine", wrong), pytest.raises(WrongAnswerError, match=r"made up.*Please report"):
        best_offer(model, margins, at_most=2, top=3)


OFFERS = Assortments([("tea", "no"), ("pie", "no"), ("cake", "no"), ("tea", "pie", "no")])
COUNTS = ChoiceCounts(OFFERS, [60, 40, 30, 70, 2, 3, 50, 20, 30])
MARGINS: dict[Label, float] = {"tea": 1.0, "pie": 1.5, "cake": 1.4}


def test_ucb_adds_standard_deviations_and_takes_the_best_of_all_offers() -> None:
    """Against its definition: the same fits, their values offer by offer, and the mean plus the deviation by numpy."""
    random = np.random.default_rng(7)
    learner = learning._Learner(COUNTS, "mnl", 7, None, unwatched)
    model = learner.fit(COUNTS)
    drawn = [learner.fit(learning.redrawn(COUNTS, random)) for _ in range(6)]
    chosen = {}
    for optimism in (0.0, 3.0):
        worth = {}
        for _, offer in naive_decide.ranked_offers(model, MARGINS, {"at_most": 1}):
            spread = np.std([naive_decide.worth(one, offer, MARGINS, {}) for one in drawn], ddof=1)
            worth[offer] = naive_decide.worth(model, offer, MARGINS, {}) + optimism * spread
        chosen[optimism] = max(worth, key=lambda offer: worth[offer])
        found = next_offer(COUNTS, MARGINS, "ucb", method="mnl", redraws=6, optimism=optimism, seed=7, at_most=1)
        assert found.offer == chosen[optimism]
    assert chosen[0.0] != chosen[3.0]  # cake was offered to five customers: optimism tries it


def test_the_next_offer_is_verified() -> None:
    wrong = patch.object(learning, "scan", lambda *given: _everything(tables.scan(*given)))
    with wrong, pytest.raises(WrongAnswerError, match="ucb"):
        next_offer(COUNTS, MARGINS, "ucb", method="mnl", redraws=2, at_most=1)
    less = patch.object(learning, "scan", lambda *given: _less(tables.scan(*given)))
    with less, pytest.raises(WrongAnswerError, match="optimism"):
        next_offer(COUNTS, MARGINS, "ucb", method="mnl", redraws=2, at_most=1)


def test_the_safe_offer_is_verified() -> None:
    from rankstream.decide import safe as safety

    rankings = [("tea", "pie", "cake", "no"), ("pie", "no", "tea", "cake")]
    model = RankingModel(("tea", "pie", "cake", "no"), rankings, [0.6, 0.4], no_choice_code=3)
    assert safe_offer(COUNTS, MARGINS, model=model, at_most=2).proven
    less = patch.object(safety, "scan", lambda *given: _less(tables.scan(*given)))
    with less, pytest.raises(WrongAnswerError, match="bound"):
        safe_offer(COUNTS, MARGINS, model=model, at_most=2)
    found, real = list[Any](), decide

    def kept(*given: Any) -> Any:
        found.append(real(*given))
        return found[-1]

    with patch.object(safety, "decide", kept):
        safe_offer(COUNTS, MARGINS, model=model, at_most=2)
    again = patch.object(safety, "decide", lambda *_: found[0])
    with (
        again,
        patch.object(OfferProblem, "is_feasible", lambda *_: False),
        pytest.raises(WrongAnswerError, match="safe"),
    ):
        safe_offer(COUNTS, MARGINS, model=model, at_most=2)
    low = patch.object(safety._WorstCases, "__call__", lambda *_: (9.0, model))
    with low, pytest.raises(WrongAnswerError, match="worst model"):
        safe_offer(COUNTS, MARGINS, model=model, at_most=2)


def _everything(found: Any) -> Any:
    return tables.Scanned(found.values, [np.ones_like(held) for held in found.offers], {}, 1)


def _less(found: Any) -> Any:
    return tables.Scanned([value - 1.0 for value in found.values], found.offers, {}, 1)


def test_half_of_the_budget_is_for_refits() -> None:
    """Where choices are given, from which intervals come; a plain answer has all of it."""
    model, given = make_model("logit", 5, True, 3), list[float]()
    margins = dict.fromkeys(model.items[1:], 1.0)
    offers = Assortments([model.items, model.items[:3]], model.items)
    counts = ChoiceCounts(offers, np.full(offers.n_coordinates, 20.0))

    def watched(*words: Any) -> Any:
        given.append(words[2])
        return engines.solve(*words)

    with patch("rankstream.decide.best.solve", watched):
        best_offer(model, margins, budget=1000.0)
        best_offer(model, margins, counts=counts, budget=1000.0)
    assert given[0] > 900.0
    assert 400.0 < given[1] <= 500.0


def test_a_foreign_model_has_no_table_but_a_number_of_offers() -> None:
    small, large = (RankingModel(range(n), [range(n)], [1.0]) for n in (24, 25))
    assert tables.most_decided(make_problem(Foreign(small), 1.0)) == ""
    assert tables.most_decided(make_problem(Foreign(large), 1.0)) == "24 items, not 25"
    with pytest.raises(ValueError, match="There is no table of all offers for a Foreign: use a rankstream model"):
        tables.table_of(make_problem(Foreign(small), 1.0))


@pytest.mark.parametrize(("proven", "bound", "claimed"), [(True, 9.0, 3.0), (False, 9.0, 9.0), (False, 2.0, 3.0)])
def test_a_search_that_is_not_finished_claims_its_bound(
    proven: bool, bound: float, claimed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make_problem(RankingModel("abn", ["abn", "ban"], [0.5, 0.5], no_choice_code=2), {"a": 1.0, "b": 2.0})

    def search(lists: Any, *_: Any) -> Any:
        nothing, everything = (np.full(lists.margin.size, mark, dtype=np.int8).tobytes() for mark in (0, 1))
        return SimpleNamespace(run=lambda **_: proven, bound=bound, found={nothing: 0.0, everything: 3.0})

    monkeypatch.setattr(engines, "Branching", search)
    found = engines.branch_and_bound(problem, 1, 1.0, 0, unwatched)
    assert (found.values, found.bound, found.proven) == ([3.0], claimed, proven)
