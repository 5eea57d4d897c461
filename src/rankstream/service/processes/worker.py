"""Worker processes: they answer questions in lanes, and end when their parent is gone."""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread, Timer
from typing import IO, Any

from rankstream._core.memory import MEMORY_VARIABLE
from rankstream._core.stderr import tolerate_stderr
from rankstream.service.journal import note

MEMORY = {"MALLOC_MMAP_THRESHOLD_": "1048576", "MALLOC_TRIM_THRESHOLD_": "1048576"}
"""Settings of glibc, so that freed tables are returned to the system (benchmarks/learner_memory.py)."""
THREADS = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""One BLAS thread per process, because the processes share the cores."""
TABLE_MEMORY = 128_000_000
"""Memory limit for the learner's tables, which have no other limit."""
START = (
    "from rankstream.service.journal import log_failures; log_failures()\n"
    "from rankstream.service.{module} import main; main()"
)


def start(module: str, *words: str, answers: bool) -> "subprocess.Popen[bytes]":
    """Start a module of the service as a process that ends with this one."""
    command = [sys.executable, "-c", START.format(module=module), *words]
    out = subprocess.PIPE if answers else subprocess.DEVNULL
    error = None if sys.stderr is not None else subprocess.DEVNULL  # if it is closed, another file may have its number
    variables = MEMORY | THREADS | ({MEMORY_VARIABLE: str(TABLE_MEMORY)} if module == "processes.learner" else {})
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=error, env=variables | os.environ)


def write_message(file: IO[bytes], content: Any) -> None:
    """Send a pickled message through a private pipe."""
    pickle.dump(content, file)
    file.flush()


def read_message(file: IO[bytes]) -> Any:
    """Read a message; raise an EOFError if the other side is gone."""
    try:
        return pickle.load(file)
    except pickle.UnpicklingError:  # the other side died while writing
        raise EOFError from None


class _Process:
    """A worker process with lanes: one question of each lane at a time, in threads."""

    def __init__(self, module: str, words: tuple[str, ...]) -> None:
        self.module, self.words, self.lanes = module, words, 0
        self.process: subprocess.Popen[bytes] | None = None
        self._answers: dict[int, Future[Any]] = {}
        self._lock, self._writing = Lock(), Lock()
        self._closed = False

    def ask(self, lane: int, question: Any, timeout: float | None) -> Any:
        """Ask in a free lane, and wait; raise a ChildProcessError if the process dies."""
        answer: Future[Any] = Future()
        with self._lock:
            process = self._started()
            self._answers[lane] = answer
        timer = None if timeout is None else Timer(timeout, process.kill)
        try:
            if timer is not None:
                timer.start()
            with self._writing:
                assert process.stdin is not None
                write_message(process.stdin, (lane, question))
        except (OSError, ValueError):
            self._end(process)
        try:
            return answer.result()
        finally:
            if timer is not None:
                timer.cancel()

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._closed:
            raise ChildProcessError("It is closed.")
        if self.process is None:
            try:
                self.process = start(self.module, *self.words, answers=True)
            except OSError as error:
                raise ChildProcessError("The process could not be started.") from error
            Thread(target=self._listen, args=(self.process,), daemon=True).start()
        return self.process

    def _listen(self, process: "subprocess.Popen[bytes]") -> None:
        """Hand out answers until the process is gone."""
        assert process.stdout is not None
        with process.stdout as source, suppress(EOFError, OSError, ValueError):
            while True:
                lane, content = read_message(source)
                with self._lock:
                    if self.process is not process:
                        break  # this process was replaced, and its lanes have other questions
                    answer = self._answers.pop(lane)
                answer.set_result(content)
        self._end(process)

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        """End a process; pending questions get a ChildProcessError, and the next question starts a new process."""
        with self._lock:
            is_present = self.process is process
            lost = list(self._answers.values()) if is_present else []
            if is_present:
                self.process, self._answers = None, {}
        process.kill()
        process.wait()
        with suppress(OSError):  # closing flushes to a pipe that nobody reads
            if process.stdin is not None:
                process.stdin.close()
        for answer in lost:
            answer.set_exception(ChildProcessError("The process died."))

    def close(self) -> None:
        """End the process, whatever it is doing."""
        with self._lock:
            self._closed, process = True, self.process
        if process is not None:
            self._end(process)


