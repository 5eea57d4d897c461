import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from rankstream import Assortments, ChoiceCounts
from rankstream.data.counts import MAX_OBSERVATIONS, SHORT_BATCH

pytestmark = pytest.mark.quick

OFFERS = Assortments([("tea", "cake", "nothing"), ("pie", "nothing")])


def test_records_one_by_one_and_in_batches_count_the_same() -> None:
    single, batch = ChoiceCounts(OFFERS), ChoiceCounts(OFFERS)
    offered = [("tea", "cake", "nothing"), ("nothing", "pie"), ("cake", "tea", "nothing")]
    chosen = ["tea", "pie", "nothing"]
    for offer, choice, count in zip(offered, chosen, [2, 3, 4], strict=True):
        single.observe(offered=offer, chosen=choice, count=count)
    batch.observe(offered=offered, chosen=chosen, count=[2, 3, 4])
    assert single.tallies.tolist() == batch.tallies.tolist() == [2, 0, 4, 3, 0]
    assert single.totals.tolist() == [6, 3]
    assert single.observations == 9
    assert single.frequencies() == pytest.approx([1 / 3, 0, 2 / 3, 1, 0])


def test_offers_not_seen_have_no_frequency() -> None:
    counts = ChoiceCounts(OFFERS)
    counts.observe(("nothing", "pie"), "pie")
    assert np.isnan(counts.frequencies()).tolist() == [True, True, True, False, False]
    seen = counts.target().seen
    assert seen is not None
    assert seen.tolist() == [False, False, False, True, True]


def test_tuple_labels_are_items_not_batches() -> None:
    counts = ChoiceCounts(Assortments([(("a", 1), ("b", 2))]))
    counts.observe(offered=(("a", 1), ("b", 2)), chosen=("a", 1))
    assert counts.tallies.tolist() == [1, 0]


@given(strategies.assortments(), st.lists(st.integers(0, 2**32 - 1), min_size=3, max_size=3))
def test_merging_is_associative_and_commutative(offers: Assortments, seeds: list[int]) -> None:
    a, b, c = (
        ChoiceCounts(offers, np.random.default_rng(seed).integers(0, 99, size=offers.n_coordinates)) for seed in seeds
    )
    assert ((a + b) + c).tallies.tolist() == (a + (b + c)).tallies.tolist()
    assert (a + b).totals.tolist() == (b + a).totals.tolist()
    assert (a + b).observations == a.observations + b.observations


def test_copies_and_extensions_go_their_own_way() -> None:
    counts = ChoiceCounts(OFFERS, [1, 2, 3, 4, 5])
    larger = counts.extend([("tea", "pie")])
    other = counts.copy()
    counts.observe(("pie", "nothing"), "pie")
    assert other.tallies.tolist() == [1, 2, 3, 4, 5]
    assert larger.tallies.tolist() == [1, 2, 3, 4, 5, 0, 0]
    assert repr(other) == "ChoiceCounts(15 choices from 2 offers)"


def test_huge_and_fractional_counts_are_kept() -> None:
    counts = ChoiceCounts(OFFERS)
    counts.observe(("pie", "nothing"), "pie", count=10**9)
    assert counts.observations == 10**9
    counts.observe(("pie", "nothing"), "pie", count=0.5)
    assert counts.observations == 10**9 + 0.5


@pytest.mark.parametrize(
    ("offered", "chosen", "count", "message"),
    [
        (("pie", "nothing"), "tea", 1, "choice 'tea' is not in its offer"),
        (("pie", "nothing"), "rum", 1, "Unknown item 'rum'"),
        (("pie", "rum"), "pie", 1, "Unknown item 'rum'"),
        (("tea", "pie"), "pie", 1, "not among the 2 assortments"),
        ((), "pie", 1, "The offer is empty"),
        (("pie", "nothing"), "pie", -1, "count -1.0 is not"),
        (("pie", "nothing"), "pie", float("nan"), "count nan is not"),
        (("pie", "nothing"), "pie", "many", "count 'many' is not a number"),
        (("pie", "nothing"), "pie", 1e308, "too many to count"),
        ("pie", "pie", 1, "The offer is 'pie': give a tuple"),
        ([("pie", "nothing")] * 2, ["pie", "tea"], 1, "Record 1: The choice 'tea'"),
        ([("pie", "nothing")] * 2, ["pie"], 1, "2 offers but 1 choices"),
        ([("pie", "nothing")] * 2, ["pie", "pie"], [1, 2, 3], "2 records but counts of shape"),
    ],
)
def test_bad_records_change_nothing(offered: object, chosen: object, count: object, message: str) -> None:
    counts = ChoiceCounts(OFFERS)
    with pytest.raises(ValueError, match=message):
        counts.observe(offered, chosen, count)
    assert counts.observations == 0


def test_other_assortments_and_coordinates_are_refused() -> None:
    with pytest.raises(ValueError, match="different assortments"):
        ChoiceCounts(OFFERS) + ChoiceCounts(Assortments([("a", "b")]))
    with pytest.raises(ValueError, match="between 0 and 4; got 5"):
        ChoiceCounts(OFFERS).observe_coordinates([5])
    with pytest.raises(TypeError):
        ChoiceCounts(OFFERS) + 1  # type: ignore[operator]


@given(strategies.assortments(), st.data())
def test_short_batches_count_as_weighted_ones_do(offers: Assortments, data: st.DataObject) -> None:
    where = data.draw(st.lists(st.integers(0, offers.n_coordinates - 1), max_size=20))
    short, weighted = ChoiceCounts(offers), ChoiceCounts(offers)
    short.observe_coordinates(np.array(where, dtype=np.int64))
    weighted.observe_coordinates(np.array(where, dtype=np.int64), np.ones(len(where)))
    assert short.tallies.tolist() == weighted.tallies.tolist()
    assert short.totals.tolist() == weighted.totals.tolist()


def test_offers_of_any_kind_count_the_same() -> None:
    counts = ChoiceCounts(OFFERS)
    counts.observe([["pie", "nothing"], frozenset(["nothing", "pie"])], ["pie", "pie"])
    counts.observe([("nothing", "pie"), (item for item in ("pie", "nothing"))], np.array(["pie", "nothing"]))
    assert counts.tallies.tolist() == [0, 0, 0, 3, 1]
    for wrong in (-1, 5):
        with pytest.raises(ValueError, match="must lie between 0 and 4"):
            counts.observe_coordinates(np.array([0, wrong]))


@pytest.mark.parametrize("records", [2, SHORT_BATCH])
@pytest.mark.parametrize("count", [1, 1.0])
def test_counts_end_where_one_more_would_be_lost(records: int, count: float) -> None:
    counts = ChoiceCounts(OFFERS, [0, 0, 0, MAX_OBSERVATIONS - 2 * records - 1, 0])
    counts.observe_coordinates([3] * records, count)
    assert counts.observations == MAX_OBSERVATIONS - records - 1
    for where in ([3] * (records + 1), [0] * (records + 2)):
        with pytest.raises(ValueError, match=f"{len(where)} more observations are too many to count exactly"):
            counts.observe_coordinates(where, count)
    assert counts.observations == MAX_OBSERVATIONS - records - 1
    counts.observe_coordinates([3] * records, count)
    assert counts.observations == MAX_OBSERVATIONS - 1
