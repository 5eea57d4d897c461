"""Files that are there whole or not at all, and folders of one process."""

import os
from pathlib import Path

import pytest

from rankstream._core.files import own_folder, same_file, whole_file, write_whole

pytestmark = pytest.mark.quick


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    write_whole(path, "old")

    def fail() -> None:
        with whole_file(path) as temporary:
            temporary.write_text("half of")
            assert path.read_text() == "old"
            raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="the disk is full"):
        fail()
    assert [file.name for file in tmp_path.iterdir()] == ["model.json"]
    write_whole(path, b"new")
    assert path.read_text() == "new"


def test_temporary_names_cannot_be_known_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, names = tmp_path / "model.json", set()
    for _ in range(2):
        with whole_file(path) as temporary:
            names.add(temporary.name)
            assert not temporary.read_bytes()
    assert len(names) == 2
    monkeypatch.setattr("secrets.token_hex", lambda _: "known")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".model.json.known.tmp").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_whole(path, "anything")
    assert victim.read_text() == "precious"


def test_others_may_read_what_the_umask_lets_them(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_whole(tmp_path / "model.json", "{}")
    finally:
        os.umask(before)
    assert (tmp_path / "model.json").stat().st_mode & 0o777 == 0o644


def test_everything_is_on_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    sync = os.fsync

    def noticed(descriptor: int) -> None:
        there = (tmp_path / "model.json").exists()
        synced.append(f"{os.fstat(descriptor).st_size} bytes, named {there}")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noticed)
    write_whole(tmp_path / "model.json", "twelve bytes")
    assert synced[0] == "12 bytes, named False"
    assert synced[1].endswith("named True")  # the folder


def test_a_folder_is_given_back_and_cleared_of_what_was_left(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with own_folder(out):
        (out / ".state.npz.0123.tmp").write_text("half")
        with pytest.raises(ValueError, match="Another process is writing to"), own_folder(out):
            pass
        assert (out / ".state.npz.0123.tmp").exists()
    with own_folder(out):
        assert [file.name for file in out.iterdir()] == [".lock"]
        assert (out / ".lock").stat().st_mode & 0o111 == 0  # nothing to execute
    with pytest.raises(ValueError, match="is a file: give a folder"), own_folder(out / ".lock"):
        pass


def test_a_folder_that_cannot_be_locked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    sentence = r"cannot be locked \(No locks available\): choose one on a local disk"
    with pytest.raises(ValueError, match=sentence), own_folder(tmp_path):
        pass


def test_one_file_by_any_name(tmp_path: Path) -> None:
    path, hard, soft = tmp_path / "a", tmp_path / "hard", tmp_path / "soft"
    soft.symlink_to(path)
    assert same_file(path, soft)  # which leads nowhere yet
    path.touch()
    hard.hardlink_to(path)
    assert same_file(path, hard)
    assert same_file(path, soft)
    assert not same_file(path, tmp_path / "b")
