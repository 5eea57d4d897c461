"""Cells: every offer of the free items as a number with a digit for each item, and the best cells of a table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from rankstream._core.types import Codes, Mask, Vec
from rankstream.decide.engines import table_kernels
from rankstream.decide.problem.offers import OfferProblem
from rankstream.decide.problem.rules import FREE, IN, OUT, Rules
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.lifts import Chains
from rankstream.models.parametric.attribute_logit import PricedModel
from rankstream.models.parametric.latent_class import LatentClassModel
from rankstream.models.parametric.markov_chain import MarkovChainModel
from rankstream.models.parametric.mnl import LogitModel
from rankstream.models.rankings import RankingModel


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
