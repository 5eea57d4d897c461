import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import naive
import rankstream as rs
from rankstream.data import simulate
from rankstream.estimation.methods import MaxEntropy, PrimalDual
from rankstream.estimation.task import make_task

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "nearest.json").read_text())
OFFERS = rs.Assortments([("tea", "nothing"), ("pie", "nothing")])
P = [0.5, 0.5, 0.25, 0.75]


@pytest.mark.parametrize("case", GOLDEN, ids=[case["about"][:30] for case in GOLDEN])
def test_certificates_enclose_derived_optima(case: dict[str, Any]) -> None:
    offers = rs.Assortments(case["offers"])
    p = np.array(case["frequencies"], dtype=np.float64)
    fit = rs.estimate(offers, p, method=PrimalDual(gap=0.02, max_rounds=20_000))
    assert fit.converged
    assert fit.certificate.lower <= case["l2"] <= fit.certificate.upper
    assert np.linalg.norm(naive.nearest_l2(offers, p) - p) == pytest.approx(case["l2"], abs=1e-6)


def test_stops_at_the_tolerance_and_keeps_a_history() -> None:
    market = simulate.market(seed=3)
    fit = rs.estimate(market.assortments, market.frequencies(), method=PrimalDual(tolerance_mae=2e-3))
    history = fit.history
    assert fit.converged
    assert fit.rounds == len(history.mae) == len(history.gap) == len(history.rankings) == len(history.distance)
    assert history.mae[-1] <= 2e-3 < history.mae[:-1].min()
    assert history.rankings[-1] == len(fit.model.weights) <= fit.rounds
    assert np.isnan(history.observations).all()
    assert np.isnan(history.gap[:-1]).all()
    assert history.gap[-1] == fit.certificate.gap
    assert history.distance[-1] == pytest.approx(fit.certificate.upper)


def test_gap_stop_certifies_on_the_way() -> None:
    market = simulate.market(seed=3)
    fit = rs.estimate(market.assortments, market.frequencies(), method=PrimalDual(gap=0.05, certify_every=7))
    assert fit.converged
    assert fit.certificate.gap <= 0.05
    assert fit.rounds % 7 == 0
    certified = ~np.isnan(fit.history.gap)
    assert certified.sum() == fit.rounds // 7


def test_dynamic_data_from_counts_and_from_vectors() -> None:
    market = simulate.market(seed=5)
    fit = rs.estimate(market.assortments, market.stream(per_round=500), method=PrimalDual(tolerance_mae=3e-3))
    assert fit.converged
    assert fit.history.observations[:3].tolist() == [2000, 2500, 3000]

    def vectors() -> Iterator[Any]:
        for counts, _ in zip(market.stream(per_round=500), range(fit.rounds), strict=False):
            yield counts.frequencies()

    same = rs.estimate(market.assortments, vectors(), method=PrimalDual(tolerance_mae=3e-3))
    assert same.model == fit.model
    rows = rs.estimate(OFFERS, np.array([P, P, P]))
    assert (rows.rounds, rows.converged) == (3, False)


def test_same_seed_same_model_and_other_seed_other_ties() -> None:
    market = simulate.market(seed=8)
    p = market.frequencies()
    rough = PrimalDual(tolerance_mae=0.01)
    one, again, other = (rs.estimate(market.assortments, p, method=rough, seed=seed) for seed in (0, 0, 1))
    assert one.model == again.model
    assert one.model != other.model


@pytest.mark.parametrize("method", ["primal-dual", "nearest"])
def test_counts_leave_unseen_offers_out(method: str) -> None:
    counts = rs.ChoiceCounts(OFFERS)
    counts.observe(("tea", "nothing"), "tea", count=3)
    counts.observe(("tea", "nothing"), "nothing", count=1)
    fit = rs.estimate(OFFERS, counts, method=method)
    assert fit.converged
    assert fit.model.predict(("tea", "nothing"))["tea"] == pytest.approx(0.75, abs=2e-3)
    with pytest.raises(ValueError, match="Frequency nan"):
        rs.estimate(OFFERS, counts.frequencies(), method=method)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance_mae": -1}, "tolerance_mae is -1: it must be at least 0"),
        ({"tolerance_mae": float("nan")}, "tolerance_mae is nan"),
        ({"tolerance_mae": "small"}, "tolerance_mae is 'small': it must be a number"),
        ({"gap": -1}, "gap is -1: it must be at least 0"),
        ({"max_rounds": 0}, "max_rounds is 0"),
        ({"max_rounds": 10.5}, "max_rounds is 10.5: it must be a whole number"),
        ({"certify_every": 0}, "certify_every is 0"),
        ({"distance": "furlong"}, "Unknown distance 'furlong'"),
        ({"learner": "guess"}, "Unknown learner 'guess'"),
        ({"learner": 3}, "neither a learner nor the name of one"),
        ({"ties": "middle"}, "Unknown tie rule 'middle'"),
        ({"weights": "none"}, "weights is 'none'"),
        ({"oracle": "auto"}, "has no method cheapest"),
        ({"distance": rs.distances.L2(OFFERS), "smoothing": 0.5}, "set it on the distance object"),
    ],
)
def test_impossible_settings_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rs.estimate(OFFERS, P, method=PrimalDual(**options))


