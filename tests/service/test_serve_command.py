"""The command ``rankstream serve``: what keeps a service in order, and what it says."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import rankstream as rs
from local_service import CAFE, TEA, shop
from rankstream.cli import serve as module
from rankstream.service import run as running
from shell import run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with shop(tmp_path / "shop") as opened:
        opened.send("cafe", CAFE)
        opened.send("bar", [{**TEA, "time": 5.0, "count": 2}])
    return tmp_path


def test_a_folder_without_a_service_is_refused_and_not_created(tmp_path: Path) -> None:
    for words in (("list", "shpo"), ("revoke", "shpo", "1a2b3c4d")):
        done = run("serve", "token", *words, cwd=tmp_path)
        said = "rankstream: There is no service in shpo: name the folder of one.\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    assert not any(tmp_path.iterdir())


def test_tokens(folder: Path) -> None:
    assert run("serve", "token", "list", "shop", cwd=folder).stdout == "There are no tokens.\n"
    made = run("serve", "token", "create", "shop", "--market", "cafe", "--may", "write,read", cwd=folder)
    assert (made.returncode, made.stdout[:3]) == (0, "rs_")
    name = made.stdout.split("_")[1]
    other = run("serve", "token", "create", "shop", "--market", "*", "--json", cwd=folder)
    assert json.loads(other.stdout)["token"].startswith("rs_")
    listed = run("serve", "token", "list", "shop", cwd=folder).stdout.splitlines()
    assert len(listed) == 2
    assert listed[0].startswith(name)
    assert listed[0].endswith("may read, write: cafe")
    assert made.stdout.strip().split("_", 2)[2] not in "".join(listed)
    found = json.loads(run("serve", "token", "list", "shop", "--json", cwd=folder).stdout)["tokens"]
    assert [one["markets"] for one in found] == [["cafe"], ["*"]]
    gone = run("serve", "token", "revoke", "shop", name, cwd=folder)
    assert gone.stdout == f"The token {name} is revoked.\n"
    again = run("serve", "token", "revoke", "shop", name, cwd=folder)
    assert (again.returncode, f"There is no token '{name}'" in again.stderr) == (2, True)
    assert run("serve", "token", "create", "shop", "--market", "a/b", cwd=folder).returncode == 2


def test_an_export_can_be_fitted(folder: Path) -> None:
    done = run("serve", "export", "shop", "cafe", "cafe.parquet", cwd=folder)
    assert done.stdout == f"Saved {len(CAFE)} records in cafe.parquet.\n"
    assert rs.read_counts(folder / "cafe.parquet").observations == len(CAFE)
    done = run("serve", "export", "shop", "bar", "bar.jsonl", "--json", cwd=folder)
    assert json.loads(done.stdout) == {"file": "bar.jsonl", "records": 1}
    (record,) = [json.loads(line) for line in (folder / "bar.jsonl").read_text().splitlines()]
    assert record.pop("arrived") > 1e9
    assert record == {"offered": TEA["offered"], "chosen": "tea", "count": 2.0, "time": 5.0}
    wrong = run("serve", "export", "shop", "cafe", "cafe.xls", cwd=folder)
    assert (wrong.returncode, "neither .parquet nor .jsonl" in wrong.stderr) == (2, True)
    wrong = run("serve", "export", "shop", "nowhere", "x.jsonl", cwd=folder)
    assert (wrong.returncode, "it has bar, cafe." in wrong.stderr) == (2, True)
    assert not (folder / "x.jsonl").exists()


def test_rebuild(folder: Path) -> None:
    done = run("serve", "rebuild", "shop", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "records. The old state is kept as learned.sqlite3." in done.stdout
    assert set(json.loads(run("serve", "rebuild", "shop", "--json", cwd=folder).stdout)) == {
        "file",
        "records",
        "dropped",
    }
    assert run("serve", "rebuild", "nowhere", cwd=folder).returncode == 2
    assert not (folder / "nowhere").exists()


def test_backup_and_purge(folder: Path) -> None:
    done = run("serve", "backup", "shop", "shop.zip", cwd=folder)
    assert done.stdout.startswith("Saved shop.zip (")
    assert (folder / "shop.zip").stat().st_mode & 0o077 == 0
    done = run("serve", "purge", "shop", "cafe", cwd=folder)
    assert done.stdout == f"Removed cafe with {len(CAFE)} records.\n"
    for file in (folder / "shop").iterdir():
        assert b"cake" not in (file.read_bytes() if file.is_file() else b""), file
    assert json.loads(run("serve", "purge", "shop", "bar", "--json", cwd=folder).stdout)["records"] == 1
    for words in (["purge", "shop", "cafe"], ["purge", "nowhere", "cafe"], ["backup", "nowhere", "x.zip"]):
        done = run("serve", *words, cwd=folder)
        assert (done.returncode, done.stderr[:12], len(done.stderr.splitlines())) == (2, "rankstream: ", 1)
    assert not (folder / "x.zip").exists()


def test_run_hands_on_what_was_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Any] = []

    def fake(*words: Any) -> None:
        taken.append(words)
        words[-1]("http://127.0.0.1:1")

    monkeypatch.setattr(running, "run", fake)
    options = [
        "--keep",
        "30d",
        "--no-new-markets",
        "--limit",
        "offers=5",
        "--allow-host",
        "shop.example",
        "--seed",
        "3",
    ]
    done = run("serve", "run", "shop", "--port", "0", *options, cwd=folder)
    assert done.stdout == "Serving shop at http://127.0.0.1:1; press Ctrl-C to stop.\n"
    where, host, port, given, _ = taken[0]
    assert (str(where), host, port) == ("shop", "127.0.0.1", 0)
    assert (given.keep, given.new_markets, given.limits.offers, given.seed) == (30 * 86400.0, False, 5, 3)
    assert given.hosts == ("shop.example", "127.0.0.1")
    done = run("serve", "run", "shop", "--json", "--host", "0.0.0.0", cwd=folder)
    assert json.loads(done.stdout) == {"url": "http://127.0.0.1:1", "folder": "shop"}
    assert taken[1][3].hosts == ()
    for wrong, reason in ((["--keep", "30"], "--keep is '30'"), (["--limit", "x=1"], "The limit 'x=1'")):
        done = run("serve", "run", "shop", *wrong, cwd=folder)
        assert (done.returncode, reason in done.stderr) == (2, True)


def test_a_file_in_the_place_of_the_folder(folder: Path) -> None:
    (folder / "file").write_text("")
    done = run("serve", "run", "file", cwd=folder)
    assert (done.returncode, done.stderr) == (2, "rankstream: file is a file: give a folder.\n")


def test_without_the_extra_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("rankstream.service.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    done = run("serve", "run", "shop", cwd=folder)
    assert (done.returncode, done.stderr) == (2, f"rankstream: {module.MISSING}\n")
    assert 'run pip install ".[serve]" in the checkout' in done.stderr
    assert isinstance(module.missing(ModuleNotFoundError(name="other")), ModuleNotFoundError)


@pytest.mark.parametrize("words", [["serve"], ["serve", "token"], ["serve", "backup"], ["serve", "token", "create"]])
def test_help_shows_examples(folder: Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text = run(*words, "--help", cwd=folder).stdout
    assert f"Example: rankstream {' '.join(words)}" in text
