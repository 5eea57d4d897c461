"""Integer programs in HiGHS: feasible offers where constraints are many, and what benchmarks and tests compare with."""

from dataclasses import dataclass

import numpy as np

from rankstream._core.types import Mask
from rankstream.decide.problem.offers import OfferProblem
from rankstream.decide.problem.rules import IN


class Program:
    """A maximisation in HiGHS with a binary variable for every free item, and the rows of all constraints."""

    def __init__(self, problem: OfferProblem) -> None:
        import highspy

        from rankstream.oracles.milp import quiet_highs

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
        held = self.problem.state == IN
        solution = np.array(self.highs.getSolution().col_value)
        if solution.size:
            held[self.free[solution[: self.free.size] > 0.5]] = True
        info = self.highs.getInfo()
        return Solved(held, float(info.objective_function_value), float(info.mip_dual_bound), status == "Optimal")


@dataclass(frozen=True, eq=False)
class Solved:
    """An offer, the program's value and bound, and whether they meet."""

    held: Mask
    value: float
    bound: float
    optimal: bool


def some_offer(problem: OfferProblem) -> Mask:
    """Any feasible offer, or a ValueError that there is none."""
    program = Program(problem)
    if not problem.free.size:
        held: Mask = problem.state == IN
        if not problem.is_feasible(held):
            raise ValueError("No offer meets all constraints: relax a size, a capacity or a pair.")
        return held
    return program.solve().held
