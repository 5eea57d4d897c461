"""Logits with a price coefficient: fits, methods by name, answers at any price, files; and the simulated markets."""

import importlib.util
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import strategies
from rankstream import Assortments, ChoiceCounts, PriceLevels, compare, estimate, load_model
from rankstream._core.types import Vec
from rankstream.estimation.methods import METHODS, WITH_PRICES, PricedClasses, make
from rankstream.evaluate.compare import MODELS, names_for
from rankstream.evaluate.compare import PRICED as PRICED_NAMES
from rankstream.models.lifts import chains_of
from rankstream.models.parametric.attribute_logit import AttributeProblem, PricedModel, fit_attribute_logit

LEVELS = PriceLevels({"tea": [3, 3.5, 4], "pie": [2, 3, 5]})
OFFERS = [LEVELS.offer({"tea": tea, "pie": pie, "no": None}) for tea in (3, 3.5, 4) for pie in (2, 3, 5)]
PRICED = Assortments(OFFERS, [*LEVELS.labels, "no"], LEVELS.order)
fit_priced_logit = partial(fit_attribute_logit, classes=1)


def shares_of(constants: dict[str, float], slope: float, offers: Assortments = PRICED) -> Vec:
    """What a logit with a price coefficient gives, offer by offer."""
    shares = []
    for offer in offers.offers:
        pairs = [LEVELS.of(label) for label in offer]
        worth = np.exp([constants[str(item)] - slope * (price or 0.0) for item, price in pairs])
        shares.append(worth / worth.sum())
    return np.concatenate(shares)


FIRST = shares_of({"tea": 2.0, "pie": 3.0, "no": 0.0}, 0.8)
SECOND = shares_of({"tea": 1.0, "pie": -1.0, "no": 0.0}, 0.1)


def test_a_logit_with_a_price_comes_back_from_its_own_shares() -> None:
    model = fit_priced_logit(ChoiceCounts(PRICED, 1e6 * FIRST))
    assert model.slopes == pytest.approx([0.8], abs=1e-3)
    assert model.constants[0] - model.constants[0, -1] == pytest.approx([2.0, 3.0, 0.0], abs=1e-3)
    assert model.probabilities(PRICED) == pytest.approx(FIRST, abs=1e-4)
    assert model.converged
    assert model.n_parameters == 3
    free = Assortments([("tea @ 3.00", "no"), ("tea @ 4.00", "no")])
    rising = fit_priced_logit(ChoiceCounts(free, [400, 600, 600, 400]))  # no slope is below 0
    assert rising.predict(("tea @ 3.00", "no"))["no"] == pytest.approx(0.5, abs=0.01)


def test_attractions_that_are_far_apart_do_not_overflow() -> None:
    model = fit_priced_logit(ChoiceCounts(PRICED, 100.0 * FIRST))
    apart = replace(model, constants=np.array([[0.0, 2000.0, -2000.0]]))
    assert apart.attraction.sum() == pytest.approx(1.0)
    assert apart.attraction.max() == pytest.approx(apart.attraction[0, LEVELS.labels.index("pie @ 2.00")])


def test_classes_with_a_price_come_back_from_their_mixture() -> None:
    counts = ChoiceCounts(PRICED, np.round(1e6 * (0.7 * FIRST + 0.3 * SECOND)))
    one, two = fit_priced_logit(counts), fit_attribute_logit(counts, classes=2, tolerance=1e-13, max_rounds=2000)
    assert two.log_likelihood > one.log_likelihood
    assert two.probabilities(PRICED) == pytest.approx(0.7 * FIRST + 0.3 * SECOND, abs=1e-3)
    fewer = ChoiceCounts(PRICED, np.round(1e4 * (0.7 * FIRST + 0.3 * SECOND)))
    assert fit_attribute_logit(fewer, tried=(1, 2)).n_classes == 2
    with pytest.raises(ValueError, match="no number of classes to try"):
        fit_attribute_logit(fewer, tried=())


def test_the_slope_of_the_likelihood_is_that_of_finite_differences() -> None:
    counts = ChoiceCounts(PRICED, np.random.default_rng(1).integers(0, 9, PRICED.n_coordinates))
    model = fit_attribute_logit(counts, classes=2)
    problem = AttributeProblem(counts, None, 2, 0.5)
    assert problem.money * problem.scale == pytest.approx(model.prices)
    point = np.random.default_rng(2).normal(size=2 + 3 * 4)  # classes, and what they have in common and apart
    precision = problem.precision(np.array([0.5, 2.0, 0.7, 0.25, 3.0]))
    where = {"precision": precision, "base": np.zeros(point.size), "scale": np.eye(point.size)}
    value, slope = problem.cost(point, **where)
    assert slope == pytest.approx(approx_fprime(point, lambda at: problem.cost(at, **where)[0], 1e-7), abs=1e-3)
    far = problem.cost(1000.0 * point, **where)[0]  # where a step may lead
    assert np.isfinite(far)
    assert far > value


