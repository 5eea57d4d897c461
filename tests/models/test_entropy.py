from itertools import combinations
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import naive
import strategies
from random_laws import a_prior
from rankstream import Assortments, ChoiceCounts
from rankstream._core.types import Vec
from rankstream.data import simulate
from rankstream.estimation.misfit import resample
from rankstream.models.entropy import fit as entropy
from rankstream.models.entropy import model as entropy_model
from rankstream.models.entropy import ranking_laws as laws
from rankstream.models.entropy.ensemble import fit_quick_stack
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.entropy.ranking_laws import SampledLaw
from rankstream.models.entropy.soft_lattice import SoftLattice, program_of, shared_programs
from rankstream.models.entropy.trust import Curvature, TiltProblem, tilt_weights
from rankstream.oracles.tables.lattice import TooManyUnionsError

MARKET = simulate.market(3, n_items=6, n_offers=8, n_test=20)


@settings(max_examples=40, deadline=None)
@given(st.data())
@pytest.mark.parametrize("kind", ["classes", "chain", "mixed"])
def test_the_soft_program_equals_enumeration(kind: str, data: st.DataObject) -> None:
    offers = data.draw(strategies.assortments(most_items=5))
    prior = a_prior(offers.items, kind, data.draw(st.integers(0, 99)))
    numbers = st.floats(-20, 20, allow_subnormal=False)
    duals = np.array(data.draw(st.lists(numbers, min_size=offers.n_coordinates, max_size=offers.n_coordinates)))
    value, chosen = SoftLattice(offers, prior).evaluate(duals)
    expected, shares = naive.tilted(offers, prior, duals)
    assert value == pytest.approx(expected, abs=1e-9)
    assert chosen == pytest.approx(shares, abs=1e-9)


@strategies.compiled_only
def test_six_items_equal_enumeration() -> None:
    items = MARKET.assortments.items[:6]
    offers = Assortments([items[:4], items[2:6], (items[0], items[5]), items], items)
    duals = np.random.default_rng(2).normal(size=offers.n_coordinates)
    prior = a_prior(items, "mixed", 5)
    value, chosen = SoftLattice(offers, prior).evaluate(duals)
    expected, shares = naive.tilted(offers, prior, duals)
    assert value == pytest.approx(expected, abs=1e-10)
    assert chosen == pytest.approx(shares, abs=1e-10)


@pytest.mark.parametrize("kind", ["classes", "chain", "mixed"])
def test_all_offers_of_five_items(kind: str) -> None:
    items = MARKET.assortments.items[:5]
    fitted = Assortments([items[:3], items[1:5], (items[0], items[4])], items)
    model = EntropyModel(a_prior(items, kind), fitted, np.random.default_rng(1).normal(size=fitted.n_coordinates))
    every = Assortments([s for size in range(1, 6) for s in combinations(items, size)], items)
    both = Assortments([*fitted.offers, *every.offers], items)
    duals = np.concatenate([model.duals, np.zeros(every.n_coordinates)])
    expected = naive.tilted(both, model.prior, duals)[1][model.duals.size :]
    assert model.probabilities(every) == pytest.approx(expected, abs=1e-10)


def test_gradients_are_those_of_finite_differences() -> None:
    prior = a_prior(MARKET.assortments.items, "mixed")
    law = SoftLattice(MARKET.assortments, prior)
    duals = np.random.default_rng(0).normal(size=MARKET.assortments.n_coordinates)
    chosen = law.evaluate(duals)[1]
    for k in range(0, duals.size, 5):
        step = np.zeros_like(duals)
        step[k] = 1e-5
        slope = (law.evaluate(duals + step)[0] - law.evaluate(duals - step)[0]) / 2e-5
        assert -slope == pytest.approx(chosen[k], abs=1e-8)


