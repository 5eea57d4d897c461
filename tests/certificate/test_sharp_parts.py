"""Constants of distances, learners and oracles that a fit survives if they are wrong: each by a formula of its own."""

from datetime import timedelta
from math import log, sqrt
from typing import Literal

import numpy as np
import pytest

import naive
from rankstream import Assortments, distances, learners, oracles
from rankstream._core.types import Vec
from rankstream.data.decay import DecayingCounts, WindowCounts, as_reach
from rankstream.distances import KL, Bilinear, HighNorm, LowNorm
from rankstream.learners import DualAveraging, FollowTheLeader, MirrorDescent, StronglyConvexMirrorDescent
from rankstream.learners.protocol import Sums, power_sum, whole_grad_bound
from rankstream.oracles import Answer
from rankstream.oracles.protocol import check_costs, finite_costs, meet
from rankstream.oracles.selection import ComponentsOracle

OFFERS = Assortments([("a", "b", "x"), ("b", "c", "x"), ("x", "a"), ("c", "x")])
NAMES = ["l1", "l1.5", "l2", "l4", "linf", "max-difference", "kl", "squared-l2"]


@pytest.mark.parametrize("name", NAMES)
def test_a_radius_is_reached_by_moving_half_of_it_to_another_item(name: str) -> None:
    form = distances.make(name, OFFERS)
    radii = np.array([0.4, 0.1, 0.3, 0.2])
    change = np.zeros(OFFERS.n_coordinates)
    for offer, radius in enumerate(radii):
        change[OFFERS.indptr[offer]] = radius / 2.0
        change[OFFERS.indptr[offer] + 1] = -radius / 2.0
    assert form.data_radius(radii) == pytest.approx(form.data_norm(change))


@pytest.mark.parametrize("weights", [None, (0.5, 2.0, 1.0, 3.0)])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "kl"])
def test_the_lipschitz_constant_is_that_of_some_change_of_the_data(
    name: str, weights: tuple[float, ...] | None
) -> None:
    """No smaller constant will do, where distances are norms: from the data themselves, D grows as the norm does."""
    form = distances.make(name, OFFERS, weights=weights)
    if name.startswith("squared"):
        assert isinstance(form, Bilinear)
        assert form.lipschitz >= form.offer_weights.max()
        return
    ratios = []
    for offer in range(OFFERS.n_offers):
        change = np.zeros(OFFERS.n_coordinates)
        change[OFFERS.indptr[offer]], change[OFFERS.indptr[offer] + 1] = 0.2, -0.2
        base = np.full(OFFERS.n_coordinates, 0.5)
        ratios.append(form.value(base, base + change) / form.data_norm(change))
    assert form.lipschitz == pytest.approx(max(ratios))


def test_sums_of_powers() -> None:
    for power in (0.0, 1.0, 2.0, 0.5, -1.0, 3.0):
        for rounds in (1, 2, 7, 10_000, 10_001, 25_000):
            direct = float((np.arange(1.0, rounds + 1.0) ** power).sum())
            assert power_sum(power, rounds) == pytest.approx(direct, rel=1e-10)


