from dataclasses import replace
from itertools import permutations, product
from math import prod
from unittest.mock import patch

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from naive_prices_decide import Said, ranked_offers
from offer_programs import best_by_milp
from price_decide_cases import KINDS, NONE, Case, cases, make_model
from rankstream import Assortments, EntropyModel, RankingModel
from rankstream._core.types import Label
from rankstream._core.watch import unwatched
from rankstream.decide import best_offer, value
from rankstream.decide.engines import selection as engines
from rankstream.decide.engines import table_kernels
from rankstream.decide.engines.selection import branch_and_bound, by_sampling, one_by_one
from rankstream.decide.engines.tables import cells_of, keeps_order, predicted_seconds, scan, table_of
from rankstream.decide.offer_values import values
from rankstream.decide.problem.offers import make_problem
from rankstream.models.entropy.ranking_laws import plackett_luce
from rankstream.models.lifts import chains_of
from strategies import examples


@examples(160)
@given(cases(KINDS), st.integers(1, 4))
def test_the_best_offers_are_those_of_brute_force(case: Case, top: int) -> None:
    model, costs, said = case
    wanted = ranked_offers(model, costs, said)
    if not wanted:
        with pytest.raises(ValueError, match=NONE):
            best_offer(model, costs=costs, **said)
        return
    found = best_offer(model, costs=costs, top=top, **said)
    values = [found.value, *(runner.value for runner in found.runners_up)]
    assert values == pytest.approx([pair[0] for pair in wanted[:top]], abs=1e-9)
    assert found.engine == "all offers"
    assert found.proven
    assert any(offer == found.prices and one == pytest.approx(found.value, abs=1e-9) for one, offer in wanted)
    best: dict[int, float] = {}
    for one, offer in wanted:
        best.setdefault(len(offer), one)
    assert found.by_size == pytest.approx(best, abs=1e-9)
    whole = found.prices if model.no_choice is None else {**found.prices, model.no_choice: None}
    assert found.shares == pytest.approx(model.predict(whole) if whole else {})


@examples(80)
@given(cases())
def test_searches_and_the_milp_come_to_the_same(case: Case) -> None:
    model, costs, said = case
    wanted = ranked_offers(model, costs, said)
    if not wanted:
        return
    problem = make_problem(model, costs=costs, **said)
    with patch("rankstream.decide.engines.branch.MAX_TABLE_ITEMS", 0):
        searched = branch_and_bound(problem, 1, 10.0, 0, unwatched)
    tabled = branch_and_bound(problem, 1, 10.0, 0, unwatched)
    asked = one_by_one(problem, 1)
    # what the model itself says of each engine's offer: of equally good ones they may take different ones
    worths = values(problem, [found.offers[0] for found in (searched, tabled, asked)]).tolist()
    for found, worth in zip((searched, tabled, asked), worths, strict=True):
        assert worth == pytest.approx(wanted[0][0], rel=1e-12, abs=1e-12)
        assert found.values[0] == pytest.approx(worth, rel=1e-9, abs=1e-12)  # engines add up in orders of their own
    assert searched.proven
    assert problem.is_feasible(searched.offers[0])
    assert best_by_milp(model, problem).value == pytest.approx(wanted[0][0], abs=1e-6)


@pytest.mark.parametrize("sizes", [(), (3,), (2, 3, 2), (3, 5, 4, 3, 4, 5, 3), (5000, 2), (2, 5000)])
def test_running_sums_go_over_all_digits(sizes: tuple[int, ...]) -> None:
    table = np.random.default_rng(0).integers(-9, 9, prod(sizes)).astype(np.float64)
    wanted = table.reshape(sizes)
    for axis in range(len(sizes)):
        wanted = wanted.cumsum(axis=axis)
    table_kernels.prefix_sums(table, np.array(sizes, dtype=np.int64))
    assert (table == wanted.ravel()).all()


def test_orders_are_kept_if_no_dearer_level_comes_first() -> None:
    every = list(permutations(range(4)))  # 0 is cheaper than 1, and 1 than 2
    keeps = [order.index(0) < order.index(1) < order.index(2) for order in every]

    def kept(*orders: tuple[int, ...]) -> bool:
        shares = np.full(len(orders), 1.0 / len(orders))
        return keeps_order(RankingModel.from_codes("abcd", np.array(orders), shares), [(0, 1, 2), (3,)])

    assert [kept(order) for order in every] == keeps
    good = [order for order, keep in zip(every, keeps, strict=True) if keep]
    assert kept(*good)
    assert not kept(*good, every[keeps.index(False)])


