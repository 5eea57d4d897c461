"""Which column plays which part, told by usual names or by the user."""

import re
from collections.abc import Mapping, Sequence

NAMES: dict[str, tuple[str, ...]] = {
    "offered": ("offered", "offer", "assortment"),
    "offer_id": ("offer_id", "offered_id", "assortment_id", "menu_id"),
    "chosen": ("chosen", "choice", "depvar"),
    "chosen_item": ("chosen_item", "chosen_alternative", "chosen_alt", "choice_item", "choice_name"),
    "observation": (
        *("observation", "observation_id", "obs_id", "obs", "chid", "choice_id", "choices_id", "choiceid"),
        *("choice_situation", "custom_id", "case_id", "caseid", "idcase", "case", "id", "individual"),
    ),
    "item": (
        *("item", "item_id", "items_id", "alternative", "alternative_id", "alt_id", "alt", "mode_id", "mode"),
        *("product", "product_id"),
    ),
    "ranking": ("ranking", "ballot"),
    "count": ("count",),
    "time": ("time", "timestamp", "date"),
}
THINGS = {"case", "individual"}  # what a wide table may well have for an item
AVAILABLE = r"av|avail|available|availability"
MARKED = re.compile(rf"(?:{AVAILABLE})[_.\s](?P<after>.+)|(?P<before>.+)[_.\s](?:{AVAILABLE})", re.IGNORECASE)
Columns = Mapping[str, str | Sequence[str] | Mapping[str, object]]


def parsed(words: str) -> dict[str, str | list[str]]:
    """Columns by role from text as at the command line; what is joined by ';' is a list.

    >>> parsed("chosen=CHOICE,items=TRAIN_AV:1;CAR_AV:3")
    {'chosen': 'CHOICE', 'items': ['TRAIN_AV:1', 'CAR_AV:3']}
    """
    found: dict[str, str | list[str]] = {}
    for part in words.split(","):
        role, equals, column = (word.strip() for word in part.partition("="))
        if not (role and equals and column):
            raise ValueError(f"The columns {words!r} are not of the form 'observation=case,item=alt': see {part!r}.")
        many = ";" in column or role == "items"
        found[role] = [name.strip() for name in column.split(";")] if many else column
    return found


def roles_of(name: str, columns: Sequence[str], given: Columns) -> dict[str, str]:
    """The column of each role that is given or known by its name."""
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
    if "chosen_item" in roles and ("chosen_item" in given or "chosen" not in roles):
        roles["chosen"] = roles["chosen_item"]
    return roles


def check_names(name: str, columns: Sequence[str]) -> None:
    """That no two columns differ in case alone, which DuckDB would take for one."""
    seen: dict[str, str] = {}
    for column in columns:
        other = seen.setdefault(column.lower(), column)
        if list(columns).count(column) > 1 or other != column:
            raise ValueError(f"{name} has the columns {other!r} and {column!r}: let them differ in more than case.")


def items_of(name: str, columns: Sequence[str], wanted: object, taken: set[str]) -> dict[str, str]:
    """The columns that are items of a wide table, each with what the chosen column calls the item.

    Unless the user says which, they are those marked as in ``train_av`` if there are two or more, or else all.
    """
    if wanted is None:
        free = [column for column in columns if column not in taken]
        marked = [column for column in free if MARKED.fullmatch(column)]
        return {column: item_name(column) for column in (marked if len(marked) > 1 else free)}
    if isinstance(wanted, Mapping):
        codes = {str(column): str(code) for column, code in wanted.items()}
    else:
        listed = (wanted,) if isinstance(wanted, str) else tuple(wanted) if isinstance(wanted, Sequence) else ()
        codes = dict(_coded(str(column), columns) for column in listed)
    for column in codes:
        if column not in columns:
            raise ValueError(f"{name} has no column {column!r} to be an item but {', '.join(map(repr, columns))}.")
    return codes


def _coded(words: str, columns: Sequence[str]) -> tuple[str, str]:
    column, colon, code = words.rpartition(":")
    return (column, code) if colon and words not in columns else (words, item_name(words))


def item_name(column: str) -> str:
    """What the item of a wide table's column is called: the column's name without a mark such as ``_av``.

    >>> item_name("TRAIN_AV"), item_name("avail.car"), item_name("tea")
    ('TRAIN', 'car', 'tea')
    """
    marked = MARKED.fullmatch(column)
    return ((marked["after"] or marked["before"]) if marked else column).strip()