def test_regret_bounds_by_hand() -> None:
    """The theorems' own formulas, at other rounds than the horizon, with other weights, with and without smoothing."""
    form = distances.make("l2", OFFERS)
    grad, width = sqrt(2.0 * OFFERS.n_offers), 0.5
    assert [form.grad_bound, form.width] == pytest.approx([grad, width])
    tuned = MirrorDescent(horizon=100)
    step = sqrt(2.0 * width / (grad**2 * 100))
    assert tuned.step_size(form) == pytest.approx(step)
    assert tuned.regret_bound(form, 30) == pytest.approx(width / (step * 30) + step * grad**2 / 2.0)
    linear = MirrorDescent(horizon=3, power=1.0, step=0.2)
    assert linear.regret_bound(form, 3) == pytest.approx(width / (0.2 * 6) + 0.2 * grad**2 * 14 / 12)
    eager = DualAveraging(scale=2.0)
    assert eager.firmness(form) == pytest.approx(2.0 * grad / sqrt(width))
    assert eager.regret_bound(form, 50) == pytest.approx(2.5 * grad * sqrt(width * 50) / 50)
    smooth = distances.make("l2", OFFERS, 0.5)
    whole = grad + 0.5 * smooth.mirror_bound
    assert whole_grad_bound(smooth) == pytest.approx(whole)
    assert whole_grad_bound(form) == pytest.approx(grad)
    strong = StronglyConvexMirrorDescent()
    assert strong.regret_bound(smooth, 9) == pytest.approx(2.0 * whole**2 / (0.5 * 10))
    equal = StronglyConvexMirrorDescent(power=0.0)
    assert equal.regret_bound(smooth, 4) == pytest.approx(whole**2 / (2.0 * 0.5) * (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    leader = FollowTheLeader()
    assert leader.regret_bound(smooth, 9, constant=True) == pytest.approx(2.0 * grad**2 / (0.5 * 10))
    assert leader.regret_bound(smooth, 9) == pytest.approx(4.0 * 2.0 * grad**2 / (0.5 * 10))
    assert leader.regret_bound(form, 9) == np.inf
    assert FollowTheLeader().regret_bound(KL(OFFERS), 9) == np.inf


def test_a_matched_distance_is_as_smooth_as_asked() -> None:
    plain, _ = learners.match("l2", "follow-the-leader", OFFERS, 50, smoothing=0.25)
    assert plain.smoothing == 0.25
    best, _ = learners.match("l2", "follow-the-leader", OFFERS, 50)
    assert best.smoothing == pytest.approx(distances.optimal_smoothing(distances.make("l2", OFFERS), 50))
    assert learners.match("l2", "mirror-descent", OFFERS, 50)[0].smoothing == 0.0
    assert learners.match("squared-l2", "follow-the-leader", OFFERS, 50)[0].smoothing == 1.0


def test_sums_know_when_data_begin_to_move() -> None:
    first, other = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    sums = Sums(np.zeros(2), np.zeros(2), np.zeros(2))
    assert sums.rounds_at_rest(np.array([first, first, first, other])) == 3
    sums.add(1.0, first, first, first)
    sums.add(2.0, first, first.copy(), first)
    at_rest = not sums.moved
    assert at_rest
    assert sums.rounds_at_rest(np.array([other, other])) == 0
    assert sums.rounds_at_rest(np.array([first, first])) == 2
    assert sums.rounds_at_rest(np.array([first, other, first])) == 1
    sums.add(3.0, other, other, other)
    assert sums.moved
    assert sums.rounds_at_rest(np.array([other])) == 0
    sums.answer, sums.offset, sums.potential = 6.0, 12.0, 18.0
    sums.scale(0.5)
    assert (sums.total_weight, sums.answer, sums.offset, sums.potential) == (3.0, 3.0, 6.0, 9.0)
    assert sums.mean_vertex == pytest.approx([0.375, 0.625])
    assert sums.mean_frequencies == pytest.approx([0.375, 0.625])
    assert sums.mean_dual == pytest.approx([0.375, 0.625])


class Modest:
    """An exact oracle that proves less than it knows, by ``short``, and counts."""

    def __init__(self, offers: Assortments, short: float) -> None:
        self.exact, self.short = oracles.auto(offers, "first"), short

    def cheapest(self, costs: Vec) -> Answer:
        found = self.exact.cheapest(costs)
        return Answer(found.ranking, found.value, found.value - self.short)


def test_parts_add_up_what_they_have_not_proven() -> None:
    offers = Assortments([("a", "b", "x"), ("c", "d", "x"), ("x",), ("e", "f", "x")])

    def make(part: Assortments, *_: object) -> Modest:
        return Modest(part, 0.25)

    oracle = ComponentsOracle(offers, make)
    costs = np.random.default_rng(0).normal(size=offers.n_coordinates)
    answer = oracle.cheapest(costs)
    assert answer.value == pytest.approx(naive.cheapest_value(offers, costs))
    assert answer.bound == pytest.approx(answer.value - 3 * 0.25)
    assert not answer.exact


def test_costs_are_checked_before_they_are_used() -> None:
    with pytest.raises(ValueError, match="There must be 10 costs"):
        check_costs(OFFERS, np.zeros(9))
    for wrong in (np.nan, np.inf, 1e308):
        with pytest.raises(ValueError, match="finite"):
            finite_costs(OFFERS, np.full(10, wrong))
    costs = np.array([1.0, -3.0])
    room = 4.0 * np.finfo(float).eps * 2 * 4.0
    assert meet(5.0, 2.0, costs) == 2.0
    assert meet(2.0 - 0.9 * room, 2.0, costs) == 2.0
    assert meet(2.0 - 1.3 * room, 2.0, costs) == 2.0 - 1.3 * room


def test_entropies_are_as_wide_as_their_simplices() -> None:
    sizes = np.diff(OFFERS.indptr)
    form = distances.make("max-difference", OFFERS)
    assert form.width == pytest.approx(float(np.log(sizes).sum()))
    assert form.grad_bound == pytest.approx(sqrt(OFFERS.n_offers))
    assert distances.make("linf", OFFERS).width == pytest.approx(log(2 * OFFERS.n_coordinates))


@pytest.mark.parametrize("size", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("name", ["l1", "l1.5", "l2", "l4", "linf", "max-difference", "squared-l3"])
def test_the_image_of_a_dual_leads_back_to_it(name: str, size: float) -> None:
    """Mirror descent goes on from the image of its dual: the prox of that is the dual, and it is not too long."""
    form = distances.make(name, OFFERS)
    slope = size * np.random.default_rng(11).normal(size=form.start().size)
    dual = form.prox(slope)
    image = form.image(slope, dual)
    assert form.prox(-image) == pytest.approx(dual, abs=1e-9)
    if isinstance(form, HighNorm):
        assert form.data_norm(image) == pytest.approx(min(form.data_norm(slope), form.mirror_bound))


@pytest.mark.parametrize(("kind", "q"), [(LowNorm, 1.0), (LowNorm, 2.0), (HighNorm, 1.9), (HighNorm, np.inf)])
def test_norms_know_where_they_end(kind: type[LowNorm | HighNorm], q: float) -> None:
    with pytest.raises(ValueError, match="q"):
        kind(OFFERS, q=q)


@pytest.mark.parametrize("text", ["0", "0d", "0.0 h", "1e13", "1e9d", "5x", "", "-1", "1e", "7 d d"])
def test_a_reach_is_a_positive_number_or_time(text: str) -> None:
    with pytest.raises(ValueError, match="neither a number of choices nor a time"):
        as_reach(text)


def test_reaches_that_are_just_possible() -> None:
    assert as_reach("9e12") == 9e12
    assert as_reach(".5min") == timedelta(seconds=30)
    assert as_reach("2w") == timedelta(days=14)
    assert as_reach(7.0) == 7.0


@pytest.mark.parametrize("weights", [None, (0.5, 2.0, 1.0, 3.0)])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "kl"])
def test_the_answer_to_whole_errors_is_the_best_dual(name: str, weights: tuple[float, ...] | None) -> None:
    """Between rankings errors are 0 and 1, where a comparison with either may go wrong."""
    form, corners = distances.make(name, OFFERS, weights=weights), naive.all_vertices(OFFERS)
    for one, other in ((0, 5), (3, 17), (23, 1), (4, 4)):
        dual = form.respond(corners[one], corners[other])
        paid = float(form.costs(dual) @ corners[one]) - form.offset(dual, corners[other])
        assert paid == pytest.approx(form.value(corners[one], corners[other]), abs=1e-12)


@pytest.mark.parametrize("ties", ["first", "last", "random"])
def test_parts_without_a_common_item(ties: Literal["first", "last", "random"]) -> None:
    """Where no item is in every offer, the parts' rankings follow each other, and items in no offer come along."""
    offers = Assortments([("a", "b"), ("b", "c", "a"), ("d", "e"), ("f",)], [*"abcdef", "g"])
    oracle = ComponentsOracle(offers, lambda part, rule, seed: oracles.auto(part, rule, seed), ties, 3)
    assert len(oracle.parts) == 2
    random = np.random.default_rng(1)
    for _ in range(10):
        costs = random.normal(size=offers.n_coordinates)
        answer = oracle.cheapest(costs)
        assert answer.exact
        assert sorted(answer.ranking.tolist()) == list(range(7))
        assert answer.value == pytest.approx(min(naive.all_vertices(offers) @ costs))
        assert answer.value == pytest.approx(float(naive.vertex(offers, answer.ranking.tolist()) @ costs))


@pytest.mark.parametrize("kind", [DecayingCounts, WindowCounts])
@pytest.mark.parametrize("by", ["observations", "time"])
def test_copies_of_counts_that_forget_know_the_same(
    kind: type[DecayingCounts | WindowCounts], by: Literal["observations", "time"]
) -> None:
    counts = kind(OFFERS, 3, by)
    times = {"time": [1.0, 2.0, 2.5, 4.0]} if by == "time" else {}
    counts.observe_coordinates([0, 1, 4, 8], [1, 2, 1, 3], **times)
    larger = counts.extend([("a", "q")])
    for twin in (counts.copy(), larger):
        size = OFFERS.n_coordinates
        assert twin.tallies[:size].tolist() == counts.tallies.tolist()
        assert twin.totals[: OFFERS.n_offers].tolist() == counts.totals.tolist()
        assert twin.effective_totals[: OFFERS.n_offers].tolist() == counts.effective_totals.tolist()
        assert (twin.now, twin.reach, twin.by) == (counts.now, 3.0, by)
        assert twin.observations == counts.observations > 0.0
        assert not twin.tallies[size:].any()
    kept = counts.tallies.tolist()
    larger.observe_coordinates([10], 1, **({"time": [5.0]} if by == "time" else {}))
    assert counts.tallies.tolist() == kept  # they go their own way
