from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import strategies
from random_laws import random_chain
from rankstream import Assortments, ChoiceCounts
from rankstream._core.types import Vec
from rankstream.data import simulate
from rankstream.data.observations import observed, restrict
from rankstream.models.parametric import markov_chain
from rankstream.models.parametric.base import Fitted, climb, data_log_likelihood
from rankstream.models.parametric.latent_class import fit_latent_class
from rankstream.models.parametric.markov_chain import _Chain, fit_markov_chain
from rankstream.models.parametric.mnl import fit_mnl
from rankstream.models.protocol import ChoiceModel

Fit = Callable[[ChoiceCounts], Fitted]
FITS: dict[str, Fit] = {
    "mnl": fit_mnl,
    "latent class": fit_latent_class,
    "two classes": lambda counts: fit_latent_class(counts, classes=2),
    "markov chain": fit_markov_chain,
}
every_fit = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)


def sampled(segments: int, size: int, seed: int = 0, n_offers: int = 20) -> tuple[simulate.Market, ChoiceCounts]:
    market = simulate.market(seed, segments=segments, n_offers=n_offers, unseen=True)
    counts = ChoiceCounts(market.assortments)
    generator = np.random.default_rng(seed + 1)
    counts.observe_coordinates(simulate.draw_choices(market.assortments, market.frequencies(), size, generator))
    return market, counts


def exact_counts(market: simulate.Market, each: float = 1e6) -> ChoiceCounts:
    return ChoiceCounts(market.assortments, market.frequencies() * each)


def test_mnl_recovers_the_truth() -> None:
    market, _ = sampled(segments=1, size=10)
    fit = fit_mnl(exact_counts(market), smoothing=1e-6)
    assert fit.converged
    np.testing.assert_allclose(fit.attraction, market.truth.utilities[0] / market.truth.utilities[0].sum(), rtol=1e-6)
    np.testing.assert_allclose(
        fit.probabilities(market.test), market.truth.probabilities(market.test), rtol=1e-6, atol=1e-9
    )


@given(strategies.assortments(), st.integers(0, 99))
def test_mnl_has_no_slope_left(offers: Assortments, seed: int) -> None:
    tallies = np.random.default_rng(seed).poisson(0.7, size=offers.n_coordinates).astype(float)
    tallies[0] += 1
    counts = ChoiceCounts(offers, tallies)
    fit = fit_mnl(counts, smoothing=0.01)
    assert fit.converged
    expected = np.bincount(
        offers.members, weights=fit.probabilities(offers) * counts.totals[offers.owner], minlength=offers.n_items
    )
    chosen = np.bincount(offers.members, weights=tallies, minlength=offers.n_items)
    slope = chosen - expected + 0.01 - 0.01 * offers.n_items * fit.attraction
    np.testing.assert_allclose(slope, 0.0, atol=1e-8)


@strategies.compiled_only
def test_one_class_is_the_logit() -> None:
    _, counts = sampled(segments=5, size=2000)
    logit, single = fit_mnl(counts), fit_latent_class(counts, classes=1)
    np.testing.assert_allclose(single.attraction[0], logit.attraction, rtol=1e-5)
    assert single.log_likelihood == pytest.approx(logit.log_likelihood, abs=1e-3)
    assert single.n_parameters == logit.n_parameters == 10


def test_a_chain_has_a_parameter_for_every_free_arrival_and_move() -> None:
    offers = Assortments([("tea", "pie", "cake", "no"), ("tea", "no"), ("pie", "no"), ("cake", "no")])
    fit = fit_markov_chain(ChoiceCounts(offers, np.ones(offers.n_coordinates)), max_rounds=3)
    assert fit.n_parameters == 3 + 3 * 2  # nobody leaves "no", which is always there; a move is to one of three others


@strategies.compiled_only
@pytest.mark.parametrize("seed", [0, 1])
def test_likelihood_never_falls(seed: int) -> None:
    _, counts = sampled(segments=5, size=2000, seed=seed)
    for fit in (fit_latent_class(counts, classes=4, seed=seed), fit_markov_chain(counts, seed=seed)):
        assert fit.converged
        heights = np.array(fit.heights)
        assert np.diff(heights).min() >= -1e-9 * abs(heights[0])
        assert fit.log_likelihood > fit_mnl(counts).log_likelihood


