"""What commands write: private where it is a service's, and never in the place of a device, a pipe or a database."""

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from local_service import CAFE, shop
from rankstream import RankingModel
from rankstream._core.files import check_target, whole_file, write_whole
from rankstream.cli.open import importing, tasks_of
from rankstream.cli.options import ReadingOptions
from rankstream.service.storage import maintenance as folders
from rankstream.service.storage import tokens
from shell import run

CHOICES = "offered,chosen,count\ntea;pie,tea,6\ntea;pie,pie,3\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with shop(tmp_path / "shop") as opened:
        opened.send("cafe", CAFE)
    (tmp_path / "choices.csv").write_text(CHOICES)
    return tmp_path


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """Files are for everybody to read, unless somebody sees to it that they are not."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}


@contextmanager
def tasks_in(folder: Path, source: Path) -> Iterator[Any]:
    """What ``rankstream open --folder`` does with a folder before its server runs."""
    tokens.create(folder, ["*"], ["read"], "rankstream open")
    with importing(folder, tasks_of([source], ReadingOptions(), None, {})) as begin:
        yield begin


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_everything_of_a_service_is_its_owners_alone(tmp_path: Path) -> None:
    run("serve", "token", "create", "shop", "--market", "cafe", cwd=tmp_path)
    assert modes(tmp_path / "shop") == {"shop": 0o700, "tokens.sqlite3": 0o600}
    with shop(tmp_path / "other") as opened:
        opened.send("cafe", CAFE)
        found = modes(tmp_path / "other")
        assert {"log.sqlite3", "log.sqlite3-wal", "tokens.sqlite3"} <= set(found)
        assert {mode for name, mode in found.items() if "sqlite3" in name} == {0o600}
    (tmp_path / "other" / "log.sqlite3").chmod(0o644)  # as it was made before
    run("serve", "export", "other", "cafe", "cafe.jsonl", cwd=tmp_path)
    assert modes(tmp_path / "other")["log.sqlite3"] == 0o600
    assert os.umask(0o022) == 0o022  # commands put it back


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_what_is_opened_and_kept_is_its_owners_alone(place: Path) -> None:
    """The folder is made private, and in one that was there, whatever has data."""
    (place / "there").mkdir(mode=0o755)
    for name in ("made", "there"):
        with tasks_in(place / name, place / "choices.csv") as begin:
            assert callable(begin)
        found = modes(place / name)
        assert found.pop(name) == (0o700 if name == "made" else 0o755)
        assert {mode for file, mode in found.items() if "sqlite3" in file} == {0o600}


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_backup_is_private_from_its_first_byte(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def watched(*words: Any) -> ZipFile:
        seen.extend(stat.S_IMODE(path.stat().st_mode) & 0o077 for path in place.glob(".*.zip.*"))
        return ZipFile(*words)

    monkeypatch.setattr(folders, "ZipFile", watched)
    folders.backup(place / "shop", place / "copy.zip")
    assert seen
    assert set(seen) == {0}


@pytest.mark.parametrize(
    "words",
    [
        ["serve", "backup", "shop", "{}"], ["fit", "choices.csv", "-o", "{}", "--method", "mnl"],
        ["fit", "choices.csv", "-o", "model.json", "--rejects", "{}", "--on-error", "skip"],
        ["report", "model.json", "--data", "choices.csv", "-o", "{}"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("target", ["pipe", "shop/log.sqlite3", "shop/tokens.sqlite3", "shop/log.sqlite3-wal"])
def test_outputs_replace_no_pipe_and_no_database(place: Path, words: list[str], target: str) -> None:
    os.mkfifo(place / "pipe")
    with closing(sqlite3.connect(place / "shop" / "log.sqlite3")) as held:  # keeps the -wal file
        held.execute("SELECT count(*) FROM markets").fetchone()
        before = (place / target).lstat()
        done = run(*[word.format(target) for word in words], cwd=place)
        after = (place / target).lstat()
    assert done.returncode == 2
    assert target in done.stderr
    assert "give a regular file" in done.stderr or "choose another file" in done.stderr
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)


@pytest.mark.parametrize(
    "words",
    [
        "plot model.json --out pipe.png", "compare choices.csv --plot pipe.png", "serve export shop cafe pipe.jsonl",
        "serve export shop cafe pipe.parquet", "stream records.jsonl --to-end --out pipe.png",
        "stream records.jsonl --to-end --out folder", "fit choices.csv --by offered --out pipe.png",
        "serve run pipe.png", "serve token create pipe.png --market cafe",
    ],
)  # fmt: skip
def test_no_command_replaces_a_pipe(place: Path, words: str) -> None:
    RankingModel(("tea", "pie"), [("tea", "pie")], [1.0]).save(place / "model.json")
    (place / "records.jsonl").write_text('{"offered": ["tea", "pie"], "chosen": "tea"}\n')
    (place / "folder").mkdir()
    pipes = [place / name for name in ("pipe.png", "pipe.jsonl", "pipe.parquet", "folder/model.json")]
    for pipe in pipes:
        os.mkfifo(pipe)
    done = run(*words.split(), cwd=place)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert all(pipe.is_fifo() for pipe in pipes)


@pytest.mark.skipif(not Path("/dev/null").is_char_device(), reason="no devices")
def test_a_device_stays(tmp_path: Path) -> None:
    """Only a pipe of the test's own is written to: without the check, root would replace the device of the machine."""
    refused = "is a device or a pipe: give a regular file for the output"
    with pytest.raises(ValueError, match=refused):
        check_target(Path("/dev/null"))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(ValueError, match=refused):
            write_whole(tmp_path / name, "x")
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "plain").write_text("old")
    check_target(tmp_path / "plain")
    check_target(tmp_path / "absent")
    with pytest.raises(ValueError, match="is a folder"), whole_file(tmp_path):
        pass


