"""The content of a checkpoint file: a solver, its state and its counts as plain numbers, names and arrays.

All parts must be consistent: a modified file is refused before a round is played.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np

from rankstream import distances, learners, oracles
from rankstream._core.types import Vec
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.decay import DecayingCounts, WindowCounts, make_counts
from rankstream.data.readers.sources.lines import is_text
from rankstream.learners.mirror_descent import Averaged, Moved
from rankstream.learners.rounds import Sums
from rankstream.models.base import can_be_saved, check_items
from rankstream.oracles import ComponentsOracle, Oracle, QuickOracle, SearchOracle
from rankstream.solver.loop import Solver, State

MOST_ROUNDS = 1_000_000
MAX_MAGNITUDE = 1e100  # larger than any sum of rounds or choices, and its square does not overflow
SUM_TOLERANCE = 1e-6  # relative difference allowed between sums of many rounds
SETTINGS: dict[str, tuple[str, ...]] = {
    "LatticeOracle": ("ties", "seed", "most_states"),
    "DenseOracle": ("ties", "seed", "memory"),
    "ChainOracle": ("ties", "seed", "memory"),
    "LaminarOracle": ("ties", "seed"),
    "SearchOracle": ("ties", "seed", "budget", "rounds", "sweeps", "states"),
    "ComponentsOracle": ("ties", "seed"),
    "QuickOracle": ("ties", "seed", "turn"),
}


class MissingPartError(ValueError):
    """A file names a part that is not built in, and none was passed in its place."""

    def __init__(self, role: str, name: str) -> None:
        super().__init__(f"its {role}, a {name}, is not built in: pass one with load(..., {role}=...)")


def pack_oracle(oracle: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the name and settings of an oracle (no settings if it is not built in), and its memory."""
    name = type(oracle).__name__
    custom = name not in SETTINGS or type(oracle) is not getattr(oracles, name)
    if custom or (isinstance(oracle, ComponentsOracle) and oracle.make is not oracles.auto):
        return {"name": name, "settings": None}, {}
    memory = {prefix + key: array for prefix, part in _learning(oracle) for key, array in part.memory().items()}
    if isinstance(oracle, QuickOracle):
        memory = oracle.memory()
    return {"name": name, "settings": {key: getattr(oracle, key) for key in SETTINGS[name]}}, memory


def make_oracle(described: dict[str, Any], offers: Assortments, memory: dict[str, Any]) -> Oracle:
    """Restore a packed oracle."""
    name, settings = described["name"], described["settings"]
    if settings is None or name not in SETTINGS:
        raise MissingPartError("oracle", name)
    if any(settings.get(key, 0) > MOST_ROUNDS for key in ("rounds", "sweeps")):
        raise ValueError(f"its oracle has more than {MOST_ROUNDS:,} rounds per call")
    extra = {"make": oracles.auto} if name == "ComponentsOracle" else {}
    oracle: Oracle = getattr(oracles, name)(offers, **extra, **settings)
    for prefix, part in _learning(oracle):
        check_memory(part.memory(), under(prefix, memory), part.assortments.n_items)
        part.remember(under(prefix, memory))
    if isinstance(oracle, QuickOracle):
        check_whole("oracle's turn", oracle.turn)
        oracle.remember(memory)
    return oracle


def _learning(oracle: Oracle) -> list[tuple[str, SearchOracle]]:
    """Return the oracles inside this one that learn from calls, with prefixes for the names of their arrays."""
    if isinstance(oracle, ComponentsOracle):
        parts = enumerate(oracle.parts)
        return [(f"{number}.{prefix}", inner) for number, part in parts for prefix, inner in _learning(part)]
    return [("", oracle)] if isinstance(oracle, SearchOracle) else []


