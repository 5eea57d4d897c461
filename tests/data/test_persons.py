"""A column of persons: groups of them in counts, folds and replicates that keep a person's choices together."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rankstream import Bootstrap, ChoiceCounts, compare, drift_report, estimate_many, read, read_counts
from rankstream.data.observations import observed, restrict, splits
from rankstream.data.readers.groups import PERSON_GROUPS, person_group
from shell import run

pytestmark = pytest.mark.quick
OFFERS = ("tea;pie", "tea;cake", "pie;cake")


def records(persons: int, choices: int, habit: float, seed: int = 0) -> pd.DataFrame:
    """Choices of persons who take the first item of an offer with a probability of their own, or all with a half."""
    random = np.random.default_rng(seed)
    rows = []
    for person in range(persons):
        often = random.choice([0.5 - habit, 0.5 + habit])
        for number in range(choices):
            offer = OFFERS[number % len(OFFERS)]
            rows.append(
                {"who": f"p{person}", "offered": offer, "chosen": offer.split(";")[int(random.random() > often)]}
            )
    return pd.DataFrame(rows)


def by_person(table: Any, **options: Any) -> ChoiceCounts:
    return read_counts(table, columns={"person": "who"}, **options)


def test_groups_of_persons_add_up_to_all_choices() -> None:
    table = records(30, 4, 0.3)
    counts = by_person(table)
    assert counts.persons is not None
    assert counts.persons.sum(axis=0).tolist() == counts.tallies.tolist() == read_counts(table).tallies.tolist()
    groups = table["who"].map(person_group)
    assert len(counts.persons) == groups.nunique() < PERSON_GROUPS
    assert sorted(counts.persons.sum(axis=1)) == sorted(groups.value_counts())
    assert read_counts(table).persons is None


def test_both_ways_of_reading_deal_persons_alike(tmp_path: Path) -> None:
    table = records(20, 3, 0.3)
    table.to_csv(tmp_path / "good.csv", index=False)
    (tmp_path / "bad.csv").write_text((tmp_path / "good.csv").read_text() + "p1,tea;pie,gin\n,tea;pie,tea\n")
    good, bad = (by_person(tmp_path / name, on_error="skip") for name in ("good.csv", "bad.csv"))
    assert np.array_equal(good.persons, bad.persons)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="line 62: the choice 'gin'"):
        by_person(tmp_path / "bad.csv")
    (tmp_path / "bad.csv").write_text((tmp_path / "good.csv").read_text() + ",tea;pie,tea\n")
    with pytest.raises(ValueError, match="line 62: the person has no id: add one"):
        by_person(tmp_path / "bad.csv")


def test_a_long_table_and_groups_of_a_column_have_persons_too() -> None:
    rows = [
        {
            "obs": number,
            "item": item,
            "chosen": int(item == chosen),
            "who": number // 2,
            "store": "x" if number < 6 else "y",
        }
        for number, chosen in enumerate(("tea", "pie", "tea", "tea", "pie", "tea", "tea", "pie"))
        for item in ("tea", "pie")
    ]
    found = read(pd.DataFrame(rows), columns="person=who", by="store")
    assert found.groups["x"].tallies.tolist() == [2.0, 4.0]
    assert found.counts.persons is not None
    assert found.counts.persons.sum(axis=1).tolist() == [2.0] * 4
    assert found.groups["x"].persons is None
    part = read(pd.DataFrame(rows), columns="person=who", where={"store": "x"}).counts
    assert part.persons is not None
    assert part.persons.sum(axis=0).tolist() == [2.0, 4.0]


def test_new_choices_and_parts_of_the_offers() -> None:
    counts = by_person(records(30, 4, 0.3))
    some = observed(restrict(counts, [2, 0]))
    assert some.persons is not None
    assert some.persons.sum(axis=0).tolist() == some.tallies.tolist()
    for number in (1, 2):
        counts = by_person(records(30, 4, 0.3))
        counts.observe(("tea", "pie"), "tea", number)
        assert counts.persons is None  # nobody knows who made it


def test_no_person_is_on_both_sides_of_a_fold() -> None:
    table = pd.DataFrame([{"who": n, "offered": f"a{n};b{n}", "chosen": f"a{n}"} for n in range(40) for _ in range(3)])
    parts = splits(by_person(table), "person", folds=4, seed=3)
    assert sum(tested.observations for _, tested in parts) == 120
    for fitted, tested in parts:
        assert not set(fitted.assortments.offers) & set(tested.assortments.offers)
        assert fitted.observations + tested.observations == 120
    other = splits(by_person(table), "person", folds=4, seed=4)
    assert set(other[0][1].assortments.offers) != set(parts[0][1].assortments.offers)


def test_intervals_are_as_wide_as_the_choices_of_a_person_are_alike() -> None:
    def width(counts: ChoiceCounts) -> float:
        share = Bootstrap(counts, "mnl", 60).predict(("tea", "pie"))["tea"]
        return share.high - share.low

    for habit, least, most in ((0.0, 0.7, 1.4), (0.5, 2.5, 4.5)):  # 12 choices of a person are worth 12, or one
        table = records(100, 36, habit)
        table = table[table["offered"] == "tea;pie"]
        assert least < width(by_person(table)) / width(read_counts(table)) < most
    table = records(100, 12, 0.5)
    assert Bootstrap(by_person(table), "mnl", 5).models[0].predict(("tea", "pie"))["tea"] != pytest.approx(
        Bootstrap(by_person(table), "mnl", 5, seed=1).models[0].predict(("tea", "pie"))["tea"]
    )


def test_other_persons_are_no_change_of_tastes() -> None:
    """Twelve choices of a person are alike; without persons, drift takes that for a change."""
    alarms = {"persons": 0, "choices": 0}
    for seed in range(20):
        before, after = (records(40, 30, 0.45, 2 * seed + late) for late in (0, 1))
        for kind, count in (("persons", by_person), ("choices", read_counts)):
            alarms[kind] += drift_report(count(before), count(after)).changed
    assert alarms["choices"] >= 8
    assert alarms["persons"] <= 3
    late = records(40, 12, 0.0).assign(chosen=lambda rows: rows["offered"].str.split(";").str[0])
    assert drift_report(by_person(before), by_person(late)).changed
    both = by_person(before)
    again = drift_report(both, by_person(pd.concat([before, after])), cumulative=True)
    assert sum(movement.before for movement in again.movements) < 0.5 * both.observations


def test_what_needs_persons_says_so(tmp_path: Path) -> None:
    table = records(20, 3, 0.3)
    with pytest.raises(ValueError, match="needs to know who chose: read them with columns='person="):
        compare(read_counts(table), ["mnl"], holdout="person")
    with pytest.raises(ValueError, match="There are 5 folds but only 1 groups of persons: ask for fewer folds"):
        compare(by_person(records(2, 3, 0.3)), ["mnl"], holdout="person")
    with pytest.raises(ValueError, match="Choices that fade have no persons"):
        by_person(table.assign(time=1), half_life=3)
    with pytest.raises(ValueError, match="Many markets do not use a column of persons"):
        estimate_many(table.assign(store="x"), "store", columns="person=who", out=tmp_path / "models")


def test_compare_by_person_at_the_shell(tmp_path: Path) -> None:
    records(60, 6, 0.3).to_csv(tmp_path / "c.csv", index=False)
    words = ("compare", str(tmp_path / "c.csv"), "--models", "mnl", "--holdout", "person")
    found = run(*words, "--columns", "person=who", cwd=tmp_path)
    assert "5 folds, persons held out, 360 choices" in found.stdout
    assert "--columns person=YOUR_COLUMN" in run(*words, cwd=tmp_path).stderr
