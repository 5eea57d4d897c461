"""All offers at once: what each of them earns, for every kind of model, as one table over bitmasks."""

from dataclasses import dataclass

import numpy as np

from rankstream._core.rounding import ROUNDING
from rankstream._core.threads import crew
from rankstream._core.types import Codes, Mask, Vec
from rankstream.decide import law_kernels, level_tables, table_kernels
from rankstream.decide.lists import make_lists
from rankstream.decide.problem import OfferProblem
from rankstream.decide.rows import IN
from rankstream.decide.rules import rules_of
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.parametric.latent_class import LatentClassModel
from rankstream.models.parametric.markov_chain import MarkovChainModel
from rankstream.models.parametric.mnl import LogitModel
from rankstream.models.rankings import RankingModel

MOST_BITS = 24
MOST_STATES = 2**26
"""Numbers in a table beside the offers: half a gigabyte."""
RATE = 2e8
"""About how many terms a second the loops take; only to predict what fits into a budget."""
ADDITION, SCANNED, ENTRY = 0.2e-9, 2e-9, 5e-9
"""The same for rankings: seconds for an offer and a bit of it, for looking at an offer, and for an entry of a list."""


SHARED, PARTS = 18, 32
"""From how many bits on a table is shared out among threads, and how many parts its columns come in."""


@dataclass(frozen=True, eq=False)
class OfferTable:
    """What every offer of free items earns: offer S in place ``S ^ flip``; ``by_level``, in the cell of its levels."""

    values: Vec
    flip: int
    by_level: bool = False


@dataclass(frozen=True, eq=False)
class Scanned:
    """The best offers, best first, and the best value and offer of every size; how many offers are feasible."""

    values: list[float]
    offers: list[Mask]
    by_size: dict[int, float]
    feasible: int


def predicted_seconds(problem: OfferProblem) -> float:
    """About how long a table would take; infinite where it is too large or there is none for the model."""
    model, free, n_items = problem.model, problem.free.size, len(problem.items)
    if level_tables.suits(problem):
        return level_tables.predicted_seconds(problem)
    if free > MOST_BITS:
        return np.inf
    offers = float(2**free)
    if isinstance(model, RankingModel):
        return (ADDITION * free + SCANNED) * offers + ENTRY * model.orders.size
    if isinstance(model, LogitModel):
        terms = offers
    elif isinstance(model, LatentClassModel):
        terms = offers * model.n_classes
    elif isinstance(model, MarkovChainModel):
        terms = offers * n_items**2 / 3
    elif isinstance(model, EntropyModel) and not model.prior.order:
        bits = n_items - problem.must.size - (problem.nothing >= 0)
        sets, chains = 2.0**bits, len(model.prior.chain_weights)
        if sets * (bits if chains else 1) > MOST_STATES:
            return np.inf
        terms = sets * n_items * (1.5 * len(model.prior.class_weights) + chains * n_items)
    else:
        return np.inf
    return (terms + 4 * offers) / RATE


def most_decided(problem: OfferProblem) -> str:
    """Where a problem is too large for a table whatever the budget, how large it may be and is; else nothing.

    >>> from rankstream import RankingModel
    >>> from rankstream.decide.problem import make_problem
    >>> most_decided(make_problem(RankingModel(range(30), [range(30)], [1.0]), 1.0))
    '24 items, not 30'
    """
    if level_tables.suits(problem):
        cells = level_tables.Cells(problem).count
        most = level_tables.MOST_CELLS
        return f"{most:,} combinations of items and levels, not {cells:,}" if cells > most else ""
    return f"{MOST_BITS} items, not {problem.free.size}" if problem.free.size > MOST_BITS else ""


def table_of(problem: OfferProblem) -> OfferTable:
    """What all offers earn by the problem's model."""
    model, free = problem.model, problem.free.size
    if level_tables.suits(problem):
        return OfferTable(level_tables.level_values(problem), 0, True)
    values = np.zeros(2**free)
    if isinstance(model, LogitModel | LatentClassModel):
        _add_logits(model, problem, values)
        return OfferTable(values, 0)
    if isinstance(model, MarkovChainModel):
        codes = _codes(problem)
        law_kernels.chain_table(
            np.array(model.arrival), np.array(model.transitions), codes, free, problem.margins, values
        )
        return OfferTable(values, 2**free - 1)
    if isinstance(model, RankingModel):
        lists = make_lists(model, problem)
        table_kernels.spread(*lists.arrays, values)
    elif isinstance(model, EntropyModel) and not model.prior.order:
        _add_tilted(model, problem, values)
    else:
        raise ValueError(f"There is no table of all offers for a {type(model).__name__}: give a model of the package.")
    subset_sums(values, free)
    return OfferTable(values, 2**free - 1)


def _codes(problem: OfferProblem) -> Codes:
    """The items that are not always on offer: free ones first, then those that are never offered."""
    always = problem.state == IN
    if problem.nothing >= 0:
        always[problem.nothing] = True
    banned = np.flatnonzero(~always & (problem.state < 0))
    return np.concatenate([problem.free, banned])


