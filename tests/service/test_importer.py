"""Files that become markets of ``rankstream open``, in this process: choices, models, groups, and what is wrong."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rankstream import ChoiceCounts, RankingModel, read
from rankstream._core.memory import MEMORY_VARIABLE
from rankstream.service.limits import RefusedError
from rankstream.service.processes import importer, worker
from rankstream.service.processes.importer import cells_of, import_file, name_of, records_of, store_parts, why
from rankstream.service.processes.worker import answer, read_message, write_message
from rankstream.service.storage import states
from rankstream.service.storage.database import Database, transaction
from rankstream.service.storage.ingest import make_market
from rankstream.service.storage.log import market_row, open_log
from rankstream.service.storage.publication import open_learned
from waits import wait_for

pytestmark = pytest.mark.quick
FIT = {"method": "mnl", "budget": None, "seed": 0}
ROWS = [("York", "tea;none", "tea"), ("York", "tea;pie;none", "pie"), ("Bath", "tea;pie;none", "none")] * 4


class Place(NamedTuple):
    """The two databases of a folder."""

    log: Database
    learned: Database

    def model(self, market: str) -> Any:
        return states.published_models(self.learned)[self.row(market).id]

    def row(self, market: str) -> Any:
        return market_row(self.log, market)

    def listing(self, market: str) -> dict[str, Any]:
        found: Any = states.listing_of(self.learned, self.row(market).id)
        return dict(found)

    def problem(self, market: str) -> str:
        return str(states.problems(self.learned).get(self.row(market).id, (0, ""))[1])


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "shop").mkdir()
    with closing(open_log(tmp_path / "shop")) as log, closing(open_learned(tmp_path / "shop", log)) as learned:
        yield Place(log, learned)


def task(path: Path, text: str = "", **changes: Any) -> dict[str, Any]:
    if text:
        path.write_text(text)
    plain = {
        "path": str(path),
        "name": path.name,
        "market": "file",
        "by": [],
        "model": False,
        "reading": {},
        "fit": FIT,
    }
    return plain | changes


def imported(place: Place, what: dict[str, Any]) -> None:
    with transaction(place.log):
        make_market(place.log, "file")
    import_file(place.log, place.learned, what)


def table(rows: list[tuple[str, str, str]] = ROWS, times: bool = False) -> str:
    day = [f"2026-05-{number:02}," if times else "" for number in range(1, len(rows) + 1)]
    lines = [f"{at}{','.join(row)}" for at, row in zip(day, rows, strict=True)]
    return "\n".join(["time," * times + "store,offered,chosen", *lines, ""])


def test_a_file_becomes_a_market_with_a_model(place: Place, tmp_path: Path) -> None:
    imported(place, task(tmp_path / "choices.csv", table()))
    row, model = place.row("file"), place.model("file")
    assert row.records == 3  # one for each offer and item that was chosen
    facts = model.facts
    assert (facts["is_file"], facts["choices"], facts["offers"], facts["items"], facts["alarms"]) == (
        True,
        12.0,
        2,
        3,
        [],
    )
    assert (facts["position"], facts["learned"], facts["kind"]) == (3, 3, "mnl")
    assert 0.0 <= facts["least"] <= facts["distance"]
    assert facts["gap"] == pytest.approx(facts["distance"] - facts["least"])
    assert facts["noise"] > 0.0
    assert "last" not in facts
    listing = place.listing("file")
    assert sorted(listing["usual"]) == ["none", "pie", "tea"]
    assert "progress" not in listing
    assert place.problem("file") == ""
    text = states.model_text(place.learned, row.id, model.digest)
    assert text is not None
    assert [column["name"] for column in json.loads(text)["about"]["unused"]] == ["store"]


def test_times_of_a_file_end_with_its_last_one(place: Place, tmp_path: Path) -> None:
    imported(place, task(tmp_path / "choices.csv", table(times=True)))
    assert place.model("file").facts["last"] == 1778544000.0  # 12 May 2026
    assert place.row("file").records > 3


def test_groups_become_markets_and_the_market_of_the_file_goes(place: Place, tmp_path: Path) -> None:
    for times in (False, True):
        imported(place, task(tmp_path / "choices.csv", table(times=times), by=["store"]))
        assert place.row("file") is None
        assert {place.model(name).facts["choices"] for name in ("York", "Bath")} == {8.0, 4.0}
        assert ("last" in place.model("York").facts) == times
        for name in ("York", "Bath"):
            states.forget(place.learned, place.row(name).id)
            place.log.execute("DELETE FROM markets WHERE name = ?", (name,))
    imported(place, task(tmp_path / "choices.csv", table([("file", "tea;none", "tea")]), by=["store"]))
    assert place.model("file").facts["choices"] == 1.0


def test_a_model_is_published_as_it_is(place: Place, tmp_path: Path) -> None:
    model = RankingModel(["tea", "no"], [("tea", "no"), ("no", "tea")], [0.6, 0.4], no_choice_code=1)
    model.note(choices=120, certificate={"distance": 0.25, "proven_least_distance": 0.125, "gap": 0.125})
    model.save(tmp_path / "model.json")
    imported(place, task(tmp_path / "model.json", model=True))
    facts = place.model("file").facts
    assert {name: facts[name] for name in ("choices", "distance", "least", "gap", "offers", "items", "position")} == {
        "choices": 120.0, "distance": 0.25, "least": 0.125, "gap": 0.125, "offers": 0, "items": 2, "position": 0,
    }  # fmt: skip
    RankingModel(["tea"], [("tea",)], [1.0]).save(tmp_path / "other.json")
    import_file(place.log, place.learned, task(tmp_path / "other.json", model=True))
    assert place.model("file").facts["choices"] == 1e9  # nobody knows: few enough to doubt it are never assumed
    assert place.model("file").facts["distance"] is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("one,two\n1,2\n", "choices.csv"),
        (table([("York", "tea", "pie")]), "the choice 'pie' is not in its offer"),
        ("{", "choices.csv"),
    ],
)
def test_what_is_wrong_is_said_on_the_page_and_to_the_shell(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    imported(place, task(tmp_path / "choices.csv", text))
    assert words in place.problem("file")
    assert capsys.readouterr().err == f"rankstream: {json.dumps(place.problem('file'), ensure_ascii=False)}\n"
    assert place.row("file").records == 0


def test_a_market_that_is_there_refuses_the_whole_file(place: Place, tmp_path: Path) -> None:
    with transaction(place.log):
        make_market(place.log, "York")
    imported(place, task(tmp_path / "choices.csv", table(), by=["store"]))
    assert place.problem("file") == "There is a market 'York' already: choose another name."
    assert place.row("Bath") is None
    found = read(tmp_path / "choices.csv")
    with pytest.raises(RefusedError, match="already"):
        store_parts(place.log, place.learned, [("Hull", found, found.counts), ("York", found, found.counts)])
    assert place.row("Hull") is None


def test_records_have_the_time_at_which_their_period_began(tmp_path: Path) -> None:
    (tmp_path / "choices.csv").write_text(table(times=True))
    found = read(tmp_path / "choices.csv", time_slices=3)
    records = list(records_of(found, found.counts))
    assert sum(record["count"] for record in records) == 12.0
    assert sorted({record["time"] for record in records}) == [first for first, _ in found.slice_times or ()]
    assert all(record["chosen"] in record["offered"] and record["count"] > 0.0 for record in records)
    copy = ChoiceCounts(found.counts.assortments, found.counts.tallies)
    assert all("time" not in record for record in records_of(found, copy))  # of a group, whose times are unknown
    (tmp_path / "priced.csv").write_text("offered,chosen\ntea@3;none,tea\ntea@4;none,none\n")
    priced = read(tmp_path / "priced.csv", prices="offered")
    assert sorted(records_of(priced, priced.counts), key=lambda record: record["chosen"]) == [
        {"offered": {"tea": 4.0, "none": None}, "chosen": "none", "count": 1.0},
        {"offered": {"tea": 3.0, "none": None}, "chosen": "tea", "count": 1.0},
    ]


def test_words_about_groups_and_errors() -> None:
    assert cells_of("York") == ("York",)
    assert cells_of(("York", 3)) == ("York", 3)
    assert name_of(("York", 3)) == "York 3"
    assert why(MemoryError("far too little")) == "There is not enough memory for this file."
    assert why(ValueError("It is empty.")) == "It is empty."
    assert importer.in_preview(None) == ""
    assert importer.in_preview("é" * 300) == "é" * 200
    assert importer.in_preview(["é", 1]) == '["é", 1]'


def test_a_worker_answers_each_lane_with_a_handler_of_its_own() -> None:
    sent, out, left = BytesIO(), BytesIO(), list[int]()
    for lane, question in ((0, "a"), (1, "b"), (0, "c")):
        write_message(sent, (lane, question))
    sent.seek(0)
    made: list[list[Any]] = []

    def make() -> Any:
        asked: list[Any] = []
        made.append(asked)

        def handle(question: Any) -> Any:
            asked.append(question)
            return f"{question}!"

        return handle

    answer(make, sent, out, lambda: left.append(1))
    wait_for(lambda: sum(map(len, made)) == 3 and out.getvalue().count(b"!") == 3)
    assert sorted(made) == [["a", "c"], ["b"]]
    assert left == [1]
    out.seek(0)
    assert sorted(read_message(out) for _ in range(3)) == [(0, "a!"), (0, "c!"), (1, "b!")]
    with pytest.raises(EOFError):
        read_message(out)
    with pytest.raises(EOFError):
        read_message(BytesIO(b"no message"))


def test_processes_have_their_memory_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *words, **how: begun.append((*words, how)))
    monkeypatch.setenv("MKL_NUM_THREADS", "3")  # what is set stays
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    worker.start("processes.learner", "folder", answers=False)
    worker.start("processes.worker", answers=True)
    (learner, how), (refresher, other) = begun
    assert learner[1:] == ["-c", worker.START.format(module="processes.learner"), "folder"]
    assert refresher[2].endswith("from rankstream.service.processes.worker import main; main()")
    assert (how["stdout"], other["stdout"]) == (subprocess.DEVNULL, subprocess.PIPE)
    assert (how["env"]["MKL_NUM_THREADS"], how["env"]["OPENBLAS_NUM_THREADS"]) == ("3", "1")
    assert how["env"][MEMORY_VARIABLE] == "128000000"
    assert MEMORY_VARIABLE not in other["env"]
    assert (how["stdin"], how["stderr"]) == (subprocess.PIPE, None)
    monkeypatch.setattr("sys.stderr", None)
    worker.start("processes.worker", answers=True)
    assert begun[2][1]["stderr"] == subprocess.DEVNULL


def test_a_process_is_spent_when_it_took_much_memory_and_waits_for_no_fit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    open_log(tmp_path).close()
    readings: importer.Readings = {}
    answerer: Any = importer.Uploads(tmp_path, readings)
    page = os.sysconf("SC_PAGESIZE")
    monkeypatch.setattr(Path, "read_text", lambda *_: "9 9 9 9 9 1000 9\n")  # pages, of which the sixth are of data
    monkeypatch.setattr(importer, "UPLOAD_MEMORY", 2 * 1000 * page)
    assert not answerer.is_spent
    monkeypatch.setattr(importer, "UPLOAD_MEMORY", 2 * 1000 * page - 2)
    assert answerer.is_spent
    readings["file"] = []  # it was stored, and another question is to fit it
    assert not answerer.is_spent
    answerer.log.close()
    answerer.learned.close()
