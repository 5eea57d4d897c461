"""Tables of all offers: each offer as a cell with a digit for each item, the cells' values, and the best of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from rankstream._core.types import ROUNDING, Codes, Mask, Vec
from rankstream.decide.engines import law_kernels, table_kernels
from rankstream.decide.engines.lists import make_lists
from rankstream.decide.problem.offers import OfferProblem
from rankstream.decide.problem.rules import FREE, IN, OUT, Rules
from rankstream.models import EntropyModel, LatentClassModel, LogitModel, MarkovChainModel, PricedModel, RankingModel
from rankstream.models.lifts import Chains, tail_sums

MAX_CELLS = 2**24  # 128 MB of values
MAX_STATES = 2**26
"""Numbers in a table beside the offers: half a gigabyte."""
SECONDS_PER_DIGIT, SECONDS_PER_CELL = 0.2e-9, 2e-9
"""About the seconds for summing up a cell and a digit of it, and for looking at it, by ``benchmarks/decide.py``; only
to predict what fits into a budget.
"""
SECONDS_PER_ENTRY, SECONDS_PER_TERM, SECONDS_PER_STEP = 5e-9, 5e-9, 5e-8
"""The same for an entry of a list, for a term of the sums of other models, and for an item after which classes of a
maximum-entropy model go on to another state (``CLASSES_AT_ONCE`` of them; priced visits of ``benchmarks/advice.py``).
"""


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a problem's free items; see ``table_kernels``.

    With ``by_level`` all levels of an item share one digit, otherwise every level has its own. Without prices, the two
    are the same.
    """

    problem: OfferProblem
    by_level: bool = True

    @cached_property
    def ladders(self) -> list[Codes]:
        """The free levels of every digit, cheapest first; the first item's digit comes last."""
        names, free = self.problem.names, self.problem.state == FREE
        owner = names.owner if self.by_level else np.arange(free.size)
        order = np.lexsort([np.nan_to_num(names.prices), owner])
        order = order[free[order]]
        return np.split(order, np.flatnonzero(np.diff(owner[order])) + 1)[::-1] if order.size else []

    @cached_property
    def sizes(self) -> Codes:
        """Number of values of each digit."""
        return np.array([ladder.size + 1 for ladder in self.ladders], dtype=np.int64)

    @property
    def count(self) -> int:
        """Number of cells."""
        return prod(self.sizes.tolist())

    @cached_property
    def digits(self) -> Codes:
        """The item that each value of each digit stands for, -1 for none."""
        return padded(self.ladders, 1)

    @property
    def steps(self) -> Codes:
        """The difference between cells that differ by one level of an item, for all items; 0 if not free."""
        out = np.zeros(len(self.problem.items), dtype=np.int64)
        for ladder, stride in zip(self.ladders, strides(self.sizes).tolist(), strict=True):
            out[ladder] = stride
        return out

    def sums(self, numbers: Vec) -> Vec:
        """Return the sum of the offer's numbers for every cell."""
        terms = np.append(numbers, 0.0)[self.digits, np.newaxis]
        return table_kernels.cell_sums(terms, self.sizes, 0, self.sizes.size)[:, 0]

    def mask(self, cell: int) -> Mask:
        """Return for every item of the model whether it is in a cell's offer."""
        inside: Mask = self.problem.state == IN
        values = np.unravel_index(cell, tuple(self.sizes)) if self.ladders else ()
        for ladder, value in zip(self.ladders, values, strict=True):
            if value < ladder.size:
                inside[ladder[value]] = True
        return inside

    def best(self, values: Vec, top: int) -> tuple[Vec, list[Mask], Vec, int]:
        """Return the best feasible values and offers, the best value of each size, and the number of feasible ones."""
        problem, everything = self.problem, np.arange(len(self.problem.items))
        rules = problem.rules.left(everything, problem.state == IN)
        best, picks, by_size, feasible = best_cells(values, self.digits, self.sizes, problem.costs, rules, top)
        return best, [self.mask(int(cell)) for cell in picks], by_size, feasible


