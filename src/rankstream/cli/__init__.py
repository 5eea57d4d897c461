"""The command line: a file for each command, over the library."""

import os
import sys
from collections.abc import Sequence
from typing import Any

from rankstream._core.stderr import tolerate_stderr

__all__ = ["main"]

INTERRUPTED = "rankstream: interrupted.\n"


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line; Ctrl-C during the imports also ends with one sentence and exit code 1."""
    before, sys.unraisablehook = sys.unraisablehook, _exit_on_interrupt
    tolerate_stderr()
    try:
        from rankstream.cli.app import main as run

        run(words)
    except KeyboardInterrupt:
        sys.stderr.write(INTERRUPTED)
        sys.exit(1)
    finally:
        sys.unraisablehook = before


def _exit_on_interrupt(ignored: Any) -> None:
    """Exit on Ctrl-C in a callback that cannot raise, such as one of an import: Python would print it and continue."""
    if isinstance(ignored.exc_value, KeyboardInterrupt):
        sys.stderr.write(INTERRUPTED)
        sys.stderr.flush()
        os._exit(1)
    sys.__unraisablehook__(ignored)
