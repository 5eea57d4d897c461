"""Ballots, groups, the item for no choice, and shares of people who left."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankstream import Assortments, ChoiceCounts, with_outside
from rankstream.data.readers import read, read_counts, results
from rankstream.data.readers.results import choices_from_ballots
from reader_tables import BALLOTS, expected, long, transactions


def test_no_choice_and_items() -> None:
    frame = pd.DataFrame({"offered": ["b;a", "a"], "chosen": ["a", None]})
    counts = read_counts(frame, no_choice="none")
    assert counts.assortments.items == ("a", "b", "none")
    assert counts.assortments.offers == (("a", "none"), ("a", "b", "none"))
    assert counts.tallies.tolist() == [0, 1, 1, 0, 0]
    assert read_counts(frame, no_choice="none", items=["b", "a", "c"]).assortments.items == ("b", "a", "c", "none")


def test_groups_periods_and_parts(tmp_path: Path) -> None:
    frame = transactions().assign(
        store=["x", "y", "x", "y", "x"],
        time=["2024-01-31 23:00:00", "2024-02-01", "2024-02-01T10:00:00", "2024-02-03 01:00:00", "2024-02-05 01:00:00"],
    )
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    with path.open("a") as file:
        file.write("a;b,zzz,x,2024-02-05\n")
    for source, options in ((frame, {}), (path, {"on_error": "skip"})):

        def sizes(source: Any = source, options: Any = options, **split: Any) -> dict[Any, float]:
            return {key: counts.observations for key, counts in read(source, **options, **split).groups.items()}

        assert sizes(by="store") == {"x": 3, "y": 2}
        assert sizes(by=["store", "chosen"])["x", "tea"] == 2
        assert sizes(period="month") == {"2024-01": 1, "2024-02": 4}
        assert sizes(period="week") == {"2024-01-29": 4, "2024-02-05": 1}
        assert sizes(period="hour")["2024-02-01 10:00"] == 1
    assert read(long().assign(store="x"), by="store").groups["x"].observations == 5
    for zoned in ("2024-02-01T23:30:00-02:00", pd.Timestamp("2024-02-02 08:30", tz="Asia/Tokyo").tz_convert("UTC")):
        assert list(read(frame.assign(time=zoned), period="hour").groups) == [
            "2024-02-02 01:00" if isinstance(zoned, str) else "2024-02-01 23:00"
        ]
    slow = pd.concat([frame.assign(time="2024-02-01T23:30:00-02:00"), frame[:1].assign(chosen="zzz")])
    assert list(read(slow, period="hour", on_error="skip").groups) == ["2024-02-02 01:00"]
    with pytest.raises(ValueError, match="row 0: the time 'noon' is not of the form"):
        read(frame.assign(time="noon"), period="day")


def test_preflib(tmp_path: Path) -> None:
    path = tmp_path / "votes.toi"
    path.write_text(BALLOTS)
    reading = read(path)
    assert (reading.format, reading.rows) == ("rankings", 3)
    found = {
        (offer, item): reading.counts.tallies[reading.counts.assortments.coordinate(offer, item)]
        for offer in reading.counts.assortments.offers
        for item in offer
    }
    pair = ("bob", "cid", "nobody further")
    assert [found[pair, item] for item in pair] == [5, 4, 0]
    pair = ("ann", "bob", "nobody further")
    assert [found[pair, item] for item in pair] == [4, 2, 3]
    table = pd.DataFrame({"ranking": ["ann>bob>cid", "bob = cid > ann", "cid"], "count": [4, 2, 3]})
    assert read_counts(table).tallies.tolist() == reading.counts.tallies.tolist()
    assert read_counts(path, ties="skip").totals.tolist() == [9, 9, 7]
    assert read_counts(path, offers="all").assortments.n_offers == 4


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("5: 1,4", "line 9: the alternative '4' is not among the 3"),
        ("5: 1,1", "line 9: the ranking .* lists a candidate twice"),
        ("x: 1", "line 9: the count 'x'"),
        ("1,2", "line 9: the count ''"),
        ("5: 1,{2", "line 9: the ballot '1,{2' is not of the form"),
        ("5:", "line 9: the ballot '' is not of the form"),
        ("5: {}", "line 9: the ranking is empty"),
        ("# NUMBER ALTERNATIVES: many", "the number of alternatives is 'many'"),
        ("# ALTERNATIVE NAME 2: ann", "the name 'ann' is empty or used twice"),
    ],
)
def test_wrong_ballots(line: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "votes.soc"
    path.write_text(f"{BALLOTS}{line}\n")
    with pytest.raises(ValueError, match=words):
        read(path)
    path.write_text("3\n1,ann\n")
    with pytest.raises(ValueError, match=r"no '# NUMBER ALTERNATIVES"):
        read(path)


def test_alternatives_called_by_the_codes_of_others(tmp_path: Path) -> None:
    path, names = tmp_path / "votes.soi", "# ALTERNATIVE NAME 1: 2\n# ALTERNATIVE NAME 2: 1\n"
    path.write_text(f"# NUMBER ALTERNATIVES: 2\n{names}3: 1\n1: 2\n")
    assert read_counts(path).tallies.tolist() == [1, 3, 0]
    path.write_text(f"# NUMBER ALTERNATIVES: 2\n{names[:24]}3: 1\n1: 2\n")
    with pytest.raises(
        ValueError, match="line 3: the alternative 1 is called '2', like another one: rename one of them"
    ):
        read(path)


@pytest.mark.parametrize(
    ("rankings", "options", "words"),
    [
        (["a>b"], {"ties": "flip"}, "ties is 'flip'"),
        (["a>b", "a"], {"nobody": "b"}, "'b' is also the label for an exhausted ballot"),
        (["a"], {}, "There is only the candidate 'a'"),
        (["a>b"], {"offers": "some"}, "offers is 'some'"),
        ([">".join("abcdefghijklm")], {"offers": "all"}, "All subsets of 13 candidates are too many"),
        (["a>b"], {"offers": [("a", "x")]}, "An offer contains 'x', who is in no ballot"),
        (["a>b"], {"offers": 3}, "offers is 3: it must be 'pairs', 'all', or a list of offers"),
    ],
)
def test_wrong_options_of_ballots(rankings: list[str], options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read(pd.DataFrame({"ranking": rankings}), **options)


@given(st.lists(st.permutations("abcd"), min_size=1, max_size=8))
def test_complete_ballots_choose_their_best(orders: list[list[str]]) -> None:
    votes: dict[Any, float] = {}
    for best_first in orders:
        ballot = tuple((name,) for name in best_first)
        votes[ballot] = votes.get(ballot, 0.0) + 1.0
    counts = choices_from_ballots({"": votes}, items="abcd", offers="all")[""]
    wanted = ChoiceCounts(counts.assortments)
    for offer in counts.assortments.offers:
        for best_first in orders:
            wanted.observe(offer, next(name for name in best_first if name in offer))
    assert counts.tallies.tolist() == pytest.approx(wanted.tallies.tolist())


def test_an_assumed_outside_share() -> None:
    counts = read_counts(transactions(), outside_share=0.5)
    assert counts.assortments.items[-1] == "no choice"
    assert counts.observations == 10
    assert counts.frequencies()[[2, 5, 9]].tolist() == [0.5] * 3
    before = expected()
    shares = {offer: 0.25 * number for number, offer in enumerate(before.assortments.offers)}
    assert with_outside(before, shares).frequencies()[[2, 5, 9]] == pytest.approx([0.0, 0.25, 0.5])
    assert with_outside(counts, 0.9, "no choice").tallies.tolist() == counts.tallies.tolist()
    with pytest.raises(ValueError, match="There is no share for the offer"):
        with_outside(before, {})
    with pytest.raises(ValueError, match="The share is 1"):
        with_outside(before, 1)


@pytest.mark.parametrize("ties", ["split", "skip"])
@pytest.mark.parametrize("cells", [1, 10**6])
def test_tallies_of_ballots_one_by_one(ties: str, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best of an offer gets the votes; several that tie share them, or nobody gets them."""
    monkeypatch.setattr(results, "MAX_BALLOT_CELLS", cells)
    names = ("a", "b", "c", "d", "nobody")
    offers = Assortments([("a", "b", "nobody"), ("b", "c"), ("a", "c", "d", "nobody"), ("c", "d", "nobody")], names)
    votes: dict[Any, float] = {
        (("a",), ("b", "c")): 2.0, (("c", "d"),): 5.0, (("b",), ("a",), ("d",)): 0.5, (("d", "a", "b"), ("c",)): 8.0,
    }  # fmt: skip
    twin = np.zeros(offers.n_coordinates)
    for ballot, weight in votes.items():
        for offer in offers.offers:
            rank: dict[Any, int] = {name: place for place, tier in enumerate(ballot) for name in tier} | {"nobody": 4}
            best = min(rank.get(name, 5) for name in offer)
            winners = [name for name in offer if rank.get(name, 5) == best]
            for name in winners:
                if ties == "split" or len(winners) == 1:
                    twin[offers.coordinate(offer, name)] += weight / len(winners)
    assert results._tallies(offers, votes, ties, 4) == pytest.approx(twin)
