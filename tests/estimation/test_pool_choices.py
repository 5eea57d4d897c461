"""Which markets a pool is of, which offers it uses, and how its weight is chosen: without any fit."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rankstream import Assortments, ChoiceCounts
from rankstream.estimation.many import pooling
from rankstream.estimation.many.markets import digest_of, seed_of
from rankstream.estimation.many.pooling import NodePool, Pools
from rankstream.models.entropy.ranking_laws import plackett_luce

pytestmark = pytest.mark.quick
LAWS = tuple(plackett_luce(["tea", "no"], [float(number), 1.0]) for number in (1, 2, 3))


class Tallies:
    """Tallies of some markets; a count is the tally itself."""

    by = ("city", "store")

    def __init__(self, **cities: dict[str, dict[str, float]]) -> None:
        self.cities = cities

    def tallies(self) -> Iterator[tuple[tuple[str, str], dict[str, float]]]:
        for city, stores in self.cities.items():
            for store, tally in stores.items():
                yield (city, store), tally

    def count(self, tally: dict[str, float]) -> dict[str, float]:
        return tally


def test_groups_leave_their_own_markets_out() -> None:
    markets: Any = Tallies(**{f"c{n}": {"a": {"x": 2.0**n}, "b": {"x": 2.0**n, "y": 1.0}} for n in range(6)})
    found: Any = pooling._nodes(markets, 0)
    ((node, groups, without, total),) = found
    assert node == ()
    order = sorted((f"c{n}" for n in range(6)), key=digest_of)
    assert groups == {city: place % 4 for place, city in enumerate(order)}
    assert total == {"x": 2.0 * 63, "y": 6.0}
    assert len(without) == 4
    for group, tally in enumerate(without):
        others = [city for city in groups if groups[city] != group]
        assert tally == {"x": sum(2.0 * 2 ** int(city[1]) for city in others), "y": float(len(others))}


def test_only_nodes_with_several_children_have_a_pool() -> None:
    markets: Any = Tallies(one={"a": {"x": 1.0}}, two={"a": {"x": 1.0}, "b": {"x": 2.0}})
    found: Any = pooling._nodes(markets, 1)
    ((node, groups, without, total),) = found
    assert (node, sorted(groups.values()), total) == (("two",), [0, 1], {"x": 3.0})
    assert {child: without[group]["x"] for child, group in groups.items()} == {"a": 2.0, "b": 1.0}


def test_a_new_market_gets_a_group_by_its_name() -> None:
    pool = NodePool(LAWS, {"York": 2})
    assert pool.law("York") is LAWS[2]
    for name in ("Bath", "Ely", "Hull"):
        assert pool.law(name) is LAWS[int(digest_of(name)[:7], 16) % 3]


def test_a_level_below_all_weights_has_that_of_the_last() -> None:
    pools = Pools({(): NodePool(LAWS[:1], {})}, (2.0, 20.0))
    found = [pools.guide(key) for key in (("a",), ("a", "b"), ("a", "b", "c"))]
    assert [guide.before for guide in found if guide is not None] == [2.0, 20.0, 20.0]
    assert pools.digest(found[0]) == f"{digest_of(pooling._content(LAWS[0]))} 2.0"
    assert pools.digest(found[1]).endswith(" 20.0")


def test_pools_are_saved_whole(tmp_path: Any) -> None:
    pools = Pools({(): NodePool(LAWS[:2], {"York": 1}), ("York",): NodePool(LAWS[2:], {"x": 0})}, (2.0, 5.0), "hash")
    pools.save(tmp_path / "pool.json")
    again = Pools.load(tmp_path / "pool.json")
    assert (again.before, again.data, list(again.nodes)) == ((2.0, 5.0), "hash", [(), ("York",)])
    assert again.nodes[()].groups == {"York": 1}
    assert pooling._content(again.nodes["York",].laws[0]) == pooling._content(LAWS[2])
    with pytest.raises(ValueError, match=r"no pool .* to reuse"):
        Pools.load(tmp_path / "absent.json")
    for text in ("{", "{}", '{"before": 1, "data": "", "nodes": []}', '{"before": [], "data": "", "nodes": [{}]}'):
        (tmp_path / "pool.json").write_text(text)
        with pytest.raises(ValueError, match="is damaged"):
            Pools.load(tmp_path / "pool.json")


def test_a_pool_uses_the_offers_with_the_most_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = Assortments([("a", "b"), ("c", "b"), ("a", "b", "d"), ("e", "b")])
    counts = ChoiceCounts(offers, [1, 1, 4, 4, 2, 2, 1, 0, 0])
    for most, kept, items in (
        (4, [("c", "b")], ("b", "c")),
        (5, [("c", "b"), ("a", "b", "d")], tuple("abcd")),
        (1, [("c", "b")], ("b", "c")),
    ):
        monkeypatch.setattr(pooling, "MOST_COORDINATES", most)
        found = pooling._largest(counts)
        assert list(found.assortments.offers) == kept
        assert found.assortments.items == items
        assert found.tallies.tolist() == [4.0, 4.0, 2.0, 2.0, 1.0][: found.tallies.size]


def test_an_order_is_that_of_the_items_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = Assortments([("t3", "n"), ("t5", "n"), ("t4", "n")], order=[("t3", "t4"), ("t4", "t5")])
    monkeypatch.setattr(pooling, "MOST_COORDINATES", 4)
    found = pooling._largest(ChoiceCounts(offers, [9, 1, 8, 1, 1, 1]))
    assert set(found.assortments.order) == {("t3", "t5")}


def weight(
    monkeypatch: pytest.MonkeyPatch, scores: list[list[float]], n_offers: int = 5, number: int = 12
) -> tuple[float, list[Any]]:
    """The weight that is chosen where markets have these scores, and which were asked."""
    asked: list[Any] = []

    def parallel(_: Any, given: list[Any], __: int) -> list[list[float]]:
        asked.extend(given)
        return [scores[place % len(scores)] for place in range(len(given))]

    monkeypatch.setattr(pooling, "in_parallel", parallel)
    offers = Assortments([(item, "no") for item in range(n_offers)])
    counts = ChoiceCounts(offers, [1] * (2 * n_offers))
    pools: Any = SimpleNamespace(guide=lambda key: None if key == ("none",) else f"pool of {key[0]}")
    samples: list[Any] = [((f"m{place}",), counts) for place in range(number)] + [(("none",), counts)]
    return pooling._choose(samples, pools, 3, 1), asked


def test_the_weight_is_that_of_the_best_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    assert weight(monkeypatch, [[0.0, 1.0, 5.0, 0.0], [9.0, 1.0, 5.0, 0.0]])[0] == 10.0
    assert weight(monkeypatch, [[0.0, 1.0, 5.0, 5.5]])[0] == 20.0
    assert weight(monkeypatch, [[0.0, 1.0, 0.5, 0.0]])[0] == 5.0
    assert weight(monkeypatch, [[2.0, 1.0, 0.5, 0.0]])[0] == 2.0


def test_twelve_markets_with_five_offers_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    _, asked = weight(monkeypatch, [[0.0, 1.0, 5.0, 0.0]], number=20)
    order = sorted((f"m{place}" for place in range(20)), key=lambda name: digest_of([name]))
    assert [guide for _, guide, _ in asked] == [f"pool of {name}" for name in order[:12]]
    assert asked[0][2] == seed_of((order[0],), 3)
    assert weight(monkeypatch, [[9.0, 1.0, 5.0, 0.0]], n_offers=4) == (5.0, [])


def test_offers_that_nobody_saw_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = Assortments([(item, "no") for item in range(5)])
    monkeypatch.setattr(pooling, "in_parallel", lambda *_: [[9.0, 0.0, 0.0, 0.0]])
    pools: Any = SimpleNamespace(guide=lambda _: "pool")
    assert pooling._choose([(("m",), ChoiceCounts(offers, [1] * 8 + [0, 0]))], pools, 0, 1) == 5.0
    assert pooling._choose([(("m",), ChoiceCounts(offers, [1] * 8 + [0, 1]))], pools, 0, 1) == 2.0


def test_scores_are_by_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = ChoiceCounts(Assortments([("a", "b")]), [3, 5])
    monkeypatch.setattr(pooling, "guides_with", lambda *_: ("guides",))
    monkeypatch.setattr(pooling, "guides_for", lambda _, guides: guides)
    monkeypatch.setattr(pooling, "fit_stack", lambda *given: SimpleNamespace(folds=given[1:]))
    seen: list[Any] = []

    def score(*given: Any) -> Any:
        seen.append(given)
        return np.array([8.0, 16.0, 4.0, 0.0])

    monkeypatch.setattr(pooling, "score_pool", score)
    guide: Any = "pool"
    assert pooling._score((counts, guide, 7)) == [1.0, 2.0, 0.5, 0.0]
    assert seen == [((("guides",), 7), ("guides",), (2.0, 5.0, 10.0, 20.0))]
