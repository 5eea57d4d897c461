"""Hostile files: tiny good ones of every kind that the command line reads, and what people and disks do to them."""

import gzip
import io
import json
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import pyarrow
import pyarrow.parquet

from rankstream import Assortments, ChoiceCounts, EntropyModel, Live, RankingModel, Record, estimate
from rankstream.models.entropy.ranking_laws import plackett_luce

Table = list[list[Any]]
ITEMS = ("tea", "pie", "rum", "nothing")
ODD = [
    "", " ", "nan", "NaN", "inf", "-inf", "-1", "0", "1e999", "1e308", "1e-320", "0.5", "007", "9" * 40, "true", "null",
    "None", ";", ",", "tea;tea", "tea;", ";tea", "é", "\u202e", "\x00", "'", '"', '""', "=1+1", "\\", "\ufeff", "[]",
    "2024-02-30", "2024-01-01T00:00:00Z", "1970-01-01", "9999-12-31", "{}", "tea\npie", "\r", "\t", "a" * 999,
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 2, 3, 10**30, -(10**400), 0.5, 1e308, float("nan"), float("inf"), "", "x", "a" * 3000,
    [], {}, [[]], [None], [1, "1"], {"a": 1}, "\ud800", "tea", ["tea"], ["tea", "tea"], "rankstream-model",
]  # fmt: skip
PIECES = [
    b";", b",", b"\n", b"\r\n", b"{", b"}", b"[", b"]", b'"', b"0", b"-", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\t",
    b"nan", b"1e999", b"\\ud800", b"tea", b"nothing", b":", b"\xe2\x80\xae", b"'", b"\x1a", b"PAR1", b"PK\x03\x04",
]  # fmt: skip


def table(random: Random) -> Table:
    """A few good transactions, with or without times and counts."""
    heads = ["time", "offered", "chosen", "count"]
    rows: Table = []
    for _ in range(random.randint(1, 10)):
        offer = random.sample(ITEMS, random.randint(2, 4))
        day = f"2024-0{random.randint(1, 3)}-{random.randint(1, 28):02}"
        rows.append([day, ";".join(offer), random.choice(offer), random.randint(1, 30)])
    kept = [0] * random.randint(0, 1) + [1, 2] + [3] * random.randint(0, 1)
    kept = [1, 2] + ([0] if 0 in kept else []) + ([3] if 3 in kept else [])
    return [[row[place] for place in kept] for row in [heads, *rows]]


def spoilt_table(random: Random) -> Table:
    """The same with cells, rows or columns that are not as they should be."""
    rows = table(random)
    for _ in range(random.choice([0, 0, 1, 2])):
        row = random.randrange(len(rows))
        match random.randrange(8):
            case 0 | 1 | 2 if rows[row]:
                rows[row][random.randrange(len(rows[row]))] = random.choice(ODD)
            case 3:
                rows[row].append(random.choice(ODD))
            case 4 if rows[row]:
                rows[row].pop()
            case 5:
                rows.insert(random.randrange(len(rows) + 1), list(rows[row]))
            case 6:
                rows = rows[:row]
            case _:
                rows = [[*cells, random.choice(ODD)] for cells in rows]
        if not rows:
            break
    return rows


def separated(random: Random, comma: str) -> bytes:
    """A table as text; quoted or not, with one of the line ends in use."""
    quote = random.random() < 0.3
    cells = [
        [json.dumps(str(cell), ensure_ascii=False) if quote else str(cell) for cell in row]
        for row in spoilt_table(random)
    ]
    end = random.choice(["\n", "\n", "\r\n", "\r"])
    return "".join(comma.join(row) + end for row in cells).encode("utf-8", "surrogatepass")


def records(random: Random) -> list[Any]:
    """The same as JSON values."""
    heads, *rows = table(random)
    found: list[Any] = []
    for row in rows:
        record = dict(zip(heads, row, strict=True))
        record["offered"] = record["offered"].split(";")
        found.append(record)
    return found


def spoilt_value(random: Random, value: Any) -> Any:
    """A JSON value with one part of it changed, lost or doubled."""
    if not isinstance(value, dict | list) or not value or random.random() < 0.15:
        return random.choice(VALUES)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key, changed = random.choice(keys), cast("Any", value).copy()
    match random.randrange(6):
        case 0:
            del changed[key]
        case 1 if isinstance(changed, list):
            changed.append(changed[key])
        case 1:
            changed[random.choice(["format", "count", "x", "", "weights"])] = changed[key]
        case _:
            changed[key] = spoilt_value(random, value[key])
    return changed


