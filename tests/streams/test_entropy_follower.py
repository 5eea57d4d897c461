"""The maximum-entropy model that a stream serves: when it is refreshed, what is proven of it, and how it is resumed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import naive
import rankstream as rs
from rankstream import Live, Record
from rankstream.data import simulate
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.models.entropy import ensemble as stacking
from rankstream.models.entropy.ensemble import fit_stack
from rankstream.models.entropy.guides import LOGIT, UNIFORM
from rankstream.streams import entropy_follower as served
from rankstream.streams.entropy_follower import EntropyFollower

MARKET = simulate.market(4, n_items=5, n_offers=8, n_test=5, unseen=True)
KINDS: dict[str, dict[str, Any]] = {"plain": {}, "decaying": {"half_life": 150.0}, "detector": {"detect": True}}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two guides instead of eleven: what is tested here is when and from where they are fitted."""
    monkeypatch.setattr(served, "fit_stack", lambda data, seed, **_: fit_stack(data, (LOGIT, UNIFORM), seed))


def records(number: int, seed: int = 0) -> list[Record]:
    """Choices of the market, in a random order."""
    offers = MARKET.assortments
    drawn = simulate.draw_choices(offers, MARKET.frequencies(), number, np.random.default_rng(seed))
    return [Record(offers.offers[offers.owner[c]], offers.items[offers.members[c]]) for c in drawn.tolist()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_stream_equals_an_uninterrupted_one(kind: str, tmp_path: Path) -> None:
    batches = [records(60, seed) for seed in range(8)]
    whole, parts = Live(**KINDS[kind]), Live(**KINDS[kind])
    for number, batch in enumerate(batches):
        whole.observe(batch)
        parts.observe(batch)
        parts.save(tmp_path / "state.npz")
        parts = Live.load(tmp_path / "state.npz")
        assert parts.dense.to_content() == whole.dense.to_content()
        if number > 2:
            assert parts.serves == whole.serves == "max-entropy"
            assert np.array_equal(parts.model.probabilities(MARKET.test), whole.model.probabilities(MARKET.test))
            assert parts.certificate == whole.certificate


def test_the_work_follows_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed: list[float] = []

    def counted(data: ChoiceCounts, seed: int, **_: Any) -> Any:
        weighed.append(data.observations)
        return fit_stack(data, (LOGIT, UNIFORM), seed)

    monkeypatch.setattr(served, "fit_stack", counted)
    live, fits = Live(), []
    for number in range(40):
        live.observe(records(20, number))
        fits.append(None if live.dense.fit is None else live.dense.fit)
    assert weighed == [60, 120, 240, 480]  # the first batch from 50 on, then whenever there are twice as many
    assert fits[1] is None
    refreshed = sum(one is not before for one, before in zip(fits[1:], fits, strict=False))
    assert 10 <= refreshed <= 25  # a tenth more each time: log(800 / 60) / log(1.1) = 27 at most
    live.observe(records(20, 99))
    assert live.dense.fit is fits[-1] or live.dense.fitted[1] == 820


def test_a_model_is_refreshed_when_its_counts_have_moved_and_after_a_change_at_once() -> None:
    offers = MARKET.assortments
    model, counts = EntropyFollower(0), ChoiceCounts(offers, 10 * np.ones(offers.n_coordinates))
    model.follow(counts, 60)
    first, size = model.fit, offers.n_coordinates
    model.follow(counts, 10 * size)  # where old choices fade as new ones come, counts may stay as they are
    assert model.fit is first
    moved = ChoiceCounts(offers, np.resize([14.0, 6.0], size))  # as many choices, and others
    assert model.moved_nats(moved) > 10 * served.REFIT_NATS * size
    model.follow(moved, 1)
    again = model.fit
    assert again is not first
    assert model.weighed[0] == 60.0
    model.follow(counts, served.REFIT_EVERY * size - 1)  # too few choices to pay for the next
    assert model.fit is again
    model.follow(counts, 2)  # a tenth of 220, and a little for rounding
    last = model.fit
    assert last is not again
    model.follow(counts, 30 * size)
    assert model.weighed[0] == model.choices  # weighed anew after as many choices, moved or not
    model.follow(counts, 1, changed=True)
    assert model.fit is not last
    assert model.weighed[0] == model.choices


def test_a_change_of_tastes_refreshes_a_model_of_many_choices() -> None:
    """By their number alone, 6,000 choices would wait for 1,200 more."""
    offers, random = MARKET.assortments, np.random.default_rng(5)
    counts = ChoiceCounts(offers, random.multinomial(6000, MARKET.frequencies() / offers.n_offers))
    steady, changed = EntropyFollower(0), EntropyFollower(0)
    for model in (steady, changed):
        model.follow(counts, 6000)
    same = ChoiceCounts(offers, counts.tallies + random.multinomial(300, MARKET.frequencies() / offers.n_offers))
    tastes = np.concatenate([shares[::-1] for shares in np.split(MARKET.frequencies(), offers.indptr[1:-1])])
    other = ChoiceCounts(offers, counts.tallies + random.multinomial(300, tastes / offers.n_offers))
    assert steady.due(same, 300) is None
    assert changed.due(other, 300) == "again"


def test_moved_nats_are_a_ratio_of_likelihoods() -> None:
    offers = Assortments([("a", "b"), ("b", "c")])
    model = EntropyFollower(0)
    model.follow(ChoiceCounts(offers, [30, 30, 40, 20]), 120)
    now = ChoiceCounts(Assortments([("b", "c"), ("a", "c"), ("a", "b")], offers.items), [40, 20, 5, 0, 60, 30])
    new = 5 * np.log((5.5 / 6.0) / 0.5)  # against a uniform guess
    moved = 60 * np.log((60.5 / 91.0) / 0.5) + 30 * np.log((30.5 / 91.0) / 0.5)
    assert model.moved_nats(now) == pytest.approx(new + moved)


def test_the_certificate_is_the_distance_of_what_is_served_and_the_best_bound_of_any_model() -> None:
    live = Live(rounds=100)
    live.observe(records(400))
    assert live.counts is not None
    assert live.run is not None
    proven = live.run.solver.certificate(live.run.state, live.counts)
    weights = np.array(rs.distances.observation_weights(live.counts))[live.counts.assortments.owner]
    apart = live.model.probabilities(live.counts.assortments) - live.counts.frequencies()
    assert live.certificate.upper == pytest.approx(float(np.sqrt(np.sum((weights * apart) ** 2))), rel=1e-9)
    nearest = rs.estimate(live.counts, method="nearest").certificate
    assert proven.lower <= live.certificate.lower <= nearest.upper + 1e-9
    assert live.certificate.lower >= 0.9 * nearest.lower  # rounds alone prove next to nothing here
    assert live.certificate.upper != pytest.approx(proven.upper, rel=1e-6)


def test_offers_beyond_the_program_count_at_their_worst_until_the_next_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    live = Live(rounds=100)
    live.observe(records(400))
    live.dense.follow = lambda *_, **__: None  # type: ignore[method-assign]
    new = [offer for offer in MARKET.test.offers if offer not in MARKET.assortments.offers][:3]
    live.observe([Record(offer, offer[0], 9) for offer in new] + [Record(offer, offer[1], 1) for offer in new])
    assert live.counts is not None
    assert live.run is not None
    options = live.certificate, live.run.solver.distance, live.counts

    def sampled(*_: Any) -> None:
        raise AssertionError("a certificate rests on samples")

    monkeypatch.setattr(rs.EntropyModel, "draw_orders", sampled)
    content = live.dense.to_content()
    tilted = content | {"duals": [0.1 * number for number in range(len(content["duals"]))]}
    del tilted["shares"]
    follower = EntropyFollower.from_content(tilted, 0)
    quick, exact = follower.certify(*options, max_states=0), follower.certify(*options)
    offers, shares = live.counts.assortments, live.counts.frequencies()
    weights = np.array(rs.distances.observation_weights(live.counts))[offers.owner]
    squares = (weights * (follower.model.probabilities(offers) - shares)) ** 2
    assert exact.upper == pytest.approx(float(np.sqrt(squares.sum())), rel=1e-9)
    for offer in new:
        at = list(offers.place(offer).values())
        squares[at] = max(((weights[at] * (sure - shares[at])) ** 2 for sure in np.eye(len(at))), key=np.sum)
    assert len(new) == 3
    assert quick.lower == exact.lower
    assert quick.upper == pytest.approx(float(np.sqrt(squares.sum())), rel=1e-9)
    assert quick.upper > exact.upper
    assert quick.gap == pytest.approx(quick.upper - quick.lower)
    assert (quick.oracle_regret, quick.dual_regret) == (0.0, quick.upper - quick.lower)  # no round was played for it


def test_a_refreshed_model_is_taken_over_without_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    live = Live(rounds=100)
    live.observe(records(400))
    content, shares = live.dense.to_content(), live.model.probabilities(MARKET.assortments)
    monkeypatch.setattr(rs.EntropyModel, "_exact", None)
    again = EntropyFollower.from_content(content, 0)
    assert again.fit is not None
    assert live.dense.fit is not None
    assert np.array_equal(again.fit.fitted, live.dense.fit.fitted)
    assert again.model.probabilities(MARKET.assortments) == pytest.approx(shares, abs=1e-12)


def test_new_items_are_asked_of_the_sparse_model_until_the_next_refresh() -> None:
    live = Live()
    live.observe(records(100))
    assert live.serves == "max-entropy"
    live.dense.follow = lambda *_, **__: None  # type: ignore[method-assign]
    live.observe(Record(("rum", "item 1"), "rum"))
    assert live.serves == "sparse"
    assert live.model.predict(("rum", "item 1"))["rum"] > 0.0
    del live.dense.follow
    live.observe(Record(("rum", "item 1"), "rum"))
    assert live.serves == "max-entropy"
    assert live.model.predict(("rum", "item 1"))["rum"] > 0.0


def test_guides_that_hardly_count_learn_new_items_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def lopsided(data: ChoiceCounts, seed: int, **_: Any) -> Any:
        return replace(fit_stack(data, (LOGIT, UNIFORM), seed), weights=np.array([0.98, 0.02]))

    monkeypatch.setattr(served, "fit_stack", lopsided)
    monkeypatch.setattr(stacking, "MIN_GUIDE_WEIGHT", 0.0)
    live = Live()
    live.observe(records(100))
    live.observe(Record(("rum", "item 1"), "rum"))
    assert live.serves == "max-entropy"
    assert live.model.predict(("rum", "item 1"))["rum"] > 0.0


def test_markets_that_are_too_large_are_served_by_the_sparse_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "MAX_SIZES", (400, 5, 4000))
    live = Live()
    live.observe(records(100))
    assert live.serves == "sparse"
    assert live.model == live.sparse


