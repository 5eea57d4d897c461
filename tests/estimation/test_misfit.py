"""What intervals add for a truth that is unlike the model, as held-out offers show it."""

import numpy as np
import pytest

from rankstream import Assortments, Bootstrap, ChoiceCounts, RankingModel, methods
from rankstream.data import simulate
from rankstream.estimation.misfit import Misfit, measure_misfit
from rankstream.models.answers import substitution
from rankstream.models.entropy.ensemble import fit_stack
from rankstream.models.entropy.guides import LOGIT

OFFERS = Assortments([("a", "b"), ("b", "c")])


def counts_of_rankings(seed: int, choices: int = 4000) -> tuple[ChoiceCounts, Assortments, RankingModel]:
    """Four rankings of seven items, and offers nobody has seen."""
    market = simulate.market(seed, n_items=6, n_offers=14, n_test=12, unseen=True)
    random, items = np.random.default_rng(seed), market.assortments.items
    truth = RankingModel.from_codes(
        items, np.array([random.permutation(7) for _ in range(4)]), random.dirichlet([1.0] * 4)
    )
    shares = truth.probabilities(market.assortments)
    tallies = random.multinomial(choices, np.maximum(shares, 0.0) / shares.sum())
    return ChoiceCounts(market.assortments, tallies), market.test, truth


def test_the_misfit_of_offers_with_data_is_what_noise_does_not_explain() -> None:
    data = ChoiceCounts(OFFERS, [60, 40, 30, 70])
    share, none = np.array([0.5, 0.5, 0.5, 0.5]), np.zeros(4)
    # squared errors 0.01, 0.01, 0.04, 0.04; the noise of 100 choices is 0.0025 each; in units of 0.25 each
    seen = (0.1 - 4 * 0.0025) / 1.0
    found = measure_misfit(data, share, none, none, None)
    assert found.unseen == pytest.approx(seen)
    assert found.seen == pytest.approx(seen)  # never above that of unseen offers
    doubt = np.sqrt(2.0 / 4.0) * 4 * 0.0025 / 1.0
    error = np.full(4, 0.02)
    found = measure_misfit(data, share, error, none, 0.5)
    assert found.unseen == pytest.approx(0.5 - 4 * 0.0004)
    assert found.seen == pytest.approx((0.1 - 4 * (0.0025 - 0.0004)) / 1.0 + doubt)
    assert found.scale == pytest.approx(0.25 / 0.0004)


def test_parts_and_types_reach_as_far_as_noise_can_hide_a_misfit() -> None:
    """With no misfit to be seen there is the doubt; with one, a small type may have what its first item has."""
    part, spread = np.array([0.2]), np.array([0.01])
    hidden = Misfit(0.0, 0.0, 5.0, doubt=0.02)
    assert hidden.stretched(spread) == pytest.approx(0.01 * 1.1)
    for buyers, counted in ((0.1, 0.1), (0.001, 0.01)):  # an item that fewer buy is less certain, down to one in 100
        wide = 0.01 * 1.1 + 0.5 / counted * 0.02 * 0.2 * 0.8
        assert hidden.of_parts(part, spread, np.array([buyers])) == pytest.approx(wide)
    assert hidden.of_types(part, spread, np.array([0.5])) == pytest.approx(0.01 * 1.05 + 0.01 * 0.2 * 0.8)
    shown = Misfit(0.0, 0.04, 0.0)
    assert shown.of_types(np.zeros(1), np.zeros(1), np.array([0.5])) == pytest.approx(1.5 * 0.04 * 0.25)
    data = ChoiceCounts(OFFERS, [60, 40, 30, 70])
    assert measure_misfit(data, np.full(4, 0.5), np.zeros(4), np.zeros(4), 0.0).doubt == pytest.approx(
        np.sqrt(0.5) * 0.01
    )


