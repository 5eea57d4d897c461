"""Files that are there whole or not at all, written under a temporary name and then renamed; folders of one's own."""

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

LOCK = ".lock"
TEMPORARY = ".tmp"
SQLITE = b"SQLite format 3\0"

PICTURE_ENDINGS = (".png", ".svg", ".pdf", ".jpg", ".jpeg")  # what a picture's name may end in


def check_target(target: Path, what: str = "the output") -> None:
    """Refuse to write to a place where no file can be, or to replace a folder, a device, a pipe or a service's file."""
    if not target.parent.is_dir():
        raise ValueError(f"The folder {target.parent} does not exist: create it first.")
    if target.is_dir():
        raise ValueError(f"{target} is a folder: give a file name for {what}.")
    if target.exists() and not target.is_file():
        raise ValueError(f"{target} is a device or a pipe: give a regular file for {what}.")
    own = target.name == LOCK or target.name.endswith((".sqlite3-wal", ".sqlite3-shm"))
    with suppress(OSError), target.open("rb") as file:
        own = own or file.read(len(SQLITE)) == SQLITE
    if own:
        raise ValueError(f"{target} belongs to a database or a service: choose another file for {what}.")


@contextmanager
def whole_file(path: str | os.PathLike[str], sync: bool = True, mode: int = 0o666) -> Iterator[Path]:
    """A temporary name to write under; what is there at the end, once on disk, takes the place of ``path``.

    Whatever happens meanwhile, the old file or the new one is there, never half of one. Nobody can know the temporary
    name beforehand, and the file is made here: a link that lies in its place is an error, and is not followed.
    Without ``sync`` that is true of a process that is killed, not of a machine that loses power: for many small files
    that are checked when they are next needed.
    """
    target = Path(path)
    check_target(target)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}{TEMPORARY}")
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    try:
        yield temporary
        if sync:
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
        temporary.replace(target)
        if sync:
            _sync_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Bring the new name to disk, too, where folders can be opened for that."""
    if os.name == "posix":
        with suppress(OSError):  # some network drives cannot
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def write_whole(path: str | os.PathLike[str], content: str | bytes, sync: bool = True) -> None:
    """Write text or bytes as a whole file."""
    with whole_file(path, sync) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two names are of one file: by what they lead to where both are there, or by where they would be.

    >>> same_file("a/../choices.csv", "choices.csv")
    True
    """
    with suppress(OSError, ValueError):
        if Path(one).samefile(other):
            return True
    return Path(one).resolve() == Path(other).resolve()


@contextmanager
def own_folder(folder: Path, remedy: str = "stop it first, or choose another folder") -> Iterator[None]:
    """Make a folder if need be, and keep it to this process; what a process that was killed left half is removed.

    The system gives the lock back when the process ends, however it ends.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: give a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR, 0o666)
    try:
        try:
            _lock(descriptor)
        except BlockingIOError:
            raise ValueError(f"Another process is writing to {folder}: {remedy}.") from None
        except OSError as error:
            raise ValueError(f"{folder} cannot be locked ({error.strerror}): choose one on a local disk.") from None
        for left in folder.glob(f".*{TEMPORARY}"):
            left.unlink(missing_ok=True)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Lock an open file until it is closed; a BlockingIOError where another process has done so."""
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from None
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def check_picture(path: Path) -> None:
    """Refuse what would fail only after the work is done."""
    check_target(path, "the picture")
    if path.suffix.lower() not in PICTURE_ENDINGS:
        raise ValueError(f"{path.name} is not the name of an image: use one that ends in .png, .svg, .pdf or .jpg.")


def save_picture(figure: Any, path: Path) -> None:
    """Write a figure as a whole file; the format follows from the ending."""
    with whole_file(path) as temporary:
        figure.savefig(temporary, format=path.suffix.lstrip(".").lower(), dpi=150)
