"""Processes of our own: they end when whoever started them is gone, and answer questions one after the other."""

import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Lock, Thread, Timer
from typing import IO, Any

LENGTH = struct.Struct("<Q")
START = "from rankstream.service.{module} import main; main()"


def start(module: str, *words: str, answers: bool) -> "subprocess.Popen[bytes]":
    """Start a module of this room as a process that ends with this one."""
    command = [sys.executable, "-c", START.format(module=module), *words]
    out = subprocess.PIPE if answers else subprocess.DEVNULL
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out)


def write_message(file: IO[bytes], content: Any) -> None:
    """Send something to the other side of a pipe that nobody else has."""
    data = pickle.dumps(content)
    file.write(LENGTH.pack(len(data)) + data)
    file.flush()


def read_message(file: IO[bytes]) -> Any:
    """What the other side has sent; an EOFError where it is gone."""
    head = file.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    data = file.read(LENGTH.unpack(head)[0])
    return pickle.loads(data)


class Worker:
    """A process that answers questions, one after the other; it is started at the first, and again where it died.

    Parameters
    ----------
    module : str
        The module of this room whose ``main`` it runs.
    words : str
        What that is told.
    patience : float, optional
        Seconds after which it is killed over a question.

    """

    def __init__(self, module: str, *words: str, patience: float | None = None) -> None:
        self.module, self.words, self.patience = module, words, patience
        self.waiting = 0
        self._threads = ThreadPoolExecutor(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._lock, self._counting = Lock(), Lock()
        self._closed = False

    def submit(self, question: Any) -> "Future[Any]":
        """Ask, and go on; questions wait for each other in a thread of their own."""
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
        """Ask, and wait for the answer; a ChildProcessError where the process died over it."""
        with self._lock:
            return self._ask(question)

    def _ask(self, question: Any) -> Any:
        if self._closed:
            raise ChildProcessError("It is closed.")
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = start(self.module, *self.words, answers=True)
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        timer = None if self.patience is None else Timer(self.patience, process.kill)
        try:
            if timer is not None:
                timer.start()
            write_message(process.stdin, question)
            return read_message(process.stdout)
        except (OSError, EOFError, ValueError) as error:
            self._end()
            raise ChildProcessError("The process died.") from error
        finally:
            if timer is not None:
                timer.cancel()

    @property
    def pid(self) -> int | None:
        """The process, if there is one."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        process = self._process
        if process is not None and process.poll() is None:
            process.kill()
        with self._lock:
            self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for file in (process.stdin, process.stdout):
            if file is not None:
                try:
                    file.close()
                except OSError:
                    continue  # what it did not read is gone with it


def answer(handle: Callable[[Any], Any], source: IO[bytes], out: IO[bytes], leave: Callable[[], Any]) -> None:
    """Answer questions until whoever asks is gone; a question that is under way then is given up, by ``leave``."""
    questions: SimpleQueue[Any] = SimpleQueue()

    def listen() -> None:
        try:
            while True:
                questions.put((read_message(source),))
        except (EOFError, OSError, ValueError):
            questions.put(None)
            leave()

    Thread(target=listen, daemon=True).start()
    while (question := questions.get()) is not None:
        write_message(out, handle(question[0]))


def answer_parent(handle: Callable[[Any], Any]) -> None:
    """Answer the process that started this one; nothing else may print to standard output."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    answer(handle, sys.stdin.buffer, out, lambda: os._exit(0))


def lower_priority(by: int) -> None:
    """Let others go first, where the system can do that."""
    if hasattr(os, "nice"):
        os.nice(by)


def main() -> None:
    """The refresher: maximum-entropy models for the learner, at the lowest priority."""
    from rankstream.streams.background import refreshed

    lower_priority(10)
    answer_parent(lambda job: attempt(refreshed, job))


def attempt(function: Callable[[Any], Any], question: Any) -> Any:
    """The result of a function, or None where it raised: whoever asked cannot mend it."""
    try:
        return function(question)
    except Exception:
        return None
