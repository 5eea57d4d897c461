"""Maximum entropy under chains: lifted laws, the program over them, fits and files, against all admissible rankings."""

import json
from itertools import pairwise, product
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import minimize

import naive
import naive_prices
import naive_prices_entropy as twin
import strategies
from rankstream import Assortments, ChoiceCounts, EntropyModel, PriceLevels, RankingModel, estimate, load_model
from rankstream._core.types import Vec
from rankstream.models import fit_max_entropy, plackett_luce
from rankstream.models.entropy import fit as entropy
from rankstream.models.entropy.ensemble import Stack, fit_stack
from rankstream.models.entropy.guides import GUIDES, PRICED, guides_for
from rankstream.models.entropy.ranking_laws import RankingLaw, SampledLaw, markov_chain, mix
from rankstream.models.entropy.soft_lattice import SoftLattice
from rankstream.models.lifts import chains_of, closed_offers, lift, pairs_of, steps_down, tail_sums
from rankstream.models.parametric.climb_kernels import split_choices, step
from rankstream.models.parametric.latent_class import fit_latent_class
from rankstream.streams.entropy_follower import EntropyFollower

LEVELS = PriceLevels({"tea": [3, 4], "pie": [2, 3, 5]})
ASKED = [{"tea": tea, "pie": pie} for tea, pie in product((3, 4, None), (2, 3, 5, None)) if tea or pie]
OFFERS = [LEVELS.offer({i: p for i, p in offer.items() if p} | {"no": None}) for offer in ASKED]
EVERY = Assortments(OFFERS, [*LEVELS.labels, "no"], LEVELS.order)
SEEN = Assortments(OFFERS[:8], EVERY.items, EVERY.order)


def choices(size: int = 60) -> ChoiceCounts:
    """Choices of two kinds of customers, one of whom minds prices more."""
    random = np.random.default_rng(4)
    shares = np.zeros(SEEN.n_coordinates)
    for slope in (0.3, 1.2):
        prices = [LEVELS.of(SEEN.items[code])[1] for code in SEEN.members]
        worth = np.array([1.0 if price is None else np.exp(3.0 - slope * price) for price in prices])
        shares += 0.5 * worth / np.add.reduceat(worth, SEEN.indptr[:-1])[SEEN.owner]
    parts = [shares[a:b] for a, b in zip(SEEN.indptr[:-1], SEEN.indptr[1:], strict=True)]
    return ChoiceCounts(SEEN, np.concatenate([random.multinomial(size, part / part.sum()) for part in parts]))


def a_prior(offers: Assortments, kind: str, seed: int = 0) -> RankingLaw:
    random, n_items, order = np.random.default_rng(seed), offers.n_items, chains_of(offers)
    weights = random.dirichlet(np.ones(2))
    classes = plackett_luce(offers.items, random.uniform(0.05, 1.0, (2, n_items)), weights, order)
    if kind == "classes":
        return classes
    moves = random.uniform(0.05, 1.0, (n_items, n_items))
    np.fill_diagonal(moves, 0.0)
    plain = markov_chain(offers.items, random.dirichlet(np.ones(n_items)), moves / moves.sum(axis=1, keepdims=True))
    chain = RankingLaw(
        plain.items, plain.class_weights, plain.attraction, np.ones(1), plain.arrivals, plain.moves, order
    )
    return mix([classes, chain], [0.4, 0.6])


@strategies.examples(40)
@given(naive_prices.ordered(chains=True, most_items=5), st.data())
def test_lifted_rankings_choose_as_closed_offers_say(offers: Assortments, data: st.DataObject) -> None:
    ranking = tuple(data.draw(st.permutations(range(offers.n_items))))
    chains = chains_of(offers)
    up = lift(np.array([ranking]), chains)[0]
    assert tuple(up) == twin.lifted(ranking, chains)
    if offers.order:
        assert np.array_equal(up, offers.precedence.lift(ranking))
        assert pairs_of(chains, offers.items) != ()
        assert set(pairs_of(chains, offers.items)) == set(offers.order)
    closed = closed_offers(offers.indptr, offers.members, chains)
    first = [
        min(range(a, b), key=lambda k: ranking.index(closed.members[k]))
        for a, b in zip(closed.indptr[:-1], closed.indptr[1:], strict=True)
    ]
    assert np.array_equal(np.flatnonzero(offers.vertex(up)), closed.of[first])


