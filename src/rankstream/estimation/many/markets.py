"""A market: its name, its seed and its file, which follow from its key alone; and what is known of its fit."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from math import isfinite
from typing import Any
from urllib.parse import quote

Market = tuple[str, ...]
MAX_NAME_LENGTH = 120
COLUMNS = {
    "market": "VARCHAR", "key": "VARCHAR[]", "choices": "DOUBLE", "offers": "BIGINT", "items": "BIGINT",
    "status": "VARCHAR", "error": "VARCHAR", "method": "VARCHAR", "distance": "DOUBLE", "gap": "DOUBLE",
    "seconds": "DOUBLE", "pooled": "DOUBLE", "digest": "VARCHAR", "file": "VARCHAR", "written": "VARCHAR",
}  # fmt: skip
"""The columns of index.parquet."""


def digest_of(*parts: Any) -> str:
    """A short text that is the same for the same parts."""
    return blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


def bytes_digest(content: bytes) -> str:
    """A short text that is the same for the same bytes."""
    return blake2b(content, digest_size=16).hexdigest()


def name_of(market: Sequence[str]) -> str:
    """A market in a word: its parts joined by ";", or as a JSON list where a part has one.

    >>> name_of(("York", "tea")), name_of(("York;North", "tea"))
    ('York;tea', '["York;North", "tea"]')
    """
    if any(";" in part for part in market) or market[0].startswith("["):
        return json.dumps(list(market), ensure_ascii=False)
    return ";".join(market)


def file_of(market: Sequence[str]) -> str:
    """The name of its model file: readable, and different for different markets on every file system.

    >>> file_of(("York", "tea/coffee"))
    'York;tea%2Fcoffee.d5cf10de.json'
    """
    words = ";".join(quote(part, safe=" ") for part in market)[:MAX_NAME_LENGTH]
    return f"{words}.{digest_of(list(market))[:8]}.json"


def seed_of(market: Sequence[str], seed: int) -> int:
    """The seed of a market, which follows from its key: neither order nor workers change it."""
    return int(digest_of(seed, list(market))[:7], 16)


@dataclass(frozen=True)
class MarketFit:
    """What became of one market: a row of the index.

    ``status`` is "done", "failed" (``error`` says why), or "absent": it was in the data of an earlier run only.
    ``pooled`` is the weight of the pool in its prior; ``digest`` covers counts, settings and pool, ``written`` the
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
        """As JSON can write it: what is not finite is not there."""
        row = {name: getattr(self, name) for name in COLUMNS}
        row["key"] = list(self.key)
        return {
            name: None if isinstance(value, float) and not isfinite(value) else value for name, value in row.items()
        }

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> "MarketFit":
        """What ``to_row`` wrote."""
        known = {field.name: row.get(field.name) for field in fields(cls)}
        return cls(**(known | {"key": tuple(row["key"])}))


def find_market(said: Any, known: Iterable[Market]) -> Market:
    """The market that somebody names: by its key, by its one part, or by its name.

    >>> find_market("York;tea", [("York", "tea")])
    ('York', 'tea')
    """
    markets = set(known)
    key = (said,) if isinstance(said, str) else tuple(map(str, said))
    if key in markets:
        return key
    named = {name_of(market): market for market in markets}
    if isinstance(said, str) and said in named:
        return named[said]
    from difflib import get_close_matches

    shown, plain = said if isinstance(said, str) else name_of(key), {name.lower(): name for name in named}
    near = [plain[word] for word in get_close_matches(shown.lower(), plain, 3, 0.6)]
    near = near or [name for word, name in plain.items() if shown.lower() in word][:3]
    listed = ", ".join(map(repr, near or sorted(named)[:3]))
    hint = f"did you mean {listed}?" if near else f"the first of {len(named):,} are {listed}." if named else "none has."
    raise ValueError(f"There is no market {shown!r} with a model: {hint}")
