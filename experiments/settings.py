"""What is to be run: settings files, and the single runs that they stand for."""

import itertools
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from rankstream._core.arguments import number_between, whole_number

Kind = Literal["static", "dynamic", "profile", "resolving", "solvers"]
FOLDER = Path(__file__).parent / "settings"
NORMS = ("l1", "l2", "linf")
# the methods of the computational study: the form of the norm, and the learner
PAPER_METHODS: dict[str, tuple[str, str]] = {
    "MD_ns": ("plain", "mirror-descent"),
    "MD_smth": ("smoothed", "strongly-convex-mirror-descent"),
    "MD_sq": ("squared", "strongly-convex-mirror-descent"),
    "FW_dyn": ("smoothed", "follow-the-leader"),
    "FW_naive": ("smoothed", "naive-frank-wolfe"),
    "FW_sq": ("squared", "naive-frank-wolfe"),
    "F-W": ("smoothed", "naive-frank-wolfe"),
}


@dataclass(frozen=True, order=True)
class StudyRun:
    """One fit and everything that determines its result.

    ``power``, ``step`` and ``smoothing`` change a method: the power of the averaging weights (-1: the method's own),
    and factors on what the paper prescribes. ``timed`` runs go round by round, so that the oracle's share of the time
    can be taken.
    """

    kind: Kind
    segments: int
    spread: float
    offers: int
    norm: str
    method: str
    per_round: int
    instance: int
    power: float = -1.0
    step: float = 1.0
    smoothing: float = 1.0
    ties: str = "random"
    sizes: str = "subsets"
    items: int = 10
    test_offers: int = 100
    first: int = 2000
    tolerance: float = 1e-3
    max_rounds: int = 10_000
    timed: bool = False

    @property
    def market(self) -> tuple[Any, ...]:
        """What runs on the same simulated market share."""
        shared = ("segments", "spread", "offers", "instance", "sizes", "items", "test_offers", "ties")
        return tuple(getattr(self, name) for name in shared)

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes two runs different."""
        return tuple(asdict(self).values())


@dataclass(frozen=True)
class StudyPart:
    """One part of the study: a figure of the paper, or a question beyond it."""

    name: str
    title: str
    number: int
    cells: tuple[dict[str, Any], ...]
    most_instances: int | None = None
    seed: int = 0

    def runs(self, instances: int) -> list[StudyRun]:
        """Every run, instance by instance; the first is that of the seed, which the paper leaves open."""
        count = instances if self.most_instances is None else min(instances, self.most_instances)
        return [StudyRun(**cell, instance=self.seed + number) for number in range(count) for cell in self.cells]


GRIDS = {
    "segments": int,
    "spreads": float,
    "offers": int,
    "norms": str,
    "methods": str,
    "per_round": int,
    "powers": float,
    "steps": float,
    "smoothings": float,
    "ties": str,
}
SINGULAR = {name: name.removesuffix("s") for name in ("spreads", "norms", "methods", "powers", "steps", "smoothings")}
SCALARS = {"sizes": str, "items": int, "test_offers": int, "first": int, "tolerance": float, "max_rounds": int}


def read_settings(path: Path) -> StudyPart:
    """A settings file: a title, a kind, and lists whose combinations are the cells; ``[[also]]`` tables add more."""
    if not path.is_file():
        raise ValueError(f"There is no settings file {path}: name one, or a figure.")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a settings file in TOML ({error}): correct it.") from None
    also = content.pop("also", [])
    if not isinstance(also, list) or not all(isinstance(more, dict) for more in also):
        raise ValueError(f"{path}: also is {also!r}: write it as [[also]] tables.")
    title, number = content.pop("title", path.stem), content.pop("figure", 0)
    most = content.pop("most_instances", None)
    if most is not None:
        whole_number("most_instances", most, least=1)
    cells = [cell for table in (content, *({**content, **more} for more in also)) for cell in _cells(path, table)]
    unique = {tuple(sorted(cell.items())): cell for cell in cells}
    return StudyPart(path.stem, title, number, tuple(unique.values()), most)


def _cells(path: Path, table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    defaults: dict[str, Any] = {"segments": [5], "spreads": [5.0], "offers": [20], "norms": ["l2"], "per_round": [0]}
    table = {**defaults, **table}
    kind = table.pop("kind", None)
    if kind not in get_args(Kind):
        raise ValueError(f"{path}: the kind is {kind!r}: choose one of {', '.join(map(repr, get_args(Kind)))}.")
    timed = bool(table.pop("timed", False))
    for name in table:
        if name not in GRIDS and name not in SCALARS:
            raise ValueError(f"{path}: unknown setting {name!r}: use {', '.join((*GRIDS, *SCALARS))}.")
    grids = {SINGULAR.get(name, name): _checked(path, name, table[name]) for name in GRIDS if name in table}
    if "method" not in grids:
        raise ValueError(f'{path}: it names no methods: give a list such as methods = ["MD_ns"].')
    if kind not in ("static", "solvers") and not all(grids["per_round"]):
        raise ValueError(f"{path}: data that arrive need per_round, the observations of a round, at least 1.")
    scalars = {name: _scalar(path, name, table[name]) for name in SCALARS if name in table}
    for values in itertools.product(*grids.values()):
        yield {"kind": kind, **dict(zip(grids, values, strict=True)), **scalars, "timed": timed}


def _scalar(path: Path, name: str, value: Any) -> Any:
    if name == "sizes":
        if value not in ("subsets", "sizes"):
            raise ValueError(f"{path}: sizes is {value!r}: choose 'subsets' or 'sizes'.")
        return value
    if SCALARS[name] is int:
        return whole_number(f"{path}: {name}", value, least=1)
    return number_between(f"{path}: {name}", value, 0.0)


def _checked(path: Path, name: str, values: Any) -> list[Any]:
    if not isinstance(values, list) or not values:
        raise ValueError(f"{path}: {name} is {values!r}: give a list with at least one entry.")
    allowed = {"norms": NORMS, "methods": tuple(PAPER_METHODS), "ties": ("first", "last", "random")}
    for value in values:
        if name in allowed and value not in allowed[name]:
            raise ValueError(f"{path}: {name} contains {value!r}: choose from {', '.join(map(repr, allowed[name]))}.")
        if GRIDS[name] is int:
            whole_number(f"{path}: an entry of {name}", value, least=0)
        elif GRIDS[name] is float:
            number_between(f"{path}: an entry of {name}", value, -1.0)
    return [GRIDS[name](value) for value in values]


def parts() -> dict[str, StudyPart]:
    """The parts that come with the package, figures of the paper first."""
    found = sorted(
        (read_settings(path) for path in FOLDER.glob("*.toml")), key=lambda part: (part.number or 99, part.name)
    )
    return {part.name: part for part in found}


def choose(names: list[str]) -> list[StudyPart]:
    """Parts by name, by the number of the paper's figure, or by the path of a settings file; all without names.

    >>> [part.name for part in choose(["1", "ties"])]
    ['metrics-dynamic', 'ties']
    """
    known = parts()
    by_number = {str(part.number): part for part in known.values() if part.number}
    chosen = []
    for name in names:
        if name in known:
            chosen.append(known[name])
        elif name in by_number:
            chosen.append(by_number[name])
        elif name.endswith(".toml"):
            chosen.append(read_settings(Path(name)))
            if chosen[-1].name in known:
                raise ValueError(
                    f"{name} has the name of a part of the paper's study: give your settings another name."
                )
        else:
            raise ValueError(
                f"There is no figure {name!r}: choose from {', '.join(known)}, a number from 1 to 7, "
                "or the path of a settings file."
            )
    for part in chosen:
        if sum(other.name == part.name for other in chosen) > 1:
            raise ValueError(f"{part.name!r} is named twice: give every settings file a name of its own.")
    return chosen or list(known.values())


COLUMNS = tuple(field.name for field in fields(StudyRun))
