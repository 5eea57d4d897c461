from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import naive
import rankstream as rs
from odd_data import odd_data
from rankstream._core.types import Vec
from rankstream.columns import corrective, mle
from rankstream.columns.data import observe
from rankstream.columns.rationality import OfferMisfit, SquaredSearch, _by_offer, rationality
from rankstream.data import simulate
from rankstream.data.observations import observed
from strategies import compiled_only

OFFERS = rs.Assortments([("a", "b", "c"), ("a", "b"), ("b", "c"), ("a", "c")])
IRREGULAR = np.array([0.6, 0.15, 0.25, 0.4, 0.6, 0.5, 0.5, 0.6, 0.4])  # a gains by c's company


def draw(p: Vec, per_offer: int, seed: int) -> rs.ChoiceCounts:
    random = np.random.default_rng(seed)
    parts = np.split(p, OFFERS.indptr[1:-1])
    return rs.ChoiceCounts(OFFERS, np.concatenate([random.multinomial(per_offer, part) for part in parts]))


def rejections(p: Vec, per_offer: int, times: int, level: float = 0.1) -> int:
    reports = (rationality(draw(p, per_offer, seed), samples=39, seed=seed) for seed in range(times))
    return sum((report.p_value or 0.0) <= level for report in reports)


@compiled_only
@pytest.mark.parametrize("weights", [[1 / 6] * 6, [0.5, 0, 0, 0, 0, 0.5], [0.4, 0, 0.3, 0, 0, 0.3], [1, 0, 0, 0, 0, 0]])
def test_rankings_are_rejected_at_most_at_the_nominal_rate(weights: list[float]) -> None:
    truth = np.array(weights) @ naive.all_vertices(OFFERS)
    assert rejections(truth, per_offer=100, times=40) <= 10  # 4 on average at most; more than 10 in 1 of 1,000 runs


@compiled_only
def test_power_grows_with_the_sample() -> None:
    found = [rejections(IRREGULAR, per_offer, times=15) for per_offer in (10, 100, 1000)]
    assert found == sorted(found)
    assert found[0] < found[-1] == 15


def test_anytime_p_value_holds_and_has_power() -> None:
    truth = np.array([0.5, 0, 0, 0, 0, 0.5]) @ naive.all_vertices(OFFERS)
    assert all(rationality(draw(truth, 50, seed), samples=0).anytime_p_value > 0.1 for seed in range(10))
    report = rationality(draw(IRREGULAR, 2000, 0), samples=0)
    assert report.anytime_p_value < 1e-6
    assert report.p_value is None


def test_report_encloses_the_least_loss_and_names_the_culprits() -> None:
    counts = draw(IRREGULAR, 1000, 1)
    report = rationality(counts, samples=0)
    p = counts.frequencies()
    best = float(np.sum((naive.nearest_l2(OFFERS, p) - p) ** 2) / OFFERS.n_offers)
    assert report.lower <= best <= report.upper + 1e-9
    assert report.upper - report.lower <= 1e-3 * OFFERS.n_offers / counts.observations
    assert report.statistic == pytest.approx(sum(row.misfit for row in report.offers))
    assert report.statistic == pytest.approx(counts.observations * report.upper)
    assert {row.offer for row in report.offers[:2]} == {("a", "b", "c"), ("a", "b")}
    assert report.offers[0].ratio > 5.0
    assert report.divergence[0] <= mle.fit_mle(counts, tolerance=1e-9).value <= report.divergence[1] + 1e-9