def test_rankings_that_do_not_keep_the_order_are_decided_too() -> None:
    items = ("tea @ 2.00", "tea @ 3.00", "pie @ 2.00", "pie @ 4.00", "no")
    random = np.random.default_rng(4)
    model = RankingModel.from_codes(items, np.array([random.permutation(5) for _ in range(9)]), np.full(9, 1 / 9), 4)
    costs: dict[Label, float] = {"tea": 1.0, "pie": 0.5}
    wanted = ranked_offers(model, costs, {})
    found = best_offer(model, costs=costs, top=9)
    assert [found.value, *(one.value for one in found.runners_up)] == pytest.approx([one for one, _ in wanted])
    assert not table_of(make_problem(model, None, costs=costs)).cells.by_level


def test_beyond_a_table_the_search_proves_the_same_offer() -> None:
    model = make_model("rankings", (3, 3, 3), True, True, 7)
    with_table = best_offer(model, {"gift": 0.5}, costs=1.0)
    with patch.object(engines, "predicted_seconds", lambda _: np.inf):
        searched = best_offer(model, {"gift": 0.5}, costs=1.0)
    assert searched.engine == "branch and bound"
    assert searched.proven
    assert searched.value == pytest.approx(with_table.value, abs=1e-12)


@pytest.mark.parametrize("kind", ["entropy", "falling", "priced"])
def test_what_no_table_has_is_sampled_and_says_so(kind: str) -> None:
    model = make_model(kind, (2, 2), True, False, 3)
    problem = make_problem(model, None, costs=0.5)
    found = by_sampling(problem, 1, 5.0, 0, unwatched)
    best = scan(table_of(problem), problem).values[0]
    assert found.engine.startswith("sampling")
    assert not found.proven
    assert 0.9 * best <= found.values[0] <= best + 1e-9 <= found.bound + 1e-9


def test_an_order_that_is_not_that_of_prices_is_not_tabled() -> None:
    offers = Assortments([("tea", "no"), ("cup", "no")], order=[("tea", "cup")])
    model = EntropyModel(plackett_luce(offers.items, [1.0, 2.0, 3.0], order=chains_of(offers)), offers, np.zeros(4))
    assert predicted_seconds(make_problem(model, 1.0)) == np.inf
    with pytest.raises(ValueError, match="no table"):
        table_of(make_problem(model, 1.0))


TEA = RankingModel(
    ["tea @ 3.00", "tea @ 4.00", "pie @ 3.50", "gift", "no"],
    [
        ("gift", "tea @ 3.00", "tea @ 4.00", "no", "pie @ 3.50"),
        ("pie @ 3.50", "tea @ 3.00", "no", "tea @ 4.00", "gift"),
    ],
    [0.6, 0.4],
    no_choice_code=4,
)
GIFT = {"gift": 0.0}


def test_a_decision_has_prices_and_shares_by_item() -> None:
    found = best_offer(TEA, GIFT, costs={"tea": 1.0, "pie": 2.0}, never=["gift"], top=2)
    assert found.offer == ("tea @ 4.00", "pie @ 3.50")
    assert found.prices == {"tea": 4.0, "pie": 3.5}
    assert found.shares == pytest.approx({"tea": 0.6, "pie": 0.4, "no": 0.0})
    assert str(found).startswith("Best according to the model: tea @ 4.00, pie @ 3.50: earns 240.0 per 100 customers\n")
    assert "Pricing tea at 3.00 instead of 4.00 would cost 60." in found.explain()
    content = found.to_json()
    assert content["prices"] == {"tea": 4.0, "pie": 3.5}
    assert content["shares"]["pie"] == pytest.approx(0.4)
    assert "prices" not in best_offer(plain_model(), 1.0).to_json()


def test_margins_are_by_level_or_prices_less_costs() -> None:
    by_level = {"tea @ 3.00": 2.0, "tea @ 4.00": 3.0, "pie @ 3.50": 1.5, "gift": 0.0}
    assert make_problem(TEA, by_level).possible_sizes == range(4)  # of items, not of levels
    assert best_offer(TEA, by_level).value == best_offer(TEA, GIFT, costs={"tea": 1, "pie": 2}).value
    frame = value(TEA, [{"tea": 4.0}, ["tea @ 3.00"]], GIFT, costs={"tea": 1.0, "pie": 2.0}, listing_costs={"tea": 0.5})
    assert frame["value"].tolist() == pytest.approx([0.6 * 3.0 - 0.5, 2.0 - 0.5])


