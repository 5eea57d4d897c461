"""Offers to try next with items that were never offered: they teach most, so the promising ones are tried."""

import numpy as np
import pytest

from rankstream import Assortments, Bootstrap, ChoiceCounts, best_offer, estimate, next_offer, read_attributes
from rankstream.models.entropy.new_items import WorthRegression
from strategies import compiled_only

pytestmark = [compiled_only, pytest.mark.slow]
SIZES = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 5.0, "f": 6.0}
CANDIDATES = {"tiny": 0.5, "huge": 6.5}


def table(items: dict[str, float]) -> dict[str, dict[str, float]]:
    return {item: {"size": size} for item, size in items.items()}


@pytest.fixture(scope="module")
def counts() -> ChoiceCounts:
    """Choices from a logit whose worths grow with size, and with something of an item's own."""
    random, names = np.random.default_rng(5), list(SIZES)
    offers = [(*random.choice(names, size=3, replace=False).tolist(), "no") for _ in range(14)]
    whole = Assortments(list({frozenset(offer): offer for offer in offers}.values()), [*names, "no"])
    own = dict(zip(names, random.normal(scale=0.3, size=6), strict=True))
    worth = np.array(
        [1.0 if item == "no" else np.exp(0.5 * SIZES[item] - 2.0 + own[item]) for item in map(str, whole.items)]
    )
    power = worth[whole.members]
    shares = power / np.add.reduceat(power, whole.indptr[:-1])[whole.owner]
    drawn = [random.multinomial(40, part) for part in np.split(shares, whole.indptr[1:-1])]
    return ChoiceCounts(whole, np.concatenate(drawn))


def tried(counts: ChoiceCounts, seeds: int = 1, **more: object) -> list[tuple[object, ...]]:
    margins = dict.fromkeys([*SIZES, *CANDIDATES], 1.0)
    options: dict[str, object] = {"attributes": table(SIZES | CANDIDATES), "at_most": 1, "no_choice": "no"} | more
    return [next_offer(counts, margins, seed=seed, **options).untried for seed in range(seeds)]  # type: ignore[arg-type]


def test_a_promising_candidate_is_tried_and_a_poor_one_is_not(counts: ChoiceCounts) -> None:
    found = tried(counts, 3)
    assert ("huge",) in found
    assert ("tiny",) not in found
    assert set(tried(counts, never=["huge", "tiny"])) == {()}


def test_what_a_candidate_is_worth_is_drawn(counts: ChoiceCounts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Greedy has one answer; the same redrawn model differs in what the candidate earns if that is not drawn."""
    margins = dict.fromkeys([*SIZES, *CANDIDATES], 1.0)
    options = {"attributes": table(SIZES | CANDIDATES), "at_most": 1, "no_choice": "no", "must": ["huge"]}
    greedy, drawn = (
        next_offer(counts, margins, how, seed=seed, **options)  # type: ignore[arg-type]
        for how, seed in (("greedy", 0), ("thompson", 1))
    )
    expect = WorthRegression.predict
    monkeypatch.setattr(WorthRegression, "predict", lambda *given: expect(*given[:2]))
    expected = next_offer(counts, margins, "thompson", seed=1, **options)  # type: ignore[arg-type]
    values = [found.decision.value for found in (greedy, drawn, expected) if found.decision is not None]
    assert abs(values[1] - values[2]) > 0.005
    assert greedy.untried == ("huge",)
    assert str(greedy) == "Offer next: huge\nNever offered before, so this is a test: huge."
    fitted = estimate(counts, attributes=read_attributes(table(SIZES)), method="max-entropy").model.with_items(
        table(CANDIDATES)
    )
    assert values[0] == pytest.approx(1.0 - fitted.predict(("huge", "no"))["no"], abs=0.03)


def test_optimism_favours_what_is_not_known(counts: ChoiceCounts) -> None:
    assert tried(counts, how="ucb", redraws=2, optimism=3.0)[0] == ("huge",)


def test_first_offers_may_have_candidates() -> None:
    empty = ChoiceCounts(Assortments([("a", "b", "no")]))
    found = next_offer(empty, 1.0, attributes=table(SIZES), at_least=6, no_choice="no")
    assert found.untried == ("c", "d", "e", "f")


def test_attributes_need_maximum_entropy(counts: ChoiceCounts) -> None:
    with pytest.raises(ValueError, match="Attributes need the method 'max-entropy', not 'mnl'"):
        tried(counts, method="mnl")


def test_a_decision_about_candidates_has_intervals(counts: ChoiceCounts) -> None:
    fit = estimate(counts, attributes=read_attributes(table(SIZES)), method="max-entropy")
    wide = fit.model.with_items(table(CANDIDATES))
    margins = dict.fromkeys([*SIZES, *CANDIDATES], 1.0)
    new = best_offer(wide, margins, at_most=1, must=["huge"], counts=counts, no_choice="no", budget=60.0)
    old = best_offer(wide, margins, at_most=1, must=["f"], counts=counts, no_choice="no", budget=60.0)
    assert new.interval is not None
    assert old.interval is not None
    assert new.interval[1] - new.interval[0] > 1.2 * (old.interval[1] - old.interval[0])
    many = Bootstrap(counts, "max-entropy", 20, model=fit.model).with_items(table(CANDIDATES))
    again = best_offer(wide, margins, at_most=1, must=["huge"], counts=many, no_choice="no")
    assert again.interval == pytest.approx(new.interval, abs=0.1)
