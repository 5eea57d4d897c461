"""A folder for compiled kernels that belongs to the kernels as they are: a change of any gives another folder.

numba compiles a function again when its own file changes, and does not notice a change of what it calls in other files.
``python tests/helpers/kernel_cache.py`` prints the folder, for ``NUMBA_CACHE_DIR``.
"""

import ast
import shutil
import sys
import time
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMPILES = "rankstream._core.compilation"
UNUSED_DAYS = 7  # folders of other kernels stay as long, so that branches keep theirs


def kernel_files(source: Path) -> list[Path]:
    """The files that compile functions, how they do, and the files that these take constants from."""
    compiling = [path for path in source.rglob("*.py") if COMPILES in path.read_text(encoding="utf-8")]
    found = {source / f"{COMPILES.replace('.', '/')}.py", *compiling}
    for path in compiling:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and any(name.name.isupper() for name in node.names):
                found.add(source / f"{(node.module or '').replace('.', '/')}.py")
    return sorted(path for path in found if path.exists())


def digest(source: Path) -> str:
    """A name that changes with the name or the content of a kernel file."""
    total = sha256()
    for path in kernel_files(source):
        total.update(path.relative_to(source).as_posix().encode() + b"\0" + sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def cache_folder(root: Path = ROOT) -> Path:
    """The folder of today's kernels; those that were not used for a week are removed."""
    folder = root / ".numba" / digest(root / "src")
    folder.mkdir(parents=True, exist_ok=True)
    folder.touch()
    for other in folder.parent.iterdir():
        if other.stat().st_mtime < time.time() - 86_400 * UNUSED_DAYS:
            shutil.rmtree(other, ignore_errors=True)
    return folder


if __name__ == "__main__":
    sys.stdout.write(f"{cache_folder()}\n")
