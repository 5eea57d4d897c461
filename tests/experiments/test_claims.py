"""What the report on the paper's study says of its own limits: single instances, and guarantees that are not there."""

from dataclasses import replace
from math import isnan

import pytest

from experiments import claims, figures, settings
from experiments.claims.explanations import same_rate
from experiments.claims.verdicts import difference
from experiments.fits import MARKS, StudyRow
from experiments.metrics import gap
from experiments.questions import ties
from experiments.report import _tables
from experiments.settings import StudyRun
from experiments.tables import Results, grid, summary, with_error

pytestmark = pytest.mark.quick

PROFILE = StudyRun("profile", 5, 5.0, 20, "l2", "MD_ns", 50, 0)
ERRORS = ("mae", "latest_mae", "truth_mae", "test_mae")


def profiles(instances: int) -> Results:
    """Made-up errors: lower with fewer observations a round and with more in all."""
    return Results(
        StudyRow(
            replace(PROFILE, per_round=size, instance=number),
            {"mark": mark, "rounds": mark // size, **dict.fromkeys(ERRORS, 0.01 * (1 + number) + size / mark)},
            {},
        )
        for number in range(instances)
        for size in (50, 100)
        for mark in MARKS
    )


def test_the_error_of_one_instance_is_not_known() -> None:
    one, two = profiles(1), profiles(2)
    single, pair = (runs.where(per_round=50, mark=MARKS[0]) for runs in (one, two))
    assert isnan(single.error("mae"))
    assert pair.error("mae") == pytest.approx(0.005)  # half the difference of two numbers
    assert with_error("mae")(single) == f"{0.01 + 50 / MARKS[0]:.4f}"
    assert with_error("mae")(pair) == f"{0.015 + 50 / MARKS[0]:.4f} ± 0.0050"
    for runs, shown in ((one, False), (two, True)):
        assert ("±" in grid(runs, ("mark",), "per_round", with_error("mae"))) == shown
        assert ("±" in _tables(runs)) == shown
        assert "nan" not in _tables(runs)


@pytest.mark.parametrize("says", ["fewer of them per round mean lower errors", "there is no need to wait for more"])
def test_claims_that_rest_on_one_instance_say_so(says: str) -> None:
    (claim,) = (claim for claim in claims.CLAIMS if says in claim.says)
    for instances, alone in ((1, True), (3, False)):
        verdict = claim.verdict({"metrics-dynamic-obs": profiles(instances)})
        assert verdict is not None
        assert ("All of it on one instance, so without standard errors." in verdict.measured) == alone
    assert settings.parts()["metrics-dynamic-obs"].most_instances == 1


def test_the_same_rate_holds_only_where_there_is_a_guarantee() -> None:
    verdict = same_rate({})
    assert verdict.holds == "holds in part"
    for method in ("MD_ns", "MD_smth", "F-W"):
        for norm in ("l1", "l2"):
            assert f"({method}, {norm})" in verdict.measured
    assert "(MD_smth, linf)" not in verdict.measured
    assert "Not for MD_smth under linf, where no guarantee is finite" in verdict.measured
    assert "nan" not in verdict.measured


def static(instances: int) -> Results:
    """A cell of every tie rule."""
    results = {"test_mae": 0.02, "rounds": 400, "rankings": 200, "gap": 0.1, "guarantee": 0.2}
    base = StudyRun("static", 5, 5.0, 20, "l2", "MD_ns", 0, 0)
    return Results(
        StudyRow(replace(base, ties=rule, instance=number), dict(results), {})
        for rule in ("first", "last", "random")
        for number in range(instances)
    )


def test_one_instance_is_drawn_and_told_without_errors() -> None:
    one, two = static(1), static(2)
    assert difference(one.where(ties="first"), one.where(ties="last"), "rounds")[1] == float("inf")
    assert "+0.0000 for 'first', +0.0000 for 'last'" in ties({"ties": one})
    assert "+0.0000 ± 0.0000 for 'first'" in ties({"ties": two})
    assert "nan" not in ties({"ties": one})
    assert "inf" not in ties({"ties": one})
    columns, line = summary(one.where(ties="first"), "x").splitlines()
    told = dict(zip(columns.split(","), line.split(","), strict=True))
    assert (told["mean_rounds"], told["se_rounds"]) == ("400", "nan")
    figure, axes = figures.new(4, 3, 1, 1)
    figures.bars(axes[0, 0], one, "norm", "ties", "rounds")
    figure.canvas.draw()
    assert axes[0, 0].get_ylim()[1] == pytest.approx(420.0)


def test_the_gap_of_the_study_is_that_of_the_mean_dual() -> None:
    """It is what guarantees in advance are about; the certificate's own gap knows more."""
    from rankstream import Assortments, Solver, certificate, distances, learners, oracles
    from rankstream.solver.runs import Run as Fit

    offers = Assortments([("a", "b", "x"), ("b", "c", "x")])
    shares = [0.2, 0.3, 0.5, 0.6, 0.1, 0.3]
    for distance in (distances.L2(offers, 0.1), distances.make("squared-l2", offers)):
        fit = Fit(Solver(offers, distance, learners.FollowTheLeader(), oracles.auto(offers)))
        for _ in range(5):
            fit.advance(shares)
        plain, sums = distances.L2(offers), fit.state.sums
        proven = fit.solver.certificate(fit.state)
        if distance.smoothing < 1.0:
            expected = plain.value(sums.mean_vertex, sums.mean_frequencies)
            expected -= fit.solver.oracle.cheapest(sums.mean_dual).value - float(sums.mean_dual @ sums.mean_frequencies)
        else:
            assert proven.mean_dual_lower is not None
            expected = certificate.translate_to_norm(distance, proven.upper - proven.mean_dual_lower)
        assert gap(fit) == pytest.approx(expected, abs=1e-9)
        assert gap(fit) > plain.value(sums.mean_vertex, sums.mean_frequencies)  # which is all that a norm can be off by
