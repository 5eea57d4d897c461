"""Deadlines, notes and names at their edges."""

import io
import os
import signal
import threading
from contextlib import suppress
from math import inf, nan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rankstream._core import terminal, watch
from rankstream._core.files import check_target, own_folder, same_file, whole_file, write_whole

pytestmark = pytest.mark.quick


class Clock:
    """A clock that shows what it is set to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def deadline(monkeypatch: pytest.MonkeyPatch, **given: Any) -> tuple[Any, Clock, Clock]:
    clock, wall = Clock(), Clock()
    clock.now, wall.now = 100.0, 1000.0
    monkeypatch.setattr(watch, "monotonic", wall)
    return watch.Deadline(10.0, clock=clock, **given), clock, wall


def test_a_deadline_ends_with_its_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    until, clock, wall = deadline(monkeypatch)
    clock.now = 104.9
    assert not until("x", 0.5)
    assert not until.stopped
    assert until.left(0.5) == pytest.approx(0.1)
    clock.now = 105.0
    assert until("x", 0.5)
    assert until.stopped
    assert not until("x")
    assert until.stopped  # as it was told once
    wall.now = 1e9
    assert not until("x")  # without a limit of its own, the wall clock does not matter
    assert until.left() == 5.0


def test_a_timeout_ends_by_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, float]] = []
    until, clock, wall = deadline(monkeypatch, timeout=20.0, tell=lambda text, share: told.append((text, share)))
    wall.now, clock.now = 1005.0, 101.0
    assert (until("half", 0.5), until.left(), until.left(0.5)) == (False, 9.0, 4.0)
    wall.now = 1010.0
    assert (until("half", 0.5), until("whole"), until.left(0.5)) == (True, False, 0.0)
    clock.now, wall.now = 130.0, 1040.0
    assert until("late")
    assert told == [("half", 0.25), ("half", 0.5), ("whole", 0.5), ("late", 1.0)]


def test_an_interrupt_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    until, _, _ = deadline(monkeypatch, interrupts=[2])
    assert until("x")
    assert until.left() == 0.0
    assert watch.seconds_left(watch.unwatched) == inf
    assert watch.seconds_left(watch.until(until, 0.5)) == 0.0


def test_parts_of_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _, _ = deadline(monkeypatch)
    assert watch.seconds_left(watch.until(whole, 0.5), 0.5) == 2.5
    assert watch.seconds_left(whole, 0.25) == 2.5
    assert not watch.unwatched("x")


def test_compilation_is_counted_once_where_it_is_nested(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, counted = Clock(), watch.CompileTime()
    monkeypatch.setattr(watch, "thread_time", clock)
    monkeypatch.setattr(watch.CompileTime, "total", [1.0])
    start, end = SimpleNamespace(is_start=True), SimpleNamespace(is_start=False)
    for now, event in (
        (1.0, end),
        (2.0, start),
        (3.0, start),
        (5.0, end),
        (9.0, end),
        (10.0, end),
        (20.0, start),
        (21.0, end),
    ):
        clock.now = now
        counted.notify(event)
    assert (counted.seconds, counted.depth, watch.CompileTime.total) == (8.0, 0, [9.0])
    monkeypatch.setattr(watch, "compile_time", counted)
    assert watch.thread_seconds() == 21.0 - 8.0
    monkeypatch.setattr(watch, "process_time", clock)
    assert watch.process_seconds() == 21.0 - 9.0


def test_a_first_ctrl_c_is_noted_and_a_second_ends() -> None:
    before = signal.getsignal(signal.SIGINT)
    with watch.interrupts() as signals:
        os.kill(os.getpid(), signal.SIGINT)
        assert signals == [signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is before
    assert signal.getsignal(signal.SIGINT) is before
    with watch.interrupts():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
    handlers: list[Any] = []

    def elsewhere() -> None:
        with watch.interrupts():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert handlers == [before]  # only the main thread may have handlers


def test_titles_are_printed_once_before_the_first_line(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    with terminal.headed("a shop\x1b") as heading:
        assert out.getvalue() == ""
        terminal.print_answer(True, {"a": 1}, "unused")
        terminal.print_answer(False, {"b": 1}, "one\nline")
        terminal.print_plain("two")
    terminal.print_plain("three")
    terminal.print_json({"c": nan, "d": (1, inf, 2.5)})
    assert heading.documents == [{"a": 1}]
    first, _, rest = out.getvalue().partition("{")
    assert first == f"a shop\\x1b\n{'-' * 10}\none\nline\ntwo\nthree\n"
    assert rest.replace("\n", "").replace(" ", "") == '"c":null,"d":[1,null,2.5]}'
    monkeypatch.setattr("sys.stdout", None)
    terminal.print_plain("nowhere")


def test_notes_are_flushed_to_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []
    stream = SimpleNamespace(write=flushed.append, flush=lambda: flushed.append("flushed"))
    monkeypatch.setattr("sys.stderr", stream)
    terminal.print_note("a\rb")
    assert flushed == ["a\\rb\n", "flushed"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1.0, "-1"), (0.0, "1970-01-01"), (60.0, "1970-01-01T00:01"), (3600.0, "1970-01-01T01:00"),
        (30.0, "1970-01-01"), (1e11 - 86400.0, "5138-11-15T09:46"), (1e11, "1e+11"), (86400.0, "1970-01-02"),
    ],
)  # fmt: skip
def test_times_are_dates_with_the_time_of_day_unless_it_is_midnight(seconds: float, text: str) -> None:
    assert terminal.as_time(seconds) == text


def test_names_cannot_control_a_terminal() -> None:
    assert terminal.visible("a\nb\tc") == "a\nb\\tc"
    assert terminal.shown("a\nb") == "a\\nb"
    assert terminal.visible("\x80\u2066x") == "\\x80\\u2066x"
    assert [terminal.plural(number, "day") for number in (0, 1, 2, 1.5)] == ["0 days", "1 day", "2 days", "1.5 days"]


def test_outputs_are_regular_files_that_belong_to_nobody(tmp_path: Path) -> None:
    for name, content in (
        (".lock", b""), ("a.sqlite3-wal", b""), ("a.sqlite3-shm", b""), ("log", b"SQLite format 3\0 and more"),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match="belongs to a database"):
            check_target(tmp_path / name)
    with pytest.raises(ValueError, match="belongs to a database"):
        check_target(tmp_path / "absent.sqlite3-wal")
    (tmp_path / "plain").write_bytes(b"SQLite format 4\0")
    check_target(tmp_path / "plain")
    check_target(tmp_path / "absent")
    with pytest.raises(ValueError, match="does not exist"):
        check_target(tmp_path / "no" / "file")
    with pytest.raises(ValueError, match=r"is a folder: give a file name for the plot\."):
        check_target(tmp_path, "the plot")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is a device or a pipe"):
        check_target(tmp_path / "pipe")


def test_a_file_is_written_whole_with_its_mode_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "text"
    write_whole(target, "käse")
    assert target.read_bytes() == "käse".encode()
    write_whole(target, b"\xff", sync=False)
    assert target.read_bytes() == b"\xff"
    with suppress(KeyError), whole_file(target) as temporary:
        temporary.write_text("half")
        raise KeyError
    assert target.read_bytes() == b"\xff"
    assert list(tmp_path.iterdir()) == [target]
    with whole_file(tmp_path / "secret", mode=0o600) as temporary:
        assert temporary.parent == tmp_path
        assert (temporary.name.startswith(".secret."), temporary.suffix) == (True, ".tmp")
        temporary.write_text("x")
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_what_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr("os.fsync", synced.append)
    write_whole(tmp_path / "a", "x", sync=False)
    assert synced == []
    write_whole(tmp_path / "a", "x")
    assert len(synced) == 2  # the file, and the folder that has its name


def test_a_folder_belongs_to_one_process_and_is_cleared(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "er"
    folder.mkdir(parents=True)
    (folder / ".left.tmp").touch()
    (folder / "kept.tmp").touch()
    with (
        own_folder(folder),
        pytest.raises(ValueError, match=r"Another process is writing to .*: go away"),
        own_folder(folder, "go away"),
    ):
        pass
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "kept.tmp"]
    with own_folder(folder):  # it was released
        pass
    with own_folder(tmp_path / "new" / "one"):
        assert (tmp_path / "new" / "one").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="is a file: give a folder"), own_folder(tmp_path / "file"):
        pass


def test_paths_to_one_file(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    os.link(tmp_path / "a", tmp_path / "hard")
    assert same_file(tmp_path / "a", tmp_path / "link")
    assert same_file(tmp_path / "a", tmp_path / "hard")
    assert same_file(tmp_path / "b", tmp_path / "x" / ".." / "b")
    assert not same_file(tmp_path / "a", tmp_path / "b")
