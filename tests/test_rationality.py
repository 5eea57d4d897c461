import numpy as np
import pytest

import naive
import rankstream as rs
from odd_data import odd_data
from rankstream._core.types import Vec
from rankstream.columns import frank_wolfe, mle
from rankstream.columns.frank_wolfe import best_step
from rankstream.columns.losses import SquaredL2
from rankstream.columns.rationality import rationality
from rankstream.data import simulate
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
    assert report.divergence[0] <= mle.fit(counts, tolerance=1e-9).value <= report.divergence[1] + 1e-9


@pytest.mark.parametrize("about", odd_data())
def test_survives_odd_data(about: str) -> None:
    counts = odd_data()[about]
    report = rationality(counts, samples=3)
    assert 0.0 <= report.lower <= report.upper
    assert 0.0 <= report.anytime_p_value <= 1.0
    assert report.p_value is not None
    assert 0.25 <= report.p_value <= 1.0
    for loss in ("squared-l2", "kl"):
        found = frank_wolfe.fit(counts, loss=loss, max_iterations=20)
        assert found.bound <= found.value
        assert found.model.items == counts.assortments.items


@pytest.mark.parametrize("loss", ["squared-l2", "kl"])
def test_plain_and_corrective_steps_enclose_the_same_limit(loss: str) -> None:
    market = simulate.market(seed=3, n_items=6, n_offers=10, n_test=1)
    counts = next(market.stream(first=300))
    plain = frank_wolfe.fit(counts, loss=loss, max_iterations=400)
    corrective = frank_wolfe.fit(counts, loss=loss, corrective=True, tolerance=1e-8)
    assert corrective.proven
    assert corrective.iterations < 100
    assert plain.bound <= corrective.value
    assert corrective.bound <= plain.value
    assert plain.gap < 0.02
    if loss == "kl":
        assert corrective.value == pytest.approx(mle.fit(counts, tolerance=1e-8).value, abs=2e-8)


def test_line_search_finds_the_best_step() -> None:
    loss = SquaredL2(np.array([0.5, 0.5]), np.ones(2))
    assert best_step(loss, np.array([1.0, 0.0]), np.array([-0.8, 0.8])) == pytest.approx(0.625)
    assert best_step(loss, np.array([1.0, 0.0]), np.array([-0.2, 0.2])) == pytest.approx(1.0)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="A test needs ChoiceCounts"):
        rationality([0.5, 0.5])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="choose 'kl' or 'squared-l2'"):
        frank_wolfe.fit(draw(IRREGULAR, 5, 0), loss="l1")