def test_the_gap_bounds_what_a_long_run_gains() -> None:
    counts = next(MARKET.stream(first=3000))
    prior = a_prior(counts.assortments.items, "mixed")
    weights = tilt_weights(counts, prior, entropy.TRUST)

    def value(duals: Vec) -> float:
        level = SoftLattice(counts.assortments, prior).evaluate(duals)[0]
        return level + float(counts.frequencies() @ duals) + 0.5 * float(duals**2 @ (1 / weights))

    best = entropy.fit_max_entropy(counts, prior, tolerance=1e-12)
    assert best.converged
    for evaluations in (1, 2, 4, 8):
        rough = entropy.fit_max_entropy(counts, prior, tolerance=0.0, max_rounds=evaluations)
        assert value(rough.duals) - value(best.duals) + 1e-9 >= 0.0
        assert value(rough.duals) - value(best.duals) <= rough.gap + 1e-9
    residual = best.fitted - counts.frequencies() - best.duals / weights
    assert np.abs(residual).max() < 1e-6


def test_probabilities_are_regular() -> None:
    counts = next(MARKET.stream(first=3000))
    model = entropy.fit_max_entropy(counts, "default").model
    items = model.items
    for size in (1, 2, 3):
        for offer in combinations(items[:5], size):
            smaller, larger = model.predict(offer), model.predict((*offer, items[5]))
            assert sum(larger.values()) == pytest.approx(1.0)
            assert all(larger[item] <= smaller[item] + 1e-12 for item in offer)


def test_it_predicts_unseen_offers_better_than_the_solver_and_the_logit() -> None:
    from rankstream import estimate
    from rankstream.estimation.methods import PrimalDual
    from rankstream.models.parametric.mnl import fit_mnl

    errors = []
    for seed in range(3):
        market = simulate.market(seed, n_offers=40, unseen=True)
        counts = next(market.stream(first=10_000))
        truth = market.truth.probabilities(market.test)
        models = (
            entropy.fit_max_entropy(counts, "default").model,
            estimate(counts, method=PrimalDual(max_rounds=2000)).model,
            fit_mnl(counts),
        )
        errors.append([np.sqrt(np.mean((model.probabilities(market.test) - truth) ** 2)) for model in models])
    ours, sparse, logit = np.mean(errors, axis=0)
    assert ours < 0.8 * sparse
    assert ours < 0.5 * logit


def test_exact_frequencies_and_more_trust_fit_closer() -> None:
    counts = next(MARKET.stream(first=3000))
    prior = a_prior(counts.assortments.items, "classes")
    fits = [entropy.fit_max_entropy(counts, prior, trust=trust).fitted for trust in (1.0, 30.0, 1e6)]
    errors = [np.abs(fitted - counts.frequencies()).mean() for fitted in fits]
    assert errors[0] < errors[1] < errors[2]
    alone = SoftLattice(counts.assortments, prior).evaluate(np.zeros(counts.assortments.n_coordinates))[1]
    assert errors[2] == pytest.approx(np.abs(alone - counts.frequencies()).mean(), rel=0.05)


def test_a_warm_start_needs_fewer_evaluations() -> None:
    counts = next(MARKET.stream(first=20_000))
    prior = a_prior(counts.assortments.items, "mixed")
    first = entropy.fit_max_entropy(counts, prior, tolerance=1e-6)
    counts.observe(counts.assortments.offers[0], counts.assortments.offers[0][0])
    cold, warm = (entropy.fit_max_entropy(counts, prior, tolerance=1e-6, start=start) for start in (None, first))
    assert warm.evaluations < cold.evaluations
    weight = tilt_weights(counts, prior, entropy.TRUST).min()
    assert warm.fitted == pytest.approx(cold.fitted, abs=2 * np.sqrt(2e-6 / weight))  # what the two gaps allow


