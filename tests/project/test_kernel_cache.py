"""Compiled kernels are kept until a kernel changes, and never longer."""

import os
from pathlib import Path

import pytest
from numba.core import config

import kernel_cache

ROOT = Path(__file__).parents[2]
KERNEL = "from rankstream._core.compilation import compiled\nfrom shop.limits import MOST_ITEMS, check\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name, text in {
        "rankstream/_core/compilation.py": "import numba\n", "shop/sum_kernels.py": KERNEL, "shop/report.py": "x = 1\n",
        "shop/limits.py": "MOST_ITEMS = 3\n",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("changed", ["rankstream/_core/compilation.py", "shop/sum_kernels.py", "shop/limits.py"])
def test_compiled_code_is_kept_until_a_kernel_or_its_constants_change(source: Path, changed: str) -> None:
    before = kernel_cache.digest(source)
    (source / "shop/report.py").write_text("x = 2\n")
    os.utime(source / changed, (0, 0))
    assert kernel_cache.digest(source) == before
    (source / changed).write_text((source / changed).read_text() + "# another\n")
    assert kernel_cache.digest(source) != before


def test_a_kernel_that_moves_or_comes_is_a_change(source: Path) -> None:
    names = {kernel_cache.digest(source)}
    (source / "shop/sum_kernels.py").rename(source / "shop/total_kernels.py")
    names.add(kernel_cache.digest(source))
    (source / "shop/mean_kernels.py").write_text(KERNEL)
    names.add(kernel_cache.digest(source))
    assert len(names) == 3


def test_folders_of_other_kernels_stay_for_a_week(tmp_path: Path) -> None:
    for name in ("yesterday", "long ago"):
        (tmp_path / ".numba" / name).mkdir(parents=True)
    os.utime(tmp_path / ".numba" / "long ago", (0, 0))
    found = kernel_cache.cache_folder(tmp_path)
    assert {path.name for path in (tmp_path / ".numba").iterdir()} == {"yesterday", found.name}


def test_kernels_are_compiled_into_that_folder() -> None:
    assert os.environ["NUMBA_CACHE_DIR"] == vars(config)["CACHE_DIR"]


def test_all_kernel_files_are_watched() -> None:
    found = kernel_cache.kernel_files(ROOT / "src")
    assert {*(ROOT / "src").rglob("*_kernels.py")} <= set(found)
    assert (ROOT / "src" / "rankstream" / "cli" / "app.py") not in found
