"""Connections that are too many or silent, and lines that libraries log."""

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from rankstream.service import run as connections
from rankstream.service.journal import LogLines
from waits import LONG

Link = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def answer(scope: Any, _: Any, send: Any) -> None:
    scope["state"]["connection"].is_trusted = scope["path"] == "/trusted"
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def with_links(most: int, work: Callable[[Callable[[str], Awaitable[Link]]], Awaitable[None]]) -> None:
    """Run a function that opens connections, each with a request to a path, or silent."""

    async def run() -> None:
        config, state = uvicorn.Config(answer, log_config=None, lifespan="off"), ServerState()
        protocol: Any = connections.limited(most)
        server = await asyncio.get_running_loop().create_server(lambda: protocol(config, state, {}), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        opened: list[Link] = []

        async def connect(path: str) -> Link:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            opened.append((reader, writer))
            if path:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                assert b"204" in await reader.readuntil(b"\r\n\r\n")
            return reader, writer

        async with server:
            await work(connect)
            for _, writer in opened:
                writer.close()

    asyncio.run(asyncio.wait_for(run(), LONG))


async def is_closed(link: Link) -> bool:
    """Whether the other side ends the connection."""
    try:
        return await link[0].read(1) == b""
    except ConnectionError:
        return True


def test_the_oldest_connection_without_a_token_makes_room() -> None:
    async def work(connect: Callable[[str], Awaitable[Link]]) -> None:
        trusted = await connect("/trusted")
        silent, asking = await connect(""), await connect("/other")
        last = await connect("/trusted")
        assert await is_closed(silent)
        assert not asking[0].at_eof()
        final = await connect("/trusted")
        assert await is_closed(asking)
        assert await is_closed(await connect(""))  # all others are trusted
        assert not any(link[0].at_eof() for link in (trusted, last, final))

    with_links(3, work)


def test_a_silent_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_HEAD_SECONDS", 0.05)

    async def work(connect: Callable[[str], Awaitable[Link]]) -> None:
        asked, silent = await connect("/other"), await connect("")
        assert await is_closed(silent)
        assert not asked[0].at_eof()

    with_links(10, work)


def test_lines_of_libraries_are_json_without_paths(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.Logger("uvicorn.error")
    logger.addHandler(LogLines())
    try:
        raise KeyError("/secret/place")
    except KeyError:
        logger.exception("Exception in %s\nof everything", "/secret/place")
    logger.warning("Invalid HTTP request received.")
    first, second = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert (first["message"], first["kind"], "secret" in str(first)) == ("Exception in %s", "KeyError", False)
    assert second["message"] == "Invalid HTTP request received."


@pytest.mark.parametrize("failure", ["fail()", "import threading; threading.Thread(target=fail).start()"])
def test_processes_log_their_end_without_a_traceback(failure: str) -> None:
    code = f"""
from rankstream.service.journal import log_failures
log_failures()
def fail(): raise KeyError("/secret/place")
{failure}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    (line,) = done.stderr.splitlines()
    assert (json.loads(line)["kind"], "secret" in line) == ("KeyError", False)
