"""The page of a café in a service within this process, and what every page must be."""

from collections.abc import Iterator
from typing import Any

import pytest

from html_pages import Page
from local_service import CAFE, Shop, drawn, shop

FORM = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "http://localhost"}


def page_of(answer: Any, status: int = 200) -> Page:
    """A page that is whole, and has no script but our own file."""
    assert answer.status_code == status, answer.text
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    found = Page(answer.text)
    assert found.open == []
    assert len(found.ids) == len(set(found.ids))
    assert "".join(found.texts.get("script", [])) == ""
    assert not [name for name, _ in found.attributes if name.startswith("on") or name == "style"]
    assert not [value for name, value in found.attributes if name in ("src", "action") and not value.startswith("/")]
    return found


@pytest.fixture(scope="module")
def cafe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop(tmp_path_factory.mktemp("pages") / "shop") as one:
        drawn(one)
        one.send("cafe", CAFE * 4)
        one.settle("cafe", served="sparse", no_choice="nothing")
        one.learn()
        yield one


def ask(one: Shop, market: str, word: str, content: Any, **headers: str) -> Any:
    """Ask as the script of a page does."""
    given = {"Origin": "http://localhost", **headers}
    return one.http.request("POST", f"/page/{market}/{word}", json=content, headers=given)
