"""The best offer of a ranking model as an integer program: the slow referee of the engines, in two forms."""

from dataclasses import dataclass
from typing import Literal

import highspy
import numpy as np

from rankstream._core.types import Mask, Vec
from rankstream.columns.master import quiet_highs
from rankstream.decide.engines.lists import Lists, make_lists
from rankstream.decide.problem.offers import OfferProblem
from rankstream.decide.problem.rules import IN
from rankstream.models.rankings import RankingModel

Form = Literal["bertsimas-misic", "exclusion-set"]


class Program:
    """A maximisation in HiGHS with a binary variable for every free item, and the rows of all constraints."""

    def __init__(self, problem: OfferProblem) -> None:
        self.problem, self.infinity = problem, highspy.kHighsInf
        self.integer, self.continuous = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
        self.highs = quiet_highs(mip_rel_gap=0.0, mip_abs_gap=1e-9, threads=1)
        self.highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self.free, rules = problem.free, problem.free_rules
        every = [self.variable(-float(problem.costs[code]), whole=True) for code in self.free]
        self.row(every, [1.0] * len(every), rules.least, rules.most)
        if rules.capacity < np.inf:
            self.row(every, rules.space.tolist(), -self.infinity, rules.capacity)
        for factors, limit in zip(rules.rows.factors, rules.rows.limits.tolist(), strict=True):
            used = np.flatnonzero(factors)
            self.row(used.tolist(), factors[used].tolist(), -self.infinity, limit)

    def variable(self, gain: float, *, whole: bool = False) -> int:
        """One more variable between 0 and 1; its number."""
        number = int(self.highs.getNumCol())
        self.highs.addCol(gain, 0.0, 1.0, 0, np.zeros(0, np.int32), np.zeros(0))
        if whole:
            self.highs.changeColIntegrality(number, self.integer)
        return number

    def row(self, columns: list[int], factors: list[float], low: float, high: float) -> None:
        """One more constraint."""
        self.highs.addRow(low, high, len(columns), np.array(columns, np.int32), np.array(factors, np.float64))

    def solve(self, seconds: float = np.inf) -> "Solved":
        """Run; what cannot be kept is a ValueError."""
        if seconds < np.inf:
            self.highs.setOptionValue("time_limit", float(seconds))
        self.highs.run()
        status = self.highs.modelStatusToString(self.highs.getModelStatus())
        if "nfeasible" in status:
            raise ValueError("No offer meets all constraints: relax a size, a capacity or a pair.")
        offer_mask = self.problem.state == IN
        solution = np.array(self.highs.getSolution().col_value)
        if solution.size:
            offer_mask[self.free[solution[: self.free.size] > 0.5]] = True
        info = self.highs.getInfo()
        return Solved(offer_mask, float(info.objective_function_value), float(info.mip_dual_bound), status == "Optimal")


@dataclass(frozen=True, eq=False)
class Solved:
    """An offer, the program's value and bound, and whether they meet."""

    offer_mask: Mask
    value: float
    bound: float
    optimal: bool


def best_by_milp(
    model: RankingModel, problem: OfferProblem, form: Form = "bertsimas-misic", seconds: float = np.inf
) -> Solved:
    """The best offer of a ranking model by an integer program.

    "bertsimas-misic" has a share for every list and item: they sum to 1, are at most the item's variable, and those
    after an item that is offered are 0 (Bertsimas and Mišić 2019). "exclusion-set" has a variable for every place of a
    list that says that nothing up to there is offered, as the offer's value is a sum of such products.
    """
    lists = make_lists(model, problem)
    program = Program(problem)
    constant = _shares(program, lists) if form == "bertsimas-misic" else _exclusions(program, lists)
    found = program.solve(seconds)
    more = constant - lists.fixed_cost
    return Solved(found.offer_mask, found.value + more, found.bound + more, found.optimal)


def linear_bound(model: RankingModel, problem: OfferProblem) -> float:
    """The value of Bertsimas and Mišić's program without integrality: what branch and bound's best prices come to."""
    lists = make_lists(model, problem)
    program = Program(problem)
    constant = _shares(program, lists) - lists.fixed_cost
    for number in range(program.free.size):
        program.highs.changeColIntegrality(number, program.continuous)
    return program.solve().value + constant


def _shares(program: Program, lists: Lists) -> float:
    infinity = program.infinity
    for r in range(lists.weight.size):
        codes = lists.item[lists.start[r] : lists.start[r + 1]].tolist()
        weight = float(lists.weight[r])
        shares = [program.variable(weight * float(lists.margin[code])) for code in codes]
        shares.append(program.variable(weight * float(lists.end[r])))
        program.row(shares, [1.0] * len(shares), 1.0, 1.0)
        for place, code in enumerate(codes):
            program.row([shares[place], code], [1.0, -1.0], -infinity, 0.0)
            rest = shares[place + 1 :]
            program.row([*rest, code], [1.0] * (len(rest) + 1), -infinity, 1.0)
    return 0.0


def _exclusions(program: Program, lists: Lists) -> float:
    """With z(D) = 1 if no item of D is offered, a list earns its first margin plus what every later place changes."""
    gains: dict[tuple[int, ...], float] = {}
    constant = 0.0
    for r in range(lists.weight.size):
        codes = lists.item[lists.start[r] : lists.start[r + 1]].tolist()
        earns: Vec = lists.weight[r] * np.append(lists.margin[codes], lists.end[r])
        constant += float(earns[0])
        for place in range(1, len(earns)):
            key = tuple(sorted(codes[:place]))
            gains[key] = gains.get(key, 0.0) + float(earns[place] - earns[place - 1])
    for key, gain in gains.items():
        column = program.variable(gain)
        if gain > 0.0:
            for code in key:
                program.row([column, code], [1.0, 1.0], -program.infinity, 1.0)
        elif gain < 0.0:
            program.row([column, *key], [1.0] * (len(key) + 1), 1.0, program.infinity)
    return constant
