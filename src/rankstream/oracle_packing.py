"""Built-in oracles as settings and arrays, and back; what they have learned from being asked goes with them."""

from typing import Any

from rankstream import oracles
from rankstream.data.assortments import Assortments
from rankstream.oracles import ComponentsOracle, Oracle, SearchOracle

SETTINGS: dict[str, tuple[str, ...]] = {
    "LatticeOracle": ("ties", "seed", "most_states"),
    "DenseOracle": ("ties", "seed", "memory"),
    "LaminarOracle": ("ties", "seed"),
    "SearchOracle": ("ties", "seed", "budget", "rounds", "sweeps", "states"),
    "ComponentsOracle": ("ties", "seed"),
}


class MissingPartError(ValueError):
    """A file names a part that is not built in, and none was handed over in its place."""

    def __init__(self, role: str, name: str) -> None:
        super().__init__(f"its {role}, a {name}, is not built in: hand one over with load(..., {role}=...)")


def pack_oracle(oracle: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The name and settings of an oracle, none where it is not built in, and what it remembers."""
    name = type(oracle).__name__
    own = name not in SETTINGS or type(oracle) is not getattr(oracles, name)
    if own or (isinstance(oracle, ComponentsOracle) and oracle.make is not oracles.auto):
        return {"name": name, "settings": None}, {}
    memory: dict[str, Any] = {}
    for prefix, part in _learning(oracle):
        memory.update({prefix + key: array for key, array in part.memory().items()})
    return {"name": name, "settings": {key: getattr(oracle, key) for key in SETTINGS[name]}}, memory


def make_oracle(described: dict[str, Any], offers: Assortments, memory: dict[str, Any]) -> Oracle:
    """The oracle that was packed."""
    name, settings = described["name"], described["settings"]
    if settings is None or name not in SETTINGS:
        raise MissingPartError("oracle", name)
    extra = {"make": oracles.auto} if name == "ComponentsOracle" else {}
    oracle: Oracle = getattr(oracles, name)(offers, **extra, **settings)
    for prefix, part in _learning(oracle):
        part.remember(under(prefix, memory))
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
