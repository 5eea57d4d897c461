"""Sources that are rotated: nothing is lost, counted twice or skipped without a word, killed or not."""

import gzip
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from rankstream.streams.live import Live
from rankstream.streams.sources import lines as source
from rankstream.streams.sources import rotation
from rankstream.streams.sources.lines import FileSource
from rankstream.streams.sources.parser import LineReader
from rankstream.streams.sources.rotation import LostSourceError, Place
from rotated_files import copy_and_truncate, counts, record, rename, settle, write
from shell import run


class Reader:
    """A source that is read poll by poll."""

    opened: ClassVar[list[FileSource]] = []

    def __init__(self, path: Path, place: Place | None = None) -> None:
        self.source = FileSource(str(path), LineReader(str(path)), place or Place())
        self.opened.append(self.source)
        self.lines = self.source.lines(to_end=False)

    def poll(self) -> list[int]:
        """The numbers of the records up to the next pause."""
        found: list[int] = []
        while (line := next(self.lines)) is not None:
            found.append(json.loads(line.text)["id"])
        return found


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(source, "PAUSE_SECONDS", 0.0)
    found = tmp_path / "choices.jsonl"
    write(found, 1, 2)
    settle(found, 0)
    yield found
    while Reader.opened:
        Reader.opened.pop().close()


@pytest.mark.parametrize("rotate", [rename, copy_and_truncate])
@pytest.mark.parametrize("restarts", [False, True])
def test_what_comes_before_and_after_a_rotation_is_read(
    path: Path, rotate: Callable[[Path, int], None], restarts: bool
) -> None:
    reader = Reader(path)
    assert reader.poll() == [1, 2]
    place = reader.source.place()
    write(path, 3)
    settle(path, 1)
    rotate(path, 2)
    write(path, 4, 5)
    settle(path, 2)
    rotate(path, 1)  # twice between two polls
    settle(path.with_name("choices.jsonl.2"), 1)
    settle(path.with_name("choices.jsonl.1"), 2)
    write(path, *range(6, 12))  # and the file is longer than what was read of it
    settle(path, 3)
    assert (Reader(path, place) if restarts else reader).poll() == list(range(3, 12))


def test_what_is_written_while_the_next_file_is_looked_for_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, late = Reader(path), [3]
    assert reader.poll() == [1, 2]
    rename(path, 1)
    write(path, 4)

    def newer(*_: object) -> list[Path]:
        while late:
            write(path.with_name("choices.jsonl.1"), late.pop())
        return []

    monkeypatch.setattr(rotation, "newer", newer)
    assert reader.poll() == [3, 4]


def test_a_writer_may_go_on_with_the_old_file_until_the_new_one_is_written_to(path: Path) -> None:
    reader = Reader(path)
    assert reader.poll() == [1, 2]
    rename(path, 1)
    assert reader.poll() == []
    path.touch()
    write(path.with_name("choices.jsonl.1"), 3)
    assert reader.poll() == [3]
    write(path.with_name("choices.jsonl.1"), 4)
    write(path, 5)
    assert reader.poll() == [4, 5]


def test_a_half_record_at_the_end_of_a_rotated_file_is_a_record(path: Path) -> None:
    reader = Reader(path)
    with path.open("a") as file:
        file.write(record(3))  # no line break ever comes
    assert reader.poll() == [1, 2]
    rename(path, 1)
    write(path, 4)
    assert reader.poll() == [3, 4]


