from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import strategies
from experiments.counting_oracle import CountingOracle
from rankstream import Assortments, ChoiceCounts, Solver, distances, learners, oracles
from rankstream._core.types import Vec
from rankstream.oracles import Ties
from rankstream.solver.loop import State
from rankstream.streams.runs.growth import extend_rankings, grow

LEARNERS: dict[str, Any] = {
    "mirror-descent": learners.MirrorDescent(horizon=200, step=0.1),
    "strongly-convex-mirror-descent": learners.StronglyConvexMirrorDescent(),
    "follow-the-leader": learners.FollowTheLeader(),
    "naive-frank-wolfe": learners.NaiveFrankWolfe(),
    "dual-averaging": learners.DualAveraging(),
}
DISTANCES = ["l1", "l1.5", "l2", "l3", "linf", "max-difference", "squared-l2"]


def part(offers: Assortments, n_offers: int) -> Assortments:
    """The first offers, over the items that appear in them."""
    return Assortments(offers.offers[:n_offers])


def start(offers: Assortments, distance: str, learner: Any, ties: Ties = "random") -> Solver:
    form = distances.make(distance, offers, 0.0 if distance.startswith("squared") else 0.1)
    return Solver(offers, form, learner, oracles.auto(offers, ties, 3))


def target(offers: Assortments, values: Vec, seen_offers: int) -> Any:
    """The frequencies, of which only the first offers have been seen."""
    tallies = np.where(offers.owner < seen_offers, values * 2.0**20, 0.0)
    return ChoiceCounts(offers, tallies)


@given(strategies.assortments(), st.data())
def test_offers_one_by_one_are_as_all_at_the_start(offers: Assortments, data: st.DataObject) -> None:
    whole = Assortments(offers.offers)
    grown = part(whole, 1)
    counts = ChoiceCounts(grown)
    everything = ChoiceCounts(whole)
    for number, offer in enumerate(whole.offers):
        if number:
            counts = counts.extend([offer])
        places = data.draw(st.lists(st.integers(0, len(offer) - 1), max_size=3))
        for one in (counts, everything):
            one.observe_coordinates(whole.indptr[number] + np.array(places, dtype=np.int64))
    assert counts.assortments == whole
    assert counts.tallies.tolist() == everything.tallies.tolist()
    ranking = data.draw(st.permutations(range(whole.n_items)))
    assert counts.assortments.vertex(ranking).tolist() == whole.vertex(ranking).tolist()