def slow_p_value(counts: rs.ChoiceCounts, nearest: Vec, samples: int, seed: int) -> tuple[float, float]:
    """The stretched bootstrap, step by step with a general solver; and how near a sample came to the statistic."""
    random, totals = np.random.default_rng(seed), counts.totals
    corners, roots = naive.all_vertices(OFFERS), np.sqrt(totals / totals.sum())[OFFERS.owner]

    def least(aim: Vec) -> float:
        return naive.least_distance("l2", corners * roots, aim * roots) ** 2

    kappa, drawn = 2.0 * float(totals.mean()) ** 0.25, []
    for _ in range(samples):
        parts = zip(totals.tolist(), np.split(nearest, OFFERS.indptr[1:-1]), strict=True)
        noise = np.concatenate([random.multinomial(int(total), part / part.sum()) / total for total, part in parts])
        drawn.append(least(nearest + kappa * (noise - nearest)) / kappa**2)
    ratios = np.array(drawn) / least(counts.frequencies())
    return float((1 + (ratios >= 1.0).sum()) / (1 + samples)), float(np.abs(ratios - 1.0).min())


@pytest.mark.parametrize("seed", [2, 3, 5, 11])
def test_p_value_is_that_of_a_slow_bootstrap(seed: int) -> None:
    """Of every sample the squared distance counts, shrunk by the square of the stretch."""
    mild = np.array([0.5, 0.2, 0.3, 0.42, 0.58, 0.5, 0.5, 0.6, 0.4])
    shown, random = [61, 97, 53, 71], np.random.default_rng(seed)
    parts = zip(shown, np.split(mild, OFFERS.indptr[1:-1]), strict=True)
    counts = rs.ChoiceCounts(OFFERS, np.concatenate([random.multinomial(total, part) for total, part in parts]))
    report = rationality(counts, samples=40, seed=seed)
    # from the very same point: draws are so discrete that its last digit can change one, and all that follow
    expected, apart = slow_p_value(counts, report.model.probabilities(OFFERS), 40, seed)
    assert apart > 1e-4  # no sample is so near that rounding decides
    assert 0.1 < expected < 0.9
    assert report.p_value == pytest.approx(expected)
    assert report.stretch == pytest.approx(2.0 * np.mean(shown) ** 0.25)
    roots = np.sqrt(np.array(shown) / sum(shown))[OFFERS.owner]
    best = naive.least_distance("l2", naive.all_vertices(OFFERS) * roots, counts.frequencies() * roots) ** 2
    assert report.lower <= best + 1e-12
    assert best <= report.upper + 1e-12


@pytest.mark.parametrize("against", [0.5, 0.99, 1.01, 2.0])
def test_a_square_is_known_to_be_less_or_not(against: float) -> None:
    """The search ends when it knows on which side of a number the least square is, and says the right one."""
    observed = observe(draw(IRREGULAR, 200, 3))
    search = SquaredSearch(observed, observed.finder(None, "random", 0))
    best = search.run(observed.frequencies, 1e-12)
    assert best.bound <= best.value <= best.bound + 1e-12
    limit = against * best.value
    found = search.run(observed.frequencies, 0.0, against=limit)
    assert (found.value >= limit) == (against <= 1.0)
    assert found.bound >= limit or found.value < limit
    assert found.iterations <= best.iterations
    again = search.run(observed.frequencies, 1e-12, first=found.mixture)
    assert again.value == pytest.approx(best.value)


def test_squared_l2_has_the_engine_of_l2() -> None:
    """The least square is that of ``fit_nearest``, and limits end the search with bounds that hold."""
    counts = next(simulate.market(seed=3, n_items=6, n_offers=10, n_test=1).stream(first=300))
    distance = rs.distances.L2(counts.assortments, weights=tuple(np.sqrt(counts.totals / counts.observations).tolist()))
    same = corrective.fit_nearest(counts.assortments, counts, distance, tolerance=1e-9)
    observed = observe(counts)
    search = SquaredSearch(observed, observed.finder(None, "random", 0))
    found = search.run(observed.frequencies, 1e-9)
    assert found.value == pytest.approx(same.certificate.upper**2, abs=1e-9)
    assert found.bound <= same.certificate.upper**2 + 1e-12
    early = search.run(observed.frequencies, 1e-12, max_rounds=3)
    assert early.iterations == 3
    assert early.bound <= found.value <= early.value


