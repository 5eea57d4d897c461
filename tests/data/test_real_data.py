"""The examples on real data, where there are some; on made-up tables of the same columns everywhere."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import eurovision
import rankstream as rs
import real_data
import tricot
from rankstream.data.readers import read_counts
from rankstream.distances import observation_weights
from rankstream.models.parametric.mnl import fit_mnl
from rankstream.streams.live import Live
from strategies import compiled_only

POINTS = (12, 10, 8, 7, 6, 5, 4, 3, 2, 1)


def farmers(seed: int, n_farmers: int = 120) -> pd.DataFrame:
    """A trial of six varieties in gosset's layout of best and worst; worth is 0, 1, 2, ..."""
    random, rows = np.random.default_rng(seed), []
    for _ in range(n_farmers):
        three = random.choice(6, 3, replace=False)
        order = np.argsort(-(three + random.gumbel(size=3)))
        letters = ["ABC"[place] for place in order]
        rows.append([*(f"variety {item}" for item in three), letters[0], letters[2]])
    return pd.DataFrame(rows, columns=["variety_a", "variety_b", "variety_c", "overall_best", "overall_worst"])


def songs(seed: int) -> pd.DataFrame:
    """Six contests of eight out of ten countries, in the columns of the published tables."""
    random, rows = np.random.default_rng(seed), []
    for year in range(1990, 1996):
        singing = random.choice(10, 8, replace=False)
        for voter in singing:
            others = [song for song in singing if song != voter]
            ranked = sorted(others, key=lambda song: -(song + random.gumbel()))
            rows += [(year, "f", f"land {voter}", f"land {song}", POINTS[place]) for place, song in enumerate(ranked)]
        rows.append((year, "sf", "land 0", "land 9", 12))
    return pd.DataFrame(rows, columns=["Year", "(semi-) final", "From country", "To country", "Points"])


def weighted_distance(model: rs.RankingModel, counts: rs.ChoiceCounts) -> float:
    """As certificates have it, but from what the model predicts: l2, with offers weighed by their observations."""
    each = np.array(observation_weights(counts))[counts.assortments.owner]
    apart = model.probabilities(counts.assortments) - counts.frequencies()
    return float(np.sqrt(np.nansum((each * apart) ** 2)))


def test_letters_and_ranks_of_a_trial_mean_the_same_choices() -> None:
    letters = farmers(0)
    rows = [
        (number, name, "overall", place)
        for number, ranking in enumerate(tricot.rankings(letters))
        for place, name in enumerate(ranking, start=1)
    ]
    ranks = pd.DataFrame(rows, columns=["id", "item", "trait", "rank"])
    one, other = tricot.choices(letters), tricot.choices(ranks)
    assert one.assortments == other.assortments
    assert one.tallies.tolist() == other.tallies.tolist()
    assert one.observations == 2 * 120


def test_a_farmer_whose_best_is_the_worst_is_left_out() -> None:
    table = farmers(0, 3)
    letters = table["overall_best"].tolist()
    table["overall_worst"] = [table["overall_worst"][0], letters[1], table["overall_worst"][2]]
    table["overall_best"] = [*letters[:2], None]
    assert len(list(tricot.rankings(table))) == 1
    with pytest.raises(ValueError, match="there must be three varieties, a best and a worst"):
        list(tricot.rankings(table.drop(columns="overall_best")))


@compiled_only
def test_the_trial_example_finds_the_best_varieties(tmp_path: Path) -> None:
    farmers(1).to_csv(tmp_path / "trial.csv", index=False)
    told = tricot.main(str(tmp_path / "trial.csv"))
    assert told.startswith("trial.csv: 240 choices from")
    assert "max-entropy" in told
    assert "If all were offered: variety 5" in told


def test_contests_are_of_finals_and_voters_choose_their_twelve_points() -> None:
    found = list(eurovision.contests(songs(0)))
    assert [year for year, _ in found] == list(range(1990, 1996))
    assert all(len(records) == 8 and len(records[0].offered) == 8 for _, records in found)
    with pytest.raises(ValueError, match="there is none for the points"):
        list(eurovision.contests(songs(0).drop(columns="Points")))


