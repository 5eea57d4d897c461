"""Every door picks the same method, and every method takes odd data and labels."""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, cross_val_score

import rankstream as rs
from choice_files import write_transactions
from method_settings import COUNTS, OFFERS, PRIOR, settings
from odd_data import odd_data
from rankstream.data import simulate
from rankstream.estimation.methods import (
    METHODS,
    Logit,
    MaxEntropy,
    Method,
    Nearest,
    PrimalDual,
    pick,
)
from rankstream.estimation.task import Task, make_task
from shell import run
from strategies import compiled_only


def many_offers() -> rs.ChoiceCounts:
    """Offers of four and five of 14 items: too many to sample rankings for, while the oracle is exact."""
    codes = [*combinations(range(14), 4), *list(combinations(range(14), 5))[::3]]
    offers = rs.Assortments(codes, range(14))
    truth = rs.RankingModel(range(14), [range(14), range(13, -1, -1)], [0.75, 0.25])
    return rs.ChoiceCounts(offers, np.round(4.0 * truth.probabilities(offers)))


def many_items() -> rs.ChoiceCounts:
    """Small offers of forty items: no exact oracle."""
    items, random = tuple(f"item {number}" for number in range(70)), np.random.default_rng(0)
    offers = rs.Assortments(simulate.random_offers(items, 150, random, largest=4), [*items, "nothing"])
    return rs.ChoiceCounts(offers, random.integers(1, 9, offers.n_coordinates))


def doors(counts: rs.ChoiceCounts, folder: Path) -> dict[str, str]:
    """What every door picks."""
    offers = counts.assortments
    rows, chosen = np.zeros((offers.n_coordinates, offers.n_items), dtype=int), offers.members
    for row, owner in zip(rows, offers.owner, strict=True):
        row[offers.members[offers.indptr[owner] : offers.indptr[owner + 1]]] = 1
    kept = counts.tallies > 0
    fitted = rs.RankingEstimator().fit(rows[kept], chosen[kept], sample_weight=counts.tallies[kept])
    write_transactions(folder / "choices.csv", counts)
    told = run("fit", "choices.csv", "--json", cwd=folder)
    assert told.returncode == 0, told.stderr
    return {
        "estimate": rs.estimate(counts).method.name,
        "estimator": fitted.method_.name,
        "bootstrap": rs.Bootstrap(counts, replicates=2).method.name,
        "within": rs.fit_within(counts, 60.0).method.name,
        "command": json.loads(told.stdout)["method"],
    }


@compiled_only
@pytest.mark.parametrize(("counts", "name"), [(COUNTS, "max-entropy"), (many_offers(), "nearest")])
def test_all_doors_pick_the_same(counts: rs.ChoiceCounts, name: str, tmp_path: Path) -> None:
    assert set(doors(counts, tmp_path).values()) == {name}


@compiled_only
def test_what_is_picked_for_many_items(tmp_path: Path) -> None:
    counts = many_items()
    assert pick(Task(counts.assortments, counts)) == PrimalDual()
    assert rs.fit_within(counts, 0.0).method == PrimalDual()
    write_transactions(tmp_path / "choices.csv", counts)
    told = json.loads(run("fit", "choices.csv", "--json", "--budget", "0", cwd=tmp_path).stdout)
    assert told["method"] == "primal-dual"


def test_streams_are_played_by_the_solver() -> None:
    p = COUNTS.frequencies()
    for data in (np.array([p, p, p]), [p, p, p], iter([COUNTS] * 3)):
        found = rs.estimate(OFFERS, data)
        assert (found.method, found.rounds) == (PrimalDual(), 3)
    for still in (p, p.tolist(), COUNTS):
        assert pick(make_task(OFFERS, still, 0)) == MaxEntropy()


def test_offers_that_nobody_saw_change_nothing_in_what_is_picked() -> None:
    grown = COUNTS.extend(many_offers().assortments.offers)
    assert grown.assortments.n_offers > 400
    assert pick(make_task(grown, None, 0)) == MaxEntropy()
    assert rs.Bootstrap(grown, Logit(), replicates=2).method == Logit()


def test_objects_made_for_these_offers_go_through_every_door() -> None:
    oracle, distance = rs.oracles.auto(OFFERS), rs.distances.L2(OFFERS)
    rounds = PrimalDual(oracle=oracle, distance=distance)
    for method in (MaxEntropy(prior=PRIOR), Nearest(oracle=oracle, distance=distance), rounds):
        assert rs.fit_within(COUNTS, 60.0, method).method == method
        assert rs.Bootstrap(COUNTS, method, replicates=2).method == method


@pytest.mark.parametrize("distance", ["l1", "l2", "linf"])
@pytest.mark.parametrize("weights", ["observations", "equal"])
def test_both_engines_minimise_the_same_distance(distance: str, weights: Any) -> None:
    offers = rs.Assortments([("a", "b", "c"), ("a", "b"), ("b", "c")])
    counts = rs.ChoiceCounts(offers, [20, 50, 30, 7, 3, 400, 600])
    exact = rs.estimate(counts, method=Nearest(distance=distance, weights=weights, gap=1e-6)).certificate
    rough = rs.estimate(counts, method=PrimalDual(distance=distance, weights=weights)).certificate
    assert exact.gap <= 1e-6
    assert rough.lower <= exact.upper + 1e-9
    assert exact.lower <= rough.upper + 1e-9
    assert rough.upper - rough.lower < 0.05


