"""Predicted work, errors beyond noise, rows of scikit-learn and names of markets: formulas and limits by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rankstream import Assortments, ChoiceCounts, RankingModel, distances
from rankstream.certificate import Certificate
from rankstream.estimation.errors import StoredErrors, _share
from rankstream.estimation.many.markets import MarketFit, file_of, find_market, seed_of
from rankstream.estimation.many.pooling import NodePool, Pools
from rankstream.estimation.methods import work
from rankstream.estimation.methods.work import PredictedWork, Sizes, affords_max_entropy, predict_work, terms
from rankstream.estimation.misfit import Misfit, effective_sizes, measure_misfit, noise_distance, resample
from rankstream.estimation.rows import align, as_array, choice_columns, column_names, count_availability, sorted_order
from rankstream.estimation.task import with_proof
from rankstream.models.entropy.ensemble import CHOICE_FOLDS, n_folds
from rankstream.models.entropy.fit import SAMPLES
from rankstream.models.entropy.guides import MAX_EXACT_CHOICES
from rankstream.models.entropy.ranking_laws import plackett_luce
from rankstream.models.entropy.trust import MAX_FOLDS, N_DRAWN_RANKINGS

pytestmark = pytest.mark.quick
TEA = Assortments([("tea", "pie")])


def test_seconds_and_bytes_of_a_fit_by_their_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = Sizes(items=5, offers=7, coordinates=20, choices=1000.0, sets=30)
    steps, folds = 1000.0**work.STEPS_POWER, n_folds(7)
    found = terms(sizes)
    assert found["max-entropy"] == pytest.approx((1.0, folds * 20 * steps, folds * 7 * 125 * steps, 30 * 25, 0))
    assert found["latent-class"] == pytest.approx((1.0, 20 * steps))
    assert found["markov-chain"] == pytest.approx((1.0, 7 * 125 * steps))
    assert found["mnl"] == pytest.approx((1.0, 7 * 25))
    ordered = terms(sizes._replace(ordered=True))
    assert ordered == {"max-entropy": pytest.approx((5.0, folds * 20 * steps, 0.0, 30 * 5, 0))}
    assert terms(sizes._replace(sets=0))["max-entropy"][3:] == (0, 20)
    most = sizes._replace(choices=MAX_EXACT_CHOICES)
    assert terms(most) == terms(most._replace(choices=2 * MAX_EXACT_CHOICES))
    monkeypatch.setattr(work, "sizes_of", lambda _: sizes)
    predicted = predict_work(ChoiceCounts(TEA, [1, 1]))
    seconds = sum(one * amount for one, amount in zip(work.SECONDS["max-entropy"], found["max-entropy"], strict=True))
    assert predicted["max-entropy"] == pytest.approx((seconds, 30 * (8.0 * 5 * 14 + 1500.0)))
    assert predicted["mnl"].bytes == 2000.0
    monkeypatch.setattr(work, "sizes_of", lambda _: sizes._replace(sets=0))
    drawn = SAMPLES + (MAX_FOLDS + CHOICE_FOLDS) * N_DRAWN_RANKINGS
    assert predict_work(ChoiceCounts(TEA, [1, 1]))["max-entropy"].bytes == 8.0 * 20 * drawn


def test_work_in_words() -> None:
    assert str(PredictedWork(9.94, 2.0**30)) == "about 9.9 s and 1 GB"
    assert str(PredictedWork(10.0, 0.0)) == "about 10 s and 0.01 GB"
    assert str(PredictedWork(1234.5, 2.5 * 2**30)) == "about 1,234 s and 2.5 GB"


@pytest.mark.parametrize(
    ("budget", "seconds", "affords"),
    [
        (None, 60.0, True),
        (None, 60.1, False),
        (1.0, 10.0, True),
        (1.0, 10.1, False),
        (5.0, 20.0, True),
        (5.0, 20.1, False),
    ],
)
def test_maximum_entropy_may_take_four_times_the_budget(
    budget: float | None, seconds: float, affords: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = ChoiceCounts(TEA, [3, 4])
    monkeypatch.setattr(work, "predict_work", lambda _: {"max-entropy": PredictedWork(seconds, 2.0**31)})
    assert affords_max_entropy(counts, budget)[0] is affords
    monkeypatch.setattr(work, "predict_work", lambda _: {"max-entropy": PredictedWork(1.0, 2.0**31 + 1)})
    assert affords_max_entropy(counts, budget)[0] is False


def test_items_of_an_exact_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MAX_ITEMS", 2)
    assert affords_max_entropy(ChoiceCounts(TEA, [3, 4]))[0]
    for offer, words in ((("tea",), "there are 1"), (("tea", "pie", "no"), "there are 3")):
        affords, why = affords_max_entropy(ChoiceCounts(Assortments([offer]), np.ones(len(offer))))
        assert (affords, words in why) == (False, True)


def test_errors_beyond_noise_by_their_formulas() -> None:
    misfit = Misfit(seen=0.01, unseen=0.04, scale=3.0, doubt=0.02)
    share, spread = np.array([0.2, 0.5]), np.array([0.001, 0.002])
    noise = share * (1.0 - share)
    assert misfit.variance(share, spread) == pytest.approx(spread * (1 + 0.5 * 0.04 * 3) + 0.5 * 0.04 * noise)
    both = misfit.variance(share, spread, np.array([True, False]))
    assert both[0] == pytest.approx(0.001 * (1 + 0.5 * 0.01 * 3) + 0.5 * 0.01 * 0.16)
    assert both[1] == pytest.approx(misfit.variance(share, spread)[1])
    assert misfit.stretched(spread) == pytest.approx(spread * (1 + 0.06 * 3))
    parts = misfit.of_parts(share, spread, np.array([0.1, 0.001]))
    assert parts == pytest.approx(spread * 1.18 + 0.5 * 0.06 / np.array([0.1, 0.01]) * noise)
    types = misfit.of_types(share, spread, np.array([0.3, 0.6]))
    first = np.array([0.21, 0.24])
    assert types == pytest.approx(spread * (1 + 0.5 * 0.06 * 3) + 0.5 * 0.02 * noise + 1.5 * 0.04 * first)


def test_a_misfit_is_what_neither_sampling_nor_estimation_explains() -> None:
    data = ChoiceCounts(TEA, [60, 40])
    share, error, shift = np.array([0.5, 0.5]), np.array([0.03, 0.03]), np.array([0.01, 0.01])
    found = measure_misfit(data, share, error, shift, None)
    total, sampling = 0.5, 0.25 / 100
    seen = 2 * (0.1**2 - (sampling - 0.03**2)) / total
    doubt = np.sqrt(2 / 2) * 2 * sampling / total
    assert found.doubt == pytest.approx(doubt)
    assert found.unseen == pytest.approx(seen)
    assert found.seen == pytest.approx(min(seen, seen + doubt))
    assert found.scale == pytest.approx(total / (2 * (0.03**2 + 0.01**2)))
    held = measure_misfit(data, share, error, shift, 0.2)
    assert held.unseen == pytest.approx(0.2 - 2 * 0.03**2 / total)
    assert held.seen == pytest.approx(min(held.unseen, seen + doubt))
    fewer = measure_misfit(data, share, error, shift, 0.2, np.array([50.0]))
    assert fewer.unseen == pytest.approx(0.2 + (0.5 / 100 - 0.5 / 50) / total - 2 * 0.03**2 / total)
    assert measure_misfit(data, np.array([1.0, 0.0]), error, shift, None) == Misfit()
    assert found.has(Assortments([("pie", "tea"), ("tea", "no")])).tolist() == [True, True, False, False]


def test_a_replicate_draws_as_many_choices_as_are_as_certain() -> None:
    random = np.random.default_rng(0)
    offers = Assortments([("tea", "pie"), ("tea", "no")])
    counts = ChoiceCounts(offers, [6, 4, 30, 10])
    plain = resample(counts, np.array([1.0, -1e-12, 0.25, 0.75]), random)
    assert plain.totals.tolist() == [10.0, 40.0]
    assert plain.tallies[:2].tolist() == [10.0, 0.0]
    fewer = resample(counts, np.full(4, 0.5), random, np.array([5.0, 40.0]))
    assert fewer.totals.tolist() == [10.0, 40.0]
    assert set((fewer.tallies[:2] % 2.0).tolist()) == {0.0}  # each of five weighs two
    drawn = [resample(counts, np.full(4, 0.5), random, np.array([2.5, 0.1])) for _ in range(40)]
    first = {round(3.0 * one.tallies[0], 6) for one in drawn}  # of two choices that weigh 5, or three
    assert {15.0} < first <= {0.0, 10.0, 15.0, 20.0, 30.0}
    assert first & {10.0, 20.0}
    assert all(sorted(one.tallies[2:].tolist()) == [0.0, 40.0] for one in drawn)  # one choice at least
    assert effective_sizes(counts, counts, None).tolist() == [10.0, 40.0]
    assert effective_sizes(counts, counts, np.array([5.0, 8.0])) == pytest.approx([5.0, 8.0])
    twice = ChoiceCounts(Assortments([("tea", "pie"), ("pie", "tea")]), [6, 4, 20, 10])
    once = ChoiceCounts(Assortments([("tea", "pie")]), [16, 24])
    assert effective_sizes(twice, once, np.array([5.0, 10.0])) == pytest.approx([40**2 / (100 / 5 + 900 / 10)])
    for sizes in (np.array([0.0, 1.0]), np.array([1.0])):
        with pytest.raises(ValueError, match="numbers above 0, one for each offer"):
            effective_sizes(counts, counts, sizes)


def test_noise_alone_gives_a_distance() -> None:
    model = RankingModel(["tea", "pie"], [("tea", "pie"), ("pie", "tea")], [0.8, 0.2])
    counts = ChoiceCounts(TEA, [70, 30])
    assert noise_distance(model, counts) == pytest.approx(np.sqrt(2 * 0.8 * 0.2 / 100))


def test_shares_have_ends_within_0_and_1() -> None:
    assert tuple(_share(0.5, 0.1)) == pytest.approx((0.5, 0.5 - 0.196, 0.5 + 0.196))
    assert tuple(_share(0.1, 0.1))[1:] == pytest.approx((0.0, 0.296))
    assert tuple(_share(0.9, 0.1))[1:] == pytest.approx((0.704, 1.0))


def stored(**changes: Any) -> StoredErrors | None:
    content = {
        "replicates": 10, "offer": ["tea", "pie"], "gone": ["tea"], "shares": [0.1, 0.1],
        "substitution": [[0.0, 0.2]], "types": [[["tea", "pie"], 0.05]],
    }  # fmt: skip
    model = RankingModel(["tea", "pie"], [("tea", "pie"), ("pie", "tea")], [0.8, 0.2])
    model.note(errors=content | changes)
    return StoredErrors.of(model)


def test_errors_that_do_not_fit_their_model_are_left_out() -> None:
    found = stored()
    assert found is not None
    assert found.predict()["tea"] == pytest.approx((0.8, 0.8 - 0.196, 0.996))
    moves = found.substitution()
    assert moves.low is not None
    assert moves.low[0, 1] == pytest.approx(1.0 - 1.96 * 0.2)
    assert np.isnan(moves.low[1]).all()  # without stored errors
    assert found.favourites() == {("tea", "pie"): pytest.approx((0.8, 0.702, 0.898))}
    assert stored(replicates=2) is not None
    for wrong in (
        {"replicates": 1}, {"shares": [0.1]}, {"substitution": [0.0, 0.2]}, {"offer": ["pie", "tea"]},
        {"gone": ["bun"]}, {"types": None}, {"shares": "x"},
    ):  # fmt: skip
        assert stored(**wrong) is None, wrong


def test_a_proof_never_lowers_what_was_proven() -> None:
    found = Certificate(lower=0.2, upper=0.5, oracle_regret=0.1, dual_regret=0.2, exact=True)
    target: Any = None
    distance: Any = distances
    for lower, best in ((0.1, 0.2), (0.3, 0.3)):
        space: Any = SimpleNamespace(lower=lambda *_, lower=lower: lower)
        made = with_proof(found, space, distance, target)
        assert (made.lower, made.upper, made.oracle_regret) == (best, 0.5, 0.0)
        assert made.dual_regret == pytest.approx(0.5 - best)
    assert with_proof(found, None, distance, target).lower == 0.2


def test_choices_are_columns_by_name_or_by_position() -> None:
    names: list[Any] = ["tea", "pie"]
    assert choice_columns(np.array(["pie", "tea"]), names, True, False).tolist() == [1, 0]
    assert choice_columns(np.array([1, 0]), names, True, False).tolist() == [1, 0]
    assert choice_columns(np.array([0, 2]), [0, 1], False, True).tolist() == [0, 2]  # one past the last
    cases: tuple[Any, ...] = (
        (np.array([0, 2]), [0, 1], False, False), (np.array([0, 3]), [0, 1], False, True),
        (np.array(["bun"]), names, True, False), (np.array([0]), [5, 6], True, False),
        (np.array([-1]), names, True, True),
    )  # fmt: skip
    for chosen, known, named, outside in cases:
        with pytest.raises(ValueError, match="unknown item"):
            choice_columns(chosen, known, named, outside)
    assert column_names(np.ones((1, 2))) == ([], False)
    assert column_names(SimpleNamespace(columns=[0, 1])) == ([0, 1], False)
    assert column_names(SimpleNamespace(columns=[1, 0])) == ([1, 0], True)
    with pytest.raises(ValueError, match="The item 'bun' was in no batch so far"):
        align(np.ones((1, 1)), ["bun"], ["tea"], may_add=False)
    assert align(np.ones((1, 1)), ["tea"], ["tea"], may_add=False)[1] == ["tea"]
    assert as_array(["a", 1]).dtype == object
    assert as_array(["a", "b"]).dtype.kind == "U"
    assert sorted_order([3, 1, 2]).tolist() == [1, 2, 0]


def test_rows_are_counted_by_their_columns() -> None:
    rows = np.array([[True, True, False], [True, True, False], [False, True, True]])
    counts, grew = count_availability(rows, np.array([0, 1, 2]), np.array([1.0, 0.0, 2.0]))
    assert (counts.observations, grew) == (3.0, True)
    again, grew = count_availability(rows[:1], np.array([1]), np.ones(1), counts)
    assert (again.observations, counts.observations, grew) == (4.0, 3.0, False)
    more, grew = count_availability(np.array([[True, False, True]]), np.array([2]), np.ones(1), again)
    assert (more.assortments.n_offers, grew) == (3, True)
    assert more.tallies[more.assortments.coordinate((0, 2), 2)] == 1.0
    wider, grew = count_availability(np.array([[True, True, False, False]]), np.array([0]), np.ones(1), again)
    assert (wider.assortments.n_items, grew) == (4, True)


def test_what_markets_borrow_is_of_the_nearest_level() -> None:
    laws = [plackett_luce(["tea", "no"], [float(number), 1.0]) for number in (1, 2, 3)]
    top, low = NodePool((laws[0], laws[1]), {"York": 1, "Bath": 0}), NodePool((laws[2],), {})
    pools = Pools({(): top, ("York",): low}, (2.0, 20.0))
    york, deep = pools.guide(("York",)), pools.guide(("York", "hot"))
    assert york is not None
    assert deep is not None
    assert (york.prior, york.before) == (laws[1], 2.0)
    assert (deep.prior, deep.before) == (laws[2], 20.0)
    bath = pools.guide(("Bath", "hot"))
    assert bath is not None
    assert (bath.prior, bath.before) == (laws[0], 20.0)
    assert Pools({}, ()).guide(("York",)) is None
    assert pools.digest(None) == ""
    assert pools.digest(york) == pools.digest(pools.guide(("York",))) != pools.digest(bath)
    assert top.law("Ely") in laws[:2]


def test_markets_have_names_files_and_rows() -> None:
    assert len(file_of(("a" * 200,))) == 120 + len(".12345678.json")
    assert seed_of(("York",), 0) != seed_of(("York",), 1)
    assert seed_of(("York",), 0) < 16**7
    row = MarketFit(("York",), "done", choices=5.0, gap=np.inf, seconds=0.5).to_row()
    assert (row["gap"], row["seconds"], row["key"], row["market"]) == (None, 0.5, ["York"], "York")
    assert MarketFit.from_row(row) == MarketFit(("York",), "done", choices=5.0, seconds=0.5)
    assert find_market(("York", "tea"), [("York", "tea")]) == ("York", "tea")
