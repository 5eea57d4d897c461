"""The tables of a shop as typed columns of one database: quickly by DuckDB, or row by row where a cell is bad."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from typing import Any, cast
from zoneinfo import ZoneInfo

from rankstream.data.readers.dialect import WORDS, Rewritten, column_rules
from rankstream.data.readers.options import ReadOptions
from rankstream.data.readers.prices import PRICE_DECIMALS
from rankstream.data.readers.problems import BadRecordError, Problems, shown
from rankstream.data.readers.records import FLAGS
from rankstream.data.readers.roles import NAMES, check_names, listed_names, match_roles
from rankstream.data.readers.sources.database import Connection, described, identifier, literal
from rankstream.data.readers.sources.files import open_source
from rankstream.data.readers.sources.labels import labels_of, text, text_or_nothing
from rankstream.data.readers.sources.tables import Source
from rankstream.data.readers.times import LOCAL, TEXTS, seconds_of, seconds_sql

SECOND = 1_000_000  # microseconds, the unit of all times of sales
DAY = 86_400 * SECOND
FOREVER = 2**62  # microseconds after 1970 that no time reaches
TIME, END, LABEL, KEY, NUMBER, LEVEL, OFFER = "time", "end", "label", "key", "number", "level", "offer"
TYPES = {LABEL: "INTEGER", KEY: "UBIGINT", NUMBER: "DOUBLE", LEVEL: "DOUBLE", OFFER: "INTEGER[]"}
DATE_ONLY = r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}\s*"
FROM = ("from", "start", "begin", "valid_from", "listed_from", "listed")
TO = ("to", "end", "until", "valid_to", "listed_to", "delisted")
TIMES = (*NAMES["time"], "datetime", "day", "hour", "sold_at", "changed_at", *FROM)
STORES = ("store", "store_id", "shop", "shop_id", "branch", "location", "site")
RECEIPTS = ("receipt", "receipt_id", "receipt_no", "transaction", "transaction_id", "basket", "basket_id", "order_id")
QUANTITIES = ("quantity", "qty", "units", "pieces")
Roles = dict[str, tuple[str, tuple[str, ...]]]
COMMON: Roles = {"time": (TIME, TIMES), "store": (LABEL, STORES)}
ITEMS: Roles = {"item": (LABEL, NAMES["item"])}
ROLES: dict[str, Roles] = {
    "receipts": COMMON | ITEMS | {"category": (LABEL, ()), "receipt": (KEY, RECEIPTS)}
    | {"quantity": (NUMBER, QUANTITIES), "price": (NUMBER, ("price", "unit_price", "price_paid"))},
    "stock": COMMON | ITEMS | {"to": (END, TO), "category": (LABEL, ()), "offered": (OFFER, NAMES["offered"])}
    | {"on_hand": (LEVEL, ("on_hand", "stock", "stock_level", "inventory", *QUANTITIES))}
    | {"available": (LEVEL, NAMES["available"])},
    "visits": COMMON | {"to": (END, TO)}
    | {"count": (NUMBER, ("count", "visits", "visitors", "entries", "people", "footfall"))},
    "prices": COMMON | ITEMS | {"to": (END, TO), "price": (NUMBER, ("price", "unit_price", "list_price"))},
}  # fmt: skip
NEEDED = {"receipts": ("time", "item"), "stock": ("time",), "visits": ("time",), "prices": ("time", "item", "price")}
MAY_BE_EMPTY = {("receipts", "price"), ("receipts", "receipt"), ("receipts", "category"), ("stock", "category")}
NEVER_NEGATIVE = ("count", "price")


@dataclass
class Codes:
    """Numbers for the labels of stores, items, categories and receipts, each in the order of their first use."""

    of: dict[str, dict[str, int]] = field(default_factory=dict)

    def code(self, role: str, label: str) -> int | None:
        """The number of a label; None for an empty one."""
        known = self.of.setdefault(role, {})
        return None if label == "" else known.setdefault(label, len(known))

    def names(self, role: str) -> list[str]:
        """The labels by their numbers."""
        return list(self.of.get(role, {}))


@dataclass
class SalesTable:
    """One table of a shop: what it is, its source, and the column of each role."""

    kind: str
    source: Source
    roles: dict[str, str]
    separator: str = ";"
    notes: tuple[str, ...] = ()

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of cells of each role that a column plays."""
        return {role: kind for role, (kind, _) in ROLES[self.kind].items() if role in self.roles}

    def naive(self) -> bool | None:
        """Whether the first times lack a zone; None where they are numbers."""
        place = self.source.columns.index(self.roles["time"])
        rows = (row.cells[place] for row in self.source.rows([self.roles["time"]], 100) if row.wrong is None)
        return next((found for cell in rows if (found := is_naive(cell)) is not None), None)

    def load(
        self, database: Connection, codes: Codes, problems: Problems, stop: bool, zone: str | None
    ) -> tuple[int, int]:
        """Create a table of all roles, NULL where no column plays one, with rows numbered from 1.

        A bad cell is a ValueError with its place; with ``stop=False`` its row is left out, as a problem. Returns the
        number of rows, and of those in an hour that a clock change of the ``zone`` repeats or skips.
        """
        import duckdb

        is_loaded = False
        with suppress(duckdb.ConversionException, duckdb.InvalidInputException, BadRecordError, UnicodeError):
            table = None if OFFER in self.kinds.values() else self.source.table(database, list(self.roles.values()))
            is_loaded = table is not None and self._scanned(database, table, codes, zone)
        if not is_loaded:
            self._slowly(database, codes, problems, stop)
        doubtful = 0 if zone is None else self._shift(database, literal(zone))
        return database.execute(f"SELECT count(*) FROM {self.kind}").fetchall()[0][0], doubtful

    def _shift(self, database: Connection, zone: str) -> int:
        utc = f"timezone({zone}, make_timestamp(time))"
        twice = " OR ".join(
            f"timezone({zone}, {utc} {hours}) {sign} make_timestamp(time)"
            for hours, sign in (("", "!="), ("+ INTERVAL 1 HOUR", "="), ("- INTERVAL 1 HOUR", "="))
        )
        found: int = database.execute(f"SELECT count(*) FROM {self.kind} WHERE naive AND ({twice})").fetchall()[0][0]
        for column in {"time", "to"} & set(self.roles):
            local = f"timezone({zone}, make_timestamp({identifier(column)}))"
            database.execute(f"UPDATE {self.kind} SET {identifier(column)} = epoch_us({local}) WHERE naive")
        return found

    def _create(self, database: Connection, cells: Mapping[str, str], flags: str, rows: str) -> None:
        columns = [
            f"CAST({cells.get(role, 'NULL')} AS {TYPES.get(kind, 'BIGINT')}) AS {identifier(role)}"
            for role, (kind, _) in ROLES[self.kind].items()
        ]
        database.execute(f"DROP TABLE IF EXISTS {self.kind}")
        database.execute(f"CREATE TEMP TABLE {self.kind} AS SELECT n, {flags}, {', '.join(columns)} {rows}")

    def _scanned(self, database: Connection, table: str, codes: Codes, zone: str | None) -> bool:
        """Load the table by DuckDB; whether all of its cells are good."""
        kinds, types = self.kinds, described(database, table)
        words = {role: f"CAST({identifier(column)} AS VARCHAR)" for role, column in self.roles.items()}
        labels = [role for role, kind in kinds.items() if kind == LABEL]
        self._code_labels(database, table, labels, words, codes)
        cells, joins, bad = {}, [], ["false"]
        values = [f"{words[role]} AS raw_{role}" for role in labels]
        for role, kind in kinds.items():
            cells[role] = f"code_{role}.code" if kind == LABEL else f"raw_{role}"
            empty = f"coalesce(trim({words[role]}), '') = ''"
            optional = kind == END or (self.kind, role) in MAY_BE_EMPTY
            if kind == LABEL:
                joins.append(f"LEFT JOIN code_{role} ON raw_{role} = code_{role}.name")
                bad += [] if optional else [f"code_{role}.code IS NULL"]
            elif kind == KEY:
                store = words.get("store", "''")
                values.append(f"CASE WHEN NOT {empty} THEN hash({store}, trim({words[role]})) END AS raw_{role}")
            else:
                column = self.roles[role]
                value = _sql(kind, self.source.scalar(column), types[column])
                value = f"round({value}, {PRICE_DECIMALS})" if role == "price" else value
                values.append(f"{value} AS raw_{role}")
                bad += [] if optional else [f"raw_{role} IS NULL"]
                if optional:
                    values.append(f"{empty} AS empty_{role}")
                    bad.append(f"(raw_{role} IS NULL AND NOT empty_{role})")
        time = self.roles["time"]
        naive = "false" if zone is None else _naive_sql(self.source.scalar(time), types[time])
        rows = f"FROM (SELECT row_number() OVER () AS n, {naive} AS naive, {', '.join(values)} FROM {table})"
        bad += [f"raw_{role} < 0" for role in NEVER_NEGATIVE if role in kinds]
        self._create(database, cells, f"{' OR '.join(bad)} AS bad, naive", f"{rows} {' '.join(joins)}")
        return not database.execute(f"SELECT bool_or(bad) FROM {self.kind}").fetchall()[0][0]

    def _code_labels(
        self, database: Connection, table: str, labels: Sequence[str], words: Mapping[str, str], codes: Codes
    ) -> None:
        """Tables with the number of each label as it is written; one scan finds all of them."""
        if not labels:
            return
        raw = ", ".join(f"{identifier(self.roles[role])}, {words[role]}" for role in labels)
        found = database.execute(f"SELECT DISTINCT {raw} FROM {table}").fetchall()
        for place, role in enumerate(labels):
            cells = {row[2 * place + 1]: row[2 * place] for row in found if row[2 * place + 1] is not None}
            known = {name: codes.code(role, text(self.source.decode(cell))) for name, cell in cells.items()}
            put_columns(database, f"code_{role}", {"name": "VARCHAR", "code": "INTEGER"}, [known, known.values()])

    def _slowly(self, database: Connection, codes: Codes, problems: Problems, stop: bool) -> None:
        kinds = self.kinds
        places = {role: self.source.columns.index(self.roles[role]) for role in kinds}
        types = {"n": "BIGINT", "naive": "BOOLEAN"} | {role: TYPES.get(kind, "BIGINT") for role, kind in kinds.items()}
        rows = []
        for number, row in enumerate(self.source.rows(list(self.roles.values())), 1):
            try:
                if row.wrong is not None:
                    raise row.wrong
                cells = {role: row.cells[place] for role, place in places.items()}
                values = [self._value(role, kind, cells, codes) for role, kind in kinds.items()]
            except BadRecordError as bad:
                if stop:
                    raise ValueError(f"{row.place}: {bad}") from None
                problems.add(row.place, bad, row.cells, row.lines)
                continue
            rows.append((number, is_naive(cells["time"]) is True, *values))
        put_columns(database, "slow_rows", types, zip(*rows, strict=True))
        self._create(database, {role: identifier(role) for role in kinds}, "false AS bad, naive", "FROM slow_rows")

    def _value(self, role: str, kind: str, cells: Mapping[str, Any], codes: Codes) -> Any:
        cell = cells[role]
        words = "" if kind == OFFER else text(cell)
        if kind == OFFER:
            return [codes.code("item", label) for label in labels_of(cell, self.separator)]
        if words == "":
            if kind in (END, KEY) or (self.kind, role) in MAY_BE_EMPTY:
                return None
            raise BadRecordError("empty", f"the {role} is empty: give one, or leave the row out.")
        if kind == LABEL:
            return codes.code(role, words)
        if kind == KEY:
            return codes.code(role, f"{text(cells.get('store'))}\0{words}")
        if kind in (TIME, END):
            moment = round(seconds_of(cell) * SECOND)
            return moment + DAY - 1 if kind == END and re.fullmatch(DATE_ONLY, words) else moment
        if kind == LEVEL and words.lower() in FLAGS:
            return float(FLAGS[words.lower()])
        try:
            number = float(words)
        except ValueError:
            number = float("nan")
        if not isfinite(number) or (role in NEVER_NEGATIVE and number < 0):
            least = " of at least 0" if role in NEVER_NEGATIVE else ""
            kind = "price" if role == "price" else "count"
            raise BadRecordError(kind, f"the {role} {shown(cell)} is not a number{least}: correct the row.")
        return round(number, PRICE_DECIMALS) if role == "price" else number