def under(prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays whose names have this prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


DISTANCES = ("L1", "LowNorm", "L2", "HighNorm", "LInf", "MaxDifference", "KL")
LEARNERS = ("MirrorDescent", "StronglyConvexMirrorDescent", "FollowTheLeader", "NaiveFrankWolfe", "DualAveraging")
COUNTS: dict[str, type[ChoiceCounts]] = {kind.__name__: kind for kind in (ChoiceCounts, DecayingCounts, WindowCounts)}
Packed = tuple[dict[str, Any], dict[str, Any]]  # JSON values, and arrays
NUMBERS = ("total_weight", "answer", "offset", "potential")
SUMS = ("vertex", "frequencies", "dual", "latest")


def pack(solver: Solver, state: State, counts: ChoiceCounts | None) -> Packed:
    """Return everything that the next rounds depend on."""
    offers = solver.assortments
    if not isinstance(offers, Assortments):
        raise ValueError(f"{type(offers).__name__} cannot be saved: only Assortments can.")
    if counts is not None and counts.assortments != offers:
        raise ValueError("The counts belong to other assortments than the solver: save them with their own solver.")
    for item in offers.items:
        if not can_be_saved(item):
            raise ValueError(f"The item {item!r} cannot be saved: use str, int, bool or None.")
    learner, learner_arrays = _pack_learner_state(state.learner)
    oracle, oracle_arrays = pack_oracle(solver.oracle)
    header = {
        "items": list(offers.items),
        **({"order": offers.precedence.pairs.tolist()} if offers.order else {}),
        "distance": _settings(solver.distance, DISTANCES, distances),
        "learner": _settings(solver.learner, LEARNERS, learners),
        "oracle": oracle,
        "learner_state": learner,
        "round": state.round,
        "observations": state.observations,
        "moved": state.sums.moved,
        "sums": {name: getattr(state.sums, name) for name in NUMBERS},
        "counts": None if counts is None else _kind(counts),
    }
    orders = np.frombuffer(b"".join(state.weights), dtype=np.int64).reshape(-1, offers.n_items)
    arrays = {
        "indptr": offers.indptr,
        "members": offers.members,
        "orders": orders,
        "weights": np.array(list(state.weights.values()), dtype=np.float64),
        **{f"sums.{name}": getattr(state.sums, name) for name in SUMS},
        **({} if state.seen is None else {"seen": state.seen}),
        **{f"learner.{name}": array for name, array in learner_arrays.items()},
        **{f"oracle.{name}": array for name, array in oracle_arrays.items()},
        **({} if counts is None else {f"counts.{name}": array for name, array in counts.memory().items()}),
    }
    return header, arrays


def unpack(packed: Packed, parts: Mapping[str, Any]) -> tuple[Solver, State, ChoiceCounts | None]:
    """Restore what ``pack`` returned; ``parts`` replace those that are not built in."""
    header, arrays = packed
    items, indptr, members = header["items"], arrays["indptr"], arrays["members"]
    check_items(items)
    if not all(is_text(item) for item in items if isinstance(item, str)):
        raise ValueError("an item in it has half a character, which no model file can contain")
    if members.size and members.min() < 0:
        raise ValueError("its offers have unknown items")
    order = [(items[a], items[b]) for a, b in header.get("order", ())]
    offers = Assortments([[items[k] for k in members[a:b]] for a, b in pairwise(indptr)], items, order)
    distance: Any = parts.get("distance") or _make(header["distance"], DISTANCES, distances, "distance", offers)
    learner: Any = parts.get("learner") or _make(header["learner"], LEARNERS, learners, "learner")
    oracle = parts.get("oracle") or make_oracle(header["oracle"], offers, under("oracle.", arrays))
    solver = Solver(offers, distance, learner, oracle)
    sums = Sums(*(_like(arrays[f"sums.{name}"], np.float64) for name in ("vertex", "frequencies", "dual")))
    for name in NUMBERS:
        setattr(sums, name, float(header["sums"][name]))
    sums.latest, sums.moved = _like(arrays["sums.latest"], np.float64), bool(header["moved"])
    state = State(_unpack_learner_state(header["learner_state"], arrays), sums, int(header["round"]))
    state.observations = float(header["observations"])
    state.seen = _like(arrays["seen"], np.bool_) if "seen" in arrays else None
    orders = _like(arrays["orders"], np.int64)
    if orders.size and not (np.sort(orders, axis=1) == np.arange(offers.n_items)).all():
        raise ValueError("a ranking in it does not order all items")
    if offers.order and orders.size and not offers.precedence.respects(orders).all():
        raise ValueError("a ranking in it does not respect the order")
    pairs = zip(orders, _like(arrays["weights"], np.float64).tolist(), strict=True)
    state.weights = {order.tobytes(): weight for order, weight in pairs}
    return solver, state, _unpack_counts(header["counts"], offers, under("counts.", arrays))


def _settings(part: Any, known: tuple[str, ...], module: Any) -> dict[str, Any]:
    """Return the name of a part and its settings; None for the settings if it is not built in."""
    name = type(part).__name__
    custom = name not in known or type(part) is not getattr(module, name)
    if custom or getattr(part, "weighting", None) is not None:
        return {"name": name, "settings": None}
    skipped = ("assortments", "weighting")
    return {"name": name, "settings": {f.name: getattr(part, f.name) for f in fields(part) if f.name not in skipped}}


def _make(described: dict[str, Any], known: tuple[str, ...], module: Any, role: str, *about: Any) -> Any:
    name, settings = described["name"], described["settings"]
    if settings is None or name not in known:
        raise MissingPartError(role, name)
    weights = {"weights": tuple(settings["weights"])} if settings.get("weights") is not None else {}
    return getattr(module, name)(*about, **{**settings, **weights})


def _pack_learner_state(state: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    if isinstance(state, Moved):
        return {"kind": "moved", "step": state.step}, {"dual": state.dual, "image": state.image}
    if isinstance(state, Averaged):
        return {"kind": "averaged", "squares": state.squares}, {"dual": state.dual, "pulls": state.pulls}
    if isinstance(state, np.ndarray):
        return {"kind": "plain"}, {"dual": state}
    raise ValueError(f"The learner's state, a {type(state).__name__}, cannot be saved: only built-in learners' can.")


def _unpack_learner_state(described: dict[str, Any], arrays: dict[str, Any]) -> Any:
    dual: Vec = _like(arrays["learner.dual"], np.float64)
    if described["kind"] == "moved":
        return Moved(dual, _like(arrays["learner.image"], np.float64), float(described["step"]))
    if described["kind"] == "averaged":
        return Averaged(dual, _like(arrays["learner.pulls"], np.float64), float(described["squares"]))
    return dual


def _kind(counts: ChoiceCounts) -> dict[str, Any]:
    name = type(counts).__name__
    if COUNTS.get(name) is not type(counts):
        raise ValueError(f"{name} cannot be saved: only {', '.join(COUNTS)} can.")
    return {"name": name, "reach": getattr(counts, "reach", None), "by": getattr(counts, "by", None)}


def _unpack_counts(described: Any, offers: Assortments, memory: dict[str, Any]) -> ChoiceCounts | None:
    if described is None:
        return None
    kind: Any = COUNTS[described["name"]]
    counts: ChoiceCounts = kind(offers) if kind is ChoiceCounts else kind(offers, described["reach"], described["by"])
    counts.remember({name: _like(array, np.int64 if name == "where" else np.float64) for name, array in memory.items()})
    return counts


def _like(array: Any, kind: Any) -> Any:
    """Return a writable copy of the right type; raise a TypeError if it cannot be converted."""
    return np.array(array).astype(kind, casting="same_kind")


def check_run(solver: Solver, state: State, counts: ChoiceCounts | None) -> None:
    """Refuse sums, weights and counts that no run can have."""
    offers, sums, fresh = solver.assortments, state.sums, solver.init()
    for name in ("vertex", "frequencies", "dual"):
        check_numbers(f"sums of {name}", getattr(sums, name), getattr(fresh.sums, name).size)
    check_numbers("latest frequencies", sums.latest, offers.n_coordinates if sums.latest.size else 0)
    check_numbers("totals", [sums.total_weight, sums.answer, sums.offset, sums.potential])
    if state.round < 0 or state.observations < 0 or sums.total_weight < 0:  # unknown observations are NaN
        raise ValueError("it has a negative number of rounds, choices or weights")
    if state.seen is not None and state.seen.shape != (offers.n_coordinates,):
        raise ValueError(f"it has seen {state.seen.shape} coordinates of {offers.n_coordinates}")
    if type(state.learner) is not type(fresh.learner):
        raise ValueError("its learner's state belongs to another learner")
    packed, expected = (part if isinstance(part, tuple) else (part,) for part in (state.learner, fresh.learner))
    for value, first in zip(packed, expected, strict=True):  # arrays and numbers of the same sizes as at the start
        check_numbers("learner's state", np.ravel(value) if np.ndim(first) == 0 else value, np.size(first))
    weights = np.array(list(state.weights.values()))
    check_numbers("weights of rankings", weights, least=0.0)
    _check_sum("its rankings weigh", float(weights.sum()), sums.total_weight)
    if state.round and isinstance(offers, Assortments):
        if sums.total_weight <= 0 or sums.vertex.min() < -SUM_TOLERANCE * sums.total_weight:
            raise ValueError("its rounds have no positive weight")
        for total in np.add.reduceat(sums.vertex, offers.indptr[:-1]).tolist():
            _check_sum("the choices from an offer weigh", total, sums.total_weight)
    if counts is not None:
        _check_counts(counts)


def check_numbers(what: str, values: Any, size: int | None = None, least: float = -MAX_MAGNITUDE) -> None:
    """Check for a vector of finite numbers of at least ``least``, of this size."""
    array = np.asarray(values)
    if array.ndim != 1 or (size is not None and array.size != size):
        raise ValueError(f"its {what} have the shape {array.shape}" + (f", not ({size},)" if size is not None else ""))
    if not ((array >= least) & (array <= MAX_MAGNITUDE)).all():
        raise ValueError(f"its {what} are not all finite, or below {max(least, -MAX_MAGNITUDE):g}")


def check_whole(what: str, *values: Any) -> None:
    """Check for whole numbers >= 0."""
    for value in values:
        if type(value) is not int or not 0 <= value < 2**62:
            raise ValueError(f"its {what} is {str(value)[:40]!r}, not a whole number")


def check_memory(own: dict[str, Any], memory: dict[str, Any], n_items: int) -> None:
    """Refuse a memory that does not fit the oracle: compiled loops use it as indices without checks."""
    for name, expected in own.items():
        array, rows = memory[name], name == "pool"
        if array.dtype != expected.dtype or array.shape[rows:] != expected.shape[rows:] or array.shape[:rows] == (0,):
            raise ValueError(f"its oracle's {name} is of another kind")
        check_numbers(f"oracle's {name}", array.ravel())
    for name, size in (("asked", None), ("numbers", 2)):
        if name in memory:
            check_numbers(f"oracle's {name}", memory[name].astype(np.float64, casting="safe"), size)
    rankings = np.vstack([memory["pool"], *([memory["answered"]] if "asked" in memory else [])])
    if not (np.sort(rankings, axis=1) == np.arange(n_items)).all():
        raise ValueError("a ranking of its oracle does not order all items")
    known, chosen = memory["known"], memory["chosen"]
    if known.min(initial=0) < 0 or known.max(initial=0) > chosen.shape[-1]:
        raise ValueError("its oracle has too many corners")
    if chosen.min(initial=0) < 0 or chosen.max(initial=0) >= max(1, memory["point"].size):
        raise ValueError("its oracle has corners that do not exist")


def check_detector(detector: Any) -> None:
    """Refuse a change detector whose parts belong to different markets."""
    check_whole("number of choices", detector.records, detector.since, detector.halfway, *detector._pending)
    if detector.restarted is not None:
        check_whole("restart", detector.restarted)
    check_numbers("evidence", [detector.statistic], least=0.0)
    for alarm in detector.alarms:
        check_whole("alarm", alarm.record, alarm.since)
        check_numbers("alarm", [alarm.statistic])
    offers = {run.solver.assortments for run in (detector.published, detector.fast)} | {detector._recent.assortments}
    if len(offers) > 1 or type(detector.counts) is not ChoiceCounts or type(detector._recent) is not DecayingCounts:
        raise ValueError("its change detector has two models of different markets")
    if max(detector._pending, default=0) >= detector.assortments.n_coordinates:
        raise ValueError("a choice of its change detector belongs to no offer")


def check_live(live: Any) -> None:
    """Refuse counts that do not fit the settings, and waiting choices that are not from their offer."""
    check_whole("number of records", live.records)
    check_choices(live._waiting)
    order = set() if live.prices is None else set(live.prices.order)
    if live.counts is not None and set(live.counts.assortments.order) != order:
        raise ValueError("its items are in another order than its price levels")
    for run in (live.run, live.detector and live.detector.fast):
        if run and min(getattr(run.solver.distance, "weights", None) or [1.0]) <= 0.0:
            raise ValueError("an offer has no positive weight")
    if live.detect or live.counts is None:
        return
    fresh = make_counts(live.counts.assortments, live.half_life, live.window)
    if any(getattr(live.counts, name, None) != getattr(fresh, name, None) for name in ("__class__", "reach", "by")):
        raise ValueError("its counts and its settings forget differently")


def check_choices(choices: Iterable[Any]) -> None:
    """Check for pairs of an offer and the chosen item."""
    for offered, chosen, *_ in choices:
        labels = all(isinstance(item, str | int) or item is None for item in (*offered, chosen))
        if isinstance(offered, str) or not labels or chosen not in offered or len(set(offered)) < len(offered):
            raise ValueError("a waiting choice is not from its offer")


def _check_sum(what: str, total: float, expected: float) -> None:
    if not abs(total - expected) <= SUM_TOLERANCE * max(1.0, expected):
        raise ValueError(f"{what} {total:g}, and all rounds {expected:g}")


def _check_counts(counts: ChoiceCounts) -> None:
    offers = counts.assortments
    memory = counts.memory()
    now = float(getattr(counts, "now", 0.0))
    if now != -np.inf and not abs(now) <= MAX_MAGNITUDE:
        raise ValueError(f"its counts have the time {now:g}")
    if isinstance(counts, WindowCounts):
        sizes = {array.shape for name, array in memory.items() if name != "now"}
        check_numbers("counted choices", memory["amounts"], least=0.0)
        check_numbers("times", memory["times"])
        where = memory["where"]
        if len(sizes) > 1 or (where.size and where.max() >= offers.n_coordinates):
            raise ValueError("its window has choices that belong to no offer")
    check_numbers("counts", counts.tallies, offers.n_coordinates, 0.0)
    check_numbers("totals", counts.totals, offers.n_offers, 0.0)
    if "squares" in memory:
        check_numbers("squares", memory["squares"], offers.n_offers, 0.0)
    of_offers = np.add.reduceat(counts.tallies, offers.indptr[:-1])
    if not np.allclose(of_offers, counts.totals, rtol=SUM_TOLERANCE, atol=0.0):
        raise ValueError("the counts of an offer do not sum to its total")
