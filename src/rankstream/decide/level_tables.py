"""All offers of items at price levels at once: what each earns, and which of them are feasible, cell by cell."""

from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod
from typing import Any

import numpy as np

from rankstream._core.types import Codes, Mask, Vec
from rankstream.decide import level_kernels as kernels
from rankstream.decide.lists import make_lists
from rankstream.decide.problem import OfferProblem
from rankstream.decide.rows import FREE, IN
from rankstream.decide.rules import rules_of
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.lifting import Chains, tail_sums
from rankstream.models.parametric.falling import FallingClassModel
from rankstream.models.parametric.latent_class import LatentClassModel
from rankstream.models.parametric.mnl import LogitModel
from rankstream.models.parametric.priced import PricedModel
from rankstream.models.rankings import RankingModel

MOST_CELLS = 2**24
SUMMED, LOOKED_AT, ENTRY, DRAWN = 8e-10, 5e-9, 5e-9, 4e-9
"""About the seconds for a cell and a digit of it, for looking at a cell, for an entry of a list, and for a level of a
cell of maximum entropy; only to predict what fits into a budget.
"""


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a problem's free items, and what of a cell stands for what; see ``level_kernels``.

    ``chains`` are the numbers of the free levels of each item, cheapest first.
    """

    problem: OfferProblem

    @cached_property
    def chains(self) -> list[Codes]:
        """The free levels of every item with some, cheapest first."""
        names, free = self.problem.names, self.problem.state == FREE
        order = np.lexsort([np.nan_to_num(names.prices), names.owner])
        order = order[free[order]]
        return np.split(order, np.flatnonzero(np.diff(names.owner[order])) + 1) if order.size else []

    @cached_property
    def sizes(self) -> Codes:
        """How many values each digit has."""
        return np.array([chain.size + 1 for chain in self.chains], dtype=np.int64)

    @property
    def count(self) -> int:
        """How many cells there are."""
        return prod(self.sizes.tolist())

    @cached_property
    def place(self) -> dict[int, tuple[int, int]]:
        """For every free level, the place of its digit and the digit."""
        chains = enumerate(chain.tolist() for chain in self.chains)
        return {code: (axis, digit) for axis, chain in chains for digit, code in enumerate(chain)}

    def steps(self) -> Codes:
        """How much further a cell is with one level more of an item: for all items of the model, 0 if not free."""
        strides = _strides(self.sizes)
        out = np.zeros(len(self.problem.items), dtype=np.int64)
        for chain, stride in zip(self.chains, strides.tolist(), strict=True):
            out[chain] = stride
        return out

    def sums(self, numbers: Any) -> Any:
        """For every cell, the sum of its offer's numbers."""
        none = np.zeros(1, dtype=numbers.dtype)
        parts = [np.append(numbers[chain], none) for chain in self.chains]
        # digit by digit: all cells of the digits so far, beside all values of the next
        return reduce(lambda total, part: (total[:, np.newaxis] + part).ravel(), parts, none)

    def held(self, cell: int) -> Mask:
        """For every item of the model, whether it is in a cell's offer."""
        inside: Mask = self.problem.state == IN
        digits = np.unravel_index(cell, tuple(self.sizes)) if self.chains else ()
        for chain, digit in zip(self.chains, digits, strict=True):
            if digit < chain.size:
                inside[chain[digit]] = True
        return inside

    def allowed(self, size: Codes) -> Mask:
        """Which cells keep all constraints; ``size`` is how many items each has beside those that must be there."""
        problem, rules = self.problem, rules_of(self.problem)
        out: Mask = (size >= rules.least) & (size <= rules.most)
        if rules.room < np.inf:
            out &= self.sums(problem.space) <= rules.room
        for factors, limit in zip(problem.rows.factors, problem.rows.limits.tolist(), strict=True):
            within = factors[problem.state == IN].sum()
            out &= self.sums(factors.astype(np.int16)) <= limit - within
        grid = out.reshape(tuple(self.sizes))
        for pairs, banned in ((problem.requires, False), (problem.excludes, True)):
            for first, second in pairs.tolist():
                if first in self.place and second in self.place:
                    self._forbid(grid, self.place[first], self.place[second], banned)
        return out

    def _forbid(self, grid: Mask, first: tuple[int, int], second: tuple[int, int], banned: bool) -> None:
        """Refuse the cells with the first level and with the second (banned) or without it."""
        (axis, digit), (other, value) = first, second
        if axis == other:
            if not banned:  # a level cannot be there with another of its item
                grid[(slice(None),) * axis + (digit,)] = False
            return
        digits = [value] if banned else [k for k in range(int(self.sizes[other])) if k != value]
        for k in digits:
            where: list[Any] = [slice(None)] * grid.ndim
            where[axis], where[other] = digit, k
            grid[tuple(where)] = False


def suits(problem: OfferProblem) -> bool:
    """Whether there is a table over levels: items have prices, and the model respects their order or needs none."""
    model = problem.model
    if problem.levels is None:
        return False
    if isinstance(model, RankingModel):
        above = np.full(len(problem.items), -1, dtype=np.int64)
        for codes in problem.names.own.values():
            above[codes[1:]] = codes[:-1]
        return kernels.keep_order(np.ascontiguousarray(model.orders[model.weights > 0.0]), above)
    if isinstance(model, EntropyModel):
        return not len(model.prior.chain_weights) and _same_order(problem, model.prior.order)
    if isinstance(model, FallingClassModel):
        return _same_order(problem, model.order)
    return isinstance(model, LogitModel | LatentClassModel | PricedModel)