def best_cells(
    values: Vec, digits: Codes, sizes: Codes, costs: Vec, rules: Rules, top: int
) -> tuple[Vec, Codes, Vec, int]:
    """Return the best feasible values and cells of a table, the best of each size, and the number of feasible ones.

    ``digits`` refer to the items of ``costs`` and ``rules``.
    """
    rows = rules.rows
    numbers = np.zeros((costs.size + 1, 3 + rows.limits.size))  # the last row is that of digits that offer nothing
    numbers[:-1, 0], numbers[:-1, 1], numbers[:-1, 2], numbers[:-1, 3:] = costs, 1.0, rules.space, rows.factors.T
    breakable = numbers[digits, 3:].max(axis=1).sum(axis=0) > rows.limits  # one level of each item is in the digits
    numbers = numbers[:, np.append([True] * 3, breakable)]
    best, picks = np.full(max(1, top), -np.inf), np.zeros(max(1, top), dtype=np.int64)
    by_size = np.full(sizes.size + 1, -np.inf)
    limits = rules.capacity, rules.least, rules.most, rows.limits[breakable]
    feasible = table_kernels.scan(values, sizes, numbers[digits], *limits, best, picks, by_size)
    return best, picks, by_size, feasible


def cells_of(problem: OfferProblem) -> Cells | None:
    """Return the cells of a table of all offers for the problem's model, or None if there is no such table.

    Digits of several levels need a model that respects their order, or whose shares do not depend on it.
    """
    model, levels = problem.model, problem.levels is not None
    if isinstance(model, LogitModel) or (isinstance(model, LatentClassModel) and not model.order):
        return Cells(problem)
    if isinstance(model, RankingModel):
        return Cells(problem, levels and keeps_order(model, problem.names.own.values()))
    if isinstance(model, EntropyModel):
        if levels and not len(model.prior.chain_weights) and _same_order(problem, model.prior.order):
            return Cells(problem)
        return None if model.prior.order else Cells(problem, by_level=False)
    if isinstance(model, MarkovChainModel):
        return Cells(problem, by_level=False)
    exact = isinstance(model, PricedModel) or (
        isinstance(model, LatentClassModel) and _same_order(problem, model.order)
    )
    return Cells(problem) if levels and exact else None


def keeps_order(model: RankingModel, levels: Iterable[Sequence[int]]) -> bool:
    """Whether no ranking has a level of an item before a cheaper one; ``levels`` has those of each item, in order."""
    orders = model.orders[model.weights > 0.0]
    places = np.empty_like(orders)
    np.put_along_axis(places, orders, np.arange(orders.shape[1])[np.newaxis], axis=1)
    return all((np.diff(places[:, list(codes)], axis=1) > 0).all() for codes in levels)


def _same_order(problem: OfferProblem, order: Chains) -> bool:
    return {tuple(codes) for codes in problem.names.own.values() if len(codes) > 1} == set(order)


def strides(sizes: Codes) -> Codes:
    """Return the difference between cells that differ by one in a digit."""
    return np.array([prod(sizes[place + 1 :].tolist()) for place in range(sizes.size)], dtype=np.int64)


def padded(rows: list[Any], more: int = 0) -> Codes:
    """Return rows of different lengths as a table, filled up with -1, and with ``more`` columns of -1."""
    out = np.full((len(rows), max(map(len, rows), default=0) + more), -1, dtype=np.int64)
    for number, row in enumerate(rows):
        out[number, : len(row)] = row
    return out