def test_a_sampled_curvature_solves_its_own_hessian_and_saves_steps() -> None:
    counts = next(simulate.market(3, n_items=6, n_offers=12, n_test=2).stream(first=2000))
    first = entropy.fit_max_entropy(counts)
    assert isinstance(first.model, EntropyModel)
    weights = tilt_weights(counts, first.model.prior, first.trust or 1.0)
    vertices = np.array([counts.assortments.vertex(order) for order in first.model.prior.sample(50, 1)])
    hessian = np.diag(1.0 / weights) + np.cov(vertices.T, bias=True)
    slope = np.random.default_rng(2).normal(size=weights.size)
    assert Curvature(vertices, weights).solve(slope) == pytest.approx(np.linalg.solve(hessian, slope))
    kept: dict[str, Any] = {"prior": first.model.prior, "trust": first.trust, "start": first, "tolerance": 1e-6}
    again = resample(counts, first.fitted, np.random.default_rng(0))
    plain = entropy.fit_max_entropy(again, **kept)
    quick = entropy.fit_max_entropy(again, **kept, curvature=first.curvature(counts))
    assert quick.gap <= 1e-6
    assert 2 * quick.evaluations <= plain.evaluations  # 3 and 9; refits of intervals use it so
    assert quick.fitted == pytest.approx(plain.fitted, abs=1e-3)


def test_programs_of_the_same_offers_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = Assortments([("a", "b", "c"), ("b", "c"), ("a", "c")])
    more = Assortments([*offers.offers, ("a", "b")], offers.items)
    priors = [a_prior(offers.items, "mixed", seed) for seed in range(3)]
    duals = np.random.default_rng(9).normal(size=more.n_coordinates)
    alone = [SoftLattice(more, prior).evaluate(duals) for prior in priors]
    made: list[Assortments] = []
    make = SoftLattice.__init__

    def count(lattice: SoftLattice, asked: Assortments, *rest: Any) -> None:
        made.append(asked)
        make(lattice, asked, *rest)

    monkeypatch.setattr(SoftLattice, "__init__", count)
    with shared_programs():
        for prior, (value, shares) in zip(priors, alone, strict=True):
            assert program_of(offers, prior).states.size
            found = program_of(more, prior).evaluate(duals)
            assert found[0] == pytest.approx(value)
            assert found[1] == pytest.approx(shares)
    assert len(made) == 2
    program_of(offers, priors[0])
    assert len(made) == 3  # nothing is kept outside


def test_shares_of_a_fit_can_be_remembered() -> None:
    counts = next(simulate.market(3, n_items=5, n_offers=8, n_test=2).stream(first=800))
    found = entropy.fit_max_entropy(counts, trust=10.0)
    assert isinstance(found.model, EntropyModel)
    again = EntropyModel(found.model.prior, found.model.assortments, found.model.duals)
    found.model.remember(found.fitted)
    assert found.model.probabilities(counts.assortments) == pytest.approx(again.probabilities(counts.assortments))


def test_offers_without_observations_drop_out() -> None:
    offers = Assortments([("tea", "pie"), ("pie", "cake"), ("tea", "cake")])
    found = entropy.fit_max_entropy(ChoiceCounts(offers, [30, 10, 20, 20, 0, 0]))
    assert found.assortments.n_offers == 2
    assert found.model.items == ("tea", "pie", "cake")
    assert found.model.predict(("tea", "cake"))["tea"] > 0.5


def test_to_rankings_keeps_the_probabilities() -> None:
    counts = next(MARKET.stream(first=10_000))
    model = entropy.fit_max_entropy(counts, "default").model
    assert isinstance(model, EntropyModel)
    sparse = model.to_rankings(1000)
    error = np.abs(sparse.probabilities(MARKET.test) - model.probabilities(MARKET.test)).mean()
    rough = np.abs(model.to_rankings(50).probabilities(MARKET.test) - model.probabilities(MARKET.test)).mean()
    assert error < 0.004
    assert error < rough
    assert len(sparse.weights) <= 1000


