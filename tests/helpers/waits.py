"""Waits for conditions, with a limit that only what hangs reaches, however busy the machine is."""

import time
from collections.abc import Callable
from typing import Any

import rankstream as rs

LONG = 300.0
"""Seconds after which a test gives up: many times what anything takes on a machine with a load of 20."""


def wait_for(what: Callable[[], Any], seconds: float = LONG) -> None:
    """Until something is true; asked ever less often, so that asking takes a tenth of the time at most."""
    began = time.monotonic()
    while not what():
        waited = time.monotonic() - began
        assert waited < seconds
        time.sleep(min(0.3, max(0.02, waited / 10)))


def patient_client(url: str, token: str | None = None) -> rs.Client:
    """A client that waits for answers as long as it takes."""
    return rs.Client(url, token, timeout=LONG)


class Ticks:
    """A clock that goes on by the same time whenever it is read: budgets end after as many readings anywhere."""

    def __init__(self, step: float) -> None:
        self.step, self.readings = step, 0

    def __call__(self) -> float:
        self.readings += 1
        return self.step * self.readings
