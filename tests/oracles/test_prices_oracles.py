"""Oracles that keep an order, against all rankings that do; and what they answer without one, unchanged."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import naive_prices
import strategies
from milp_oracle import MilpOracle
from rankstream import Assortments, PriceLevels, oracles
from rankstream._core.types import Vec
from rankstream.oracles import Ties
from rankstream.oracles import tie_kernels as kernels
from rankstream.oracles.bounds.cuts import least_cost_bound
from rankstream.oracles.protocol import TIE_RULES, beginnings
from rankstream.oracles.search import local_kernels as search_kernels
from rankstream.oracles.tables import chains

RULES = list[Ties](["first", "last", "random"])
PRICED = PriceLevels({"tea": [3, 4, 5], "pie": [2, 3]})
UNCHANGED = "84b1218989f8c2b1b588f83504d8f1455ae3efe18b5b36bc4040f3a7ded35c98"


def check(offers: Assortments, costs: Vec, answer: oracles.Answer, least: float) -> None:
    assert not offers.order or offers.precedence.respects(answer.ranking).all()
    assert float(costs @ naive.vertex(offers, answer.ranking.tolist())) == pytest.approx(
        answer.value, abs=naive_prices.room(costs)
    )
    assert answer.bound <= least + naive_prices.room(costs)


@strategies.examples(60)
@given(naive_prices.problems(), st.sampled_from(RULES), st.integers(0, 9))
def test_exact_oracles_equal_all_rankings_that_keep_the_order(
    problem: tuple[Assortments, Vec], ties: Ties, seed: int
) -> None:
    offers, costs = problem
    rankings = naive_prices.all_rankings(offers)
    values = naive_prices.all_vertices(offers) @ costs
    least = float(values.min())
    made: list[oracles.Oracle] = [
        oracles.LatticeOracle(offers, ties, seed),
        oracles.ComponentsOracle(offers, oracles.auto, ties, seed),
        oracles.auto(offers, ties, seed),
    ]
    if offers.chains is not None:
        made.append(oracles.ChainOracle(offers, ties, seed))
    for oracle in made:
        answer = oracle.cheapest(costs)
        check(offers, costs, answer, least)
        assert answer.exact
        assert answer.value == pytest.approx(least, abs=naive_prices.room(costs))
        if isinstance(oracle, oracles.LatticeOracle | oracles.ChainOracle):
            starts = beginnings(offers, 1)
            for (first,), found in zip(starts, oracle.cheapest_by_first(costs), strict=True):
                check(offers, costs, found, least)
                assert found.ranking[0] == first
                best = min(value for value, ranking in zip(values, rankings, strict=True) if ranking[0] == first)
                assert found.value == pytest.approx(best, abs=naive_prices.room(costs))
    assert {tuple(order[:2]) for order in rankings} == set(beginnings(offers, 2))


@pytest.mark.parametrize("ties", RULES)
def test_offers_that_can_go_only_one_way_go_that_way(ties: Ties) -> None:
    offers = Assortments([("b", "a"), ("c", "b", "a"), ("b",), ("c", "b")], ["c", "b", "a"], [("a", "b"), ("b", "c")])
    for oracle in (
        oracles.ComponentsOracle(offers, oracles.auto, ties),
        oracles.LatticeOracle(offers, ties),
        oracles.ChainOracle(offers, ties),
    ):
        answer = oracle.cheapest(np.arange(8.0))
        assert answer.ranking.tolist() == [2, 1, 0]
        assert (answer.value, answer.bound) == (1.0 + 4.0 + 5.0 + 7.0, 17.0)


@strategies.examples(12)
@given(naive_prices.problems())
def test_searches_and_the_referee_keep_the_order(problem: tuple[Assortments, Vec]) -> None:
    offers, costs = problem
    least = float((naive_prices.all_vertices(offers) @ costs).min())
    for oracle in (oracles.SearchOracle(offers), MilpOracle(offers)):
        answer = oracle.cheapest(costs)
        check(offers, costs, answer, least)
        assert answer.value == pytest.approx(least, abs=naive_prices.room(costs))
        assert answer.exact or isinstance(oracle, oracles.SearchOracle)
    assert least_cost_bound(offers, costs, 5) <= least + naive_prices.room(costs)


@given(naive_prices.ordered(), st.sampled_from(RULES), st.integers(0, 99), st.data())
def test_tie_rules_equal_their_twin(offers: Assortments, ties: Ties, seed: int, data: st.DataObject) -> None:
    ranking = data.draw(st.sampled_from(naive_prices.all_rankings(offers)))
    kept, costs = np.array(ranking), np.zeros(offers.n_coordinates)
    code = -1 if offers.no_choice_code is None else offers.no_choice_code
    shape, pairs = (offers.indptr, offers.members), offers.precedence.pairs
    kernels.keep_by_rule(costs, *shape, kernels.TieBreak(code, TIE_RULES[ties], seed, pairs), True, kept)
    assert kept.tolist() == naive_prices.keep_by_rule(offers, ranking, ties, seed)
    assert naive.vertex(offers, kept.tolist()).tolist() == naive.vertex(offers, ranking).tolist()


@given(naive_prices.problems(chains=True), st.sampled_from(["first", "last"]))
def test_tables_of_chains_and_of_unions_settle_ties_alike(problem: tuple[Assortments, Vec], ties: Ties) -> None:
    offers, costs = problem[0], np.sign(np.round(problem[1]))
    one, other = oracles.ChainOracle(offers, ties), oracles.LatticeOracle(offers, ties)
    assert one.cheapest(costs).ranking.tolist() == other.cheapest(costs).ranking.tolist()


def test_a_table_of_chains_refuses_unknown_tie_rules() -> None:
    with pytest.raises(ValueError, match="Unknown tie rule 'middle'"):
        oracles.ChainOracle(Assortments([("tea", "no")]), "middle")  # type: ignore[arg-type]


@strategies.examples(40)
@given(naive_prices.problems(chains=True), st.sampled_from([2, 3, 5, 128]), st.data())
def test_the_table_of_chains_equals_its_twin(problem: tuple[Assortments, Vec], block: int, data: st.DataObject) -> None:
    offers, costs = problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chains, "MAX_BLOCK_STATES", block)
        oracle = oracles.ChainOracle(offers)
    oracle.cheapest(costs)
    found = [chain.tolist() for chain in chains._by_offers(oracle.reduced, chains.used_chains(oracle.reduced))]
    layout, table = oracle._chains, oracle._to_go
    for _ in range(4):
        left = tuple(data.draw(st.integers(0, len(chain))) for chain in found)
        place = sum(digit * int(stride) for digit, stride in zip(left, layout.stride, strict=True))
        expected = naive_prices.cost_to_go(offers, costs, found, left)
        assert table[place] == pytest.approx(expected, abs=naive_prices.room(costs))


@given(naive_prices.ordered(), st.data())
def test_items_find_the_slots_that_the_order_leaves_them(offers: Assortments, data: st.DataObject) -> None:
    pairs, n_items = offers.precedence.pairs, offers.n_items
    drawn = np.array(data.draw(st.permutations(range(n_items))))
    position = np.argsort(drawn)
    search_kernels.put_in_order(pairs, drawn, position)
    assert position.tolist() == np.argsort(drawn).tolist()
    assert not offers.order or offers.precedence.respects(drawn).all()
    item = data.draw(st.integers(0, n_items - 1))
    first, last = search_kernels.free_slots(pairs, position, item)
    for slot in range(n_items + 1):
        rest = drawn.tolist()
        rest.insert(slot, -1)
        rest.remove(item)
        rest[rest.index(-1)] = item
        assert (not offers.order or offers.precedence.respects(rest).all()) == (first <= slot <= last)


def test_oracles_that_know_no_order_refuse_one_and_auto_says_what_it_picks() -> None:
    offers = Assortments([("a", "b", "no"), ("b", "no"), ("c", "a", "no")], order=[("a", "b"), ("a", "c")])
    for kind in (oracles.DenseOracle, oracles.LaminarOracle):
        with pytest.raises(
            ValueError, match=r"does not support an order of the items, such as 'a' before 'b': use .*oracles\.auto\.$"
        ):
            kind(offers)
    with pytest.raises(ValueError, match=r"not made of chains.*use oracles\.auto\.$"):
        oracles.ChainOracle(offers)
    assert oracles.explain(offers).startswith("LatticeOracle: exact")
    with pytest.raises(ValueError, match=r"2 chains have 12 states of 8 bytes, and 90 bytes may be taken"):
        oracles.ChainOracle(priced(), memory=90)


def test_the_referee_keeps_its_side_constraints_and_the_order() -> None:
    oracle = MilpOracle(priced(), before=[("no", "pie @ 2.00")])
    answer = oracle.cheapest(-np.ones(priced().n_coordinates))
    labels = [priced().items[code] for code in answer.ranking]
    assert labels.index("no") < labels.index("pie @ 2.00") < labels.index("pie @ 3.00")
    assert labels.index("tea @ 3.00") < labels.index("tea @ 4.00") < labels.index("tea @ 5.00")
    with pytest.raises(ValueError, match="No ranking meets all the side constraints"):
        MilpOracle(priced(), before=[("tea @ 5.00", "tea @ 3.00")]).cheapest(np.ones(priced().n_coordinates))


def priced() -> Assortments:
    offers = [PRICED.offer({"tea": tea, "pie": pie, "no": None}) for tea in (3, 4, 5) for pie in (2, 3)]
    return Assortments(offers, order=PRICED.order)


def priced_market(n_items: int, n_levels: int, n_offers: int) -> Assortments:
    draw = np.random.default_rng(n_items)
    levels = PriceLevels({f"item {k}": [1.0 + level for level in range(n_levels)] for k in range(n_items)})
    offers = []
    for _ in range(n_offers):
        shown = draw.permutation(n_items)[: max(2, n_items * 2 // 3)]
        offers.append(levels.offer([(f"item {k}", 1.0 + draw.integers(n_levels)) for k in shown] + [("no", None)]))
    return Assortments(offers, order=levels.order)


@pytest.mark.parametrize("block", [2, 4, 16, 64, 256])
def test_tables_of_chains_and_of_unions_agree_whatever_the_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "MAX_BLOCK_STATES", block)
    market = priced_market(4, 3, 25)
    table, unions = oracles.ChainOracle(market), oracles.LatticeOracle(market)
    for costs in np.random.default_rng(block).normal(size=(5, market.n_coordinates)):
        assert table.cheapest(costs).value == pytest.approx(unions.cheapest(costs).value, abs=1e-9)


@strategies.compiled_only
def test_auto_picks_by_the_size_of_the_table() -> None:
    market = priced_market(7, 3, 60)
    assert oracles.explain(market).startswith("ChainOracle: exact, by 16,384 states of 7 chains")
    assert "the order is made of chains" in oracles.explain(market)
    large = priced_market(15, 4, 150)
    assert oracles.explain(large).startswith("SearchOracle")
    assert "a table of its chains would have 30,517,578,125 states" in oracles.explain(large)
    costs = np.random.default_rng(0).normal(size=market.n_coordinates)
    exact, found = oracles.auto(market).cheapest(costs), oracles.SearchOracle(market).cheapest(costs)
    assert found.bound - 1e-9 <= exact.value <= found.value + 1e-9
    assert market.precedence.respects([exact.ranking, found.ranking]).all()


@strategies.compiled_only
def test_without_an_order_answers_are_what_they_were() -> None:
    digest, draw = hashlib.sha256(), np.random.default_rng(5)
    for case in range(30):
        items, ends = [f"item {k}" for k in range(6)], ["nothing"] * (case % 2)
        sets = [draw.choice(items, draw.integers(1, 6), replace=False).tolist() for _ in range(6)]
        offers = Assortments([(*chosen, *ends) for chosen in sets], [*items, *ends])
        costs = draw.integers(-9, 10, offers.n_coordinates).astype(np.float64)
        for ties in RULES:
            lattice = oracles.LatticeOracle(offers, ties, case)
            others = (oracles.DenseOracle(offers, ties, case), oracles.SearchOracle(offers, ties, case))
            for oracle in (lattice, *others, oracles.ComponentsOracle(offers, oracles.auto, ties, case)):
                digest.update(oracle.cheapest(costs).ranking.tobytes())
            for answer in lattice.cheapest_by_first(costs):
                digest.update(answer.ranking.tobytes())
    assert digest.hexdigest() == UNCHANGED