def open_table(kind: str, source: Any, columns: Mapping[str, Any], how: ReadOptions) -> SalesTable:
    """A table of a shop with its columns recognised; ``columns`` says which column plays which role otherwise.

    A role may be that of one table alone, as in ``{"stock.item": "sku"}``; others hold where a table has the column.
    """
    found = open_source(source, encoding=how.encoding, sheet=how.sheet)
    check_names(found.name, found.columns)
    given: dict[str, Any] = {}
    for role, column in columns.items():
        table, _, own = role.rpartition(".")
        if table == kind or (not table and own in ROLES[kind] and column in found.columns):
            given[own] = column
    usual = {role: names for role, (_, names) in ROLES[kind].items()}
    roles = match_roles(found.name, found.columns, given, usual)
    if "on_hand" in roles:
        roles.pop("available", None)
    for role in NEEDED[kind]:
        if role not in roles:
            raise ValueError(
                f"{found.name} has no column {role!r} (it has {listed_names(found.columns)}): map it with "
                f"columns='{kind}.{role}=YOUR_COLUMN'."
            )
    numbers, times = (
        [column for role, column in roles.items() if ROLES[kind][role][0] in kinds]
        for kinds in ((NUMBER, LEVEL), (TIME, END))
    )
    rules = column_rules(found, numbers, times, how.decimal, how.dates)
    notes = tuple(f"{column} of {found.name} is read as {WORDS[rule]}." for column, rule in rules.items())
    data = cast("Source", Rewritten(found, rules)) if rules else found
    return SalesTable(kind, data, roles, how.separator or ";", notes)


