"""Decisions with their context: today's offer, single changes to it, how near the data are, and units."""

import itertools
import json
import re
from collections import Counter
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import stdtrit
from typer.testing import CliRunner

import naive_decide
import price_decide_cases as prices
from decide_cases import cases, make_model
from naive_prices_decide import ranked_offers as ranked_at_prices
from rankstream import Assortments, Bootstrap, ChoiceCounts, EntropyModel, estimate
from rankstream._core.types import Label
from rankstream._core.watch import Deadline, Progress, seconds_left, unwatched
from rankstream.cli.app import make_app
from rankstream.cli.markets import decision_lines
from rankstream.decide import best_offer
from rankstream.decide import intervals as uncertainty
from rankstream.decide.context import Nearness, context_of, nearness
from rankstream.decide.decision import Units, change_lines, summary
from rankstream.decide.engines import selection as engines
from rankstream.decide.engines.selection import EngineAnswer
from rankstream.decide.moves import improve, mask_of, single_changes
from rankstream.decide.offer_values import values
from rankstream.decide.problem.offers import make_problem
from rankstream.reports.findings import advice_section
from waits import Ticks

ITEMS = ("tea", "pie", "cake", "no")
OFFERS = Assortments([("tea", "no"), ("tea", "pie", "no"), ITEMS, ("cake", "no")], ITEMS)
COUNTS = ChoiceCounts(OFFERS, [60, 40, 90, 60, 50, 20, 20, 5, 5, 5, 5])
MARGINS: dict[Label, float] = {"tea": 1.0, "pie": 1.5, "cake": 1.2}


def of_single_changes(offer: frozenset[Label], other: frozenset[Label]) -> bool:
    """Whether two offers differ by an item that comes, one that goes, or both."""
    return offer != other and len(other - offer) <= 1 and len(offer - other) <= 1


@settings(max_examples=80)
@given(cases(), st.integers(0, 10**6))
def test_single_changes_are_all_feasible_neighbours(
    case: tuple[Any, dict[Label, float], dict[str, Any]], seed: int
) -> None:
    model, margins, said = case
    wanted = naive_decide.ranked_offers(model, margins, said)
    if not wanted:
        return
    problem = make_problem(model, margins, **said)
    value, offer = wanted[seed % len(wanted)]
    found = single_changes(problem, mask_of(problem, offer), value)
    near = {frozenset(other): worth for worth, other in wanted if of_single_changes(frozenset(offer), frozenset(other))}
    assert {frozenset(change.offer): change.value for change in found} == pytest.approx(near, abs=1e-9)
    assert [change.gain for change in found] == sorted((change.gain for change in found), reverse=True)
    for change in found:
        came, went = set(change.offer) - set(offer), set(offer) - set(change.offer)
        assert (came, went) == ({change.comes} - {None}, {change.goes} - {None})
        assert change.gain == pytest.approx(change.value - value, abs=1e-9)
    steps = improve(problem, mask_of(problem, offer), value, unwatched)
    worths = [worth for worth, _ in steps]
    assert worths == sorted(worths, reverse=True)
    last = steps[0] if steps else (value, mask_of(problem, offer))
    assert all(change.gain <= 1e-9 * 5 for change in single_changes(problem, last[1], last[0]))
    assert problem.is_feasible(last[1])


def test_a_price_is_a_single_change_of_its_own_kind() -> None:
    model = prices.make_model("rankings", (2, 2), True, False, 3)
    costs: dict[Label, float] = {"tea": 1.0, "pie": 1.0}
    wanted = ranked_at_prices(model, costs, {})
    problem = make_problem(model, None, costs=costs)
    value, offer = next(pair for pair in wanted if len(pair[1]) == 2)
    kinds = [
        change.kind for change in single_changes(problem, mask_of(problem, model.price_levels.offer(offer)), value)
    ]
    assert sorted(kinds) == ["drop", "drop", "price", "price"]


def test_what_is_not_proven_ends_where_no_single_change_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's answer is the worst offer there is, called the best of a search without a proof."""
    model = make_model("latent", 6, True, 4)
    margins: dict[Label, float] = {item: 1.0 + number for number, item in enumerate(model.items[1:])}
    wanted = naive_decide.ranked_offers(model, margins, {"at_most": 3})

    def poor(problem: Any, *_: Any) -> EngineAnswer:
        return EngineAnswer([mask_of(problem, ())], [0.0], 9.0, False, "poor", {})

    monkeypatch.setattr(engines, "run_engine", poor)
    found = best_offer(model, margins, at_most=3, top=2)
    near = {value for value, other in wanted if of_single_changes(frozenset(found.offer), frozenset(other))}
    assert found.value > 0.0
    assert found.value >= max(near) - 1e-9
    assert not found.proven
    assert "would earn" not in found.explain()
    assert len(found.runners_up) == 1
    assert found.runners_up[0].value < found.value


