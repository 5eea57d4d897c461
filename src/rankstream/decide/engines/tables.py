"""The value of all offers at once, for every kind of model, as one table over cells."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankstream._core.types import ROUNDING, Mask, Vec
from rankstream.decide.engines import law_kernels, table_kernels
from rankstream.decide.engines.cells import Cells, RankingStates, cells_of
from rankstream.decide.engines.lists import make_lists
from rankstream.decide.problem.offers import OfferProblem
from rankstream.decide.problem.rules import IN
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.lifts import tail_sums
from rankstream.models.parametric.latent_class import LatentClassModel
from rankstream.models.parametric.markov_chain import MarkovChainModel
from rankstream.models.parametric.mnl import LogitModel
from rankstream.models.rankings import RankingModel

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
