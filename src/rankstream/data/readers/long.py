"""The long format, with a row for each alternative: a GROUP BY packs each observation into a few integers."""

from collections.abc import Iterable, Sequence
from typing import Any

from rankstream.data.readers.formats import Layout
from rankstream.data.readers.problems import BadRecordError
from rankstream.data.readers.records import is_flag
from rankstream.data.readers.sources.database import Connection, identifier, stripped
from rankstream.data.readers.sources.labels import text_or_nothing
from rankstream.data.readers.sources.tables import Source

BITS_PER_WORD = 60  # that are free to shift in a signed word of 64
MAX_ALTERNATIVES = 6000  # items with flags: 100 words for each observation; with more, rows are read one by one
NO_TIME = "CAST(NULL AS DOUBLE)"
NAMED = (  # an observation has a name without blanks around it
    f"coalesce({stripped('CAST(o AS VARCHAR)')} = CAST(o AS VARCHAR) "
    "AND CAST(o AS VARCHAR) NOT IN ('', 'nan', 'NaN'), false)"
)


def names_items(items: Iterable[Any], cells: Iterable[Any]) -> bool:
    """Return whether the column of choices names an item on each row, instead of flagging it with 0 or 1.

    It does if at least half of its values other than flags are items.

    >>> names_items(["tea", "pie"], ["tea", "pie"]), names_items(["1", "2"], ["0", "1"])
    (True, False)
    """
    other = {text_or_nothing(cell) for cell in cells if not is_flag(cell)}
    return len(other) > 0 and 2 * len(other & {text_or_nothing(item) for item in items}) >= len(other)


class Alternatives:
    """The distinct pairs of an item and its flag, numbered, so that an observation is a set of bits.

    There are few such pairs, so that millions of rows are grouped without a list of rows. If each row names the
    choice, only the items are numbered, and the name belongs to the whole observation. With ``head``, only that many
    rows are searched for pairs; an observation with any other pair counts as invalid.
    """

    def __init__(
        self, connection: Connection, source: Source, table: str, layout: Layout, head: int | None = None
    ) -> None:
        self.source, self.table = source, table
        self.observation, self.item, self.flag, *price = layout.raw
        self.counted = layout.count is not None
        self.price = identifier(price[0]) if price else "NULL"
        item, flag = identifier(self.item), identifier(self.flag)
        columns = f"{item} AS i, {flag} AS f, {self.price} AS c"
        rows = f"(SELECT {columns} FROM {table}{'' if head is None else f' LIMIT {head}'})"
        connection.execute(f"CREATE TEMP TABLE found AS SELECT DISTINCT i, f, c FROM {rows}").fetchall()
        items, cells = (
            [source.decode(cell) for (cell,) in connection.execute(f"SELECT DISTINCT {column} FROM found").fetchall()]
            for column in "if"
        )
        self.naming = names_items(items, cells) if layout.naming is None else layout.naming
        distinct = "DISTINCT i, NULL AS f, c" if self.naming else "i, f, c"
        number = f"CAST(row_number() OVER (ORDER BY {stripped('CAST(i AS VARCHAR)')}) - 1 AS INTEGER)"
        connection.execute(
            f"CREATE TEMP TABLE pairs AS SELECT i, f, c, {number} AS code, code // {BITS_PER_WORD} AS word, "
            f"1::BIGINT << (code % {BITS_PER_WORD}) AS bit FROM (SELECT {distinct} FROM found)"
        ).fetchall()
        pairs = connection.execute(f"SELECT i, f{', c' if price else ''} FROM pairs ORDER BY code").fetchall()
        if len(pairs) > MAX_ALTERNATIVES:
            raise BadRecordError("flag", f"There are {len(pairs)} different items and flags: look at them row by row.")
        decoded = [[source.decode(cell) for cell in cells] for cells in pairs]  # equal offers in equal words and order
        self.pairs = [tuple([cell.strip() if type(cell) is str else cell for cell in cells]) for cells in decoded]
        self.words = -(-len(pairs) // BITS_PER_WORD)

    @property
    def names(self) -> list[str]:
        """The columns of the query that identify an observation's offer and choice."""
        return [f"r{word}" for word in range(self.words)] + (["chosen"] if self.naming else [])

    def query(self, key: list[str], time: str | None, weight: str, good: str) -> str:
        """Return a query with a row for each observation, whose keys, count and time must be the same in all rows."""
        keys = [f"k{place}" for place in range(len(key))]
        cells = [f"{column} AS {name}" for name, column in zip(keys, key, strict=True)]
        cells += [f"{self.source.name_of(self.observation)} AS o", f"{identifier(self.item)} AS i"]
        cells += [f"{identifier(self.flag)} AS f", f"{self.price} AS c"]
        rows = f"SELECT {', '.join(cells)}, {time or NO_TIME} AS t, {weight} AS w, {good} AS good FROM {self.table}"
        same = "" if self.naming else " AND a.f IS NOT DISTINCT FROM p.f"
        same += "" if self.price == "NULL" else " AND a.c IS NOT DISTINCT FROM p.c"
        numbered = f"({rows}) AS a LEFT JOIN pairs AS p ON a.i IS NOT DISTINCT FROM p.i{same}"
        bit = "p.bit" if self.words == 1 else "CASE WHEN p.word = {} THEN p.bit ELSE 0 END"
        words = [f"bit_or({bit.format(word)})" for word in range(self.words)]
        parts = [f"{bits} AS r{word}" for word, bits in enumerate(words)]
        parts += [f"min({name}) AS {name}" for name in keys] + (["min(a.f) AS chosen"] if self.naming else [])
        moment = "CASE WHEN min(t) = max(t) AND count(t) = count(*) THEN min(t) END" if time else NO_TIME
        parts += [f"{moment} AS t"]
        parts += ["min(w) AS w" if self.counted else "1 AS w"]
        sound = [NAMED, f"{' + '.join(f'bit_count({bits})' for bits in words)} = count(*)"]
        sound += ["bool_and(good)", "min(w) = max(w)"] if self.counted else []
        sound += ["(count(a.f) = 0 OR min(a.f) = max(a.f) AND count(a.f) = count(*))"] if self.naming else []
        sound += [f"coalesce(min({name}) = max({name}), false) AND count({name}) = count(*)" for name in keys]
        return f"SELECT {', '.join(parts)}, {' AND '.join(sound)} AS good FROM {numbered} GROUP BY o"

    def entries(self, cells: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the items of an observation, each with its flag or the named choice, and its price if there is one."""
        numbers = [
            BITS_PER_WORD * place + bit
            for place, word in enumerate(cells[: self.words])
            for bit in range(BITS_PER_WORD)
            if word >> bit & 1
        ]
        pairs = [self.pairs[number] for number in numbers]
        if not self.naming:
            return pairs
        chosen = self.source.decode(cells[-1])
        return [(item, chosen, *price) for item, _, *price in pairs]
