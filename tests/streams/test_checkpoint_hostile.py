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

from rankstream.streams.files import checkpoint
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
    if draw.random() < 0.5 or not array.size or array.dtype.kind in "bu":
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


def rewrite(path: Path, to: Path, change: Any, version: int = checkpoint.VERSION) -> None:
    """A state file with a change in its header or arrays; files of version 1 have no digest."""
    with np.load(path) as archive:
        whole: dict[str, Any] = {name: archive[name].copy() for name in archive.files}
    whole["header"] = json.loads(whole["header"].tobytes()) | {"version": version}
    if version == 1:
        del whole["digest"]
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
    "change",
    [
        lambda whole: whole["header"]["more"].update(at=[1, 2]),
        lambda whole: whole["header"]["more"]["live"].update(half_life=9.0),
        lambda whole: whole["header"]["runs"][0]["items"].__setitem__(0, "\ud800"),
        lambda whole: whole["0.weights"].__imul__(1.0 + 1e-15),
        lambda whole: whole.update({"0.weights": whole["0.weights"][:, None]}),
        lambda whole: whole.update({"0.members": whole["0.members"].astype(np.int32)}),
        lambda whole: whole.update({"0.more": np.zeros(1)}),
        lambda whole: whole.pop("0.seen", whole.pop("0.orders")),
        lambda whole: whole.pop("digest"),
    ],
)
def test_every_change_is_refused(change: Any, folders: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders["plain"], tmp_path / "plain"))
    path = folder / "out" / "state.npz"
    rewrite(path, path, lambda _: None)
    assert follow(folder).returncode == 0
    rewrite(path, path, change)
    done = follow(folder)
    assert done.returncode == 2
    reason = "its digest is of another content"
    assert done.stderr == f"rankstream: out/state.npz is a damaged checkpoint ({reason}): use an older one.\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda whole: whole.update({"0.oracle.pool": whole["0.oracle.pool"][:0]}), "of another kind"),
        (lambda whole: whole["0.oracle.pool"].__setitem__((0, 0), 29), "does not order all items"),
        (lambda whole: whole["header"]["more"].update(at=[1, 2]), ""),
    ],
)
def test_what_an_oracle_of_an_earlier_version_remembers_is_checked(
    change: Any, message: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    path = tmp_path / "state.npz"
    rewrite(folders["search"] / "out" / "state.npz", path, change, version=1)
    if not message:  # such a file has no digest
        assert Live.load(path).records == 90
        return
    with pytest.raises(ValueError, match=rf"damaged checkpoint \(.*{message}.*\): use an older one"):
        Live.load(path)


def test_a_packed_archive_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    """Ten thousand zeros take a few bytes, and a billion not many more."""
    with np.load(folders["plain"] / "out" / "state.npz") as archive:
        np.savez_compressed(tmp_path / "state.npz", **{**archive, "zeros": np.zeros(10_000)})
    with pytest.raises(ValueError, match=r"its contents are larger than the file.*use an older one"):
        Live.load(tmp_path / "state.npz")