def test_an_item_at_a_price_does_not_stand_for_leaving() -> None:
    model = RankingModel.from_codes(TEA.items[:3], [[0, 1, 2]], [1.0], 2)  # where pie was in every offer
    found = best_offer(model, costs=1.0, at_most=1)
    assert found.problem.nothing == -1
    assert found.offer == ("tea @ 4.00",)
    with pytest.raises(ValueError, match=r"^The no-purchase option 'pie @ 3.50' has a price: choose one that means .*"):
        best_offer(model, costs=1.0, no_choice="pie @ 3.50")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"costs": 1.0}, "The item 'gift' has no margin: give what a sale of it earns, 0 if nothing."),
        ({"margins": {"tea @ 3.00": 1.0}}, "The item 'tea @ 4.00' has no margin: .*"),
        ({"margins": {"tea": 1.0}}, "The margin of 'tea' depends on its price: .* such as 'tea @ 3.00'."),
        ({}, "There are neither margins nor costs: give what a sale earns, or what each item costs."),
        ({"margins": GIFT, "costs": {"tea": 1.0}}, "The item 'pie' has no cost: .*"),
        ({"margins": GIFT, "costs": {"gift": 1.0}}, "The item 'gift' has a cost, but no price of its own: .*"),
        ({"margins": {"tea @ 3.00": 1.0}, "costs": 1.0}, "The item 'tea @ 3.00' has a margin, and 'tea' a cost: .*"),
        ({"margins": 1.0, "must": ["tea @ 9.00"]}, "must names 'tea @ 9.00', which is not an item of the model: .*"),
        (
            {"margins": 1.0, "must": ["tea"], "never": ["tea"]},
            "All levels of an item that must be offered are excluded, .*",
        ),
        ({"margins": 1.0, "excludes": [("tea", "tea @ 3.00")]}, "excludes contains the pair of 'tea @ 3.00' with .*"),
        ({"margins": 1.0, "ladders": [("gift", "tea")]}, "ladders names 'gift', which has no price: items with one .*"),
        ({"margins": 1.0, "ladders": ["tea"]}, r"ladders contains \('tea',\): give items from cheap to expensive, .*"),
        ({"margins": 1.0, "ladders": [("tea", "tea")]}, "ladders contains an item twice, in .*"),
        ({"margins": 1.0, "changes": 1}, "changes needs present: give today's offer."),
        ({"margins": 1.0, "present": {"tea": 9.0}, "changes": 1}, "The price 9 of 'tea' is outside its levels, .*"),
        ({"margins": 1.0, "present": ["tea"], "changes": 1}, "present names 'tea' without a price: give one, .*"),
        ({"margins": 1.0, "present": ["tea @ 3.00", "tea @ 4.00"], "changes": 1}, "present lists an item twice: .*"),
        ({"margins": 1.0, "present": "tea", "changes": 1}, "present is 'tea': give the items on offer, .*"),
        ({"margins": 1.0, "present": [], "changes": -1}, "changes is -1: it must be at least 0."),
        (
            {"margins": 1.0, "present": [], "changes": 0, "must": ["tea"]},
            "No offer meets must, requires and changes .*",
        ),
        ({"margins": 1.0, "space": {"tea": 1, "tea @ 3.00": 2}, "capacity": 3}, "The item 'tea @ 3.00' has two .*"),
    ],
)
def test_bad_input_is_one_sentence(said: Said, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$") as error:
        best_offer(TEA, **said)
    assert str(error.value).count(". ") == 0


def plain_model() -> RankingModel:
    random = np.random.default_rng(2)
    orders = np.array([random.permutation(7) for _ in range(12)])
    return RankingModel.from_codes([*"abcdef", "no"], orders, random.dirichlet(np.ones(12)), 6)


def test_without_prices_changes_count_items_and_the_rest_is_refused() -> None:
    model = plain_model()
    margins = {item: k + 1.0 for k, item in enumerate("abcdef")}
    found = best_offer(model, margins, present=["a", "b", "no"], changes=1)
    offers = [[item for item, on in zip("abcdef", bits, strict=True) if on] for bits in product((0, 1), repeat=6)]
    near = [offer for offer in offers if len({*offer} ^ {"a", "b"}) <= 1]
    assert found.value == pytest.approx(value(model, near, margins)["value"].max())
    assert len({*found.offer} ^ {"a", "b"}) <= 1
    assert found.prices == dict.fromkeys(found.offer)
    with pytest.raises(ValueError, match="ladders names 'a', which has no price: items with one are none"):
        best_offer(model, margins, ladders=[("a", "b")])
    with pytest.raises(ValueError, match="has no prices, so costs cannot be used"):
        best_offer(model, costs=1.0)
    with pytest.raises(ValueError, match="There are no margins"):
        best_offer(model)
    problem = make_problem(model, margins, excludes=[("a", "b")])
    assert problem.rows.factors.tolist() == [[1, 1, 0, 0, 0, 0, 0]]
    assert problem.rows.limits.tolist() == [1]


def test_a_table_by_level_needs_a_model_that_keeps_the_order_of_levels() -> None:
    model = make_model("falling", (2, 2), True, False, 0)
    assert cells_of(make_problem(model, None, costs={"tea": 1.0, "pie": 1.0})) is not None
    other = replace(model, order=model.order[:1])
    assert cells_of(make_problem(other, None, costs={"tea": 1.0, "pie": 1.0})) is None
