"""Files that are uploaded on the page: who may, what is said of them, what they become, and that nothing stays."""

import gzip
import html
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import rankstream as rs
from html_pages import HOSTILE
from local_service import CAFE, Shop, drawn, error, shop
from rankstream.reports.origin import account_of
from rankstream.service.limits import ServiceLimits
from rankstream.service.processes import importer
from rankstream.service.processes import worker as processes
from rankstream.service.processes.importer import UPLOAD_MEMORY, Importer, Uploads
from rankstream.service.processes.item_list import observed_listing
from rankstream.service.processes.learner import LogLearner
from rankstream.service.processes.questions import Answerer
from rankstream.service.processes.worker import Worker
from rankstream.service.storage import states, tokens
from rankstream.service.storage.database import transaction
from rankstream.service.storage.log import market_row, open_log
from rankstream.service.storage.publication import open_learned
from rankstream.streams.background import refreshed
from till import visits, write
from waits import wait_for

FILE = {"Origin": "http://localhost", "Content-Type": "application/octet-stream"}
ASK = {"Origin": "http://localhost"}
OFFERS = ("tea;nothing", "tea;pie;nothing", "tea;pie;nothing")
ROWS = [
    f"2026-05-{1 + number % 28:02d},{store},{OFFERS[number % 3]},{chosen},{1 + number % 3}"
    for number in range(60)
    for store, chosen in (("North", "tea"), ("South", "nothing" if number % 2 else "tea"))
]
CHOICES = "\n".join(["time,store,offered,chosen,count", *ROWS]).encode()


class UploadsAtOnce(Worker):
    """The process of uploads within this one; it dies over what ``fails`` names."""

    def __init__(self, folder: Path) -> None:
        super().__init__("none")
        self.answerer, self.fails = Uploads(folder, {}), ""

    def submit(self, question: Any) -> "Future[Any]":
        answer: Future[Any] = Future()
        if question["step"] == self.fails:
            answer.set_exception(ChildProcessError())
        else:
            answer.set_result(self.answerer(question))
        return answer

    def close(self) -> None:
        super().close()
        self.answerer.log.close()
        self.answerer.learned.close()


def with_uploads(one: Shop) -> Shop:
    worker = UploadsAtOnce(one.folder)
    one.service.looking = one.service.importing = worker
    one.service.fitting = worker
    return one


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop(tmp_path_factory.mktemp("uploads") / "shop", limits=ServiceLimits(upload=1_000_000, offers=50)) as one:
        yield with_uploads(one)


def upload(one: Shop, content: bytes, name: str = "choices.csv", market: str = "shop", **headers: str) -> Any:
    path = f"/page/{market}/upload"
    return one.http.request("POST", path, params={"name": name}, content=content, headers=FILE | headers)


def ask(one: Shop, step: str, file: str, market: str = "shop", **said: Any) -> Any:
    return one.http.request("POST", f"/page/{market}/{step}", json={"file": file} | said, headers=ASK)


def files_of(one: Shop) -> list[str]:
    return [path.name for path in one.service.uploads.rglob("*") if path.is_file()]


def model_of(one: Shop, market: str) -> Any:
    """The certificate of a market that has a model."""
    answer = one.get(f"/{market}/certificate")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_file_is_looked_at_corrected_and_becomes_a_market(opened: Shop) -> None:
    sent = upload(opened, CHOICES, market="one")
    assert sent.status_code == 200
    file = sent.json()["file"]
    found = ask(opened, "reading", file, "one").json()
    assert found["columns"] == ["time", "store", "offered", "chosen", "count"]
    assert len(found["rows"]) == 20
    assert found["rows"][0] == ["2026-05-01", "North", "tea;nothing", "tea", "1"]
    assert found["roles"] == {"time": "time", "offered": "offered", "chosen": "chosen", "count": "count"}
    assert found["account"][0] == "240 choices from 2 different offers of 3 items."
    assert found["account"][1] == "The file has 120 records. Nothing was skipped."
    assert found["account"][2] == "From 1 May 2026 to 28 May 2026."
    assert (found["problem"], found["is_taken"]) == ("", False)
    less = {"offered": "offered", "chosen": "chosen", "count": None, "time": None}
    again = ask(opened, "reading", file, "one", columns=less).json()
    said = ["120 choices from 2 different offers of 3 items.", "The file has 120 records. Nothing was skipped."]
    assert again["account"] == said
    stored = ask(opened, "import", file, "one", no_choice="nothing")
    assert stored.json() == {"markets": ["one"]}
    assert model_of(opened, "one")["model"]["kind"] != "sparse"
    listed = opened.http.request("GET", "/").text
    assert all(words in listed for words in ("240", "28 May 2026"))
    fits = (
        "Fit: as good as the noise allows",
        "Fit: almost the best possible (proven)",
        "Fit: perhaps not the best possible yet",
    )
    assert sum(words in listed for words in fits) == 1
    shown = opened.http.request("GET", "/markets/one").text
    assert "240 choices from 2 different offers of 3 items." in shown  # the account, in the tab Data
    assert not files_of(opened)
    assert ask(opened, "import", file, "one").status_code == 410
    assert ask(opened, "reading", upload(opened, CHOICES, market="one").json()["file"], "one").json()["is_taken"]


