"""Sources of lines: a growing file that may be rotated, or standard input; whole records with their places."""

import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import BinaryIO, NamedTuple

from rankstream.data.readers.sources.lines import MAX_RECORD_LINES
from rankstream.streams.sources import rotation
from rankstream.streams.sources.parser import LineReader
from rankstream.streams.sources.rotation import Place, digest_of, inode_of

Upcoming = tuple[Path, tuple[int, int]]  # the path of a file, and its device and inode
PAUSE_SECONDS = 0.1  # between two looks for more; not tuned
CHUNK_BYTES = 2**20  # read at once; not tuned
MAX_BYTES_WITHOUT_BREAK = 2**26  # more bytes without a line break are no text


class Line(NamedTuple):
    """The text of a record, its file, and the number of its first line."""

    text: bytes
    path: str
    number: int


class LineSource(ABC):
    """Iterates over records with the place after each; a CSV record may span several lines."""

    def __init__(self, name: str, reader: LineReader, place: Place) -> None:
        self.name, self.reader, self.end, self.number = name, reader, place.end, place.number
        self._buffer, self._cursor, self._begun = b"", 0, False
        self._file: BinaryIO | None = None
        self._came_from = place  # in the previous file, until this one has given a line
        self._start: tuple[int, int] | None = None  # bytes and lines before the last record
        self._first = 0  # where the first record may begin, after a header

    @abstractmethod
    def lines(self, to_end: bool) -> Iterator[Line | None]:
        """Iterate over the lines after the place; yield None whenever there is nothing more for now.

        A last line without a line break waits for the rest; with ``to_end`` it counts if it is complete JSON.
        """

    def place(self, before: bool = False) -> Place:
        """Return where to resume: after the last record, or ``before`` it.

        Before the first record of a file, that is the end of the previous file: a header alone identifies no file.
        """
        if self._start is None or (before and self._start[0] <= self._first):
            return self._came_from
        return self._place_at(*self._start) if before else self._place_at(self.end, self.number)

    @abstractmethod
    def _place_at(self, end: int, number: int) -> Place:
        """Return the place after so many bytes and lines."""

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    @property
    def rest(self) -> bytes:
        """The bytes after the last whole record."""
        return self._buffer[self._cursor :]

    def _endless(self) -> ValueError:
        return ValueError(
            f"{self.name}, line {self.number + 1}: there is no line break within "
            f"{MAX_BYTES_WITHOUT_BREAK:,} bytes: give lines of text."
        )

    def _records(self, final: bool = False) -> Iterator[Line]:
        """Iterate over the whole records in the buffer; with ``final``, the rest is a record, too."""
        while (record := _next_record(self._buffer, self._cursor, self.reader, final)) is not None:
            cut, lines = record
            text, before = self._buffer[self._cursor : cut], (self.end, self.number)
            self._cursor, self.end, self.number = cut, self.end + len(text), self.number + lines
            if not self._begun and text.strip():
                self._begun = True
                if self.reader.begin(text, self.name):
                    self._first = self.end
                    continue
            self._start = before
            yield Line(text, self.name, before[1] + 1)


def _next_record(buffer: bytes, start: int, reader: LineReader, final: bool) -> tuple[int, int] | None:
    """Return where the record that starts here ends, and its number of lines; None if it is not complete.

    A record that does not end within ``MAX_RECORD_LINES`` is cut after its first line, where the next one begins.
    """
    ends: list[int] = []
    cut = start
    while len(ends) < MAX_RECORD_LINES and (found := buffer.find(b"\n", cut)) >= 0:
        cut = found + 1
        ends.append(cut)
        if reader.is_whole(buffer[start:cut]):
            return cut, len(ends)
    if len(ends) < MAX_RECORD_LINES:
        if not final or start == len(buffer):
            return None
        if cut < len(buffer) and (not ends or reader.is_whole(buffer[start:])):
            return len(buffer), len(ends) + 1
    return ends[0], 1