@strategies.compiled_only
def test_markov_chain_has_no_slope_left() -> None:
    _, counts = sampled(segments=5, size=2000)
    offers, tight = counts.assortments, {"smoothing": 3.0, "tolerance": 1e-14, "max_rounds": 60_000, "starts": 1}
    fit = fit_markov_chain(counts, **tight)  # type: ignore[arg-type]
    logit = fit_mnl(counts).attraction

    def height(arrival: Vec, transitions: Vec) -> float:
        shares = naive.chain_shares(offers, arrival, transitions)
        value = data_log_likelihood(counts, shares) + 3.0 * float(logit @ np.log(arrival))
        for item in range(offers.n_items):
            others = np.arange(offers.n_items) != item
            value += 3.0 * float(logit[others] / logit[others].sum() @ np.log(transitions[item, others]))
        return value

    best = height(fit.arrival, fit.transitions)
    generator = np.random.default_rng(0)
    for _ in range(20):
        arrival = fit.arrival * np.exp(1e-3 * generator.normal(size=fit.arrival.shape))
        moves = fit.transitions * np.exp(1e-3 * generator.normal(size=fit.transitions.shape))
        assert height(arrival / arrival.sum(), moves / moves.sum(axis=1, keepdims=True)) < best


@strategies.compiled_only
def test_latent_classes_have_no_slope_left() -> None:
    _, counts = sampled(segments=3, size=2000)
    fit = fit_latent_class(counts, classes=3, tolerance=1e-14, max_rounds=60_000)

    def height(mixture: Vec, attraction: Vec) -> float:
        shares = naive.mixture_shares(counts.assortments, mixture, attraction)
        return data_log_likelihood(counts, shares) + 0.5 * float(np.log(attraction).sum() + np.log(mixture).sum())

    best = height(fit.mixture, fit.attraction)
    generator = np.random.default_rng(0)
    for _ in range(20):
        mixture = fit.mixture * np.exp(1e-3 * generator.normal(size=fit.mixture.shape))
        attraction = fit.attraction * np.exp(1e-3 * generator.normal(size=fit.attraction.shape))
        assert height(mixture / mixture.sum(), attraction / attraction.sum(axis=1, keepdims=True)) < best


@given(strategies.assortments(), st.integers(0, 99))
def test_every_model_gives_probabilities(offers: Assortments, seed: int) -> None:
    tallies = np.random.default_rng(seed).poisson(1.0, size=offers.n_coordinates).astype(float)
    tallies[0] += 1
    counts = ChoiceCounts(offers, tallies)
    models = [
        fit_mnl(counts),
        fit_latent_class(counts, classes=2, starts=1, max_rounds=30),
        fit_markov_chain(counts, starts=1, max_rounds=30),
    ]
    for model in models:
        shares = model.probabilities(offers)
        assert shares.min() > 0.0
        np.testing.assert_allclose(np.add.reduceat(shares, offers.indptr[:-1]), 1.0)
        assert model.log_likelihood == pytest.approx(data_log_likelihood(counts, shares))
        single = model.predict(offers.offers[0])
        np.testing.assert_allclose(list(single.values()), shares[: offers.indptr[1]])


@strategies.compiled_only
def test_latent_classes_recover_a_mixture() -> None:
    market, _ = sampled(segments=2, size=10, n_offers=60)
    counts = exact_counts(market, 1e5)
    fit = fit_latent_class(counts, classes=2, starts=4, tolerance=1e-12, max_rounds=20_000)
    np.testing.assert_allclose(fit.probabilities(market.test), market.truth.probabilities(market.test), atol=2e-3)


@strategies.compiled_only
def test_the_number_of_classes_is_chosen() -> None:
    _, mixed = sampled(segments=5, size=20_000)
    assert fit_latent_class(mixed, classes="cv").n_classes > 1
    assert fit_latent_class(mixed, classes="cv", tried=(2,)).n_classes == 2
    one = ChoiceCounts(Assortments([("a", "b")]), [9, 4])  # of one offer nothing can be held out
    assert fit_latent_class(one, classes="cv", tried=(4, 2)).n_classes == 2


