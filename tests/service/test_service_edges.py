"""Limits, times and sums of the service at their edges: functions that need neither a server nor a model."""

import pickle
import sqlite3
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rankstream as rs
from rankstream._core.memory import MEMORY_VARIABLE
from rankstream.reports.blocks import templates
from rankstream.reports.origin import period_of
from rankstream.service.hub import age_of
from rankstream.service.limits import RefusedError, ServiceLimits
from rankstream.service.metrics import Metrics
from rankstream.service.page.market import listed_items, model_header
from rankstream.service.processes import batch_reader, importer, panels, questions, worker
from rankstream.service.processes.batch_reader import check_lines, check_size, in_chunks, records_in
from rankstream.service.processes.importer import in_preview, records_of
from rankstream.service.processes.item_list import make_listing, natural, observed_listing
from rankstream.service.processes.questions import period_ends
from rankstream.service.settings import check_history, checked, for_live
from rankstream.service.storage import states, tokens
from rankstream.service.storage.log import MarketRow
from rankstream.service.storage.publication import MarketAnswer
from rankstream.service.storage.states import PublishedModel, thin
from rankstream.service.storage.writer import reason
from rankstream.streams.record import Record

pytestmark = pytest.mark.quick
ROW = MarketRow(1, "cafe", 0.0, 1, 100, 0, 0, 0, {"no_choice": None, "served": "max-entropy"}, 0)
FACTS: dict[str, Any] = {
    "kind": "max-entropy", "position": 90, "choices": 120.0, "gap": 0.01, "distance": 0.04, "least": 0.03, "since": 0.0,
}  # fmt: skip


@pytest.mark.parametrize("name", ["body", "records", "offers", "markets", "waiting", "events", "asked", "questions"])
def test_a_limit_allows_itself_and_refuses_one_more(name: str) -> None:
    limits = ServiceLimits(**{name: 7})
    limits.check(name, 7)
    with pytest.raises(RefusedError) as refused:
        limits.check(name, 8)
    assert refused.value.status in (409, 413, 429)
    assert ("Retry-After" in refused.value.headers) == (refused.value.status == 429)
    assert ServiceLimits(offers=3).offers_at_prices == 60


@pytest.mark.parametrize(
    "text", ["offers=0", "offers=-1", "offers=1.5", "offers=", "offers", "none=5", f"body={10**12}"]
)
def test_limits_that_cannot_be(text: str) -> None:
    with pytest.raises(ValueError, match="is not a name and a number"):
        ServiceLimits().changed([text])


def test_limits_at_their_ends() -> None:
    found = ServiceLimits().changed(["offers=1", f"body={10**12 - 1}", "label=4"])
    assert (found.offers, found.body, found.label, found.items) == (1, 10**12 - 1, 4, 200)
    ServiceLimits(items=2, label=4).check_offer(["cake", "pie"])
    with pytest.raises(ValueError, match="has 3 items and may have 2"):
        ServiceLimits(items=2, label=4).check_offer(["cake", "pie", "tea"])
    with pytest.raises(ValueError, match="has a name of 5 characters: use at most 4"):
        ServiceLimits(items=2, label=4).check_offer(["pie", "scone"])


def test_lines_and_brackets_are_counted_exactly() -> None:
    limits, line = ServiceLimits(records=3), b'{"offered": ["a"]}'
    for number in (3, 4):  # the last line need not end, so that four may still be three: they are counted later
        check_lines(b"\n".join([line] * number), True, limits)
    for body, number in ((b"\n".join([line] * 5), 5), (b"\n".join([line] * 4) + b"\n", 4)):
        with pytest.raises(RefusedError, match=f"has {number} records and may have 3"):
            check_lines(body, True, limits)
        check_lines(body, False, limits)
    whole = b'{"records": [' + b", ".join([line] * 3) + b"]}"
    check_size(whole, False, limits)
    assert len(records_in(whole, False, limits)) == 3
    with pytest.raises(RefusedError, match="has 4 records and may have 3"):
        check_size(b'{"records": [' + b", ".join([line] * 4) + b"]}", False, limits)
    with pytest.raises(RefusedError, match="There are no records"):
        records_in(b'{"records": []}', False, limits)
    with pytest.raises(RefusedError, match='an object with "records" only'):
        records_in(b'{"records": [1], "more": 1}', False, limits)


