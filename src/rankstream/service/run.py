"""Run the service: its address, its signals, its beginning and its end."""

import asyncio
import ipaddress
import json
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from rankstream._core.files import own_folder, write_whole
from rankstream.service.app import make_app
from rankstream.service.hub import Options, Service
from rankstream.service.journal import LogLines, note

DRAIN = 4  # seconds that requests have to end after a signal; the learner saves meanwhile, and docker waits for ten
REPEAT_SECONDS = 5.0  # seconds for which the same failure of the event loop is noted once
MAX_HEAD_SECONDS = 10.0  # after which a connection without the head of a request is closed; not tuned


def limited(most: int) -> type[asyncio.Protocol]:
    """A protocol for uvicorn that keeps so many connections open; then it closes the oldest one without a token."""

    class LimitedProtocol(H11Protocol):
        def __init__(self, *words: Any, **more: Any) -> None:
            super().__init__(*words, **more)
            self.is_trusted, self.began = False, self.loop.time()
            self.app_state = {**self.app_state, "connection": self}  # where the guard finds it

        def connection_made(self, transport: Any) -> None:
            """Make room for a new connection, or refuse it where all others are trusted."""
            super().connection_made(transport)
            self.loop.call_later(MAX_HEAD_SECONDS, self.close_idle)
            if len(self.connections) > most:
                known: list[Any] = [one for one in self.connections if isinstance(one, LimitedProtocol)]
                others = [one for one in known if not one.is_trusted and one is not self]
                min(others, key=lambda one: float(one.began), default=self).transport.abort()

        def close_idle(self) -> None:
            """Close a connection that has not sent the head of a request in time."""
            if not self.headers:
                self.transport.abort()

    return LimitedProtocol


class Server(uvicorn.Server):
    """A server that ends with code 0 after a signal, and first lets go of those who listen to events."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take signals to end, for as long as this runs."""
        before = {kind: signal.signal(kind, self.handle_exit) for kind in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for kind, handler in before.items():
                signal.signal(kind, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop accepting; a second Ctrl-C does not wait for requests."""
        self.service.is_closing = True
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let the learner save while requests end."""
        self.service.supervisor.ask_to_end()
        await super().shutdown(sockets)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve; what the event loop cannot do, such as accept a connection, is noted once in some seconds."""
        last: dict[str, float] = {}

        def noted(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            words, now = str(context.get("message")).partition(" at ")[0], time.monotonic()
            if now - last.get(words, -REPEAT_SECONDS) >= REPEAT_SECONDS:
                last[words] = now
                note("the event loop failed", what=words, kind=type(context.get("exception")).__name__)

        asyncio.get_running_loop().set_exception_handler(noted)
        await super().serve(sockets)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("shop.example")
    (True, True, False, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def run(folder: Path, host: str, port: int, options: Options, ready: Callable[[str], None]) -> None:
    """Serve until a signal ends it, then save; ``ready`` is called with the address as soon as requests are taken.

    The folder is made if absent. With port 0, the address has a free one.
    """
    if not folder.exists():
        folder.mkdir(parents=True, mode=0o700)  # what customers choose is nobody else's business
    with own_folder(folder, remedy="stop it first, or choose another folder"):
        service = Service(folder, options)
        try:
            if not is_loopback(host) and not service.tokens.any:
                raise ValueError(
                    f"{host} is open to others, and there are no tokens: create one with 'rankstream serve "
                    f"token create {folder} --market NAME --may write,read', or serve on 127.0.0.1."
                )
            with listening(host, port) as (listener, address):
                _serve(service, listener, address, ready)
        finally:
            service.close()
    note("everything is saved")


def _serve(service: Service, listener: socket.socket, address: str, ready: Callable[[str], None]) -> None:
    if service.options.learns:
        service.supervisor.begin()
    write_whole(service.folder / "running.json", json.dumps({"pid": os.getpid(), "url": address}), sync=False)
    config = uvicorn.Config(
        make_app(service), log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=DRAIN,
        lifespan="on", proxy_headers=False, http=limited(service.limits.connections),
    )  # fmt: skip
    logging.getLogger().addHandler(LogLines(logging.WARNING))
    ready(address)
    asyncio.run(Server(config, service).serve(sockets=[listener]))


@contextmanager
def listening(host: str, port: int) -> Iterator[tuple[socket.socket, str]]:
    """A socket at an address, and how people write that."""
    kind, _, _, _, where = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
    # asyncio sends small answers at once only from sockets that say that they are TCP: others wait some 40 ms
    with socket.socket(kind, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(where)
        except OSError as error:
            raise ValueError(f"{host}:{port} is not available ({error.strerror}): choose another port.") from None
        listener.listen(1024)
        name = f"[{where[0]}]" if kind == socket.AF_INET6 else where[0]
        yield listener, f"http://{name}:{listener.getsockname()[1]}"