@strategies.examples(25)
@given(naive_prices.ordered(chains=True, most_items=5), st.sampled_from(["classes", "mixed"]), st.data())
def test_the_soft_program_equals_all_admissible_rankings(offers: Assortments, kind: str, data: st.DataObject) -> None:
    prior = a_prior(offers, kind, data.draw(st.integers(0, 99)))
    numbers = st.floats(-20, 20, allow_subnormal=False)
    duals = np.array(data.draw(st.lists(numbers, min_size=offers.n_coordinates, max_size=offers.n_coordinates)))
    value, chosen = SoftLattice(offers, prior).evaluate(duals)
    expected, shares = twin.tilted(offers, prior, duals)
    assert value == pytest.approx(expected, abs=1e-9)
    assert chosen == pytest.approx(shares, abs=1e-9)
    assert prior.probabilities(offers) == pytest.approx(twin.tilted(offers, prior, 0.0 * duals)[1], abs=1e-12)
    loose = Assortments(offers.offers, offers.items)  # the prior knows its order
    assert prior.probabilities(loose) == pytest.approx(prior.probabilities(offers), abs=1e-15)


def test_a_lifted_class_predicts_like_a_logit_with_falling_attraction() -> None:
    weights = np.array([0.1, 0.2, 0.05, 0.3, 0.15, 0.2])
    prior = plackett_luce(EVERY.items, weights, order=chains_of(EVERY))
    worth = tail_sums(weights, prior.order)
    assert worth == pytest.approx([0.3, 0.2, 0.5, 0.45, 0.15, 0.2])
    assert steps_down(worth, prior.order) == pytest.approx(weights)
    shares = worth[EVERY.members] / np.add.reduceat(worth[EVERY.members], EVERY.indptr[:-1])[EVERY.owner]
    assert prior.probabilities(EVERY) == pytest.approx(shares, abs=1e-14)
    twice = Assortments([("tea @ 4.00", "tea @ 3.00", "no")], EVERY.items)  # nobody pays more for the same
    assert prior.probabilities(twice) == pytest.approx([0.0, 0.6, 0.4])
    drawn = prior.sample(20_000, 1)
    assert EVERY.precedence.respects(drawn).all()
    every = twin.law(prior)
    rows, times = np.unique(drawn, axis=0, return_counts=True)
    for row, count in zip(rows.tolist(), times.tolist(), strict=True):
        assert abs(count / 20_000 - every[tuple(row)]) < 5 * np.sqrt(every[tuple(row)] / 20_000)


def test_a_fit_is_the_optimum_over_all_admissible_rankings() -> None:
    counts, prior = choices(), a_prior(SEEN, "classes", 3)
    found = fit_max_entropy(counts, prior, trust=10.0, tolerance=1e-10)
    every = twin.law(prior)
    assert len(every) == len(naive_prices.all_rankings(SEEN)) == 60
    vertices = np.array([naive.vertex(SEEN, list(ranking)) for ranking in every])
    shares = np.array(list(every.values())) @ vertices
    logs, weights = np.log(list(every.values())), 0.1 * counts.totals[SEEN.owner] / (10.0 * np.maximum(shares, 1e-3))
    problem = (vertices, logs, counts.frequencies(), weights)
    best = minimize(lambda duals: twin.dual_cost(*problem, duals), found.duals * 0.0, jac=True, tol=1e-12)
    assert found.converged
    assert not found.approximate
    cost, slope = twin.dual_cost(*problem, found.duals)
    assert cost <= best.fun + 1e-9
    assert np.abs(slope).max() < 1e-5
    tilt = np.exp(logs - vertices @ best.x)
    assert found.fitted == pytest.approx(tilt @ vertices / tilt.sum(), abs=1e-5)


