"""Keeps the learner alive: a process that is started again when it dies, after a while that grows."""

import subprocess
import time
from pathlib import Path
from threading import Event, Lock, Thread

from rankstream.service.child import start
from rankstream.service.journal import note

FIRST, LONGEST = 0.2, 30.0
HEALTHY = 60.0
PATIENCE = 30.0


class Supervisor:
    """The learner of a folder; after a death the next one waits 0.2 seconds, then twice as long each time."""

    def __init__(self, folder: Path, module: str = "learner") -> None:
        self.folder, self.module = folder, module
        self.restarts = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._stop, self._lock = Event(), Lock()
        self._thread = Thread(target=self._run, name="rankstream supervisor", daemon=True)

    def begin(self) -> None:
        """Start the learner, and watch it."""
        self.process = start(self.module, str(self.folder), answers=False)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the learner runs now."""
        return self.process is not None and self.process.poll() is None

    def _run(self) -> None:
        wait = FIRST
        while self.process is not None:
            began = time.monotonic()
            code = self.process.wait()
            if self._stop.is_set():
                return
            wait = FIRST if time.monotonic() - began > HEALTHY else wait
            self.restarts += 1
            note("the learner died and is started again", code=code, seconds=wait)
            self._stop.wait(wait)
            wait = min(2.0 * wait, LONGEST)
            with self._lock:
                if self._stop.is_set():
                    return
                self._close_input()
                self.process = start(self.module, str(self.folder), answers=False)

    def _close_input(self) -> None:
        """Closing its standard input ends a learner after its step."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()

    def end(self, patience: float = PATIENCE) -> None:
        """Have the learner save, and wait for that."""
        with self._lock:
            self._stop.set()
            self._close_input()
        if self.process is not None:
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._thread.join()
