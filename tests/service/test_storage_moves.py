"""Purge, export, backup and moves, for every store: SQLite, the store of the fault simulator, and PostgreSQL."""

import sqlite3
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from local_service import CAKE, PIE, TEA
from rankstream.service.storage import log, maintenance, migration, tokens
from rankstream.service.storage import states as store
from rankstream.service.storage.database import Place
from storage_kinds import Store

pytest_plugins = ["store_fixtures"]


def test_a_market_that_is_purged_is_gone(one: Store) -> None:
    one.send(TEA, key="a")
    one.save(1)
    before = one.row().id
    log.keep_preferences(one.log, "cafe", {"currency": "€"})
    assert maintenance.purge(one.place, "cafe") == 1
    assert log.preferences_of(one.log, "cafe") == {}
    assert (log.market_rows(one.log), store.positions(one.learned)) == ([], {})
    assert one.send(PIE, key="a")["position"] == 1
    assert one.row().id > before
    assert one.read() == [(1, ["pie"])]


def test_an_export_has_every_record(one: Store, tmp_path: Path) -> None:
    one.send(TEA, PIE)
    assert maintenance.export(one.place, "cafe", tmp_path / "cafe.jsonl") == 2
    assert len((tmp_path / "cafe.jsonl").read_text().splitlines()) == 2
    with pytest.raises(ValueError, match="There is no market 'pub'"):
        maintenance.export(one.place, "pub", tmp_path / "pub.jsonl")


def filled(one: Store) -> tuple[Any, ...]:
    """Fill a store with something of everything, and return what must be elsewhere after a move."""
    for number in range(3):
        one.send(TEA, PIE, key=f"key {number}")
    one.send(CAKE, market="bar")
    one.save(4, listing={"items": ["tea"]})
    tokens.create(one.place, ["cafe"], ["read"], "till")
    log.keep_preferences(one.log, "cafe", {"currency": "€"})
    return content(one)


def content(one: Store) -> tuple[Any, ...]:
    market = one.row().id
    return (
        log.identity_of(one.log), log.market_rows(one.log), one.read(), store.load_market(one.learned, market),
        store.published_models(one.learned), store.course_points(one.learned, market),
        store.listing_of(one.learned, market), tokens.listed(one.place), log.preferences_of(one.log, "cafe"),
    )  # fmt: skip


def test_a_service_is_moved_and_its_source_retired(one: Store, tmp_path: Path) -> None:
    before, folder = filled(one), tmp_path / "moved"
    assert migration.migrate(one.place, folder) == 7
    with ExitStack() as stack:
        moved = Store(folder, stack)
        assert content(moved) == before
        assert moved.send(TEA, PIE, key="key 2") == {"market": "cafe", "position": 6, "records": 2}  # sent before
        assert moved.send(PIE, key="new")["position"] == 7
        moved.send(TEA, market="pub")
        assert moved.row("pub").id == 3
    with pytest.raises(ValueError, match=f"was moved to {folder}: use that"):
        log.open_log(one.place)
    for use in (
        tokens.listed,
        lambda place: tokens.create(place, ["bar"], ["read"]),
        lambda place: tokens.revoke(place, "a"),
    ):
        with pytest.raises(ValueError, match="use that"):  # it would have no effect there
            use(one.place)
    if one.log.is_shared:  # a server that still runs stores nothing
        with pytest.raises(sqlite3.OperationalError):
            one.send(PIE)


def test_a_service_is_moved_to_an_empty_place_only(one: Store, tmp_path: Path) -> None:
    filled(one)
    with ExitStack() as stack:
        (tmp_path / "other").mkdir()
        other = Store(tmp_path / "other", stack)
        other.send(PIE)
        with pytest.raises(ValueError, match="is not empty"):
            migration.migrate(one.place, other.place)
        before = content(one)
        with pytest.raises(ValueError, match="is not empty"):
            migration.migrate(other.place, one.place)
        assert (content(one), other.row().records) == (before, 1)


def test_a_service_is_not_moved_to_itself(one: Store, tmp_path: Path) -> None:
    before = filled(one)
    if isinstance(one.place, str):
        other: Place = one.place.replace("127.0.0.1", "localhost")
    else:
        other = tmp_path / "link"
        other.symlink_to(one.place)
    for place in (one.place, other):
        with pytest.raises(ValueError, match="name an empty target"):
            migration.migrate(one.place, place)
    assert content(one) == before


@pytest.mark.parametrize("ends", ["_rows", "copy"])
def test_a_move_that_is_interrupted_loses_nothing(
    one: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """Either before the target has anything, or when it has everything and the source is not retired yet."""
    before, folder, run = filled(one), tmp_path / "moved", getattr(migration, ends)

    def interrupted(*given: Any) -> Any:
        if ends == "copy":
            run(*given)
        elif given[1] == "served":
            raise KeyboardInterrupt
        else:
            return run(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(migration, ends, interrupted)
    with pytest.raises(KeyboardInterrupt):
        migration.migrate(one.place, folder)
    monkeypatch.undo()
    assert content(one) == before
    if ends == "copy":
        with pytest.raises(ValueError, match="or a copy of it: name an empty target"):
            migration.migrate(one.place, folder)
        folder = tmp_path / "another"
    assert migration.migrate(one.place, folder) == 7
    with ExitStack() as stack:
        assert content(Store(folder, stack)) == before


def test_a_folder_is_moved_to_a_store(one: Store, tmp_path: Path) -> None:
    with ExitStack() as stack:
        (tmp_path / "before").mkdir()
        folder = Store(tmp_path / "before", stack)
        before = filled(folder)
        assert migration.migrate(folder.place, one.place) == 7
        assert content(one) == before
        assert one.send(TEA, market="pub")["position"] == 1
        assert one.row("pub").id == 3


def test_a_backup_is_restored_as_a_folder(one: Store, tmp_path: Path) -> None:
    before = filled(one)
    assert maintenance.backup(one.place, tmp_path / "shop.zip") > 0
    one.send(PIE)
    with ZipFile(tmp_path / "shop.zip") as archive:
        archive.extractall(tmp_path / "restored")
    with ExitStack() as stack:
        assert content(Store(tmp_path / "restored", stack)) == before