def lines(random: Random) -> bytes:
    """JSON lines."""
    found = records(random)
    for _ in range(random.choice([0, 0, 1, 2])):
        place = random.randrange(len(found))
        found[place] = spoilt_value(random, found[place])
    return "".join(json.dumps(one) + "\n" for one in found).encode()


def array(random: Random) -> bytes:
    """One JSON array."""
    found: Any = records(random)
    for _ in range(random.choice([0, 0, 1, 2])):
        found = spoilt_value(random, found)
    return json.dumps(found).encode()


def parquet(random: Random) -> bytes:
    """A Parquet file, of text and numbers or of text alone."""
    heads, *rows = table(random)
    texts = random.random() < 0.5
    columns = {}
    for place, head in enumerate(heads):
        cells = [row[place] for row in rows]
        if random.random() < 0.3:
            cells[random.randrange(len(cells))] = random.choice([None, *ODD]) if isinstance(cells[0], str) else None
        columns[str(head)] = [None if cell is None else str(cell) if texts else cell for cell in cells]
    if random.random() < 0.1:
        columns.pop(random.choice(list(columns)))
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), out)
    return out.getvalue()


def preflib(random: Random) -> bytes:
    """Ballots as PrefLib writes them."""
    rows = ["# ALTERNATIVE NAME 1: tea", "# ALTERNATIVE NAME 2: pie", "# ALTERNATIVE NAME 3: rum"]
    for _ in range(random.randint(1, 4)):
        ranked = ",".join(random.sample("123", random.randint(1, 3)))
        rows.append(f"{random.randint(1, 9)}: {random.choice([ranked, '{1,2},3', ranked, random.choice(ODD)])}")
    return "\n".join(rows).encode("utf-8", "surrogatepass")


def items(random: Random) -> bytes:
    """A table of what items earn."""
    rows: Table = [["item", "margin"], *([item, random.randint(0, 9)] for item in ITEMS)]
    rows[-1][1] = 0
    if random.random() < 0.5:
        rows = [[*row, random.choice(["1", "2", random.choice(ODD)])] for row in rows]
        rows[0][2] = random.choice(["space", "listing_cost", "price"])
    for _ in range(random.choice([0, 0, 1, 2])):
        row = random.choice(rows)
        row[random.randrange(len(row))] = random.choice(ODD)
    return "\n".join(",".join(map(str, row)) for row in rows).encode("utf-8", "surrogatepass")


def offers(random: Random) -> bytes:
    """Offers, one in every line."""
    rows = [";".join(random.sample(ITEMS, random.randint(1, 4))) for _ in range(random.randint(1, 3))]
    rows.append(random.choice(ODD) if random.random() < 0.5 else '["tea", "pie"]')
    return "\n".join(rows).encode("utf-8", "surrogatepass")


def study(random: Random) -> bytes:
    """Settings of a study."""
    rows = ['kind = "static"', 'methods = ["MD_ns"]', "tolerance = 0.5", "largest = [3]", "items = [4]"]
    odd = [row.split("=")[0] + "= " + random.choice([*ODD, "[]", '"x"', "-3", "[0]"]) for row in rows]
    kept = [random.choice([row, row, row, other]) for row, other in zip(rows, odd, strict=True)]
    return "\n".join(kept[: random.randint(1, 5)]).encode("utf-8", "surrogatepass")


@cache
def saved_models() -> tuple[bytes, ...]:
    """The files of every kind of model."""
    listed = Assortments([("tea", "pie"), ("rum", "nothing", "tea")], ITEMS)
    counts = ChoiceCounts(listed, [4, 6, 3, 5, 2])
    tilted = EntropyModel(
        plackett_luce(listed.items, [1.0, 1.0, 2.0, 1.0]), listed, np.array([0.0, 1.0, 0.0, 0.5, 0.0])
    )
    ranked = RankingModel(ITEMS, [("tea", "pie", "nothing", "rum"), ("nothing", "tea", "pie", "rum")], [0.75, 0.25])
    fitted = [estimate(counts, method=name).model for name in ("mnl", "latent-class", "markov-chain")]
    found: list[Any] = [ranked, tilted, *fitted]
    with TemporaryDirectory() as folder:
        for number, model in enumerate(found):
            model.save(Path(folder) / str(number))
        return tuple((Path(folder) / str(number)).read_bytes() for number in range(len(found)))


