"""The service's log lines: one line of JSON per event, without labels, names, bodies or paths."""

import json
import logging
import select
import sys
import threading
import time
from contextlib import suppress
from typing import Any


def note(event: str, **facts: Any) -> None:
    """Write a line to standard error; drop it if it cannot be written, so that no work fails."""
    line = {"time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime())}Z", "event": event, **facts}
    with suppress(OSError, ValueError, AttributeError):  # a full disk, a closed stream, none at all
        if takes_more():
            sys.stderr.write(json.dumps(line) + "\n")
            sys.stderr.flush()


class LogLines(logging.Handler):
    """Writes the log records of libraries, without arguments and tracebacks, which may contain labels and paths."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        kind = {"kind": record.exc_info[0].__name__} if record.exc_info and record.exc_info[0] else {}
        note("a library logged", logger=record.name, message=str(record.msg).partition("\n")[0][:200], **kind)


def log_failures() -> None:
    """Log an uncaught exception of a process or a thread as one line, without a traceback."""
    sys.excepthook = lambda kind, *_: note("a process failed", kind=kind.__name__)
    threading.excepthook = lambda failed: note("a thread failed", kind=failed.exc_type.__name__)


def takes_more() -> bool:
    """Return whether standard error accepts a line without blocking; a pipe that nobody reads fills up."""
    try:
        number = sys.stderr.fileno()
    except (OSError, ValueError):
        return True  # not a file
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(number, select.POLLOUT)
    return bool(poll.poll(0))
