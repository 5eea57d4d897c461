from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankstream import Assortments, ChoiceCounts, RankingEstimator, RankingModel, estimate
from rankstream.data import simulate
from rankstream.data.decay import DecayingCounts, WindowCounts
from rankstream.estimation import intervals
from rankstream.estimation.intervals import Bootstrap
from rankstream.estimation.methods import Logit, MaxEntropy, Method, Nearest
from rankstream.estimation.misfit import resample
from rankstream.models.entropy import fit as entropy
from rankstream.models.entropy.ensemble import fit_quick_stack
from rankstream.models.entropy.saved_fit import saved_fit
from rankstream.models.files import load_model
from rankstream.models.lifts import chains_of
from rankstream.models.parametric.attribute_logit import fit_attribute_logit
from rankstream.models.parametric.latent_class import fit_latent_class
from rankstream.models.parametric.markov_chain import fit_markov_chain

OFFERS = Assortments([("tea", "pie", "no"), ("tea", "no"), ("cake", "pie", "no")])
METHODS: tuple[Method, ...] = (MaxEntropy(prior="default"), Nearest(), Logit())
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


def some(factor: int = 1) -> ChoiceCounts:
    return ChoiceCounts(OFFERS, factor * np.array([25, 15, 10, 35, 15, 20, 10, 20]))


def at_prices() -> ChoiceCounts:
    """Choices of two kinds of customers from six items at two prices each, and nothing."""
    random = np.random.default_rng(4)
    labels = [f"{item} @ {price}.00" for item in "abcdef" for price in (2, 3)]
    order = [(f"{item} @ 2.00", f"{item} @ 3.00") for item in "abcdef"]
    worth, slopes = random.normal(1.0, 1.0, (2, 6)), np.array([0.5, 1.5])
    offers, tallies = [], []
    for _ in range(20):
        codes, prices = random.choice(6, 4, replace=False), random.integers(2, 4, 4)
        pull = np.exp(np.column_stack([worth[:, codes] - slopes[:, None] * prices, np.zeros(2)]))
        share = np.array([0.6, 0.4]) @ (pull / pull.sum(axis=1, keepdims=True))
        offers.append([labels[2 * code + price - 2] for code, price in zip(codes, prices, strict=True)] + ["none"])
        tallies.append(random.multinomial(300, share))
    return ChoiceCounts(Assortments(offers, [*labels, "none"], order), np.concatenate(tallies))


@every_method
def test_a_seed_gives_the_same_intervals(method: Method) -> None:
    first, second, third = (Bootstrap(some(), method, 5, seed).predict(("tea", "pie")) for seed in (1, 1, 2))
    assert first == second
    assert first != third


@every_method
def test_intervals_hold_the_share_and_grow_with_the_level(method: Method) -> None:
    found = Bootstrap(some(), method, 10)
    for offer in (("tea", "pie", "no"), ("tea", "cake"), ("no", "cake", "pie", "tea")):
        shares = found.model.predict(offer)
        narrow, wide = found.predict(offer, 0.5), found.predict(offer, 0.99)
        for item, (share, low, high) in narrow.items():
            assert share == pytest.approx(shares[item])
            assert 0.0 <= wide[item].low <= low <= share <= high <= wide[item].high <= 1.0
    assert "10 replicates" in repr(found)


@every_method
def test_more_data_are_more_certain(method: Method) -> None:
    errors = [Bootstrap(some(factor), method, 20).standard_errors(("tea", "no"))["tea"] for factor in (1, 100)]
    assert 0.0 < errors[1] < 0.5 * errors[0]


def test_one_offer_is_as_sure_as_a_plain_share() -> None:
    counts = ChoiceCounts(Assortments([("tea", "no")]), [300, 700])
    found = Bootstrap(counts, "nearest", replicates=400)
    plain = np.sqrt(0.3 * 0.7 / 1000)
    assert found.standard_errors(("tea", "no"))["tea"] == pytest.approx(plain, rel=0.15)
    share, low, high = found.predict(("tea", "no"), 0.95)["tea"]
    assert (low, high) == pytest.approx((share - 1.96 * plain, share + 1.96 * plain), abs=0.15 * 2 * plain)
    assert found.predict(iter(("tea", "no"))) == found.predict(("tea", "no"))