@pytest.mark.parametrize(
    ("file", "words", "code"),
    [
        ("log", ["backup", "shop", "x.zip"], 1), ("log", ["export", "shop", "cafe", "x.jsonl"], 1),
        ("log", ["purge", "shop", "cafe"], 1), ("log", ["run", "shop", "--port", "0"], 1),
        ("tokens", ["token", "list", "shop"], 2), ("tokens", ["token", "create", "shop", "--market", "a"], 2),
        ("tokens", ["token", "revoke", "shop", "1a2b"], 2), ("tokens", ["run", "shop", "--port", "0"], 2),
    ],
)  # fmt: skip
@pytest.mark.parametrize("damage", ["garbage", "damaged", "another"])
def test_databases_that_cannot_be_used(place: Path, file: str, words: list[str], code: int, damage: str) -> None:
    path = place / "shop" / f"{file}.sqlite3"
    if words[0] == "run" and damage != "garbage":
        pytest.skip("what the server does with damage is tested with the server")
    if damage == "garbage":
        path.write_bytes(b"garbage" * 1000)
    elif damage == "damaged":
        path.write_bytes(path.read_bytes()[:100] + b"\xff" * 4000)
    else:
        path.unlink()
        with closing(sqlite3.connect(path)) as made:
            made.execute(f"CREATE TABLE {'tokens' if file == 'tokens' else 'markets'} (x)")
            made.execute("PRAGMA user_version = 2")
            made.commit()
    done = run("serve", *words, cwd=place)
    assert done.returncode in (1, 2)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("rankstream: ")
    assert not list(place.glob("x.*"))
    assert damage != "garbage" or done.returncode == code


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_folder_that_cannot_be_written(place: Path) -> None:
    (place / "shop").chmod(0o500)
    try:
        for words in (["token", "create", "shop", "--market", "a"], ["backup", "shop", "x.zip"], ["run", "shop"]):
            done = run("serve", *words, cwd=place)
            assert (done.returncode in (1, 2), len(done.stderr.splitlines())) == (True, 1)
    finally:
        (place / "shop").chmod(0o700)


def test_tokens_need_a_file_that_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "shop" / tokens.NAME).mkdir(parents=True)
    done = run("serve", "token", "create", "shop", "--market", "a", cwd=tmp_path)
    assert (done.returncode, "cannot be written (Is a directory)" in done.stderr) == (2, True)


def test_other_failures_stay_what_they_are() -> None:
    code = (
        "from rankstream.cli import app\n"
        "def fail(_): raise KeyError('x')\n"
        "app.make_app = lambda _: fail\n"
        "app.main(['fit'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, "KeyError" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    "words",
    ["compare nowhere.csv --plot", "decide nowhere.json --margins nowhere.csv --plot", "plot nowhere.json --out"],
)
def test_a_picture_of_no_kind_is_refused_before_anything_is_read(tmp_path: Path, words: str) -> None:
    done = run(*words.split(), "picture.odd", cwd=tmp_path)
    assert done.returncode == 2
    assert "picture.odd is not the name of an image" in done.stderr