class RankingStates:
    """The states of rankings: all levels of every item, up to one that is always on offer.

    Digits are in the order of ``Cells``: without levels, free items are the low bits, excluded items the next ones.
    """

    def __init__(self, cells: Cells) -> None:
        problem = cells.problem
        self.always, own = problem.always, list(problem.names.own.values()) if cells.by_level else []
        grouped = {code for codes in own for code in codes}
        banned = np.flatnonzero(~self.always & (problem.state == OUT))
        self.codes = np.concatenate([problem.free, banned])
        alone = [*np.flatnonzero(self.always).tolist(), *self.codes[::-1].tolist()]
        own += [[code] for code in alone if code not in grouped]
        self.lengths, self.ladders = np.array([len(codes) for codes in own], dtype=np.int64), padded(own)
        ends = [next((k for k, code in enumerate(codes) if self.always[code]), len(codes)) for codes in own]
        self.sizes = np.array(ends, dtype=np.int64) + 1
        self.strides, self.count = strides(self.sizes), prod(self.sizes.tolist())


@dataclass(frozen=True, eq=False)
class OfferTable:
    """The value of the offer of every cell."""

    values: Vec
    cells: Cells


@dataclass(frozen=True, eq=False)
class Scanned:
    """The best offers, best first, the best value of every size, and the number of feasible offers."""

    values: list[float]
    offers: list[Mask]
    by_size: dict[int, float]
    feasible: int


