"""Rotated files: where what was read of a source is now, and what was written between that and the source."""

import os
import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

WINDOW_BYTES = 2**16  # bytes before a place by which a file is recognised
PACKED = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".zip", ".Z")
NUMBERED = r"[._-]?(old|bak|prev|[0-9][0-9T:._+-]*)"


class LostSourceError(Exception):
    """What comes next was rotated away, and going on without it would skip records."""


class Place(NamedTuple):
    """How far a source was read: bytes and lines of which file, and a digest of the last ``WINDOW_BYTES`` bytes before.

    Places of standard input, and those that version 0.2 saved, have no file and no digest.
    """

    end: int = 0
    number: int = 0
    device: int | None = None
    inode: int | None = None
    digest: str | None = None


def digest_of(window: bytes) -> str:
    """By what the bytes before a place are recognised."""
    return blake2b(window, digest_size=16).hexdigest()


def where_is(source: Path, place: Place) -> Path:
    """The file that was read up to a place: the source as ever, or a file beside it; or a LostSourceError.

    Inodes are used again, so a file must have the digest as well. Files that were copied have it alone.
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
    """Whether a source has all that was read of another file, which is gone: an editor, say, has saved it anew."""
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
    """What was rotated after a file, oldest first by its last change; a LostSourceError where some of it is packed."""
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
    """The other files in the folder of a source."""
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
    """Whether a file has the name of a rotated one.

    Such as choices.jsonl.1, choices.jsonl-20240516, choices.1.jsonl, choices.jsonl.old; packed, choices.jsonl.1.gz.
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
    """How long a gzip file is unpacked, up to 4 GB, as its last bytes say; None for other files."""
    if path.suffix != ".gz" or path.stat().st_size < 18:
        return None
    with path.open("rb") as file:
        file.seek(-4, os.SEEK_END)
        return int.from_bytes(file.read(4), "little")


def inode_of(path: Path) -> tuple[int, int] | None:
    """What the system knows a file by, or None where there is none."""
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