def test_a_column_of_stores_makes_a_market_of_each(opened: Shop) -> None:
    file = upload(opened, CHOICES).json()["file"]
    assert "2 markets: North, South." in ask(opened, "reading", file, by=["store"]).json()["account"]
    assert ask(opened, "import", file, by=["store"]).json() == {"markets": ["North", "South"]}
    for market in ("North", "South"):
        model_of(opened, market)
        summary = opened.http.request("GET", f"/page/{market}/summary").json()
        assert summary["change"]["label"] in ("Tastes stable", "Changed lately", "Change not tested")
        assert summary["trend"]["dated"]
    assert "shop" not in [one["market"] for one in opened.get("").json()["markets"]]
    taken = ask(opened, "import", upload(opened, CHOICES).json()["file"], by=["store"])
    assert error(taken) == (409, "There is a market 'North' already: choose another name.")


@pytest.mark.parametrize("by", [[], ["store"]])
def test_what_a_file_ignores_is_said_on_its_page(by: list[str], opened: Shop, tmp_path: Path) -> None:
    """Prices matter: the page and its answers say so, and call no interval a 95 % one. Stores matter without ``by``."""
    rows = write(visits(900, price_effect=2.0, store_effect=1.5), tmp_path / "till.csv").read_bytes()
    file = upload(drawn(opened), rows, "till.csv", "till").json()["file"]
    market = ask(opened, "import", file, "till", no_choice="nothing", by=by).json()["markets"][0]
    page = opened.http.request("GET", f"/markets/{market}").text
    panels = opened.http.request("GET", f"/page/{market}/panels").json()
    names = "Price" if by else "Price and store"
    assert panels["interval_name"] == f"intervals (they ignore {names}, so they are too narrow)"
    assert f'data-name="{panels["interval_name"]}"' in page
    assert "95 % interval<" not in page
    assert len(panels["warnings"]) == 2 - len(by)
    for warning in panels["warnings"]:
        assert " is ignored, but choices d" in warning
        assert warning.endswith("): open or upload the file again, and use it.")
        assert html.escape(warning, quote=False) in page.replace("&#39;", "'")
    question = {"offers": [["Skyr Plain", "nothing"]]}
    answer = opened.http.request("POST", f"/page/{market}/predict", json=question, headers=ASK).json()
    assert answer["predictions"][0]["warnings"] == panels["warnings"]
    assert "Sampling noise alone would give a distance of 0." in panels["tabs"]["data"]


@pytest.mark.parametrize(("budget", "is_said"), [(0.0, True), (None, False)])
def test_a_fit_that_stopped_early_is_said_on_the_page(budget: float | None, is_said: bool, tmp_path: Path) -> None:
    reading = rs.read("examples/cafe.csv")
    with shop(tmp_path / "shop") as one, closing(open_log(one.folder)) as log:
        with closing(open_learned(one.folder, log)) as learned:
            own = Importer(log, learned, "cafe", {"budget": budget, "method": "max-entropy"})
            with transaction(log):
                own.store(reading, reading.counts)
            own.fit_model(reading, reading.counts)
        page = drawn(one).http.request("GET", "/markets/cafe").text
        assert ("The fit stopped early" in page) == is_said


