"""Run the service: bind the address, handle signals, start and stop."""

import asyncio
import ipaddress
import json
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from threading import Event
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from rankstream._core.files import own_folder, write_whole
from rankstream.service.app import make_app
from rankstream.service.hub import Options, Service
from rankstream.service.journal import LogLines, note
from rankstream.service.processes.supervisor import Supervisor
from rankstream.service.storage.database import Place
from rankstream.service.storage.log import open_log

DRAIN = 4  # seconds that requests have to finish after a signal; the learner saves meanwhile, Docker waits for 10
REPEAT_SECONDS = 5.0  # the same failure of the event loop is logged once in this time
MAX_HEAD_SECONDS = 10.0  # time limit for the head of a request; not tuned


def limited(n_connections: int) -> type[asyncio.Protocol]:
    """Return a protocol for uvicorn that limits open connections, by closing the oldest one without a token."""

    class LimitedProtocol(H11Protocol):
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            super().__init__(*arguments, **keywords)
            self.is_trusted, self.began = False, self.loop.time()
            self.app_state = {**self.app_state, "connection": self}  # for the guard

        def connection_made(self, transport: Any) -> None:
            """Make room for a new connection, or reject it if all others are trusted."""
            super().connection_made(transport)
            self.loop.call_later(MAX_HEAD_SECONDS, self.close_idle)
            if len(self.connections) > n_connections:
                known: list[Any] = [other for other in self.connections if isinstance(other, LimitedProtocol)]
                untrusted = [other for other in known if not other.is_trusted and other is not self]
                min(untrusted, key=lambda other: float(other.began), default=self).transport.abort()

        def close_idle(self) -> None:
            """Close a connection that has not sent the head of a request in time."""
            if not self.headers:
                self.transport.abort()

    return LimitedProtocol


class Server(uvicorn.Server):
    """A server that ends event streams and exits with code 0 after a signal."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle the signals to end while the server runs."""
        before = {kind: signal.signal(kind, self.handle_exit) for kind in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for kind, handler in before.items():
                signal.signal(kind, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop accepting requests; a second Ctrl-C does not wait for those in progress."""
        self.service.is_closing = True
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let the learner save while requests end."""
        self.service.supervisor.ask_to_end()
        await super().shutdown(sockets)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve, and log failures of the event loop, such as a connection that cannot be accepted."""
        last: dict[str, float] = {}

        def noted(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            words, now = str(context.get("message")).partition(" at ")[0], time.monotonic()
            if now - last.get(words, -REPEAT_SECONDS) >= REPEAT_SECONDS:
                last[words] = now
                note("the event loop failed", what=words, kind=type(context.get("exception")).__name__)

        asyncio.get_running_loop().set_exception_handler(noted)
        await super().serve(sockets)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("shop.example")
    (True, True, False, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def run(place: Place, host: str, port: int, options: Options, ready: Callable[[str], None]) -> None:
    """Serve until a signal, then save; call ``ready`` with the address as soon as requests are accepted.

    Creates the folder if it is missing. Port 0 picks a free one. A server of a database does not learn.
    """
    if not isinstance(place, str) and not place.exists():
        place.mkdir(parents=True, mode=0o700)  # customer data: readable by the owner only
    remedy = "stop it first, or choose another folder"
    with nullcontext() if isinstance(place, str) else own_folder(place, remedy=remedy):
        service = Service(place, options)
        try:
            if not is_loopback(host) and not service.tokens.any:
                raise ValueError(
                    f"{host} is open to others, and there are no tokens: create one with 'rankstream serve "
                    f"token create {place} --market NAME --may write,read', or serve on 127.0.0.1."
                )
            with listening(host, port) as (listener, address):
                _serve(service, listener, address, ready)
        finally:
            service.close()
    note("everything is saved")


def learn(url: str, ready: Callable[[], None]) -> None:
    """Learn markets of a database until a signal, then save; a learner that dies is started again."""
    open_log(url).close()  # says at once what is wrong
    supervisor, stop = Supervisor(url), Event()
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, lambda *_: stop.set())
    supervisor.begin()
    try:
        ready()
        stop.wait()
    finally:
        supervisor.end()
    note("everything is saved")


def _serve(service: Service, listener: socket.socket, address: str, ready: Callable[[str], None]) -> None:
    if service.options.learns and not service.reading.is_shared:
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
    """Bind a socket; yield it and its URL."""
    kind, _, _, _, where = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
    # asyncio disables Nagle's algorithm only for sockets that are explicitly TCP; else small answers take 40 ms longer
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
