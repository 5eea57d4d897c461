"""Many markets: a model and a row for each, whatever the source, the order and the workers; failures stay alone."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config, register_parallel_backend
from joblib.parallel import ThreadingBackend

import rankstream as rs
from many_markets import Deadly, choices, model_bytes
from rankstream.estimation.many import run, work
from rankstream.estimation.many.markets import MarketFit, file_of, find_market, name_of, seed_of
from rankstream.estimation.many.store import MarketStore


def fitted(source: Any, out: Path, by: Any = ("store",), **options: Any) -> rs.Markets:
    return rs.estimate_many(source, by, "nearest", 1, out, **({"pool": False} | options))


def test_a_market_is_fitted_as_it_would_be_alone(tmp_path: Path) -> None:
    rows = choices()
    markets = fitted(rows, tmp_path / "out", by=["store", "kind"])
    assert list(markets) == sorted({(store, kind) for store, kind in rows[["store", "kind"]].itertuples(index=False)})
    own = rows[(rows.store == "York") & (rows.kind == "hot")].drop(columns=["store", "kind"])
    counts = rs.read_counts(own)
    alone = rs.estimate(counts, method="nearest", seed=seed_of(("York", "hot"), 0))
    offer = ("tea", "pie", "cake", "none")
    assert markets.predict("York;hot", offer) == alone.model.predict(offer) == markets.predict(("York", "hot"), offer)
    row = markets.row(("York", "hot"))
    assert (row.choices, row.offers, row.items) == (len(own), counts.assortments.n_offers, counts.assortments.n_items)
    assert (row.distance, row.gap, row.method) == (alone.certificate.upper, alone.certificate.gap, "nearest")
    assert markets.model("York;hot").about["market"] == {"store": "York", "kind": "hot"}
    assert markets.counts("York;hot").digest() == counts.digest()


def test_a_row_has_the_seconds_of_its_fit_whether_it_succeeds_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = rs.ChoiceCounts(rs.Assortments([("tea", "pie")]), [3, 2])
    for method, status in (("nearest", "done"), ("no such method", "failed")):
        readings = iter((100.0, 102.5))
        monkeypatch.setattr(work, "perf_counter", lambda readings=readings: next(readings))
        row, _ = work.fit_market(work.Work(("York",), ("store",), counts, 0, method, ""))
        assert (row.status, row.seconds) == (status, 2.5)


def test_neither_source_nor_order_nor_workers_change_a_byte(tmp_path: Path) -> None:
    rows = choices([f"store {number}" for number in range(12)])
    fitted(rows, tmp_path / "frame")
    expected = model_bytes(tmp_path / "frame")
    assert len(expected) == 12
    rows.sample(frac=1.0, random_state=1).to_csv(tmp_path / "rows.csv", index=False)
    rows.to_parquet(tmp_path / "rows.parquet")
    with duckdb.connect() as connection:
        relation = connection.from_parquet(str(tmp_path / "rows.parquet"))
        fitted(relation, tmp_path / "relation")
        connection.execute(f"COPY relation TO '{tmp_path}/parts' (FORMAT parquet, PARTITION_BY (store))")
    fitted(str(tmp_path / "rows.csv"), tmp_path / "csv")
    fitted(tmp_path / "parts", tmp_path / "folder")
    rs.estimate_many(tmp_path / "parts", "store", "nearest", 2, tmp_path / "workers", pool=False)
    for name in ("relation", "csv", "folder", "workers"):
        assert model_bytes(tmp_path / name) == expected, name


class Lists(ThreadingBackend):  # type: ignore[misc]
    """A backend that returns lists only, as those of Ray and Spark."""

    supports_return_generator = False


def test_a_backend_that_returns_lists_changes_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = choices([f"store {number}" for number in range(5)])
    fitted(rows, tmp_path / "frame")
    monkeypatch.setattr(work, "PART", 2)
    register_parallel_backend("lists", Lists)
    with parallel_config(backend="lists"):
        rs.estimate_many(rows, "store", "nearest", 2, tmp_path / "lists", pool=False)
    assert model_bytes(tmp_path / "lists") == model_bytes(tmp_path / "frame")


def test_a_folder_may_name_some_of_the_columns(tmp_path: Path) -> None:
    rows = choices()
    fitted(rows, tmp_path / "frame", by=["store", "kind"])
    for store, own in rows.groupby("store"):
        (tmp_path / f"parts/year=2024/store={store}").mkdir(parents=True)
        own.drop(columns="store").to_parquet(tmp_path / f"parts/year=2024/store={store}/a.parquet")
    fitted(tmp_path / "parts", tmp_path / "folder", by=["store", "kind"])
    assert model_bytes(tmp_path / "folder") == model_bytes(tmp_path / "frame")


def test_a_rerun_fits_only_what_is_missing_or_changed(tmp_path: Path) -> None:
    rows, out = choices(), tmp_path / "out"
    fitted(rows, out)
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("*.json")}
    (out / file_of(("Ely",))).write_text("{}")
    changed = pd.concat([rows, rows[rows.store == "York"].head(1)])
    markets = fitted(changed, out)
    after = {path.name: path.stat().st_mtime_ns for path in out.glob("*.json")}
    assert {name for name in before if name != "settings.json" and before[name] != after[name]} == {
        file_of(("Ely",)),
        file_of(("York",)),
    }
    assert markets.row("York").choices == 61
    assert markets.model("Ely").predict(("tea", "none"))


def test_a_market_that_is_not_in_the_data_any_more_is_called_absent(tmp_path: Path) -> None:
    rows = choices()
    fitted(rows, tmp_path / "out")
    markets = fitted(rows[rows.store != "Bath"], tmp_path / "out")
    assert {row.key[0]: row.status for row in markets.rows} == {"Bath": "absent", "Ely": "done", "York": "done"}
    assert markets.predict("Bath", ("tea", "none"))
    assert {row.status for row in fitted(rows, tmp_path / "out").rows} == {"done"}


def test_a_market_that_fails_is_a_row_and_stops_nobody(tmp_path: Path) -> None:
    rows = choices()
    bad = rows.index[rows.store == "Bath"][0]
    good = rows.loc[bad, "chosen"]
    rows.loc[bad, "chosen"] = "cabbage"
    markets = fitted(rows, tmp_path / "out")
    assert list(markets) == [("Ely",), ("York",)]
    assert "the choice 'cabbage' is not in its offer" in markets.failed[("Bath",)]
    frame = markets.frame()
    assert frame[frame.status == "failed"].market.tolist() == ["Bath"]
    with pytest.raises(ValueError, match="There is no market 'Bath' with a model"):
        markets.model("Bath")
    skipped = fitted(rows, tmp_path / "skipped", on_error="skip")
    assert not skipped.failed
    assert skipped.row("Bath").choices == 59
    rows.loc[bad, "chosen"] = good
    assert not fitted(rows, tmp_path / "out").failed


def test_what_a_method_raises_is_a_row(tmp_path: Path) -> None:
    rows = choices()
    single = pd.DataFrame({"store": ["Ash"] * 5, "kind": "hot", "offered": "tea", "chosen": "tea"})
    markets = rs.estimate_many(pd.concat([rows, single]), "store", "max-entropy", 1, tmp_path / "out", pool=False)
    assert set(markets.failed) == {("Ash",)}
    assert "needs at least two items" in markets.failed[("Ash",)]


def test_a_market_that_ends_its_process_fails_alone(tmp_path: Path) -> None:
    rows = choices([f"store {number}" for number in range(6)])
    rows = pd.concat([rows, rows[rows.store == "store 3"].head(1)])
    markets = rs.estimate_many(rows, "store", Deadly(choices=61), 2, tmp_path / "out", pool=False)
    assert set(markets.failed) == {("store 3",)}
    assert "was killed" in markets.failed[("store 3",)]
    assert len(markets) == 5


def test_the_index_is_a_parquet_file_that_others_read(tmp_path: Path) -> None:
    fitted(choices(), tmp_path / "out")
    found = pd.read_parquet(tmp_path / "out" / "index.parquet")
    wanted = ["market", "choices", "offers", "items", "status", "error", "method", "distance", "gap", "seconds"]
    assert set(wanted) <= set(found.columns)
    assert found.market.tolist() == ["Bath", "Ely", "York"]
    assert found.choices.tolist() == [60.0, 60.0, 60.0]


def test_markets_are_copied_and_loaded(tmp_path: Path) -> None:
    markets = fitted(choices(), tmp_path / "out")
    markets.save(tmp_path / "copy")
    again = rs.Markets.load(tmp_path / "copy")
    assert repr(again) == "Markets(3 markets by store, 0 failed)"
    assert again.predict("York", ("tea", "none")) == markets.predict("York", ("tea", "none"))
    assert again.frame().equals(markets.frame())
    with pytest.raises(ValueError, match="already exists"):
        markets.save(tmp_path / "copy")


def test_markets_that_differ_are_named_and_others_are_not(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    names = [f"store {number}" for number in range(20)]
    rows = pd.DataFrame({"store": np.repeat(names, 200), "offered": "tea;pie"})
    rows["chosen"] = np.where(rng.random(len(rows)) < np.where(rows.store == "store 7", 0.9, 0.5), "tea", "pie")
    alone = pd.DataFrame({"store": ["Ash"] * 9, "offered": "tea;cake", "chosen": "tea"})
    markets = fitted(pd.concat([rows, alone]), tmp_path / "out")
    found = markets.compare()
    assert [one.market for one in found.differing] == [("store 7",)]
    assert found.differing[0].item in ("tea", "pie")
    assert 0.3 < abs(found.differing[0].change or 0.0) < 0.5
    assert found.alone == (("Ash",),)
    assert "1 of 20 markets differs" in str(found)
    smallest = found.differing[0].adjusted
    assert markets.compare(level=smallest).differing
    assert not markets.compare(level=0.999 * smallest).differing


def test_names_files_and_seeds_follow_from_the_key_alone() -> None:
    assert file_of(("York",)) != file_of(("york",))
    assert file_of(("York",)).lower() != file_of(("york",)).lower()
    assert "/" not in file_of(("../../etc", "a/b"))
    assert len(file_of(("x" * 1000,))) < 200
    assert seed_of(("a", "b"), 0) != seed_of(("ab",), 0) != seed_of(("ab",), 1)
    odd = ('York;"North"', "tea")
    assert find_market(name_of(odd), [odd]) == odd
    with pytest.raises(ValueError, match="did you mean 'York'"):
        find_market("Yorc", [("York",)])


def test_a_torn_line_of_the_journal_is_left_out(tmp_path: Path) -> None:
    fitted(choices(), tmp_path / "out")
    row = json.dumps(MarketFit(("Wells",), "failed", error="x").to_row())
    assert not (tmp_path / "out" / "journal.jsonl").exists()  # the index has all of it
    (tmp_path / "out" / "journal.jsonl").write_text(f"{row}\n{row[:40]}")
    assert set(MarketStore(tmp_path / "out").rows) == {("Bath",), ("Ely",), ("York",), ("Wells",)}


def test_progress_counts_every_market_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, float]] = []

    @contextmanager
    def progress(text: str) -> Iterator[Any]:
        told.append((text, 0.0))
        yield lambda text, fraction: told.append((text, fraction))

    monkeypatch.setattr(run, "progress", progress)
    rows = choices(["York", "Bath", "Ely"])
    fitted(rows, tmp_path / "out")
    words = [f"{number} of 3 markets" for number in (1, 2, 3)]
    assert told[0] == ("starting", 0.0)
    assert told[-3:] == list(zip(words, (1 / 3, 2 / 3, 1.0), strict=True))
    told.clear()
    more = pd.concat([rows, choices(["Zeal"], seed=3)], ignore_index=True)
    fitted(more, tmp_path / "out")  # the three others are done already
    assert [one for one in told if "markets" in one[0]] == [("4 of 4 markets", 1.0)]
