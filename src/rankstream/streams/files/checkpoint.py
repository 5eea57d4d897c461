"""Checkpoints: a solver, its state and its counts in one file, from which a run resumes bit for bit.

The file is a numpy archive (.npz) of plain arrays and one JSON text: nothing in it is ever executed. A digest of all of
it refuses a file that is damaged or was changed.
"""

import json
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

import numpy as np

from rankstream._core.files import whole_file
from rankstream.data.counts import ChoiceCounts
from rankstream.distances import Distance
from rankstream.learners import Learner
from rankstream.oracles import Oracle
from rankstream.solver.loop import Solver, State
from rankstream.streams.files.packing import MissingPartError, Packed, pack, under, unpack

FORMAT = "rankstream-checkpoint"
VERSION = 2  # 1, of 0.2 and 0.3, has no digest
HEADER, DIGEST = "header", "digest"
DAMAGE = (  # errors that reading a damaged archive can raise
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError),
    *(EOFError, OSError, RuntimeError, MemoryError, BadZipFile, zlib.error, struct.error),
)


class Checkpoint(NamedTuple):
    """The parts of a run that can be resumed."""

    solver: Solver
    state: State
    counts: ChoiceCounts | None


def save(path: str | os.PathLike[str], solver: Solver, state: State, counts: ChoiceCounts | None = None) -> None:
    """Write a run to a file, so that ``load`` resumes exactly.

    The file is written under a temporary name and then renamed: a crash leaves the old file, never half a new one.
    Items must be text, whole numbers, booleans or None. Parts that are not built in are not saved: pass them to
    ``load``.

    Examples
    --------
    >>> import tempfile
    >>> from rankstream import Assortments, distances, learners, oracles
    >>> offers = Assortments([("tea", "nothing")])
    >>> solver = Solver(offers, distances.L2(offers), learners.DualAveraging(), oracles.auto(offers))
    >>> state = solver.step(solver.init(), [0.5, 0.5])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/run.npz", solver, state)
    ...     resumed = load(f"{folder}/run.npz")
    >>> resumed.solver.model(resumed.state) == solver.model(state)
    True
    """
    write(path, [pack(solver, state, counts)], {})


def load(
    path: str | os.PathLike[str],
    *,
    distance: Distance | None = None,
    learner: Learner[Any] | None = None,
    oracle: Oracle | None = None,
) -> Checkpoint:
    """Read what ``save`` wrote; pass parts that are not built in, unchanged."""
    return read_runs(path, distance=distance, learner=learner, oracle=oracle)[0][0]


def write(path: str | os.PathLike[str], runs: list[Packed], more: dict[str, Any]) -> None:
    """Write packed runs, and any other JSON values, to one file."""
    header = {"format": FORMAT, "version": VERSION, "runs": [described for described, _ in runs], "more": more}
    arrays = {f"{number}.{name}": array for number, (_, packed) in enumerate(runs) for name, array in packed.items()}
    arrays[HEADER] = np.frombuffer(json.dumps(header, default=np.generic.item).encode(), dtype=np.uint8)
    arrays[DIGEST] = digest_of(arrays)
    with whole_file(path) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def digest_of(arrays: dict[str, Any]) -> Any:
    """Return a digest of arrays, their names, types and shapes."""
    digest = blake2b(digest_size=16)
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        digest.update(repr((name, array.dtype.str, array.shape)).encode())
        digest.update(array.tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)


def read_runs(path: str | os.PathLike[str], **parts: Any) -> tuple[list[Checkpoint], dict[str, Any]]:
    """Read what ``write`` wrote, with ``parts`` as in ``load``; raise a ValueError if the file is damaged."""
    content = Path(path).read_bytes()
    try:
        with ZipFile(BytesIO(content)) as file:  # nothing is compressed: larger contents could be a zip bomb
            if sum(part.file_size for part in file.infolist()) > len(content):
                raise ValueError("its contents are larger than the file")
        with np.load(BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        digest = arrays.pop(DIGEST, None)
        is_whole = digest is not None and digest.tobytes() == digest_of(arrays).tobytes()
        header = json.loads(arrays.pop(HEADER).tobytes())
    except DAMAGE as error:
        raise ValueError(
            f"{path} is not a complete checkpoint ({_reason(error)}): it may be truncated; use an older one."
        ) from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"{path} is not a rankstream checkpoint: its format is not {FORMAT!r}.")
    version = header.get("version")
    if type(version) is int and version > VERSION:
        raise ValueError(f"{path} has version {version}, this rankstream reads up to {VERSION}: update rankstream.")
    if not is_whole and (digest is not None or version != 1):
        raise ValueError(f"{path} is a damaged checkpoint (its digest is of another content): use an older one.")
    with explained(path):
        packed = [(run, under(f"{number}.", arrays)) for number, run in enumerate(header["runs"])]
        runs = [Checkpoint(*unpack(run, parts)) for run in packed]
        return runs, header["more"]


@contextmanager
def explained(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors from a file's content into ValueErrors that name the file."""
    try:
        yield
    except MissingPartError as error:
        raise ValueError(f"{path} cannot be resumed as it is: {error}.") from None
    except DAMAGE as error:
        raise ValueError(f"{path} is a damaged checkpoint ({_reason(error)}): use an older one.") from None


def _reason(error: BaseException) -> str:
    return f"no {error}" if isinstance(error, KeyError) else str(error).rstrip(".") or type(error).__name__
