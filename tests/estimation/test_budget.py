import inspect
import itertools
import signal
from itertools import groupby
from typing import Any

import numpy as np
import pytest

import rankstream as rs
from rankstream import oracles
from rankstream._core import watch
from rankstream._core.watch import Deadline
from rankstream.data import simulate
from rankstream.data.prices import PriceLevels
from rankstream.estimation.estimate import compile_first, fit_within
from rankstream.estimation.methods import MaxEntropy, Method, Nearest
from rankstream.estimation.task import certificate_of
from rankstream.models.entropy import fit as entropy
from rankstream.models.entropy.ensemble import QUICK_GUIDES, fit_quick_stack, fit_stack
from rankstream.models.entropy.guides import LOGIT, PRICED, UNIFORM, guides_for
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.entropy.soft_lattice import SoftLattice
from rankstream.models.entropy.trust import tilt_weights
from rankstream.models.parametric.latent_class import CHUNK_STEPS, fit_latent_class
from rankstream.models.rankings import RankingModel

METHOD = MaxEntropy(prior="default")


class Clock:
    """A clock that moves on whenever somebody looks, by a second if nothing else is said."""

    def __init__(self, step: float = 1.0) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture(scope="module")
def counts() -> rs.ChoiceCounts:
    return next(simulate.market(0, n_items=7, n_offers=20, n_test=1).stream(first=5000))


@pytest.fixture(scope="module")
def whole(counts: rs.ChoiceCounts) -> rs.Estimate[EntropyModel | RankingModel]:
    return rs.estimate(counts, method=METHOD)


@pytest.mark.parametrize("seconds", [0.0, 10.0, 40.0, 1e9])
def test_max_entropy_ends_in_time_with_what_is_proven(
    counts: rs.ChoiceCounts, whole: rs.Estimate[EntropyModel | RankingModel], seconds: float
) -> None:
    clock, told = Clock(), list[str]()
    found = fit_within(counts, seconds, METHOD, watch=lambda text, _: told.append(text), clock=clock)
    assert clock.now <= seconds + 7  # three looks at the start and, at the latest, one too many for each of four tasks
    tasks = [task for task, _ in groupby(text.split(" ")[0] for text in told)]
    assert tasks == ["latent", "Markov", "evaluation", "proving", "round"][: len(tasks)]
    assert len(tasks) >= 4
    assert found.converged == (seconds == 1e9)
    shares = found.model.probabilities(counts.assortments)
    root = np.sqrt(counts.totals / counts.totals.mean())[counts.assortments.owner]
    assert found.certificate.upper == pytest.approx(float(np.linalg.norm(root * (shares - counts.frequencies()))))
    assert found.certificate.lower <= min(found.certificate.upper, whole.certificate.upper)
    assert whole.certificate.lower <= found.certificate.upper
    if found.converged:
        assert isinstance(whole.model, EntropyModel)
        assert np.array_equal(found.model.duals, whole.model.duals)


