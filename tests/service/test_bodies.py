"""Bodies as they arrive in parts: when they end, what counts as large, and what is refused."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from rankstream.service.http import guard
from rankstream.service.http.guard import Body, Guard
from rankstream.service.limits import RefusedError, ServiceLimits

pytestmark = pytest.mark.quick


def read(*messages: dict[str, Any], **limits: int) -> tuple[Body, Guard]:
    """A body from these messages; there are no others to wait for."""
    service: Any = SimpleNamespace(limits=ServiceLimits(**limits), options=SimpleNamespace(hosts=()))
    app: Any = None
    body, left = Body(), list(messages)

    async def receive() -> Any:
        return left.pop(0)

    async def whole() -> Guard:
        found = Guard(app, service)
        await found._read(receive, body, "body")
        return found

    return body, asyncio.run(whole())


def part(content: bytes, **more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": content, **more}


def test_a_body_ends_with_the_part_that_does_not_say_more() -> None:
    body, found = read(part(b"ab", more_body=True), {"type": "http.request", "more_body": True}, part(b"c"))
    assert (body.parts, body.size, body.is_whole, body.counted, found.large) == ([b"ab", b"", b"c"], 3, True, 0, 0)
    assert read(part(b"x", more_body=False))[0].is_whole
    with pytest.raises(RefusedError, match="closed before the whole body"):
        read(part(b"ab", more_body=True), {"type": "http.disconnect"})


def test_large_bodies_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "LARGE_BODY", 3)
    assert read(part(b"abc"))[1].large == 0
    body, found = read(part(b"abcd", more_body=True), part(b"efg"), bodies=7)
    assert (body.counted, found.large) == (7, 7)
    with pytest.raises(RefusedError, match="reading other large requests"):
        read(part(b"abcd", more_body=True), part(b"efgh"), bodies=7)
    with pytest.raises(RefusedError, match="larger than 6 bytes"):
        read(part(b"abcd", more_body=True), part(b"efg"), body=6)
    assert read(part(b"abcdef"), body=6)[0].size == 6
