"""What a decision says of itself, offers that are safe, and offers to try next."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from cafe_counts import ITEMS, MARGINS, OFFERS, counts
from decide_cases import make_model, offer_mask
from naive_decide import ranked_offers
from rankstream import Assortments, Bootstrap, ChoiceCounts, Live, RankingModel, Record, revenue_range
from rankstream._core.types import Label
from rankstream.decide import best_offer, next_offer, safe_offer
from rankstream.decide.decision import PER_100, summary
from rankstream.decide.intervals import N_RIVALS, overestimate
from rankstream.decide.moves import mask_of, single_changes
from rankstream.decide.next import redrawn
from rankstream.decide.offer_values import values
from rankstream.decide.problem.offers import make_problem
from rankstream.estimation.estimate import estimate
from rankstream.estimation.misfit import Misfit
from strategies import compiled_only

pytestmark = pytest.mark.quick


def test_an_explanation_tells_what_items_add_and_what_others_would_cost() -> None:
    rankings = [("tea", "pie", "no", "cake"), ("cake", "tea", "no", "pie"), ("pie", "cake", "tea", "no")]
    model = RankingModel(ITEMS, rankings, [0.5, 0.3, 0.2], no_choice_code=3)
    found = best_offer(model, {"tea": 1.0, "pie": 3.0, "cake": 2.0})
    lines = found.explain().splitlines()
    assert found.offer == ("pie", "cake")
    assert lines[0] == "Best according to the model: pie, cake: earns 270.0 per 100 customers."
    assert lines[1].startswith("pie is taken by ")
    assert lines[1].endswith("without it, the offer earns 170 less.")
    assert lines[2].startswith("cake is taken by ")
    assert lines[2].endswith("without it, the offer earns 60.0 less.")
    assert lines[3] == "Adding tea would cost 100.0."
    proven = "Proven best: by this model, no feasible offer is worth more (all offers were compared)."
    assert str(found).splitlines()[1] == proven
    must = best_offer(model, {"tea": 1.0, "pie": 3.0, "cake": 2.0}, must=["tea"], at_most=1)
    assert "It is required." in must.explain()
    content = found.to_json()
    assert content["by_size"]["2"] == found.value
    assert content["shares"]["pie"] == pytest.approx(0.7)


def test_a_rejected_item_is_tried_in_place_of_another_where_there_is_no_room() -> None:
    model = make_model("latent", 6, True, 4)
    margins: dict[Label, float] = {item: 1.0 + number for number, item in enumerate(model.items[1:])}
    found = best_offer(model, margins, at_most=2, top=2)
    wanted = ranked_offers(model, margins, {"at_most": 2})
    near = next(
        pair for pair in wanted if set(pair[1]) - set(found.offer) and len(set(found.offer) & set(pair[1])) >= 1
    )
    line = next(line for line in found.explain().splitlines() if "would cost" in line)
    assert float(line.split("would cost ")[1].rstrip(".")) == pytest.approx(100 * (found.value - near[0]), rel=1e-2)


def test_counts_of_other_items_are_refused() -> None:
    model = make_model("rankings", 4, True, 0)
    with pytest.raises(ValueError, match="have different items: give the counts that the model was fitted to"):
        best_offer(model, dict.fromkeys(model.items[1:], 1.0), counts=counts())


def test_counts_give_an_interval_and_say_when_a_lead_is_noise() -> None:
    few, many = counts(), counts(100)
    model = estimate(few, method="mnl").model
    close = dict.fromkeys(("tea", "pie", "cake"), 1.0) | {"pie": 1.4}
    unsure = best_offer(model, close, at_most=1, counts=few)
    assert unsure.interval is not None
    assert unsure.lead is not None
    assert unsure.interval[0] < unsure.value < unsure.interval[1]
    assert unsure.lead.is_noise
    assert "the data do not show" in str(unsure)
    sure = best_offer(estimate(many, method="mnl").model, MARGINS | {"cake": 9.0}, at_most=1, counts=many)
    assert sure.lead is not None
    assert not sure.lead.is_noise
    assert "a significant lead" in str(sure)
    assert sure.to_json()["lead"]["is_noise"] is False
    again = best_offer(model, close, at_most=1, counts=Bootstrap(few, "mnl", replicates=20, model=model))
    assert again.interval is not None
    assert again.interval[0] == pytest.approx(unsure.interval[0], abs=0.05)


def test_intervals_are_the_spread_of_the_replicates() -> None:
    data = counts()
    boot = Bootstrap(data, "mnl", replicates=10)
    found = best_offer(boot.model, MARGINS, counts=boot, interval=0.9)
    drawn = np.array([float(values(found.problem, [found.offer_mask], model)[0]) for model in boot.models])
    reach = 1.8331129 * np.hypot(drawn.std(ddof=1), drawn.mean() - found.value)  # Student with 9 degrees of freedom
    assert found.interval == pytest.approx((found.expected - reach, found.expected + reach))


@pytest.mark.parametrize("gap", [0.0, 0.05, 10.0])
def test_the_best_of_many_offers_is_overestimated(gap: float) -> None:
    """Of eight equal offers with independent errors, the largest error has the mean 1.4236 standard errors."""
    random = np.random.default_rng(3)
    errors = 0.1 * np.linalg.qr(random.normal(size=(50, 8)))[0] * np.sqrt(49)
    truth = np.full(8, 2.0)
    truth[0] += gap
    simulated = truth + 0.1 * random.standard_normal((20_000, 8))
    best = simulated.argmax(axis=1)
    expected = float((simulated.max(axis=1) - truth[best]).mean())
    found = overestimate(truth, 1.0 + errors - errors.mean(axis=0))
    assert found == pytest.approx(expected, abs=0.012)
    assert expected == pytest.approx({0.0: 0.14236, 10.0: 0.0}.get(gap, expected), abs=0.003)


def test_a_claim_is_what_is_left_after_overestimation() -> None:
    """The claim, its gain and their intervals are lower by the same amount; the model's own value is said beside it."""
    data = counts()
    boot = Bootstrap(data, "mnl", replicates=10)
    boot.misfit = Misfit(unseen=0.01, scale=4.0)
    found = best_offer(boot.model, MARGINS, counts=boot, present=("tea",))
    near = single_changes(found.problem, found.offer_mask, found.value)[:N_RIVALS]
    masks = [found.offer_mask, *(mask_of(found.problem, change.offer) for change in near)]
    table = np.array([values(found.problem, masks, model) for model in boot.models])
    assert found.overestimate == pytest.approx(overestimate(values(found.problem, masks), np.sqrt(1.04) * table))
    assert found.overestimate > 0.0
    around = found.context
    assert around is not None
    assert around.gain_interval is not None
    assert found.interval is not None
    assert sum(found.interval) / 2 == pytest.approx(found.expected)
    assert sum(around.gain_interval) / 2 == pytest.approx(around.gain)
    assert around.gain == pytest.approx(found.expected - around.present_value)
    lines = summary(found)
    assert f"{PER_100.per(found.expected)} [" in lines[0]
    less = f"That is {100 * found.value:.4g} minus {100 * found.overestimate:.2g}: the best of many is"
    assert lines[1].startswith(less)
    content = found.to_json()
    assert content["expected"] == content["value"] - content["overestimate"]
    assert found.expect(around.present_value) == around.present_value  # it was not picked from many
    assert found.expect(0.0) == 0.0
    assert found.expect(1.0) == 1.0 - found.overestimate
    second = found.runners_up[0] if found.runners_up else best_offer(boot.model, MARGINS, top=2).runners_up[0]
    today = best_offer(boot.model, MARGINS, counts=boot, present=second.offer)
    assert today.context is not None
    assert today.lead is not None  # today's offer is the next best: one difference, wherever it is printed
    assert today.lead.value == pytest.approx(today.context.gain)
    assert today.lead.value == pytest.approx(today.expected - second.value)
    assert f"is worth {PER_100.amount(today.context.gain, '.3g')} less" in str(today)
    kept = best_offer(boot.model, MARGINS, counts=boot, present=found.offer)
    assert (kept.overestimate, kept.expected) == (0.0, kept.value)  # nothing was chosen from many
    alone = best_offer(boot.model, MARGINS, counts=boot, must=["tea"], at_most=1, present=("pie",))
    assert alone.overestimate < 1e-9


