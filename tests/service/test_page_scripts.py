"""The scripts of pages and reports have the types that their comments name."""

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.browser
def test_scripts_pass_the_type_checker(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("There is no Node to check types with: install it.")
    cache = getattr(request.config, "cache", None)  # there is none with -p no:cacheprovider
    folder = cache.mkdir("typescript") if cache else tmp_path
    if not (folder / "package").is_dir():
        try:
            subprocess.run([npm, "pack", "typescript@5"], cwd=folder, check=True, capture_output=True, timeout=120)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            pytest.skip("TypeScript cannot be had from npm: connect to it once.")
        with tarfile.open(next(folder.glob("*.tgz"))) as archive:
            archive.extractall(folder, filter="data")
    command = [node, str(folder / "package" / "lib" / "tsc.js"), "--project", str(ROOT / "jsconfig.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