def test_nearness_counts_items_that_differ() -> None:
    model = estimate(COUNTS, method="mnl").model
    problem = make_problem(model, MARGINS)
    near = {
        offer: nearness(problem, mask_of(problem, offer), COUNTS)
        for offer in (("tea", "pie"), ("pie",), ("cake", "pie"), ("cake",), ())
    }
    assert near["tea", "pie"] == Nearness(200.0, ("tea", "pie"), 0, 2, 1, 3)
    assert near["tea", "pie"].words == "This offer was shown 200 times."
    assert near["pie",] == Nearness(0.0, ("tea", "pie"), 1, 1, 1, 3)
    assert near["pie",].words == "Never shown: the nearest offer in the data differs in 1 item."
    assert near["cake", "pie"].nearest == ("tea", "pie", "cake")
    assert not near["cake", "pie"].is_extrapolation
    assert near["cake",].shown == 10
    assert near[()].is_extrapolation  # no offer in the data was empty
    assert "This offer has 0 items; offers in the data have 1 to 3." in near[()].words
    assert Nearness(0.0, (), 3, 2, 1, 3).is_extrapolation
    assert not Nearness(5.0, (), 0, 2, 3, 3).is_extrapolation


def test_an_item_at_another_price_differs_as_one_item() -> None:
    model = prices.make_model("rankings", (2, 1), True, False, 3)
    low, high = model.price_levels.levels["tea"]
    labels = model.price_levels.offer({"tea": low})
    counts = ChoiceCounts(Assortments([(*labels, "no")], model.items), [3, 1])
    problem = make_problem(model, None, costs=1.0)
    near = nearness(problem, mask_of(problem, model.price_levels.offer({"tea": high})), counts)
    assert (near.differs, near.shown, near.size) == (1, 0.0, 1)


def test_the_gain_has_the_interval_of_a_difference_between_replicates() -> None:
    boot = Bootstrap(COUNTS, "mnl", replicates=12)
    found = best_offer(boot.model, MARGINS, counts=boot, interval=0.9, at_most=2)
    around = found.context
    assert around is not None
    assert around.present == ("tea", "pie")  # shown 200 times
    assert around.present_shown == 200
    assert around.refits == 12
    problem = found.problem
    now = float(values(problem, [mask_of(problem, ("tea", "pie"))])[0])
    assert around.present_value == pytest.approx(now)
    assert 0.0 < found.overestimate < found.value - now
    assert found.expected == found.value - found.overestimate
    assert around.gain == pytest.approx(found.expected - now)
    best, present = found.offer_mask, mask_of(problem, ("tea", "pie"))
    for change, ends in [(around.changes[0], around.changes[0].interval), (None, around.gain_interval)]:
        after = best if change is None else mask_of(problem, change.offer)
        drawn = np.array([np.subtract(*values(problem, [after, present], model)) for model in boot.models])
        gain = float(np.subtract(*values(problem, [after, present])))
        reach = stdtrit(11, 0.95) * np.hypot(drawn.std(ddof=1), drawn.mean() - gain)
        gain -= found.overestimate  # changes were picked from many, too: one gain for an offer, wherever it is listed
        assert change is None or change.gain == pytest.approx(gain)
        assert ends == pytest.approx((gain - reach, gain + reach))
    text = "\n".join(summary(found))
    assert "compared with today's offer" in text or "This is today's offer." in text
    plain = best_offer(boot.model, MARGINS, counts=boot, interval=None)
    assert plain.interval is None
    assert plain.context is not None
    assert plain.context.nearness is not None


def test_amounts_have_three_or_four_digits_and_no_exponents() -> None:
    euros = Units(currency="EUR")
    assert [euros.amount(value) for value in (0.8002345, 154.2371, 0.0)] == ["80.02 EUR", "15420 EUR", "0 EUR"]
    assert [euros.change(value) for value in (0.026671, -15.4321)] == ["+2.67 EUR", "-1543 EUR"]
    assert euros.ends((-0.013618, 0.066941)) == " [-1.36, 6.69]"  # as many digits as the gain before it
    assert euros.ends((-15.4321, 154.3)) == " [-1543, 15430]"
    assert euros.ends((0.68, 0.7143), ".1f") == " [68.0, 71.4]"