def test_intervals_need_the_models_own_counts() -> None:
    model = estimate(counts(), method="mnl").model
    other = ChoiceCounts(Assortments([("tea", "soup")]), [1, 1])
    with pytest.raises(ValueError, match="different items"):
        best_offer(model, MARGINS, counts=Bootstrap(other, "mnl", replicates=2))
    own = ChoiceCounts(Assortments([("i0", "i1", "i2", "i3")]), [1, 1, 1, 1])
    with pytest.raises(ValueError, match="Anything cannot be refitted"):
        best_offer(anything(), 1.0, counts=own)


def anything() -> Any:
    """A model of another make."""
    inner = make_model("logit", 4, True, 2)

    class Anything:
        items, no_choice = inner.items, inner.no_choice
        predict, probabilities = staticmethod(inner.predict), staticmethod(inner.probabilities)

    return Anything()


def test_models_of_another_make_are_asked_offer_by_offer() -> None:
    margins: dict[Label, float] = {"i1": 1.0, "i2": 2.0, "i3": 4.0}
    found = best_offer(anything(), margins, top=3)
    same = best_offer(make_model("logit", 4, True, 2), margins, top=3)
    assert found.engine == "all offers, one by one"
    assert found.offer == same.offer
    assert found.by_size == pytest.approx(same.by_size)


