"""Small mistakes that other tests would let pass: each test here fails on one of them."""

from pathlib import Path
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import brute
from local_service import CAFE, shop
from rankstream import Assortments, Bootstrap, ChoiceCounts, Live, RankingModel, Record, distances, estimate, methods
from rankstream._core.watch import Deadline, unwatched
from rankstream.certificate import Proof
from rankstream.columns.lower_bound import HalfSpace, prove_lower_bound
from rankstream.columns.proofs import Prover
from rankstream.data.counts import Target
from rankstream.data.drift import drift_report
from rankstream.decide.problem.offers import make_problem
from rankstream.distances import L2, observation_weights
from rankstream.estimation.many import pooling
from rankstream.estimation.task import with_proof
from rankstream.learners import DualAveraging
from rankstream.models.entropy import trust
from rankstream.models.entropy.guides import LOGIT, _by_likelihood
from rankstream.oracles import DenseOracle
from rankstream.service.processes.learner import LogLearner
from rankstream.service.storage.log import market_rows
from rankstream.streams import proofs
from rankstream.streams.background import BackgroundLive, refreshed
from rankstream.streams.entropy_follower import EntropyFollower
from rankstream.streams.proofs import StreamProof

OFFERS = Assortments([("a", "b", "c", "e"), ("b", "c", "d", "e"), ("a", "d", "e"), ("c", "a", "e"), ("d", "b", "e")])
VERTICES = brute.corners(list(OFFERS.offers), list(OFFERS.items))


def some_counts(seed: int, most: int = 40, offers: Assortments = OFFERS) -> ChoiceCounts:
    """Choices that no ranking model explains."""
    raw = np.random.default_rng(seed).gamma(0.5, size=offers.n_coordinates)
    return ChoiceCounts(offers, np.ceil(most * raw))


def true_least(counts: ChoiceCounts) -> float:
    """How near any mixture of all rankings is, by least squares."""
    offers = counts.assortments
    weights = np.array(observation_weights(counts))
    given = brute.Problem(list(offers.offers), counts.frequencies(), weights, np.ones(offers.n_offers))
    corners = brute.corners(list(offers.offers), list(offers.items))
    return brute.least(lambda point: brute.value("l2", point, given), "l2", given, corners)


def test_a_smaller_model_is_certified_at_its_own_distance() -> None:
    """``corrective.with_fewer`` with the upper bound of the full model would promise too much."""
    counts = some_counts(1)
    full, few = estimate(counts, method="nearest"), estimate(counts, method=methods.Nearest(max_rankings=2))
    weights = np.array(observation_weights(counts))[OFFERS.owner]
    error = few.model.probabilities(OFFERS) - counts.frequencies()
    assert few.certificate.upper == pytest.approx(float(np.linalg.norm(weights * error)), abs=1e-12)
    assert few.certificate.upper > full.certificate.upper + 0.01
    assert few.certificate.lower == full.certificate.lower
    same = estimate(counts, method=methods.Nearest(max_rankings=len(full.model.weights)))
    assert full.converged
    assert (same.converged, same.certificate) == (True, full.certificate)  # nothing had to be left out


def test_the_margin_of_single_precision_covers_every_rounding() -> None:
    """Counted step by step: each cost, each sum over an item's offers, and each step of the walk is rounded once."""
    costs = np.random.default_rng(0).normal(size=OFFERS.n_coordinates)
    unit, levels, most = 2.0**-24, 0.0, 0
    for item in range(OFFERS.n_items):
        own = costs[OFFERS.members == item]
        levels += max(own[own > 0.0].sum(), -own[own < 0.0].sum())
        most = max(most, own.size)
    oracle = DenseOracle(OFFERS)
    by_item, by_walk = (most + 2) * unit * levels, oracle._n_bits * unit * levels
    assert by_item + by_walk <= oracle.margin(costs) <= 1.01 * (by_item + by_walk)


def test_a_half_space_proves_nothing_with_the_help_of_an_offer_without_weight() -> None:
    space = HalfSpace(np.where(OFFERS.owner <= 1, -1.0, 0.0), -1.0)
    norm, here = L2(OFFERS, weights=(0.0, 1.0, 1.0, 1.0, 1.0)), Target(np.full(OFFERS.n_coordinates, 0.9))
    assert space.lower(norm, here) == 0.0
    assert space.lower(L2(OFFERS), here) > 0.0