def test_an_extrapolation_has_a_plain_warning() -> None:
    boot = Bootstrap(COUNTS, "mnl", replicates=5)
    far = best_offer(boot.model, MARGINS, counts=boot, at_most=0)
    assert far.context is not None
    assert far.context.nearness is not None
    assert far.context.nearness.is_extrapolation
    assert any("Warning: this is an extrapolation." in line for line in summary(far))
    advice = advice_section(far, Units()).sentences
    assert any("far from anything in the data: try it in one store first" in sentence for sentence in advice)
    near = best_offer(boot.model, MARGINS, counts=boot, at_most=2, at_least=2)
    assert not any("extrapolation" in line for line in summary(near))
    assert not any("far from" in sentence for sentence in advice_section(near, Units()).sentences)
    rows = {"here": far.to_json() | {"warnings": []}, "there": near.to_json() | {"warnings": []}}
    lines = decision_lines({name: row | {"interval_name": "95 % intervals"} for name, row in rows.items()}, "")
    assert [line.endswith("(extrapolation)") for line in lines[1:3]] == [True, False]


def test_a_present_offer_alone_is_what_the_decision_is_compared_with() -> None:
    model = estimate(COUNTS, method="mnl").model
    found = best_offer(model, MARGINS, present=["tea", "no"])
    assert found.value == best_offer(model, MARGINS).value  # it constrains nothing
    assert found.context is not None
    assert found.context.present == ("tea",)
    assert found.context.gain_interval is None
    assert change_lines(found, Units(currency="EUR"))[0].startswith("Today's offer: tea: earns ")
    assert "EUR per 100 customers" in change_lines(found, Units(currency="EUR"))[0]
    content = found.to_json()["context"]
    assert content["present"] == ["tea"]
    assert {change["kind"] for change in content["changes"]} <= {"add", "drop", "swap"}
    again = best_offer(model, MARGINS, present=found.offer)
    assert "This is today's offer." in str(again)
    assert change_lines(again)[1] == "No single change to it would earn more."