def test_a_busy_machine_gives_the_same_model(counts: rs.ChoiceCounts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock on the wall is an hour later, as if others had the processor; CPU time stands still."""
    calm = fit_within(counts, 60.0, METHOD, clock=lambda: 0.0)
    hours = itertools.count()
    monkeypatch.setattr(watch, "monotonic", lambda: 3600.0 * next(hours))
    busy = fit_within(counts, 60.0, METHOD, clock=lambda: 0.0)
    assert next(hours) > 20
    assert busy.model.to_text() == calm.model.to_text()
    assert busy.converged
    assert "cut_short" not in busy.model.about
    late = fit_within(counts, 60.0, METHOD, clock=lambda: 0.0, timeout=60.0)
    assert (late.converged, late.cut_short) == (False, True)
    assert late.model.about["cut_short"] is True


def test_by_default_cpu_seconds_of_the_thread_count_and_accuracy_ends_a_fit(counts: rs.ChoiceCounts) -> None:
    assert inspect.signature(fit_within).parameters["clock"].default is watch.thread_seconds
    clock = Clock(step=1e6)
    assert fit_within(counts, method=METHOD, clock=clock).converged
    assert clock.now > 1e7
    chosen = fit_within(next(simulate.market(1, n_items=4, n_offers=8, n_test=1).stream(first=500)), clock=clock)
    assert (chosen.method.name, chosen.converged, chosen.cut_short) == ("max-entropy", True, False)
    assert fit_within(counts, method="nearest", tolerance=0.0, clock=clock).cut_short


def test_what_has_a_price_is_fitted_first() -> None:
    market = rs.Assortments([("a @ 1.00", "b @ 1.00", "no"), ("a @ 2.00", "b @ 1.00", "no")])
    levels = PriceLevels.from_labels(market.items)
    assert levels is not None
    ordered = rs.Assortments(market.offers, market.items, order=levels.order)
    assert tuple(guides_for(ordered))[: len(PRICED)] == PRICED


@pytest.mark.parametrize(("last", "whole"), [(1, 1), (3, 2), (10, 9)])
def test_a_fold_whose_guides_ended_early_is_left_out(counts: rs.ChoiceCounts, last: int, whole: int) -> None:
    found = fit_stack(counts, (LOGIT, UNIFORM), watch=lambda text, _=1.0: text.startswith(f"{last} of"))
    assert len(found.folds) == whole


def test_what_is_proven_of_max_entropy_is_nearly_the_truth(
    counts: rs.ChoiceCounts, whole: rs.Estimate[EntropyModel | RankingModel]
) -> None:
    nearest = rs.estimate(counts, method=Nearest(gap=1e-8)).certificate
    assert 0.0 < nearest.upper - 0.01 * whole.certificate.upper <= whole.certificate.lower + 1e-9
    assert whole.certificate.lower <= nearest.upper


def test_the_regrets_of_a_certified_model_add_up_to_its_gap() -> None:
    offers = rs.Assortments([("a", "b"), ("b", "c"), ("a", "c")])
    cycle = rs.ChoiceCounts(offers, [9, 1, 9, 1, 1, 9])
    for share, gap in ((2 / 3, 0.0), (0.5, 0.4 * 6**0.5 - (0.9 - 2 / 3) * 6**0.5)):  # the best there is, and another
        fitted = np.array([share, 1 - share, share, 1 - share, 1 - share, share])
        found = certificate_of(fitted, cycle, rs.oracles.auto(offers))
        assert found.gap == pytest.approx(gap, abs=1e-12)
        assert (found.oracle_regret, found.regret_sum) == (0.0, found.gap)


def test_without_time_guides_that_are_held_out_take_a_step_each(counts: rs.ChoiceCounts) -> None:
    clock, told = Clock(), list[str]()
    found = fit_within(counts, 0.0, "max-entropy", watch=lambda text, _: told.append(text), clock=clock)
    assert clock.now <= 50
    assert (found.rounds, found.converged, found.cut_short) == (1, False, True)
    assert told[-1] == "proving"
    assert found.certificate.lower <= found.certificate.upper


@pytest.mark.parametrize("method", ["max-entropy", METHOD], ids=["held-out", "default"])
def test_an_interrupt_ends_max_entropy(counts: rs.ChoiceCounts, method: str | Method) -> None:
    pressed: list[str] = []

    def press(text: str, _: float) -> None:
        if text.startswith("Markov") and not pressed:
            pressed.append(text)
            signal.raise_signal(signal.SIGINT)

    found = fit_within(counts, method=method, watch=press)
    assert (found.rounds, found.converged, found.cut_short) == (1, False, True)
    assert found.certificate.lower <= found.certificate.upper


def test_the_best_point_is_kept_and_its_gap_holds(counts: rs.ChoiceCounts) -> None:
    prior = fit_quick_stack(counts).prior
    weights = tilt_weights(counts, prior, entropy.TRUST)
    best = entropy.fit_max_entropy(counts, prior, tolerance=1e-9)

    def cost(fit: entropy.EntropyFit) -> float:
        """Divergence from the prior, which is -log E exp(-<y, a>) - <y, x>, and the squared errors."""
        level = SoftLattice(counts.assortments, prior).evaluate(fit.duals)[0]
        errors = 0.5 * float(weights @ (fit.fitted - counts.frequencies()) ** 2)
        return -level - float(fit.duals @ fit.fitted) + errors

    costs = []
    for seconds in (1.0, 3.0, 6.0, 12.0):
        rough = entropy.fit_max_entropy(counts, prior, tolerance=0.0, watch=Deadline(seconds, clock=Clock()))
        assert rough.evaluations == seconds
        assert -1e-9 <= cost(rough) - cost(best) <= rough.gap + 1e-9
        costs.append(cost(rough))
    assert costs == sorted(costs, reverse=True)


def test_every_part_of_a_prior_can_be_cut_short(counts: rs.ChoiceCounts) -> None:
    for classes in ("cv", 3):
        watch = Deadline(0.0)
        assert fit_latent_class(counts, classes=classes, watch=watch).iterations <= CHUNK_STEPS
        assert watch.stopped
    stacked = fit_stack(counts, QUICK_GUIDES, watch=Deadline(0.0)).prior
    assert stacked.class_weights.sum() + stacked.chain_weights.sum() == pytest.approx(1.0)
    few, many = stacked.sample(1000, 0, Deadline(2.0, clock=Clock())), stacked.sample(1000, 0)
    assert len(few) == 200
    assert np.array_equal(few, many[:200])


def test_the_plain_bound_is_proven_from_the_weighed_fit_too() -> None:
    """Train gains when bus joins, which no ranking explains, in offers that were made very differently often."""
    offers = rs.Assortments([("air", "car"), ("car", "train"), ("bus", "car", "train"), ("air", "bus", "car", "train")])
    counts = rs.ChoiceCounts(offers, [19, 4, 189, 17, 60, 4320, 520, 1039, 10, 1267, 463])
    found = fit_within(counts, 60.0, "nearest")
    least = rs.estimate(offers, counts.frequencies(), method=Nearest(gap=1e-8))
    residual = found.model.probabilities(offers) - counts.frequencies()
    own = residual / np.linalg.norm(residual)
    plain = own @ -counts.frequencies() + oracles.auto(offers).cheapest(own).value
    assert max(0.0, plain) < found.certificate.lower <= least.certificate.upper + 1e-12


def test_methods_of_others_are_not_compiled_first() -> None:
    """A method without a known name, or with the name of one that it is not, is not tried on a market of its own."""

    class Own:
        def __init__(self, name: str) -> None:
            self.name = name

        def model(self, *_: Any) -> None:
            raise AssertionError("it was asked for a model")

    for name in ("my-own", "nearest", "max-entropy"):
        compile_first(Own(name))  # type: ignore[arg-type]