def model(random: Random) -> bytes:
    """A model file."""
    content = json.loads(random.choice(saved_models()))
    for _ in range(random.choice([0, 0, 1, 2])):
        content = spoilt_value(random, content)
    return json.dumps(content).encode()


@cache
def saved_state(source: str, kind: int) -> bytes:
    """What ``stream`` leaves of a few records of a source: plain, with a window, with a detector."""
    live = (Live(), Live(window=5), Live(detect=True))[kind]
    live.observe([Record(("tea", "nothing"), "tea", 40), Record(("pie", "tea"), "pie", 30)])
    with TemporaryDirectory() as folder:
        live.save(Path(folder) / "state.npz", {"source": source, "at": [0, 1, 0]})
        return (Path(folder) / "state.npz").read_bytes()


def checkpoint(random: Random, source: str) -> bytes:
    """The archive of a stream, with arrays or its header changed."""
    with np.load(io.BytesIO(saved_state(source, random.randrange(3)))) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for _ in range(random.choice([0, 0, 1, 2])):
        if not arrays:
            break
        name = random.choice(list(arrays))
        match random.randrange(5):
            case 0:
                arrays.pop(name)
            case 1:
                arrays[name] = arrays[name].ravel()[: random.randint(0, 2)]
            case 2 if arrays[name].dtype.kind in "fi" and arrays[name].size:
                with np.errstate(all="ignore"):
                    arrays[name] = arrays[name] * random.choice([-1, 0, 7, 10**12])
            case 3 if arrays[name].dtype.kind in "US":
                spoilt = spoilt_value(random, json.loads(str(arrays[name])))
                arrays[name] = np.array(json.dumps(spoilt))
            case _:
                arrays[name] = np.array(random.choice([np.nan, -1.0, 1e308, 5.0]))
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


@cache
def saved_service() -> dict[str, bytes]:
    """The files of a service with a token and an empty log."""
    from rankstream.service.storage import tokens
    from rankstream.service.storage.log import open_log

    with TemporaryDirectory() as folder:
        tokens.create(Path(folder), ["cafe"], ["read"])
        open_log(Path(folder)).close()
        return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}


def write_service(folder: Path, random: Random | None) -> None:
    """The folder of a service; with ``random``, one of its files damaged or gone."""
    folder.mkdir()
    files = dict(saved_service())
    if random is not None:
        name = random.choice(sorted(files))
        files[name] = damaged(random, damaged(random, files[name]))
        if random.random() < 0.1:
            del files[name]
    for name, content in files.items():
        (folder / name).write_bytes(content)


def damaged(random: Random, content: bytes) -> bytes:
    """Bytes with some changed, lost, doubled or put in; or others altogether."""
    if random.random() < 0.04:
        return random.randbytes(random.randint(0, 60))
    for _ in range(random.choice([0, 0, 0, 1, 1, 2])):
        start = random.randint(0, len(content))
        stop = min(len(content), start + random.choice([0, 1, 1, 5, 30, 10**6]))
        piece = random.choice(
            [b"", random.choice(PIECES), random.choice(PIECES), random.randbytes(2), content[start:stop] * 2]
        )
        content = content[:start] + piece + content[stop:]
    return content


def hostile(random: Random, ending: str, source: str = "") -> bytes:
    """A file of a kind, told by its ending, that is nearly good."""
    inner, packed = (ending.removesuffix(".gz"), True) if ending.endswith(".gz") else (ending, False)
    makers = {
        ".tsv": lambda: separated(random, "\t"),
        ".jsonl": lambda: lines(random),
        ".json": lambda: array(random),
        ".parquet": lambda: parquet(random),
        ".soi": lambda: preflib(random),
        ".model": lambda: model(random),
        ".items": lambda: items(random),
        ".offers": lambda: offers(random),
        ".toml": lambda: study(random),
        ".npz": lambda: checkpoint(random, source),
    }
    content = makers.get(inner, lambda: separated(random, ","))()
    content = damaged(random, content) if not packed or random.random() < 0.5 else content
    return damaged(random, gzip.compress(content, mtime=0)) if packed else content