def predicted_seconds(problem: OfferProblem) -> float:
    """Predict the seconds of a table; infinite if it is too large or the model has none."""
    model, n_items, cells = problem.model, len(problem.items), cells_of(problem)
    if cells is None or cells.count > MAX_CELLS:
        return np.inf
    count = float(cells.count)
    seconds = (SECONDS_PER_DIGIT * cells.sizes.size + SECONDS_PER_CELL) * count
    if isinstance(model, RankingModel):
        return seconds + SECONDS_PER_ENTRY * model.orders.size
    if isinstance(model, MarkovChainModel):
        terms = count * n_items**2 / 3
    elif isinstance(model, EntropyModel):
        states, chains = RankingStates(cells), len(model.prior.chain_weights)
        at_once, classes = law_kernels.CLASSES_AT_ONCE, len(model.prior.class_weights)
        if states.count * max(states.codes.size if chains else 0, at_once if classes else 0) > MAX_STATES:
            return np.inf
        seconds += SECONDS_PER_STEP * states.count * n_items * -(-classes // at_once)
        terms = states.count * n_items * float(chains * n_items)
    else:
        terms = count * len(_classes(model)[0])
    return seconds + SECONDS_PER_TERM * terms


def most_decided(problem: OfferProblem) -> str:
    """Return the limit that a problem exceeds if it is too large for any table; empty otherwise.

    >>> from rankstream import RankingModel
    >>> from rankstream.decide.problem.offers import make_problem
    >>> most_decided(make_problem(RankingModel(range(30), [range(30)], [1.0]), 1.0))
    '24 items, not 30'
    """
    cells = cells_of(problem) or Cells(problem, by_level=False)
    if cells.count <= MAX_CELLS:
        return ""
    if cells.by_level and problem.levels is not None:
        return f"{MAX_CELLS:,} combinations of items and levels, not {cells.count:,}"
    return f"{MAX_CELLS.bit_length() - 1} items, not {problem.free.size}"


def table_of(problem: OfferProblem) -> OfferTable:
    """Return the values of all offers by the problem's model."""
    model, cells = problem.model, cells_of(problem)
    if cells is None:
        raise ValueError(f"There is no table of all offers for a {type(model).__name__}: use a rankstream model.")
    values = np.zeros(cells.count)
    if isinstance(model, MarkovChainModel):
        codes = RankingStates(cells).codes
        arrival, moves = np.array(model.arrival), np.array(model.transitions)
        law_kernels.chain_table(arrival, moves, codes, problem.free.size, problem.margins, values)
    elif isinstance(model, RankingModel):
        lists = make_lists(model, problem)
        table_kernels.spread(*lists.arrays, cells.steps[lists.free], values)
        table_kernels.prefix_sums(values, cells.sizes)
    elif isinstance(model, EntropyModel):
        _add_tilted(model, cells, values)
        table_kernels.prefix_sums(values, cells.sizes)
    else:
        margins, always = problem.margins, problem.always
        for share, row in zip(*_classes(model), strict=True):
            whole = cells.sums(row) + float(row[always].sum())
            gains = cells.sums(row * margins) + float(row[always] @ margins[always])
            values += share * np.divide(gains, whole, out=np.zeros_like(gains), where=whole > 0.0)
    return OfferTable(values, cells)


def _classes(model: Any) -> tuple[Vec, Vec]:
    """Return the shares of a mixture's classes, and the worth of each item at a level to each of them."""
    if isinstance(model, LogitModel):
        return np.ones(1), np.atleast_2d(model.attraction)
    if isinstance(model, LatentClassModel):
        return model.mixture, tail_sums(model.attraction, model.order)
    return model.mixture, model.attraction


def _add_tilted(model: EntropyModel, cells: Cells, values: Vec) -> None:
    """Add the terms of a maximum-entropy model, class by class and chain by chain."""
    lattice, duals = model.program()
    lattice.evaluate(duals)
    states, prior, margins = RankingStates(cells), model.prior, cells.problem.margins
    transitions = (lattice.first, lattice.items, lattice.following)
    state_of = np.zeros(states.count, dtype=np.int64)
    law_kernels.states_of(states.ladders, states.sizes, states.strides, *transitions, state_of)
    steps = cells.steps
    steps[states.always] = -1
    n_classes, at_once = len(prior.class_weights), law_kernels.CLASSES_AT_ONCE
    reach = np.zeros((states.count if n_classes else 0, at_once))
    for begin in range(0, n_classes, at_once):
        part = slice(begin, min(begin + at_once, n_classes))
        missing = begin + at_once - part.stop  # pad with classes of weight 0
        attraction, laws = (
            np.pad(rows[:, part], ((0, 0), (0, missing)), constant_values=1.0)
            for rows in (lattice.attraction, lattice.values)
        )
        law_kernels.add_classes(
            np.pad(lattice.posterior[part], (0, missing)), attraction, laws, lattice.class_tilts, *transitions,
            state_of, states.ladders, states.lengths, states.sizes, states.strides, margins, steps, reach, values,
        )  # fmt: skip
    codes = states.codes
    bit_of = np.full(margins.size, -1, dtype=np.int64)
    bit_of[codes] = np.arange(codes.size)
    for number in range(len(prior.chain_weights)):
        law_kernels.add_chain(
            float(lattice.posterior[n_classes + number]), prior.arrivals[number].copy(), prior.moves[number].copy(),
            lattice.chain_values[number], lattice.costs, *transitions, state_of, codes, bit_of, margins,
            cells.count - 1, np.zeros((state_of.size, codes.size)), values,
        )  # fmt: skip


def scan(table: OfferTable, problem: OfferProblem, top: int = 1) -> Scanned:
    """Return the best feasible offers of a table; raise a ValueError if none is feasible."""
    inside = problem.state == IN
    taken, fixed = int(inside.sum()), float(problem.costs[inside].sum())
    best, offers, size_best, feasible = Cells(problem, table.cells.by_level).best(table.values, top)
    if not feasible:
        raise ValueError("No offer meets all constraints: relax a size, a capacity or a pair.")
    finite = [number for number in range(best.size) if np.isfinite(best[number])]
    tiny = ROUNDING * (problem.free.size + 1) * float(np.abs(problem.margins).max(initial=0.0))

    def plain(value: float) -> float:
        return 0.0 if abs(value - fixed) <= tiny else float(value - fixed)

    return Scanned(
        [plain(best[number]) for number in finite],
        [offers[number] for number in finite],
        {size + taken: plain(value) for size, value in enumerate(size_best) if np.isfinite(value)},
        feasible,
    )