def test_parts_of_a_batch_have_its_records_with_the_fields_that_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_reader, "CHUNK", 2)
    given = ['{"offered": ["a", "b"], "chosen": "a", "more": 1}', '{"offered": ["b", "a"], "chosen": "b"}', "7"]
    status, parts = in_chunks(("\n".join(given).encode(), True, ServiceLimits(items=2)))
    assert (status, [len(pickle.loads(part)) for part in parts]) == (200, [2, 1])
    first, second = pickle.loads(parts[0])
    assert first == {"offered": ["a", "b"], "chosen": "a"}
    assert second["offered"] is first["offered"]  # one offer, in whatever order
    assert pickle.loads(parts[1]) == [None]
    twice = '{"offered": ["a", "a"], "chosen": "a"}'
    (part,) = in_chunks((twice.encode(), True, ServiceLimits(items=2)))[1]
    assert pickle.loads(part)[0]["offered"] == ["a", "a"]
    status, words = in_chunks((f"{given[0]}\n{given[0]}".encode(), True, ServiceLimits(items=1)))
    assert (status, words[:54]) == (422, "Record 0 is wrong: its offer has 2 items and may have ")


def test_a_token_expires_at_its_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    word = tokens.create(tmp_path, ["cafe"], ["read"], seconds=60.0)
    known = tokens.Tokens(tmp_path)
    try:
        assert known.any
        now[0] = 1059.9
        assert known.check(f"bearer {word}", "read", "cafe").expires == 1060.0
        for verb, market in (("write", "cafe"), ("read", "other"), ("read", None)):
            with pytest.raises(RefusedError, match="This token may not"):
                known.check(f"Bearer {word}", verb, market)
        for header in (None, word, f"Basic {word}", f"Bearer {word}x", "Bearer rs_none_none"):
            with pytest.raises(RefusedError, match="This needs a token"):
                known.holder(header)
        now[0] = 1060.0
        with pytest.raises(RefusedError, match="has expired"):
            known.holder(f"Bearer {word}")
    finally:
        known.close()


def test_a_link_ends_at_its_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    link = tokens.PageLink("token", "/")
    link.start("http://localhost")
    now[0] = 10.0 + tokens.LINK_SECONDS
    assert not link.take(link.key)
    now[0] -= 0.1
    assert link.take(link.key)
    assert not link.take(link.key)


def test_names_of_64_letters_and_no_more() -> None:
    assert tokens.check_name("a" * 64) == "a" * 64
    for name in ("", "a" * 65, " a", "a ", ".", "..", "a/b", "a*"):
        with pytest.raises(ValueError, match="A market cannot be called"):
            tokens.check_name(name)
    assert tokens.market_name("b" * 70) == "b" * 64


@pytest.mark.parametrize(
    ("code", "words", "wait"),
    [
        (sqlite3.SQLITE_FULL, "The disk is full", "5"), (sqlite3.SQLITE_READONLY, "The disk is full", "5"),
        (sqlite3.SQLITE_IOERR | (3 << 8), "The disk is full", "5"), (sqlite3.SQLITE_BUSY, "The log is busy", "1"),
        (sqlite3.SQLITE_LOCKED, "The log is busy", "1"), (sqlite3.SQLITE_MISUSE, "The log cannot be written", "5"),
    ],
)  # fmt: skip
def test_why_nothing_was_stored(code: int, words: str, wait: str) -> None:
    error = sqlite3.OperationalError("no")
    error.sqlite_errorcode = code
    found = reason(error)
    assert (found.status, found.headers["Retry-After"]) == (503, wait)
    assert found.sentence.startswith(words)
    assert reason(ValueError("other")).sentence.startswith("The log cannot be written")


def test_a_model_is_as_old_as_its_last_record_and_never_younger_than_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 100.0)
    assert age_of(PublishedModel(1, "", {"since": 98.7654})) == 1.235
    assert age_of(PublishedModel(1, "", {"since": 101.0})) == 0.0


PARTS: Any = templates("rankstream.service.page").get_template("parts.html").module


