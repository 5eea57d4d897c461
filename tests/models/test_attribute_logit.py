"""Logits with part-worths, against plain sums; and where they join maximum entropy."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rankstream as rs
from rankstream import Assortments, ChoiceCounts
from rankstream._core.types import Vec
from rankstream.data.attributes import Attributes
from rankstream.models.entropy import fit as entropy_fit
from rankstream.models.entropy.guides import CHAIN, LOGIT, with_attributes
from rankstream.models.entropy.new_items import WorthRegression
from rankstream.models.entropy.pool import PoolGuide
from rankstream.models.entropy.saved_fit import saved_fit
from rankstream.models.parametric import normal_taste
from rankstream.models.parametric.attribute_logit import AttributeProblem, fit_attribute_logit
from rankstream.models.parametric.mnl import fit_shrunk_logit
from rankstream.models.parametric.normal_taste import fit_normal_taste, taste_points
from strategies import compiled_only

ITEMS = tuple("abcdefgh")


def a_table(seed: int) -> Attributes:
    random = np.random.default_rng(seed)
    return Attributes(ITEMS, {"size": random.normal(size=8).tolist(), "brand": list("AABBABBA")})


def a_market(worth: Vec, seed: int, choices: int, n_offers: int = 20) -> ChoiceCounts:
    """Choices of logits, one row of worths per class, from offers of three items and nothing."""
    random, worth = np.random.default_rng(seed), np.atleast_2d(worth)
    picked = random.choice(56, size=n_offers, replace=False)
    offers = Assortments([(*list(combinations(ITEMS, 3))[k], "nothing") for k in picked], [*ITEMS, "nothing"])
    tallies = np.zeros(offers.n_coordinates)
    for number in range(n_offers):
        place = slice(offers.indptr[number], offers.indptr[number + 1])
        rows = worth[:, offers.members[place]]
        shares = (rows / rows.sum(axis=1, keepdims=True)).mean(axis=0)
        tallies[place] = random.multinomial(choices // n_offers, shares)
    return ChoiceCounts(offers, tallies)


def worths(table: Attributes, part_worths: Any, effect: float, seed: int) -> Vec:
    noise = effect * np.random.default_rng(seed).normal(size=8)
    worth: Vec = np.exp(np.append(table.matrix @ np.array(part_worths) + noise, 0.5))
    return worth


def height(problem: AttributeProblem, point: Vec, counts: ChoiceCounts, table: Attributes, precision: Vec) -> float:
    """The log of posterior density, choice by choice.

    A point is log shares, part-worths and nothing's worth, how classes deviate from these, and item effects.
    """
    classes, offers = problem.classes, counts.assortments
    shares = np.exp(point[:classes]) / np.exp(point[:classes]).sum()
    common, own, effects = point[classes:][:4], point[classes + 4 : -8], point[-8:]
    rows = common + (own.reshape(classes, 4) if classes > 1 else np.zeros((1, 4)))
    utility = np.array([[*(table.matrix @ row[:3] + effects), row[3]] for row in rows])
    total = float(np.log(shares).sum())
    everything = [(list(range(9)), np.full(9, 0.1))]
    for number in range(offers.n_offers):
        place = slice(offers.indptr[number], offers.indptr[number + 1])
        everything.append((offers.members[place].tolist(), counts.tallies[place]))
    for members, tallies in everything:
        chances = np.exp(utility[:, members])
        total += float(tallies @ np.log(shares @ (chances / chances.sum(axis=1, keepdims=True))))
    return total - 0.5 * float(precision @ point**2)


@pytest.mark.quick
@pytest.mark.parametrize("classes", [1, 3])
def test_cost_and_slope_are_those_of_plain_sums(classes: int) -> None:
    table, random = a_table(0), np.random.default_rng(1)
    counts = a_market(worths(table, [1.0, 0.5, -0.5], 0.3, 2), 3, 400)
    problem = AttributeProblem(counts, table, classes, 0.1)
    point, precision = random.normal(size=problem.size), problem.precision(np.array([0.5, 2.0, 9.0, 0.7, 0.25]))
    where = {"precision": precision, "base": np.zeros(problem.size), "scale": np.eye(problem.size)}
    value, slope = problem.cost(point, **where)
    assert -value == pytest.approx(height(problem, point, counts, table, precision), rel=1e-9)
    for place in range(problem.size):
        step = np.zeros(problem.size)
        step[place] = 1e-5
        numeric = (problem.cost(point + step, **where)[0] - problem.cost(point - step, **where)[0]) / 2e-5
        assert slope[place] == pytest.approx(numeric, rel=1e-4, abs=1e-4)
    scale = random.normal(size=(problem.size, problem.size))
    moved, turned = problem.cost(np.zeros(problem.size), precision, point, scale)
    assert moved == pytest.approx(value)
    assert turned == pytest.approx(slope @ scale)


def test_variances_are_mackays_of_the_laplace_approximation() -> None:
    table = a_table(0)
    counts = a_market(worths(table, [1.0, 0.5, -0.5], 0.3, 2), 3, 400)
    problem, variances = AttributeProblem(counts, table, 1, 0.1), np.array([0.5, 2.0, 9.0, 1.0, 0.25])
    point = np.random.default_rng(4).normal(size=problem.size)
    point[0] = 0.0
    whole = {"base": np.zeros(problem.size), "scale": np.eye(problem.size), "precision": problem.precision(variances)}
    slopes = []
    for place in range(1, problem.size):  # second derivatives, from slopes
        step = np.zeros(problem.size)
        step[place] = 1e-5
        slopes.append((problem.cost(point + step, **whole)[1] - problem.cost(point - step, **whole)[1])[1:] / 2e-5)
    spread = np.diag(np.linalg.inv(np.array(slopes)))
    kinds = np.array([0, 0, 0, 1] + 8 * [4])
    wanted = []
    for kind in range(5):
        effective = (1.0 - spread[kinds == kind] / variances[kind]).sum()
        squares, effects = (0.02, 0.1) if kind in (0, 4) else (0.25, 1.0)  # seen in advance
        wanted.append(((point[1:][kinds == kind] ** 2).sum() + squares) / (effective + effects))
    assert problem.next_variances(point, variances) == pytest.approx(wanted, rel=1e-4)


def test_part_worths_of_a_large_market_are_found() -> None:
    table = a_table(0)
    truth = worths(table, [1.0, 0.8, -0.8], 0.0, 2)
    fit = fit_attribute_logit(a_market(truth, 3, 40_000), table, classes=1)
    assert fit.attraction[0] == pytest.approx(truth / truth.sum(), abs=0.01)
    size, brand_a, brand_b = WorthRegression(fit.attraction[:, :8], np.ones(1), table.matrix).mean_part_worths[0]
    assert (size, brand_a - brand_b) == pytest.approx((1.0, 1.6), abs=0.15)
    assert fit.converged


def test_attributes_help_where_items_have_few_choices() -> None:
    table = a_table(1)
    truth = worths(table, [1.0, 0.5, -0.5], 0.2, 5)
    counts = a_market(truth, 6, 100)
    shuffled = Attributes(ITEMS, {name: [v[(3 * k + 1) % 8] for k in range(8)] for name, v in table.columns.items()})
    known, wrong = (fit_attribute_logit(counts, one, classes=1).attraction[0] for one in (table, shuffled))
    own, other, none = (
        np.abs(row - truth / truth.sum()).sum() for row in (known, wrong, fit_shrunk_logit(counts).attraction)
    )
    assert own < 0.8 * none
    assert own < 0.8 * other
    assert other < 1.1 * none


def test_two_tastes_are_told_apart_and_a_fit_goes_on_where_it_was() -> None:
    table = a_table(2)
    truth = np.array([worths(table, [2.0, 0.5, -0.5], 0.2, 5), worths(table, [-2.0, -0.5, 0.5], 0.2, 5)])
    counts = a_market(truth, 6, 20_000)
    one, two = (fit_attribute_logit(counts, table, classes=classes) for classes in (1, 2))
    assert two.log_likelihood > one.log_likelihood + 50.0
    part_worths = WorthRegression(two.attraction[:, :8], two.mixture, table.matrix).mean_part_worths
    assert np.sign(part_worths[:, 0]).sum() == 0
    again = fit_attribute_logit(counts, table, start=two)
    assert again.log_likelihood == pytest.approx(two.log_likelihood, abs=1.0)
    assert again.iterations < two.iterations


@pytest.fixture(scope="module")
def fitted() -> tuple[ChoiceCounts, Attributes, Any]:
    table = a_table(1)
    counts = a_market(worths(table, [1.5, 0.8, -0.8], 0.1, 5), 6, 600)
    return counts, table, rs.estimate(counts, attributes=table)


@compiled_only
@pytest.mark.slow
def test_guides_with_attributes_are_weighed_and_the_chain_is_not(fitted: tuple[ChoiceCounts, Attributes, Any]) -> None:
    _, table, fit = fitted
    names = [guide.name for guide in with_attributes(table)]
    assert CHAIN.name not in names
    assert names[:3] == ["logit with attributes", "3 classes with attributes", "normal taste with attributes"]
    told = fit.model.about["prediction"]
    assert "logit with attributes" in told["held_out_log_likelihood"]
    assert CHAIN.name not in told["held_out_log_likelihood"]
    assert told["weights"]["logit with attributes"] > 0.1
    assert LOGIT.name not in told["weights"]  # of the same family, and behind
    stack = fit.details.stack
    assert stack.logit_weight == pytest.approx(told["weights"]["logit with attributes"], abs=1e-4)


@compiled_only
@pytest.mark.slow
def test_a_fitted_model_takes_new_items_and_is_refitted_from_its_file(
    fitted: tuple[ChoiceCounts, Attributes, Any], tmp_path: Path
) -> None:
    counts, table, fit = fitted
    rows = {"good": {"size": 1.5, "brand": "A"}, "bad": {"size": -1.5, "brand": "B"}}
    shares = fit.model.with_items(rows).predict(("good", "bad", "nothing"))
    assert shares["good"] > 5 * shares["bad"]
    fit.model.save(tmp_path / "model.json")
    again = rs.load_model(tmp_path / "model.json")
    assert again.with_items(rows).predict(("good", "bad", "nothing")) == pytest.approx(shares, abs=1e-9)
    saved = saved_fit(again)
    assert saved is not None
    assert saved.stack is not None
    assert [one.guide.name for one in saved.stack.guides] == [one.guide.name for one in fit.details.stack.guides]
    many = rs.Bootstrap(counts, "max-entropy", 2, model=again)
    low, high = (many.predict(("a", "b", "nothing"))["a"][k] for k in (1, 2))
    assert low < fit.model.predict(("a", "b", "nothing"))["a"] < high
    assert saved.stack.guides[0].guide.attributes is not None
    assert table.items == saved.stack.guides[0].guide.attributes.items


@pytest.mark.quick
def test_what_attributes_do_not_go_with() -> None:
    table = a_table(0)
    counts = a_market(worths(table, [1.0, 0.5, -0.5], 0.3, 2), 3, 200)
    with pytest.raises(ValueError, match=r"'nearest' has no setting 'attributes'"):
        rs.estimate(counts, method="nearest", attributes=table)
    with pytest.raises(ValueError, match=r"Attributes need the prior 'held-out'"):
        rs.estimate(counts, method="max-entropy", prior="default", attributes=table)
    few = Attributes(ITEMS[:7], {"size": [1, 2, 3, 4, 5, 6, 7]})
    with pytest.raises(ValueError, match=r"no row for 'h', which was offered: add one"):
        rs.estimate(counts, attributes=few)
    levels = Assortments([("a @ 1.00", "b"), ("a @ 2.00", "b")], order=[("a @ 1.00", "a @ 2.00")])
    with pytest.raises(ValueError, match=r"Attributes do not work with an order of the items, such as price levels"):
        rs.estimate(ChoiceCounts(levels, [1, 1, 1, 1]), attributes=table)


@pytest.mark.slow
@pytest.mark.parametrize("pool", [False, True])
def test_each_of_many_markets_has_the_attributes(pool: bool, tmp_path: Path) -> None:
    table, rows = a_table(0), []
    for store, seed in (("north", 1), ("south", 2)):
        counts = a_market(worths(table, [1.0, 0.5, -0.5], 0.3, 2), seed, 300)
        for place in np.flatnonzero(counts.tallies).tolist():
            offer = counts.assortments.offers[counts.assortments.owner[place]]
            chosen = counts.assortments.items[counts.assortments.members[place]]
            rows.append((store, ";".join(map(str, offer)), chosen, int(counts.tallies[place])))
    frame = pd.DataFrame(rows, columns=["store", "offered", "chosen", "count"])
    method = rs.methods.MaxEntropy(attributes=table)
    many = rs.estimate_many(frame, by=["store"], method=method, pool=pool, n_jobs=1, out=tmp_path / "models")
    wide = many.model("north").with_items({"new": {"size": 9.0, "brand": "A"}})
    assert wide.never_offered == ("new",)
    tried = wide.about["prediction"]["held_out_log_likelihood"]
    assert {"logit with attributes", "normal taste with attributes"} <= tried.keys()


def test_tastes_for_attributes_vary_smoothly() -> None:
    table, random = a_table(0), np.random.default_rng(3)
    tastes = random.normal(size=(400, 3)) * [2.0, 0.0, 0.0]  # for size alone
    truth = np.exp(np.hstack([tastes @ table.matrix.T, np.zeros((400, 1))]))
    counts = a_market(truth, 3, 1000)
    offers = Assortments([(*three, "nothing") for three in combinations(ITEMS, 3)], counts.assortments.items)
    errors = []
    for known in (table, None):
        fit = fit_normal_taste(counts, attributes=known)
        shares = np.zeros(offers.n_coordinates)
        for worth in truth:
            row = worth[offers.members]
            shares += row / np.add.reduceat(row, offers.indptr[:-1])[offers.owner] / len(truth)
        errors.append(float(np.abs(fit.probabilities(offers) - shares).mean()))
    assert errors[0] < 0.9 * errors[1]


def test_smooth_tastes_are_those_of_plain_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """No step from the end lowers the cost, written out: it is the end of the climb, and the cost is that one."""
    table = a_table(0)
    counts = a_market(worths(table, [1.0, 0.5, -0.5], 0.3, 2), 3, 300)
    monkeypatch.setattr(normal_taste, "FACTORS", 1)
    monkeypatch.setattr(normal_taste, "MAX_ROUNDS", 3000)
    fit = fit_normal_taste(counts, attributes=table)
    basis = np.hstack([np.diag([0.3] * 8 + [1.0]), np.vstack([table.matrix, np.zeros(3)])])
    points, offers = taste_points(1, 32)[:, 0], counts.assortments

    def cost(level: Vec, direction: Vec) -> float:
        total = 0.2 * float(level @ level) + 2.0 * float(direction @ direction)
        worth = np.exp(basis @ (level[:, np.newaxis] + np.outer(direction, points)))
        for number in range(offers.n_offers):
            place = slice(offers.indptr[number], offers.indptr[number + 1])
            rows = worth[offers.members[place]]
            total -= float(counts.tallies[place] @ np.log((rows / rows.sum(axis=0)).mean(axis=1)))
        return total

    from scipy.optimize import minimize

    ends = []
    for seed in range(2):
        start = np.random.default_rng(seed).normal(scale=0.3, size=24)
        ends.append(minimize(lambda point: cost(point[:12], point[12:]), start, method="L-BFGS-B"))
    found = min(ends, key=lambda end: float(end.fun))
    worth = np.exp(basis @ (found.x[:12, np.newaxis] + np.outer(found.x[12:], points)))
    shares = np.zeros(offers.n_coordinates)
    for column in worth.T:
        row = column[offers.members]
        shares += row / np.add.reduceat(row, offers.indptr[:-1])[offers.owner] / len(points)
    assert fit.probabilities(offers) == pytest.approx(shares, abs=2e-3)


@pytest.mark.quick
def test_attributes_need_guides_that_are_weighed_on_held_out_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    class ReachedError(Exception):
        pass

    def reached(*_: Any) -> None:
        raise ReachedError

    counts = ChoiceCounts(Assortments([("a", "b", "c"), ("a", "b")]), [3, 2, 1, 2, 2])
    table = Attributes("abcdefgh", {"size": [1.0, 2.0, 4.0, 3.0, 5.0, 8.0, 6.0, 7.0]})
    monkeypatch.setattr(entropy_fit, "_prior", reached)
    for taken in ("held-out", PoolGuide()):
        with pytest.raises(ReachedError):
            entropy_fit.fit_max_entropy(counts, prior=taken, attributes=table)
    for refused in ("default", "stacked", None):
        with pytest.raises(ValueError, match="Attributes need the prior 'held-out'"):
            entropy_fit.fit_max_entropy(counts, prior=refused, attributes=table)  # type: ignore[arg-type]


@pytest.mark.quick
def test_a_guide_with_attributes_is_fitted_with_them() -> None:
    table = Attributes("abcdefgh", {"size": [1.0, 2.0, 4.0, 3.0, 5.0, 8.0, 6.0, 7.0]})
    counts = ChoiceCounts(Assortments([tuple("abcd"), tuple("efgh"), tuple("aceg")]), range(1, 13))
    guides = [guide for guide in with_attributes(table) if guide.attributes is not None and guide.family != "taste"]
    assert guides
    for guide in guides:
        (model,) = guide.fit(counts).models
        assert model.predict(tuple("abcd")).keys() == set("abcd")
