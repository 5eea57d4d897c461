"""What holds for all methods alike: by name or settings, at every door, and with every kind of model."""

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple, Unpack, cast, get_type_hints

import numpy as np
import pytest

import rankstream as rs
from method_settings import COUNTS, ITEMS, OFFERS, PRIOR, settings
from rankstream._core.types import Vec
from rankstream.data import simulate
from rankstream.estimation.methods import (
    METHODS,
    WITH_PRICES,
    LatentClass,
    Likelihood,
    Logit,
    MarkovChain,
    MaxEntropy,
    Nearest,
    PrimalDual,
    make,
    pick,
)
from rankstream.estimation.methods.selection import Settings
from rankstream.estimation.task import make_task
from rankstream.models import plackett_luce
from rankstream.oracles import Answer

pytestmark = pytest.mark.quick

UNSEEN = rs.Assortments([("tea", "pie"), ("cake", "tea", "pie", "no"), ("cake",)])


@pytest.mark.parametrize("name", METHODS)
def test_every_method_fits_counts_by_name_and_by_settings(name: str) -> None:
    for method in (name, settings(name)):
        found = rs.estimate(COUNTS, method=method)
        assert found.certificate.lower <= found.certificate.upper
        assert found.certificate.gap == pytest.approx(found.certificate.upper - found.certificate.lower)
        assert found.method == (METHODS[name]() if isinstance(method, str) else method)
        assert found.method.name == name
        assert found.rounds >= 1
        assert found.converged or name == "primal-dual"  # no ranking model fits these counts as well as it asks for
        shares = found.model.probabilities(OFFERS)
        root = np.sqrt(COUNTS.totals / COUNTS.totals.mean())[OFFERS.owner]
        assert found.certificate.upper == pytest.approx(float(np.linalg.norm(root * (shares - COUNTS.frequencies()))))
        assert found.history.mae[-1] == pytest.approx(float(np.abs(shares - COUNTS.frequencies()).mean()))


def test_what_one_method_proves_no_other_undercuts() -> None:
    certificates = [rs.estimate(COUNTS, method=settings(name)).certificate for name in METHODS]
    assert max(found.lower for found in certificates) <= min(found.upper for found in certificates) + 1e-12


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_fit(name: str) -> None:
    one, again = (rs.estimate(COUNTS, method=settings(name), seed=3) for _ in range(2))
    assert outcome(one) == outcome(again)


@pytest.mark.parametrize("name", METHODS)
def test_frequencies_are_fitted_as_exact(name: str) -> None:
    market = simulate.market(0, n_items=4, n_offers=6, n_test=1, segments=1)  # a logit, which all can be
    method = MaxEntropy(prior="default") if name == "max-entropy" else settings(name)
    found = rs.estimate(market.assortments, market.frequencies(), method=method)
    assert found.history.mae[-1] < 0.03
    assert found.certificate.lower <= found.certificate.upper


@pytest.mark.parametrize("name", METHODS)
def test_every_kind_of_model_survives_a_file_and_answers_alike(name: str, tmp_path: Path) -> None:
    model = rs.estimate(COUNTS, method=settings(name)).model.note(method=name, about="tea")
    model.save(tmp_path / "model.json")
    loaded = rs.load_model(tmp_path / "model.json")
    assert type(loaded) is type(model)
    assert loaded.about == model.about
    assert (loaded.about["method"], loaded.about["about"]) == (name, "tea")
    assert (loaded.items, loaded.no_choice) == (model.items, "no")
    for offers in (OFFERS, UNSEEN):
        assert np.abs(loaded.probabilities(offers) - model.probabilities(offers)).max() <= 1e-12
    assert sum(loaded.predict(("tea", "pie")).values()) == pytest.approx(1.0, abs=1e-12)
    assert loaded.substitution().shares == pytest.approx(model.substitution().shares, abs=1e-12)
    assert loaded.substitution().shares.sum(axis=1) == pytest.approx(np.ones(4), abs=1e-9)
    assert loaded.sample(("tea", "pie"), 5, seed=1) == model.sample(("tea", "pie"), 5, seed=1)
    other = loaded.relabel("abcd")
    assert list(other.predict(tuple("abcd")).values()) == list(loaded.predict(ITEMS).values())
    assert other.about == loaded.about
    with pytest.raises(ValueError, match=r"items|more than once"):
        loaded.relabel("abca")
    assert sum(segment.share for segment in loaded.segments()) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="has no item 'rum'"):
        loaded.predict(("tea", "rum"))


class Doubtful:
    """An exact oracle whose bound is too low by a tenth."""

    def __init__(self, assortments: rs.Assortments = OFFERS) -> None:
        self.exact = rs.oracles.auto(assortments)

    def cheapest(self, costs: Vec) -> Answer:
        answer = self.exact.cheapest(costs)
        return Answer(answer.ranking, answer.value, answer.value - 0.1)


class Probe(NamedTuple):
    """A method, and for each of its fields another value that must make a difference."""

    method: Any
    others: dict[str, Any]


