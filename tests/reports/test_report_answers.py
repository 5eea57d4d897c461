"""What a report asks of a model, of its refits, or of its stored errors: each from the right one."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rankstream import Assortments, ChoiceCounts, RankingModel
from rankstream.decide.decision import Units
from rankstream.estimation.intervals import Share
from rankstream.models.answers import Substitution
from rankstream.reports import answers, findings
from rankstream.reports.answers import Answers
from rankstream.reports.make import Report, combine

pytestmark = pytest.mark.quick
MODEL = RankingModel(
    ["tea", "pie", "no"], [("tea", "pie", "no"), ("pie", "no", "tea"), ("no", "tea", "pie")], [0.5, 0.3, 0.2],
    no_choice_code=2,
)  # fmt: skip


class Errors:
    """Refits, or stored errors, that answer with their own name."""

    def __init__(self, name: str, replicates: int) -> None:
        self.name, self.replicates, self.models = name, replicates, [None] * replicates
        self.asked: list[Any] = []

    def substitution(self, *given: Any, **named: Any) -> Any:
        self.asked.append((given, named))
        return MODEL.substitution()

    def favourites(self, *given: Any, **named: Any) -> Any:
        self.asked.append((given, named))
        return {(self.name,): Share(0.5, 0.4, 0.6)}

    def predict(self, *given: Any) -> Any:
        self.asked.append((given, {}))
        return {item: Share(0.1 * self.replicates, 0.0, 1.0) for item in MODEL.items}

    def demand(self, *_: Any) -> Any:
        return {1.0: self.name}


def stored(monkeypatch: pytest.MonkeyPatch, errors: Errors | None) -> None:
    monkeypatch.setattr(answers, "StoredErrors", SimpleNamespace(of=lambda _: errors))


def test_without_refits_stored_errors_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Errors("stored", 7)
    stored(monkeypatch, own)
    found = Answers.of(MODEL)
    assert (list(found.types), found.shares["tea"].share, found.replicates) == ([("stored",)], 0.1 * 7, 7)
    assert own.asked == [((("tea", "pie", "no"),), {}), ((), {}), ((), {})]
    assert found.origin == "Intervals come from 7 bootstrap refits, stored when the model was fitted."
    assert found.rankings(5) == []  # with intervals, only first choices


def test_refits_come_before_stored_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    stored(monkeypatch, Errors("stored", 7))
    refits: Any = Errors("refits", 3)
    found = Answers.of(MODEL, refits, most=2)
    assert (list(found.types), found.shares["tea"].share, found.replicates) == ([("refits",)], 0.1 * 3, 3)
    assert found.gone == ("tea", "pie")
    assert refits.asked == [
        (("no",), {"gone": ("tea", "pie")}), ((("tea", "pie", "no"),), {}), ((), {"gone": ("tea", "pie")}),
    ]  # fmt: skip
    assert found.origin == "Intervals come from 3 bootstrap refits."


def test_a_sentence_says_why_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    stored(monkeypatch, Errors("stored", 7))
    found = Answers.of(MODEL, "too slow")
    assert (found.origin, found.replicates, found.shares) == ("too slow", None, {})
    assert found.types == pytest.approx({("tea", "pie"): 0.5, ("pie",): 0.3, (): 0.2})
    stored(monkeypatch, None)
    assert Answers.of(MODEL).origin == "There are no intervals: the model has no stored standard errors."


def test_answers_as_json_have_whole_rankings_or_first_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    stored(monkeypatch, None)
    content = Answers.of(MODEL).to_json(top=2)
    assert (content["segments_by"], content["replicates"]) == ("whole rankings", None)
    assert content["segments"] == [{"ranking": ["tea", "pie"], "share": 0.5}, {"ranking": ["pie"], "share": 0.3}]
    stored(monkeypatch, Errors("stored", 7))
    content = Answers.of(MODEL).to_json(top=1)
    assert content["segments_by"] == "first two choices"
    assert content["segments"] == [{"ranking": ["stored"], "share": 0.5, "low": 0.4, "high": 0.6}]


def test_demand_is_asked_of_items_with_several_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def curves_of(_: Any, ask: Any, items: Any, whole: Any) -> Any:
        asked.append((ask, items, whole))
        return {"x": 1}

    monkeypatch.setattr(answers, "curves_of", curves_of)
    monkeypatch.setattr(answers, "usual_prices", lambda _: {"tea": 3.0, "pie": 4.0})
    monkeypatch.setattr(answers, "most_chosen", lambda _, most: ("pie @ 4.00",)[:most])
    levels = SimpleNamespace(levels={"tea": (3.0, 3.5), "pie": (4.0,)}, of=lambda label: (label[:3], 4.0))
    model: Any = SimpleNamespace(price_levels=levels, demand="of the model")
    moves: Any = None
    assert Answers(model, moves, (), {}).curves() == {"x": 1}
    assert asked[-1] == ("of the model", ["tea", "pie"], {"tea": 3.0, "pie": 4.0})
    refits = Errors("refits", 3)
    Answers(model, moves, (), {}, intervals=refits).curves(most=1)
    assert asked[-1] == (refits.demand, ["pie"], {"tea": 3.0, "pie": 4.0})
    Answers(model, moves, (), {}, intervals="too slow").curves()
    assert asked[-1][0] == "of the model"
    levels.levels = {"tea": (3.0,), "pie": (4.0,)}
    assert Answers(model, moves, (), {}).curves() == {}
    model.price_levels = None
    assert Answers(model, moves, (), {}).curves() == {}


def test_the_section_of_the_best_offer_has_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "summary", lambda *_: ["in short", "Not proven best", "next"])
    monkeypatch.setattr(findings, "explanation", lambda *_: ["the same again", "why", "and why not"])
    decision: Any = SimpleNamespace(
        offer=("tea", "pie"), value=1.625, expected=1.5, expect=lambda value: value - 0.125,
        by_size={1: 1.125, 2: 1.625, 3: 1.375},
        shares={"no": 0.2, "tea": 0.5, "pie": 0.3},
        runners_up=[SimpleNamespace(offer=("tea",), value=1.125), SimpleNamespace(offer=("tea", "rum"), value=1.0)],
    )  # fmt: skip
    section = findings.offer_section(decision, Units())
    assert section.sentences == ("Not proven best", "why", "and why not")  # the rest is said above
    best, sizes, taken = section.parts
    assert [row[0] for row in best.rows] == ["tea, pie", "drop pie", "add rum; drop pie"]  # type: ignore[union-attr]
    assert [float(row[1]) for row in best.rows] == [150.0, 100.0, 87.5]  # type: ignore[union-attr]
    assert [row[2] for row in best.rows] == ["", "50.00", "62.50"]  # type: ignore[union-attr]
    assert sizes.values == [  # type: ignore[union-attr]
        {"size": 1, "value": 1.0, "chosen": False}, {"size": 2, "value": 1.5, "chosen": True},
        {"size": 3, "value": 1.25, "chosen": False},
    ]  # fmt: skip
    assert [row[0] for row in sizes.table.rows] == ["1", "2", "3"]  # type: ignore[union-attr]
    assert sizes.table.rows[0][2] == ""  # type: ignore[union-attr]
    assert "50" in sizes.table.rows[1][2]  # type: ignore[union-attr]
    assert "25" in sizes.table.rows[2][2]  # type: ignore[union-attr]
    assert tuple(taken.rows) == (("tea", "50.0 %"), ("pie", "30.0 %"), ("no", "20.0 %"))  # type: ignore[union-attr]
    decision.by_size = {1: 1.125, 2: 1.625}
    assert len(findings.offer_section(decision, Units()).parts) == 3
    decision.by_size = {2: 1.625}
    assert len(findings.offer_section(decision, Units()).parts) == 2


def test_the_section_of_what_was_read_begins_each_account_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was skipped has a table below: its sentence ends after the first line, the others stay whole."""
    skipped = "2 of 9 rows were skipped.\nrow 3: no item"
    monkeypatch.setattr(findings, "account_of", lambda *_: ["9 rows\nof 3 offers", skipped])
    unused = [SimpleNamespace(sentence="'till' is not used.")]
    problems = SimpleNamespace(total=0, summary=lambda: skipped, first=[], by_kind={})
    counts = ChoiceCounts(Assortments([("tea", "pie")]), [2, 1])
    reading: Any = SimpleNamespace(counts=counts, unused=unused, problems=problems)
    section = findings.read_section(reading)
    assert section.sentences == ("9 rows\nof 3 offers", "2 of 9 rows were skipped.", "'till' is not used.")