class Worker:
    """Asks a process one question after the other; the process starts with the first, and again if it died.

    The process runs ``main`` of a ``module`` of the service with these ``words``; it is killed if a question takes
    longer than ``timeout`` seconds. A worker ``beside`` another shares its process, in a separate lane.
    """

    def __init__(
        self, module: str = "", *words: str, timeout: float | None = None, beside: "Worker | None" = None
    ) -> None:
        self.timeout, self.waiting = timeout, 0
        self._shared: _Process = _Process(module, words) if beside is None else beside._shared
        self._lane, self._shared.lanes = self._shared.lanes, self._shared.lanes + 1
        self._threads = ThreadPoolExecutor(1)
        self._turn, self._counting = Lock(), Lock()

    def submit(self, question: Any) -> "Future[Any]":
        """Queue a question, and return a future."""
        with self._counting:
            self.waiting += 1
        return self._threads.submit(self._counted, question)

    def _counted(self, question: Any) -> Any:
        try:
            return self.ask(question)
        finally:
            with self._counting:
                self.waiting -= 1

    def ask(self, question: Any) -> Any:
        """Ask, and wait for the answer; raise a ChildProcessError if the process dies."""
        with self._turn:
            return self._shared.ask(self._lane, question, self.timeout)

    @property
    def pid(self) -> int | None:
        """The id of the process, if there is one."""
        process = self._shared.process
        return None if process is None else process.pid

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._shared.close()


Handler = Callable[[Any], Any]


def answer(make: Callable[[], Handler], source: IO[bytes], out: IO[bytes], leave: Callable[[], Any]) -> None:
    """Answer questions until the other side is gone, then call ``leave``, which abandons those in progress.

    Every lane has its own thread, and its own handler from ``make``.
    """
    lanes: dict[int, SimpleQueue[Any]] = {}
    writing = Lock()

    def work(lane: int) -> None:
        try:
            handle = make()
            while True:
                content = handle(lanes[lane].get())
                with writing:
                    write_message(out, (lane, content))
                if getattr(handle, "is_spent", False):  # the next question starts another process
                    leave()
        except BaseException as error:
            note("a process failed", kind=type(error).__name__)
            leave()

    with suppress(EOFError, OSError, ValueError):
        while True:
            lane, question = read_message(source)
            if lane not in lanes:
                lanes[lane] = SimpleQueue()
                Thread(target=work, args=(lane,), daemon=True).start()
            lanes[lane].put(question)
    leave()


def answer_parent(make: Callable[[], Handler]) -> None:
    """Answer the parent process through standard output, which nothing else may use, until the parent is gone."""
    for kind in (signal.SIGINT, signal.SIGTERM):  # sent to the whole process group: finish the current answers
        signal.signal(kind, signal.SIG_IGN)
    tolerate_stderr()
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    answer(make, sys.stdin.buffer, out, lambda: os._exit(0))


def follow_parent(leave: Callable[[], Any]) -> None:
    """Call ``leave`` in a thread when the parent process closes our standard input, or is gone."""

    def listen() -> None:
        while os.read(0, 1024):  # not sys.stdin, whose lock this thread would hold while the interpreter ends
            pass
        leave()

    Thread(target=listen, daemon=True).start()


def lower_priority(by: int) -> None:
    """Lower the priority of this process, if the system can."""
    if hasattr(os, "nice"):
        os.nice(by)


def main() -> None:
    """Run the refresher, which fits maximum-entropy models for the learner."""
    from rankstream.streams.background import refreshed

    def refresh(job: Any) -> Any:
        try:
            return refreshed(job)
        except Exception:
            return None  # the learner keeps the old model

    answer_parent(lambda: refresh)
