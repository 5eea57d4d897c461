"""How base models are weighed and the trust is chosen, with base models that predict what they are told."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rankstream import Assortments, ChoiceCounts
from rankstream.models.entropy import ensemble, trust
from rankstream.models.entropy.ensemble import (
    Fold,
    _drop_behind,
    _fit_folds,
    _misfit,
    _Scored,
    best_weights,
    score_pool,
)
from rankstream.models.entropy.guides import LOGIT, PRICED_LOGIT
from rankstream.models.entropy.ranking_laws import plackett_luce

pytestmark = pytest.mark.quick
OFFERS = Assortments([("a", "b"), ("b", "c"), ("a", "b", "c")])


@dataclass(frozen=True)
class Guide:
    """A base model that always predicts the same shares, and notes how it is fitted."""

    name: str
    family: str
    shares: tuple[float, ...] = ()
    before: float = 1.0 / 3.0
    steps: int = 10
    fits: list[dict[str, Any]] = field(default_factory=list, compare=False)
    attributes: None = None

    def fit(self, rest: Any, seed: int, starts: int, nats: float, watch: Any, max_rounds: int) -> Any:
        self.fits.append(
            {"offers": rest.assortments.n_offers, "seed": seed, "starts": starts, "nats": nats, "most": max_rounds}
        )
        return self.fitted

    @property
    def fitted(self) -> Any:
        return SimpleNamespace(guide=self, steps=self.steps, probabilities=lambda _: np.array(self.shares))


def fold(guides: list[Guide], tallies: list[float]) -> Fold:
    counts = ChoiceCounts(OFFERS, tallies)
    return Fold(counts, counts, {guide.name: guide.fitted for guide in guides})


FIRST = Guide("first", "x", (0.8, 0.2, 0.3, 0.7, 0.5, 0.25, 0.25))
SECOND = Guide("second", "y", (0.4, 0.6, 0.6, 0.4, 0.2, 0.4, 0.4))
TALLIES = [30.0, 10.0, 0.0, 20.0, 12.0, 8.0, 5.0]
SIZES = [2, 2, 2, 2, 3, 3, 3]


def height(shares: Any, tallies: list[float] = TALLIES) -> float:
    return float(sum(number * np.log(share) for number, share in zip(tallies, shares, strict=True) if number))


def test_heights_and_scores_are_log_likelihoods() -> None:
    more = [5.0, 0.0, 7.0, 0.0, 1.0, 0.0, 0.0]
    found = _Scored([FIRST, SECOND], [fold([FIRST, SECOND], TALLIES), fold([FIRST, SECOND], more)])  # type: ignore[list-item]
    uniform = height([1.0 / size for size in SIZES]) + height([1.0 / size for size in SIZES], more)
    for place, guide in enumerate((FIRST, SECOND)):
        both = height(guide.shares) + height(guide.shares, more)
        assert found.heights[place] == pytest.approx(both)
        assert found.scores[guide.name] == pytest.approx(both - uniform)


def test_choices_that_no_base_model_allows_count_for_none() -> None:
    never = Guide("never", "x", (1.0, 0.0, 0.3, 0.7, 0.5, 0.25, 0.25))
    some = Guide("some", "y", (0.5, 0.0, 0.3, 0.7, 0.5, 0.25, 0.25))
    found = _Scored([never, some], [fold([never, some], TALLIES)])  # type: ignore[list-item]
    assert found.tallies.tolist() == [30.0, 20.0, 12.0, 8.0, 5.0]
    zero = Guide("zero", "z", (0.0, 1.0, 0.3, 0.7, 0.5, 0.25, 0.25))
    assert _Scored([zero, FIRST], [fold([zero, FIRST], TALLIES)]).predicted[0, 0] == 1e-300  # type: ignore[list-item]


@pytest.mark.parametrize("family", ["x", LOGIT.family, PRICED_LOGIT.family, ensemble.POOL])
def test_a_mixture_has_to_beat_the_best_and_then_its_home(family: str) -> None:
    home = Guide("home", family, (0.5, 0.5, 0.4, 0.6, 0.3, 0.4, 0.3), before=4.0)
    guides = [FIRST, SECOND, home] if family != "x" else [FIRST, SECOND]
    found = _Scored(guides, [fold(guides, TALLIES)])  # type: ignore[arg-type]
    predicted = np.array([guide.shares for guide in guides])[:, [number > 0 for number in TALLIES]]
    chosen = np.array([number for number in TALLIES if number])
    heights = np.array([height(guide.shares) for guide in guides])
    weights = best_weights(predicted, chosen, np.array([guide.before for guide in guides]))

    def gated(weights: Any, single: int, gate: float) -> Any:
        gain = chosen @ np.log(weights @ predicted) - heights[single]
        share = 1.0 / (1.0 + np.exp(gain - gate))
        return (1.0 - share) * weights + share * np.eye(len(weights))[single]

    weights = gated(weights, int(heights.argmax()), 1.0)
    if family != "x":
        weights = gated(weights, 2, 4.0 if family == ensemble.POOL else 2.0)
    kept, weighed = found.weights()
    assert [guide.name for guide in kept] == [
        guide.name for guide, weight in zip(guides, weights, strict=True) if weight >= 0.01
    ]
    assert weighed == pytest.approx(weights[weights >= 0.01] / weights[weights >= 0.01].sum())


def test_of_a_family_the_best_is_kept() -> None:
    worse = Guide("worse", "x", (0.5, 0.5, 0.5, 0.5, 0.3, 0.3, 0.4))
    kept: Any
    kept, _ = _Scored([worse, FIRST, SECOND], [fold([worse, FIRST, SECOND], TALLIES)]).weights()  # type: ignore[list-item]
    assert worse not in kept
    assert FIRST in kept


def test_base_models_with_less_than_a_hundredth_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    for least, number in ((0.0, 2), (0.9, 1)):
        monkeypatch.setattr(ensemble, "MIN_GUIDE_WEIGHT", least)
        kept, weights = _Scored([FIRST, SECOND], [fold([FIRST, SECOND], TALLIES)]).weights()  # type: ignore[list-item]
        assert len(kept) == number
        assert weights.sum() == pytest.approx(1.0)


def test_the_misfit_is_the_squared_error_beyond_noise() -> None:
    folds = [
        fold([FIRST, SECOND], [30.0, 10.0, 5.0, 20.0, 12.0, 8.0, 5.0]),
        fold([FIRST, SECOND], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]),
    ]
    share = 0.25 * np.array(FIRST.shares) + 0.75 * np.array(SECOND.shares)
    noise = share * (1.0 - share)
    beyond = 0.0
    for one in folds:
        for place, owner in enumerate(OFFERS.owner):
            total = one.test.totals[owner]
            beyond += (share[place] - one.test.tallies[place] / total) ** 2 - noise[place] / total
    assert _misfit(folds, [FIRST, SECOND], np.array([0.25, 0.75])) == pytest.approx(beyond / (2.0 * noise.sum()))  # type: ignore[list-item]


def test_sizes_far_behind_the_best_of_their_family_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    worse = Guide("worse", "x", (0.5, 0.5, 0.5, 0.5, 0.3, 0.3, 0.4))
    behind = height(FIRST.shares) - height(worse.shares)
    for most, stays in ((behind + 1e-6, True), (behind - 1e-6, False)):
        monkeypatch.setattr(ensemble, "MAX_NATS_BEHIND", most)
        folds = [fold([worse, FIRST, SECOND], TALLIES)]
        kept: Any = _drop_behind([worse, FIRST, SECOND], folds)  # type: ignore[list-item]
        assert (worse in kept, FIRST in kept, SECOND in kept) == (stays, True, True)
        assert ("worse" in folds[0].guides) == stays


def pairs(number: int) -> ChoiceCounts:
    offers = Assortments([(item, "no") for item in range(number)])
    return ChoiceCounts(offers, [3, 2] * number)


def test_every_offer_is_held_out_once() -> None:
    guide = Guide("one", "x", (0.5,) * 2)
    folds = _fit_folds(pairs(7), [guide], 3, lambda *_: False)  # type: ignore[list-item]
    assert len(folds) == 7
    held: list[Any] = [one.test.assortments.offers[0][0] for one in folds]
    assert sorted(held) == list(range(7))
    assert all(one.rest.assortments.n_offers == 6 for one in folds)
    assert held == np.random.default_rng(3).permutation(7).tolist()
    assert all(fit["seed"] == 3 and fit["starts"] == 2 and fit["nats"] == 5e-3 for fit in guide.fits)


def test_folds_share_their_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fit may take four times an even share of what is left, and at least as many as every fit may."""
    monkeypatch.setattr(ensemble, "MAX_FOLD_STEPS", 1000)
    one, two = Guide("one", "x", (0.5,) * 2, steps=100), Guide("two", "y", (0.5,) * 2, steps=50)
    _fit_folds(pairs(5), [one, two], 0, lambda *_: False)  # type: ignore[list-item]
    left, expected = 1000, {"one": list[int](), "two": list[int]()}
    for held in range(5):
        for place, guide in enumerate((one, two)):
            fits = 2 * (5 - held) - place
            expected[guide.name].append(max(30, 4 * left // (2 * fits)))
            left -= guide.steps
    assert [fit["most"] for fit in one.fits] == expected["one"]
    assert [fit["most"] for fit in two.fits] == expected["two"]


@pytest.mark.parametrize(("after", "whole"), [(1, 1), (2, 1), (3, 2), (5, 4)])
def test_a_fold_in_which_time_was_up_does_not_count(after: int, whole: int) -> None:
    told: list[str] = []

    def watch(text: str, share: float = 1.0) -> bool:  # noqa: ARG001
        told.append(text)
        return len(told) >= after

    folds = _fit_folds(pairs(5), [Guide("one", "x", (0.5,) * 2)], 0, watch)  # type: ignore[list-item]
    assert len(folds) == whole
    assert told[-1] == f"{after} of 5 folds held out"


def test_folds_by_the_number_of_offers() -> None:
    assert [ensemble.n_folds(number) for number in (5, 10, 11, 100, 101, 3)] == [5, 10, 10, 10, 5, 3]


def test_a_pool_is_scored_on_each_fold_with_the_weights_of_the_others() -> None:
    pool = Guide("pool", ensemble.POOL, (0.5, 0.5, 0.4, 0.6, 0.3, 0.4, 0.3))
    other = [10.0, 20.0, 15.0, 5.0, 3.0, 8.0, 1.0]  # a single choice counts, too
    folds = [fold([FIRST, pool], TALLIES), fold([FIRST, pool], other)]
    found = score_pool(folds, [FIRST, pool], (0.5, 20.0))  # type: ignore[list-item]
    for place, number in enumerate((0.5, 20.0)):
        told = Guide("pool", ensemble.POOL, pool.shares, before=number)
        expected = 0.0
        for held, tallies in ((0, TALLIES), (1, other)):
            kept: Any
            kept, weights = _Scored([FIRST, told], [folds[1 - held]]).weights()  # type: ignore[list-item]
            mixed = weights @ np.array([guide.shares for guide in kept])
            expected += height(mixed, tallies)
        assert found[place] == pytest.approx(expected)


def chosen(
    monkeypatch: pytest.MonkeyPatch, by_trust: dict[float | None, float], **given: Any
) -> tuple[Any, Any, list[Any]]:
    """The trust that is chosen where every fold scores these numbers, what is told of it, and which were tried."""
    tried: list[Any] = []

    class HeldOut:
        def __init__(self, *_: Any) -> None:
            pass

        def score(self, number: float | None) -> float:
            tried.append(number)
            return by_trust[number]

    monkeypatch.setattr(trust, "_HeldOut", HeldOut)
    test = SimpleNamespace(test=SimpleNamespace(observations=50), prior=lambda _: None)
    monkeypatch.setattr(trust, "hold_out_choices", lambda *_: given.get("by_choices", []))
    stack: Any = SimpleNamespace(
        folds=(test,) * given.get("folds", 1), logit_weight=given.get("logit", 0.0), pool_weight=given.get("pool", 0.0)
    )
    program: Any = SimpleNamespace(states=np.zeros(given.get("states", 3000)), with_prior=lambda _: None)
    counts: Any = SimpleNamespace(assortments=OFFERS, observations=100.0)
    watch = given.get("watch", lambda _: False)
    best, told = trust.choose_trust(stack, counts, program, 0, watch)
    return best, told, tried


FLAT: dict[float | None, float] = dict.fromkeys(trust.TRIED_TRUSTS, 0.0)


def test_every_step_away_from_100_has_to_gain_a_nat(monkeypatch: pytest.MonkeyPatch) -> None:
    # half of 100 choices for 50 that were held out: the factor is 1
    best, told, _ = chosen(monkeypatch, FLAT)
    assert best == 100.0
    assert told == {"none": -2.0, "300": -1.0, "100": 0.0, "30": -1.0, "10": -2.0, "3": -3.0, "1": -4.0}
    assert chosen(monkeypatch, FLAT | {30.0: 0.99})[0] == 100.0
    assert chosen(monkeypatch, FLAT | {30.0: 1.01})[0] == 30.0
    assert chosen(monkeypatch, FLAT | {None: 2.01})[0] is None


def test_a_path_ends_three_nats_below_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    far = FLAT | {10.0: -1.1, 3.0: 99.0, 300.0: -2.1}
    best, told, tried = chosen(monkeypatch, far)
    assert tried == [100.0, 30.0, 10.0, 300.0]
    assert (best, list(told)) == (100.0, ["300", "100", "30", "10"])
    assert chosen(monkeypatch, FLAT | {10.0: -1.0, 3.0: 99.0})[0] == 3.0  # exactly three is not below


@pytest.mark.parametrize(
    ("given", "begins"), [({"logit": 0.51}, None), ({"pool": 0.51}, None), ({"logit": 0.5, "pool": 0.5}, 100.0)]
)
def test_a_settled_market_begins_without_a_tilt(monkeypatch: pytest.MonkeyPatch, given: Any, begins: Any) -> None:
    assert chosen(monkeypatch, FLAT, **given)[2][0] == begins
    assert chosen(monkeypatch, FLAT, **given)[0] == begins


def test_choices_count_twice_as_much_as_offers(monkeypatch: pytest.MonkeyPatch) -> None:
    held = SimpleNamespace(test=SimpleNamespace(observations=25), prior=lambda _: None)
    _, told, tried = chosen(monkeypatch, FLAT | {30.0: -0.25, 10.0: -9.0}, by_choices=[held, held])
    # offers: 0.5 * 100 / 50; choices: 100 / 50 for each of two folds
    assert told["30"] == pytest.approx(-0.25 * (1.0 + 2.0 * 2.0) - 1.0)
    assert tried.count(100.0) == 3


@pytest.mark.parametrize(("folds", "used"), [(1, 1), (5, 5), (9, 5), (10, 5), (7, 5)])
def test_five_folds_are_enough(monkeypatch: pytest.MonkeyPatch, folds: int, used: int) -> None:
    _, _, tried = chosen(monkeypatch, FLAT, folds=folds)
    assert tried.count(100.0) == used


def test_without_folds_or_with_a_large_program_it_is_100(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, FLAT | {30.0: 50.0}, folds=0) == (100.0, {}, [])
    assert chosen(monkeypatch, FLAT | {30.0: 50.0}, states=3001) == (100.0, {}, [])
    assert chosen(monkeypatch, FLAT | {30.0: 50.0}, watch=lambda _: True) == (100.0, {"100": 0.0}, [100.0])


def test_a_held_out_tilt_weighs_errors_by_their_variance() -> None:
    """A tenth of the choices over the prior's share; a trust divides that once, when it is tried."""
    counts = ChoiceCounts(OFFERS, TALLIES)
    prior = plackett_luce(OFFERS.items, [1.0] * len(OFFERS.items))
    held = trust._HeldOut(SimpleNamespace(), prior, counts, SimpleNamespace(rest=counts, test=counts))  # type: ignore[arg-type]
    totals = [sum(TALLIES[:2])] * 2 + [sum(TALLIES[2:4])] * 2 + [sum(TALLIES[4:])] * 3
    expected = [0.1 * total * size for total, size in zip(totals, SIZES, strict=True)]
    assert held.weights.tolist() == pytest.approx(expected)