def check_zone(zone: str) -> None:
    """Refuse what is not the name of a time zone."""
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, TypeError, OSError):
        raise ValueError(f"timezone is {zone!r}: give the name of one, such as 'Europe/Berlin'.") from None


def is_naive(cell: Any) -> bool | None:
    """Whether a cell is a time without a zone; None where it is a number or no time."""
    try:
        return datetime.fromisoformat(text_or_nothing(cell)).tzinfo is None
    except ValueError:
        return None


def put_columns(database: Connection, table: str, kinds: Mapping[str, str], columns: Iterable[Iterable[Any]]) -> None:
    """Create a temporary table with the types of its columns, from columns of Python values; none for an empty one."""
    named = ", ".join(f"{identifier(name)} {kind}" for name, kind in kinds.items())
    database.execute(f"CREATE OR REPLACE TEMP TABLE {table} ({named})")
    cells = ", ".join(f"unnest(CAST(? AS {kind}[]))" for kind in kinds.values())
    if found := [list(values) for values in columns]:
        database.execute(f"INSERT INTO {table} SELECT {cells}", found)


def _naive_sql(cell: str, kind: str) -> str:
    if kind in TEXTS:
        return f"coalesce(regexp_full_match({cell}, '{LOCAL}'), false)"
    return str(kind == "DATE" or (kind.startswith("TIMESTAMP") and not kind.endswith("WITH TIME ZONE"))).lower()


def _sql(kind: str, cell: str, found: str) -> str:
    """The SQL of a cell's value; NULL where it has none, or where only Python knows."""
    if kind in (TIME, END):
        moment = f"CAST(round({seconds_sql(cell, found)} * {SECOND}) AS BIGINT)"
        if kind == TIME:
            return moment
        whole_day = "true" if found == "DATE" else f"regexp_full_match(CAST({cell} AS VARCHAR), '{DATE_ONLY}')"
        return f"{moment} + CASE WHEN {whole_day} THEN {DAY - 1} ELSE 0 END"
    number = f"try_cast({cell} AS DOUBLE)"
    number = f"CASE WHEN isfinite({number}) THEN {number} END"
    if kind == LEVEL and found in (*TEXTS, "BOOLEAN"):
        flags = " ".join(f"WHEN '{word}' THEN {int(value)}" for word, value in FLAGS.items() if word)
        return f"CASE trim(lower(CAST({cell} AS VARCHAR))) {flags} ELSE {number} END"
    return number
