"""State files that somebody changed: a sentence that names the file and the remedy, never a traceback or a hang."""

import json
import random
import shutil
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankstream.streams.live import Live
from shell import run

KINDS = {
    "plain": (),
    "half-life": ("--half-life", "50"),
    "window": ("--window", "4d"),
    "detect": ("--detect", "--half-life", "60"),
    "search": (),
    "prices": ("--price-levels", '{"a": [1, 2], "b": [1, 2, 3]}'),
}
VALUES: list[Any] = [
    *(None, True, -1, 0, 10**400, 2**63, 1e308, float("nan"), float("inf"), 0.5, 1e-320),
    *("", "x", "\ud800", "9" * 5000, [], {}, [[]], [None], {"a": 1}),
]
NUMBERS = [float("nan"), float("inf"), -float("inf"), -1.0, 1e308, 0.0]
CODES = [-1, 10**6, 2**62, -(2**63), 1]
NESTED = (
    b'{"format": "rankstream-checkpoint", "version": 1, "runs": [], "more": ' + 90_000 * b"[" + 90_000 * b"]" + b"}"
)
HEADERS = [b"", b"\xff", b"nan", 100_000 * b"[", b'{"format": "rankstream-checkpoint"}', NESTED]


def lines(kind: str, start: int, end: int) -> str:
    def one(number: int) -> str:
        drawn = random.Random(number % 40 if kind == "search" else number)
        offer = drawn.sample(range(30), 8) if kind == "search" else drawn.sample(["a", "b", 3, "d", "e"], 3)
        chosen = random.Random(number).choice(offer)
        if kind == "prices":
            prices = {item: drawn.choice([1, 2]) if item in ("a", "b") else None for item in offer}
            return json.dumps({"offered": prices, "chosen": str(chosen)})
        return json.dumps({"offered": offer, "chosen": chosen, "time": 3600 * number})

    return "".join(one(number) + "\n" for number in range(start, end))


def follow(folder: Path, *words: str) -> Any:
    return run("stream", "--publish", "sparse", "s.jsonl", "--out", "out", "--to-end", *words, cwd=folder)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Streams that were stopped halfway."""
    found = {}
    for kind, words in KINDS.items():
        folder = found[kind] = tmp_path_factory.mktemp("stopped")
        (folder / "s.jsonl").write_text(lines(kind, 0, 90))
        assert follow(folder, "--rounds", "2", *words).returncode == 0
        (folder / "s.jsonl").write_text(lines(kind, 0, 160))
    return found


def places(content: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where anything is in JSON."""
    inner: list[Any] = list(content) if isinstance(content, dict) else []
    inner = list(range(min(5, len(content)))) if isinstance(content, list) else inner
    for key in inner:
        yield (*place, key)
        yield from places(content[key], (*place, key))


def changed_header(content: Any, draw: random.Random) -> bytes:
    """Another value somewhere, or none."""
    *way, last = draw.choice(list(places(content)))
    inner = content
    for key in way:
        inner = inner[key]
    if draw.random() < 0.25:
        del inner[last]
    else:
        inner[last] = draw.choice(VALUES)
    return json.dumps(content).encode()


def changed_array(array: Any, draw: random.Random) -> Any:
    """Of another shape or type, or with another number in it."""
    others = [array[:0], np.tile(array, 2), array.astype(str), array.astype(complex), array[..., None], np.array(7)]
    if draw.random() < 0.5 or not array.size or array.dtype.kind == "b":
        return draw.choice(others)
    other = array.copy()
    other.reshape(-1)[draw.randrange(other.size)] = draw.choice(NUMBERS if array.dtype.kind == "f" else CODES)
    return other


