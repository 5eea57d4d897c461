"""Atomic file writes (temporary file, then rename), and folders locked by one process."""

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

PICTURE_ENDINGS = (".png", ".svg", ".pdf", ".jpg", ".jpeg")


def check_target(target: Path, what: str = "the output") -> None:
    """Raise a ValueError unless ``target`` can be written: not a folder, a device, a pipe or a service's database."""
    if not target.parent.is_dir():
        raise ValueError(f"The folder {target.parent} does not exist: create it first.")
    if target.is_dir():
        raise ValueError(f"{target} is a folder: give a file name for {what}.")
    if target.exists() and not target.is_file():
        raise ValueError(f"{target} is a device or a pipe: give a regular file for {what}.")
    reserved = target.name == LOCK or target.name.endswith((".sqlite3-wal", ".sqlite3-shm"))
    with suppress(OSError), target.open("rb") as file:
        reserved = reserved or file.read(len(SQLITE)) == SQLITE
    if reserved:
        raise ValueError(f"{target} belongs to a database or a service: choose another file for {what}.")


@contextmanager
def whole_file(path: str | os.PathLike[str], sync: bool = True, mode: int = 0o666) -> Iterator[Path]:
    """Yield a temporary path to write to, and rename it to ``path`` at the end.

    Readers see the old file or the new one, never a part. The temporary name is random and the file is created
    exclusively, so that a planted link is an error and is not followed. Without ``sync``, the write survives a killed
    process but not a power failure: use that for many small files that are validated when read.
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
    """Flush a rename to disk, where the system allows that."""
    if os.name == "posix":
        with suppress(OSError):  # some network drives cannot
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def write_whole(path: str | os.PathLike[str], content: str | bytes, sync: bool = True, mode: int = 0o666) -> None:
    """Write text or bytes atomically (see ``whole_file``)."""
    with whole_file(path, sync, mode) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def same_file(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> bool:
    """Return whether two paths lead to the same file, which need not exist yet.

    >>> same_file("a/../choices.csv", "choices.csv")
    True
    """
    with suppress(OSError, ValueError):
        if Path(first).samefile(second):
            return True
    return Path(first).resolve() == Path(second).resolve()


@contextmanager
def own_folder(folder: Path, remedy: str = "stop it first, or choose another folder") -> Iterator[None]:
    """Lock a folder for this process, and remove temporary files that a killed process left.

    Creates the folder if it is missing. The system releases the lock when the process ends, however it ends.
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
        for temporary in folder.glob(f".*{TEMPORARY}"):
            temporary.unlink(missing_ok=True)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Lock an open file until it is closed; raise a BlockingIOError if another process holds the lock."""
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
    """Raise a ValueError before the work starts if no picture can be written to ``path``."""
    check_target(path, "the picture")
    if path.suffix.lower() not in PICTURE_ENDINGS:
        raise ValueError(f"{path.name} is not the name of an image: use one that ends in .png, .svg, .pdf or .jpg.")


def save_picture(figure: Any, path: Path) -> None:
    """Write a figure atomically, in the format of the file's ending."""
    with whole_file(path) as temporary:
        figure.savefig(temporary, format=path.suffix.lstrip(".").lower(), dpi=150)
