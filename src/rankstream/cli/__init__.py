"""The command line: a file for each command, over the library."""

import os
import sys
from collections.abc import Sequence
from typing import Any

from rankstream._core.stderr import tolerate_stderr

__all__ = ["main"]

INTERRUPTED = "rankstream: interrupted.\n"


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line; Ctrl-C while it is still being loaded is one sentence and exit code 1, too."""
    before, sys.unraisablehook = sys.unraisablehook, _leave_where_python_would_go_on
    tolerate_stderr()
    try:
        from rankstream.cli.app import main as run

        run(words)
    except KeyboardInterrupt:
        sys.stderr.write(INTERRUPTED)
        sys.exit(1)
    finally:
        sys.unraisablehook = before


def _leave_where_python_would_go_on(ignored: Any) -> None:
    """Ctrl-C in a callback that cannot raise, such as those of imports: Python would print it and go on."""
    if isinstance(ignored.exc_value, KeyboardInterrupt):
        sys.stderr.write(INTERRUPTED)
        sys.stderr.flush()
        os._exit(1)
    sys.__unraisablehook__(ignored)
