"""A standard error that cannot fail the work: what cannot be written there is dropped."""

import sys
from contextlib import suppress
from typing import Any, TextIO, cast


class TolerantStream:
    """A text stream whose ``write`` and ``flush`` never raise, as on a full disk or a closed pipe."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, if that can be done."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Pass on what is buffered, if that can be done."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def tolerate_stderr() -> None:
    """From now on, let no message to standard error fail this process, nor change its exit code."""
    if sys.stderr is not None and not isinstance(sys.stderr, TolerantStream):
        sys.stderr = cast(TextIO, TolerantStream(sys.stderr))
