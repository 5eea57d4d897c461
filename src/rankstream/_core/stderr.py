"""A standard error stream that drops what it cannot write, so that a message never fails the work."""

import sys
from contextlib import suppress
from typing import Any, TextIO, cast


class TolerantStream:
    """A text stream whose ``write`` and ``flush`` never raise, as on a full disk or a closed pipe."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text if possible."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream if possible."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def tolerate_stderr() -> None:
    """Make ``sys.stderr`` tolerant: a failed message neither ends this process nor changes its exit code."""
    if sys.stderr is not None and not isinstance(sys.stderr, TolerantStream):
        sys.stderr = cast(TextIO, TolerantStream(sys.stderr))