@compiled_only
def test_large_ranking_models_go_to_branch_and_bound() -> None:
    random = np.random.default_rng(0)
    orders = np.array([random.permutation(31) for _ in range(60)])
    model = RankingModel.from_codes(range(31), orders, np.full(60, 1 / 60), 30)
    margins = dict(enumerate(random.uniform(size=30)))
    found = best_offer(model, margins, at_most=4, top=3, budget=1000.0)  # which compiling may take some of
    assert found.engine == "branch and bound"
    assert found.proven
    assert found.bound == found.value
    assert not found.knows_sizes
    assert "by_size" not in found.to_json()
    assert found.by_size[len(found.offer)] == pytest.approx(found.value)
    more = np.array([random.permutation(61) for _ in range(400)])
    larger = RankingModel.from_codes(range(61), more, random.dirichlet(np.ones(400)), 60)
    margins = dict(enumerate(random.uniform(size=60)))
    hurried = best_offer(larger, margins, at_most=6, budget=0.0)
    assert not hurried.proven
    assert hurried.bound >= best_offer(larger, margins, at_most=6).value >= hurried.value
    assert "Not proven best" in str(hurried)


@compiled_only
def test_the_engine_is_the_one_that_is_predicted_to_be_quicker() -> None:
    random = np.random.default_rng(1)
    margins: dict[Label, float] = dict(enumerate(random.uniform(size=20)))
    orders = np.array([random.permutation(21) for _ in range(2000)])
    few = RankingModel.from_codes(range(21), orders[:40], np.full(40, 1 / 40), 20)
    many = RankingModel.from_codes(range(21), orders, np.full(2000, 1 / 2000), 20)
    quick = best_offer(few, margins, at_most=10)
    assert quick.engine == "branch and bound"
    assert quick.proven
    assert quick.knows_sizes  # a table for them takes milliseconds
    same = best_offer(few, margins, at_most=10, excludes=[(0, 1)])
    assert same.engine == "all offers"  # how long a search takes with pairs is hard to predict
    slow = best_offer(few, margins, at_most=10, top=50)
    assert slow.engine == "all offers"
    assert slow.value == pytest.approx(quick.value)
    assert slow.by_size == pytest.approx(quick.by_size)
    assert best_offer(many, margins, at_most=10).engine == "all offers"
    assert best_offer(few, margins, at_most=10, top=50, budget=1e-4).engine == "branch and bound"