@pytest.mark.parametrize("n_items", [4, 6, 8])
def test_to_rankings_keeps_the_probabilities_without_the_no_choice_item(n_items: int) -> None:
    """What nobody offers without "nothing" is asked of rankings all the same: errors there were up to 0.48."""
    market = simulate.market(0, n_items=n_items, n_offers=8)
    model = entropy.fit_max_entropy(next(market.stream()), "default", trust=30.0).model
    assert isinstance(model, EntropyModel)
    free = [item for item in model.items if item != model.no_choice]
    assert len(free) == n_items
    subsets = [offer for size in range(2, n_items + 1) for offer in combinations(free, size)]
    sparse = model.to_rankings(400)
    for more in ((), (model.no_choice,)):
        offers = Assortments([offer + more for offer in subsets], model.items)
        assert sparse.probabilities(offers) == pytest.approx(model.probabilities(offers), abs=0.035)


def test_save_and_load(tmp_path: Path) -> None:
    counts = next(MARKET.stream(first=1000))
    model = entropy.fit_max_entropy(counts, "default").model
    assert isinstance(model, EntropyModel)
    model.save(tmp_path / "model.json")
    again = EntropyModel.load(tmp_path / "model.json")
    assert again.probabilities(MARKET.test) == pytest.approx(model.probabilities(MARKET.test), abs=0)
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]
    text = (tmp_path / "model.json").read_text()
    damage = {
        text[:-20]: "is not a complete model file",
        "{}": "is not a rankstream model",
        text.replace('"duals": [', '"duals": [1.0, '): "is a damaged model file",
        text.replace("entropy-model", "model"): "is not a rankstream model of this kind",
    }
    for damaged, message in damage.items():
        (tmp_path / "model.json").write_text(damaged)
        with pytest.raises(ValueError, match=f"model.json {message}"):
            EntropyModel.load(tmp_path / "model.json")


def test_sampled_rankings_where_the_program_is_too_large() -> None:
    items, random = tuple(f"item {number}" for number in range(24)), np.random.default_rng(0)
    truth = simulate.mixed_mnl(items, 3, 5.0, random)
    offers = Assortments(simulate.random_offers(items, 60, random, largest=3), truth.items)
    drawn = simulate.draw_choices(offers, truth.probabilities(offers), 6000, random)
    counts = ChoiceCounts(offers)
    counts.observe_coordinates(drawn)
    prior = laws.plackett_luce(truth.items, np.ones((1, 25)))
    with pytest.raises(TooManyUnionsError):
        SoftLattice(counts.assortments, prior)
    found = entropy.fit_max_entropy(counts, prior)
    assert found.approximate
    assert found.converged
    assert sum(found.model.predict(items).values()) == pytest.approx(1.0)


def test_sampled_rankings_come_near_the_exact_model() -> None:
    counts = next(MARKET.stream(first=2000))
    prior = a_prior(counts.assortments.items, "mixed")
    exact = entropy.fit_max_entropy(counts, prior)
    law = SampledLaw(counts.assortments, prior, 20_000, 0)
    weights = tilt_weights(counts, prior, entropy.TRUST)
    problem = TiltProblem(law, counts.frequencies(), weights, 1e-3)
    problem.solve(np.zeros(counts.assortments.n_coordinates), 500)
    assert problem.gap <= 1e-3
    assert problem.fitted == pytest.approx(exact.fitted, abs=0.02)


@pytest.mark.parametrize("kind", ["classes", "chain"])
def test_prior_samples_follow_the_prior(kind: str) -> None:
    offers = MARKET.assortments
    prior = a_prior(offers.items, kind)
    drawn = prior.sample(8000, seed=1)
    shares = np.mean([offers.vertex(order) for order in drawn], axis=0)
    exact = SoftLattice(offers, prior).evaluate(np.zeros(offers.n_coordinates))[1]
    assert shares == pytest.approx(exact, abs=0.03)


def test_stacking_trusts_the_guide_that_predicts() -> None:
    market = simulate.market(0, segments=1, n_offers=30)
    counts = next(market.stream(first=5000))
    model = entropy.fit_max_entropy(counts, "stacked", trust=None).model
    assert isinstance(model, EntropyModel)
    prior = model.prior
    assert prior.class_weights.sum() + prior.chain_weights.sum() == pytest.approx(1.0)
    assert prior.class_weights[0] > 0.3
    few = ChoiceCounts(Assortments([("tea", "pie")]), [3, 4])
    assert fit_quick_stack(few).prior.class_weights[0] == pytest.approx(0.1)


