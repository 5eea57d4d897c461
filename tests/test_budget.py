import signal
from itertools import groupby

import numpy as np
import pytest

import rankstream as rs
from rankstream import oracles
from rankstream._core.watch import Deadline
from rankstream.data import simulate
from rankstream.estimation.budget import fit_within
from rankstream.estimation.certified import certificate_of
from rankstream.estimation.methods import MaxEntropy, Method, Nearest
from rankstream.models.entropy import fit as entropy
from rankstream.models.entropy import priors
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.entropy.soft_lattice import SoftLattice
from rankstream.models.parametric.latent_class import CHUNK, fit_latent_class
from rankstream.models.rankings import RankingModel

METHOD = MaxEntropy(prior="default")


class Clock:
    """A clock that moves on by a second whenever somebody looks."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
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
    prior = priors.fit_prior(counts)
    weights = counts.totals[counts.assortments.owner] / entropy.TRUST
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
    for classes in ("cv", "bic", 3):
        watch = Deadline(0.0)
        assert fit_latent_class(counts, classes=classes, watch=watch).iterations <= CHUNK
        assert watch.stopped
    stacked = priors.stacked_prior(counts, watch=Deadline(0.0))
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