def test_a_market_that_grows_too_large_is_not_served_by_its_old_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is fitted no more, so that what it served would stay as it was for ever."""
    live = Live()
    live.observe(records(100))
    assert live.serves == "max-entropy"
    monkeypatch.setattr(served, "MAX_SIZES", (8, 64, 4000))
    live.observe(Record(("item 0", "item 1", "item 2", "item 3", "item 4"), "item 0"))
    assert live.counts is not None
    assert live.counts.assortments.n_offers == 9
    assert live.serves == "sparse"


def test_a_refresh_has_one_thread_of_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def counted(data: ChoiceCounts, seed: int, **_: Any) -> Any:
        threads.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return fit_stack(data, (LOGIT, UNIFORM), seed)

    monkeypatch.setattr(served, "fit_stack", counted)
    with threadpool_limits(2, user_api="blas"):
        Live().observe(records(100))
    assert set(threads) == {1}


def test_sparse_is_there_for_the_asking_and_nothing_else_is_a_word() -> None:
    live = Live(publish="sparse")
    live.observe(records(100))
    assert live.serves == "sparse"
    assert live.dense.fit is None
    with pytest.raises(ValueError, match="publish is 'best': choose 'max-entropy' or 'sparse'"):
        Live(publish="best")


def test_unseen_offers_are_predicted_better_than_by_the_sparse_model() -> None:
    market = simulate.market(2, n_items=7, segments=1, n_offers=15, n_test=30, unseen=True)
    offers, live = market.assortments, Live()
    drawn = simulate.draw_choices(offers, market.frequencies(), 1500, np.random.default_rng(0))
    every = [Record(offers.offers[offers.owner[c]], offers.items[offers.members[c]]) for c in drawn.tolist()]
    for start in range(0, 1500, 100):
        live.observe(every[start : start + 100])
    true = market.truth.probabilities(market.test)
    dense, sparse = (np.mean((one.probabilities(market.test) - true) ** 2) for one in (live.model, live.sparse))
    assert dense < 0.85 * sparse


@pytest.mark.parametrize(
    "change",
    [{"choices": "many"}, {"weights": [1.0]}, {"duals": [0.0]}, {"guides": [{"name": "best"}]}, {"items": ["a"]}],
)
def test_damaged_states_are_refused(change: dict[str, Any]) -> None:
    model = EntropyFollower(0)
    model.follow(ChoiceCounts(MARKET.assortments, 10 * np.ones(MARKET.assortments.n_coordinates)), 60)
    content = model.to_content()
    assert EntropyFollower.from_content(content, 0).to_content() == content
    with pytest.raises((ValueError, KeyError, TypeError, IndexError)):
        EntropyFollower.from_content(content | change, 0)


def test_the_bound_holds_against_all_rankings() -> None:
    offers = Assortments([("a", "b", "c"), ("a", "b"), ("b", "c")])
    live = Live(rounds=300)
    counts = ChoiceCounts(offers, [20, 50, 30, 7, 3, 40, 60])
    for offer, chosen, times in zip(
        np.repeat(np.array(offers.offers, dtype=object), np.diff(offers.indptr)).tolist(),
        [offers.items[code] for code in offers.members.tolist()],
        counts.tallies.tolist(),
        strict=True,
    ):
        live.observe(Record(tuple(offer), chosen, times))
    vertices = np.array([offers.vertex(order) for order in naive.all_rankings(offers)])
    weights = np.array(rs.distances.observation_weights(counts))[offers.owner]
    mixtures = np.random.default_rng(0).dirichlet(np.ones(len(vertices)), size=2000)
    least = np.sqrt((((mixtures @ vertices - counts.frequencies()) * weights) ** 2).sum(axis=1)).min()
    assert live.certificate.lower <= least
    assert live.certificate.lower <= live.certificate.upper