def test_it_answers_at_prices_that_are_no_levels() -> None:
    model = fit_priced_logit(ChoiceCounts(PRICED, 1e5 * FIRST))
    between = Assortments([("tea @ 3.20", "no")])
    worth = np.exp(2.0 - 0.8 * 3.2)
    assert model.probabilities(between) == pytest.approx([worth / (1 + worth), 1 / (1 + worth)], abs=2e-3)
    assert model.predict(("tea @ 9.99", "pie @ 2.50", "no"))["no"] > 0.2
    with pytest.raises(ValueError, match=r"has no item 'rum @ 2\.00'"):
        model.predict(("rum @ 2.00", "no"))
    with pytest.raises(ValueError, match="has no item 'rum'"):
        model.predict(("rum", "no"))


def test_its_rankings_and_its_falling_twin_keep_the_order() -> None:
    model = fit_attribute_logit(ChoiceCounts(PRICED, np.round(1e4 * (0.5 * FIRST + 0.5 * SECOND))), classes=2)
    drawn = model.to_rankings(4000, seed=3)
    assert PRICED.precedence.respects(drawn.orders).all()
    assert drawn.probabilities(PRICED) == pytest.approx(model.probabilities(PRICED), abs=0.03)
    dear_first = Assortments([("tea @ 4.00", "no"), ("tea @ 3.00", "no")], order=[("tea @ 3.00", "tea @ 4.00")])
    flat = replace(fit_priced_logit(ChoiceCounts(dear_first, [5, 5, 5, 5])), slopes=np.zeros(1))  # all prices alike
    assert dear_first.precedence.respects(flat.draw_orders(20, np.random.default_rng(1))).all()
    twin = model.falling(chains_of(PRICED))
    assert twin.probabilities(PRICED) == pytest.approx(model.probabilities(PRICED), abs=1e-12)


def test_files_and_names(tmp_path: Path) -> None:
    model = fit_attribute_logit(ChoiceCounts(PRICED, np.round(1e3 * FIRST)), classes=2)
    model.save(tmp_path / "model.json")
    same = load_model(tmp_path / "model.json")
    assert isinstance(same, PricedModel)
    assert np.array_equal(same.probabilities(PRICED), model.probabilities(PRICED))
    named = model.relabel([f"{label}!" for label in model.items])
    assert named.predict([f"{label}!" for label in OFFERS[0]])["no!"] == model.predict(OFFERS[0])["no"]
    content = model.to_content()
    for name, bad in {"owner": [9] * 7, "mixture": [0.5, 0.9], "no_choice_code": 7, "slopes": [1.0]}.items():
        with pytest.raises(ValueError, match=r"^its "):
            PricedModel.from_content(content | {name: bad})


def test_methods_by_name() -> None:
    counts = ChoiceCounts(PRICED, np.round(300 * FIRST))
    found = estimate(counts, method="mnl-price")
    assert isinstance(found.model, PricedModel)
    assert found.certificate.lower <= found.certificate.upper
    chosen = estimate(counts, method=PricedClasses(classes=2)).model
    assert chosen.n_classes == 2
    assert set(WITH_PRICES) == {"mnl-price", "latent-class-price"}
    assert not set(WITH_PRICES) & set(METHODS)
    assert make("latent-class-price", tolerance=1e-6) == PricedClasses(tolerance_nats=1e-6)
    with pytest.raises(ValueError, match="no tolerance"):
        make("mnl-price", tolerance=1e-6)
    plain = ChoiceCounts(Assortments([("tea", "no"), ("pie", "no")]), [3, 1, 1, 3])
    with pytest.raises(ValueError, match=r"^No item has a price in its name, such as 'tea @ 3.50': .*\.$"):
        estimate(plain, method="mnl-price")


def test_they_can_be_compared() -> None:
    counts = ChoiceCounts(PRICED, np.round(300 * FIRST))
    table = compare(counts, ["mnl-price", "nearest"], folds=3)
    assert {row.name for row in table.rows} == {"mnl-price", "nearest", "uniform"}
    assert table.rows[0].name == "mnl-price"
    assert {*PRICED_NAMES, "max-entropy", "nearest"} <= set(names_for(counts))
    assert not {"mnl", "latent-class", "markov-chain"} & set(names_for(counts))
    assert names_for(ChoiceCounts(Assortments([("tea", "pie")]))) == list(MODELS)


def the_benchmark() -> Any:
    path = Path(__file__).parents[2] / "benchmarks" / "prices_accuracy.py"
    spec = importlib.util.spec_from_file_location("prices_accuracy", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["prices_accuracy"] = module
    spec.loader.exec_module(module)
    return module


@strategies.compiled_only
@pytest.mark.parametrize("truth", ["mixed logit", "threshold", "rankings"])
def test_simulated_customers_mind_prices_and_the_truth_is_best(truth: str) -> None:
    bench = the_benchmark()
    market = bench.Market(truth, 1)

    class Truth:
        items = market.every.items

        def probabilities(self, offers: Assortments) -> Vec:
            shares: Vec = market.shares
            return shares

    assert market.judge(Truth()) == (0.0, 1.0)
    names = market.levels.items
    for item in names:
        curve = [
            market.shares[
                market.every.coordinate(offer := market.levels.offer({item: price, "nothing": None}), offer[0])
            ]
            for price in market.levels.levels[item]
        ]
        assert curve == sorted(curve, reverse=True)
    counts = market.counts(3_000)
    assert counts.observations == 3_000
    assert market.counts(3_000, ordered=False).assortments.order == ()
    error, earned = market.judge(bench.fit_by_method("mnl-price", counts))
    assert 0.0 < error < 0.2
    assert 0.0 < earned <= 1.0