@pytest.mark.parametrize("name", ["auto", *METHODS])
def test_one_item_only(name: str, tmp_path: Path) -> None:
    counts = odd_data()["one item only"]
    if name == "max-entropy":
        with pytest.raises(ValueError, match="'max-entropy' needs at least two items: use 'nearest'"):
            rs.estimate(counts, method=name)
        return
    model = rs.estimate(counts, method=name).model
    model.save(tmp_path / "model.json")
    assert rs.load_model(tmp_path / "model.json").predict(("a",)) == {"a": 1.0}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("about", [about for about in odd_data() if about != "one item only"])
def test_every_method_survives_odd_data(name: str, about: str, tmp_path: Path) -> None:
    counts = odd_data()[about]
    found = rs.estimate(counts, method=settings(name) if name != "max-entropy" else MaxEntropy(prior="default"))
    assert found.certificate.lower <= found.certificate.upper
    found.model.save(tmp_path / "model.json")
    shares = rs.load_model(tmp_path / "model.json").probabilities(counts.assortments)
    assert np.add.reduceat(shares, counts.assortments.indptr[:-1]) == pytest.approx(1.0, abs=1e-9)


def table(labels: list[Any], size: int = 240) -> tuple[Any, list[Any]]:
    """Availability of four items with these labels, the last in every row, and choices; all in every third."""
    random = np.random.default_rng(0)
    rows = np.column_stack([random.integers(0, 2, (size, len(labels) - 1)), np.ones(size, dtype=int)])
    worth = np.array([2.0, 1.0, 4.0, 3.0])
    chosen = [int(random.choice(4, p=row * worth / (row @ worth))) for row in rows]
    return pd.DataFrame(rows, columns=pd.Index(labels, dtype=object)), [labels[code] for code in chosen]


@pytest.mark.parametrize("labels", [["tea", "pie", "rum", "ale"], [30, 4, 100, 2]], ids=["text", "numbers"])
@pytest.mark.parametrize("method", [Logit(), Nearest()], ids=lambda method: method.name)
def test_scorers_of_scikit_learn_agree_with_the_log_likelihood(labels: list[Any], method: Method) -> None:
    rows, chosen = table(labels)
    model = rs.RankingEstimator(method, epsilon=0.0)
    theirs = cross_val_score(model, rows, chosen, cv=KFold(3), scoring="neg_log_loss", error_score="raise")
    ours = cross_val_score(model, rows, chosen, cv=KFold(3), error_score="raise")
    assert np.isfinite(ours).all()
    assert theirs == pytest.approx(ours, rel=1e-9)
    model.fit(rows, chosen)
    shares = model.predict_proba(rows)
    assert model.items_ == labels
    assert model.classes_.tolist() == sorted(labels)
    assert np.abs(shares.sum(axis=1) - 1.0).max() < 1e-12
    assert -log_loss(chosen, shares, labels=model.classes_) == pytest.approx(model.log_likelihood(rows, chosen).mean())
    first = [model.model_.predict([label for label in labels if row[label]]) for _, row in rows.head(9).iterrows()]
    wanted = [[shown.get(label, 0.0) for label in sorted(labels)] for shown in first]
    assert shares[:9] == pytest.approx(np.array(wanted), abs=1e-12)
    low, high = model.predict_interval(rows.head(9), replicates=2)
    assert ((low <= shares[:9] + 1e-12) & (shares[:9] <= high + 1e-12)).all()
    assert not high[shares[:9] == 0.0].any() or method.name == "nearest"


@pytest.mark.filterwarnings("ignore:Feature names only support names that are all strings")
def test_labels_of_several_types_work() -> None:
    labels = ["tea", 7, "ale", (1, 2)]
    rows, chosen = table(labels)
    y = np.empty(len(chosen), dtype=object)
    y[:] = chosen
    model = rs.RankingEstimator(Logit()).fit(rows.to_numpy(), [labels.index(one) for one in chosen])
    model.items_ = labels
    assert model.classes_.tolist() == [7, "ale", "tea", (1, 2)]
    shares = model.predict_proba(rows.to_numpy())
    assert np.abs(shares.sum(axis=1) - 1.0).max() < 1e-12
    everything = shares[(rows.to_numpy() == 1).all(axis=1)][0]
    assert everything[[2, 0, 1, 3]] == pytest.approx(list(model.model_.predict(range(4)).values()))


def test_batches_go_on_where_a_fit_by_the_solver_ended() -> None:
    rows, chosen = table(["tea", "pie", "rum", "ale"])
    model = rs.RankingEstimator(PrimalDual(max_rounds=3000, tolerance_mae=0.0), rounds_per_batch=10).fit(rows, chosen)
    before, gap = model.n_rounds_, model.certificate_.gap
    model.partial_fit(rows, chosen)
    assert model.n_rounds_ == before + 10
    assert model.certificate_.gap < 1.5 * gap


def test_weights_that_cannot_follow_the_batches_are_not_those_of_the_first() -> None:
    method = PrimalDual(learner="strongly-convex-mirror-descent", tolerance_mae=0.0)
    model = rs.RankingEstimator(method, rounds_per_batch=50)
    model.partial_fit([[1, 1, 0]] * 90 + [[1, 1, 1]] * 10, [0, 1] * 50)
    assert model._run is not None
    distance: Any = model._run.solver.distance
    assert distance.offer_weights.tolist() == [1.0, 1.0]


def test_what_takes_long_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    counts = rs.ChoiceCounts(rs.Assortments([("tea", "no"), ("pie", "no")]), [5, 5, 2, 8])
    with caplog.at_level("INFO", logger="rankstream"):
        rs.estimate(counts, method="nearest")
    assert caplog.records[0].getMessage().startswith("fitting by nearest")
    assert "gap" in caplog.records[-1].getMessage()
