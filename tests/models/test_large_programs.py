"""Maximum entropy where the exact program is too large: the prior as it is, or rankings sampled from it."""

from pathlib import Path

import numpy as np
import pytest

import rankstream as rs
from rankstream import Assortments, ChoiceCounts, EntropyModel
from rankstream._core.types import Codes, Label
from rankstream.data import simulate
from rankstream.models import fit_max_entropy, plackett_luce
from rankstream.models.entropy.ensemble import Stack, fit_stack
from rankstream.models.entropy.guides import LOGIT, UNIFORM
from rankstream.models.entropy.ranking_laws import RankingLaw, markov_chain, mix
from rankstream.models.entropy.soft_lattice import SoftLattice, TiltedRankings
from rankstream.models.entropy.trust import choose_trust
from rankstream.models.parametric.mnl import fit_mnl
from rankstream.oracles.tables.lattice import TooManyUnionsError


def large(seed: int = 0, choices: int = 4000) -> tuple[simulate.Market, ChoiceCounts]:
    """A market of 24 items in 150 offers, whose program is too large."""
    market = simulate.market(seed, n_items=24, segments=1, n_offers=150, n_test=30, unseen=True)
    return market, next(market.stream(first=choices))


def a_prior(items: tuple[Label, ...]) -> RankingLaw:
    """Two classes and a chain."""
    random, size = np.random.default_rng(0), len(items)
    moves = random.dirichlet(np.ones(size), size=size)
    np.fill_diagonal(moves, 0.0)
    chain = markov_chain(items, random.dirichlet(np.ones(size)), moves / moves.sum(axis=1, keepdims=True))
    return mix([plackett_luce(items, random.uniform(0.1, 1.0, (2, size)), [0.4, 0.6]), chain], [0.7, 0.3])


def test_an_untilted_model_of_any_size_answers_exactly(tmp_path: Path) -> None:
    market, counts = large()
    prior = a_prior(counts.assortments.items)
    with pytest.raises(TooManyUnionsError):
        SoftLattice(counts.assortments, prior)
    found = fit_max_entropy(counts, prior, trust=None)
    assert isinstance(found.model, EntropyModel)
    assert not found.approximate
    assert found.model.probabilities(market.test) == pytest.approx(prior.probabilities(market.test), abs=1e-12)
    path = tmp_path / "model.json"
    found.model.save(path)
    again = rs.load_model(path)
    assert again.probabilities(market.test) == pytest.approx(found.model.probabilities(market.test), abs=1e-12)
    drawn = found.model.draw(4000).probabilities(market.test)
    assert drawn == pytest.approx(prior.probabilities(market.test), abs=0.04)


def test_offers_without_a_dual_leave_the_program() -> None:
    offers = Assortments([("a", "b"), ("b", "c"), ("a", "c", "d")], tuple("abcd"))
    duals = np.array([0.0, 0.0, 0.3, -0.2, 0.0, 0.0, 0.0])
    model = EntropyModel(a_prior(offers.items), offers, duals)
    lattice, kept = model.program()
    assert lattice.assortments.offers == (("b", "c"),)
    assert kept.tolist() == [0.3, -0.2]
    whole = SoftLattice(offers, model.prior)
    value, shares = whole.evaluate(duals)
    assert lattice.evaluate(kept)[0] == pytest.approx(value)
    assert model.probabilities(offers) == pytest.approx(shares)


def test_offers_too_large_for_the_program_share_one_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = Assortments([("a", "b"), ("b", "c"), ("a", "c", "d")], tuple("abcde"))
    asked = Assortments([("a", "d"), ("a", "b", "c"), ("b", "d", "e"), ("c", "e")], offers.items)
    prior, duals = a_prior(offers.items), np.array([0.5, -0.5, 1.0, 0.0, 0.0, -1.0, 0.5])
    exact = EntropyModel(prior, offers, duals).probabilities(asked)
    drawn: list[int] = []

    def draw(model: EntropyModel, size: int, random: np.random.Generator) -> Codes:
        drawn.append(size)
        return TiltedRankings(*model.program()).draw(size, random)

    def refuse(*_: object) -> None:
        raise TooManyUnionsError("There are too many unions.")

    monkeypatch.setattr(EntropyModel, "draw_orders", draw)
    monkeypatch.setattr("rankstream.models.entropy.soft_lattice.program_of", refuse)
    assert EntropyModel(prior, offers, duals).probabilities(asked) == pytest.approx(exact, abs=0.03)
    assert drawn == [4000]


def test_held_out_offers_decide_whether_sampled_rankings_are_tilted() -> None:
    _, counts = large()
    stack = fit_stack(counts, (LOGIT, UNIFORM))
    trust, tried = choose_trust(stack, counts, None)
    assert trust is None  # one logit is the truth
    assert tried["none"] == 0.0
    wrong = Stack((UNIFORM.fit(counts),), np.ones(1), stack.folds, {})
    trust, tried = choose_trust(wrong, counts, None)
    assert trust is not None  # anything is better than a uniform guess
    assert tried["none"] < -10.0


def test_a_large_market_is_predicted_as_well_as_by_its_best_guide() -> None:
    market, counts = large(3, 3000)
    stack = fit_stack(counts, (LOGIT, UNIFORM))
    truth = market.truth.probabilities(market.test)
    ours = fit_max_entropy(counts, stack).model.probabilities(market.test)
    logit = fit_mnl(counts).probabilities(market.test)
    assert np.sqrt(np.mean((ours - truth) ** 2)) <= 1.1 * np.sqrt(np.mean((logit - truth) ** 2))


def test_a_program_answers_exactly_for_any_single_offer() -> None:
    offers = Assortments([("a", "b"), ("c", "d"), ("e", "f")], tuple("abcdef"))
    asked, duals = Assortments([("a", "c"), ("b", "e")], offers.items), np.array([0.3, 0.0, 0.0, -0.2, 0.5, 0.0])
    exact = EntropyModel(a_prior(offers.items), offers, duals).probabilities(asked)
    model = EntropyModel(a_prior(offers.items), offers, duals)
    assert np.isnan(model.exact_probabilities(asked, max_states=2)).all()  # the program alone has 8 sets
    assert model.exact_probabilities(asked, max_states=8) == pytest.approx(exact)  # one at a time, in at most 17 sets


def test_a_program_of_too_many_bytes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = Assortments([("a", "b", "c"), ("b", "c", "d"), ("a", "c", "d", "e"), ("a", "e")], tuple("abcde"))
    prior = a_prior(offers.items)
    made = SoftLattice(offers, prior)
    by_move = 8 + len(prior.chain_weights) * (offers.n_items + 1)
    needed = 4 * made.entries.size + 8 * made.items.size * by_move + 24 * made.states.size * len(prior.class_weights)
    monkeypatch.setattr("rankstream.models.entropy.soft_lattice.MOST_BYTES", needed)
    assert SoftLattice(offers, prior).states.tolist() == made.states.tolist()
    monkeypatch.setattr("rankstream.models.entropy.soft_lattice.MOST_BYTES", needed - 1)
    with pytest.raises(TooManyUnionsError, match=r"needs .* GB for its tables"):
        SoftLattice(offers, prior)
