"""The best offer of a ranking model as an integer program: the slow referee of the engines, in two forms."""

from typing import Literal

import numpy as np

from rankstream._core.types import Vec
from rankstream.decide.engines.lists import Lists, make_lists
from rankstream.decide.engines.milp import Program, Solved
from rankstream.decide.problem.offers import OfferProblem
from rankstream.models.rankings import RankingModel

Form = Literal["bertsimas-misic", "exclusion-set"]


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
    return Solved(found.held, found.value + more, found.bound + more, found.optimal)


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
