"""Rotated files: find the file that was read last, and the files written since."""

import os
import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

WINDOW_BYTES = 2**16  # bytes before a place that identify a file
PACKED = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".zip", ".Z")
NUMBERED = r"[._-]?(old|bak|prev|[0-9][0-9T:._+-]*)"


class LostSourceError(Exception):
    """The next records were rotated away, and continuing would skip them."""


class Place(NamedTuple):
    """A position in a source: bytes, lines, the file, and a digest of the ``WINDOW_BYTES`` bytes before it.

    Places of standard input, and those saved by version 0.2, have no file and no digest.
    """

    end: int = 0
    number: int = 0
    device: int | None = None
    inode: int | None = None
    digest: str | None = None


def digest_of(window: bytes) -> str:
    """Return the digest of the bytes before a place."""
    return blake2b(window, digest_size=16).hexdigest()


def where_is(source: Path, place: Place) -> Path:
    """Return the file that was read up to a place: the source, or a file beside it; else raise a LostSourceError.

    Inodes are reused, so the digest must match as well. Copied files match by their digest alone.
    """
    if place.digest is None:
        if place.end and (not source.is_file() or source.stat().st_size < place.end):
            raise _lost(source, place, [])
        return source
    beside = [path for path, _ in _siblings(source)]
    for path in (source, *beside):
        if inode_of(path) == (place.device, place.inode) and _has(path, place):
            return path
    if _has(source, place):
        return source
    copies = [path for path in beside if _has(path, place)]
    if len(copies) > 1:
        raise LostSourceError(
            f"{source} was rotated, and both {copies[0]} and {copies[1]} may be its old file: move one of "
            "them away, and start again."
        )
    if not copies:
        raise _lost(source, place, beside)
    return copies[0]


def is_written_anew(source: Path, place: Place) -> bool:
    """Whether a source starts with the content of the file read so far, which is gone: an editor rewrote it."""
    is_gone = all(inode_of(path) != (place.device, place.inode) for path, _ in _siblings(source))
    return is_gone and _has(source, place)


def _lost(source: Path, place: Place, beside: list[Path]) -> LostSourceError:
    packed = [path for path in beside if _is_rotated(source, path, packed=True)]
    if packed:
        latest = max(packed, key=lambda path: path.stat().st_mtime_ns)
        return LostSourceError(
            f"{source} was rotated, and the file that was read up to byte {place.end:,} is missing or compressed: "
            f"decompress {latest} beside it, and start again. Keep the newest rotated file uncompressed."
        )
    return LostSourceError(
        f"{source} is not the file that was read up to byte {place.end:,}, and no file beside it is: put the rotated "
        "file back beside it, or start again in another folder (out=...)."
    )


def newer(source: Path, current: os.stat_result) -> list[Path]:
    """Return the files rotated after this one, oldest first; raise a LostSourceError if one is compressed."""
    found: list[tuple[int, Path]] = []
    for path, about in _siblings(source):
        if about.st_mtime_ns <= current.st_mtime_ns or not about.st_size:
            continue
        if (about.st_dev, about.st_ino) == (current.st_dev, current.st_ino) or inode_of(source) == inode_of(path):
            continue
        if _is_rotated(source, path):
            found.append((about.st_mtime_ns, path))
        elif _is_rotated(source, path, packed=True) and _unpacked_size(path) != current.st_size % 2**32:
            raise LostSourceError(
                f"{source} was rotated more than once, and the next file is compressed: decompress {path} beside it, "
                "and start again. Keep the newest rotated files uncompressed."
            )
    return [path for _, path in sorted(found)]


def _siblings(source: Path) -> Iterator[tuple[Path, os.stat_result]]:
    folder = source.parent
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.name == source.name or not path.is_file():
            continue
        try:
            yield path, path.stat()
        except FileNotFoundError:  # removed meanwhile
            continue


def _is_rotated(source: Path, path: Path, packed: bool = False) -> bool:
    """Whether a file has a name like choices.jsonl.1, choices.jsonl-20240516, choices.1.jsonl or choices.jsonl.old.

    With ``packed``, a name like choices.jsonl.1.gz.
    """
    name = path.name
    if packed:
        if not name.endswith(PACKED):
            return False
        name = name.removesuffix(path.suffix)
    behind, within = re.escape(source.name), re.escape(source.stem)
    last = "?" if packed else ""  # a packed file may have no number
    return re.fullmatch(f"{behind}({NUMBERED}){last}|{within}{NUMBERED}{re.escape(source.suffix)}", name) is not None


def _unpacked_size(path: Path) -> int | None:
    """Return the uncompressed size of a gzip file (modulo 4 GB), from its last bytes; None for other files."""
    if path.suffix != ".gz" or path.stat().st_size < 18:
        return None
    with path.open("rb") as file:
        file.seek(-4, os.SEEK_END)
        return int.from_bytes(file.read(4), "little")


def inode_of(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of a file, or None if it does not exist."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _has(path: Path, place: Place) -> bool:
    before = min(place.end, WINDOW_BYTES)
    try:
        with path.open("rb") as file:
            file.seek(place.end - before)
            window = file.read(before)
    except OSError:
        return False
    return len(window) == before and digest_of(window) == place.digest