def test_a_finding_that_the_data_barely_support_says_so() -> None:
    shares = np.array([[0.0, 0.6, 0.4], [0.5, 0.0, 0.5], [0.0, 0.0, 0.0]])
    moves = Substitution(("tea", "pie", "no"), np.array([0.5, 0.2, 0.3]), shares)
    model: Any = SimpleNamespace(no_choice="no")
    sure = replace(moves, low=np.full((3, 3), 0.1), high=np.ones((3, 3)))
    unsure = replace(moves, low=np.zeros((3, 3)), high=np.ones((3, 3)))
    assert findings._missing(model, sure)[0].endswith("60.0 % [10.0, 100.0] take pie instead.")
    assert findings._missing(model, unsure)[0].endswith("take pie instead, which the data barely support.")


def test_a_best_offer_that_earns_less_once_reduced_says_so() -> None:
    around = SimpleNamespace(
        present=("tea",), present_value=1.5, gain=-0.003, gain_interval=(-0.1, 0.094), changes=(), nearness=None
    )
    decision: Any = SimpleNamespace(offer=("tea", "pie"), expected=1.497, interval=None, context=around)
    first, *_ = findings.advice_section(decision, Units()).sentences
    assert first == "The best offer earns 0.30 less per 100 customers than today's: may be chance [-10.00, 9.40]."
    around.gain, around.gain_interval = 0.25, (0.125, 0.375)
    first, *_ = findings.advice_section(decision, Units()).sentences
    assert first.startswith("The best offer earns 25.00 more per 100 customers than today's: a clear gain")


