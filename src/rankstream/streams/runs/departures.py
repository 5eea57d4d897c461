"""Shrinking: go on with a run when offers leave, as the least informative must where a market has outgrown the memory.

The past is read as that of a game on the offers that stay, played at its means: what the duals priced elsewhere is
dropped, and what remains of a dual is allowed. So ``certificate(...).gap`` holds as before, for the offers that stay.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.decay import ForgettingCounts
from rankstream.learners.mirror_descent import Averaged, Moved
from rankstream.learners.rounds import Sums
from rankstream.oracles import QuickOracle
from rankstream.solver.loop import Solver, State
from rankstream.solver.runs import Run
from rankstream.streams.runs.growth import tie_rule
from rankstream.streams.runs.offer_weights import can_reweigh


def offers_to_keep(counts: ChoiceCounts, most: int) -> Codes:
    """The numbers of the offers that stay, so that at most ``most`` coordinates do.

    Those of fewest choices leave first, and the oldest of them first.

    >>> offers = Assortments([("tea", "pie"), ("pie", "ice"), ("tea", "ice")])
    >>> offers_to_keep(ChoiceCounts(offers, [1, 2, 1, 0, 1, 0]), 4)
    array([0, 2])
    """
    sizes = np.diff(counts.assortments.indptr)
    order = np.argsort(counts.totals, kind="stable")[::-1]  # the last to leave first
    stay = int(np.searchsorted(np.cumsum(sizes[order]), most, side="right"))
    return np.sort(order[: max(1, stay)])


def drop_offers(runs: Sequence[Run], counts: Sequence[ChoiceCounts], stay: Codes) -> list[ChoiceCounts]:
    """Counts over the offers that stay, which the runs are left with, too; items that are in none of them leave.

    Items of an order stay: they may be offered again, and the order must hold then.

    Runs whose distance or learner is not of the kinds that ``reweigh`` knows begin again.
    """
    whole = counts[0].assortments
    places = np.flatnonzero(np.isin(whole.owner, stay))
    codes = np.unique(np.append(whole.members[places], whole.precedence.pairs))
    named = [whole.items[code] for code in codes.tolist()]
    offers = Assortments([whole.offers[number] for number in stay.tolist()], named, whole.order)
    for run in runs:
        run.solver, run.state = _part_of_run(run, whole, offers, places, stay, codes)
    return [_part_of_counts(one, offers, places, stay) for one in counts]


def _part_of_counts(counts: ChoiceCounts, offers: Assortments, places: Codes, stay: Codes) -> ChoiceCounts:
    part = counts._like(offers) if isinstance(counts, ForgettingCounts) else ChoiceCounts(offers)
    memory = counts.memory()
    for name, index in (("tallies", places), ("totals", stay), ("squares", stay)):
        if name in memory:
            memory[name] = memory[name][index]
    if "where" in memory:
        now = np.full(counts.assortments.n_coordinates, -1, dtype=np.int64)
        now[places] = np.arange(places.size)
        where = now[memory["where"]]
        memory |= {name: memory[name][where >= 0] for name in ("amounts", "times")} | {"where": where[where >= 0]}
    part.remember(memory)
    return part


def _part_of_run(
    run: Run, whole: Assortments, offers: Assortments, places: Codes, stay: Codes, codes: Codes
) -> tuple[Solver, State]:
    distance: Any = run.solver.distance
    before = run.state
    ties, seed = tie_rule(run.solver.oracle)
    weights: Any = getattr(distance, "weights", None)
    own = {} if weights is None else {"weights": tuple(weights[number] for number in stay.tolist())}
    smaller: Any = replace(distance, assortments=offers, **own)
    orders = _without(np.frombuffer(b"".join(before.weights), dtype=np.int64).reshape(-1, whole.n_items), codes)
    start = orders[-1] if len(orders) else None
    solver = Solver(offers, smaller, run.solver.learner, QuickOracle(offers, ties, seed, before.round, start))
    if not before.round or not can_reweigh(run.solver):
        return solver, solver.init()
    state = State(_part_of_learner(before.learner, places), _part_of_sums(before.sums, smaller, places), before.round)
    state.observations, state.seen = before.observations, None if before.seen is None else before.seen[places]
    for order, weight in zip(orders, before.weights.values(), strict=True):
        key = order.tobytes()
        state.weights[key] = state.weights.get(key, 0.0) + weight
    return solver, state


def _without(rankings: Codes, codes: Codes) -> Codes:
    """The rankings of the items that stay, by their new codes."""
    now = np.full(rankings.shape[1], -1, dtype=np.int64)
    now[codes] = np.arange(codes.size)
    renamed = now[rankings]
    return renamed[renamed >= 0].reshape(len(rankings), codes.size)


def _part_of_learner(state: Any, places: Codes) -> Any:
    if isinstance(state, Averaged):
        return Averaged(state.dual[places], state.pulls[places], state.squares)
    return Moved(state.dual[places], state.image[places], state.step)


def _part_of_sums(sums: Sums, distance: Any, places: Codes) -> Sums:
    """The sums, as if all rounds had been played at their means."""
    total = sums.total_weight
    vertex, frequencies, dual = (array[places] for array in (sums.vertex, sums.frequencies, sums.dual))
    mean: Vec = dual / total
    return Sums(
        vertex=vertex,
        frequencies=frequencies,
        dual=dual,
        total_weight=total,
        answer=float(distance.costs(mean) @ vertex),
        offset=total * float(distance.offset(mean, frequencies / total)),
        latest=sums.latest[places] if sums.latest.size else sums.latest,
        moved=True,
    )
