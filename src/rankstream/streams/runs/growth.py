"""Growth: continue a run when offers and items join or leave, instead of starting again.

The paper fixes the collection of offers. Here coordinates are appended, and the past is read as a game on the larger
collection in which the new offers were silent: all rankings had the same payoff there, and the data agreed with the
model. So ``certificate(...).gap`` still holds. The learner's regret bound is for a fixed collection, and starts again.

If a market outgrows the memory, the least informative offers are dropped, and the run starts again from the counts.
"""

from collections.abc import Sequence
from dataclasses import is_dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from rankstream import oracles
from rankstream._core.types import Codes, Vec
from rankstream.data import Assortments, ChoiceCounts
from rankstream.data.order import same_order
from rankstream.data.vertex_kernels import add_choices
from rankstream.distances import KL, L1, L2, Distance, LInf
from rankstream.learners import DualAveraging, FollowTheLeader, MirrorDescent, NaiveFrankWolfe
from rankstream.learners.players import Averaged, Moved
from rankstream.learners.protocol import Sums
from rankstream.oracles import Oracle, QuickOracle, Ties
from rankstream.solver.loop import Solver, State
from rankstream.solver.runs import Run

MAX_CELLS_ONE_BY_ONE = 100_000  # items in all rankings times new items from which all are put in at once


def extend_rankings(rankings: Codes, n_items: int, ties: Ties, seed: int) -> Codes:
    """Insert new items into rankings one after another, each by the tie rule.

    With many of them, the random rule inserts all at once: as uniformly, but at other places.

    >>> extend_rankings(np.array([[1, 0]]), 4, "last", 0), extend_rankings(np.array([[1, 0]]), 4, "first", 0)
    (array([[1, 0, 2, 3]]), array([[3, 2, 1, 0]]))
    """
    if ties == "random" and rankings.size * (n_items - rankings.shape[1]) > MAX_CELLS_ONE_BY_ONE:
        return _scatter(rankings, n_items, seed)
    for code in range(rankings.shape[1], n_items):
        if ties == "random":
            places = np.array([_digest(ranking, seed) % (code + 1) for ranking in rankings], dtype=np.int64)
        else:
            places = np.full(len(rankings), 0 if ties == "first" else code)
        wider = np.empty((len(rankings), code + 1), dtype=np.int64)
        at = np.arange(code + 1)
        from_before = np.arange(code) + (np.arange(code) >= places[:, None])
        wider[np.arange(len(rankings))[:, None], from_before] = rankings
        wider[at == places[:, None]] = code
        rankings = wider
    return rankings


def _digest(ranking: Codes, seed: int) -> int:
    """Return a number to draw a place by: the same on every machine and in any order of draws."""
    digest = blake2b(ranking.tobytes(), digest_size=8, key=seed.to_bytes(8, "little")).digest()
    return int.from_bytes(digest, "little")