def test_chips_say_what_the_header_says() -> None:
    def current(**facts: Any) -> str:
        return str(PARTS.current(model_header(ROW, PublishedModel(1, "", FACTS | facts)), ROW.records))

    def quality(row: MarketRow = ROW, **facts: Any) -> str:
        return str(PARTS.quality(model_header(row, PublishedModel(1, "", FACTS | facts))))

    assert "10 records behind" in current()
    assert "Model is current" in current(position=100)
    assert "all choices of the file" in current(is_file=True)
    assert "Fit: almost the best possible (proven)" in quality(gap=0.05)
    assert "Fit: as good as the noise allows" in quality(gap=0.06, distance=0.04, noise=0.04)
    assert "Fit: as good as the noise allows" not in quality(gap=0.06, distance=0.04, noise=0.039)
    assert "Fit: perhaps not the best possible yet" in quality(gap=0.06)
    assert "Fit not proven yet" in quality(gap=None)
    assert "Provisional" in quality(choices=29.0)
    assert "Provisional" not in quality(choices=30.0)
    assert "Provisional" in quality(kind="sparse")
    assert "Provisional" not in quality(ROW._replace(settings={"served": "sparse"}), kind="sparse")


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"distance": None}, "Nothing is proven"), ({"least": None}, "Nothing is proven"),
        ({"distance": 1e-9}, "fits the observed shares exactly"), ({"distance": 2e-9, "least": 0.0}, "Its distance"),
        ({"least": -1.0}, "Nothing is proven about how much closer"), ({"least": 0.05}, "at most 0 %"),
        ({"least": 0.02}, "at most 50 %"),
    ],
)  # fmt: skip
def test_what_is_proven(facts: dict[str, Any], words: str) -> None:
    said = str(PARTS.proven(model_header(ROW, PublishedModel(1, "", FACTS | facts))))
    assert "based on 120 choices" in said
    assert words in said


def test_an_address_ticks_items_and_chooses_prices() -> None:
    items = [
        {"key": key, "label": label, "levels": levels, "level": 1 if len(levels) > 1 else 0}
        for key, label, levels in (("k1", "tea", ["tea @ 2", "tea @ 3"]), ("k2", "pie", ["pie"]), ("k3", "no", ["no"]))
    ]
    listing = {"items": items, "no_choice": "no"}

    def at(*fields: tuple[str, str]) -> list[tuple[bool, int, bool]]:
        return [(one["on"], one["at"], one["always"]) for one in listed_items(ROW, listing, fields)]

    assert at() == [(True, 1, False), (True, 0, False), (True, 0, True)]
    assert at(("on", "k2")) == [(False, 1, False), (True, 0, False), (True, 0, True)]
    for text, level in (("0", 0), ("1", 1), ("2", 1), ("-1", 1), ("0001", 1), ("x", 1), ("", 1)):
        assert at(("price-k1", text))[0][1] == level, text
    told = ROW._replace(settings={"no_choice": "pie"})
    assert [one["always"] for one in listed_items(told, listing, [])] == [False, True, False]


def test_periods_have_as_many_records_or_times() -> None:
    records = [Record(("a", "b"), "a", 1.0, float(time)) for time in (1, 1, 1, 2, 3, 3, 4)]
    assert period_ends(records, 2, False) == [0, 3, 7]
    assert period_ends(records, 2, True) == [0, 4, 7]  # times 1 and 2, then 3 and 4
    assert period_ends(records, 4, True) == [0, 3, 4, 6, 7]
    assert period_ends(records, 12, True) == [0, 3, 4, 6, 7]  # no more periods than times
    with pytest.raises(ValueError, match="no times that differ"):
        period_ends(records[:3], 2, True)


def test_changes_have_a_label() -> None:
    def label(alarms: list[float], dated: bool, **facts: Any) -> str:
        return panels._change_label(SimpleNamespace(**facts), alarms, dated)  # type: ignore[arg-type]

    assert label([5.0, 1200.0], False) == "Changed at record 1,200"
    assert label([86_400.0 * 31], True) == "Changed on 1 February"
    assert label([], True, changed=True, tested=1) == "Changed lately"
    assert label([], True, changed=False, tested=1, tested_items=0) == "Tastes stable"
    assert label([], True, changed=False, tested=0, tested_items=3) == "Tastes stable"
    assert label([], True, changed=False, tested=0, tested_items=0) == "Change not tested"


