"""Shared test set-up: compiled kernels, reproducible hypothesis runs, Ctrl-C, the quick tier, and absent data."""

import gc
import os
import signal
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

import close_numbers
import kernel_cache
import real_data

for library in ("OPENBLAS", "MKL"):  # as in the service: processes share the cores, and threads wait for each other
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT") != "1"
if not os.environ.get("NUMBA_CACHE_DIR"):  # make sets it, too; numba, which reads it, is imported later
    os.environ["NUMBA_CACHE_DIR"] = str(kernel_cache.cache_folder())
settings.register_profile("rankstream", deadline=None, derandomize=True, print_blob=True)
# uncompiled kernels take a hundred times as long, and all examples have been seen compiled: these are the first of them
settings.register_profile("uncompiled", settings.get_profile("rankstream"), max_examples=34)
settings.register_profile("quick", settings.get_profile("rankstream"), max_examples=15)
settings.load_profile("rankstream" if IS_COMPILED else "uncompiled")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as it is for a job in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # as it is under nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


close_numbers.teach_doctest()
gc.disable()  # until everything is imported: nothing of that is garbage


def pytest_collection_finish() -> None:
    """Look for garbage among what tests make alone: the 350,000 objects of modules stay."""
    gc.freeze()
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """Take the first examples only for ``-m quick``: ``make test`` takes all."""
    if config.option.markexpr.startswith("quick"):
        settings.load_profile("quick")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import only files with quick tests for ``-m quick``: importing all of them takes longer than these tests."""
    if not config.option.markexpr.startswith("quick") or collection_path.suffix not in (".py", ".md"):
        return None
    return "pytest.mark.quick" not in collection_path.read_text(encoding="utf-8") or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Compare numbers on pages closely, skip the page on absent ballots; measure no coverage where it takes long."""
    for item in items:
        if isinstance(item, pytest.DoctestItem) and item.path.suffix == ".md":
            for example in item.dtest.examples:
                example.options[close_numbers.CLOSE_NUMBERS] = True
    if _measures_coverage(config):
        for item in filter(_runs_known_lines, items):
            item.add_marker("no_cover")
    if not real_data.files("Lismore 2015", ".soi"):
        for item in items:
            if item.path.name == "election.md":
                item.add_marker(pytest.mark.skip(reason=real_data.why_not("Lismore 2015")))


MAX_TRACED_SECONDS = 0.5  # CPU time of a case, above which later ones of the same test are not traced; not tuned
seconds_of: dict[str, float] = {}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Measure no coverage in further cases of a test whose cases take long: they run much the same lines."""
    name, began = item.nodeid.partition("[")[0], time.process_time()
    if seconds_of.get(name, 0.0) > MAX_TRACED_SECONDS and IS_COMPILED and _measures_coverage(item.config):
        item.add_marker("no_cover")
    try:
        yield
    finally:
        seconds_of[name] = max(time.process_time() - began, seconds_of.get(name, 0.0))


def _measures_coverage(config: pytest.Config) -> bool:
    """Whether lines are traced; for mutants, which ask which tests reach a line (--cov-context), all tests are."""
    return config.pluginmanager.hasplugin("pytest_cov") and config.getoption("cov_context") is None


def _runs_known_lines(item: pytest.Item) -> bool:
    """Whether other tests run the same lines in less time; kernels leave a trace in the uncompiled run alone."""
    if item.path.suffix == ".md" or item.path.parent.name == "project":
        return True
    if any(item.get_closest_marker(name) for name in ("slow", "server")):
        return True
    is_property: bool = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return is_property and IS_COMPILED
