"""A solver, its state and its counts as plain numbers, names and arrays, and back: what a checkpoint file holds."""

from dataclasses import fields
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from rankstream import distances, learners, oracles
from rankstream._core.types import Vec
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.decay import DecayingCounts, WindowCounts
from rankstream.data.readers.sources.lines import is_text
from rankstream.distances import Distance
from rankstream.learners import Learner
from rankstream.learners.mirror_descent import Averaged, Moved
from rankstream.learners.rounds import Sums
from rankstream.models.base import can_be_saved, check_items
from rankstream.oracles import ComponentsOracle, Oracle, QuickOracle, SearchOracle
from rankstream.solver.loop import Solver, State
from rankstream.streams.files.validation import check_memory, check_whole

MOST_ROUNDS = 1_000_000
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
    """A file names a part that is not built in, and none was handed over in its place."""

    def __init__(self, role: str, name: str) -> None:
        super().__init__(f"its {role}, a {name}, is not built in: pass one with load(..., {role}=...)")


def pack_oracle(oracle: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The name and settings of an oracle, none where it is not built in, and what it remembers."""
    name = type(oracle).__name__
    own = name not in SETTINGS or type(oracle) is not getattr(oracles, name)
    if own or (isinstance(oracle, ComponentsOracle) and oracle.make is not oracles.auto):
        return {"name": name, "settings": None}, {}
    memory: dict[str, Any] = {}
    for prefix, part in _learning(oracle):
        memory.update({prefix + key: array for key, array in part.memory().items()})
    if isinstance(oracle, QuickOracle):
        memory = oracle.memory()
    return {"name": name, "settings": {key: getattr(oracle, key) for key in SETTINGS[name]}}, memory


def make_oracle(described: dict[str, Any], offers: Assortments, memory: dict[str, Any]) -> Oracle:
    """The oracle that was packed."""
    name, settings = described["name"], described["settings"]
    if settings is None or name not in SETTINGS:
        raise MissingPartError("oracle", name)
    if any(settings.get(key, 0) > MOST_ROUNDS for key in ("rounds", "sweeps")):
        raise ValueError(f"its oracle would take more than {MOST_ROUNDS:,} rounds for one answer")
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
    """The oracles within this one that learn from being asked, and where their memory goes."""
    if isinstance(oracle, ComponentsOracle):
        parts = enumerate(oracle.parts)
        return [(f"{number}.{prefix}", inner) for number, part in parts for prefix, inner in _learning(part)]
    return [("", oracle)] if isinstance(oracle, SearchOracle) else []


def under(prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    """The arrays whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


DISTANCES = ("L1", "LowNorm", "L2", "HighNorm", "LInf", "MaxDifference", "KL")
LEARNERS = ("MirrorDescent", "StronglyConvexMirrorDescent", "FollowTheLeader", "NaiveFrankWolfe", "DualAveraging")
COUNTS: dict[str, type[ChoiceCounts]] = {kind.__name__: kind for kind in (ChoiceCounts, DecayingCounts, WindowCounts)}
NUMBERS = ("total_weight", "answer", "offset", "potential")
SUMS = ("vertex", "frequencies", "dual", "latest")


class Packed(NamedTuple):
    """What can be written as JSON, and the arrays beside it."""

    header: dict[str, Any]
    arrays: dict[str, Any]


class Parts(NamedTuple):
    """Own parts that take the place of those a file could not hold."""

    distance: Distance | None = None
    learner: Learner[Any] | None = None
    oracle: Oracle | None = None


def pack(solver: Solver, state: State, counts: ChoiceCounts | None) -> Packed:
    """Everything that the rounds to come depend on."""
    offers = solver.assortments
    if not isinstance(offers, Assortments):
        raise ValueError(f"{type(offers).__name__} cannot be saved: only Assortments can.")
    if counts is not None and counts.assortments != offers:
        raise ValueError("The counts belong to other assortments than the solver: save them with their own solver.")
    for item in offers.items:
        if not can_be_saved(item):
            raise ValueError(f"The item {item!r} cannot be saved: use str, int, bool or None.")
    learner, remembered = _pack_learner_state(state.learner)
    oracle, known = pack_oracle(solver.oracle)
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
        **{f"learner.{name}": array for name, array in remembered.items()},
        **{f"oracle.{name}": array for name, array in known.items()},
        **({} if counts is None else {f"counts.{name}": array for name, array in counts.memory().items()}),
    }
    return Packed(header, arrays)


def unpack(packed: Packed, parts: Parts) -> tuple[Solver, State, ChoiceCounts | None]:
    """What was packed, made again; parts of one's own must be handed over."""
    header, arrays = packed
    items, indptr, members = header["items"], arrays["indptr"], arrays["members"]
    check_items(items)
    if not all(is_text(item) for item in items if isinstance(item, str)):
        raise ValueError("an item in it has half a character, which no model file can contain")
    if members.size and members.min() < 0:
        raise ValueError("its offers have items that are not there")
    order = [(items[a], items[b]) for a, b in header.get("order", ())]
    offers = Assortments([[items[k] for k in members[a:b]] for a, b in pairwise(indptr)], items, order)
    distance: Any = parts.distance or _make(header["distance"], DISTANCES, distances, "distance", offers)
    learner: Any = parts.learner or _make(header["learner"], LEARNERS, learners, "learner")
    solver = Solver(
        offers, distance, learner, parts.oracle or make_oracle(header["oracle"], offers, under("oracle.", arrays))
    )
    sums = Sums(*(_like(arrays[f"sums.{name}"], np.float64) for name in ("vertex", "frequencies", "dual")))
    for name in NUMBERS:
        setattr(sums, name, float(header["sums"][name]))
    sums.latest, sums.moved = _like(arrays["sums.latest"], np.float64), bool(header["moved"])
    if not sums.vertex.size == sums.frequencies.size == offers.n_coordinates:
        raise ValueError(f"its sums have {sums.vertex.size} entries for {offers.n_coordinates} coordinates")
    state = State(_unpack_learner_state(header["learner_state"], arrays), sums, int(header["round"]))
    state.observations = float(header["observations"])
    state.seen = _like(arrays["seen"], np.bool_) if "seen" in arrays else None
    orders = _like(arrays["orders"], np.int64)
    if orders.size and not (np.sort(orders, axis=1) == np.arange(offers.n_items)).all():
        raise ValueError("a ranking in it does not order all items")
    if offers.order and orders.size and not offers.precedence.respects(orders).all():
        raise ValueError("a ranking in it does not keep the order")
    pairs = zip(orders, _like(arrays["weights"], np.float64).tolist(), strict=True)
    state.weights = {order.tobytes(): weight for order, weight in pairs}
    return solver, state, _unpack_counts(header["counts"], offers, under("counts.", arrays))


def _settings(part: Any, known: tuple[str, ...], module: Any) -> dict[str, Any]:
    """The name of a part and its settings; parts that are not built in have no settings here."""
    name = type(part).__name__
    own = name not in known or type(part) is not getattr(module, name) or getattr(part, "weighting", None) is not None
    if own:
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
    if counts.tallies.size != offers.n_coordinates:
        raise ValueError(f"its counts have {counts.tallies.size} entries for {offers.n_coordinates} coordinates")
    return counts


def _like(array: Any, kind: Any) -> Any:
    """A writable copy of the right type, or a TypeError."""
    return np.array(array).astype(kind, casting="same_kind")
