"""Parse the choices in a request body; large bodies are parsed in a separate process, because parsing blocks."""

import pickle
import re
import sys
from typing import Any

from rankstream.data.readers.sources.lines import Twice, loads
from rankstream.service.limits import RefusedError, ServiceLimits
from rankstream.service.processes.worker import Handler, answer_parent, lower_priority
from rankstream.service.storage.database import Place, place_of

CHUNK = 500  # records that are unpickled at once: a few milliseconds, during which no other thread runs
STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
FIELDS = ("offered", "chosen", "count", "time")


def records_in(body: bytes, lines: bool, limits: ServiceLimits) -> list[Any]:
    """Parse the records of a body: an object with a list of records, or an object in every line."""
    check_size(body, lines, limits)
    try:
        text = body.decode("utf-8-sig")
        content = [loads(line) for line in text.split("\n") if line.strip()] if lines else loads(text)
    except (ValueError, RecursionError):
        kind = "JSON in every line" if lines else "JSON"
        raise RefusedError(422, f"The request is not {kind}: see /openapi.json for the format.") from None
    if not lines:
        if isinstance(content, Twice) or not isinstance(content, dict) or set(content) != {"records"}:
            raise RefusedError(422, 'The request must be an object with "records" only: send {"records": [...]}.')
        content = content["records"]
    if not isinstance(content, list) or not content:
        raise RefusedError(422, "There are no records in the request: send a list of at least one.")
    limits.check("records", len(content))
    return content


def check_size(body: bytes, lines: bool, limits: ServiceLimits) -> None:
    """Raise a RefusedError before parsing if there are more lines, objects or lists than the largest batch has.

    >>> check_size(b"{}" * 100, False, ServiceLimits(records=1))
    Traceback (most recent call last):
    rankstream.service.limits.RefusedError: The batch has 49 records and may have 1: send several batches.
    """
    check_lines(body, lines, limits)
    limit = 2 * limits.records + 2  # an object and an offer for each record, and two around them
    if _openings(body) > limit:
        openings = _openings(STRINGS.sub(b"", body))
        if openings > limit:
            limits.check("records", (openings - 2) // 2)


def check_lines(body: bytes, lines: bool, limits: ServiceLimits) -> None:
    """Raise a RefusedError if there are more lines than a batch may have records."""
    if lines and body.count(b"\n") > limits.records:
        limits.check("records", body.count(b"\n") + (not body.endswith(b"\n")))


def _openings(body: bytes) -> int:
    return body.count(b"{") + body.count(b"[")


def in_chunks(question: tuple[bytes, bool, ServiceLimits]) -> tuple[int, Any]:
    """Return a status, and the records of a large body as pickled parts, or an error message."""
    body, lines, limits = question
    try:
        records = [_fields(number, record, limits) for number, record in enumerate(records_in(body, lines, limits))]
    except RefusedError as refused:
        return refused.status, refused.sentence
    _share_offers(records)
    return 200, [pickle.dumps(records[at : at + CHUNK]) for at in range(0, len(records), CHUNK)]


def _fields(number: int, record: Any, limits: ServiceLimits) -> Any:
    """Return a record with known fields only, or raise a RefusedError if it is too large."""
    if not isinstance(record, dict):
        return None  # rejected later, as a bad record
    fields = record if isinstance(record, Twice) else {name: record[name] for name in FIELDS if name in record}
    size = max((len(value) for value in fields.values() if isinstance(value, list | dict)), default=0)
    if size > limits.items:
        raise RefusedError(
            422,
            f"Record {number} is wrong: its offer has {size:,} items and may have {limits.items:,}: offer fewer. "
            "Nothing of the batch was stored.",
        )
    return fields


def _share_offers(records: list[Any]) -> None:
    """Use the same list for all records of an offer, whatever the order of its items.

    It is then pickled once in each part, and the writer of the log checks it once.
    """
    first: dict[frozenset[str], list[str]] = {}
    for record in records:
        offered = record.get("offered") if type(record) is dict else None
        if type(offered) is list and all(type(item) is str for item in offered):
            items = frozenset(offered)
            if len(items) == len(offered):  # a repeated item is an error, reported later
                record["offered"] = first.setdefault(items, offered)


def make_handler(folder: Place) -> Handler:
    """Return the handler of a lane: it parses batches, and passes other questions to a ``PanelAnswerer``.

    The latter takes seconds to import, so it is imported when first needed.
    """
    answerers: list[Any] = []

    def handle(question: Any) -> tuple[int, Any]:
        if isinstance(question, tuple):
            return in_chunks(question)
        if not answerers:
            from rankstream.service.processes.panels import PanelAnswerer

            answerers.append(PanelAnswerer(folder))
        answer: tuple[int, Any] = answerers[0].answer(question)
        return answer

    return handle


def main() -> None:
    """Run the process for large batches and for questions."""
    lower_priority(2)
    answer_parent(lambda: make_handler(place_of(sys.argv[1])))
