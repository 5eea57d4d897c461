from itertools import product
from math import prod
from typing import Any
from unittest.mock import patch

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from naive_prices_decide import Said, ranked_offers
from rankstream import Assortments, EntropyModel, PriceLevels, RankingModel
from rankstream._core.types import Label
from rankstream._core.watch import unwatched
from rankstream.decide import best_offer, engines, level_kernels, value
from rankstream.decide.engines import branch_and_bound, by_sampling, one_by_one
from rankstream.decide.problem import make_problem
from rankstream.decide.referee import best_by_milp
from rankstream.decide.tables import predicted_seconds, scan, table_of
from rankstream.models.entropy.laws import plackett_luce
from rankstream.models.lifting import chains_of, lift
from rankstream.models.parametric.falling import FallingClassModel
from rankstream.models.parametric.latent_class import LatentClassModel
from rankstream.models.parametric.markov_chain import MarkovChainModel
from rankstream.models.parametric.mnl import LogitModel
from rankstream.models.parametric.priced import PricedModel

OWN = ("tea", "pie", "cake")
KINDS = ("rankings", "entropy", "logit", "latent", "falling", "priced", "loose", "markov")
FIT = {"log_likelihood": 0.0, "iterations": 1, "converged": True, "n_parameters": 1}
Case = tuple[Any, dict[Label, float], Said]


def make_model(kind: str, counts: tuple[int, ...], nothing: bool, gift: bool, seed: int) -> Any:
    """A random model of items at levels, of a gift without a price and of no choice, where these are there."""
    random = np.random.default_rng(seed)
    levels = PriceLevels(
        {item: sorted(random.choice(np.arange(2, 9), n, replace=False)) for item, n in zip(OWN, counts, strict=False)}
    )
    labels = [*levels.labels, *(["gift"] if gift else []), *(["no"] if nothing else [])]
    items: list[Any] = [labels[k] for k in random.permutation(len(labels))]
    alone = [[label, *(["no"] if nothing else [])] for label in items if label != "no"]
    offers = Assortments(alone, items, levels.order)
    n, order, code = len(items), chains_of(offers), items.index("no") if nothing else None
    shares, table = random.dirichlet(np.ones(2)), random.dirichlet(np.full(n, 0.5), size=2)
    common: dict[str, Any] = {"items": tuple(items), "no_choice_code": code, **FIT}
    if kind == "rankings":
        raw = np.array([random.permutation(n) for _ in range(int(random.integers(1, 9)))])
        return RankingModel.from_codes(items, lift(raw, order), random.dirichlet(np.ones(len(raw))), code)
    if kind == "entropy":
        wide = offers.extend([[levels.labels[0], levels.labels[-1], *(["no"] if nothing else [])]])
        duals = random.normal(scale=1.5, size=wide.n_coordinates)
        return EntropyModel(plackett_luce(items, table, shares, order), wide, duals)
    if kind == "loose":  # fitted without the order
        duals = random.normal(size=offers.n_coordinates)
        return EntropyModel(plackett_luce(items, table, shares), Assortments(alone, items), duals)
    if kind == "markov":
        return MarkovChainModel(arrival=table[0], transitions=random.dirichlet(np.ones(n), size=n), **common)
    if kind == "logit":
        return LogitModel(attraction=table[0], **common)
    if kind == "latent":
        return LatentClassModel(mixture=shares, attraction=table, **common)
    if kind == "falling":
        return FallingClassModel(mixture=shares, attraction=table, order=order, **common)
    owner, prices = zip(*(levels.of(item) for item in items), strict=True)
    numbers = np.unique([str(one) for one in owner], return_inverse=True)[1]
    constants, slopes = random.normal(size=(2, numbers.max() + 1)), random.uniform(0.1, 1.0, 2)
    money = np.array([price or 0.0 for price in prices])
    return PricedModel(mixture=shares, constants=constants, slopes=slopes, prices=money, owner=numbers, **common)


