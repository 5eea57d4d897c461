"""Which of the known formats a table is in, told by the names of its columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rankstream.readers.problems import BadRecordError

NAMES: dict[str, tuple[str, ...]] = {
    "offered": ("offered", "offer", "assortment"),
    "chosen": ("chosen", "choice"),
    "observation": ("observation", "obs_id", "observation_id", "choice_id", "choices_id", "obs", "id"),
    "item": ("item", "item_id", "items_id", "alternative", "alternative_id", "alt_id", "alt"),
    "ranking": ("ranking", "ballot"),
    "count": ("count",),
    "time": ("time", "timestamp", "date"),
}
NEEDED: dict[str, tuple[str, ...]] = {
    "long": ("observation", "item", "chosen"),
    "transactions": ("offered", "chosen"),
    "counts": ("offered", "item", "count"),
    "rankings": ("ranking",),
    "wide": ("chosen",),
}


@dataclass(frozen=True)
class Layout:
    """A format and the columns that play its parts; ``raw`` are those that make a record what it is."""

    format: str
    raw: tuple[str, ...]
    count: str | None = None
    roles: dict[str, str] = field(default_factory=dict)

    @property
    def items(self) -> tuple[str, ...]:
        """The columns that are items, of the wide format."""
        return self.raw[1:]


def recognise(
    name: str,
    columns: Sequence[str],
    format: str | None = None,  # noqa: A002
    given: Mapping[str, str | Sequence[str]] | None = None,
    besides: Sequence[str] = (),
) -> Layout:
    """The layout of a table with these columns; ``given`` names columns by role, ``besides`` are no items.

    >>> recognise("data", ["obs_id", "alt_id", "choice", "price"]).format
    'long'
    >>> recognise("data", ["tea", "pie", "chosen"]).items
    ('tea', 'pie')
    """
    if format is not None and format not in NEEDED:
        raise ValueError(f"There is no format {format!r}: the formats are {', '.join(NEEDED)}.")
    _check_names(name, columns)
    named = dict(given or {})
    wanted = named.pop("items", None)
    roles = _roles(name, columns, named)
    taken = {roles[role] for role in ("chosen", "count", "observation", "time") if role in roles}
    items = _items(name, columns, wanted, {*taken, *besides})
    found = format or next((known for known, needed in NEEDED.items() if _fits(known, needed, roles, items)), None)
    missing = _missing(found, roles)
    if missing or found is None:
        has = ", ".join(map(repr, columns)) or "nothing at all"
        likely = ("transactions", "counts", "long", "rankings")
        nearest = found or max(likely, key=lambda known: sum(role in roles for role in NEEDED[known]))
        missing = missing or _missing(nearest, roles)
        remedy = f"call its columns {' and '.join(NEEDED[nearest])}, or say which is which by columns"
        raise ValueError(f"{name} has no column {missing[0]!r} but {has}: {remedy}.")
    if found == "wide" and not items:
        raise ValueError(f"{name} has no columns for its items: have one of 0 and 1 for each item.")
    raw = tuple(roles[role] for role in NEEDED[found] if role != "count")
    return Layout(found, raw + (items if found == "wide" else ()), roles.get("count"), roles)


def _missing(format: str | None, roles: Mapping[str, str]) -> list[str]:  # noqa: A002
    return [role for role in NEEDED[format] if role not in roles] if format else []


def _fits(known: str, needed: Sequence[str], roles: Mapping[str, str], items: Sequence[str]) -> bool:
    return all(role in roles for role in needed) and (known != "wide" or len(items) > 1)


def _check_names(name: str, columns: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for column in columns:
        other = seen.setdefault(column.lower(), column)
        if list(columns).count(column) > 1 or other != column:
            raise ValueError(f"{name} has the columns {other!r} and {column!r}: let them differ in more than case.")


def _roles(name: str, columns: Sequence[str], given: Mapping[str, str | Sequence[str]]) -> dict[str, str]:
    roles: dict[str, str] = {}
    for role, column in given.items():
        if role not in NAMES:
            raise ValueError(f"There is no role {role!r} for a column: the roles are {', '.join(NAMES)} and items.")
        if not isinstance(column, str) or column not in columns:
            raise ValueError(f"{name} has no column {column!r} to be {role!r} but {', '.join(map(repr, columns))}.")
        roles[role] = column
    plain = {column.strip().lower(): column for column in columns if column not in roles.values()}
    for role, names in NAMES.items():
        known = next((known for known in names if known in plain), None)
        if role not in roles and known is not None:
            roles[role] = plain[known]
    return roles


def _items(name: str, columns: Sequence[str], wanted: str | Sequence[str] | None, taken: set[str]) -> tuple[str, ...]:
    if wanted is None:
        return tuple(column for column in columns if column not in taken)
    items = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    for column in items:
        if column not in columns:
            raise ValueError(f"{name} has no column {column!r} to be an item but {', '.join(map(repr, columns))}.")
    return items


def bad_count(value: object) -> BadRecordError:
    """The problem of a count that is none."""
    return BadRecordError("count", f"the count {value!r} is not a number >= 0: correct the record.")
