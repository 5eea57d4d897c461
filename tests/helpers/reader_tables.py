"""The same five choices in every format that can be read, and every way to give them."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from rankstream import Assortments, ChoiceCounts

RECORDS = [("tea;pie", "tea"), ("pie;tea", "pie"), ("tea;pie;cake", "cake"), ("cake;tea", "tea"), ("tea;pie", "tea")]


def expected() -> ChoiceCounts:
    counts = ChoiceCounts(
        Assortments([("cake", "tea"), ("pie", "tea"), ("cake", "pie", "tea")], ["cake", "pie", "tea"])
    )
    for offered, chosen in RECORDS:
        counts.observe(tuple(offered.split(";")), chosen)
    return counts


def same(found: ChoiceCounts) -> None:
    wanted = expected()
    assert found.assortments == wanted.assortments
    assert found.tallies.tolist() == wanted.tallies.tolist()


def transactions() -> pd.DataFrame:
    return pd.DataFrame(RECORDS, columns=["offered", "chosen"])


def lists() -> pd.DataFrame:
    return pd.DataFrame([(offered.split(";"), chosen) for offered, chosen in RECORDS], columns=["offered", "chosen"])


def long() -> pd.DataFrame:
    rows = [
        (number, item, int(item == chosen), 9.5)
        for number, (offered, chosen) in enumerate(RECORDS)
        for item in offered.split(";")
    ]
    return pd.DataFrame(rows, columns=["obs_id", "alt_id", "choice", "price"]).sample(frac=1, random_state=0)


def wide() -> pd.DataFrame:
    rows = [
        {item: int(item in offered.split(";")) for item in ("tea", "pie", "cake")} | {"chosen": chosen}
        for offered, chosen in RECORDS
    ]
    return pd.DataFrame(rows)


def tallies() -> pd.DataFrame:
    counted = Counter(RECORDS)
    rows = [(*record, number) for record, number in counted.items()]
    return pd.DataFrame(rows, columns=["offer", "item", "count"])


def named() -> pd.DataFrame:
    frame = long().drop(columns="price")
    frame["choice"] = frame["obs_id"].map(lambda number: RECORDS[number][1])
    return frame.set_axis(["case", "alt", "choice"], axis=1)


CODES = {"tea_AV": 1, "AV_pie": 2, "cake.avail": 7}


def coded() -> pd.DataFrame:
    frame = wide()
    codes = {"tea": 1, "pie": 2, "cake": 7}
    frame["chosen"] = frame["chosen"].map(codes)
    return frame.set_axis([*CODES, "CHOICE"], axis=1).assign(ID=3, tea_TT=9.5, CUT=0)


NUMBERS = {"tea;pie": 10, "cake;tea": 20, "cake;pie;tea": 30, "pie;tea": 40}


def held() -> pd.DataFrame:
    rows = [(number, item) for offer, number in NUMBERS.items() for item in offer.split(";")]
    return pd.DataFrame(rows, columns=["offer_id", "item"])


def sold() -> pd.DataFrame:
    numbers = {tuple(sorted(offer.split(";"))): number for offer, number in NUMBERS.items()}
    rows = [(numbers[tuple(sorted(offer.split(";")))], item) for offer, item in RECORDS]
    return pd.DataFrame(rows, columns=["offer_id", "chosen"])


def listed() -> pd.DataFrame:
    found = Counter(zip(sold()["offer_id"], sold()["chosen"], strict=True))
    frame = held()
    return frame.assign(count=[found[number, item] for number, item in frame.itertuples(index=False)])


def chosen_only() -> pd.DataFrame:
    return transactions().rename(columns={"chosen": "depvar"})[["depvar"]]


FORMATS: dict[str, tuple[Callable[[], pd.DataFrame], dict[str, Any], str, int]] = {
    "transactions": (transactions, {}, "transactions", 5),
    "lists": (lists, {}, "transactions", 5),
    "long": (long, {}, "long", 5),
    "long, choices named": (named, {}, "long", 5),
    "wide": (wide, {}, "wide", 5),
    "wide, choices coded": (coded, {"columns": {"items": CODES}}, "wide", 5),
    "counts": (tallies, {}, "counts", 4),
    "counts, offers numbered": (listed, {}, "counts", 9),
    "transactions, offers numbered": (sold, {"contents": held()}, "transactions", 5),
}
WAYS = ["csv", "csv.gz", "tsv", "jsonl", "jsonl.gz", "parquet", "pandas", "polars", "lazy", "arrow"]


def given_as(frame: pd.DataFrame, way: str, folder: Path) -> Any:
    path = folder / f"data.{way}"
    if way.startswith(("csv", "tsv")):
        frame.to_csv(path, index=False, sep="\t" if way == "tsv" else ",")
    elif way.startswith("jsonl"):
        frame.to_json(path, orient="records", lines=True)
    elif way == "parquet":
        pq.write_table(pa.Table.from_pandas(frame), path)
    else:
        polars = pl.DataFrame(frame.to_dict(orient="list"))
        return {"pandas": frame, "polars": polars, "lazy": polars.lazy(), "arrow": polars.to_arrow()}[way]
    return path


BALLOTS = """# FILE NAME: votes.toi
# NUMBER ALTERNATIVES: 3
# ALTERNATIVE NAME 1: ann
# ALTERNATIVE NAME 2: bob
# ALTERNATIVE NAME 3: cid
4: 1,2,3
2: {2,3},1
3: 3
"""