@st.composite
def cases(draw: st.DrawFn, kinds: tuple[str, ...] = ("rankings",)) -> Case:
    """A model, costs and constraints, which may contradict each other."""
    counts = tuple(draw(st.lists(st.integers(1, 3), min_size=2, max_size=3)))
    nothing, gift = draw(st.booleans()), draw(st.booleans())
    model = make_model(draw(st.sampled_from(kinds)), counts, nothing, gift, draw(st.integers(0, 10**6)))
    levels = model.price_levels
    own: list[Label] = [*levels.items, *(["gift"] if gift else [])]
    costs = {item: draw(st.integers(0, 6)) / 2 for item in levels.items}
    name = st.sampled_from([*own, *levels.labels])
    pair = st.tuples(name, name).filter(lambda two: levels.of(two[0])[0] != levels.of(two[1])[0])
    present = st.fixed_dictionaries({}, optional={item: st.sampled_from(levels.levels[item]) for item in levels.items})
    said: Said = {"margins": {"gift": draw(st.integers(-2, 4)) / 2} if gift else None}
    for key, some in {
        "at_most": st.integers(0, 3), "at_least": st.integers(0, 2), "must": st.lists(name, max_size=1),
        "never": st.lists(name, max_size=2), "requires": st.lists(pair, max_size=2),
        "excludes": st.lists(pair, max_size=2), "ladders": st.just([tuple(levels.items[::-1])]),
        "listing_costs": st.dictionaries(st.sampled_from(own), st.sampled_from([0.1, 0.5])),
    }.items():  # fmt: skip
        if draw(st.integers(0, 2)) == 0:
            said[key] = draw(some)
    if draw(st.booleans()):
        said["space"], said["capacity"] = {item: draw(st.integers(0, 4)) for item in own}, draw(st.integers(0, 8))
    if draw(st.booleans()):
        said["present"], said["changes"] = draw(present), draw(st.integers(0, 3))
    return model, costs, said


NONE = r"contradict|No offer keeps|fill|may be in it|both must and never|No level of"


@settings(max_examples=160)
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


@settings(max_examples=80)
@given(cases())
def test_searches_and_the_milp_come_to_the_same(case: Case) -> None:
    model, costs, said = case
    wanted = ranked_offers(model, costs, said)
    if not wanted:
        return
    problem = make_problem(model, costs=costs, **said)
    with patch("rankstream.decide.branch.TABLE", 0):
        searched = branch_and_bound(problem, 1, 10.0, 0, unwatched)
    tabled = branch_and_bound(problem, 1, 10.0, 0, unwatched)
    asked = one_by_one(problem, 1)
    exact = pytest.approx(wanted[0][0], abs=1e-9)
    assert searched.values[0] == tabled.values[0] == exact
    assert asked.values[0] == exact
    assert searched.proven
    assert problem.is_feasible(searched.offers[0])
    assert best_by_milp(model, problem).value == pytest.approx(wanted[0][0], abs=1e-6)


@pytest.mark.parametrize("sizes", [(), (3,), (2, 3, 2), (3, 5, 4, 3, 4, 5, 3), (5000, 2), (2, 5000)])
def test_running_sums_go_over_all_digits(sizes: tuple[int, ...]) -> None:
    table = np.random.default_rng(0).integers(-9, 9, prod(sizes)).astype(np.float64)
    wanted = table.reshape(sizes)
    for axis in range(len(sizes)):
        wanted = wanted.cumsum(axis=axis)
    level_kernels.prefix_sums(table, np.array(sizes, dtype=np.int64))
    assert (table == wanted.ravel()).all()