@pytest.mark.parametrize("method", ["max-entropy", "nearest"])  # a logit is wrong about these markets
def test_most_true_shares_of_seen_offers_are_inside(method: str) -> None:
    inside = []
    for seed in range(3):
        market = simulate.market(seed, n_items=6, n_offers=10, n_test=2)
        found = Bootstrap(next(market.stream(first=1000)), method, 20)
        _, low, high = found.bounds(market.assortments)
        inside.append(((low <= market.frequencies()) & (market.frequencies() <= high)).mean())
    assert 0.85 <= np.mean(inside) <= 1.0


@given(st.lists(st.integers(0, 30), min_size=8, max_size=8).filter(lambda rows: sum(rows) > 0), st.integers(0, 9))
def test_drawn_counts_are_as_many_from_each_offer(tallies: list[int], seed: int) -> None:
    counts = ChoiceCounts(OFFERS, tallies)
    shares = RankingModel(OFFERS.items, [("tea", "no", "pie", "cake")], [1.0]).probabilities(OFFERS)
    drawn = resample(counts, shares, np.random.default_rng(seed))
    assert drawn.totals.tolist() == counts.totals.tolist()
    assert not drawn.tallies[shares == 0.0].any()


def test_offers_without_choices_are_left_out() -> None:
    counts = some().extend([("rum", "no")])
    share, low, high = Bootstrap(counts, replicates=5).predict(("tea", "no"))["tea"]
    assert low < share < high
    with pytest.raises(ValueError, match="have no observations"):
        Bootstrap(ChoiceCounts(OFFERS))


def test_warm_starts_change_little() -> None:
    counts = next(simulate.market(3, n_items=5, n_offers=8, n_test=2).stream(first=800))
    fits: list[tuple[Any, dict[str, Any]]] = [(fit_latent_class, {"classes": 10}), (fit_markov_chain, {})]
    for fit, options in fits:
        before = fit(counts, **options)
        after = fit(counts, **options, start=before)
        assert after.log_likelihood == pytest.approx(before.log_likelihood, abs=1e-3)
        assert after.iterations < 0.2 * before.iterations
    with pytest.raises(ValueError, match="The start is a model of the items 'item 1'"):
        fit_quick_stack(counts).refit(some())