class FileSource(LineSource):
    """A growing file, from a place on, through its rotations.

    The current file stays open. Before every read, the bytes before the place must be those already read. If not, the
    file was truncated or rewritten, and its old content is looked for in other files of the folder. Once the source is
    another, non-empty file, this one is read to its end, then files rotated since, then the source.
    """

    def __init__(self, name: str, reader: LineReader, place: Place) -> None:
        super().__init__(name, reader, place)
        self.path = Path(name)
        if self.path.name.endswith(rotation.PACKED):
            raise ValueError(f"{name} is compressed and cannot grow: decompress it, or fit a model to it.")
        if not place.end and not self.path.is_file():
            raise ValueError(f"There is no file {name} to follow: create it, or use '-' for standard input.")
        try:
            self._take(place)
        except BaseException:
            self.close()
            raise

    def _take(self, place: Place) -> None:
        """Continue at a place, in whichever file it is now."""
        while True:
            path = rotation.where_is(self.path, place)
            self._open(path.open("rb", buffering=0), path, place)
            self._go_to(place)
            if place.digest in (None, digest_of(self._buffer)):
                return

    def _go_to(self, place: Place) -> None:
        if self._came_from.end:  # the reader must see the first record, which may be a header
            self._buffer = self._read(0, CHUNK_BYTES)
            next(self._records(final=True), None)
            self._start = None
        self.end, self.number, before = place.end, place.number, min(place.end, rotation.WINDOW_BYTES)
        self._buffer, self._cursor = self._read(place.end - before, before), before

    def _open(self, file: BinaryIO, path: Path, place: Place) -> None:
        """Start reading a file from its beginning; ``place`` is where the previous one ended."""
        self.close()
        self._file, self.name, self._came_from, self._start = file, str(path), place, None
        self.end, self.number, self._first, self._begun, self._chunk = 0, 0, 0, False, CHUNK_BYTES
        self._buffer, self._cursor = b"", 0

    def _read(self, start: int, size: int) -> bytes:
        assert self._file is not None
        self._file.seek(start)
        return self._file.read(size)

    def _place_at(self, end: int, number: int) -> Place:
        assert self._file is not None
        about = os.fstat(self._file.fileno())
        cut = self._cursor - (self.end - end)
        return Place(
            end, number, about.st_dev, about.st_ino, digest_of(self._buffer[max(0, cut - rotation.WINDOW_BYTES) : cut])
        )

    def _fill(self) -> bool:
        """Read on after the place. Returns whether the bytes before it are unchanged."""
        window = self._buffer[max(0, self._cursor - rotation.WINDOW_BYTES) : self._cursor]
        read = self._read(self.end - len(window), len(window) + self._chunk)
        if not read.startswith(window):
            return False
        self._buffer, self._cursor = read, len(window)
        return True

    def lines(self, to_end: bool) -> Iterator[Line | None]:
        """Iterate over the lines after the place, file after file."""
        ready: Upcoming | None = None  # the next file, if it existed before this one was read to its end
        while True:
            if not self._fill():
                place = self._place_at(self.end, self.number)
                self._take(place)
                ready = None
                continue
            is_full = len(self._buffer) - self._cursor >= self._chunk
            yield from self._records()
            if is_full:  # read more at once if a line is longer than the chunk
                self._chunk = CHUNK_BYTES if len(self.rest) < self._chunk else 2 * self._chunk
                if self._chunk > MAX_BYTES_WITHOUT_BREAK:
                    raise self._endless()
                continue
            upcoming = self._upcoming()
            if upcoming is None:
                if to_end:
                    yield from self._records(final=self.reader.is_complete(self.rest))
                    return
                yield None
                time.sleep(PAUSE_SECONDS)
            elif upcoming == ready and (file := self._open_next(upcoming)) is not None:
                yield from self._records(final=True)
                place = self._place_at(self.end, self.number)
                self._open(file, upcoming[0], place)
                if upcoming[0] == self.path and rotation.is_written_anew(self.path, place):
                    self._go_to(place)
                upcoming = None
            ready = upcoming

    def _upcoming(self) -> Upcoming | None:
        """Return the file after this one, if it is not empty."""
        assert self._file is not None
        here = os.fstat(self._file.fileno())
        if inode_of(self.path) == (here.st_dev, here.st_ino):
            return None
        path = next(iter(rotation.newer(self.path, here)), self.path)
        inode = inode_of(path)
        return (path, inode) if inode is not None and path.stat().st_size else None

    def _open_next(self, upcoming: Upcoming) -> BinaryIO | None:
        """Open the next file; None if another one has its name by now."""
        try:
            file = upcoming[0].open("rb", buffering=0)
        except FileNotFoundError:
            return None
        about = os.fstat(file.fileno())
        if (about.st_dev, about.st_ino) == upcoming[1]:
            return file
        file.close()
        return None


class PipedSource(LineSource):
    """Standard input, read by a thread, which works on every system."""

    def __init__(self, reader: LineReader, place: Place) -> None:
        super().__init__("-", reader, place._replace(end=0))
        self._arrived: Queue[bytes] = Queue(maxsize=16)

    def _place_at(self, end: int, number: int) -> Place:
        return Place(end, number)  # a pipe cannot be resumed, but line numbers continue

    def lines(self, to_end: bool) -> Iterator[Line | None]:
        """Iterate over the lines as they arrive, until the end."""
        try:
            descriptor = sys.stdin.fileno()
        except (OSError, ValueError):  # not a real file: read all of it
            self._buffer = sys.stdin.buffer.read()
            yield from self._records(final=True)
            return
        Thread(target=self._wait, args=(descriptor,), daemon=True).start()
        while True:
            try:
                more = self._arrived.get(timeout=PAUSE_SECONDS)
            except Empty:
                yield None
                continue
            self._buffer, self._cursor = self.rest + more, 0
            yield from self._records(final=not more)
            if not more:
                return
            if len(self.rest) > MAX_BYTES_WITHOUT_BREAK:
                raise self._endless()

    def _wait(self, descriptor: int) -> None:
        while True:
            more = os.read(descriptor, 2**16)
            self._arrived.put(more)
            if not more:
                return