PROBES = [
    Probe(MaxEntropy(prior=PRIOR), {
        "prior": plackett_luce(ITEMS, [4.0, 3.0, 2.0, 1.0]), "trust": 1.0, "tolerance_nats": 10.0, "max_rounds": 1,
    }),
    Probe(Nearest(gap=1e-6), {
        "distance": "linf", "weights": "equal", "gap": 10.0, "max_rankings": 2, "oracle": Doubtful(), "ties": "last",
        "max_rounds": 1,
    }),
    Probe(PrimalDual(max_rounds=500, tolerance_mae=1e-6), {
        "distance": "linf", "learner": "dual-averaging", "weights": "equal", "smoothing": 0.5, "oracle": Doubtful(),
        "ties": "last", "tolerance_mae": 0.1, "gap": 0.5, "max_rounds": 400, "certify_every": 10,
    }),
    Probe(Logit(), {"smoothing": 5.0, "max_rounds": 1}),
    Probe(LatentClass(classes="cv", tried=(2, 3), starts=1), {
        "classes": 1, "tried": (4,), "starts": 2, "smoothing": 2.0, "tolerance_nats": 0.1, "max_rounds": 3,
    }),
    Probe(MarkovChain(starts=1), {"starts": 2, "smoothing": 0.1, "tolerance_nats": 0.1, "max_rounds": 3}),
    Probe(Likelihood(tolerance_nats=1e-8), {"tolerance_nats": 0.5, "ties": "last", "max_rounds": 1}),
]  # fmt: skip


def outcome(found: rs.Estimate[Any]) -> str:
    """All that can be seen of a fit, as text."""
    history = {name: value.tolist() for name, value in vars(found.history).items()}
    told = (found.model.to_content(), vars(found.certificate), found.rounds, found.converged, history)
    return json.dumps(told, default=repr)


@pytest.mark.parametrize("probe", PROBES, ids=[probe.method.name for probe in PROBES])
def test_no_setting_is_void(probe: Probe) -> None:
    known = {field.name for field in fields(probe.method)} - {
        "attributes"
    }  # not for a given prior: test_attribute_logit
    assert set(probe.others) == known
    usual = outcome(rs.estimate(COUNTS, method=probe.method))
    for name, value in probe.others.items():
        assert outcome(rs.estimate(COUNTS, method=replace(probe.method, **{name: value}))) != usual, name


def test_there_is_a_probe_for_every_method() -> None:
    assert [probe.method.name for probe in PROBES] == list(METHODS)
    for name, kind in METHODS.items():
        assert make(name) == kind()
        assert make(settings(name)) == settings(name)


def test_a_tolerance_is_never_ignored() -> None:
    for name, kind in METHODS.items():
        field = kind().tolerance
        if field:
            assert getattr(make(name, 0.25), field) == 0.25
        else:
            with pytest.raises(ValueError, match=f"The method '{name}' has no tolerance"):
                make(name, 0.25)
    with pytest.raises(ValueError, match=r"set it in Nearest\(...\)"):
        rs.fit_within(COUNTS, 1.0, Nearest(), tolerance=0.25)
    assert getattr(pick(make_task(COUNTS, None, 0), 0.25), "tolerance_nats") == 0.25  # noqa: B009


def test_editors_complete_the_settings_of_all_methods() -> None:
    """Also of a method that is given by its name, whose settings are keywords of ``estimate``."""
    known = {field.name for kind in (METHODS | WITH_PRICES).values() for field in fields(cast("Any", kind))}
    assert set(Settings.__annotations__) == known
    assert get_type_hints(rs.estimate)["settings"] == Unpack[Settings]


def test_a_name_takes_its_settings() -> None:
    assert rs.estimate(COUNTS, method="latent-class", classes=2, starts=1).method == LatentClass(classes=2, starts=1)
    assert make("nearest", 0.25, max_rankings=3) == Nearest(gap=0.25, max_rankings=3)
    with pytest.raises(
        ValueError, match="The method 'latent-class' has no setting 'clases': choose from classes, tried"
    ):
        rs.estimate(COUNTS, method="latent-class", clases=2)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="The method 'auto' has no setting 'classes': choose a method by its name"):
        rs.estimate(COUNTS, classes=2)
    with pytest.raises(ValueError, match=r"'classes' needs the name of a method: set it in Nearest\(...\)"):
        rs.estimate(COUNTS, method=Nearest(), classes=2)


@pytest.mark.parametrize("method", ["mle", "mnl"])
def test_the_history_of_a_whole_fit_has_one_row(method: str) -> None:
    """Its choices, errors, distance, rankings (none are listed by a logit) and gap."""
    fit = rs.estimate(COUNTS, method=method)
    history, error = fit.history, np.abs(fit.model.probabilities(OFFERS) - COUNTS.frequencies()).mean()
    rankings = len(fit.model.weights) if isinstance(fit.model, rs.RankingModel) else np.nan
    assert (method == "mle") == isinstance(fit.model, rs.RankingModel)
    expected = [COUNTS.observations, error, error, fit.certificate.upper, rankings, fit.certificate.gap]
    found = [history.observations, history.mae, history.latest_mae, history.distance, history.rankings, history.gap]
    np.testing.assert_allclose(np.array(found), np.array(expected)[:, np.newaxis], rtol=1e-12)
