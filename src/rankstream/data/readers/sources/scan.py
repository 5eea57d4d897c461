"""A look at all bytes of a text file before DuckDB gets it: may it be read quickly, slowly, or not at all?

The quick way is taken only where it is sure to see the same records as the slow one. This costs about a second for
each gigabyte, two or three with quotes or of JSON. What no way should read, NUL bytes and endless lines, is refused at
once.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rankstream.data.readers.sources.lines import MAX_LINE_BYTES, binary, too_long, unpacked

BOM = b"\xef\xbb\xbf"
COMMA = re.compile(rb",\s*[}\]]")
NUMBERS = re.compile(rb"[:,\[\s+-](nan|inf|infinity)\s*[,}\]]")


def is_plain_csv(path: Path, delimiter: str, width: int) -> bool:
    """Whether a file is UTF-8 in which all quotes open and close a cell of one line, and only line feeds end lines."""
    mark = ord(delimiter)
    for part in _parts(path):
        if part is None or (b'"' in part and not _well_quoted(part, mark)):
            return False
        if width == 1 and (part.startswith((b"\n", b"\r\n")) or b"\n\n" in part or b"\n\r\n" in part):
            return False  # DuckDB would take a blank line for a record
    return True


def is_plain_json(path: Path) -> bool:
    """Whether a file is UTF-8 without what DuckDB takes for JSON and Python does not.

    That is other blanks, a comma before the end of an object or list, and other words for NaN and infinity.
    """
    return all(part is not None and not _is_lenient(part) for part in _parts(path))


def _is_lenient(part: bytes) -> bool:
    if part.startswith(BOM) or b"\x0b" in part or b"\x0c" in part or COMMA.search(part):
        return True
    small = part.lower()
    return (b"nan" in small or b"inf" in small) and NUMBERS.search(small) is not None


def _parts(path: Path) -> Iterator[bytes | None]:
    """The file in parts of whole lines; None where only the slow way is sure what they are."""
    number, rest = 1, b""
    with unpacked(path) as file:
        while more := file.read(MAX_LINE_BYTES):
            if more.endswith(b"\r"):
                more += file.read(1)
            if b"\0" in more:
                raise binary(path)
            if b"\r" in more and more.count(b"\r") != more.count(b"\r\n"):
                yield None
            chunk = rest + more
            first, most = chunk.find(b"\n"), MAX_LINE_BYTES + (len(BOM) if number == 1 and chunk.startswith(BOM) else 0)
            if first >= most or (first < 0 and len(chunk) > most):
                raise too_long(path, number)
            end = chunk.rfind(b"\n") + 1
            part, rest = chunk[:end], chunk[end:]
            number += part.count(b"\n")
            yield part if _is_utf8(part) else None
    yield rest if _is_utf8(rest) else None


def _is_utf8(part: bytes) -> bool:
    if part.isascii():
        return True
    try:
        part.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _well_quoted(part: bytes, delimiter: int) -> bool:
    r"""Whether quotes stand only around whole cells, doubled within them, and no cell goes over lines.

    >>> [_well_quoted(part, ord(",")) for part in (b'"a""b",c\n', b'a"b,c\n', b'"a" ,c\n', b'"a\nb"\n', b'"a",b"c"\n')]
    [True, False, False, False, False]
    """
    letters = np.frombuffer(part, np.uint8)
    quotes = np.flatnonzero(letters == ord('"'))
    if len(quotes) % 2:
        return False
    ends = np.flatnonzero(letters == ord("\n"))
    if (np.searchsorted(quotes, ends) % 2).any():
        return False
    opening, closing = quotes[::2], quotes[1::2]
    between = np.flatnonzero(opening[1:] != closing[:-1] + 1)  # where a cell ends, not a doubled quote
    before = letters[np.concatenate([opening[:1], opening[between + 1]]) - 1]
    after = letters[np.minimum(np.concatenate([closing[between], closing[-1:]]) + 1, len(letters) - 1)]
    at_start, at_end = opening[0] == 0, closing[-1] + 1 == len(letters)
    good_before = (before == delimiter) | (before == ord("\n"))
    good_after = (after == delimiter) | (after == ord("\n")) | (after == ord("\r"))
    good_before[0] |= at_start
    good_after[-1] |= at_end
    return bool(good_before.all() and good_after.all())
