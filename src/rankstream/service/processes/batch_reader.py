"""Read the choices in a request body; large bodies are read in a process of their own, as parsing blocks a server."""

import pickle
import re
import sys
from pathlib import Path
from typing import Any

from rankstream.data.readers.sources.lines import Twice, loads
from rankstream.service.limits import RefusedError, ServiceLimits
from rankstream.service.processes.worker import Handler, answer_parent, lower_priority

CHUNK = 500  # records that are unpickled at once: that takes a few milliseconds, during which no other thread runs
STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
FIELDS = ("offered", "chosen", "count", "time")


def records_in(body: bytes, lines: bool, limits: ServiceLimits) -> list[Any]:
    """What a request says: an object with a list of records, or an object in every line."""
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
    """Refuse more lines, or more objects and lists, than the largest batch has, before they are parsed.

    >>> check_size(b"{}" * 100, False, ServiceLimits(records=1))
    Traceback (most recent call last):
    rankstream.service.limits.RefusedError: The batch has 49 records and may have 1: send several batches.
    """
    check_lines(body, lines, limits)
    most = 2 * limits.records + 2  # records, what each offers, and what is around them
    if _openings(body) > most and (openings := _openings(STRINGS.sub(b"", body))) > most:
        limits.check("records", (openings - 2) // 2)


def check_lines(body: bytes, lines: bool, limits: ServiceLimits) -> None:
    """Refuse more lines than a batch may have records."""
    if lines and body.count(b"\n") > limits.records:
        limits.check("records", body.count(b"\n") + (not body.endswith(b"\n")))


def _openings(body: bytes) -> int:
    return body.count(b"{") + body.count(b"[")


def in_chunks(question: tuple[bytes, bool, ServiceLimits]) -> tuple[int, Any]:
    """A status, and the records of a large body as pickled parts, or a sentence."""
    body, lines, limits = question
    try:
        records = [_fields(number, record, limits) for number, record in enumerate(records_in(body, lines, limits))]
    except RefusedError as refused:
        return refused.status, refused.sentence
    _share_offers(records)
    return 200, [pickle.dumps(records[at : at + CHUNK]) for at in range(0, len(records), CHUNK)]


def _fields(number: int, record: Any, limits: ServiceLimits) -> Any:
    """A record without fields that nobody reads; a RefusedError where it is too large to be one."""
    if not isinstance(record, dict):
        return None  # refused as a record, whatever it is
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
    """Let all records of one offer have the same list, in whatever order each named its items.

    A part has it once then, which is quickly unpickled, and the log's writer looks at it once.
    """
    first: dict[frozenset[str], list[str]] = {}
    for record in records:
        offered = record.get("offered") if type(record) is dict else None
        if type(offered) is list and all(type(item) is str for item in offered):
            items = frozenset(offered)
            if len(items) == len(offered):  # an item that is there twice is an error
                record["offered"] = first.setdefault(items, offered)


def make_handler(folder: Path) -> Handler:
    """What answers the questions of a lane: a batch is read here, and others go to a ``PanelAnswerer``.

    That takes seconds to import, for which no batch waits.
    """
    answerers: list[Any] = []

    def handle(question: Any) -> tuple[int, Any]:
        if isinstance(question, tuple):
            return in_chunks(question)
        if not answerers:
            from rankstream.service.processes.panels import PanelAnswerer

            answerers.append(PanelAnswerer(folder))
        found: tuple[int, Any] = answerers[0].answer(question)
        return found

    return handle


def main() -> None:
    """The process of large batches and questions, which come from the server that started it."""
    lower_priority(2)
    answer_parent(lambda: make_handler(Path(sys.argv[1])))
