"""Servers and learners of one database, as processes that can be killed and paused with all that they have started."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

from waits import LONG


class Member:
    """A server or a learner: ``rankstream serve run`` or ``serve learn`` in a session of its own."""

    def __init__(self, kind: str, url: str, errors: Path | None = None) -> None:
        words = ["--port", "0"] if kind == "run" else []
        command = [sys.executable, "-m", "rankstream", "serve", kind, url, "--json", *words]
        self.errors: IO[bytes] | None = None if errors is None else errors.open("ab")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.errors, text=True, start_new_session=True
        )
        self.url = ""

    def ready(self) -> "Member":
        """Wait until it runs; for a server, learn its address."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.wait(LONG)
        self.url = str(json.loads(line)["url"])
        return self

    def signal(self, kind: int) -> None:
        """Send a signal to all of its processes."""
        os.killpg(self.process.pid, kind)

    def kill(self) -> None:
        """Kill all of its processes."""
        self.signal(signal.SIGKILL)
        self.process.wait(LONG)
        self._close()

    def end(self) -> int:
        """Let it end by itself, and return its exit code."""
        self.process.terminate()
        code = self.process.wait(LONG)
        self._close()
        return code

    def _close(self) -> None:
        for file in (self.process.stdout, self.errors):
            if file is not None:
                file.close()


def started(url: str, n_servers: int, n_learners: int, errors: Path | None = None) -> Any:
    """Start servers and learners together, and wait until they run."""
    members = [Member("run", url, errors) for _ in range(n_servers)]
    members += [Member("learn", url, errors) for _ in range(n_learners)]
    try:
        for member in members:
            member.ready()
    except BaseException:
        for member in members:
            member.kill()
        raise
    return members[:n_servers], members[n_servers:]
