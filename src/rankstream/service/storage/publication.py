"""What was learned, as the server gives it out: facts about models and markets, and whether the two files of a folder
belong together. Nobody would notice a log that was cut or replaced; positions are compared, not rows, as ``--keep``
drops rows that are learned.
"""

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from rankstream.service.journal import note
from rankstream.service.limits import RefusedError
from rankstream.service.storage import states as store
from rankstream.service.storage.log import DamagedLogError, MarketRow, identity_of, is_damage, market_rows
from rankstream.service.storage.states import PublishedModel

MIN_CHOICES = 30  # choices below which predictions are provisional, as below which nothing is compared (data/drift.py)
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
    """What pydantic is told of a dataclass that an answer contains; this file does without pydantic itself."""
    return {"extra": "forbid", "use_attribute_docstrings": True, "json_schema_extra": {"example": example}}


@dataclass(frozen=True)
class PublishedAnswer:
    """The model behind an answer: up to which record it knows the market, and how many seconds ago that was learned."""

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
    """A market: records in all, those that are learned and dropped, its sizes, and the age of its model in seconds."""

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
    """Why predictions of a model should be taken with care for now; nothing where there is no reason."""
    if facts["choices"] < MIN_CHOICES:
        return FEW_CHOICES
    return COARSE if facts["kind"] == "sparse" != row.settings.get("served") else ""


REMEDY = (
    "Restore both files from one backup, or stop the server and rebuild the models from this log with "
    "'rankstream serve rebuild {}'."
)


class PairingError(ValueError):
    """The two files do not belong together."""


def check_pair(log: sqlite3.Connection, learned: sqlite3.Connection, folder: object = "FOLDER") -> None:
    """Raise a PairingError where learned.sqlite3 knows more than the log, or another log; it adopts its first log."""
    own, remedy = identity_of(log), REMEDY.format(folder)
    known = learned.execute("SELECT log FROM identity").fetchone()
    if known is not None and known[0] != own:
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
    learned.execute("INSERT INTO identity SELECT ? WHERE NOT EXISTS (SELECT * FROM identity)", (own,))


def open_learned(folder: Path, log: sqlite3.Connection, where: object = "FOLDER") -> sqlite3.Connection:
    """Open what was learned from a log; where it is damaged, it is put aside, and learned again."""
    learned = store.open_store(folder)
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
    """What the server knows of all this: read again whenever the learner has written, or the file was replaced."""

    def __init__(self, folder: Path, log: sqlite3.Connection) -> None:
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
        """Read what was written or replaced since, and return this."""
        try:
            if store.file_of(self.folder) != self._file:
                note("the saved models were replaced; reading them again")
                self.connection.close()
                self._file = None  # until it is open
                self._open()
            if not self.mismatch:
                version = self.connection.execute("PRAGMA data_version").fetchone()[0]
                if version != self._version:
                    one = self.connection
                    found = store.published_models(one), store.positions(one), store.problems(one)
                    self._models, self._positions, self._problems = found
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
        """Why a market cannot be learned with its present settings; without a market, what is wrong with the log."""
        epoch, sentence = self._read()._problems.get(0 if row is None else row.id, (0, None))
        return sentence if row is None or epoch == row.epoch else None

    def any_problem(self) -> bool:
        """Whether some market cannot be learned."""
        return bool(self._read()._problems)

    def of(self, row: MarketRow) -> PublishedModel | None:
        """What is given out of a market; the model of former settings until there is one of the new."""
        return self._read()._models.get(row.id)

    def learned(self, row: MarketRow) -> int:
        """The position up to which a market was learned, with its settings as they are."""
        epoch, position = self._read()._positions.get(row.id, (0, 0))
        return position if epoch == row.epoch else 0

    def text(self, row: MarketRow, digest: str) -> str | None:
        """The text of a model."""
        return store.model_text(self._read().connection, row.id, digest)

    def listing(self, row: MarketRow) -> dict[str, Any] | None:
        """The items of a market, as they were when its model was made."""
        return store.listing_of(self._read().connection, row.id)

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()