def test_rankings_that_do_not_keep_the_order_are_decided_too() -> None:
    items = ("tea @ 2.00", "tea @ 3.00", "pie @ 2.00", "pie @ 4.00", "no")
    random = np.random.default_rng(4)
    model = RankingModel.from_codes(items, np.array([random.permutation(5) for _ in range(9)]), np.full(9, 1 / 9), 4)
    costs: dict[Label, float] = {"tea": 1.0, "pie": 0.5}
    wanted = ranked_offers(model, costs, {})
    found = best_offer(model, costs=costs, top=9)
    assert [found.value, *(one.value for one in found.runners_up)] == pytest.approx([one for one, _ in wanted])
    assert not table_of(make_problem(model, None, costs=costs)).by_level


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
    assert str(found).startswith("Offer tea @ 4.00, pie @ 3.50: 2.4 per customer\n")
    assert "tea @ 3.00 instead of tea @ 4.00 would cost 0.6." in found.explain()
    content = found.to_content()
    assert content["prices"] == {"tea": 4.0, "pie": 3.5}
    assert content["shares"]["pie"] == pytest.approx(0.4)
    assert "prices" not in best_offer(plain_model(), 1.0).to_content()


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
    with pytest.raises(ValueError, match=r"^The no-choice item 'pie @ 3.50' has a price: name one that stands for .*"):
        best_offer(model, costs=1.0, no_choice="pie @ 3.50")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"costs": 1.0}, "The item 'gift' has no margin: say what a sale of it earns, 0 if nothing."),
        ({"margins": {"tea @ 3.00": 1.0}}, "The item 'tea @ 4.00' has no margin: .*"),
        ({"margins": {"tea": 1.0}}, "The margin of 'tea' depends on its price: .* such as 'tea @ 3.00'."),
        ({}, "There are neither margins nor costs: say what a sale earns, or what each item costs."),
        ({"margins": GIFT, "costs": {"tea": 1.0}}, "The item 'pie' has no cost: .*"),
        ({"margins": GIFT, "costs": {"gift": 1.0}}, "There is a cost of 'gift', which has no price of its own: .*"),
        ({"margins": {"tea @ 3.00": 1.0}, "costs": 1.0}, "The item 'tea @ 3.00' has a margin, and 'tea' a cost: .*"),
        ({"margins": 1.0, "must": ["tea @ 9.00"]}, "must names 'tea @ 9.00', which the model does not know: .*"),
        ({"margins": 1.0, "must": ["tea"], "never": ["tea"]}, "No level of an item that must be there is left, .*"),
        ({"margins": 1.0, "excludes": [("tea", "tea @ 3.00")]}, "excludes contains the pair of 'tea @ 3.00' with .*"),
        ({"margins": 1.0, "ladders": [("gift", "tea")]}, "ladders names 'gift', which has no price: items with one .*"),
        ({"margins": 1.0, "ladders": ["tea"]}, r"ladders contains \('tea',\): give items from cheap to dear, .*"),
        ({"margins": 1.0, "ladders": [("tea", "tea")]}, "ladders contains an item twice, in .*"),
        ({"margins": 1.0, "present": {"tea": 3.0}}, "present and changes belong together: .*"),
        ({"margins": 1.0, "present": {"tea": 9.0}, "changes": 1}, "The price 9 of 'tea' is beyond its levels, .*"),
        ({"margins": 1.0, "present": ["tea"], "changes": 1}, "present names 'tea' without a price: give one, .*"),
        ({"margins": 1.0, "present": ["tea @ 3.00", "tea @ 4.00"], "changes": 1}, "present has an item twice: .*"),
        ({"margins": 1.0, "present": "tea", "changes": 1}, "present is 'tea': give the items on offer, .*"),
        ({"margins": 1.0, "present": [], "changes": -1}, "changes is -1: it must be at least 0."),
        (
            {"margins": 1.0, "present": [], "changes": 0, "must": ["tea"]},
            "No offer keeps must, requires and changes .*",
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
    with pytest.raises(ValueError, match="does not know prices, so that costs say nothing"):
        best_offer(model, costs=1.0)
    with pytest.raises(ValueError, match="There are no margins"):
        best_offer(model)
    problem = make_problem(model, margins, excludes=[("a", "b")])
    assert problem.excludes.tolist() == [[0, 1]]
    assert not problem.rows.limits.size
    assert not table_of(problem).by_level