def test_a_file_that_was_removed_is_read_to_its_end_while_it_is_open(path: Path) -> None:
    reader = Reader(path)
    assert reader.poll() == [1, 2]
    write(path, 3)
    settle(path, 1)
    packed = path.with_name("choices.jsonl.1.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))  # its time is now: later than that of the file
    path.unlink()
    write(path, 4)
    assert reader.poll() == [3, 4]


def test_a_file_that_was_written_anew_with_the_same_records_goes_on(path: Path) -> None:
    reader = Reader(path)
    assert reader.poll() == [1, 2]
    place = reader.source.place()
    other = path.with_name("other")
    write(other, 1, 2, 3)
    other.replace(path)
    assert reader.poll() == [3]
    assert Reader(path, place).poll() == [3]


def test_what_is_only_there_packed_ends_the_run(path: Path) -> None:
    reader = Reader(path)
    assert reader.poll() == [1, 2]
    packed = path.with_name("choices.jsonl.1.gz")
    packed.write_bytes(gzip.compress(path.read_bytes() + record(3).encode() + b"\n"))
    os.truncate(path, 0)
    write(path, 4)
    with pytest.raises(LostSourceError, match=r"decompress .*choices.jsonl.1.gz beside it, and start again"):
        reader.poll()
    place = reader.source.place()
    packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
    packed.unlink()
    assert Reader(path, place).poll() == [3, 4]


def test_a_packed_file_between_two_ends_the_run(path: Path) -> None:
    reader = Reader(path)
    assert reader.poll() == [1, 2]
    rename(path, 2)
    packed = path.with_name("choices.jsonl.1.gz")
    packed.write_bytes(gzip.compress(b"as long as it is another file"))
    write(path, 4)
    with pytest.raises(LostSourceError, match="rotated more than once"):
        reader.poll()


@pytest.mark.parametrize("longer", [False, True])
def test_what_is_missing_ends_the_run(path: Path, longer: bool) -> None:
    reader = Reader(path)
    assert reader.poll() == [1, 2]
    path.unlink()
    write(path, *range(3, 9 if longer else 4))
    with pytest.raises(LostSourceError, match="put the rotated file back beside it, or start again"):
        Reader(path, reader.source.place())


def test_two_files_that_may_be_it_end_the_run(path: Path) -> None:
    reader = Reader(path)
    assert reader.poll() == [1, 2]
    for name in ("one", "two"):
        shutil.copyfile(path, path.with_name(name))
    os.truncate(path, 0)
    with pytest.raises(LostSourceError, match=r"one and .*two may be its old file"):
        reader.poll()


def test_an_inode_that_is_used_again_is_another_file(path: Path) -> None:
    reader = Reader(path)
    assert reader.poll() == [1, 2]
    place = reader.source.place()
    rename(path, 1)
    write(path, 3, 4)
    settle(path, 5)
    there = path.stat()
    assert Reader(path, place._replace(device=there.st_dev, inode=there.st_ino)).poll() == [3, 4]


def test_names_of_rotated_files() -> None:
    choices = Path("choices.jsonl")
    good = ("jsonl.1", "jsonl-20240516", "1.jsonl", "jsonl.2024-05-16T12:30", "jsonl.old")
    assert all(rotation._is_rotated(choices, Path(f"choices.{name}")) for name in good)
    assert rotation._is_rotated(choices, Path("choices-20240516.jsonl"))
    for name in ("choices.jsonl", "choices.jsonl.swp", "choices-new.jsonl", "choices.jsonl.1.gz", "other.jsonl.1"):
        assert not rotation._is_rotated(choices, Path(name))
    assert rotation._is_rotated(choices, Path("choices.jsonl.1.gz"), packed=True)


def test_a_header_comes_again_with_every_file(tmp_path: Path) -> None:
    path = tmp_path / "choices.csv"
    path.write_text("offered,chosen\na;b,a\n")
    settle(path, 0)
    assert run("stream", "--publish", "sparse", "choices.csv", "--out", "out", "--to-end", cwd=tmp_path).returncode == 0
    path.rename(tmp_path / "choices.csv.1")
    path.write_text("offered,chosen\na;b,b\na;b,b\n")
    assert run("stream", "--publish", "sparse", "choices.csv", "--out", "out", "--to-end", cwd=tmp_path).returncode == 0
    assert counts(tmp_path / "out") == {"a": 1.0, "b": 2.0}
    path.rename(tmp_path / "choices.csv.0")
    path.write_text("a;b,b\na;b,b\n")
    done = run("stream", "--publish", "sparse", "choices.csv", "--out", "out", "--to-end", cwd=tmp_path)
    assert done.returncode == 2
    assert "start every file with the same column names" in done.stderr


def test_a_source_that_was_replaced_by_a_longer_file_is_a_sentence_and_exit_code_1(tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "choices.jsonl", tmp_path / "elsewhere"
    write(path, *range(50))
    assert (
        run("stream", "--publish", "sparse", "choices.jsonl", "--out", "out", "--to-end", cwd=tmp_path).returncode == 0
    )
    write(path, *range(50, 60))
    settle(path, 0)
    elsewhere.mkdir()
    path.rename(elsewhere / "old")
    write(path, *range(60, 200))
    done = run("stream", "--publish", "sparse", "choices.jsonl", "--out", "out", "--to-end", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("rankstream: choices.jsonl is not the file that was read up to byte")
    assert Live.load(tmp_path / "out" / "state.npz").records == 50
    shutil.copy2(elsewhere / "old", tmp_path / "choices.jsonl.1")  # as the sentence says
    assert (
        run("stream", "--publish", "sparse", "choices.jsonl", "--out", "out", "--to-end", cwd=tmp_path).returncode == 0
    )
    assert Live.load(tmp_path / "out" / "state.npz").records == 200


def test_before_the_first_record_of_a_new_file_the_place_is_the_end_of_the_old_one(path: Path) -> None:
    """What begins alike is not recognised by its beginning, and a header begins every file."""
    reader = Reader(path)
    assert reader.poll() == [1, 2]
    end = reader.source.place()
    rename(path, 1)
    write(path, 3)
    assert next(reader.lines) is not None
    assert reader.source.place(before=True) == end
    assert reader.source.place().inode == path.stat().st_ino


def test_neither_the_file_that_is_read_nor_a_link_to_the_source_is_newer(tmp_path: Path) -> None:
    path, read, later = (tmp_path / name for name in ("log.jsonl", "log.jsonl.2", "log.jsonl.1"))
    for number, file in enumerate((read, later, path)):
        file.write_text("{}\n")
        os.utime(file, (100.0 + number, 100.0 + number))
    before = read.stat()
    os.utime(read, (200.0, 200.0))  # it was still written to
    os.link(path, tmp_path / "log.jsonl.3")
    assert rotation.newer(path, before) == [later]


def test_a_rotated_file_is_read_to_its_end_however_many_chunks_that_takes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "CHUNK_BYTES", 200)
    write(path, *range(3, 60))
    reader = Reader(path)
    first = next(reader.lines)
    assert first is not None
    rename(path, 1)
    write(path, 60, 61)
    found = [json.loads(first.text)["id"], *reader.poll(), *reader.poll(), *reader.poll()]
    assert found == list(range(1, 62))
