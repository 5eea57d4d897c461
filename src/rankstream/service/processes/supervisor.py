"""Keeps the learner alive: a process that is started again when it dies, after a while that grows."""

import subprocess
import time
from pathlib import Path
from threading import Event, Lock, Thread

from rankstream.service.journal import note
from rankstream.service.processes.worker import start

FIRST_PAUSE, MAX_PAUSE = 0.2, 30.0  # seconds between a learner's death and the next start; not tuned
HEALTHY_SECONDS = 60.0  # after which a learner counts as well, and the next pause is short again; longer than any pause
SAVE_SECONDS = 6.0
"""Seconds that a learner has to save after it is told to end; what it has not saved then is learned again."""


class Supervisor:
    """The learner of a folder; after a death the next one waits 0.2 seconds, then twice as long each time.

    The same holds where it cannot be started at all, for want of file descriptors, processes or memory.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.restarts = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._stop, self._lock = Event(), Lock()
        self._told = 0.0  # when it was told to end
        self._thread = Thread(target=self._run, name="rankstream supervisor", daemon=True)

    def begin(self) -> None:
        """Start the learner, and watch it."""
        self._try_to_start()
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the learner runs now."""
        process = self.process
        return process is not None and process.poll() is None

    def _try_to_start(self) -> None:
        try:
            self.process = start("processes.learner", str(self.folder), answers=False)
        except (OSError, MemoryError, subprocess.SubprocessError) as error:
            self.process = None
            note("the learner could not be started", kind=type(error).__name__)

    def _run(self) -> None:
        wait = FIRST_PAUSE
        while True:
            began = time.monotonic()
            code = None if self.process is None else self.process.wait()
            if self._stop.is_set():
                return
            wait = FIRST_PAUSE if time.monotonic() - began > HEALTHY_SECONDS else wait
            self.restarts += 1
            note("restarting the learner", code=code, seconds=wait)
            self._stop.wait(wait)
            wait = min(2.0 * wait, MAX_PAUSE)
            with self._lock:
                if self._stop.is_set():
                    return
                self._close_input()
                self._try_to_start()

    def _close_input(self) -> None:
        """Closing its standard input ends a learner after its step."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()

    def ask_to_end(self) -> None:
        """Have the learner save and end, and start no other; this does not wait."""
        with self._lock:
            if not self._stop.is_set():
                self._stop.set()
                self._told = time.monotonic()
            self._close_input()

    def end(self, timeout: float = SAVE_SECONDS) -> None:
        """Have the learner save, and wait for that, up to ``timeout`` seconds since it was first told."""
        self.ask_to_end()
        if self.process is not None:
            try:
                self.process.wait(max(0.0, self._told + timeout - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self._thread.ident is not None:
            self._thread.join()