@compiled_only
def test_large_models_of_other_kinds_are_sampled() -> None:
    model = make_model("logit", 28, True, 0)
    margins: dict[Label, float] = {item: float(number) for number, item in enumerate(model.items) if number}
    costly: dict[str, Any] = {"listing_costs": 1e-9}  # without any, a logit is sorted
    found = best_offer(model, margins, at_most=5, budget=2.0, **costly)
    assert found.engine.startswith("sampling")
    assert not found.proven
    assert found.bound == 27.0
    ordered = sorted(margins, key=lambda item: -margins[item])  # without a limit, a logit's best is by margin
    free = best_offer(model, margins, budget=2.0, **costly)
    exact = max(
        float(values(make_problem(model, margins), [offer_mask(ordered[:k], model.items)])[0]) for k in range(28)
    )
    assert free.value == pytest.approx(exact)
    assert best_offer(model, margins).value == pytest.approx(exact)


@pytest.mark.parametrize("region", ["confidence", "l1"])
def test_the_safe_offer_has_the_best_worst_case(region: Any) -> None:
    data = counts()
    model = estimate(data, method="mnl").model
    found = safe_offer(data, MARGINS, region, tolerance=0.1, model=model, accuracy=1e-5, listing_costs=0.02)
    lows: dict[tuple[str, ...], float] = {}
    for size in range(4):
        for offer in combinations(ITEMS[:3], size):
            prices = MARGINS | {"no": 0.0}
            reach = revenue_range(data, (*offer, "no"), prices, 0.1, region=region)
            lows[offer] = reach.low - 0.02 * size
    assert found.proven
    assert found.low == pytest.approx(max(lows.values()), abs=1e-3)
    assert lows[found.offer] == pytest.approx(found.low, abs=1e-3)  # type: ignore[index]
    assert found.bound >= found.low
    assert found.best_low == pytest.approx(lows[found.best.offer], abs=1e-3)  # type: ignore[index]
    assert found.best_low <= found.low + 1e-6
    assert found.expected <= found.best.value + 1e-9
    problem = make_problem(found.worst, MARGINS, listing_costs=0.02, no_choice="no")
    assert float(values(problem, [offer_mask(found.offer, ITEMS)])[0]) == pytest.approx(found.low, abs=1e-3)


def test_a_safe_offer_says_what_caution_costs() -> None:
    data = ChoiceCounts(Assortments([("tea", "no"), ("pie", "no")], ITEMS), [900, 100, 3, 7])
    model = RankingModel(ITEMS, [("pie", "tea", "cake", "no")], [1.0], no_choice_code=3)
    found = safe_offer(data, MARGINS, model=model)
    assert "pie" in found.best.offer
    assert found.low > found.best_low + 0.1
    assert found.expected < found.best.value
    lines = str(found).splitlines()
    assert lines[0].startswith("Best: ")
    assert lines[1].startswith("Safest: tea")
    assert (
        f"expected {PER_100.amount(found.expected)} per 100 customers, at least {PER_100.amount(found.low)}" in lines[1]
    )
    assert found.to_json()["best_low"] == found.best_low
    same = safe_offer(counts(100), MARGINS, model=estimate(counts(100), method="mnl").model, at_most=1)
    assert "also the safest" in str(same) or "Safest" in str(same)


def test_what_is_wrong_with_a_safe_offer() -> None:
    with pytest.raises(ValueError, match="different items"):
        safe_offer(counts(), 1.0, model=make_model("logit", 4, True, 0))
    big = make_model("logit", 27, True, 0)
    many = ChoiceCounts(Assortments([big.items]), np.ones(27))
    with pytest.raises(ValueError, match="can decide about 24 items"):
        safe_offer(many, 1.0, model=big)