def test_today_is_the_most_frequent_offer_of_the_last_four_weeks(tmp_path: Path) -> None:
    days = [(number, ["tea", "pie", "no"] if number < 60 else ["tea", "no"]) for number in range(80)]
    lines = [{"time": f"2024-{1 + day // 28:02}-{1 + day % 28:02}", "offered": on, "chosen": "tea"} for day, on in days]
    lines += [{**line, "chosen": "no"} for line in lines]
    (tmp_path / "days.jsonl").write_text("\n".join(map(json.dumps, lines)))
    reading = importer.read_choices(tmp_path / "days.jsonl", [], {"no_choice": "no"})
    with shop(tmp_path / "shop") as one, closing(open_log(one.folder)) as log:
        with closing(open_learned(one.folder, log)) as learned:
            own = Importer(log, learned, "cafe", {"method": "mnl"})
            with transaction(log):
                own.store(reading, reading.counts)
            own.fit_model(reading, reading.counts)
        page = drawn(one).http.request("GET", "/markets/cafe").text
    (usual,) = re.findall("data-usual='(.*?)'", page)
    assert set(json.loads(usual)) == {"tea", "no"}  # 40 of 160 choices, but lately most


def zipped() -> bytes:
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<x>" + " " * 3_000_000 + "</x>")
    return made.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("choices.csv", bytes(range(256)) * 40, "choices.csv"),
        ("choices.csv", b"\0" * 5000, "choices.csv"),
        ("choices.zip", zipped(), "is compressed"),
        ("book.xlsx", zipped(), "book.xlsx"),
        ("model.parquet", b"PAR1 and nothing else", "model.parquet"),
        ("choices.csv", b"", "choices.csv"),
        ("choices.json", b"[" * 100_000, "choices.json"),
        ("choices.csv.gz", b"\x1f\x8b not gzip", "choices.csv.gz"),
    ],
)
def test_a_hostile_file_is_refused_with_the_reason_and_deleted(
    opened: Shop, name: str, content: bytes, words: str
) -> None:
    before = files_of(opened)
    found = ask(opened, "reading", upload(opened, content, name).json()["file"])
    sentence = found.json().get("error") or found.json()["problem"]
    assert words in sentence
    assert str(opened.folder) not in sentence  # no folder of the server
    if found.status_code != 200:
        assert found.status_code == 422
        assert files_of(opened) == before


def test_wrong_columns_are_shown_with_what_to_do(opened: Shop) -> None:
    file = upload(opened, b"a,b\nx;y,x\nx;z,z\n").json()["file"]
    found = ask(opened, "reading", file).json()
    assert found["problem"].startswith("choices.csv has no column")
    assert "choose below what each column is" in found["problem"]
    assert found["rows"] == [["x;y", "x"], ["x;z", "z"]]
    mended = ask(opened, "reading", file, columns={"offered": "a", "chosen": "b"}).json()
    assert (mended["problem"], mended["account"][0][:20]) == ("", "2 choices from 2 dif")
    unknown = ask(opened, "reading", file, columns={"offered": "none"}).json()
    assert "has no column 'none'" in unknown["problem"]


def test_rows_that_cannot_be_used_are_counted(opened: Shop) -> None:
    file = upload(opened, b"offered,chosen\ntea;pie,tea\ntea;pie,cake\ntea;pie,pie\n").json()["file"]
    words = ask(opened, "reading", file).json()["account"]
    assert words[:2] == ["2 choices from 1 offer of 2 items.", "The file has 3 records."]
    assert words[2].startswith("1 record was skipped.")
    assert "choices.csv, line 3" in words[2]


def test_visits_without_a_purchase_are_named_above(opened: Shop) -> None:
    file = upload(opened, b"receipt_id,product,bought\n1,tea,1\n1,pie,0\n2,tea,0\n2,pie,0\n").json()["file"]
    skipped = ask(opened, "reading", file).json()["account"][-1]
    assert "If that means 'bought nothing', write “nothing” above." in skipped
    named = ask(opened, "reading", file, no_choice="nothing").json()["account"]
    assert named[0] == "2 choices from 1 offer of 3 items."


def test_hostile_names_stay_names(opened: Shop) -> None:
    for place, label in enumerate(HOSTILE):
        content = json.dumps({"offered": [label, "tea"], "chosen": label, label: label}).encode()
        sent = upload(opened, content, f"../../{label}.jsonl", f"odd {place}")
        assert sent.status_code == 200
        assert {path.parent.parent for path in opened.service.uploads.rglob("*.jsonl")} <= {opened.service.uploads}
        found = ask(opened, "reading", sent.json()["file"]).json()
        assert label[:200] in found["rows"][0]


