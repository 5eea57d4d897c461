"""The command line as a shell would call it, but in this process: starting another one takes over a second."""

import io
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from rankstream.cli import main


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    out, err, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, chdir(cwd), redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["rankstream", *words])
        patch.setattr(sys, "excepthook", sys.excepthook)  # typer sets its own
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def streaming(*words: object) -> list[str]:
    """The words of ``rankstream stream`` in a process of its own, serving the sparse model, which is quick."""
    return [sys.executable, "-m", "rankstream", "stream", "--publish", "sparse", *map(str, words)]
