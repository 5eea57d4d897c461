"""Kernels of decisions against slow twins: subset sums, single changes, and bounds at any prices."""

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from decide_cases import make_model
from naive_decide import decomposed_bound, list_earns, offers_of_bits
from offer_programs import linear_bound
from rankstream import Assortments, RankingModel
from rankstream._core.types import Bytes
from rankstream.decide.engines import branch_kernels, law_kernels, list_kernels, table_kernels, tables
from rankstream.decide.engines.branch_kernels import OfferLimits
from rankstream.decide.engines.list_kernels import WishLists
from rankstream.decide.engines.lists import make_lists
from rankstream.decide.offer_values import values
from rankstream.decide.problem.offers import make_problem
from rankstream.decide.problem.rules import LimitRow, Rules, make_rows
from rankstream.models import markov_chain
from strategies import compiled_only, examples

pytestmark = pytest.mark.quick


def random_lists(random: np.random.Generator, n: int) -> WishLists:
    """Up to six random lists."""
    rows = [random.permutation(n)[: int(random.integers(0, n + 1))] for _ in range(int(random.integers(1, 7)))]
    start = np.concatenate([[0], np.cumsum([row.size for row in rows])]).astype(np.int64)
    item = np.concatenate(rows).astype(np.int64)
    shares, ends = random.dirichlet(np.ones(len(rows))), random.uniform(0, 1, len(rows))
    return WishLists(start, item, shares, ends, random.uniform(-1, 3, n))


@pytest.mark.slow
@compiled_only
@pytest.mark.parametrize("bits", [15, 16, 17])
def test_subset_sums_beyond_a_block(bits: int) -> None:
    table = np.random.default_rng(bits).normal(size=2**bits)
    wanted = table.copy()
    for bit in range(bits):
        view = wanted.reshape(-1, 2, 2**bit)
        view[:, 1] += view[:, 0]
    table_kernels.prefix_sums(table, np.full(bits, 2))
    assert (table == wanted).all()  # the same additions in the same order


def test_cell_sums_are_sums_over_digits() -> None:
    terms = np.array([[9.0, 9.0, 9.0], [1.0, 2.0, 0.0], [10.0, 0.0, 0.0], [9.0, 9.0, 9.0]])[:, :, np.newaxis]
    sums = table_kernels.cell_sums(terms, np.array([3, 3, 2, 3]), 1, 3)
    assert sums.ravel().tolist() == [11, 1, 12, 2, 10, 0]


@examples(60)
@given(st.integers(0, 3), st.integers(1, 4), st.integers(0, 10**6))
def test_a_scan_is_a_loop_over_all_cells(n_digits: int, top: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 4, n_digits)
    terms = random.integers(0, 3, (n_digits, 3, 4)).astype(float)
    terms[:, :, 1] = np.arange(3) > 0  # an item, or nothing
    room, least, most, limits = float(random.integers(0, 5)), int(random.integers(0, 3)), 2, random.integers(0, 6, 1)
    table = random.permutation(np.arange(np.prod(sizes, dtype=int))) * 10.0
    best, picks, by_size = np.full(top, -np.inf), np.zeros(top, dtype=np.int64), np.full(n_digits + 1, -np.inf)
    found = table_kernels.scan(table, sizes, terms, room, least, most, limits, best, picks, by_size)
    offers = []
    for cell, digits in enumerate(np.ndindex(*sizes)):
        cost, size, space, factor = terms[np.arange(n_digits), list(digits)].sum(axis=0)
        if least <= size <= most and space <= room and factor <= limits[0]:
            offers.append((table[cell] - cost, cell, int(size)))
    offers.sort(reverse=True)
    assert found == len(offers)
    kept = [(value, cell) for value, cell in zip(best.tolist(), picks.tolist(), strict=True) if value > -np.inf]
    assert [value for value, _ in kept] == [value for value, *_ in offers[:top]]
    assert all((value, cell) in [one[:2] for one in offers] for value, cell in kept)
    for size in range(n_digits + 1):
        assert by_size[size] == max([value for value, _, one in offers if one == size], default=-np.inf)