@strategies.compiled_only
def test_models_answer_fall_and_survive_files(tmp_path: Path) -> None:
    found = estimate(choices())
    model = found.model
    assert found.method is not None
    assert found.method.name == "max-entropy"
    assert isinstance(model, EntropyModel)
    assert found.certificate.lower <= found.certificate.upper
    for others in ({"no": None}, {"pie": 3.0, "no": None}):
        shares = list(model.demand("tea", others=others).values())
        assert shares == sorted(shares, reverse=True)
    assert sum(model.predict(OFFERS[-1]).values()) == pytest.approx(1.0)
    model.save(tmp_path / "model.json")
    same = load_model(tmp_path / "model.json")
    assert np.array_equal(same.probabilities(EVERY), model.probabilities(EVERY))
    assert same.assortments == model.assortments
    assert same.prior.order == chains_of(SEEN)
    assert '"version": 2' in (tmp_path / "model.json").read_text()
    named = model.relabel([f"{item}!" for item in model.items])
    assert named.predict([f"{item}!" for item in OFFERS[0]]) == pytest.approx(
        {f"{item}!": share for item, share in model.predict(OFFERS[0]).items()}
    )
    for rankings in (model.to_rankings(400), model.draw(400, 2)):
        assert EVERY.precedence.respects(rankings.orders).all()
    assert model.to_rankings(400).probabilities(EVERY) == pytest.approx(model.probabilities(EVERY), abs=0.02)
    lattice, duals = EntropyModel(a_prior(SEEN, "classes"), SEEN, np.ones(SEEN.n_coordinates)).program()
    assert lattice.states.size <= 2 * 3 * 4
    assert duals.size == SEEN.n_coordinates


def test_files_without_an_order_are_of_version_1() -> None:
    offers = Assortments([("tea", "pie")])
    model = EntropyModel(plackett_luce(offers.items, [1.0, 2.0]), offers, np.zeros(2))
    assert model.to_text().startswith('{"format": "rankstream-entropy-model", "version": 1, "items"')
    assert '"order"' not in model.to_text()
    content = EntropyModel(a_prior(SEEN, "classes"), SEEN, np.zeros(SEEN.n_coordinates)).to_content()
    for order in ([[0, 1], [1, 2]], [[0, 9]], [[0.5, 1]]):
        with pytest.raises(ValueError, match="order"):
            EntropyModel.from_content(content | {"order": order})


def test_beyond_the_states_of_a_program_rankings_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entropy, "MAX_STATES", 3)
    monkeypatch.setattr(entropy, "SAMPLES", 800)
    found = fit_max_entropy(choices(), a_prior(SEEN, "classes"))
    assert found.approximate
    assert isinstance(found.model, RankingModel)
    assert SEEN.precedence.respects(found.model.orders).all()
    assert found.describe()["approximate"] is True
    law = SampledLaw(SEEN, a_prior(SEEN, "mixed"), 300, 1)
    assert SEEN.precedence.respects(law.orders).all()


@strategies.compiled_only
def test_guides_respect_the_order() -> None:
    stack = fit_stack(choices(), seed=1)
    assert isinstance(stack, Stack)
    assert set(stack.scores) >= {"logit with a price", "logit", "uniform"}
    assert not {"Markov chain", "nests", "normal taste"} & set(stack.scores)
    assert stack.prior.order == chains_of(SEEN)
    for guide in stack.guides:
        assert guide.probabilities(SEEN) == pytest.approx(guide.law().probabilities(SEEN), abs=1e-9)
    again = stack.refit(choices(90), 1)
    assert again.prior.order == stack.prior.order
    turned = Assortments(OFFERS, EVERY.items, [(b, a) for a, b in EVERY.order])  # dearer first: not that of prices
    assert not set(PRICED) & set(guides_for(turned))
    assert guides_for(Assortments([("tea", "pie")])) is GUIDES


