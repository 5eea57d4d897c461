"""Budgets of CPU seconds do not count compilation."""

import json
import os
import subprocess
import sys
from pathlib import Path
from time import process_time, thread_time
from typing import Any

import numba.core.event
import pytest

import rankstream as rs
from rankstream._core import compilation, watch


@pytest.mark.quick
def test_compiling_is_not_counted() -> None:
    compilation.load_numba()
    assert watch.compile_time in numba.core.event._registered["numba:compiler_lock"]
    clocks = process_time, watch.process_seconds, thread_time, watch.thread_seconds
    before = [clock() for clock in clocks]
    assert numba.njit(lambda number: 3 * number + 1)(2) == 7
    every, counted, own, own_counted = (clock() - start for clock, start in zip(clocks, before, strict=True))
    assert counted < 0.5 * every
    assert own_counted < 0.5 * own


@pytest.mark.quick
def test_kernels_that_compile_others_are_taken_off_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Event:
        def __init__(self, is_start: bool) -> None:
            self.is_start = is_start

    ticks, heard = iter([1.0, 4.0, 10.0, 15.0]), watch.CompileTime()
    monkeypatch.setattr(watch, "thread_time", lambda: next(ticks))
    monkeypatch.setattr(watch.CompileTime, "total", [0.0])
    for is_start in (False, True, True, False, False, True, False):  # the first end belongs to what was not heard
        heard.notify(Event(is_start))
    assert (heard.seconds, heard.total) == (8.0, [8.0])


@pytest.mark.quick
def test_importing_numba_is_not_counted() -> None:
    code = """
from time import process_time
from rankstream._core import compilation, watch
before, counted = process_time(), watch.process_seconds()
compilation.load_numba()
print(process_time() - before, watch.process_seconds() - counted)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    every, counted = map(float, done.stdout.split())
    assert counted < 0.2 * every


@pytest.mark.quick
def test_a_block_of_python_compiles_nothing() -> None:
    code = """
import sys
import numpy as np
from rankstream._core.compilation import uncompiled
from rankstream.data.vertex_kernels import vertex
offers = np.array([0, 2]), np.array([0, 1])
with uncompiled():
    vertex(np.array([1, 0]), *offers, plain := np.zeros(2))
assert "numba" not in sys.modules
vertex(np.array([1, 0]), *offers, compiled := np.zeros(2))
assert ("numba" in sys.modules) != (vertex.__class__.__name__ == "function")  # as NUMBA_DISABLE_JIT leaves it
print(*plain, *compiled)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["0.0", "1.0", "0.0", "1.0"], done.stderr


@pytest.mark.slow
def test_an_empty_cache_gives_the_same_decision_as_a_full_one(tmp_path: Path) -> None:
    model, items = tmp_path / "model.json", tmp_path / "items.csv"
    rs.estimate(rs.read_counts("examples/cafe.csv"), method="mnl").model.save(model)
    items.write_text("item,margin\ntea,2\ncake,1.5\npie,1\n")
    words = ["decide", str(model), "--margins", str(items), "--data", "examples/cafe.csv", "--budget", "2", "--json"]

    def decide() -> Any:
        place = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run([sys.executable, "-m", "rankstream", *words], env=place, capture_output=True, check=True)
        found = json.loads(done.stdout)
        found.pop("seconds", None)
        return found

    first = decide()
    assert first["context"]["refits"] == 20
    assert decide() == first
