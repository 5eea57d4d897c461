"""The paper's integer program in CP-SAT or Gurobi, in a process of its own: problem as JSON in, seconds and values out.

Run by ``benchmarks/oracle.py``; needs the extra ``rivals``.
"""

import json
import sys
import time
from itertools import permutations
from typing import Any

SCALE = 10**9  # CP-SAT takes whole numbers


def cpsat(n: int, offers: list[list[int]], costs: list[list[float]], limit: float) -> list[tuple[float, float]]:
    """One solve per cost vector: (seconds, value)."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    before = {(a, b): model.new_bool_var("") for a in range(n) for b in range(a + 1, n)}

    def above(a: int, b: int) -> Any:
        return before[a, b] if a < b else before[b, a].negated()

    for a, b, c in permutations(range(n), 3):
        if a < b and a < c:
            model.add_bool_or([above(a, b).negated(), above(b, c).negated(), above(c, a).negated()])
    chosen = []
    for offer in offers:
        ones = [model.new_bool_var("") for _ in offer]
        model.add_exactly_one(ones)
        for item, one in zip(offer, ones, strict=True):
            for other in offer:
                if other != item:
                    model.add_implication(one, above(item, other))
        chosen += ones
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 2
    solver.parameters.max_time_in_seconds = limit
    found = []
    for vector in costs:
        model.minimize(sum(round(cost * SCALE) * one for cost, one in zip(vector, chosen, strict=True)))
        start = time.perf_counter()
        solver.solve(model)
        found.append((time.perf_counter() - start, solver.objective_value / SCALE))
    return found


def gurobi(n: int, offers: list[list[int]], costs: list[list[float]], limit: float) -> list[tuple[float, float]]:
    """One solve per cost vector: (seconds, value)."""
    import gurobipy

    env = gurobipy.Env(params={"OutputFlag": 0})
    model = gurobipy.Model(env=env)
    model.Params.Threads = 2
    model.Params.TimeLimit = limit
    model.Params.MIPGap = 0.0
    before = {(a, b): model.addVar(vtype="B") for a in range(n) for b in range(a + 1, n)}

    def above(a: int, b: int) -> Any:
        return before[a, b] if a < b else 1 - before[b, a]

    for a, b, c in permutations(range(n), 3):
        if a < b and a < c:
            model.addConstr(above(a, b) + above(b, c) + above(c, a) <= 2)
    chosen = []
    for offer in offers:
        ones = [model.addVar(ub=1.0) for _ in offer]
        model.addConstr(gurobipy.quicksum(ones) == 1)
        for item, one in zip(offer, ones, strict=True):
            for other in offer:
                if other != item:
                    model.addConstr(one <= above(item, other))
        chosen += ones
    found = []
    for vector in costs:
        model.setObjective(gurobipy.quicksum(cost * one for cost, one in zip(vector, chosen, strict=True)))
        start = time.perf_counter()
        model.optimize()
        found.append((time.perf_counter() - start, model.ObjVal))
    return found


if __name__ == "__main__":
    problem = json.load(sys.stdin)
    solve = {"cpsat": cpsat, "gurobi": gurobi}[sys.argv[1]]
    json.dump(solve(problem["n"], problem["offers"], problem["costs"], problem["limit"]), sys.stdout)