@strategies.compiled_only
def test_what_a_stream_serves_keeps_the_order_when_it_is_saved() -> None:
    served, counts = EntropyFollower(seed=0), choices()
    served.follow(counts, counts.observations)
    same = EntropyFollower.from_content(json.loads(json.dumps(served.to_content())), 0)
    assert same.model.assortments == served.model.assortments
    assert same.model.assortments.order == SEEN.order
    assert np.array_equal(same.model.probabilities(EVERY), served.model.probabilities(EVERY))


def test_other_orders_and_priors_are_refused() -> None:
    general = Assortments(SEEN.offers, SEEN.items, [*SEEN.order, ("tea @ 3.00", "pie @ 5.00")])
    with pytest.raises(ValueError, match=r"^Maximum entropy needs an order made of chains.*: use 'nearest'\.$"):
        estimate(ChoiceCounts(general, choices().tallies), method="max-entropy")
    with pytest.raises(ValueError, match=r"^With an order of the items, .*'held-out', a RankingLaw or a Stack\.$"):
        fit_max_entropy(choices(), "default")
    with pytest.raises(ValueError, match="have different orders"):
        SoftLattice(SEEN, plackett_luce(SEEN.items, np.ones(6)))
    with pytest.raises(ValueError, match="different orders cannot be mixed"):
        mix([plackett_luce(SEEN.items, np.ones(6)), a_prior(SEEN, "classes")], [0.5, 0.5])


@strategies.examples(20)
@given(naive_prices.ordered(chains=True, most_items=5), st.integers(0, 99))
def test_kernels_of_falling_classes_equal_their_twins(offers: Assortments, seed: int) -> None:
    random, chains = np.random.default_rng(seed), chains_of(offers)
    mixture, table = random.dirichlet(np.ones(2)), random.uniform(0.1, 1.0, (offers.n_items, 2))
    tallies = random.integers(0, 9, offers.n_coordinates).astype(np.float64)
    closed = closed_offers(offers.indptr, offers.members, chains)
    tallies[~np.isin(np.arange(tallies.size), closed.of)] = 0.0
    members = list(zip(closed.members.tolist(), closed.of.tolist(), strict=True))
    listed = [members[a:b] for a, b in zip(closed.indptr[:-1], closed.indptr[1:], strict=True)]
    value, parts = twin.split(tallies, listed, mixture, table)
    out = np.empty(len(members))
    shape = (closed.indptr, closed.members, closed.of, tallies)
    assert split_choices(*shape, mixture, table, out) == pytest.approx(value)
    assert out == pytest.approx(parts)
    heights, work = [], (out, np.empty_like(table), np.empty_like(table))
    table /= table.sum(axis=0)
    heights = [step(*shape, 0.5, mixture, table, *work) for _ in range(12)]
    assert all(after >= before - 1e-9 for before, after in pairwise(heights))


@strategies.compiled_only
def test_falling_classes_reach_the_greatest_likelihood() -> None:
    counts = choices(400)
    model = fit_latent_class(counts, classes=1, smoothing=1e-3, tolerance=1e-12)
    begun = [fit_latent_class(counts, classes=1, max_rounds=1, seed=seed).attraction for seed in (0, 1)]
    assert begun[0].tolist() == begun[1].tolist()  # one class needs no chance
    chains = chains_of(SEEN)
    rows = [[SEEN.code(item) for item in offer] for offer in SEEN.offers]

    def cost(logs: Vec) -> float:
        shares = [twin.falling_shares(np.ones(1), np.exp(logs)[np.newaxis], row, chains) for row in rows]
        return -float(counts.tallies @ np.log(np.concatenate(shares)))

    assert cost(np.log(model.attraction[0])) == pytest.approx(-model.log_likelihood)
    best = minimize(cost, np.zeros(SEEN.n_items), method="L-BFGS-B", bounds=[(-12, 3)] * SEEN.n_items)
    assert -model.log_likelihood <= best.fun + 0.02
    assert SEEN.precedence.respects(model.draw_orders(50, np.random.default_rng(0))).all()
    assert type(model).from_content(model.to_content()).probabilities(SEEN) == pytest.approx(model.probabilities(SEEN))