def _add_logits(model: LogitModel | LatentClassModel, problem: OfferProblem, values: Vec) -> None:
    always = problem.must if problem.nothing < 0 else np.append(problem.must, problem.nothing)
    shares = np.ones(1) if isinstance(model, LogitModel) else model.mixture
    for share, row in zip(shares.tolist(), np.atleast_2d(model.attraction), strict=True):
        held, gain = float(row[always].sum()), float(row[always] @ problem.margins[always])
        table_kernels.logit_table(row[problem.free], held, gain, problem.margins[problem.free], share, values)


def _add_tilted(model: EntropyModel, problem: OfferProblem, values: Vec) -> None:
    """The maximum-entropy model's g, class by class and chain by chain."""
    lattice, duals = model.program()
    lattice.evaluate(duals)
    codes, prior = _codes(problem), model.prior
    steps = (lattice.first, lattice.items, lattice.following)
    state_of = np.zeros(2**codes.size, dtype=np.int64)
    law_kernels.states_of(codes, *steps, state_of)
    bit_of = np.full(len(problem.items), -1, dtype=np.int64)
    bit_of[codes] = np.arange(codes.size)
    inside = 2**problem.free.size - 1
    n_classes, reach = len(prior.class_weights), np.zeros(state_of.size)
    for number in range(n_classes):
        law_kernels.add_class(
            float(lattice.posterior[number]), lattice.attraction[:, number].copy(), lattice.values[:, number].copy(),
            lattice.class_tilts, *steps, state_of, bit_of, problem.margins, inside, reach, values,
        )  # fmt: skip
    for number in range(len(prior.chain_weights)):
        law_kernels.add_chain(
            float(lattice.posterior[n_classes + number]), prior.arrivals[number].copy(), prior.moves[number].copy(),
            lattice.chain_values[number], lattice.costs, *steps, state_of, codes, bit_of, problem.margins, inside,
            np.zeros((state_of.size, codes.size)), values,
        )  # fmt: skip


def subset_sums(values: Vec, bits: int) -> None:
    """In place: every entry becomes the sum of the entries of all subsets of its set, on all threads where that pays.

    The low bits are done in each of eight rows, then the three high ones column by column: every entry gets the same
    additions in the same order whatever the number of threads, so that the sums are the same bit for bit.
    """
    if bits < SHARED:
        table_kernels.subset_sums(values, bits)
        return
    low = bits - 3
    width = 2**low // PARTS
    with crew() as threads:
        threads.run(lambda row: table_kernels.subset_sums(values[row << low : (row + 1) << low], low), 8)
        threads.run(lambda part: table_kernels.join(values, bits, part * width, (part + 1) * width), PARTS)


def scan(table: OfferTable, problem: OfferProblem, top: int = 1) -> Scanned:
    """The best feasible offers of a table; a ValueError where none is feasible."""
    inside = problem.state == IN
    taken, fixed = int(inside.sum()), float(problem.costs[inside].sum())
    best, offers, size_best, feasible = (
        level_tables.scan_levels(table.values, problem, top) if table.by_level else _scan_bits(table, problem, top)
    )
    if not feasible:
        raise ValueError("No offer keeps all constraints: relax a size, a capacity or a pair.")
    kept = [number for number in range(best.size) if np.isfinite(best[number])]
    tiny = ROUNDING * (problem.free.size + 1) * float(np.abs(problem.margins).max(initial=0.0))

    def plain(value: float) -> float:
        return 0.0 if abs(value - fixed) <= tiny else float(value - fixed)

    return Scanned(
        [plain(best[number]) for number in kept],
        [offers[number] for number in kept],
        {size + taken: plain(value) for size, value in enumerate(size_best) if np.isfinite(value)},
        feasible,
    )


def _scan_bits(table: OfferTable, problem: OfferProblem, top: int) -> tuple[Vec, list[Mask], Vec, int]:
    """The best feasible values and offers, the best value of each size, and how many offers are feasible."""
    free, rules = problem.free, rules_of(problem)
    best, picks = np.full(max(1, top), -np.inf), np.zeros(max(1, top), dtype=np.uint64)
    size_best = np.full(free.size + 1, -np.inf)
    feasible = table_kernels.scan(
        table.values, table.flip, free.size, problem.costs[free], rules.space, rules.room, rules.least, rules.most,
        *rules.pair_masks(np.arange(free.size)), rules.rows.factors, rules.rows.limits, best, picks, size_best,
    )  # fmt: skip
    return best, [_held(problem, int(pick)) for pick in picks], size_best, feasible


def _held(problem: OfferProblem, mask: int) -> Mask:
    held: Mask = problem.state == IN
    for bit, code in enumerate(problem.free.tolist()):
        held[code] = bool(mask >> bit & 1)
    return held