def test_a_course_names_when_a_change_was_learned() -> None:
    points = [states.CoursePoint(at, 60.0 * at, float(at), 0.5, None) for at in (1, 2, 3)]
    section = panels.course_section(points, [{"choice": 2, "since": 1}, {"choice": 3, "since": 3}])
    parts: Any = section.parts
    chart, changes = parts
    assert chart.table.rows[0] == ("3", "1970-01-01 00:03:00", "0.5000", "")
    assert tuple(changes.rows) == (("3", "1970-01-01 00:03:00", "3"), ("2", "1970-01-01 00:02:00", "1"))
    assert panels.course_section([], []).parts == ()


def test_a_course_is_thinned_by_its_records() -> None:
    assert thin(range(1, 11), bins=5, latest=10) == list(range(1, 11))
    assert thin([1, 2, 3, 4, 100], bins=2, latest=1) == [1, 4, 100]
    kept = thin(range(1, 4001))  # the first, 100 of the latest, and one of each 40 before them
    assert kept == [1, *range(39, 3900, 40), 3900, *range(3901, 4001)]


def test_choices_of_a_file_come_at_the_beginning_of_their_period() -> None:
    offers = rs.Assortments([("tea", "pie")])
    parts = [rs.ChoiceCounts(offers, [2, 1]), rs.ChoiceCounts(offers, [0, 4])]
    whole = parts[0] + parts[1]
    reading: Any = SimpleNamespace(counts=whole, slices=parts, slice_times=[(0.0, 10.0), (10.0, 30.0)], prices=None)
    found = list(records_of(reading, whole))
    assert [(one["chosen"], one["count"], one["time"]) for one in found] == [
        ("tea", 2.0, 0.0), ("pie", 1.0, 0.0), ("pie", 4.0, 10.0),
    ]  # fmt: skip
    other = list(records_of(reading, parts[0]))  # of one market of several: times are not known
    assert [(one["count"], "time" in one) for one in other] == [(2.0, False), (1.0, False)]


def test_small_numbers_are_no_dates() -> None:
    assert [period_of(times) for times in ((99_999_999.0, 2e8), None)] == ["", ""]
    assert period_of((1e8, 2e8)) == "3 March 1973 to 3 May 1976"


def test_cells_of_a_preview_are_short_texts() -> None:
    assert [in_preview(cell) for cell in ("a" * 300, None, ["é"], 1.5)] == ["a" * 200, "", '["é"]', "1.5"]
    assert importer.in_words(f"{Path('/x/y')}/f.csv is bad", Path("/x/y/f.csv")) == "f.csv is bad"
    assert importer.name_of(("Old Town", 3)) == "Old Town 3"
    assert importer.why(MemoryError()) == "There is not enough memory for this file."


def test_items_are_listed_with_what_was_chosen() -> None:
    offers = rs.Assortments([("tea", "pie", "no"), ("tea", "no")])
    counts = rs.ChoiceCounts(offers, [5, 3, 2, 4, 1])
    model = rs.RankingModel(["tea", "pie", "no"], [("tea", "pie", "no")], [1.0], no_choice_code=2)
    found = make_listing(model, counts)
    assert [(one["label"], one["chosen"], one["offered"]) for one in found["items"]] == [
        ("pie", 3.0, 10.0), ("tea", 9.0, 15.0), ("no", 3.0, 15.0),
    ]  # fmt: skip
    assert (found["usual"], found["no_choice"]) == (["tea", "pie", "no"], "no")
    assert [(one["level"], one["levels"], one["prices"]) for one in found["items"]][1] == (0, ["tea"], [])
    assert [one["chosen"] for one in make_listing(model, None)["items"]] == [0.0, 0.0, 0.0]
    assert observed_listing(counts)["items"][1] == {"label": "pie", "chosen": 3.0, "offered": 10.0}
    levels = rs.PriceLevels({"tea": [2.0, 3.0]})
    priced = rs.ChoiceCounts(rs.Assortments([("tea @ 2.00", "no"), ("tea @ 3.00", "no")]), [5, 1, 2, 2])
    assert observed_listing(priced, levels)["items"][0] == {"label": "tea", "chosen": 7.0, "offered": 10.0}
    assert natural("7" * 20) == [(int("7" * 15), "")]