def hostile(whole: bytes, draw: random.Random) -> bytes:
    """A state file in which something is wrong, or may be."""
    way = draw.choice(["cut", "bytes", "header", "header", "text", "missing", "array", "array"])
    if way == "cut":
        return whole[: draw.randrange(len(whole))]
    if way == "bytes":
        changed = bytearray(whole)
        for _ in range(5):
            changed[draw.randrange(len(whole))] = draw.randrange(256)
        return bytes(changed)
    with np.load(BytesIO(whole)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = arrays.pop("header").tobytes()
    name = draw.choice(sorted(arrays))
    if way == "missing":
        del arrays[name]
    if way == "array":
        arrays[name] = changed_array(arrays[name], draw) if arrays[name].ndim else np.array(np.nan)
    if way in ("header", "text"):
        header = changed_header(json.loads(header), draw) if way == "header" else draw.choice(HEADERS)
    file = BytesIO()
    np.savez(file, header=np.frombuffer(header, dtype=np.uint8), **arrays)
    return file.getvalue()


def rewrite(path: Path, to: Path, change: Any) -> None:
    """A state file with a change in its header or arrays."""
    with np.load(path) as archive:
        whole: dict[str, Any] = {name: archive[name].copy() for name in archive.files}
    whole["header"] = json.loads(whole["header"].tobytes())
    change(whole)
    whole["header"] = np.frombuffer(json.dumps(whole["header"]).encode(), dtype=np.uint8)
    np.savez(to, **whole)


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_state_is_refused_or_goes_on(kind: str, folders: dict[str, Path], tmp_path: Path) -> None:
    whole, draw, refused = (folders[kind] / "out" / "state.npz").read_bytes(), random.Random(kind), 0
    folder = Path(shutil.copytree(folders[kind], tmp_path / kind))
    for _ in range(30):
        (folder / "out" / "state.npz").write_bytes(hostile(whole, draw))
        done = follow(folder, "--json")
        if done.returncode == 0:
            assert json.loads(done.stdout.splitlines()[-1])["gap"] >= 0.0
            continue
        refused += 1
        sentence = done.stderr
        assert sentence.startswith("rankstream: "), sentence
        if done.returncode == 2:
            assert "out/state.npz" in sentence or "another folder (--out ...)" in sentence
        else:  # the place is not in the source
            assert (done.returncode, "begin again in another folder" in sentence) == (1, True)
        assert sentence.count("\n") == 1
        assert "Traceback" not in sentence
    assert refused > 15


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda whole: whole["header"]["more"].update(at=[1, 2]), "not enough values to unpack"),
        (lambda whole: whole["header"]["more"].update(at=[-1, 2, 3]), "its place [-1, 2, 3] is not of whole numbers"),
        (lambda whole: whole["header"]["more"].update(file={"inode": "x"}), "the file of its place is"),
        (lambda whole: whole["header"]["more"].update(reading={"columns": 3}), "how it is read is"),
        (lambda whole: whole["header"]["more"]["live"].update(records=-3), "its number of records is '-3'"),
        (lambda whole: whole["header"]["more"]["live"].update(half_life=9.0), "forget differently"),
        (lambda whole: whole["header"]["runs"][0].update(round=-1), "a negative number of rounds"),
        (lambda whole: whole["header"]["runs"][0]["items"].__setitem__(0, "\ud800"), "has half a character"),
        (lambda whole: whole["header"]["runs"][0]["learner_state"].update(kind="plain"), "belongs to another learner"),
        (lambda whole: whole["0.weights"].__setitem__(0, np.nan), "weights of rankings are not all finite"),
        (lambda whole: whole["0.weights"].__imul__(2.0), "its rankings weigh"),
        (lambda whole: whole["0.sums.vertex"].__imul__(3.0), "the choices from an offer weigh"),
        (lambda whole: whole["0.counts.tallies"].__imul__(-1.0), "its counts are not all finite, or below 0"),
        (lambda whole: whole["0.counts.totals"].__imul__(2.0), "do not sum to its total"),
        (lambda whole: whole["0.members"].__setitem__(0, -1), "unknown items"),
    ],
)
def test_what_is_wrong_is_said(change: Any, message: str, folders: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders["plain"], tmp_path / "plain"))
    path = folder / "out" / "state.npz"
    rewrite(path, path, change)
    done = follow(folder)
    assert done.returncode == 2
    assert done.stderr.startswith("rankstream: out/state.npz is a damaged checkpoint (")
    assert done.stderr.endswith("): use an older one.\n")
    assert message in done.stderr


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("detect", lambda whole: kept(whole).update(pending=[-1]), "its number of choices is '-1'"),
        ("detect", lambda whole: kept(whole).update(pending=[10**6]), "belongs to no offer"),
        ("detect", lambda whole: kept(whole).update(statistic=float("nan")), "its evidence are not all finite"),
        ("detect", lambda whole: whole["header"]["runs"][1]["items"].reverse(), "two models of different markets"),
        ("search", lambda whole: whole.update({"0.oracle.pool": whole["0.oracle.pool"][:0]}), "of another kind"),
        ("search", lambda whole: whole["0.oracle.pool"].__setitem__((0, 0), 29), "does not order all items"),
        ("search", lambda whole: whole["0.oracle.known"].__setitem__(0, 10**6), "too many corners"),
        ("search", lambda whole: whole["0.oracle.chosen"].__setitem__((0, 0), -1), "corners that do not exist"),
        ("search", lambda whole: whole["0.oracle.point"].__setitem__(0, np.inf), "point are not all finite"),
    ],
)
def test_what_detectors_and_oracles_remember_is_checked(
    kind: str, change: Any, message: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    path = tmp_path / "state.npz"
    rewrite(folders[kind] / "out" / "state.npz", path, change)
    with pytest.raises(ValueError, match=rf"damaged checkpoint \(.*{message}.*\): use an older one"):
        Live.load(path)


def kept(whole: dict[str, Any]) -> Any:
    return whole["header"]["more"]["watched"]["found"]


def test_a_packed_archive_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    """Ten thousand zeros take a few bytes, and a billion not many more."""
    with np.load(folders["plain"] / "out" / "state.npz") as archive:
        np.savez_compressed(tmp_path / "state.npz", **{**archive, "zeros": np.zeros(10_000)})
    with pytest.raises(ValueError, match=r"its contents are larger than the file.*use an older one"):
        Live.load(tmp_path / "state.npz")