@pytest.mark.parametrize("method", ["auto", *rs.methods.METHODS])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (P[:3], "must have shape"),
        ([], "must have shape"),
        (iter([]), "ended before the first round|not a stream"),
        (7, "data are a int"),
        ("text", "data are a str"),
        ({"tea": 1.0}, "data are a dict"),
        (rs.ChoiceCounts(OFFERS), "no observations yet"),
    ],
)
def test_impossible_data_are_refused(data: Any, message: str, method: str) -> None:
    with pytest.raises(ValueError, match=message):
        rs.estimate(OFFERS, data, method=method)


@pytest.mark.parametrize("seed", [None, -1, 0.5])
def test_impossible_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(ValueError, match=f"seed is {seed}"):
        rs.estimate(OFFERS, P, seed=seed)


def test_offers_must_be_assortments() -> None:
    with pytest.raises(ValueError, match="must be an Assortments, not list"):
        rs.estimate([("tea", "nothing")], P)  # type: ignore[arg-type]


def test_max_entropy_is_a_method_with_a_certificate() -> None:
    market = rs.simulate.market(2, n_offers=30)
    counts = next(market.stream(first=5000))
    method = MaxEntropy(prior="default")
    dense = rs.estimate(counts.assortments, counts, method=method)
    assert dense.converged
    assert dense.certificate.lower <= dense.certificate.upper
    sparse = rs.estimate(counts.assortments, counts, method=PrimalDual(weights="equal", max_rounds=3000))
    assert dense.certificate.lower <= sparse.certificate.upper  # any ranking model is at least so far from the data
    assert dense.history.mae[-1] == pytest.approx(
        np.abs(dense.model.probabilities(counts.assortments) - counts.frequencies()).mean()
    )
    assert dense.method == method
    assert rs.methods.pick(make_task(counts, None, 0)) == MaxEntropy()
    exact = rs.estimate(counts.assortments, market.frequencies(), method=method)
    assert exact.history.mae[-1] < 0.01
    stream = rs.estimate(counts.assortments, (row for row, _ in zip(market.stream(), range(50), strict=False)))
    assert isinstance(stream.model, rs.RankingModel)


def test_offers_that_nobody_saw_are_left_out_of_max_entropy() -> None:
    offers = rs.Assortments([("tea", "no"), ("pie", "no"), ("tea", "pie", "no")])
    fit = rs.estimate(offers, rs.ChoiceCounts(offers, [60, 40, 30, 70, 0, 0, 0]), method="max-entropy")
    assert fit.certificate.gap < 0.3
    assert sum(fit.model.predict(("tea", "pie", "no")).values()) == pytest.approx(1.0)


def test_counts_weigh_offers_by_their_observations() -> None:
    offers = rs.Assortments([("tea", "pie"), ("pie", "tea", "cake")])
    # Regularity is violated: the second offer, seen rarely, makes tea more popular.
    counts = rs.ChoiceCounts(offers, [500, 500, 1, 9, 0])
    for kind in (PrimalDual(max_rounds=2000), rs.methods.Nearest()):
        settings = (replace(kind, weights=weights) for weights in ("observations", "equal"))
        models = (rs.estimate(offers, counts, method=method).model for method in settings)
        errors = [abs(model.predict(("tea", "pie"))["tea"] - 0.5) for model in models]
        assert errors[0] < 0.3 * errors[1]


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("best", "Unknown method 'best': choose one of 'auto', 'max-entropy'"),
        ("fully-corrective", "Unknown method 'fully-corrective'"),
        (None, "None is neither the name of a method nor its settings"),
        (PrimalDual, "neither the name of a method nor its settings"),
    ],
)
def test_methods_are_checked(method: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rs.estimate(OFFERS, P, method=method)


def test_a_method_takes_only_what_it_uses() -> None:
    with pytest.raises(TypeError, match="learner"):
        MaxEntropy(learner="dual-averaging")  # type: ignore[call-arg]
    for method in rs.methods.METHODS:
        if method != "primal-dual":
            with pytest.raises(
                ValueError, match=f"'{method}' needs one ChoiceCounts or frequency vector, not a stream"
            ):
                rs.estimate(OFFERS, [P], method=method)


def test_counts_may_be_given_alone() -> None:
    offers = rs.Assortments([("tea", "nothing"), ("pie", "nothing")])
    counts = rs.ChoiceCounts(offers, [50, 50, 25, 75])
    assert rs.estimate(counts).certificate == rs.estimate(offers, counts).certificate
    with pytest.raises(ValueError, match="Counts include their offers"):
        rs.estimate(counts, counts)
    with pytest.raises(ValueError, match="No data given"):
        rs.estimate(offers)
