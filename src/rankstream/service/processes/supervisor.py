"""Keeps the learner running: restarts its process when it dies, with growing pauses."""

import subprocess
import time
from threading import Event, Lock, Thread

from rankstream.service.journal import note
from rankstream.service.processes.worker import start
from rankstream.service.storage.database import Place

FIRST_PAUSE, MAX_PAUSE = 0.2, 30.0  # seconds between a learner's death and the next start; not tuned
HEALTHY_SECONDS = 60.0  # after so long without a failure, the next pause is short again; longer than any pause
SAVE_SECONDS = 6.0  # seconds that the learner has to save at the end; what is not saved is learned again


class Supervisor:
    """Starts and restarts the learner of a folder or a database: after 0.2 seconds, then twice as long each time.

    The same holds if it cannot be started, for lack of file descriptors, processes or memory.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.restarts = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._stop, self._lock = Event(), Lock()
        self._ended_at = 0.0  # when the learner was asked to end
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
            self.process = start("processes.learner", str(self.place), answers=False)
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
        """Close the learner's standard input, which ends it after its step."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()

    def ask_to_end(self) -> None:
        """Ask the learner to save and end, without waiting for it; no other is started."""
        with self._lock:
            if not self._stop.is_set():
                self._stop.set()
                self._ended_at = time.monotonic()
            self._close_input()

    def end(self, timeout: float = SAVE_SECONDS) -> None:
        """Let the learner save and end; kill it ``timeout`` seconds after it was first asked."""
        self.ask_to_end()
        if self.process is not None:
            try:
                self.process.wait(max(0.0, self._ended_at + timeout - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self._thread.ident is not None:
            self._thread.join()
