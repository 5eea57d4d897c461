import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import naive
import rankstream as rs
from rankstream.data import simulate

GOLDEN = json.loads((Path(__file__).parent / "golden" / "nearest.json").read_text())
OFFERS = rs.Assortments([("tea", "nothing"), ("pie", "nothing")])
P = [0.5, 0.5, 0.25, 0.75]


@pytest.mark.parametrize("case", GOLDEN, ids=[case["about"][:30] for case in GOLDEN])
def test_certificates_enclose_derived_optima(case: dict[str, Any]) -> None:
    offers = rs.Assortments(case["offers"])
    p = np.array(case["frequencies"], dtype=np.float64)
    fit = rs.estimate(offers, p, stop="gap", tolerance=0.02, max_rounds=20_000)
    assert fit.converged
    assert fit.certificate.lower <= case["l2"] <= fit.certificate.upper
    assert np.linalg.norm(naive.nearest_l2(offers, p) - p) == pytest.approx(case["l2"], abs=1e-6)


def test_stops_at_the_tolerance_and_keeps_a_history() -> None:
    market = simulate.market(seed=3)
    fit = rs.estimate(market.assortments, market.frequencies(), tolerance=2e-3)
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
    fit = rs.estimate(market.assortments, market.frequencies(), stop="gap", tolerance=0.05, certify_every=7)
    assert fit.converged
    assert fit.certificate.gap <= 0.05
    assert fit.rounds % 7 == 0
    certified = ~np.isnan(fit.history.gap)
    assert certified.sum() == fit.rounds // 7


def test_dynamic_data_from_counts_and_from_vectors() -> None:
    market = simulate.market(seed=5)
    fit = rs.estimate(market.assortments, market.stream(per_round=500), tolerance=3e-3)
    assert fit.converged
    assert fit.history.observations[:3].tolist() == [2000, 2500, 3000]

    def vectors() -> Iterator[Any]:
        for counts, _ in zip(market.stream(per_round=500), range(fit.rounds), strict=False):
            yield counts.frequencies()

    same = rs.estimate(market.assortments, vectors(), tolerance=3e-3)
    assert same.model == fit.model
    rows = rs.estimate(OFFERS, np.array([P, P, P]))
    assert (rows.rounds, rows.converged) == (3, False)


def test_same_seed_same_model_and_other_seed_other_ties() -> None:
    market = simulate.market(seed=8)
    p = market.frequencies()
    one, again, other = (rs.estimate(market.assortments, p, tolerance=0.01, seed=seed) for seed in (0, 0, 1))
    assert one.model == again.model
    assert one.model != other.model


def test_counts_leave_unseen_offers_out() -> None:
    counts = rs.ChoiceCounts(OFFERS)
    counts.observe(("tea", "nothing"), "tea", count=3)
    counts.observe(("tea", "nothing"), "nothing", count=1)
    fit = rs.estimate(OFFERS, counts)
    assert fit.converged
    assert fit.model.predict(("tea", "nothing"))["tea"] == pytest.approx(0.75, abs=2e-3)
    with pytest.raises(ValueError, match="Frequency nan"):
        rs.estimate(OFFERS, counts.frequencies())


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (P, {"stop": "time"}, "no stopping rule 'time'"),
        (P, {"tolerance": -1}, "tolerance is -1: it must be at least 0"),
        (P, {"tolerance": float("nan")}, "tolerance is nan"),
        (P, {"max_rounds": 0}, "max_rounds is 0"),
        (P, {"certify_every": 0}, "certify_every is 0"),
        (P, {"distance": "furlong"}, "no distance 'furlong'"),
        (P, {"learner": "guess"}, "no learner 'guess'"),
        (P, {"ties": "middle"}, "no tie rule 'middle'"),
        (P[:3], {}, "must have shape"),
        ([], {}, "must have shape"),
        (iter([]), {}, "ended before the first round"),
        (7, {}, "data are a int"),
        ("text", {}, "data are a str"),
        ({"tea": 1.0}, {}, "data are a dict"),
        (rs.ChoiceCounts(OFFERS), {}, "no observations yet"),
        (P, {"max_rounds": 10.5}, "max_rounds is 10.5: it must be a whole number"),
        (P, {"seed": None}, "seed is None"),
        (P, {"tolerance": "small"}, "tolerance is 'small': it must be a number"),
        (P, {"oracle": "auto"}, "has no method cheapest"),
        (P, {"distance": rs.distances.L2(OFFERS), "smoothing": 0.5}, "set it on the distance object"),
        (P, {"learner": 3}, "neither the name of a learner"),
    ],
)
def test_impossible_options_and_data_are_refused(data: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rs.estimate(OFFERS, data, **options)


def test_offers_must_be_assortments() -> None:
    with pytest.raises(ValueError, match="must be an Assortments, not list"):
        rs.estimate([("tea", "nothing")], P)  # type: ignore[arg-type]


def test_max_entropy_is_a_method_with_a_certificate() -> None:
    market = rs.simulate.market(2, n_offers=30)
    counts = next(market.stream(first=5000))
    dense = rs.estimate(counts.assortments, counts, method="max-entropy")
    assert dense.converged
    assert dense.certificate.lower <= dense.certificate.upper
    sparse = rs.estimate(counts.assortments, counts, weights="equal", max_rounds=3000)
    assert dense.certificate.lower <= sparse.certificate.upper  # any ranking model is at least so far from the data
    assert dense.history.mae[-1] == pytest.approx(
        np.abs(dense.model.probabilities(counts.assortments) - counts.frequencies()).mean()
    )
    assert rs.estimate(counts.assortments, counts, method="auto").model.items == dense.model.items
    exact = rs.estimate(counts.assortments, market.frequencies(), method="max-entropy")
    assert exact.history.mae[-1] < 0.01
    stream = rs.estimate(counts.assortments, market.stream(), method="auto", tolerance=0.02)
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
    weighted, equal = (rs.estimate(offers, counts, weights=kind, max_rounds=2000) for kind in ("observations", "equal"))
    errors = [abs(fit.model.predict(("tea", "pie"))["tea"] - 0.5) for fit in (weighted, equal)]
    assert errors[0] < 0.3 * errors[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "best"}, "method is 'best'"),
        ({"weights": "none"}, "weights is 'none'"),
        ({"method": "max-entropy", "learner": "dual-averaging"}, "has no distance, learner"),
    ],
)
def test_methods_and_weights_are_checked(options: dict[str, str], message: str) -> None:
    offers = rs.Assortments([("tea", "pie")])
    with pytest.raises(ValueError, match=message):
        rs.estimate(offers, [0.5, 0.5], **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="fit it again as a stream goes on"):
        rs.estimate(offers, [[0.5, 0.5]], method="max-entropy")


def test_counts_may_be_given_alone() -> None:
    offers = rs.Assortments([("tea", "nothing"), ("pie", "nothing")])
    counts = rs.ChoiceCounts(offers, [50, 50, 25, 75])
    assert rs.estimate(counts).certificate == rs.estimate(offers, counts).certificate
    with pytest.raises(ValueError, match="Counts know their offers"):
        rs.estimate(counts, counts)
    with pytest.raises(ValueError, match="There are no data"):
        rs.estimate(offers)
