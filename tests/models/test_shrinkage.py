"""Predictions for offers that were seen: the model, moved toward what was chosen there."""

from pathlib import Path

import numpy as np
import pytest

import rankstream as rs
from rankstream import Assortments, ChoiceCounts
from rankstream.models.shrinkage import choose_strength, shrink, tally_facts

pytestmark = pytest.mark.quick
OFFERS = Assortments([("a", "b", "no"), ("a", "no"), ("b", "no")])


def decoyed(choices: int) -> ChoiceCounts:
    """Choices that no ranking model explains: a is taken more often where b is there, too."""
    return ChoiceCounts(OFFERS, (choices * np.array([0.7, 0.1, 0.2, 0.3, 0.7, 0.5, 0.5])).round())


def test_what_no_ranking_explains_is_followed_as_far_as_seen() -> None:
    counts = decoyed(1000)
    model = rs.estimate(counts, method="mnl").model
    seen = model.predict(("a", "no"), seen="shrink")
    assert abs(seen["a"] - 0.3) < 0.01 < abs(model.predict(("a", "no"))["a"] - 0.3)
    assert sum(seen.values()) == pytest.approx(1.0)
    assert list(model.predict(("no", "a"), seen="shrink").items()) == [("no", seen["no"]), ("a", seen["a"])]
    assert model.predict(("a", "b"), forced=True, seen="shrink") == model.predict(("a", "b"), forced=True)  # unseen


def test_a_model_that_fits_is_left_as_it_is() -> None:
    random, logit = np.random.default_rng(3), np.array([3.0, 1.0, 2.0])
    shares = np.concatenate([logit[codes] / logit[codes].sum() for codes in ([0, 1, 2], [0, 2], [1, 2])])
    sizes = np.repeat([500, 500, 500], [3, 2, 2])
    tallies = np.concatenate([random.multinomial(500, part) for part in np.split(shares, [3, 5])])
    assert choose_strength(shares, ChoiceCounts(OFFERS, tallies)) > 500
    assert choose_strength(shares, ChoiceCounts(OFFERS, np.roll(shares, 1).round(2) * sizes)) < 50


def test_the_strength_is_the_likeliest_of_choices_left_out_one_by_one() -> None:
    counts = ChoiceCounts(OFFERS, [3.0, 1.0, 2.0, 0.0, 4.0, 2.0, 2.0])
    shares = np.array([0.4, 0.3, 0.3, 0.5, 0.5, 0.6, 0.4])

    def left_out(strength: float) -> float:
        total = 0.0
        for place in np.flatnonzero(counts.tallies).tolist():
            row = np.flatnonzero(OFFERS.owner == OFFERS.owner[place])
            rest = counts.tallies[row] - (row == place)
            moved = shrink(shares[row], rest, strength)
            total += counts.tallies[place] * np.log(moved[row == place][0])
        return total

    best = choose_strength(shares, counts)
    assert all(left_out(best) >= left_out(other) - 1e-9 for other in np.geomspace(1.0, 1e6, 61).tolist())


def test_a_file_keeps_the_tallies_and_a_new_name_changes_nothing(tmp_path: Path) -> None:
    model = rs.estimate(decoyed(400), method="mnl").model
    model.save(tmp_path / "model.json")
    shares = model.predict(("a", "b", "no"), seen="shrink")
    assert rs.load_model(tmp_path / "model.json").predict(("a", "b", "no"), seen="shrink") == shares
    renamed = model.relabel(["tea", "pie", "none"]).predict(("tea", "pie", "none"), seen="shrink")
    assert list(renamed.values()) == list(shares.values())


def test_what_cannot_be_shrunk_says_so() -> None:
    model = rs.RankingModel(["a", "no"], [("a", "no")], [1.0])
    with pytest.raises(ValueError, match="has no tallies for seen='shrink'"):
        model.predict(("a", "no"), seen="shrink")
    with pytest.raises(ValueError, match="choose 'model' or 'shrink'"):
        model.predict(("a", "no"), seen="both")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not prices"):
        model.predict({"a": 3.5}, seen="shrink")
    assert tally_facts(model, ChoiceCounts(OFFERS)) == {}


@pytest.mark.slow
def test_a_comparison_on_choices_shows_both() -> None:
    table = rs.compare(decoyed(300), ["max-entropy", "mnl"], holdout="choices", folds=2)
    scores = {row.name: row.mean("log_likelihood") for row in table.rows}
    assert scores["max-entropy, shrunk"] > scores["max-entropy"] + 0.005
    assert "max-entropy, shrunk" not in {row.name for row in rs.compare(decoyed(300), ["max-entropy"], folds=2).rows}
