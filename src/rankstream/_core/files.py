"""Files that are there whole or not at all: written under a temporary name, then renamed."""

import os
from pathlib import Path


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write text or bytes; whatever happens meanwhile, the old file or the new one is there, never half of one."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent} to save {target.name} in: make it first.")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