@pytest.mark.parametrize("priced", [False, True])
def test_refits_begin_from_a_saved_model(priced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that was read from a file has all that refits need: the first fit is not repeated."""
    counts = at_prices() if priced else next(simulate.market(3, n_items=5, n_offers=8, n_test=2).stream(first=800))
    fit = estimate(counts, method="max-entropy")
    stack = fit.details.stack
    fit.model.save(tmp_path / "model.json")
    saved = load_model(tmp_path / "model.json")
    known = saved_fit(saved)
    assert known is not None
    assert known.stack is not None
    assert [one.guide for one in known.stack.guides] == [one.guide for one in stack.guides]
    for own, again in zip(stack.guides, known.stack.guides, strict=True):
        assert len(own.models) == len(again.models)
        assert own.probabilities(counts.assortments) == pytest.approx(again.probabilities(counts.assortments))
    expected = Bootstrap(counts, replicates=3, model=fit.model, first=fit.details)
    refits: list[int] = []
    monkeypatch.setattr(intervals, "fit_max_entropy", _counted(entropy.fit_max_entropy, refits))
    monkeypatch.setattr(MaxEntropy, "entropy_fit", None)  # a first fit would fail
    found = Bootstrap(counts, replicates=3, model=saved)
    assert len(refits) == 3
    assert max(refits) <= 6  # evaluations: L-BFGS alone takes a dozen
    assert intervals._saved(saved, MaxEntropy(trust=30.0), counts) is None  # it was fitted in another way
    for one, other in zip(expected.models, found.models, strict=True):
        assert one.probabilities(counts.assortments) == pytest.approx(other.probabilities(counts.assortments), abs=1e-4)
    assert found.misfit.unseen == pytest.approx(expected.misfit.unseen, abs=1e-5)


def _counted(fit: Any, evaluations: list[int]) -> Any:
    """A fit that notes how often its program was run."""

    def noted(*arguments: Any, **options: Any) -> Any:
        found = fit(*arguments, **options)
        evaluations.append(found.evaluations)
        return found

    return noted


@pytest.mark.parametrize(
    "change",
    [
        {"weights": {"logit": 1.0}},
        {"weights": {"some guide": 1.0}},
        {"weights": [1.0]},
        {"weights": {"pool": 0.5, "logit": 0.5}},
        {"adjustment": "much"},
        {"held_out_misfit": None},
    ],
)
def test_a_model_whose_notes_do_not_fit_is_fitted_again(change: dict[str, Any]) -> None:
    model = entropy.fit_max_entropy(some()).model
    noted = model.about["prediction"]
    assert isinstance(noted, dict)
    assert saved_fit(model) is not None
    model.note(prediction=noted | change)
    assert saved_fit(model) is None
    assert saved_fit(RankingModel(["a", "b"], [("a", "b")], [1.0])) is None
    assert len(Bootstrap(some(), replicates=2, model=model).models) == 2


def test_notes_of_an_older_version_are_read() -> None:
    model = entropy.fit_max_entropy(some()).model
    noted, now = model.about["prediction"], saved_fit(model)
    assert isinstance(noted, dict)
    kept = {name: value for name, value in noted.items() if name != "adjustment"}
    model.note(prediction={**kept, "trust": noted["adjustment"]})
    before = saved_fit(model)
    assert now is not None
    assert before is not None
    assert before.trust == now.trust


def test_a_logit_with_a_price_begins_where_it_ended() -> None:
    counts = at_prices()
    cold = fit_attribute_logit(counts, classes=2, tolerance=1e-11)
    warm = fit_attribute_logit(counts, tolerance=1e-11, start=cold.falling(chains_of(counts.assortments)))
    assert warm.slopes == pytest.approx(cold.slopes, rel=1e-3)
    assert warm.log_likelihood == pytest.approx(cold.log_likelihood, abs=1e-3)
    assert warm.iterations < 0.3 * cold.iterations


def test_a_given_model_is_in_the_middle() -> None:
    model = entropy.fit_max_entropy(some()).model
    found = Bootstrap(some(), replicates=4, model=model)
    assert found.model is model
    assert found.predict(("tea", "cake"))["tea"].share == pytest.approx(model.predict(("tea", "cake"))["tea"])


@pytest.mark.parametrize("change", [{"max_rounds": 1}, {"tolerance_nats": 10.0}, {"trust": 1.0}, {"prior": "stacked"}])
def test_the_model_is_that_of_the_settings(change: dict[str, Any]) -> None:
    method = replace(MaxEntropy(prior="default", trust=30.0), **change)
    found = Bootstrap(some(), method, replicates=2)
    assert found.method == method
    fitted = estimate(some(), method=method).model
    assert found.model.probabilities(OFFERS) == pytest.approx(fitted.probabilities(OFFERS), abs=1e-9)


def test_progress_is_told() -> None:
    told: list[tuple[str, float]] = []
    Bootstrap(some(), "nearest", 3, watch=lambda *step: told.append(step))
    assert told == [(f"refitted {done} of 3 times", done / 3) for done in (1, 2, 3)]


def test_a_watch_that_returns_true_ends_the_refits() -> None:
    """But not before there are two, the least that have a spread."""
    assert len(Bootstrap(some(), "nearest", 9, watch=lambda *_: True).models) == 2
    assert len(Bootstrap(some(), "nearest", 9, watch=lambda _, done: done > 0.5).models) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "Unknown method 'magic'"),
        ({"replicates": 1}, "replicates is 1: it must be at least 2"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Bootstrap(some(), **options)


def test_bad_questions_are_named() -> None:
    found = Bootstrap(some(), "nearest", 2)
    with pytest.raises(ValueError, match="interval is 95"):
        found.predict(("tea", "no"), 95)
    with pytest.raises(ValueError, match="soup"):
        found.predict(("soup", "no"))
    with pytest.raises(ValueError, match="interval is 0"):
        found.predict(("tea", "no"), 0)


def test_weights_that_nobody_knows_are_refused() -> None:
    with pytest.raises(ValueError, match="fractions, from weights or an assumed share, have no intervals"):
        Bootstrap(ChoiceCounts(OFFERS, [0.5] * 8))
    for sizes in ([1.0, 2.0], [1.0, 0.0, 3.0]):
        with pytest.raises(ValueError, match="for each offer"):
            Bootstrap(some(), sizes=np.array(sizes))


def fading(half_life: float, number: int = 4000) -> DecayingCounts:
    random, counts = np.random.default_rng(3), DecayingCounts(OFFERS, half_life)
    shares = some().tallies / some().totals.sum()
    counts.observe_coordinates(random.choice(8, size=number, p=shares))
    return counts


@every_method
def test_counts_that_forget_are_as_sure_as_their_effective_number(method: Method) -> None:
    """Replicates vary as frequencies of that many choices do, and not of all that came or of the weights' sum."""
    counts = fading(40.0)
    sizes = counts.effective_totals
    found = Bootstrap(counts, method, 60, seed=1)
    drawn = np.array([model.probabilities(OFFERS) for model in found.models]).std(axis=0, ddof=1)
    share = found.model.probabilities(OFFERS)
    noise = np.sqrt(share * (1.0 - share) / sizes[OFFERS.owner])
    assert 0.3 < float((drawn**2).sum() / (noise**2).sum()) < 1.2  # a model of few numbers makes it less than one
    whole = Bootstrap(ChoiceCounts(OFFERS, np.rint(counts.tallies)), method, 60, seed=1)
    wider = np.array([model.probabilities(OFFERS) for model in whole.models]).std(axis=0, ddof=1)
    assert float((wider**2).sum() / (drawn**2).sum()) > 1.5  # the weights' sum is half of the effective number


def test_a_window_is_as_sure_as_the_choices_in_it() -> None:
    counts = WindowCounts(OFFERS, size=100)
    counts.observe_coordinates(np.random.default_rng(0).integers(0, 8, 500))
    plain = ChoiceCounts(OFFERS, counts.tallies)
    window, whole = (Bootstrap(one, "mnl", 5).predict(("tea", "pie")) for one in (counts, plain))
    assert window == whole


def test_drawn_choices_weigh_as_much_as_the_counted_ones() -> None:
    counts, random = fading(40.0), np.random.default_rng(0)
    sizes = np.array([2.5, 0.3, 7.0])
    drawn = [resample(counts, np.tile([0.5, 0.25, 0.25], 3)[:8], random, sizes) for _ in range(400)]
    for one in drawn:
        assert one.totals == pytest.approx(counts.totals)
    parts = np.array([one.tallies[:3] / one.totals[0] for one in drawn])
    assert np.isin(np.round(parts[:, 0], 6), np.round([0, 1 / 3, 0.5, 2 / 3, 1], 6)).all()  # two choices, or three
    assert parts.mean(axis=0) == pytest.approx([0.5, 0.25, 0.25], abs=0.06)


@every_method
def test_the_estimator_has_intervals(method: Method) -> None:
    offered = np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1], [0, 1, 1], [1, 1, 1]] * 20)
    chosen = np.array([0, 1, 1, 2, 0] * 20)
    model = RankingEstimator(method=method).fit(offered, chosen)
    rows = [[1, 1, 0], [1, 0, 1], [1, 1, 0]]
    low, high = model.predict_interval(rows, replicates=4)
    share = model.predict_proba(rows)
    assert low.shape == high.shape == share.shape == (3, 3)
    assert ((low <= share) & (share <= high)).all()
    assert high[0, 2] == 0.0
    assert low[0].tolist() == low[2].tolist()
    before = model._bootstrap
    narrow = model.predict_interval(rows, interval=0.5, replicates=4)[1]
    assert model._bootstrap is before
    assert (narrow <= high).all()
    model.fit(offered, chosen)
    assert model._bootstrap is None
