"""A market: its name, its seed and its file, which follow from its key alone; and the result of its fit."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from math import isfinite
from typing import Any
from urllib.parse import quote

Market = tuple[str, ...]
MAX_NAME_LENGTH = 120  # file systems allow 255 bytes, and a digest follows
COLUMNS = {
    "market": "VARCHAR", "key": "VARCHAR[]", "choices": "DOUBLE", "offers": "BIGINT", "items": "BIGINT",
    "status": "VARCHAR", "error": "VARCHAR", "method": "VARCHAR", "distance": "DOUBLE", "gap": "DOUBLE",
    "seconds": "DOUBLE", "pooled": "DOUBLE", "digest": "VARCHAR", "file": "VARCHAR", "written": "VARCHAR",
}  # fmt: skip
"""The columns of index.parquet."""


def digest_of(*parts: Any) -> str:
    """Return a hash of JSON values."""
    return blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


def bytes_digest(content: bytes) -> str:
    """Return a hash of bytes."""
    return blake2b(content, digest_size=16).hexdigest()


def name_of(market: Sequence[str]) -> str:
    """Return the name of a market: its parts joined by ";", or a JSON list if a part contains one.

    >>> name_of(("York", "tea")), name_of(("York;North", "tea"))
    ('York;tea', '["York;North", "tea"]')
    """
    if any(";" in part for part in market) or market[0].startswith("["):
        return json.dumps(list(market), ensure_ascii=False)
    return ";".join(market)


def file_of(market: Sequence[str]) -> str:
    """Return the name of a market's model file: readable, and unique on every file system.

    >>> file_of(("York", "tea/coffee"))
    'York;tea%2Fcoffee.d5cf10de.json'
    """
    words = ";".join(quote(part, safe=" ") for part in market)[:MAX_NAME_LENGTH]
    return f"{words}.{digest_of(list(market))[:8]}.json"


def seed_of(market: Sequence[str], seed: int) -> int:
    """Return the seed of a market, which does not depend on the order of markets or the number of workers."""
    return int(digest_of(seed, list(market))[:7], 16)


@dataclass(frozen=True)
class MarketFit:
    """The result of one market: a row of the index.

    ``status`` is "done", "failed" (with the ``error``), or "absent" if only an earlier run had the market. ``pooled``
    is the weight of the pool in its prior; ``digest`` is a hash of counts, settings and pool, and ``written`` of the
    bytes of its ``file``.
    """

    key: Market
    status: str
    choices: float | None = None
    offers: int | None = None
    items: int | None = None
    error: str | None = None
    method: str | None = None
    distance: float | None = None
    gap: float | None = None
    seconds: float | None = None
    pooled: float | None = None
    digest: str | None = None
    file: str | None = None
    written: str | None = None

    @property
    def market(self) -> str:
        """Its name."""
        return name_of(self.key)

    def to_row(self) -> dict[str, Any]:
        """Return plain values for JSON; None for numbers that are not finite."""
        row = {name: getattr(self, name) for name in COLUMNS}
        row["key"] = list(self.key)
        return {
            name: None if isinstance(value, float) and not isfinite(value) else value for name, value in row.items()
        }

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> "MarketFit":
        """Return the result that ``to_row`` described."""
        known = {field.name: row.get(field.name) for field in fields(cls)}
        return cls(**(known | {"key": tuple(row["key"])}))


def find_market(wanted: Any, known: Iterable[Market]) -> Market:
    """Find a market by its key, its only part, or its name; raise a ValueError with suggestions.

    >>> find_market("York;tea", [("York", "tea")])
    ('York', 'tea')
    """
    markets = set(known)
    key = (wanted,) if isinstance(wanted, str) else tuple(map(str, wanted))
    if key in markets:
        return key
    named = {name_of(market): market for market in markets}
    if isinstance(wanted, str) and wanted in named:
        return named[wanted]
    from difflib import get_close_matches

    name, plain = wanted if isinstance(wanted, str) else name_of(key), {name.lower(): name for name in named}
    near = [plain[word] for word in get_close_matches(name.lower(), plain, 3, 0.6)]
    near = near or [known_name for word, known_name in plain.items() if name.lower() in word][:3]
    hint = f"did you mean {', '.join(map(repr, near))}?" if near else "none has."
    if named and not near:
        hint = f"the first of {len(named):,} are {', '.join(map(repr, sorted(named)[:3]))}."
    raise ValueError(f"There is no market {name!r} with a model: {hint}")