def test_refits_keep_to_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that goes on by a second at every question, refits end; too few of them give no interval."""
    ticks = iter(range(10**6))
    monkeypatch.setattr("rankstream.decide.best.process_seconds", lambda: float(next(ticks)))
    model = estimate(COUNTS, method="mnl").model
    hurried = best_offer(model, MARGINS, counts=COUNTS, budget=float(uncertainty.MIN_REPLICATES - 3))
    assert hurried.interval is None
    assert hurried.context is not None
    assert hurried.context.refits == 0
    enough = best_offer(model, MARGINS, counts=COUNTS, budget=float(uncertainty.MIN_REPLICATES + 8))
    assert enough.context is not None
    assert uncertainty.MIN_REPLICATES <= enough.context.refits < uncertainty.REPLICATES
    assert enough.interval is not None


def test_a_busy_machine_gives_the_same_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock on the wall is an hour later, as if others had the processor; CPU time stands still."""
    monkeypatch.setattr("rankstream.decide.best.process_seconds", lambda: 0.0)
    model = estimate(COUNTS, method="mnl").model
    calm = replace(best_offer(model, MARGINS, counts=COUNTS, budget=5.0), seconds=0.0).to_json()
    hours = itertools.count()
    monkeypatch.setattr("rankstream._core.watch.monotonic", lambda: 3600.0 * next(hours))
    assert replace(best_offer(model, MARGINS, counts=COUNTS, budget=5.0), seconds=0.0).to_json() == calm
    assert calm["context"]["refits"] == uncertainty.REPLICATES
    assert next(hours) > uncertainty.REPLICATES


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Choices over ten weeks: the offer of the last weeks is not the most frequent one of all."""
    lines = ["timestamp,offered,chosen,count"]
    for week in range(10):
        offer, chosen = ("tea;pie", ("tea", "pie", "")) if week < 7 else ("tea;cake", ("tea", "cake", ""))
        day = f"2026-0{1 + week // 4}-{1 + 7 * (week % 4):02d}"
        lines += [f"{day},{offer},{item},{times}" for item, times in zip(chosen, (30, 20, 50), strict=True)]
    (tmp_path / "choices.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "items.csv").write_text("item,margin\ntea,1\npie,1.5\ncake,1.2\n")
    words = ["fit", str(tmp_path / "choices.csv"), "--no-choice", "no", "--method", "mnl", "-o"]
    done = CliRunner().invoke(make_app(("fit", "decide")), [*words, str(tmp_path / "model.json")])
    assert done.exit_code == 0, done.output
    return tmp_path


def decide(folder: Path, *words: object) -> Any:
    given = ["decide", str(folder / "model.json"), "--margins", str(folder / "items.csv"), *map(str, words)]
    return CliRunner().invoke(make_app(("fit", "decide")), given)


def test_the_command_finds_the_choices_beside_the_model(shop: Path) -> None:
    found = json.loads(decide(shop, "--json").stdout)
    assert set(found["context"]["present"]) == {"tea", "cake"}  # of the last weeks, not of all
    assert found["context"]["gain_interval"] is not None
    assert found["interval"] is not None
    same = json.loads(decide(shop, "--json", "--present", "recent", "--changes", 0).stdout)
    assert set(same["offer"]) == {"tea", "cake"}
    quick = json.loads(decide(shop, "--json", "--no-intervals").stdout)
    assert "interval" not in quick
    assert quick["context"]["gain_interval"] is None
    other = json.loads(decide(shop, "--json", "--present", "tea;pie", "--no-intervals").stdout)
    assert set(other["context"]["present"]) == {"tea", "pie"}


def test_the_command_begins_with_single_changes(shop: Path) -> None:
    text = decide(shop, "--no-intervals", "--currency", "EUR").stdout
    lines = text.splitlines()
    origin = "the most frequent of the last four weeks, shown 300 times; set yours with --present"
    assert lines[0].startswith(f"Today's offer ({origin}): cake, tea: earns ")
    assert lines[0].endswith("EUR per 100 customers")
    assert lines[1] == "Best single changes to it:"
    assert lines[2].startswith("  ")
    assert "EUR" in lines[2]
    assert any(line.startswith("Best according to the model: ") for line in lines)
    assert "EUR compared with today's offer" in text


def test_choices_that_changed_are_not_used(shop: Path) -> None:
    with (shop / "choices.csv").open("a") as file:
        file.write("2026-03-09,tea;cake,tea,5\n")
    assert json.loads(decide(shop, "--json").stdout)["context"]["nearness"] is None
    error = decide(shop, "--present", "recent").exception
    assert str(error) == "--present recent needs the choices that the model was fitted to: add --data."


@pytest.mark.parametrize(("budget", "left"), [(60.0, 56.0), (5.0, 1.5)])
def test_reading_counts_towards_the_budget(
    shop: Path, monkeypatch: pytest.MonkeyPatch, budget: float, left: float
) -> None:
    budgets = []

    def noted(*values: Any, **named: Any) -> Any:
        budgets.append(named["budget"])
        return best_offer(*values, **named)

    monkeypatch.setattr("rankstream.cli.decide.process_seconds", Ticks(4.0))
    monkeypatch.setattr("rankstream.decide.best.best_offer", noted)
    assert decide(shop, "--no-intervals", "--budget", budget).exit_code == 0
    assert budgets == [pytest.approx(left)]


def test_changes_are_valued_once(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem(estimate(COUNTS, method="mnl").model, MARGINS)
    held = mask_of(problem, ("tea",))
    first = single_changes(problem, held, 0.0)
    assert first
    monkeypatch.setattr("rankstream.decide.moves.values", None)
    assert single_changes(problem, held, 0.0) is first


def tilted_problem(seed: int = 3, most: int = 9) -> tuple[Any, dict[Label, float], Any, float]:
    """A maximum-entropy model of nine items, margins, an offer of four of them, and its value."""
    model = make_model("classes", 9, True, seed)
    margins: dict[Label, float] = {item: float(number) for number, item in enumerate(model.items) if number}
    problem = make_problem(model, margins, at_most=most)
    held = mask_of(problem, tuple(model.items[2:6]))
    return problem, margins, held, float(values(problem, [held])[0])


def test_a_tilted_model_values_the_likely_changes_first() -> None:
    problem, margins, held, now = tilted_problem()
    assert problem.untilted.model.prior is problem.model.prior
    assert not problem.untilted.model.duals.any()
    duals = np.eye(1, problem.model.duals.size)[0]  # a model that is tilted at a single coordinate is tilted
    slightly = replace(problem, model=EntropyModel(problem.model.prior, problem.model.assortments, duals))
    assert not slightly.untilted.model.duals.any()
    likely = list(single_changes(problem, held, now, Deadline(0.0)))
    assert Counter(change.kind for change in likely) == {"add": 4, "drop": 4, "swap": 15}
    (left,) = problem.valued_changes[held.tobytes()][0]
    assert len(left) == 1
    every = single_changes(problem, held, now)
    assert Counter(change.kind for change in every) == {"add": 4, "drop": 4, "swap": 16}
    assert problem.valued_changes[held.tobytes()][0] == []
    assert [change.words for change in likely[:5]] == [change.words for change in every[:5]]
    logit = make_problem(make_model("logit", 9, True, 3), margins)
    assert logit.untilted is logit


def test_the_best_single_change_of_a_tilted_model_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """However badly the prior ranks the changes, and wherever the search begins."""
    monkeypatch.setattr("rankstream.decide.moves.CHANGES_AT_ONCE", 1)
    for seed in range(4):
        problem, margins, held, now = tilted_problem(seed, most=5)
        wanted = naive_decide.ranked_offers(problem.model, margins, {"at_most": 5})
        offer = frozenset(problem.offer(held))
        best = max(worth for worth, other in wanted if of_single_changes(offer, frozenset(other)))
        around = context_of(problem, held, now, None, unwatched)
        assert around.present is None
        around = context_of(replace(problem, present=held), held, now, None, unwatched)
        assert around.changes[0].value == pytest.approx(best, abs=1e-9)
        assert around.unvalued == 0
        steps = improve(problem, held, now, unwatched)
        value, last = steps[0] if steps else (now, held)
        near = [worth for worth, other in wanted if of_single_changes(frozenset(problem.offer(last)), frozenset(other))]
        assert value >= max(near) - 1e-9


def test_changes_that_were_not_valued_in_time_are_told() -> None:
    problem, margins, held, _ = tilted_problem()
    hurried = best_offer(problem.model, margins, present=problem.offer(held), budget=0.0)
    assert hurried.context is not None
    assert hurried.context.unvalued == 1
    assert hurried.to_json()["context"]["unvalued"] == 1
    assert "(1 less likely one not valued in time)" in change_lines(hurried)[1]
    whole = best_offer(problem.model, margins, present=problem.offer(held))
    assert whole.context is not None
    assert whole.context.unvalued == 0
    assert "in time" not in change_lines(whole)[1]


def test_an_explanation_takes_no_time_after_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has what the search valued, or one batch; and a change that pays is not called one that changes nothing."""
    problem, margins, _, _ = tilted_problem()

    def poor(problem: Any, *_: Any) -> EngineAnswer:
        mask = mask_of(problem, (problem.items[1],))
        return EngineAnswer([mask], values(problem, [mask]).tolist(), 9.0, False, "poor", {})

    monkeypatch.setattr(engines, "run_engine", poor)
    monkeypatch.setattr("rankstream.decide.moves.CHANGES_AT_ONCE", 2)
    found = best_offer(problem.model, margins, budget=0.0)
    assert found.offer == (problem.items[1],)
    asked: list[int] = []

    def counted(problem: Any, offers: Any, *more: Any) -> Any:
        asked.append(len(offers))
        return values(problem, offers, *more)

    monkeypatch.setattr("rankstream.decide.moves.values", counted)
    text = found.explain()
    assert asked == [15, 5]  # before the tilt: 7 to add, 7 to swap, 1 to drop; then the first two of each kind
    assert "would change nothing" not in text
    assert re.search(r"would earn \d[\d.]* more: the search ran out of time\.", text)