def stream_of(counts: ChoiceCounts) -> Live:
    """A stream that has played one round on these counts."""
    offers, live = counts.assortments, Live(rounds=1, publish="sparse")
    pairs = zip(offers.owner.tolist(), offers.members.tolist(), counts.tallies.tolist(), strict=True)
    live.observe(
        [Record(offers.offers[offer], offers.items[item], int(times)) for offer, item, times in pairs if times]
    )
    return live


def sharpen(proof: StreamProof, live: Live, records: int) -> tuple[float, float]:
    """What the rounds of a stream prove, and what the proof makes of that."""
    assert live.run is not None
    assert live.counts is not None
    rounds = live.run.solver.certificate(live.run.state, live.counts)
    return rounds.lower, proof.sharpen(rounds, live.run, live.counts, records).lower


def test_a_half_space_of_other_offers_is_not_held_against_these() -> None:
    """Nobody can mostly prefer a to b, b to c and c to a; with the last offer turned round, everybody can."""
    circle, line = (Assortments([("a", "b"), ("b", "c"), last], tuple("abc")) for last in (("c", "a"), ("a", "c")))
    before, after = (stream_of(ChoiceCounts(offers, [90, 10, 90, 10, 90, 10])) for offers in (circle, line))
    proof = StreamProof(seldom=10.0)
    assert sharpen(proof, before, 100)[1] > 0.1
    assert sharpen(proof, after, 101)[1] < 1e-9


def test_the_stronger_of_rounds_and_half_space_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    live = stream_of(some_counts(3))
    assert live.run is not None
    assert live.counts is not None
    distance: Any = live.run.solver.distance
    target = live.counts.target()
    oracle = DenseOracle(live.counts.assortments)
    strong = prove_lower_bound(distance, target, oracle, 1e-9)
    assert strong is not None
    weak = HalfSpace(strong.normal, strong.least - 0.9 * strong.lower(distance, target))
    for space in (strong, weak, None):
        monkeypatch.setattr(proofs, "prove_lower_bound", lambda *_, space=space, **__: space)
        by_rounds, proven = sharpen(StreamProof(), live, 100)
        by_space = 0.0 if space is None else space.lower(distance, target)
        assert proven == pytest.approx(max(by_rounds, by_space), abs=1e-12)
        certificate = live.run.solver.certificate(live.run.state, live.counts)
        assert with_proof(certificate, space, distance, target).lower == pytest.approx(
            max(by_rounds, by_space), abs=1e-12
        )
    assert strong.lower(distance, target) > by_rounds


def test_more_records_bring_the_half_space_of_now() -> None:
    """The one of before proves less at other counts: it must not be kept."""
    proof = StreamProof(seldom=1.2)
    sharpen(proof, stream_of(some_counts(1)), 100)
    live = stream_of(some_counts(2))
    assert live.counts is not None
    _, lower = sharpen(proof, live, 200)
    assert lower >= 0.95 * true_least(live.counts) > 0.0


