"""``rankstream open``: a file becomes a page, by a link that works once, and nothing is left behind."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from rankstream import RankingModel
from rankstream.cli.open import tasks_of
from rankstream.cli.options import ReadingOptions
from rankstream.models.files import is_model
from rankstream.service.storage.tokens import PageLink
from shell import run
from waits import LONG, wait_for

pytestmark = pytest.mark.server
CAFE = Path(__file__).parents[2] / "examples" / "cafe.csv"


@contextmanager
def opened(folder: Path, *words: str) -> Iterator[tuple[httpx.Client, dict[str, Any]]]:
    """The page of a file, and a browser's cookies for it; Ctrl-C ends it with code 0."""
    (folder / "temporary").mkdir(exist_ok=True)
    command = [sys.executable, "-m", "rankstream", "open", *words, "--no-browser", "--json"]
    variables = os.environ | {"TMPDIR": str(folder / "temporary")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        told = json.loads(process.stdout.readline())
        try:
            with httpx.Client(base_url=told["url"], timeout=LONG) as client:
                yield client, told
        finally:
            process.send_signal(signal.SIGINT)
            said = process.stderr.read()
        assert process.wait() == 0
    key = told["open"].partition("key=")[2]
    assert key not in said  # it is in no log
    assert list((folder / "temporary").iterdir()) == []


def test_a_file_becomes_a_page_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with opened(tmp_path, str(CAFE)) as (client, told):
        assert client.get("/markets/cafe").status_code == 303  # to log in
        first = client.get(told["open"])
        assert (first.status_code, first.headers["Location"]) == (303, "/markets/cafe")
        port = told["url"].rpartition(":")[2]
        assert first.headers["Set-Cookie"].startswith(f"rankstream-token-{port}=")
        assert "HttpOnly" in first.headers["Set-Cookie"]
        assert first.headers["Referrer-Policy"] == "no-referrer"
        assert client.get(told["open"]).status_code == 403  # once
        wait_for(lambda: "What if" in client.get("/markets/cafe").text)
        headers = {"Origin": told["url"]}
        offer = [["tea", "cake"]]
        answer = client.post("/page/cafe/predict", json={"offers": offer}, headers=headers).json()
        assert answer["model"]["provisional"] is False
        assert sum(answer["predictions"][0]["shares"].values()) == pytest.approx(1.0)
        counts = [json.loads(line) for line in client.get("/page/cafe/counts").text.splitlines()]
        assert sum(line["count"] for line in counts) > 100
        wait_for(lambda: "tabs" in client.get("/page/cafe/panels").json())


def test_a_model_and_a_bad_file_open_as_well(tmp_path: Path) -> None:
    model = RankingModel(["tea", "no"], [("tea", "no"), ("no", "tea")], [0.6, 0.4], no_choice_code=1)
    model.save(tmp_path / "model.json")
    (tmp_path / "bad.csv").write_text("one,two\n1,2\n")
    kept = tmp_path / "kept"
    words = (str(tmp_path / "model.json"), str(tmp_path / "bad.csv"), "--folder", str(kept))
    with opened(tmp_path, *words) as (client, told):
        assert client.get(told["open"]).headers["Location"] == "/"
        wait_for(lambda: "What if" in client.get("/markets/model").text)
        wait_for(lambda: 'class="problem"' in client.get("/markets/bad").text)
    assert (kept / "log.sqlite3").is_file()
    with opened(tmp_path, str(kept)) as (client, told):  # the folder of a service
        client.get(told["open"])
        assert "/markets/model" in client.get("/").text


def test_columns_make_several_markets_and_prices_have_levels(tmp_path: Path) -> None:
    rows = ["store,offered,chosen,count"]
    for store, taken in (("Old Town", 60), ("Harbour", 20)):
        rows += [f"{store},tea@3;pie@2;no,tea,{taken}", f"{store},tea@4;pie@2;no,pie,30", f"{store},tea@4;no,no,25"]
    (tmp_path / "choices.csv").write_text("\n".join(rows) + "\n")
    words = (str(tmp_path / "choices.csv"), "--by", "store", "--price-columns", "offered", "--no-choice", "no")
    with opened(tmp_path, *words, "--method", "mnl-price") as (client, told):
        client.get(told["open"])
        wait_for(lambda: "What if" in client.get("/markets/Harbour").text)
        wait_for(lambda: "What if" in client.get("/markets/Old Town").text)
        assert "Price of tea" in client.get("/markets/Harbour").text


def test_receipts_with_a_stock_log_open_as_choices(tmp_path: Path) -> None:
    sales = [
        f"2026-03-02 {hour:02}:{minute:02},{item}" for hour, item in ((9, "tea"), (11, "pie")) for minute in range(40)
    ]
    (tmp_path / "receipts.csv").write_text("\n".join(["time,item", *sales]) + "\n")
    stock = ("2026-03-02 08:00,tea,9", "2026-03-02 08:00,pie,9", "2026-03-02 10:00,tea,0", "2026-03-02 08:00,bun,5")
    (tmp_path / "stock.csv").write_text("\n".join(["time,item,on_hand", *stock]) + "\n")
    words = (str(tmp_path / "receipts.csv"), "--stock", str(tmp_path / "stock.csv"), "--stock-format", "events")
    with opened(tmp_path, *words, "--method", "mnl") as (client, told):
        client.get(told["open"])
        wait_for(lambda: "What if" in client.get("/markets/receipts").text)
        counts = [json.loads(line) for line in client.get("/page/receipts/counts").text.splitlines()]
        found = {(frozenset(line["offered"]), line["chosen"]): line["count"] for line in counts if line["count"]}
        assert found == {(frozenset({"tea", "pie", "bun"}), "tea"): 40, (frozenset({"pie", "bun"}), "pie"): 40}


def test_a_link_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    link = PageLink("token", "/")
    assert not link.take(link.key)  # not yet
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    assert link.start("http://localhost:1").endswith(link.key)
    now[0] = 161.0
    assert not link.take(link.key)


def test_what_cannot_be_opened_is_said_at_once(tmp_path: Path) -> None:
    done = run("open", "none.csv", cwd=tmp_path)
    assert (done.returncode, "There is no file none.csv" in done.stderr) == (2, True)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "log.sqlite3").write_text("")
    done = run("open", "shop", "shop", cwd=tmp_path)
    assert (done.returncode, "open it alone" in done.stderr) == (2, True)
    (tmp_path / "other.json").write_text("[1]")
    assert not is_model(tmp_path / "other.json")
    (task,) = tasks_of([tmp_path / "a b.csv"], ReadingOptions(no_choice="no"), None, {})
    assert (task["market"], task["reading"]["no_choice"], task["model"]) == ("a b", "no", False)