def test_too_little_time_for_intervals_is_said(shop: Path) -> None:
    done = decide(shop, "--budget", 0)
    assert done.exit_code == 0
    words = r"No intervals, nor a correction .*: the refits did not finish in time\. Try --budget [1-9]\d*0\."
    assert re.search(words, done.stderr)


def test_the_time_that_intervals_need_is_measured(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of the five refits that an interval needs take eight seconds, so that all of them take twenty."""
    clock = [0.0]

    def refits(*_: Any, watch: Progress, **__: Any) -> None:
        for done in (1, 2):
            clock[0] += 4.0
            watch(f"refitted {done}", done / uncertainty.REPLICATES)

    for module in ("cli.decide", "decide.best", "decide.intervals"):
        monkeypatch.setattr(f"rankstream.{module}.process_seconds", lambda: clock[0])
    monkeypatch.setattr("rankstream.decide.intervals.Bootstrap", type("Refits", (), {"__new__": refits}))
    done = decide(shop, "--budget", 9)
    assert done.exit_code == 0, done.output
    assert "Try --budget 40." in done.stderr  # eight seconds so far and twenty, of which refits may have 80 %


def test_a_budget_ends_when_whoever_watches_has_had_enough() -> None:
    late = Deadline(inf, timeout=0.0)
    assert not Deadline(10.0)("so far")
    assert Deadline(10.0, watch=late)("so far")
    assert seconds_left(Deadline(10.0)) > 9.0
    assert seconds_left(Deadline(10.0, watch=late)) <= 0.0