@pytest.mark.parametrize("about", ["fractions", "decay", "window"])
def test_weighted_choices_are_refused(about: str) -> None:
    tallies = [5, 3, 2, 4, 6, 5, 5, 6, 4]
    counts: rs.ChoiceCounts = {
        "fractions": rs.ChoiceCounts(OFFERS, np.array(tallies) / 2.0),
        "decay": rs.DecayingCounts(OFFERS, 100),
        "window": rs.WindowCounts(OFFERS, 100),
    }[about]
    if about != "fractions":
        counts.observe_coordinates(np.arange(9), tallies)
    with pytest.raises(ValueError, match="A test of rationality needs whole choices, each counted once"):
        rationality(counts)


def frank_wolfe(counts: rs.ChoiceCounts, loss: str, rounds: int) -> rs.Estimate[rs.RankingModel]:
    """Jagabathula and Rusmevichientong's estimator, as the paper's Appendix E has it."""
    settings = rs.methods.PrimalDual(distance=loss, learner="follow-the-leader", gap=1e-4, max_rounds=rounds)
    return rs.estimate(observed(counts), method=settings)


@pytest.mark.parametrize("about", odd_data())
def test_survives_odd_data(about: str) -> None:
    counts = odd_data()[about]
    report = rationality(counts, samples=3)
    assert 0.0 <= report.lower <= report.upper
    assert 0.0 <= report.anytime_p_value <= 1.0
    assert report.p_value is not None
    assert 0.25 <= report.p_value <= 1.0
    for loss in ("squared-l2", "kl"):
        found = frank_wolfe(counts, loss, rounds=20)
        assert found.certificate.lower <= found.certificate.upper
        assert found.model.items == counts.assortments.items


def test_plain_and_corrective_steps_enclose_the_same_limit() -> None:
    market = simulate.market(seed=3, n_items=6, n_offers=10, n_test=1)
    counts = next(market.stream(first=300))
    plain = frank_wolfe(counts, "squared-l2", rounds=400)
    upper, lower = (
        2.0 * end / counts.assortments.n_offers for end in (plain.certificate.upper, plain.certificate.lower)
    )
    data = observe(counts)
    search = SquaredSearch(data, data.finder(None, "random", 0))
    anew = search.run(data.frequencies, tolerance=1e-8)
    assert 0.0 <= anew.value - anew.bound <= 1e-8
    assert anew.iterations < 100
    assert lower <= anew.value
    assert anew.bound <= upper
    assert upper - lower < 0.02


def test_refusals() -> None:
    with pytest.raises(ValueError, match="A test needs ChoiceCounts"):
        rationality([0.5, 0.5])  # type: ignore[arg-type]


def test_a_misfit_is_compared_with_its_noise() -> None:
    cases = ((3.0, 2.0), (0.0, 0.0), (1.0, 0.0))
    assert [OfferMisfit(("tea",), 10.0, *case).ratio for case in cases] == [1.5, 0.0, np.inf]


def test_offers_are_listed_by_misfit_over_noise() -> None:
    """Ten choices off by 0.2 each way beside a noise of 0.42, and twenty beside 0.32: 0.8 / 0.42 and 1.6 / 0.32."""
    offers = rs.Assortments([("tea", "pie"), ("pie", "rum"), ("rum", "egg")])
    observed: Any = SimpleNamespace(
        assortments=offers, frequencies=np.array([0.5, 0.5, 1.0, 0.0, 1.0, 0.0]), totals=np.array([10.0, 20.0, 5.0])
    )
    found = _by_offer(observed, np.array([0.7, 0.3, 0.8, 0.2, 1.0, 0.0]))
    assert [one.offer for one in found] == [("pie", "rum"), ("tea", "pie"), ("rum", "egg")]
    assert [one.ratio for one in found] == pytest.approx([5.0, 0.8 / 0.42, 0.0])