def test_a_file_that_is_too_large_is_refused_and_leaves_nothing(opened: Shop) -> None:
    before = files_of(opened)
    assert error(upload(opened, b"x" * 1_000_001))[0] == 413

    def parts() -> Iterator[bytes]:
        yield from [b"x" * 100_000] * 11  # without a length in advance

    request = opened.http.request("POST", "/page/shop/upload", content=Chunks(parts()), headers=FILE)
    assert error(request) == (
        413, "The file is larger than 1,000,000 bytes: use 'rankstream open', or raise the limit 'upload'.",
    )  # fmt: skip
    assert files_of(opened) == before
    many = "\n".join(["offered,chosen", *(f"a{number};b,b" for number in range(60))]).encode()
    file = upload(opened, many).json()["file"]
    assert ask(opened, "reading", file, "many").json()["problem"] == ""
    status, sentence = error(ask(opened, "import", file, "many"))
    assert (status, "more than 50 different offers" in sentence) == (409, True)
    assert "many" not in [one["market"] for one in opened.get("").json()["markets"]]


def test_a_file_that_a_full_disk_cannot_take_is_refused_and_leaves_nothing(
    opened: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, really = files_of(opened), Path.open

    def full(path: Path, mode: str = "r", *more: Any, **named: Any) -> Any:
        if mode == "wb":
            raise OSError(28, "No space left on device")
        return really(path, mode, *more, **named)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", full)
        assert error(upload(opened, CHOICES)) == (
            507, "The file could not be stored: free some disk space, and try again.",
        )  # fmt: skip
    assert files_of(opened) == before
    assert upload(opened, CHOICES).status_code == 200


class Chunks:
    """A body whose length nobody knows."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self.parts = parts

    async def __aiter__(self) -> Any:
        for part in self.parts:
            yield part


def test_only_the_own_page_with_a_token_that_may_manage(tmp_path: Path) -> None:
    with shop(tmp_path / "shop") as one:
        with_uploads(one)
        token = tokens.create(one.folder, ["shop"], ["read", "write", "manage"])
        weak = tokens.create(one.folder, ["*"], ["read", "write"])
        own = {"Cookie": f"rankstream-token={token}"}
        assert upload(one, CHOICES).status_code == 401
        assert upload(one, CHOICES, Cookie=f"rankstream-token={weak}").status_code == 403
        assert upload(one, CHOICES, Origin="http://evil.example", **own).status_code == 403
        assert upload(one, CHOICES, **own, **{"Content-Type": "text/plain"}).status_code == 415
        assert upload(one, CHOICES, market="other", **own).status_code == 403
        assert not one.service.uploads.exists()
        file = upload(one, CHOICES, **own).json()["file"]
        for step in ("reading", "import"):
            answer = one.http.request("POST", f"/page/shop/{step}", json={"file": file}, headers=ASK)
            assert answer.status_code == 401
        body = {"file": file, "by": ["store"]}  # whose names may be of any market
        several = one.http.request("POST", "/page/shop/import", json=body, headers=ASK | own)
        assert several.status_code == 403
        assert "Choose a file" not in one.http.request("GET", "/", headers={"Cookie": f"rankstream-token={weak}"}).text
    assert not one.service.uploads.exists()  # nothing stays when the server ends


def test_the_oldest_of_many_files_is_deleted_and_a_new_server_begins_without(tmp_path: Path) -> None:
    with shop(tmp_path / "shop") as one:
        with_uploads(one)
        files = [upload(one, CHOICES).json()["file"] for _ in range(6)]
        assert len(files_of(one)) == 4
        assert ask(one, "reading", files[0]).status_code == 410
        assert ask(one, "reading", files[-1]).status_code == 200
        assert ask(one, "reading", "../../etc").status_code == 422
        assert ask(one, "reading", files[-1], unknown=1).status_code == 422
        left = one.service.uploads
    left.mkdir()
    (left / "killed").write_text("a server that was killed")
    with shop(tmp_path / "shop") as one:
        assert not one.service.uploads.exists()


def test_a_process_that_dies_is_said_on_the_page_and_the_learner_takes_over(tmp_path: Path) -> None:
    with shop(tmp_path / "shop") as one:
        worker: Any = with_uploads(one).service.fitting
        worker.fails = "look"
        assert ask(one, "reading", upload(one, CHOICES).json()["file"]).status_code == 503
        assert files_of(one) == []
        worker.fails = "fit"
        assert ask(one, "import", upload(one, CHOICES).json()["file"]).json() == {"markets": ["shop"]}
        assert "could not be fitted" in one.http.request("GET", "/markets/shop").text
        assert files_of(one) == []
        assert states.positions(worker.answerer.learned)
        LogLearner(one.folder, refreshed).close()  # as after a restart: the choices are in the log, to be learned
        assert not states.positions(worker.answerer.learned)


def test_a_market_of_a_file_goes_on_with_choices_that_come(tmp_path: Path) -> None:
    with shop(tmp_path / "shop") as one:
        with_uploads(one)
        ask(one, "import", upload(one, CHOICES).json()["file"])
        model_of(one, "shop")
        before = states.positions(one.service.fitting.answerer.learned)  # type: ignore[attr-defined]
        one.learn()
        assert states.positions(one.service.fitting.answerer.learned) == before  # type: ignore[attr-defined]
        assert one.send("shop", CAFE).status_code == 202
        one.learn()
        (row,) = one.get("").json()["markets"]
        assert row["learned"] == row["records"]


@pytest.mark.slow
@pytest.mark.parametrize(("memory", "is_enough"), [(450_000_000, False), (UPLOAD_MEMORY, True)])
def test_memory_of_the_process_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: int, is_enough: bool
) -> None:
    """A file of few bytes that needs many is refused for want of memory, and the next file is read all the same."""
    large, small = tmp_path / "a" / "large.jsonl.gz", tmp_path / "b" / "small.csv"
    for path in (large, small):
        path.parent.mkdir()
    with gzip.open(large, "wb", 1) as file:
        for number in range(5000):
            names = [f"{place} of {number}" for place in range(100)]
            file.write(json.dumps({"offered": names, "chosen": names[0]}).encode() + b"\n")
    small.write_text("offered,chosen\ntea;pie,tea\ntea;pie,pie\n")
    program = f"from rankstream.service.processes import importer; importer.UPLOAD_MEMORY = {memory}; importer.main()"
    monkeypatch.setattr(processes, "START", program)
    worker = Worker("processes.importer", str(tmp_path))
    step: dict[str, Any] = {"step": "look", "by": [], "reading": {"on_error": "skip"}}
    status, found = worker.ask(step | {"path": str(large)})
    assert (status, found["problem"]) == (200, "" if is_enough else "There is not enough memory for this file.")
    wait_for(lambda: is_enough or worker.pid is None)  # the system counts its memory although it is free again
    assert worker.ask(step | {"path": str(small)})[1]["account"][0] == "2 choices from 1 offer of 2 items."
    worker.close()
    assert UPLOAD_MEMORY == 2_000_000_000


def test_the_account_of_prices_and_groups() -> None:
    found = rs.read("examples/bakery-prices.csv", prices="offered")
    assert "Prices of 2 items." in list(account_of(found, found.counts))


def test_lanes_that_store_and_lanes_that_fit_share_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    monkeypatch.setattr(importer, "answer_parent", made.append)
    for name in ("limit_memory", "lower_priority"):  # which would be for all tests after this one
        monkeypatch.setattr(importer, name, lambda *_: None)
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        monkeypatch.setattr(sys, "argv", ["importer", str(tmp_path / folder)])
        importer.main()
    stored, fitted, other = made[0](), made[0](), made[1]()
    try:
        assert stored.readings is fitted.readings
        assert stored.readings is not other.readings
    finally:
        for lane in (stored, fitted, other):
            lane.log.close()
            lane.learned.close()


def test_prices_of_a_file_become_levels_and_its_records_are_choices(tmp_path: Path) -> None:
    priced = rs.read("examples/bakery-prices.csv", prices="offered")
    plain = rs.read("examples/cafe.csv")
    log = open_log(tmp_path)
    learned = open_learned(tmp_path, log)
    for name, reading in (("bakery", priced), ("cafe", plain)):
        with transaction(log):
            Importer(log, learned, name, {}).store(reading, reading.counts)
        Importer(log, learned, name, {}).tell("Fitting the model", 0.0, observed_listing(reading.counts))
    rows = {name: market_row(log, name) for name in ("bakery", "cafe")}
    asked = Answerer(tmp_path)
    try:
        assert rows["bakery"] is not None
        assert rows["cafe"] is not None
        assert rows["bakery"].settings["price_levels"] == {"croissant": [2.2, 2.6, 3.0], "muffin": [2.6, 3.2]}
        assert rows["cafe"].settings["price_levels"] is None
        for row, reading in ((rows["bakery"], priced), (rows["cafe"], plain)):
            _, counts = asked.learned({"market": row.id})
            assert counts.observations == reading.counts.observations
            # a record of a file is a sum of customers, not one customer with many choices
            assert counts.effective_totals.tolist() == counts.totals.tolist()
            assert set(counts.assortments.items) == set(reading.counts.assortments.items)
    finally:
        asked.close()
        learned.close()
        log.close()
