"""Shared test set-up: reproducible hypothesis runs, Ctrl-C, and a reason where a page's data are not at hand."""

import signal

import pytest
from hypothesis import settings

import real_data

settings.register_profile("rankstream", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("rankstream")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as it is for a job in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # as it is under nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the page on real ballots where they are not."""
    if not real_data.files("Lismore 2015", ".soi"):
        for item in items:
            if item.path.name == "election.md":
                item.add_marker(pytest.mark.skip(reason=real_data.why_not("Lismore 2015")))