@strategies.compiled_only
def test_markov_chain_recovers_a_logit() -> None:
    market, _ = sampled(segments=1, size=10)
    fit = fit_markov_chain(exact_counts(market), starts=1)
    np.testing.assert_allclose(fit.probabilities(market.test), market.truth.probabilities(market.test), atol=1e-5)


@strategies.compiled_only
def test_markov_chain_recovers_a_chain() -> None:
    arrival, transitions = random_chain(5, seed=3)
    labels = range(5)
    offers = Assortments([[i for i in labels if number >> i & 1] for number in range(1, 32)], labels)
    truth = naive.chain_shares(offers, arrival, transitions)
    fit = fit_markov_chain(ChoiceCounts(offers, truth * 1e6), smoothing=1e-6, tolerance=1e-13, max_rounds=30_000)
    np.testing.assert_allclose(fit.probabilities(offers), truth, atol=1e-4)
    np.testing.assert_allclose(fit.transitions, transitions, atol=5e-3)


@strategies.compiled_only
def test_first_visits_are_the_chain_as_rankings() -> None:
    market, counts = sampled(segments=3, size=2000)
    fit = fit_markov_chain(counts, starts=1)
    rankings = fit.draw(2000, seed=1)
    assert rankings == fit.draw(2000, seed=1)
    np.testing.assert_allclose(rankings.probabilities(market.test), fit.probabilities(market.test), atol=0.06)


@strategies.compiled_only
@every_fit
def test_same_seed_same_model(fit: Fit) -> None:
    market, counts = sampled(segments=5, size=500)
    np.testing.assert_array_equal(fit(counts).probabilities(market.test), fit(counts).probabilities(market.test))


def hard_cases() -> dict[str, ChoiceCounts]:
    offers = Assortments([("a", "b", "c"), ("c", "d"), ("a", "d", "c")], items=("a", "b", "c", "d", "never"))
    huge = ChoiceCounts(offers, [1e9, 0, 1, 1e9, 3, 5, 0, 0])
    return {
        "an offer never observed": ChoiceCounts(offers, [5, 3, 1, 0, 0, 4, 4, 2]),
        "an item never chosen": ChoiceCounts(offers, [5, 0, 1, 4, 3, 4, 4, 2]),
        "an item offered once": ChoiceCounts(offers, [0, 1, 0, 4, 3, 4, 4, 2]),
        "one offer": ChoiceCounts(Assortments([("a", "b")]), [3, 4]),
        "one item": ChoiceCounts(Assortments([("a",)]), [3]),
        "all on one item": ChoiceCounts(offers, [9, 0, 0, 0, 0, 9, 0, 0]),
        "huge counts": huge,
        "the same offer twice": ChoiceCounts(Assortments([("a", "b"), ("b", "a"), ("a", "c")]), [3, 4, 1, 2, 3, 3]),
        "one observation": ChoiceCounts(offers, [1, 0, 0, 0, 0, 0, 0, 0]),
    }


@every_fit
@pytest.mark.parametrize("name", hard_cases())
def test_hard_cases_give_probabilities(fit: Fit, name: str) -> None:
    counts = hard_cases()[name]
    model: ChoiceModel = fit(counts)
    shares = model.predict(counts.assortments.items)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert min(shares.values()) > 0.0
    probabilities = model.probabilities(counts.assortments)
    assert np.isfinite(data_log_likelihood(counts, probabilities))
    np.testing.assert_allclose(np.add.reduceat(probabilities, counts.assortments.indptr[:-1]), 1.0)
    if name == "huge counts":
        assert model.predict(("a", "b"))["a"] > 1 - 1e-6


@every_fit
def test_the_order_of_offers_hardly_matters(fit: Fit) -> None:
    counts = hard_cases()["an item never chosen"]
    turned = restrict(counts, [2, 0, 1])
    for item, share in fit(counts).predict(("a", "b", "c")).items():
        assert fit(turned).predict(("a", "b", "c"))[item] == pytest.approx(share, abs=0.05)


def test_observed_drops_and_merges() -> None:
    offers = Assortments([("a", "b"), ("b", "a"), ("a", "c"), ("b", "c")])
    merged = observed(ChoiceCounts(offers, [3, 4, 1, 2, 0, 0, 1, 1]))
    assert merged.assortments.offers == (("a", "b"), ("b", "c"))
    assert merged.assortments.items == ("a", "b", "c")
    assert merged.tallies.tolist() == [5, 5, 1, 1]
    with pytest.raises(ValueError, match="no observations yet"):
        observed(ChoiceCounts(offers))