def test_items_of_the_trend_are_counted_without_buying_nothing() -> None:
    offers = Assortments([("tea", "pie", "no")])
    periods = [ChoiceCounts(offers, [5, 3, 2]), ChoiceCounts(offers, [4, 4, 2])]
    trend = findings._over_time(periods, [(0.0, 1.0), (2.0, 3.0)], "time", (), "no")
    assert trend.title == "Shares of the most frequent offer over time"


def test_an_index_of_markets_has_the_gain_of_each_and_why_there_is_none() -> None:
    context = {"gain": 0.5, "gain_interval": (0.25, 0.75)}
    decisions: list[Any] = [{"context": context}, {"context": {"gain": None}}, {"context": None}, None]
    pages = {
        f"shop {number}": Report("Shop", f"May · {number} choices", "", (), {"decision": decision})
        for number, decision in enumerate(decisions)
    }
    page = combine(pages, "Shops", Units(), {"shop 9": "it has no choices"})
    table = page[page.index("<tbody>") : page.index("</tbody>")]
    cells = re.findall(r'<bdi dir="ltr">(.*?)</bdi>', table)
    rows = [cells[start : start + 3] for start in range(0, 15, 3)]
    units = Units()
    assert rows == [
        ["shop 0", "0 choices", units.change(0.5) + units.ends((0.25, 0.75))],
        *([f"shop {number}", f"{number} choices", ""] for number in (1, 2, 3)),
        ["shop 9", "no report", "it has no choices"],
    ]