def _scatter(rankings: Codes, n_items: int, seed: int) -> Codes:
    """Insert many new items at once: all places are drawn together, and each ranking is read once."""
    n_rankings, n_before = rankings.shape
    drawn = np.array([[_digest(ranking, seed)] for ranking in rankings], dtype=np.uint64)
    drawn = drawn + np.arange(n_before, n_items, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64, modulo 2**64
        drawn = (drawn ^ (drawn >> np.uint64(shift))) * np.uint64(factor)
    places = ((drawn ^ (drawn >> np.uint64(31))) % np.uint64(n_before + 1)).astype(np.int64)
    order = np.argsort(places, axis=1, kind="stable")
    slots = np.take_along_axis(places, order, axis=1) + np.arange(n_items - n_before)
    new = np.zeros((n_rankings, n_items), dtype=bool)
    np.put_along_axis(new, slots, True, axis=1)
    wider = np.empty((n_rankings, n_items), dtype=np.int64)
    wider[new] = (n_before + order).ravel()
    wider[~new] = rankings.ravel()
    return wider


def tie_rule(oracle: Any) -> tuple[Ties, int]:
    """Return the tie rule and the seed of an oracle, or of the one inside its wrappers (default: random, 0)."""
    while hasattr(oracle, "oracle"):
        oracle = oracle.oracle
    return getattr(oracle, "ties", "random"), getattr(oracle, "seed", 0)


def grow(solver: Solver, state: State, assortments: Assortments, oracle: Oracle | None = None) -> tuple[Solver, State]:
    """Continue a run on larger assortments (``Assortments.extend``); return a new solver and state.

    Rankings get the new items by the oracle's tie rule: "first" puts each before all others, "last" behind them,
    "random" at a place drawn from the seed and the ranking; with an order, as near to that place as it allows. Old
    offers have no new item, so nothing changes there. Running means on new offers start at the extended model's
    probabilities. New offers have weight 1 if the distance has weights. By default the oracle is ``oracles.auto`` with
    the old one's tie rule and seed.

    Examples
    --------
    >>> from rankstream import distances, learners
    >>> offers = Assortments([("tea", "nothing")])
    >>> solver = Solver(offers, distances.L2(offers), learners.DualAveraging(), oracles.auto(offers, "last"))
    >>> state = solver.step(solver.init(), [1.0, 0.0])
    >>> larger, grown = grow(solver, state, offers.extend([("pie", "nothing")]))
    >>> grown.round, larger.model(grown).predict(("pie", "nothing"))
    (1, {'pie': 0.0, 'nothing': 1.0})
    """
    before = solver.assortments
    if not isinstance(before, Assortments):
        raise ValueError(f"{type(before).__name__} cannot grow: only Assortments can.")
    if assortments.items[: before.n_items] != before.items or assortments.offers[: before.n_offers] != before.offers:
        raise ValueError(
            "The new assortments do not start with the old items and offers: create them with Assortments.extend."
        )
    if not same_order(before.precedence.above, assortments.precedence.above, before.n_items):
        raise ValueError("The order of the old items has changed: add pairs of new items only, or start a new solver.")
    ties, seed = tie_rule(solver.oracle)
    distance = _larger_distance(solver.distance, assortments)
    larger = Solver(
        assortments, distance, solver.learner, oracles.auto(assortments, ties, seed) if oracle is None else oracle
    )
    if not state.round:
        return larger, larger.init()
    rankings = extend_rankings(_orders(state, before.n_items), assortments.n_items, ties, seed)
    if assortments.order:
        rankings = assortments.precedence.settle(rankings, before.n_items)
    weights = np.array(list(state.weights.values()))
    sums = _larger_sums(solver, larger, assortments, before.n_offers, state.sums, rankings, weights)
    grown = State(None, sums, state.round)
    grown.observations = state.observations
    grown.weights = {ranking.tobytes(): weight for ranking, weight in zip(rankings, weights.tolist(), strict=True)}
    grown.seen = state.seen
    if before.n_offers != assortments.n_offers:  # the new offers have no data
        known = np.ones(before.n_coordinates, dtype=bool) if state.seen is None else state.seen
        grown.seen = np.concatenate([known, np.zeros(assortments.n_coordinates - before.n_coordinates, dtype=bool)])
    grown.learner = _larger_learner(solver, larger, state, grown)
    return larger, grown


def _orders(state: State, n_items: int) -> Codes:
    return np.frombuffer(b"".join(state.weights), dtype=np.int64).reshape(-1, n_items)


def _larger_distance(distance: Any, assortments: Assortments) -> Distance:
    """Return the same distance on the larger assortments; new offers have weight 1."""
    if not is_dataclass(distance) or isinstance(distance, type) or not hasattr(distance, "assortments"):
        raise ValueError(f"{type(distance).__name__} cannot grow: it is not a dataclass with a field 'assortments'.")
    changes: dict[str, Any] = {"assortments": assortments}
    weights = getattr(distance, "weights", None)
    if weights is not None:
        changes["weights"] = (*weights, *[1.0] * (assortments.n_offers - len(weights)))
    larger: Any = replace(distance, **changes)
    result: Distance = larger
    return result


def _larger_sums(
    solver: Solver, larger: Solver, after: Assortments, n_before: int, sums: Sums, rankings: Codes, weights: Vec
) -> Sums:
    """Return the sums of the game in which the new offers were silent."""
    size, total = sums.vertex.size, sums.total_weight
    added = np.zeros(after.n_coordinates - size)
    add_choices(rankings, weights, after.indptr[n_before:], after.members, added)
    quiet = silent(larger.distance, sums.mean_dual, size)
    paid = float(larger.distance.costs(quiet)[size:] @ added)
    potential = 0.0
    if solver.distance.smoothing:
        potential = total * (larger.distance.potential(quiet) - solver.distance.potential(sums.mean_dual))
    return Sums(
        vertex=np.concatenate([sums.vertex, added]),
        frequencies=np.concatenate([sums.frequencies, added]),
        dual=_wider(larger.distance, sums.dual, size, total * quiet),
        total_weight=total,
        answer=sums.answer + paid,
        offset=sums.offset + paid + solver.distance.smoothing * potential,
        potential=sums.potential + potential,
        latest=np.concatenate([sums.latest, added / total]) if sums.latest.size else sums.latest,
        moved=sums.moved or added.size > 0,
    )


def silent(distance: Distance, dual: Vec, size: int) -> Vec:
    """Extend a dual of ``size`` coordinates so that it is silent on all new coordinates."""
    wider = _wider(distance, dual, size, 0.0)
    if isinstance(distance, KL) or wider.size == dual.size:
        return wider
    return distance.silence(wider, np.arange(wider.size * size // dual.size) < size)


def _wider(distance: Distance, vector: Vec, size: int, value: float | Vec) -> Vec:
    """Extend a vector to the length of a dual, with ``value`` on the new coordinates of each of its parts."""
    start = distance.start()
    blocks, rest = divmod(vector.size, size)
    if rest or start.size % blocks:
        raise ValueError(f"The duals of {type(distance).__name__} do not follow the coordinates: start a new solver.")
    wider = np.broadcast_to(value, start.shape).copy().reshape(blocks, -1)
    wider[:, :size] = vector.reshape(blocks, size)
    return wider.ravel()


def _larger_learner(solver: Solver, larger: Solver, before: State, after: State) -> Any:
    """Return the learner's state in that game; new coordinates are where they started."""
    learner, distance, state = solver.learner, larger.distance, before.learner
    size = before.sums.vertex.size
    if hasattr(learner, "grow"):
        return learner.grow(solver.distance, distance, state, after)
    if isinstance(state, Moved):
        image = _larger_image(solver, distance, before)
        step = learner.step_size(distance) if isinstance(learner, MirrorDescent) else state.step
        return Moved(distance.prox(-image), image, step)
    if isinstance(learner, DualAveraging) and isinstance(state, Averaged):
        return learner.lead(distance, _wider(distance, state.pulls, size, 0.0), state.squares, after.sums.total_weight)
    if isinstance(learner, FollowTheLeader):
        return distance.respond(after.sums.mean_vertex, after.sums.mean_frequencies)
    if isinstance(learner, NaiveFrankWolfe):
        return distance.respond(after.sums.mean_vertex, after.sums.latest)
    raise ValueError(f"{type(learner).__name__} cannot grow: give it a method grow(old, new, state, grown).")


def _larger_image(solver: Solver, distance: Distance, before: State) -> Vec:
    """Extend the mirror image of mirror descent; new coordinates have the image of an unpulled dual."""
    learner, state, start = solver.learner, before.learner, distance.mirror(distance.start())
    size = before.sums.vertex.size
    if not isinstance(distance, LInf):
        return _wider(distance, state.image, size, start)
    steps: float | Vec = 0.0
    if distance.smoothing:
        rounds = range(1, before.round + 1)
        weights = np.array([learner.round_weight(number) for number in rounds])
        steps = state.step * weights if isinstance(learner, MirrorDescent) else 1.0 / distance.smoothing
    decay = float(np.prod(1.0 - distance.smoothing * np.asarray(steps)))  # of the start's image, by smoothing
    first = solver.distance.mirror(solver.distance.start())
    return _wider(distance, state.image + decay * (start[0] - first[0]), size, decay * start)


def can_reweigh(solver: Solver) -> bool:
    """Whether ``reweigh`` supports the solver's distance and learner."""
    plain = type(solver.distance) in (L1, L2) and not solver.distance.smoothing
    return plain and type(solver.learner) in (DualAveraging, MirrorDescent)


def offers_to_keep(counts: ChoiceCounts, most: int) -> Codes:
    """Return the numbers of the offers to keep, with at most ``most`` coordinates.

    Those with the fewest choices are dropped first, older ones first.

    >>> offers = Assortments([("tea", "pie"), ("pie", "ice"), ("tea", "ice")])
    >>> offers_to_keep(ChoiceCounts(offers, [1, 2, 1, 0, 1, 0]), 4)
    array([0, 2])
    """
    sizes = np.diff(counts.assortments.indptr)
    order = np.argsort(counts.totals, kind="stable")[::-1]  # the last to leave first
    stay = int(np.searchsorted(np.cumsum(sizes[order]), most, side="right"))
    return np.sort(order[: max(1, stay)])


def drop_offers(runs: Sequence[Run], counts: Sequence[ChoiceCounts], stay: Codes) -> list[ChoiceCounts]:
    """Drop offers, and items without offers, from the runs and the counts; return the new counts.

    Items of an order stay, because the order must hold if they are offered again. The runs start again from the counts,
    with a quick oracle: in such a market, a model follows its counts within a few rounds.
    """
    whole = counts[0].assortments
    places = np.flatnonzero(np.isin(whole.owner, stay))
    codes = np.unique(np.append(whole.members[places], whole.precedence.pairs))
    named = [whole.items[code] for code in codes.tolist()]
    offers = Assortments([whole.offers[number] for number in stay.tolist()], named, whole.order)
    for run in runs:
        distance: Any = run.solver.distance
        weights = {"weights": None} if hasattr(distance, "weights") else {}
        oracle = QuickOracle(offers, *tie_rule(run.solver.oracle), run.state.round)
        run.solver = Solver(offers, replace(distance, assortments=offers, **weights), run.solver.learner, oracle)
        run.state = run.solver.init()
    return [_part_of_counts(tally, offers, places, stay) for tally in counts]


def _part_of_counts(counts: ChoiceCounts, offers: Assortments, places: Codes, stay: Codes) -> ChoiceCounts:
    part, memory = counts._like(offers), counts.memory()
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
