"""Fits of counts of very different sizes: how many steps they take, and that a scale of all counts changes nothing."""

from typing import Any

import numpy as np
import pytest

from rankstream import Assortments, ChoiceCounts, Live, Record
from rankstream._core.types import Vec
from rankstream.data import simulate
from rankstream.models.entropy import ensemble
from rankstream.models.entropy.ensemble import FOLD_EM_STARTS, MIN_FIT_STEPS, fit_stack
from rankstream.models.entropy.guides import HEAVY, MAX_ROUNDS, guides_for
from rankstream.models.parametric.attribute_logit import AttributeProblem, fit_attribute_logit
from rankstream.models.parametric.base import Climb
from rankstream.models.parametric.latent_class import MixtureProblem

ITEMS, LEVELS = ("a", "b", "c", "d"), (1.0, 2.0, 3.0)


def priced_counts(seed: int) -> ChoiceCounts:
    """Choices from 12 offers of four items, each at one of three prices."""
    random = np.random.default_rng(seed)
    offers = Assortments({tuple(f"{item} @ {random.choice(LEVELS):.2f}" for item in ITEMS): None for _ in range(12)})
    return ChoiceCounts(offers, random.integers(0, 50, offers.n_coordinates))


@pytest.mark.parametrize("classes", [1, 3])
def test_a_billion_times_the_choices_are_fitted_as_well(classes: int) -> None:
    counts = priced_counts(0)
    one, other = (
        fit_attribute_logit(ChoiceCounts(counts.assortments, counts.tallies * factor), classes=classes)
        for factor in (1.0, 2.0**30)
    )
    assert other.log_likelihood / 2.0**30 > one.log_likelihood - 0.01  # the prior counts for less
    assert other.slopes == pytest.approx(one.slopes, abs=0.3) if classes == 1 else np.isfinite(other.slopes).all()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_priced_market_of_wild_counts_takes_few_steps(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random, work = np.random.default_rng(seed), {"evaluations": 0, "steps": 0}
    offers = [{item: float(random.choice(LEVELS)) for item in random.permutation(ITEMS)} for _ in range(20)]
    batch = []
    for _ in range(40):
        offer = offers[random.integers(20)]
        batch.append(Record(offer, str(random.choice(list(offer))), float(10.0 ** random.uniform(-9, 10))))
    cost = AttributeProblem.cost

    def counted_cost(self: AttributeProblem, step: Vec, **where: Vec) -> tuple[float, Vec]:
        work["evaluations"] += 1
        return cost(self, step, **where)

    climb = MixtureProblem.climb

    def counted_climb(self: MixtureProblem, *given: Any) -> Climb:
        end = climb(self, *given)
        work["steps"] += end.steps
        return end

    monkeypatch.setattr(AttributeProblem, "cost", counted_cost)
    monkeypatch.setattr(MixtureProblem, "climb", counted_climb)
    monkeypatch.setattr(ensemble, "MAX_FOLD_STEPS", 10_000)  # as a market that needs 15 times as many would meet it
    live = Live(prices={item: list(LEVELS) for item in ITEMS})
    live.observe(batch)
    assert live.serves == "max-entropy"
    assert live.counts is not None
    assert work["evaluations"] < 12_000  # 2,679 and 3,110
    fits, last = 10 * len(guides_for(live.counts.assortments)), 9 * MAX_ROUNDS  # in folds, and to all choices
    assert work["steps"] <= 10_000 + FOLD_EM_STARTS * MIN_FIT_STEPS * fits + last  # 70,878 without a limit for seed 2


def test_steps_that_are_left_are_shared_by_the_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later folds are fitted as well as earlier ones, so that scores do not favour what came first."""
    market = simulate.market(0, n_items=6, n_offers=20, n_test=5)
    counts = ChoiceCounts(market.assortments, np.round(1e6 * market.frequencies()))
    monkeypatch.setattr(ensemble, "MAX_FOLD_STEPS", 6_000)
    monkeypatch.setattr(ensemble, "MAX_NATS_BEHIND", np.inf)  # so that no size leaves the race
    folds = fit_stack(counts, HEAVY).folds
    steps = [sum(guide.steps for guide in fold.guides.values()) for fold in folds]
    assert len(steps) == 10
    assert sum(steps) <= 6_000 + 10 * len(HEAVY) * FOLD_EM_STARTS * MIN_FIT_STEPS
    assert min(steps) >= FOLD_EM_STARTS * MIN_FIT_STEPS * len(HEAVY) / 2
    assert max(steps) < sum(steps) / 2
