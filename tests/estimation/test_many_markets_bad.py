"""Many markets and bad input: one sentence with the value and the remedy, and nothing half-written."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import rankstream as rs
from many_markets import choices
from rankstream.data.readers import tallies


def refused(words: str, source: Any, out: Path, by: Any = "store", **options: Any) -> None:
    """It is one sentence, and the folder is as it was."""
    before = sorted(out.rglob("*")) if out.exists() else None
    given: dict[str, Any] = {"method": "nearest", "n_jobs": 1, "out": out, "pool": False, **options}
    with pytest.raises(ValueError, match=words) as caught:
        rs.estimate_many(source, by, **given)
    assert "\n" not in str(caught.value)
    assert (sorted(out.rglob("*")) if out.exists() else None) == before


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    refused(r"has no column 'shop' \(it has 'store'", choices(), tmp_path / "out", by=["shop"])
    choices().to_parquet(tmp_path / "rows.parquet")
    refused("has no column 'shop'", tmp_path / "rows.parquet", tmp_path / "out", by=["store", "shop"])


@pytest.mark.parametrize("by", [(), "", ["store", "store"], [3]])
def test_columns_that_name_no_market(by: Any, tmp_path: Path) -> None:
    refused("by ", choices(), tmp_path / "out", by=by)


@pytest.mark.parametrize("nothing", [None, "", float("nan")])
def test_records_without_a_market(nothing: Any, tmp_path: Path) -> None:
    rows = choices()
    rows["store"] = rows.store.astype(object)
    rows.loc[5, "store"] = nothing
    refused("records without a value in 'store'", rows, tmp_path / "out", by=["kind", "store"])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    refused("records without a value in 'store'", tmp_path / "rows.csv", tmp_path / "out")


def test_folders_without_a_value(tmp_path: Path) -> None:
    (tmp_path / "parts/store=__HIVE_DEFAULT_PARTITION__").mkdir(parents=True)
    choices().drop(columns="store").to_parquet(tmp_path / "parts/store=__HIVE_DEFAULT_PARTITION__/a.parquet")
    refused("without a value", tmp_path / "parts", tmp_path / "out")


def test_too_many_markets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "MAX_MARKETS", 50)
    rows = choices([f"customer {number}" for number in range(60)], size=2)
    refused("define more than 50 markets, such as 'customer", rows, tmp_path / "out")


def test_more_values_than_the_limit_are_refused(tmp_path: Path) -> None:
    rows = pd.DataFrame({"customer": range(100_001), "offered": "tea;pie", "chosen": "tea"})
    refused("'customer' define more than 100,000 markets", rows, tmp_path / "out", by="customer")


def test_a_corrupt_partition_fails_alone(tmp_path: Path) -> None:
    for store, own in choices().groupby("store"):
        (tmp_path / f"parts/store={store}").mkdir(parents=True)
        own.drop(columns="store").to_parquet(tmp_path / f"parts/store={store}/a.parquet")
    broken = tmp_path / "parts/store=Ely/a.parquet"
    good = broken.read_bytes()
    for content in (
        b"",
        b"PAR1 not at all",
        good[:-200],
        good[:4] + bytes(len(good) // 2) + good[len(good) // 2 + 4 :],
    ):
        broken.write_bytes(content)
        markets = rs.estimate_many(tmp_path / "parts", "store", "nearest", 1, tmp_path / "out", pool=False)
        assert set(markets.failed) == {("Ely",)}
        assert "cannot read" in markets.failed[("Ely",)]
        assert sorted(markets) == [("Bath",), ("York",)]
    broken.write_bytes(good)
    assert not rs.estimate_many(tmp_path / "parts", "store", "nearest", 1, tmp_path / "out", pool=False).failed


def test_nothing_but_corrupt_partitions(tmp_path: Path) -> None:
    (tmp_path / "parts/store=York").mkdir(parents=True)
    (tmp_path / "parts/store=York/a.parquet").write_bytes(b"")
    refused("No part of", tmp_path / "parts", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    refused("There are no files of choices", tmp_path / "empty", tmp_path / "out")


def test_a_folder_with_results_of_other_settings(tmp_path: Path) -> None:
    out = tmp_path / "out"
    rs.estimate_many(choices(), "store", "nearest", 1, out, pool=False)
    for options in ({"by": ["kind"]}, {"method": "mnl"}, {"seed": 1}, {"method": rs.methods.Nearest(gap=1e-6)}):
        refused("choose another folder, or remove this one", choices(), out, **options)
    assert len(rs.Markets.load(out)) == 3


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "diary.txt").write_text("Dear diary")
    with pytest.raises(ValueError, match=r"contains 'diary.txt' and is not a folder of markets"):
        rs.estimate_many(choices(), "store", "nearest", 1, out, pool=False)
    with pytest.raises(ValueError, match="is not a folder of markets"):
        rs.Markets.load(out)
    with pytest.raises(ValueError, match="does not exist"):
        rs.Markets.load(tmp_path / "nowhere")
    (out / "settings.json").write_text("[]")
    with pytest.raises(ValueError, match="is damaged"):
        rs.Markets.load(out)


def test_options_that_mean_nothing(tmp_path: Path) -> None:
    refused("n_jobs is 0", choices(), tmp_path / "out", n_jobs=0)
    refused("Unknown method 'magic'", choices(), tmp_path / "out", method="magic")
    refused("Unknown reading option 'colour'", choices(), tmp_path / "out", colour="red")
    refused("on_error is 'ignore'", choices(), tmp_path / "out", on_error="ignore")
    refused("Cannot read a int", 7, tmp_path / "out")
