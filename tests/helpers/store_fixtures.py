"""An empty store of every kind, for the tests that all of them must pass."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fault_world import World, simulated
from postgres_server import PostgresServer, postgres_server, why_not
from rankstream.service.storage.database import Place
from storage_kinds import Store


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    if why_not():
        pytest.skip(why_not())
    with postgres_server() as running:
        yield running


@pytest.fixture(params=["sqlite", "simulated", "postgres"])
def one(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with ExitStack() as stack:
        place: Place = tmp_path
        if request.param == "simulated":
            place = stack.enter_context(simulated(World(None, lambda _: None))).folder
        if request.param == "postgres":
            name = f"store_{time.monotonic_ns()}"
            place = request.getfixturevalue("postgres").make(name)
        yield Store(place, stack)
