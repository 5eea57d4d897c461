"""The fully corrective engine against programs over all rankings; ``test_nearest_mixture`` has its l2 master."""

import ast
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import naive
import rankstream as rs
import strategies
from oracle_problems import OneColumn
from rankstream import distances, methods, oracles
from rankstream._core.types import Vec
from rankstream.columns import corrective, master
from rankstream.columns.master import GrowingProgram, LinearMaster
from rankstream.data import simulate
from rankstream.distances import Distance

OFFERS = rs.Assortments([("tea", "pie"), ("tea", "pie", "nothing")])
IMPOSSIBLE = [0.4, 0.6, 0.5, 0.2, 0.3]  # tea gains when nothing joins
NORMS = ("l1", "l2", "linf")


def least_distance(norm: str, offers: rs.Assortments, target: Vec, weights: Vec) -> float:
    each = weights[offers.owner]
    return naive.least_distance(norm, naive.all_vertices(offers) * each, target * each)


@pytest.mark.parametrize("norm", NORMS)
@settings(max_examples=40, deadline=None)
@given(problem=strategies.noisy_problems())
def test_bounds_enclose_the_optimum_over_all_rankings(
    norm: str, problem: tuple[rs.Assortments, Vec, tuple[float, ...]]
) -> None:
    offers, target, weights = problem
    for chosen in (None, weights):
        distance = distances.make(norm, offers, weights=chosen)
        fit = corrective.fit_nearest(offers, target, distance, tolerance=1e-7)
        assert fit.converged
        best = least_distance(norm, offers, target, np.ones(offers.n_offers) if chosen is None else np.array(chosen))
        assert fit.certificate.lower <= best + 1e-7  # the optimum itself is found only to the solver's accuracy
        assert best <= fit.certificate.upper + 1e-7
        reached = distance.value(fit.model.probabilities(offers), target)
        assert reached == pytest.approx(fit.certificate.upper, abs=1e-9)
        assert 0.0 <= fit.certificate.gap <= 1e-7
        assert fit.certificate.regret_sum == pytest.approx(fit.certificate.gap, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(problem=strategies.noisy_problems(), rounds=st.integers(1, 4), norm=st.sampled_from(NORMS))
def test_bounds_hold_wherever_it_stops(
    problem: tuple[rs.Assortments, Vec, tuple[float, ...]], rounds: int, norm: str
) -> None:
    offers, target, _ = problem
    fit = corrective.fit_nearest(offers, target, norm, max_rounds=rounds, tolerance=0.0)
    best = least_distance(norm, offers, target, np.ones(offers.n_offers))
    assert fit.rounds <= rounds
    assert fit.certificate.lower <= best + 1e-7
    assert best <= fit.certificate.upper + 1e-7
    assert np.all(np.diff(fit.history.distance) <= 1e-9) or norm != "l2"


@pytest.mark.parametrize("norm", NORMS)
def test_data_of_a_ranking_model_are_matched(norm: str) -> None:
    market = simulate.market(seed=3, n_items=6, n_test=5, n_offers=10)
    fit = corrective.fit_nearest(market.assortments, market.frequencies(), norm)
    assert fit.converged
    assert fit.certificate.upper <= 1e-6
    error = np.abs(fit.model.probabilities(market.assortments) - market.frequencies()).max()
    assert error <= 1e-6


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_where_a_model_fits_no_linear_program_is_solved(norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such data make linear programs degenerate and slow; Wolfe's method ends at the model."""
    market = simulate.market(seed=3, n_items=6, n_test=5, n_offers=10)
    solved = list[str]()
    monkeypatch.setattr(LinearMaster, "_solve", lambda self: solved.append(self.norm))
    fit = corrective.fit_nearest(market.assortments, market.frequencies(), norm, tolerance=1e-7)
    assert fit.converged
    assert fit.certificate.upper <= 1e-7
    assert not solved


@strategies.compiled_only
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("noisy", [False, True])
def test_certified_gap_on_simulated_markets(seed: int, noisy: bool) -> None:
    market = simulate.market(seed)
    data = next(market.stream()) if noisy else market.frequencies()
    fit = rs.estimate(market.assortments, data, method=methods.Nearest(gap=1e-6))
    assert fit.converged
    assert fit.certificate.gap <= 1e-6
    assert fit.certificate.exact
    assert (fit.certificate.upper > 0.01) == noisy
    assert fit.rounds == len(fit.history.gap) < 60
    assert fit.history.gap[-1] == pytest.approx(fit.certificate.gap, abs=1e-12)
    assert len(fit.model.weights) == fit.history.rankings[-1]
    slow = rs.estimate(market.assortments, data, method=methods.PrimalDual(gap=0.0, max_rounds=500))
    assert fit.certificate.upper <= slow.certificate.upper
    assert slow.certificate.lower <= fit.certificate.upper
    assert len(fit.model.weights) < len(slow.model.weights)


def test_mean_absolute_error_stops_it_sooner() -> None:
    market = simulate.market(seed=4, n_items=6, n_test=5, n_offers=12)
    p = market.frequencies()
    rough = corrective.fit_nearest(market.assortments, p, tolerance=0.02, stop="mae")
    fine = corrective.fit_nearest(market.assortments, p, tolerance=1e-6)
    assert rough.converged
    assert rough.history.mae[-1] <= 0.02 < rough.history.mae[-2]
    assert rough.rounds < fine.rounds
    assert 0.0 <= rough.certificate.lower <= fine.certificate.upper <= rough.certificate.upper
    for norm in NORMS:
        fit = corrective.fit_nearest(market.assortments, p, norm, tolerance=0.02, stop="mae")
        assert fit.converged
        assert fit.history.gap[-1] == fit.certificate.gap


def test_an_error_that_cannot_be_reached_ends_at_the_optimum() -> None:
    fit = corrective.fit_nearest(OFFERS, IMPOSSIBLE, tolerance=1e-9, stop="mae")
    assert not fit.converged
    assert fit.rounds < 20
    assert fit.certificate.gap <= 1e-12


def test_offers_nobody_has_seen_are_left_out() -> None:
    grown = OFFERS.extend([("pie", "cake"), ("tea", "cake", "nothing")])
    counts = rs.ChoiceCounts(grown)
    counts.observe_coordinates(range(5), [40, 60, 50, 20, 30])
    for norm in NORMS:
        some = corrective.fit_nearest(grown, counts, norm)
        same = corrective.fit_nearest(OFFERS, IMPOSSIBLE, norm)
        assert some.converged
        assert some.certificate.upper == pytest.approx(same.certificate.upper, abs=1e-9)
        assert some.history.mae[-1] == pytest.approx(np.abs(same.model.probabilities(OFFERS) - IMPOSSIBLE).mean())


def test_names_and_numbers_of_items_do_not_matter() -> None:
    market = simulate.market(seed=5, n_items=5, n_test=5, n_offers=8)
    counts = next(market.stream(first=300))
    p, offers = counts.target().frequencies, market.assortments
    renamed = rs.Assortments(offers.offers, items=offers.items[::-1])
    for norm in NORMS:
        one, other = corrective.fit_nearest(offers, p, norm), corrective.fit_nearest(renamed, p, norm)
        assert one.certificate.upper == pytest.approx(other.certificate.upper, abs=2e-6)


def test_rankings_follow_the_tie_rule_and_the_seed() -> None:
    market = simulate.market(seed=6, n_items=6, n_test=5, n_offers=8)
    p, offers = market.frequencies(), market.assortments
    one, again, other = (corrective.fit_nearest(offers, p, seed=seed).model for seed in (0, 0, 1))
    assert one == again
    assert one != other
    oracle = oracles.auto(offers)
    for order in one.orders:
        vertex = offers.vertex(order)
        assert np.array_equal(oracle.cheapest(-vertex).ranking, order)


def test_any_oracle_will_do() -> None:
    market = simulate.market(seed=8, n_items=5, n_test=5, n_offers=10)
    p = next(market.stream(first=200)).target().frequencies
    one = corrective.fit_nearest(market.assortments, p, oracle=OneColumn(market.assortments))
    many = corrective.fit_nearest(market.assortments, p)
    assert one.converged
    assert one.certificate.upper == pytest.approx(many.certificate.upper, abs=2e-6)
    assert one.rounds > many.rounds


@pytest.mark.parametrize(
    "offers",
    [
        [tuple(range(size)) for size in range(2, 25)],
        [(2 * k, 2 * k + 1, 60) for k in range(10)],
        [(0, 1, 2), (1, 2), (3, 4, 5), (4, 5), (3, 5), (0, 2)],
    ],
)
def test_special_families_are_fitted_too(offers: list[tuple[int, ...]]) -> None:
    family = rs.Assortments(offers)
    random = np.random.default_rng(1)
    shares = np.concatenate([random.dirichlet(np.ones(len(offer))) for offer in offers])
    for norm in NORMS:
        fit = corrective.fit_nearest(family, shares, norm)
        assert fit.converged, (norm, fit.certificate)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (IMPOSSIBLE, {"distance": "l3"}, "but not this HighNorm"),
        (IMPOSSIBLE, {"distance": "squared-l2"}, "without smoothing"),
        (IMPOSSIBLE, {"distance": "kl"}, "but not this KL"),
        (IMPOSSIBLE, {"oracle": "auto"}, "has no method cheapest"),
        (IMPOSSIBLE, {"gap": -1.0}, "gap is -1"),
        ([IMPOSSIBLE, IMPOSSIBLE], {}, "not a stream"),
        (rs.ChoiceCounts(OFFERS), {}, "no observations yet"),
    ],
)
def test_what_it_cannot_do_is_refused(data: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rs.estimate(OFFERS, data, method=methods.Nearest(**options))


def test_there_are_two_stopping_rules() -> None:
    with pytest.raises(ValueError, match="Unknown stopping rule 'time'"):
        corrective.fit_nearest(OFFERS, IMPOSSIBLE, stop="time")  # type: ignore[arg-type]


def test_the_linear_master_says_when_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GrowingProgram, "_status", lambda _: "Infeasible")
    with pytest.raises(RuntimeError, match="its status is 'Infeasible'"):
        corrective.fit_nearest(OFFERS, IMPOSSIBLE, "l1")