@pytest.mark.parametrize("how", ["greedy", "thompson", "ucb"])
def test_the_next_offer_keeps_constraints_and_is_seeded(how: Any) -> None:
    said: dict[str, Any] = {"at_most": 2, "excludes": [("pie", "cake")], "must": ["tea"]}
    found = next_offer(counts(), MARGINS, how, seed=3, redraws=2, **said)
    again = next_offer(counts(), MARGINS, how, seed=3, redraws=2, **said)
    assert found.menu == again.menu
    assert found.menu[-1] == "no"
    assert "tea" in found.offer
    assert len(found.offer) <= 2
    warm = next_offer(counts(2), MARGINS, how, seed=4, redraws=2, start=found, **said)
    assert warm.decision is not None
    assert str(warm) == f"Offer next: {', '.join(map(str, warm.offer))}"
    assert warm.to_json()["decision"]["proven"]


def test_greedy_is_the_best_offer_by_the_fit_and_thompson_explores() -> None:
    data = ChoiceCounts(Assortments([("tea", "no"), ("pie", "no")], ITEMS[:2] + ITEMS[3:]), [6, 4, 3, 7])
    margins: dict[Label, float] = {"tea": 1.0, "pie": 1.9}
    seen = {next_offer(data, margins, "thompson", method="mnl", at_most=1, seed=seed).offer for seed in range(12)}
    assert seen == {("tea",), ("pie",)}
    fit = estimate(data, method="mnl").model
    assert next_offer(data, margins, "greedy", method="mnl").offer == best_offer(fit, margins).offer
    careful = next_offer(data, margins, "ucb", method="mnl", optimism=0.0, at_most=1)
    assert careful.offer == best_offer(fit, margins, at_most=1).offer


def test_redrawn_counts_keep_their_totals_and_have_the_spread_of_a_dirichlet() -> None:
    data, random = counts(), np.random.default_rng(0)
    drawn = np.array([redrawn(data, random).frequencies() for _ in range(2000)])
    assert redrawn(data, random).totals == pytest.approx(data.totals)
    alpha = 60.5
    mean, spread = alpha / 101.0, np.sqrt(alpha * 40.5 / 101.0**2 / 102.0)
    assert drawn[:, 0].mean() == pytest.approx(mean, abs=4 * spread / np.sqrt(2000))
    assert drawn[:, 0].std() == pytest.approx(spread, rel=0.1)


def test_before_any_data_the_next_offer_is_a_random_feasible_one() -> None:
    empty = ChoiceCounts(OFFERS)
    found = {next_offer(empty, MARGINS, at_most=2, excludes=[("pie", "cake")], seed=seed).offer for seed in range(9)}
    assert found <= {("tea", "pie"), ("tea", "cake")}
    assert len(found) == 2
    assert next_offer(empty, MARGINS).decision is None


def test_the_next_offer_works_with_a_live_model() -> None:
    live = Live(publish="sparse")
    live.observe([Record(("tea", "no"), "tea"), Record(("pie", "no"), "no"), Record(("pie", "no"), "pie")])
    found = next_offer(live, {"tea": 1.0, "pie": 2.0}, method="mnl")
    assert set(found.menu) <= {"tea", "pie", "no"}
    with pytest.raises(ValueError, match="no counts to learn from"):
        next_offer(Live(publish="sparse"), 1.0)
    with pytest.raises(ValueError, match="Unknown way 'luck'"):
        next_offer(counts(), 1.0, "luck")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="changes with the data"):
        next_offer(counts(), 1.0, method="auto")


def test_an_item_that_nobody_wants_would_change_nothing() -> None:
    model = RankingModel("abcn", ["anbc", "nabc", "cnab"], [0.5, 0.3, 0.2], no_choice_code=3)
    found = best_offer(model, {"a": 1.0, "b": 1.0, "c": -0.5})
    assert found.explain().splitlines()[2:] == [
        "Adding b would change nothing.", "Adding c would cost 10.00.",
    ]  # fmt: skip