@pytest.mark.parametrize(
    ("settings", "history", "words"),
    [
        ({"half_life": "7d"}, (1, 0, 0), "1 records of the market have no time"),
        ({"half_life": 50}, (1, 1, 1), ""), ({}, (1, 1, 1), ""), ({}, (5, 3, 2), ""),
        ({"window": 50}, (0, 2, 0), "2 records of the market have counts that are not whole"),
        ({"detect": True}, (0, 2, 0), "2 records"), ({"detect": True}, (5, 0, 3), "3 records of the market"),
        ({"window": 50}, (5, 0, 3), ""), ({"half_life": "7d"}, (0, 1, 1), ""),
    ],
)  # fmt: skip
def test_settings_that_the_records_so_far_do_not_suit(
    settings: dict[str, Any], history: tuple[int, int, int], words: str
) -> None:
    whole = checked(settings)
    if not words:
        check_history(whole, *history)
        return
    with pytest.raises(RefusedError, match=words) as refused:
        check_history(whole, *history)
    assert refused.value.status == 409


def test_settings_have_defaults_and_one_seed() -> None:
    assert checked({}, 7)["seed"] == 7
    assert checked({"seed": 3}, 7)["seed"] == 3
    assert checked({})["seed"] == 0
    assert checked({"no_choice": " no "})["no_choice"] == "no"
    with pytest.raises(RefusedError, match="must be a name or null"):
        checked({"no_choice": " "})
    priced = checked({"price_levels": {"tea": [3, 2]}})
    assert for_live(priced)["prices"] == {"tea": [2.0, 3.0]}
    assert "prices" not in for_live(checked({}))
    assert not {"no_choice", "price_levels"} & for_live(priced).keys()


def test_prometheus_reads_what_is_there() -> None:
    known = {"dropped": 0, "kind": None, "learned": 4, "offers": 3, "items": 2}
    markets = [
        MarketAnswer(market="cafe", records=5, model_age=None, problem="stuck", **known),  # type: ignore[arg-type]
        MarketAnswer(market="kiosk", records=6, model_age=1.5, problem=None, **known),  # type: ignore[arg-type]
    ]
    metrics = Metrics(lambda: (markets, 7, 8, 9))
    metrics.took("/v1/markets", 200, 0.004)
    lines = metrics.text().decode().splitlines()
    for line in (
        "rankstream_learner_restarts_total 7.0", "rankstream_batches_waiting 8.0", "rankstream_event_listeners 9.0",
        'rankstream_market_records{market="cafe"} 5.0', 'rankstream_market_model_age{market="kiosk"} 1.5',
        'rankstream_market_stuck{market="cafe"} 1.0', 'rankstream_market_stuck{market="kiosk"} 0.0',
        'rankstream_requests_total{route="/v1/markets",status="200"} 1.0',
        'rankstream_request_seconds_bucket{le="0.0025",route="/v1/markets"} 0.0',
        'rankstream_request_seconds_bucket{le="0.005",route="/v1/markets"} 1.0',
    ):  # fmt: skip
        assert line in lines
    assert not [line for line in lines if line.startswith('rankstream_market_model_age{market="cafe"}')]


def test_only_the_learner_counts_little_memory_as_free(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[dict[str, Any]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **more: started.append(more | {"command": command}))
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    monkeypatch.delenv(MEMORY_VARIABLE, raising=False)
    worker.start("processes.learner", "folder", answers=False)
    worker.start("processes.refits", answers=True)
    learner, refits = started
    assert learner["env"][MEMORY_VARIABLE] == str(worker.TABLE_MEMORY)
    assert MEMORY_VARIABLE not in refits["env"]
    assert learner["env"]["OPENBLAS_NUM_THREADS"] == "3"  # what is set outside comes first
    assert learner["env"]["MALLOC_TRIM_THRESHOLD_"] == worker.MEMORY["MALLOC_TRIM_THRESHOLD_"]
    assert (learner["stdout"], refits["stdout"]) == (subprocess.DEVNULL, subprocess.PIPE)
    assert learner["command"][-1] == "folder"


def test_choices_of_records_weigh_as_moments_unless_they_are_of_a_file() -> None:
    records = [Record(("a", "b"), "a", 60.0), Record(("b", "a"), "b", 60.0)]
    assert questions.counted(records).effective_totals.tolist() == [2.0]
    assert questions.counted(records, is_file=True).effective_totals.tolist() == [120.0]
    assert np.sum(questions.counted(records).tallies) == 120.0
