"""Published models as the server reads them, and the check that log and models of a folder belong together.

Without that check, a log that was cut or replaced would go unnoticed. It compares positions, not rows, because
``--keep`` drops learned rows.
"""

import sqlite3
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from rankstream.service.journal import note
from rankstream.service.limits import RefusedError
from rankstream.service.storage import states as store
from rankstream.service.storage.database import Database, Place
from rankstream.service.storage.log import DamagedLogError, MarketRow, identity_of, is_damage, market_rows
from rankstream.service.storage.states import PublishedModel

MIN_CHOICES = 30  # predictions from fewer choices are provisional; the same limit as in data/drift.py
FEW_CHOICES = f"Predictions from fewer than {MIN_CHOICES} choices are provisional."
COARSE = (
    "These predictions come from a coarse model and are provisional. The better one follows in a few seconds, unless "
    "the market has more than 400 offers or 64 items."
)


MODEL_EXAMPLE: dict[str, Any] = {
    "position": 1200, "records": 1250, "learned": 1250, "age": 0.8, "kind": "max-entropy", "gap": 0.004,
    "provisional": False,
}  # fmt: skip
MARKET_EXAMPLE: dict[str, Any] = {
    "market": "cafe", "problem": None, "records": 1250, "learned": 1250, "dropped": 0, "offers": 4, "items": 4,
    "model_age": 0.8, "kind": "max-entropy",
}  # fmt: skip


def documented(**example: Any) -> dict[str, Any]:
    """Return the pydantic configuration of a dataclass, without importing pydantic here."""
    return {"extra": "forbid", "use_attribute_docstrings": True, "json_schema_extra": {"example": example}}


@dataclass(frozen=True)
class PublishedAnswer:
    """The model behind an answer: the position of its last record, and its age in seconds."""

    __pydantic_config__: ClassVar = documented(**MODEL_EXAMPLE)
    position: int
    records: int
    learned: int
    age: float
    kind: str
    """max-entropy, or sparse: a coarser model that is available first."""
    gap: float | None
    provisional: bool
    """Whether a better model is being fitted, or there are fewer than 30 choices."""


@dataclass(frozen=True)
class MarketAnswer:
    """A market: records received, learned and dropped, its sizes, and the age of its model in seconds."""

    __pydantic_config__: ClassVar = documented(**MARKET_EXAMPLE)
    market: str
    records: int
    learned: int
    dropped: int
    offers: int
    items: int
    model_age: float | None
    kind: str | None
    problem: str | None


def provisional_reason(row: MarketRow, facts: dict[str, Any]) -> str:
    """Return why predictions are provisional; empty if they are not."""
    if facts["choices"] < MIN_CHOICES:
        return FEW_CHOICES
    return COARSE if facts["kind"] == "sparse" != row.settings.get("served") else ""


REMEDY = (
    "Restore both files from one backup, or stop the server and rebuild the models from this log with "
    "'rankstream serve rebuild {}'."
)


class PairingError(ValueError):
    """The log and the models do not belong together."""


def check_pair(log: Database, learned: Database, folder: object = "FOLDER") -> None:
    """Raise a PairingError if learned.sqlite3 has more records than the log, or belongs to another log."""
    log_id, remedy = identity_of(log), REMEDY.format(folder)
    known = learned.execute("SELECT log FROM identity").fetchone()
    if known is not None and known[0] != log_id:
        raise PairingError(f"{store.NAME} belongs to another log. {remedy}")
    rows = {row.id: row for row in market_rows(log)}
    (last,) = log.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence").fetchone()  # ever made, even if purged
    for market, (epoch, position) in sorted(store.positions(learned).items()):
        row = rows.get(market)
        if row is None and market > last:
            raise PairingError(f"The log lacks a market of which {position:,} records were learned. {remedy}")
        if row is not None and epoch > row.epoch:
            raise PairingError(f"The log of market {row.name!r} lacks settings that were in use. {remedy}")
        if row is not None and epoch == row.epoch and position > row.records:
            raise PairingError(
                f"The log of market {row.name!r} ends at record {row.records:,}, but {position:,} were learned: "
                f"{position - row.records:,} are missing. {remedy}"
            )
    learned.execute("INSERT INTO identity SELECT ? WHERE NOT EXISTS (SELECT * FROM identity)", (log_id,))


def open_learned(folder: Place, log: Database, where: object = "FOLDER") -> Database:
    """Open the models of a log; if the file is damaged, rename it and start a new one."""
    learned = store.open_store(folder)
    if isinstance(folder, str):  # log and models are in one database
        return learned
    try:
        check_pair(log, learned, where)
    except BaseException as error:
        learned.close()
        if not is_damage(error) or isinstance(error, DamagedLogError):
            raise
        store.put_aside(folder, "damaged")
        learned = store.open_store(folder)
        check_pair(log, learned, where)
    return learned


class Published:
    """The server's view of the published models; it is read again when the learner has written."""

    def __init__(self, folder: Place, log: Database) -> None:
        self.folder, self.log = folder, log
        self.mismatch = ""
        self._file: tuple[int, int] | None = None
        self._models: dict[int, PublishedModel] = {}
        self._positions: dict[int, tuple[int, int]] = {}
        self._problems: dict[int, tuple[int, str]] = {}
        self._open(folder)

    def _open(self, where: object = "FOLDER") -> None:
        self._version, self.connection = -1, open_learned(self.folder, self.log, where)
        self._file, self.mismatch = store.file_of(self.folder), ""

    def _read(self) -> Self:
        """Read again if the file was written or replaced, and return self."""
        try:
            if store.file_of(self.folder) != self._file:
                note("the saved models were replaced; reading them again")
                self.connection.close()
                self._file = None  # until it is open
                self._open()
            if not self.mismatch:
                version = self.connection.changes()
                if version != self._version:
                    self._models = store.published_models(self.connection)
                    self._positions = store.positions(self.connection)
                    self._problems = store.problems(self.connection)
                    self._version = version
        except PairingError as error:
            self._file, self.mismatch = store.file_of(self.folder), str(error)
        except (sqlite3.Error, OSError):
            raise RefusedError(
                503, "The saved models cannot be read: try again in a second.", Retry_After="1"
            ) from None
        if self.mismatch:
            raise RefusedError(503, self.mismatch)
        return self

    def problem(self, row: MarketRow | None) -> str | None:
        """Return why a market cannot be learned with its current settings; without a market, the log's problem."""
        epoch, sentence = self._read()._problems.get(0 if row is None else row.id, (0, None))
        return sentence if row is None or epoch == row.epoch else None

    def any_problem(self) -> bool:
        """Return whether some market cannot be learned."""
        return bool(self._read()._problems)

    def of(self, row: MarketRow) -> PublishedModel | None:
        """Return the published model of a market; after a change of settings, the old one until a new one is ready."""
        return self._read()._models.get(row.id)

    def learned(self, row: MarketRow) -> int:
        """Return the position up to which a market was learned with its current settings."""
        epoch, position = self._read()._positions.get(row.id, (0, 0))
        return position if epoch == row.epoch else 0

    def text(self, row: MarketRow, digest: str) -> str | None:
        """The text of a model."""
        return store.model_text(self._read().connection, row.id, digest)

    def listing(self, row: MarketRow) -> dict[str, Any] | None:
        """Return the list of items of a market, from when its model was saved."""
        return store.listing_of(self._read().connection, row.id)

    def close(self) -> None:
        """Close the file."""
        self.connection.close()