def test_wrong_arguments_are_named() -> None:
    counts = hard_cases()["one offer"]
    with pytest.raises(ValueError, match="has no item 'z'"):
        fit_mnl(counts).predict(("a", "z"))
    with pytest.raises(ValueError, match="smoothing is 0"):
        fit_markov_chain(counts, smoothing=0)
    with pytest.raises(ValueError, match="max_rounds is 0"):
        fit_mnl(counts, max_rounds=0)
    with pytest.raises(ValueError, match="classes is 'many'"):
        fit_latent_class(counts, classes="many")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no number of classes to try"):
        fit_latent_class(counts, tried=())


@pytest.mark.parametrize("most", [1, 2])
def test_a_fit_ends_at_its_limit_of_rounds(most: int) -> None:
    counts = ChoiceCounts(Assortments([("a", "b", "c"), ("a", "b"), ("b", "c")]), [9, 1, 4, 3, 8, 2, 7])
    logit = fit_mnl(counts, max_rounds=most)
    assert (logit.iterations, logit.converged) == (most, False)
    assert fit_mnl(counts).iterations > 2
    for model in (
        fit_markov_chain(counts, starts=1, max_rounds=most),
        fit_latent_class(counts, classes=2, starts=1, max_rounds=most),
    ):
        assert not model.converged


def test_climb_forgets_a_step_too_far() -> None:
    def towards_three(point: Vec) -> tuple[Vec, float]:
        return point + 0.1 * (3.0 - point), -float(np.abs(point - 3.0).sum())

    end = climb(towards_three, lambda point: np.minimum(point, 50.0), np.array([1.0, 20.0]), 1e-9, 10_000)
    assert end.converged
    assert np.diff(end.heights).min() >= 0.0
    np.testing.assert_allclose(end.point, 3.0, atol=1e-6)
    assert not climb(towards_three, lambda point: point, np.array([1.0, 20.0]), 0.0, 3).converged


def test_a_point_of_a_chain_has_rows_of_sum_one_however_small() -> None:
    counts = ChoiceCounts(Assortments([("a", "b"), ("b", "c")]), [1, 2, 3, 4])
    chain = _Chain(counts, np.array([0.2, 0.3, 0.5]), 0.1)
    small = chain.normalise(np.array([1e-9, 3e-9, 0.0, 0.0, 0.2, 0.2, 0.0, 0.0, 0.0, 2.0, 6.0, 0.0]))
    assert small.tolist() == pytest.approx([0.25, 0.75, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.25, 0.75, 0.0])
    assert chain.imagined.tolist() == pytest.approx((0.1 * chain.start).tolist())
    arrival, moves = chain.parts(chain.start)
    assert arrival.tolist() == [0.2, 0.3, 0.5]
    assert np.diag(moves).tolist() == [0.0] * 3
    assert moves.sum(axis=1) == pytest.approx(1.0)


def test_starts_of_a_chain_differ_and_a_given_start_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = ChoiceCounts(Assortments([("a", "b", "c"), ("b", "c"), ("a", "c")]), [5, 3, 2, 4, 6, 7, 3])
    begins: list[Vec] = []

    def climbed(*given: Any) -> Any:
        begins.append(given[2])
        return climb(*given)

    monkeypatch.setattr(markov_chain, "climb", climbed)
    model = fit_markov_chain(counts, starts=3, max_rounds=3, seed=7)
    first, *others = (begin.reshape(4, 3) for begin in begins)
    assert len(others) == 2
    assert np.array([first, *others]).sum(axis=2) == pytest.approx(np.ones((3, 4)))
    assert min(np.abs(a - b).max() for a, b in ((first, others[0]), (first, others[1]), others)) > 0.01
    fit_markov_chain(counts, starts=2, max_rounds=3, seed=8)
    assert begins[3].tolist() == begins[0].tolist()  # the logit, whatever the seed
    assert begins[4].tolist() != begins[1].tolist()
    fit_markov_chain(counts, starts=2, max_rounds=3, start=model)
    assert [begin.tolist() for begin in begins[5:]] == [[*model.arrival.tolist(), *model.transitions.ravel().tolist()]]