def test_bad_input_is_explained() -> None:
    counts = ChoiceCounts(Assortments([("tea", "pie")]), [3, 4])
    with pytest.raises(ValueError, match="Unknown prior 'flat'"):
        entropy.fit_max_entropy(counts, "flat")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="different items"):
        entropy.fit_max_entropy(counts, laws.plackett_luce(("tea", "cake"), [1.0, 1.0]))
    with pytest.raises(ValueError, match="has no item 'cake'"):
        entropy.fit_max_entropy(counts).model.predict(("tea", "cake"))
    with pytest.raises(ValueError, match="sum to"):
        laws.plackett_luce(("tea", "pie"), [[1.0, 1.0]], [0.5])
    with pytest.raises(ValueError, match="no observations"):
        entropy.fit_max_entropy(ChoiceCounts(Assortments([("tea", "pie")])))


def test_many_sparse_items_are_answered_all_the_same() -> None:
    items = [f"item {number}" for number in range(24)]
    offers = Assortments([items[k : k + 2] for k in range(0, 24, 2)], items)
    found = entropy.fit_max_entropy(ChoiceCounts(offers, [30, 10] * 12), laws.plackett_luce(items, np.ones((1, 24))))
    model = found.model
    assert isinstance(model, EntropyModel)
    assert sum(model.predict(items[:3]).values()) == pytest.approx(1.0)
    assert sum(segment.share for segment in model.segments(size=50)) == pytest.approx(1.0)
    assert len(model.to_rankings(50).weights) <= 50


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"class_weights": np.array([0.5, 0.5])}, "shapes"),
        ({"attraction": np.array([[2.0, -1.0]])}, "negative"),
        ({"attraction": np.array([[0.5, 0.1]])}, "does not sum to 1"),
    ],
)
def test_priors_are_checked(change: dict[str, Vec], message: str) -> None:
    from dataclasses import replace

    with pytest.raises(ValueError, match=message):
        replace(laws.plackett_luce(("tea", "pie"), [1.0, 3.0]), **change)  # type: ignore[arg-type]


@pytest.mark.parametrize("stays", [1.0, 1.0 - 1e-10])
def test_chains_that_never_leave_an_item_are_refused(stays: float) -> None:
    moves = np.array([[stays, 1.0 - stays], [1.0, 0.0]])
    with pytest.raises(ValueError, match="never leaves an item"):
        laws.markov_chain(("tea", "pie"), np.array([0.5, 0.5]), moves)
    assert laws.markov_chain(("tea", "pie"), np.array([0.5, 0.5]), np.array([[0.9, 0.1], [1.0, 0.0]])).items


def test_duals_must_fit_and_labels_must_survive(tmp_path: Path) -> None:
    offers = Assortments([(("a", 1), "b")])
    prior = laws.plackett_luce(offers.items, [1.0, 1.0])
    with pytest.raises(ValueError, match="finite duals"):
        EntropyModel(prior, offers, np.array([np.nan, 0.0]))
    with pytest.raises(ValueError, match="cannot be saved"):
        EntropyModel(prior, offers, np.zeros(2)).save(tmp_path / "model.json")
    with pytest.raises(ValueError, match="different items"):
        laws.mix([prior, laws.plackett_luce(("a", "c"), [1.0, 1.0])], [0.5, 0.5])


def test_remembered_answers_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entropy_model, "MAX_REMEMBERED_ANSWERS", 3)
    model = EntropyModel(laws.plackett_luce("abcd", np.arange(1.0, 5.0)), Assortments([tuple("abcd")]), np.zeros(4))
    for offers, remembered in ((["ab", "ac"], 2), (["ac", "ad"], 3), (["bc"], 1), (["bd", "cd"], 3)):
        some = Assortments([tuple(offer) for offer in offers])
        assert model.exact_probabilities(some).shape == (some.n_coordinates,)
        assert len(model._answers) == remembered
