"""The long format: a row for each alternative, which a first GROUP BY makes a few whole numbers per observation."""

from typing import TYPE_CHECKING, Any

from rankstream.readers.formats import Layout
from rankstream.readers.problems import BadRecordError
from rankstream.readers.tables import Source, identifier

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

BITS = 60
MOST = 6000


class Alternatives:
    """The pairs of an item and its flag that occur, numbered, so that an observation is a set of bits.

    There are few of them, so that a table of millions of rows is grouped without keeping any list of rows.
    """

    def __init__(self, connection: "DuckDBPyConnection", source: Source, table: str, layout: Layout) -> None:
        self.source, self.table = source, table
        self.observation, self.item, self.flag = layout.raw
        item, flag = identifier(self.item), identifier(self.flag)
        connection.execute(
            f"CREATE TEMP TABLE pairs AS SELECT i, f, CAST(row_number() OVER () - 1 AS INTEGER) AS code "
            f"FROM (SELECT DISTINCT {item} AS i, {flag} AS f FROM {table})"
        ).fetchall()
        found = connection.execute("SELECT i, f FROM pairs ORDER BY code").fetchall()
        if len(found) > MOST:
            raise BadRecordError("flag", f"There are {len(found)} different items and flags: look at them row by row.")
        self.pairs = [(source.decode(item), source.decode(flag)) for item, flag in found]
        self.words = -(-len(found) // BITS)

    def query(self, key: list[str], weight: str, good: str, in_order: bool) -> str:
        """A row for each observation; what belongs to it as a whole must be the same in all of its rows."""
        observation = identifier(self.observation)
        named = f"coalesce(trim(CAST({self.source.scalar(self.observation)} AS VARCHAR)), '') NOT IN ('', 'nan', 'NaN')"
        keys = [f"k{place}" for place in range(len(key))]
        cells = [f"{column} AS {name}" for name, column in zip(keys, key, strict=True)]
        cells += [f"{observation} AS o", f"{identifier(self.item)} AS i", f"{identifier(self.flag)} AS f"]
        rows = f"SELECT {', '.join(cells)}, {weight} AS w, {good} AND {named} AS good FROM {self.table}"
        numbered = f"({rows}) AS a JOIN pairs AS p ON a.i IS NOT DISTINCT FROM p.i AND a.f IS NOT DISTINCT FROM p.f"
        words = [f"bit_or({_bit(word)}) AS r{word}" for word in range(self.words)]
        size = " + ".join(f"bit_count(bit_or({_bit(word)}))" for word in range(self.words))
        sound = ["bool_and(good)", "min(w) = max(w)", f"{size} = count(*)"]
        if not in_order:
            sound += [f"coalesce(min({name}) = max({name}), false) AND count({name}) = count(*)" for name in keys]
        parts = words + [f"min({name}) AS {name}" for name in keys]
        query = f"SELECT {', '.join(parts)}, min(w) AS w, {' AND '.join(sound)} AS good FROM {numbered} GROUP BY o"
        return f"SELECT * REPLACE (row_number() OVER (ORDER BY k0) - 1 AS k0) FROM ({query})" if in_order else query

    def entries(self, words: list[int]) -> list[tuple[Any, Any]]:
        """The items and flags of an observation."""
        return [
            self.pairs[BITS * place + bit] for place, word in enumerate(words) for bit in range(BITS) if word >> bit & 1
        ]


def _bit(word: int) -> str:
    return f"CASE WHEN p.code // {BITS} = {word} THEN 1::BIGINT << (p.code % {BITS}) ELSE 0 END"