def test_a_program_that_cycles_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(master, "MAX_PIVOTS_PER_SIDE", 0)
    with pytest.raises(RuntimeError, match="Iteration limit reached"):
        corrective.fit_nearest(OFFERS, IMPOSSIBLE, "l1")


def test_weights_must_leave_something_to_fit() -> None:
    counts = rs.ChoiceCounts(OFFERS)
    counts.observe(("tea", "pie"), "tea")
    distance: Distance = distances.L2(OFFERS, weights=(0.0, 1.0))
    with pytest.raises(ValueError, match="No offer with a positive weight"):
        corrective.fit_nearest(OFFERS, counts, distance)
    others = rs.Assortments([("tea", "pie")])
    for other in ({"distance": distances.L1(others)}, {"oracle": oracles.auto(others)}):
        with pytest.raises(ValueError, match="was created for other assortments"):
            corrective.fit_nearest(OFFERS, IMPOSSIBLE, **other)
    with pytest.raises(ValueError, match="must be an Assortments"):
        corrective.fit_nearest([("tea", "pie")], IMPOSSIBLE)  # type: ignore[arg-type]


def test_an_offer_without_weight_does_not_count() -> None:
    for norm in NORMS:
        distance = distances.make(norm, OFFERS, weights=(1.0, 0.0))
        assert corrective.fit_nearest(OFFERS, IMPOSSIBLE, distance).certificate.upper <= 1e-6


def public_names() -> dict[str, set[str]]:
    """For every class and function of the package, the modules that define one of that name."""
    root, names = Path(rs.__file__).parent, dict[str, set[str]]()
    for file in root.rglob("*.py"):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                names.setdefault(node.name, set()).add(str(file.relative_to(root)))
    return names


def test_a_name_of_the_columns_has_one_meaning() -> None:
    mine = {"columns", "models/nearest.py", "oracles/bounds/corral_kernels.py"}
    twice = {
        name: sorted(files)
        for name, files in public_names().items()
        if len(files) > 1 and any(file.startswith(tuple(mine)) for file in files)
    }
    assert not twice
