"""The course of a market: kept with what was learned, of bounded size, and with its changes at the right records."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from local_service import CAFE, CAKE, NONE, PIE, TEA, drawn, shop
from rankstream.reports.blocks import TableBlock
from rankstream.service.processes.panels import course_section, record_at
from rankstream.service.storage import states as store
from service_pages import page_of

LEARNED = store.Learned(1, 5, b"state")


def test_the_course_outlives_the_server(tmp_path: Path) -> None:
    with shop(tmp_path) as one:
        for number in (1, 2, 3):
            one.send("cafe", CAFE * number)
            one.learn()
        proof = one.get("/cafe/certificate").json()
    with shop(tmp_path) as again:  # another server on the same folder
        points = store.course_points(again.service.published.connection, again.service.row("cafe").id)
        assert [point.position for point in points] == [36, 108, 216]
        assert points[-1][3:] == (proof["distance"], proof["gap"])
        assert points[0].made <= points[1].made <= points[2].made
        shown = page_of(drawn(again).http.request("GET", "/markets/cafe"))
        rows = [row for row in shown.texts["tr"] if row.startswith(("36", "108", "216"))]
        assert len(rows) == 3
        assert rows[0].startswith("216")
        assert "from the first record to now" in "".join(shown.texts["p"])


def test_other_settings_begin_the_course_anew(tmp_path: Path) -> None:
    with shop(tmp_path) as one:
        one.send("cafe", CAFE)
        one.learn()
        one.send("cafe", CAFE)
        one.settle("cafe", half_life=50)
        one.learn()
        points = store.course_points(one.service.published.connection, one.service.row("cafe").id)
        assert [point.position for point in points] == [72]


def test_a_file_without_a_course_is_opened_and_goes_on(tmp_path: Path) -> None:
    with shop(tmp_path) as one:
        one.send("cafe", CAFE)
        one.learn()
    with sqlite3.connect(tmp_path / store.NAME) as before:  # as the first version wrote it
        before.execute("DROP TABLE course")
        before.execute("DROP TABLE listings")
    before.close()
    with shop(tmp_path) as one:
        assert one.service.published.learned(one.service.row("cafe")) == 36
        assert "from the first record to now" in drawn(one).http.request("GET", "/markets/cafe").text
        one.send("cafe", CAFE)
        one.learn()
        points = store.course_points(one.service.published.connection, one.service.row("cafe").id)
        assert [point.position for point in points] == [72]


def test_a_long_course_stays_small_and_even(tmp_path: Path) -> None:
    connection = store.open_store(tmp_path)
    for position in range(10, 30_010, 10):
        point = store.CoursePoint(position, float(position), position, 0.5, None)
        store.save_market(connection, 1, LEARNED, None, None, point)
    places = [point.position for point in store.course_points(connection, 1)]
    assert len(places) <= store.MAX_COURSE_POINTS
    assert (places[0], places[-1]) == (10, 30_000)
    gaps = np.diff(places[: -store.MAX_COURSE_POINTS // 4])
    assert gaps.max() <= 3 * 30_000 / (store.MAX_COURSE_POINTS // 4)  # nothing was lost of any part of it
    store.save_market(connection, 2, LEARNED, None, None, store.CoursePoint(5, 0.0, 5, 0.1, 0.1))
    store.drop_others(connection, {2})
    assert store.course_points(connection, 1) == []
    assert len(store.course_points(connection, 2)) == 1
    connection.close()


def test_changes_are_where_their_records_are() -> None:
    points = [store.CoursePoint(10, 0.0, 1000.0, 0.2, 0.1), store.CoursePoint(110, 60.0, 2000.0, 0.3, 0.1)]
    assert record_at(points, 1500) == 60
    section = course_section(points, [{"choice": 1500, "since": 500}])
    changes = section.parts[1]
    assert isinstance(changes, TableBlock)
    assert tuple(changes.rows) == (("60", "1970-01-01 00:01:00", "5"),)
    assert section.sentences[1] == "Detected changes: 1."


@pytest.mark.parametrize("count", [1, 25])
def test_a_change_is_shown_on_the_line_of_records(tmp_path: Path, count: int) -> None:
    one_way = {"offered": ["tea", "pie"], "chosen": "tea", "count": count}
    other_way = {"offered": ["tea", "pie"], "chosen": "pie", "count": count}
    number = 1000 // count
    with shop(tmp_path) as one:
        one.send("cafe", [one_way] * number)
        one.settle("cafe", detect=True)
        one.learn()
        one.send("cafe", [other_way] * number)
        one.learn()
        alarm = one.get("/cafe/certificate").json()["alarms"][0]
        answer = drawn(one).http.request("GET", "/markets/cafe")
        record = round(alarm["choice"] / count)
        assert number <= record <= 2 * number
        rows = page_of(answer).texts["tr"]
        assert any(row.startswith(f"{record:,}") and row.count(":") == 2 for row in rows), rows


def test_every_part_of_what_changed_is_shown_once(tmp_path: Path) -> None:
    with shop(tmp_path) as one:
        one.send("cafe", [TEA] * 60 + [NONE] * 20)
        one.settle("cafe", served="sparse")
        one.send("cafe", [PIE] * 60 + [CAKE] * 20)  # so that there are items whose appeal changed
        one.learn()
        tabs = drawn(one).http.request("GET", "/page/cafe/panels").json()["tabs"]
    over_time, moves = "with 95 % intervals", "Items whose appeal changed"
    # each has its words twice: in the table, and in what the chart says of itself
    assert (tabs["changes"].count(over_time), tabs["changes"].count(moves)) == (2, 2)
    assert (tabs["overview"].count(over_time), tabs["overview"].count(moves)) == (2, 0)