def test_votes_are_held_against_their_own_offer_and_semi_finals_come_first() -> None:
    table = pd.DataFrame(
        {
            "year": [2008, 2008, 2008],
            "round": ["Final", "Semi-Final 2", "Semi-Final 1"],
            "offered": ["a;b", "c;d", "a;c"],
            "chosen": ["a", "d", "c"],
        }
    )
    found = list(eurovision.contests(table))
    assert [records[0].offered for _, records in found] == [("a", "c"), ("c", "d"), ("a", "b")]
    assert {year for year, _ in found} == {2008}


def test_a_trial_is_judged_by_the_overall_answer() -> None:
    answers = {"Yield": (1, 2, 3), "OverallAppreciation": (3, 2, 1)}
    rows = [("f", item, trait, ranks[place]) for trait, ranks in answers.items() for place, item in enumerate("xyz")]
    table = pd.DataFrame(rows, columns=["id", "item", "trait", "rank"])
    assert list(tricot.rankings(table)) == [("z", "y", "x")]


@compiled_only
def test_the_contest_example_streams_with_forgetting(tmp_path: Path) -> None:
    songs(1).to_csv(tmp_path / "votes.csv", index=False)
    told = eurovision.main(str(tmp_path / "votes.csv"), tmp_path)
    first, second, uniform, *_ = told.splitlines()
    assert "than a uniform guess: " in first
    assert first.startswith("No model") == (
        max(map(float, first.split(": ")[1].split()[:1])) <= float(uniform.split()[1])
    )
    assert second == "6 contests, 48 choices, 10 countries"
    assert (tmp_path / "live" / "model.json").exists()
    assert (tmp_path / "eurovision.png").stat().st_size > 5000


@compiled_only
def test_real_trials() -> None:
    words = ("tricot", "breadwheat", "nicabean", "cassava")
    found = [path for word in words for path in real_data.files(word, ".csv", ".csv.gz")]
    if not found:
        pytest.skip(real_data.why_not("tricot trials"))
    for path in dict.fromkeys(found):
        try:
            counts = tricot.choices(pd.read_csv(path))
        except ValueError as error:
            pytest.skip(f"{path.name} is in a layout that the example does not know: {error}")
        nearest = rs.estimate(counts, method=rs.methods.Nearest(gap=1e-2))
        assert nearest.certificate.gap <= 1e-2
        assert nearest.certificate.upper == pytest.approx(weighted_distance(nearest.model, counts))


@compiled_only
def test_the_real_contest_runs_through_the_stream() -> None:
    path = real_data.needed("eurovision", ".csv", ".csv.gz")[0]
    try:
        years = list(eurovision.contests(pd.read_csv(path)))
    except ValueError as error:
        pytest.skip(f"{path.name} is in a layout that the example does not know: {error}")
    live = Live(half_life=200, publish="sparse")
    for _, records in years:
        live.observe(records)
    assert live.records == sum(len(records) for _, records in years)
    assert live.counts is not None
    assert live.certificate.upper == pytest.approx(weighted_distance(live.sparse, live.counts))
    told = live.model.predict(years[-1][1][0].offered)
    assert sum(told.values()) == pytest.approx(1.0)


@pytest.mark.slow
@compiled_only
def test_real_ballots_are_fitted_exactly_and_predicted_better_than_by_a_logit() -> None:
    for path in real_data.needed("Lismore", ".soi", ".soc"):
        candidates = [item for item in read_counts(path).assortments.items if item != "nobody further"][:8]
        menus = list(combinations(candidates, 3))
        learned, others = read_counts(path, offers=menus), read_counts(path, offers="pairs")
        offers = learned.assortments
        nearest = rs.estimate(offers, learned, method=rs.methods.Nearest(gap=1e-4))
        assert nearest.certificate.upper <= 2e-4  # ballots are rankings: a mixture of them fits, ties but for rounding
        dense = rs.estimate(offers, learned, method="max-entropy").model
        truth = others.frequencies()
        errors = [np.abs(m.probabilities(others.assortments) - truth).mean() for m in (dense, fit_mnl(learned))]
        assert errors[0] < 0.5 * errors[1]