@given(strategies.assortments(), st.sampled_from(["first", "last", "random"]), st.data())
def test_new_items_change_nothing_on_old_offers(offers: Assortments, ties: Ties, data: st.DataObject) -> None:
    whole = Assortments(offers.offers)
    old = part(whole, data.draw(st.integers(1, whole.n_offers)))
    rankings = np.array([data.draw(st.permutations(range(old.n_items))) for _ in range(3)])
    extended = extend_rankings(rankings, whole.n_items, ties, seed=5)
    for ranking, longer in zip(rankings, extended, strict=True):
        assert [code for code in longer.tolist() if code < old.n_items] == ranking.tolist()
        assert whole.vertex(longer)[: old.n_coordinates].tolist() == old.vertex(ranking).tolist()
    halfway = extend_rankings(rankings, (old.n_items + whole.n_items) // 2, ties, seed=5)
    assert extend_rankings(halfway, whole.n_items, ties, seed=5).tolist() == extended.tolist()


def test_random_places_are_uniform_and_depend_on_the_seed() -> None:
    rankings = np.array([np.random.default_rng(number).permutation(9) for number in range(4000)])
    places = np.argmax(extend_rankings(rankings, 10, "random", 1) == 9, axis=1)
    tallies = np.bincount(places, minlength=10)
    assert ((tallies - 400.0) ** 2 / 400.0).sum() < 27.9  # the 99.9 % quantile of chi-square with 9 degrees of freedom
    others = np.argmax(extend_rankings(rankings, 10, "random", 2) == 9, axis=1)
    assert (places != others).mean() > 0.8


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("distance", DISTANCES)
@settings(max_examples=8)
@given(strategies.assortments(most_items=5, most_offers=5), st.sampled_from(["first", "last", "random"]), st.data())
def test_a_grown_run_is_sound(
    learner: str, distance: str, offers: Assortments, ties: Ties, data: st.DataObject
) -> None:
    whole = Assortments(offers.offers)
    truth = data.draw(strategies.frequencies(whole))
    seen = data.draw(st.integers(1, whole.n_offers))
    solver = start(part(whole, seen), distance, LEARNERS[learner], ties)
    state = solver.init()
    for _ in range(10):
        state = solver.step(state, truth[: solver.assortments.n_coordinates])
    before, was = solver.certificate(state), state.sums.vertex.copy()
    while seen < whole.n_offers:
        seen = data.draw(st.integers(seen + 1, whole.n_offers))
        solver, state = grow(solver, state, part(whole, seen))
    agrees_with_its_rankings(solver, state)
    assert state.sums.vertex[: was.size].tolist() == was.tolist()
    after = solver.certificate(state)
    assert after.oracle_regret == pytest.approx(before.oracle_regret, abs=1e-9)
    if distance != "linf":  # smoothed, it is itself larger on more coordinates
        assert after.gap == pytest.approx(before.gap, abs=1e-9)
        assert after.dual_regret == pytest.approx(before.dual_regret, abs=1e-9)
    for _ in range(20):
        state = solver.step(state, truth)
    agrees_with_its_rankings(solver, state)
    certificate = solver.certificate(state, truth)
    assert certificate.gap >= 0.0
    models = [*naive.all_vertices(whole), naive.nearest_l2(whole, truth)]
    assert certificate.lower <= min(solver.distance.value(x, truth) for x in models) + 1e-9


def agrees_with_its_rankings(solver: Solver, state: State) -> None:
    """The sums are those of the rankings, and so is the model."""
    assert isinstance(solver.assortments, Assortments)
    model = solver.model(state)
    assert model.items == solver.assortments.items
    assert model.probabilities(solver.assortments) == pytest.approx(state.sums.mean_vertex, abs=1e-12)
    assert sum(state.weights.values()) == pytest.approx(state.sums.total_weight)


@pytest.mark.parametrize("distance", ["l2", "linf"])
def test_mirror_descent_goes_on_with_the_step_of_the_larger_problem(distance: str) -> None:
    """Its constant step depends on all offers: with that of the first ones, its regret bound would not hold."""
    whole = Assortments([("a", "b", "n"), ("b", "c", "n"), ("a", "c", "n"), ("a", "d", "n")])
    few, learner = part(whole, 2), learners.MirrorDescent(horizon=200)
    solver = Solver(few, distances.make(distance, few), learner, oracles.auto(few))
    state = solver.step(solver.init(), np.full(few.n_coordinates, 1.0 / 3.0))
    _, grown = grow(solver, state, whole)
    fresh = Solver(whole, distances.make(distance, whole), learner, oracles.auto(whole)).init()
    assert grown.learner.step == pytest.approx(fresh.learner.step, rel=1e-12)
    assert grown.learner.step != pytest.approx(state.learner.step, rel=1e-3)


@pytest.mark.parametrize("learner", sorted(set(LEARNERS) - {"naive-frank-wolfe"}))  # which looks at unseen offers
@pytest.mark.parametrize("distance", DISTANCES)
def test_growing_is_as_if_the_offers_had_been_there_unseen(learner: str, distance: str) -> None:
    """Where the learner's constants do not depend on the offers, both runs play the same rankings to the end."""
    whole = Assortments([("a", "b", "n"), ("b", "c", "n"), ("a", "c", "n"), ("a", "d", "n")], ["a", "b", "c", "n", "d"])
    old, middle = Assortments(whole.offers[:2], ["a", "b", "c", "n"]), Assortments(whole.offers[:3], whole.items[:4])
    truth = np.random.default_rng(4).dirichlet([1, 1, 1], size=4).ravel()
    player: Any = LEARNERS[learner]
    if learner == "dual-averaging":
        player = IgnorantAveraging()
    solver, reference = start(old, distance, player, "last"), start(whole, distance, player, "last")
    state, known = solver.init(), reference.init()
    for seen, larger in ((2, old), (3, middle), (4, whole)):
        if seen > 2:
            solver, state = grow(solver, state, larger)
        for _ in range(40):
            state = solver.step(state, truth[: larger.n_coordinates])
            known = reference.step(known, target(whole, truth, seen))
            now = solver.learner.play(state.learner)
            if distance != "linf" and seen < 4:
                then = reference.learner.play(known.learner)
                assert now == pytest.approx(then[: now.size], abs=1e-9)
    assert solver.learner.play(state.learner) == pytest.approx(reference.learner.play(known.learner), abs=1e-4)
    assert state.sums.mean_vertex[:6] == pytest.approx(known.sums.mean_vertex[:6], abs=1e-6)


@dataclass(frozen=True)
class IgnorantAveraging(learners.DualAveraging):
    """Dual averaging whose firmness does not depend on the number of offers."""

    def firmness(self, distance: distances.Distance) -> float:
        return 2.0


def test_weights_kl_wrappers_and_new_items_alone() -> None:
    offers = Assortments([("a", "n"), ("b", "n")])
    weighted = Solver(
        offers,
        distances.L2(offers, 0.1, (2.0, 0.5)),
        LEARNERS["follow-the-leader"],
        CountingOracle(oracles.auto(offers, "last")),
    )
    solver, state = grow(weighted, weighted.init(), offers.extend([("c", "n")]))
    assert solver.distance.weights == (2.0, 0.5, 1.0)  # type: ignore[attr-defined]
    assert solver.oracle.ties == "last"  # type: ignore[attr-defined]
    assert state.round == 0
    divergence = Solver(offers, distances.KL(offers), learners.FollowTheLeader(), oracles.auto(offers))
    begun = divergence.step(divergence.init(), [0.5, 0.5, 0.25, 0.75])
    larger, grown = grow(divergence, begun, offers.extend([("a", "b")]))
    for _ in range(300):
        grown = larger.step(grown, [0.5, 0.5, 0.25, 0.75, 0.6, 0.4])
    assert larger.certificate(grown, [0.5, 0.5, 0.25, 0.75, 0.6, 0.4]).gap < 0.05
    begun.seen = None
    _, more = grow(divergence, begun, offers.extend([], items=["c"]))
    assert more.seen is None
    assert not more.sums.moved
    assert len(next(iter(more.weights))) == 8 * 4


def test_other_learners_may_say_how_they_grow() -> None:
    offers = Assortments([("a", "n"), ("b", "n")])
    solver = start(offers, "l2", Grower())
    state = solver.step(solver.init(), [1, 0, 1, 0])
    _, grown = grow(solver, state, offers.extend([("a", "b")]))
    assert grown.learner.tolist() == [0.0] * 6


class Grower(learners.FollowTheLeader):
    def grow(self, old: distances.Distance, new: distances.Distance, state: Vec, grown: State) -> Vec:
        return new.start()


@dataclass(frozen=True)
class Doubled(distances.L2):
    """A distance whose duals have one entry too many."""

    def start(self) -> Vec:
        return np.zeros(self.assortments.n_coordinates + 1)


def test_what_cannot_grow_says_so() -> None:
    offers = Assortments([("a", "n"), ("b", "n")])
    larger = offers.extend([("a", "b")])
    solver = start(offers, "l2", LEARNERS["dual-averaging"])
    state = solver.step(solver.init(), [1, 0, 1, 0])
    with pytest.raises(ValueError, match="do not start with the old items and offers"):
        grow(solver, state, Assortments([("b", "n"), ("a", "n")]))
    with pytest.raises(ValueError, match="do not start with the old items and offers"):  # the same items in their order
        grow(solver, state, Assortments([("b", "n"), ("a", "n")], offers.items))
    state.learner = "mine"
    with pytest.raises(ValueError, match="DualAveraging cannot grow"):
        grow(solver, state, larger)
    doubled = Solver(offers, Doubled(offers), LEARNERS["dual-averaging"], solver.oracle)
    begun = State(doubled.learner.init(doubled.distance), doubled.init().sums, 1)
    begun.sums.total_weight, begun.weights = 1.0, state.weights
    with pytest.raises(ValueError, match="Doubled do not follow the coordinates"):
        grow(doubled, begun, larger)
    plain = Solver(offers, Bare(), LEARNERS["follow-the-leader"], solver.oracle)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Bare cannot grow"):
        grow(plain, state, larger)
    with pytest.raises(ValueError, match="only Assortments can"):
        grow(Solver(Elsewhere(), Bare(), solver.learner, solver.oracle), state, larger)  # type: ignore[arg-type]


class Bare:
    pass


class Elsewhere:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0