@examples(60)
@given(st.integers(2, 5), st.integers(0, 10**6))
def test_changes_are_those_of_single_moves(n: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    lists = random_lists(random, n)
    held = random.integers(0, 2, n).astype(np.int8)
    add, drop, swap = np.zeros(n), np.zeros(n), np.zeros((n, n))
    now = list_kernels.changes(lists, held, add, drop, swap)
    assert now == pytest.approx(list_earns(lists, held))
    assert now == pytest.approx(list_kernels.earned(lists, held))
    for i in range(n):
        after = held.copy()
        after[i] ^= 1
        change = list_earns(lists, after) - now
        assert (drop if held[i] else add)[i] == pytest.approx(change)
        for k in range(n):
            if held[i] and not held[k]:
                both = after.copy()
                both[k] = 1
                assert drop[i] + add[k] + swap[i, k] == pytest.approx(list_earns(lists, both) - now)


@examples(60)
@given(st.integers(2, 5), st.integers(0, 10**6), st.booleans())
def test_at_any_prices_the_bound_holds_with_and_without_every_item(n: int, seed: int, narrow: bool) -> None:
    random = np.random.default_rng(seed)
    lists = random_lists(random, n)
    cost, space = random.uniform(0, 0.3, n), random.integers(0, 4, n).astype(np.float64)
    slots, room = int(random.integers(1, n + 1)), float(random.integers(1, 6)) if narrow else np.inf
    limits = OfferLimits(cost, space, slots, room)
    price = random.normal(scale=random.choice([0.0, 0.2, 1.0]), size=lists[1].size)
    into, out = np.zeros(n), np.zeros(n)
    bound = branch_kernels.penalties(lists, limits, price, into, out)
    best = -np.inf
    best_with, best_without = np.full(n, -np.inf), np.full(n, -np.inf)
    for held in offers_of_bits(n):
        if held.sum() <= slots and float(space @ held) <= room:
            worth = list_earns(lists, held) - float(cost @ held)
            best = max(best, worth)
            best_with[held > 0] = np.maximum(best_with[held > 0], worth)
            best_without[held == 0] = np.maximum(best_without[held == 0], worth)
    assert bound >= best - 1e-9
    assert (into >= best_with - 1e-9).all()
    assert (out >= best_without - 1e-9).all()
    assert (np.maximum(into, out) <= bound + 1e-9).all()
    if not narrow:
        assert bound == pytest.approx(decomposed_bound(lists, price, cost, slots))
        assert into.tolist() == pytest.approx([decomposed_bound(lists, price, cost, slots, i, -1) for i in range(n)])
        assert out.tolist() == pytest.approx([decomposed_bound(lists, price, cost, slots, -1, i) for i in range(n)])
    better, offer = np.empty_like(price), np.zeros(n)
    lower = branch_kernels.descend(lists, limits, best, 40, 0.3, price, better, offer)
    assert best - 1e-9 <= lower <= bound + 1e-9
    again = branch_kernels.penalties(lists, limits, better, into, out)
    assert again == pytest.approx(lower)


@examples(60)
@given(st.integers(2, 5), st.integers(0, 10**6))
def test_equal_lists_are_merged(n: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    orders = np.array([random.permutation(n + 1) for _ in range(12)])
    weights = random.dirichlet(np.ones(12))
    model = RankingModel.from_codes((*range(n), "no"), orders, weights, n)
    margins = random.uniform(size=n)
    found = make_lists(model, make_problem(model, dict(enumerate(margins))))
    rows = [tuple(found.item[low:high]) for low, high in zip(found.start[:-1], found.start[1:], strict=True)]
    wanted: dict[tuple[int, ...], float] = {}
    for order, weight in zip(orders.tolist(), weights.tolist(), strict=True):
        key = tuple(order[: order.index(n)])
        wanted[key] = wanted.get(key, 0.0) + weight
    assert dict(zip(rows, found.weight.tolist(), strict=True)) == pytest.approx(wanted)
    assert len(rows) == len(wanted)


@examples(60)
@given(st.integers(2, 5), st.integers(0, 10**6))
def test_a_climb_ends_where_no_feasible_change_pays(n: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    lists = random_lists(random, n)
    cost, space = random.uniform(0, 0.3, n), random.integers(0, 4, n).astype(np.float64)
    needs, bans = (random.permutation(n)[: 2 * int(random.integers(0, 2))].reshape(-1, 2) for _ in range(2))
    rows = [LimitRow([first], [second], 0, "requires") for first, second in needs]
    rows += [LimitRow(pair.tolist(), (), 1, "excludes") for pair in bans]
    rules = Rules(space, float(random.integers(2, 9)), 0, int(random.integers(1, 3)), make_rows(n, rows))

    def fits(offer: Bytes) -> bool:
        alone = any(offer[first] and not offer[second] for first, second in needs)
        both = any(offer[first] and offer[second] for first, second in bans)
        return bool(offer.sum() <= rules.most and space @ offer <= rules.capacity and not alone and not both)

    starts = [offer for offer in offers_of_bits(n) if fits(offer)]
    held = starts[int(random.integers(0, len(starts)))]  # from a full one, an exchange may be all that is left
    steps, values = np.zeros((64, n), dtype=np.int8), np.zeros(64)
    done = list_kernels.climb(lists, rules.arrays, cost, 1e-12, held, steps, values)
    assert 1 <= done < 64
    assert (np.diff(values[:done]) > 0.0).all()
    for step in range(done):
        assert values[step] == pytest.approx(list_earns(lists, steps[step]) - float(cost @ steps[step]))
        assert fits(steps[step])
    for other in offers_of_bits(n):
        assert list_kernels.fits(other, rules.arrays) == fits(other)
        changed = other - held
        if fits(other) and (changed > 0).sum() <= 1 and (changed < 0).sum() <= 1:
            assert list_earns(lists, other) - float(cost @ other) <= values[done - 1] + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_the_best_prices_come_to_the_bound_of_the_linear_program(seed: int) -> None:
    random = np.random.default_rng(seed)
    orders = np.array([random.permutation(7) for _ in range(6)])
    model = RankingModel.from_codes(range(7), orders, random.dirichlet(np.ones(6)), 6)
    problem = make_problem(model, dict(enumerate(random.uniform(size=6))), at_most=2, listing_costs=0.01)
    lists, linear = make_lists(model, problem), linear_bound(model, problem)
    best = max(lists.value(held) for held in offers_of_bits(6) if problem.is_feasible(lists.whole(problem, held)))
    price, better, offer = np.zeros(lists.item.size), np.zeros(lists.item.size), np.zeros(6)
    limits = OfferLimits(lists.cost, np.zeros(6), 2, np.inf)
    for pace in (1.0, 0.3, 0.1, 0.03):
        bound = branch_kernels.descend(lists.arrays, limits, linear - 1e-6, 1500, pace, price, better, offer)
        price = better.copy()
    assert best - 1e-9 <= linear
    assert linear - 1e-9 <= bound <= linear + 1e-3


@pytest.mark.parametrize("kind", ["classes", "chains", "mixed", "markov", "latent"])
@pytest.mark.parametrize("said", [{}, {"never": ["i2"]}, {"must": ["i3"], "never": ["i1"]}])
def test_a_table_has_what_the_model_predicts_for_every_offer(kind: str, said: dict[str, Any]) -> None:
    model = make_model(kind, 5, True, 1)
    problem = make_problem(model, {f"i{number}": float(number) for number in range(1, 5)}, **said)
    table = tables.table_of(problem)
    offers = [table.cells.mask(cell) for cell in range(table.cells.count)]
    assert len({offer.tobytes() for offer in offers}) == 2**problem.free.size
    assert table.values == pytest.approx(values(problem, offers), abs=1e-9)


@pytest.mark.parametrize("free", [3, 2])
def test_a_table_of_a_chain_has_what_every_offer_earns(free: int) -> None:
    """Items 0 to 2 may be left out; where only two are free, the third is never offered. The fourth always is."""
    random, items = np.random.default_rng(0), tuple("abcd")
    arrival, moves = random.dirichlet(np.ones(4)), random.dirichlet(np.ones(4), size=4)
    margins, table = random.normal(size=4), np.empty(2**free)
    law_kernels.chain_table(arrival, moves, np.arange(3), free, margins, table)
    for missing in range(table.size):
        offer = [code for code in range(4) if code == 3 or (code < free and not missing >> code & 1)]
        shares = markov_chain(items, arrival, moves).probabilities(
            Assortments([[items[code] for code in offer]], items)
        )
        assert table[missing] == pytest.approx(shares @ margins[offer])


@pytest.mark.parametrize(
    ("slots", "capacity", "answer", "offer"),
    [
        (5, np.inf, (6.0, 0.0, 0.0), [1, 1, 0, 1, 0]),  # all that pay
        (3, np.inf, (6.0, 1.0, 0.0), [1, 1, 0, 1, 0]),  # the last slot is taken by a net price of 1
        (2, np.inf, (5.0, 2.0, 1.0), [1, 0, 0, 1, 0]),  # the next that would pay has 1
        (0, np.inf, (0.0, 0.0, 3.0), [0, 0, 0, 0, 0]),
        (5, 9.0, (6.0, 0.0, 0.0), [1, 1, 0, 1, 0]),  # a capacity for all, which is no smaller relaxation
        (5, 4.0, (4.5, 0.0, np.inf), [0.5, 1, 0, 1, 0]),  # half of the item that is paid least for its space
        (5, 2.0, (3.0, 0.0, np.inf), [0, 1, 0, 1, 0]),
        (5, 1.0, (2.0, 0.0, np.inf), [0, 0, 0, 1, 0]),
        (1, 4.0, (3.0, 3.0, 2.0), [1, 0, 0, 0, 0]),  # slots are the smaller relaxation
    ],
)
def test_an_offer_at_prices_is_of_the_smaller_relaxation(
    slots: int, capacity: float, answer: tuple[float, ...], offer: list[float]
) -> None:
    total, cost = np.array([4.0, 1.5, 0.5, 2.0, 1.0]), np.array([1.0, 0.5, 0.5, 0.0, 2.0])
    space = np.array([4.0, 1.0, 1.0, 1.0, 0.0])  # net prices are 3, 1, 0, 2, -1
    given = np.full(5, 9.0)
    assert branch_kernels.offer_at(total, OfferLimits(cost, space, slots, capacity), given) == answer
    assert given.tolist() == offer