def test_types_and_parts_are_given_their_own_variances() -> None:
    counts, _, _ = counts_of_rankings(2, 600)
    many = Bootstrap(counts, replicates=4)
    assert many.misfit.unseen > 0.0
    moves = many.substitution()
    assert moves.high is not None
    value, table = moves.shares, many.table(lambda model: substitution(model).shares)
    spread = table.var(axis=0, ddof=1) + (table.mean(axis=0) - value) ** 2
    reach = 1.959964 * np.sqrt(many.misfit.of_parts(value, spread, moves.before[:, np.newaxis]))
    assert moves.high == pytest.approx(np.minimum(value + reach, 1.0), abs=1e-6)
    types = many.favourites("nothing") if "nothing" in many.model.items else many.favourites()
    for key, found in types.items():
        own = moves.before[moves.items.index(key[0])] if key else 1.0
        least = 1.5 * many.misfit.unseen * own * (1.0 - own)
        assert found.high >= min(1.0, found.share + 1.959964 * np.sqrt(least)) - 1e-9


def test_a_model_that_fits_as_noise_allows_has_only_the_doubt() -> None:
    data = ChoiceCounts(OFFERS, [50, 50, 50, 50])
    found = measure_misfit(data, np.full(4, 0.5), np.zeros(4), np.zeros(4), 0.01)
    assert found.seen == pytest.approx(np.sqrt(0.5) * 0.01)
    assert found.unseen == 0.01
    assert measure_misfit(data, np.array([1.0, 0.0, 1.0, 0.0]), np.zeros(4), np.zeros(4), 0.3) == Misfit()


def test_offers_are_known_by_their_items_in_any_order() -> None:
    data = ChoiceCounts(OFFERS, [50, 50, 50, 50])
    found = measure_misfit(data, np.full(4, 0.5), np.zeros(4), np.zeros(4), 0.01)
    asked = Assortments([("c", "b"), ("a", "c")], ("a", "b", "c"))
    assert found.has(asked).tolist() == [True, True, False, False]


def test_held_out_offers_show_a_prior_that_is_wrong() -> None:
    counts, _, _ = counts_of_rankings(1)
    wrong = fit_stack(counts, (LOGIT,)).misfit
    right = []
    for seed in range(1, 6):  # one market alone may have four times the mean by chance
        logit = next(simulate.market(seed, n_items=6, segments=1, n_offers=14, n_test=5).stream(first=4000))
        right.append(fit_stack(logit, (LOGIT,)).misfit or 0.0)
    assert wrong is not None
    assert wrong > 0.02
    assert 0.0 < np.mean(right) < 0.05 * wrong


def test_intervals_of_unseen_offers_cover_truths_of_few_rankings() -> None:
    whole: list[float] = []
    alone: list[float] = []
    for seed in range(4):
        counts, test, truth = counts_of_rankings(seed)
        found = Bootstrap(counts, replicates=12, seed=seed)
        true = truth.probabilities(test)
        for misfit, hits in ((found.misfit, whole), (Misfit(), alone)):
            found.misfit = misfit
            _, low, high = found.bounds(test)
            hits.append(float(((low <= true + 1e-9) & (true <= high + 1e-9)).mean()))
    assert np.mean(whole) >= 0.85
    assert np.mean(whole) >= np.mean(alone) + 0.05


def test_other_methods_and_priors_have_no_misfit() -> None:
    counts, test, _ = counts_of_rankings(2, 500)
    for method in ("mnl", methods.MaxEntropy(prior="default", trust=30.0)):
        found = Bootstrap(counts, method, replicates=3)
        assert found.misfit == Misfit()
        share, low, high = found.bounds(test)
        value, error, shift = found.spread(test)
        assert share == pytest.approx(value)
        assert high == pytest.approx(np.minimum(1.0, value + 1.959964 * np.sqrt(error**2 + shift**2)), abs=1e-6)
        assert low == pytest.approx(np.maximum(0.0, value - 1.959964 * np.sqrt(error**2 + shift**2)), abs=1e-6)


def test_noise_follows_the_number_of_choices_that_are_as_certain() -> None:
    data = ChoiceCounts(Assortments([("a", "b"), ("a", "c")]), [50, 50, 60, 40])
    share, none, sizes = np.full(4, 0.5), np.zeros(4), np.array([200.0, 200.0])
    plain, surer = measure_misfit(data, share, none, none, 0.1), measure_misfit(data, share, none, none, 0.1, sizes)
    assert measure_misfit(data, share, none, none, 0.1, data.totals) == plain
    assert surer.unseen == pytest.approx(plain.unseen + 1 / 100 - 1 / 200)  # less of it is noise