def _same_order(problem: OfferProblem, order: Chains) -> bool:
    return {tuple(codes) for codes in problem.names.own.values() if len(codes) > 1} == set(order)


def predicted_seconds(problem: OfferProblem) -> float:
    """About how long a table would take; infinite where it is too large."""
    cells, model = Cells(problem), problem.model
    count, seconds = float(cells.count), 0.0
    if count > MOST_CELLS:
        return np.inf
    if isinstance(model, RankingModel):
        seconds = ENTRY * float(model.orders.size)
    elif isinstance(model, EntropyModel):
        states = prod(_Progress(problem).sizes.tolist())
        terms = states * len(problem.items) * len(model.prior.class_weights)
        seconds = DRAWN * terms if states <= MOST_CELLS else np.inf
    else:
        seconds = LOOKED_AT * count * len(_classes(model)[0])
    return seconds + (SUMMED * len(cells.chains) + LOOKED_AT) * count


def level_values(problem: OfferProblem) -> Vec:
    """What every cell's offer earns by the problem's model, before listing costs."""
    cells, model = Cells(problem), problem.model
    values = np.zeros(cells.count)
    if isinstance(model, RankingModel):
        lists = make_lists(model, problem)
        kernels.spread(*lists.arrays, cells.steps()[lists.free], values)
    elif isinstance(model, EntropyModel):
        _add_tilted(model, problem, cells, values)
    else:
        _add_logits(problem, cells, values)
        return values
    kernels.prefix_sums(values, cells.sizes)
    return values


def scan_levels(values: Vec, problem: OfferProblem, top: int) -> tuple[Vec, list[Mask], Vec, int]:
    """The best feasible values and offers, the best value of each size, and how many offers are feasible."""
    cells = Cells(problem)
    size = cells.sums(np.ones(len(problem.items), dtype=np.int8))
    net = values - cells.sums(problem.costs) if problem.costs.any() else values
    best, picks = np.full(max(1, top), -np.inf), np.zeros(max(1, top), dtype=np.int64)
    by_size = np.full(len(cells.chains) + 1, -np.inf)
    feasible = kernels.scan(net, cells.allowed(size), size, best, picks, by_size)
    return best, [cells.held(int(cell)) for cell in picks], by_size, feasible


def _strides(sizes: Codes) -> Codes:
    """How far apart two cells are that differ by one in a digit."""
    return np.array([prod(sizes[place + 1 :].tolist()) for place in range(sizes.size)], dtype=np.int64)


def _classes(model: Any) -> tuple[Vec, Vec]:
    """The shares of a mixture's classes, and what each item at a level is worth to each of them in an offer."""
    if isinstance(model, LogitModel):
        return np.ones(1), np.atleast_2d(model.attraction)
    if isinstance(model, FallingClassModel):
        return model.mixture, tail_sums(model.attraction, model.order)
    return model.mixture, model.attraction


def _add_logits(problem: OfferProblem, cells: Cells, values: Vec) -> None:
    always = problem.must if problem.nothing < 0 else np.append(problem.must, problem.nothing)
    for share, row in zip(*_classes(problem.model), strict=True):
        whole = cells.sums(row) + float(row[always].sum())
        gains = cells.sums(row * problem.margins) + float(row[always] @ problem.margins[always])
        values += share * np.divide(gains, whole, out=np.zeros_like(gains), where=whole > 0.0)


class _Progress:
    """How far rankings can come: all levels of every item, up to one that is always on offer."""

    def __init__(self, problem: OfferProblem) -> None:
        names, always = problem.names, problem.state == IN
        if problem.nothing >= 0:
            always[problem.nothing] = True
        own = list(names.own.values())
        priced = {code for codes in own for code in codes}
        own += [[code] for code in range(len(problem.items)) if code not in priced]
        self.always, self.lengths = always, np.array([len(codes) for codes in own], dtype=np.int64)
        self.chains = np.full((len(own), int(self.lengths.max())), -1, dtype=np.int64)
        for number, codes in enumerate(own):
            self.chains[number, : len(codes)] = codes
        ends = [next((k for k, code in enumerate(codes) if always[code]), len(codes)) for codes in own]
        self.sizes = np.array(ends, dtype=np.int64) + 1


def _add_tilted(model: EntropyModel, problem: OfferProblem, cells: Cells, values: Vec) -> None:
    """The maximum-entropy model's g, class by class."""
    lattice, duals = model.program()
    lattice.evaluate(duals)
    progress = _Progress(problem)
    strides, transitions = _strides(progress.sizes), (lattice.first, lattice.items, lattice.following)
    state_of = np.zeros(prod(progress.sizes.tolist()), dtype=np.int64)
    kernels.states_of(progress.chains, progress.sizes, strides, *transitions, state_of)
    steps, reach = cells.steps(), np.zeros(state_of.size)
    steps[progress.always] = -1
    for number in range(len(model.prior.class_weights)):
        kernels.add_class(
            float(lattice.posterior[number]), lattice.attraction[:, number].copy(), lattice.values[:, number].copy(),
            lattice.class_tilts, *transitions, state_of, progress.chains, progress.lengths, progress.sizes, strides,
            problem.margins, steps, reach, values,
        )  # fmt: skip
