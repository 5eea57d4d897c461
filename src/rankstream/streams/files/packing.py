"""The content of a checkpoint file: a solver, its state and its counts as plain numbers, names and arrays.

Whether the file is the one that was written is for its digest to say (``checkpoint``).
"""

from collections.abc import Mapping
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np

from rankstream import distances, learners, oracles
from rankstream._core.types import Vec
from rankstream.data import Assortments, ChoiceCounts
from rankstream.data.decay import DecayingCounts, WindowCounts
from rankstream.learners.players import Averaged, Moved
from rankstream.learners.protocol import Sums
from rankstream.models.base import can_be_saved, check_items
from rankstream.oracles import ComponentsOracle, Oracle, QuickOracle, SearchOracle
from rankstream.solver.loop import Solver, State

SETTINGS: dict[str, tuple[str, ...]] = {
    "LatticeOracle": ("ties", "seed", "most_states"),
    "DenseOracle": ("ties", "seed", "memory"),
    "ChainOracle": ("ties", "seed", "memory"),
    "LaminarOracle": ("ties", "seed"),
    "SearchOracle": ("ties", "seed", "budget", "rounds", "sweeps"),
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
    settings = {key: settings[key] for key in SETTINGS[name]}  # earlier versions saved more
    extra = {"make": oracles.auto} if name == "ComponentsOracle" else {}
    oracle: Oracle = getattr(oracles, name)(offers, **extra, **settings)
    for prefix, part in _learning(oracle):
        check_memory(part.memory(), under(prefix, memory), part.assortments.n_items)
        part.remember(under(prefix, memory))
    if isinstance(oracle, QuickOracle):
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
    if settings.pop("kind", "entropy") != "entropy":  # of MaxDifference before 0.4
        raise MissingPartError(role, f"{name} with a Euclidean potential")
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


def check_memory(own: dict[str, Any], memory: dict[str, Any], n_items: int) -> None:
    """Refuse a memory that does not fit the oracle: compiled loops use it as indices without checks."""
    for name, expected in own.items():
        array, rows = memory[name], name == "pool"
        if array.dtype != expected.dtype or array.shape[rows:] != expected.shape[rows:] or array.shape[:rows] == (0,):
            raise ValueError(f"its oracle's {name} is of another kind")
    rankings = np.vstack([memory["pool"], *([memory["answered"]] if "asked" in memory else [])])
    if not (np.sort(rankings, axis=1) == np.arange(n_items)).all():
        raise ValueError("a ranking of its oracle does not order all items")