def test_a_state_that_is_ahead_of_the_log_is_not_resumed(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", CAFE)
        opened.settle("cafe", served="sparse")
        opened.learn()
        learner = LogLearner(tmp_path, refreshed)
        row = market_rows(learner.log)[0]
        again = learner._resumed(row)
        assert again is not None
        assert again.position == row.records
        assert learner._resumed(row._replace(records=row.records - 1)) is None
        learner.close()


def test_a_change_is_remembered_until_the_next_job(monkeypatch: pytest.MonkeyPatch) -> None:
    restarts: list[int | None] = [None]
    monkeypatch.setattr(Live, "restarted", property(lambda _: restarts[-1]))
    learning, asked = BackgroundLive({"rounds": 1}), list[bool]()
    monkeypatch.setattr(learning.dense, "due", lambda *given: asked.append(given[-1]))
    observe = learning.live.observe

    def restarted(batch: Any) -> None:
        observe(batch)
        restarts.append(60)

    batch = [Record(("tea", "pie"), "tea", 30)]
    learning.observe(batch, 1)
    monkeypatch.setattr(learning.live, "observe", restarted)
    learning.observe(batch, 2)
    monkeypatch.setattr(learning.live, "observe", observe)
    learning.observe(batch, 3)
    assert asked == [False, True, True]


def test_choices_that_arrive_while_a_model_is_made_count_towards_the_next() -> None:
    learning = BackgroundLive({"rounds": 1})
    learning.observe([Record(("tea", "pie"), "tea", 40), Record(("tea", "pie"), "pie", 20)], 2)
    job = learning.job()
    assert job is not None
    learning.observe([Record(("tea", "pie"), "pie", 7)], 3)
    learning.take(refreshed(job))
    assert learning.dense.choices == 67.0


def test_a_refresh_ends_by_either_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine ten seconds of the processor take minutes, and other markets wait."""
    given: list[Any] = []
    monkeypatch.setattr(EntropyFollower, "refresh", lambda *words: given.append(words[-1]))
    learning = BackgroundLive({"rounds": 1})
    learning.observe([Record(("tea", "pie"), "tea", 40), Record(("tea", "pie"), "pie", 20)], 2)
    job = learning.job()
    assert job is not None
    refreshed(job)
    (watch,) = given
    assert not watch("weighing")
    watch.wall_start -= 30.0
    assert watch("weighing")
    watch.wall_start += 30.0
    watch.start -= 11.0
    assert watch("weighing")


def test_an_interval_is_as_wide_as_errors_and_shift_together() -> None:
    counts = ChoiceCounts(OFFERS, np.ceil(some_counts(4).tallies))
    spread = Bootstrap(counts, "mnl", replicates=4)
    offers = Assortments([("a", "b", "c", "d", "e"), ("a", "c")], OFFERS.items)
    shares = np.array([model.probabilities(offers) for model in spread.models])
    middle = spread.model.probabilities(offers)
    shift = shares.mean(axis=0) - middle
    reach = NormalDist().inv_cdf(0.9) * np.sqrt(shares.std(axis=0, ddof=1) ** 2 + shift**2)
    assert np.abs(shift).max() > 1e-3
    share, low, high = spread.bounds(offers, 0.8)
    assert share == pytest.approx(middle)
    assert low == pytest.approx(np.maximum(0.0, middle - reach), rel=1e-6)
    assert high == pytest.approx(np.minimum(1.0, middle + reach), rel=1e-6)
    assert spread.bounds_of(lambda model: model.probabilities(offers), 0.8)[2] == pytest.approx(high, rel=1e-6)


def test_items_are_tested_at_a_level_for_all_of_them() -> None:
    """One offer, so that the test of an item is Pearson's with one degree of freedom, times (n - 1) / n."""
    offers = Assortments([tuple("abcdef")])
    before, after = np.full(6, 100.0), np.array([140.0, 92.0, 92.0, 92.0, 92.0, 92.0])
    found = drift_report(ChoiceCounts(offers, before), ChoiceCounts(offers, after)).items
    table = np.array([[100.0, 500.0], [140.0, 460.0]])
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    statistic = ((table - expected) ** 2 / expected).sum() * (table.sum() - 1.0) / table.sum()
    assert [item.item for item in found] == ["a"]
    assert found[0].p_value == pytest.approx(2.0 * 6.0 * float(chi2.sf(statistic, 1)), rel=1e-9)  # half for offers
    mild = drift_report(ChoiceCounts(offers, before), ChoiceCounts(offers, [125.0, 95.0, 95.0, 95.0, 95.0, 95.0]))
    assert mild.items == ()  # 0.03 to 0.2 for this item alone, and six were looked at


@pytest.mark.parametrize(("gain", "chosen"), [(0.5, 100.0), (1.5, 30.0)])
def test_a_step_of_trust_has_to_gain_a_nat(gain: float, chosen: float, monkeypatch: pytest.MonkeyPatch) -> None:
    heights = {100.0: -50.0, 30.0: -50.0 + gain}

    class Known:
        def __init__(self, *_: object) -> None: ...

        def score(self, step: float | None) -> float:
            return heights.get(step or 0.0, -90.0)

    monkeypatch.setattr(trust, "_HeldOut", Known)
    monkeypatch.setattr(trust, "hold_out_choices", lambda *_: [])
    counts = some_counts(0)
    fold = SimpleNamespace(prior=lambda _: None, test=SimpleNamespace(observations=0.5 * counts.observations))
    stack: Any = SimpleNamespace(folds=(fold,), logit_weight=0.0, pool_weight=0.0)
    program: Any = SimpleNamespace(states=np.zeros(3), with_prior=lambda _: None)
    found, tried = trust.choose_trust(stack, counts, program)
    assert found == chosen
    assert tried["30" if chosen == 100.0 else "100"] == pytest.approx(-abs(gain - 1.0))


def test_ends_of_a_climb_count_by_their_likelihood() -> None:
    ends = [SimpleNamespace(log_likelihood=height, iterations=1) for height in (-101.0, -100.0, -102.0, -110.0)]
    found = _by_likelihood(LOGIT, ends)
    likely = np.exp([-1.0, 0.0, -2.0])
    assert found.models == tuple(ends[:3])
    assert found.weights == pytest.approx(likely / likely.sum())


def test_markets_of_a_pool_count_the_same_however_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A market with a hundred times the choices has a hundred times the nats, and is asked no more."""
    small, large = some_counts(1), ChoiceCounts(OFFERS, 100.0 * some_counts(2).tallies)
    nats = {small.observations: [-30.0, -20.0, -10.0, -40.0], large.observations: [-3000.0, -4000.0, -4100.0, -6000.0]}
    monkeypatch.setattr(pooling, "guides_with", lambda *_: ())
    monkeypatch.setattr(pooling, "fit_stack", lambda counts, *_: SimpleNamespace(folds=counts))
    monkeypatch.setattr(pooling, "score_pool", lambda counts, *_: np.array(nats[counts.observations]))
    score: Any = pooling._score
    for counts in (small, large):
        assert score((counts, None, 0)) == pytest.approx(np.array(nats[counts.observations]) / counts.observations)


def test_the_no_choice_item_takes_no_place_of_an_offer() -> None:
    """Whether an offer says that customers may leave or not, it is as large, and as feasible."""
    model = RankingModel(("tea", "pie", "no"), [("tea", "no", "pie")], [1.0], no_choice_code=2)
    problem = make_problem(model, {"tea": 1.0, "pie": 2.0}, at_most=1)
    assert problem.is_feasible(np.array([True, False, False]))
    assert problem.is_feasible(np.array([True, False, True]))
    assert not problem.is_feasible(np.array([True, True, False]))
    first = RankingModel(("no", "tea"), [("tea", "no")], [1.0], no_choice_code=0)
    assert make_problem(first, {"tea": 1.0}).is_feasible(np.array([True, True]))


def test_offers_cannot_be_written_to() -> None:
    """Vectors follow their coordinates, and models share them."""
    for array in (OFFERS.members, OFFERS.indptr, OFFERS.owner):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize(("watch", "rounds"), [(unwatched, 20), (Deadline(3600.0), None)])
def test_cuts_have_all_the_time_that_is_counted(
    watch: Any, rounds: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(Proof, "advance", lambda *words: asked.append(words[2]))
    Prover(L2(OFFERS), some_counts(0).target(), None, watch).finish(rounds=20)
    assert asked == [rounds]


@pytest.mark.parametrize("wrong", [3, L2, None])
def test_what_is_no_distance_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="neither a distance nor the name of one"):
        distances.make(wrong, OFFERS)


def test_smoothing_makes_dual_averaging_firmer() -> None:
    """The leader is the prox of all pulls over smoothing times the weights and the root of their squares."""
    norm, learner = distances.make("l2", OFFERS, 0.5), DualAveraging()
    state = learner.init(norm)
    vertex, data = VERTICES[0].astype(float), some_counts(5).frequencies()
    played: Any = SimpleNamespace(
        vertex=vertex, dual=state.dual, frequencies=data, weight=1.0, number=1, sums=SimpleNamespace(total_weight=7.0)
    )
    squares = state.squares + learner.round_weight(2) ** 2
    firmness = 0.5 * 7.0 + learner.firmness(norm) * np.sqrt(squares)
    wanted = norm.prox(norm.pull(vertex, state.dual, data) * (-1.0 / firmness))
    assert learner.update(norm, state, played).dual == pytest.approx(wanted)
