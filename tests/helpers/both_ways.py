"""Reading a source in the quick way and in the slow one, for tests that hold them against each other."""

from typing import Any

import pytest

from rankstream.data.readers import read
from rankstream.data.readers.job import Job


def seen(source: Any, options: Any, slow: bool) -> Any:
    """What a way sees: all of it, or that it refuses the file."""
    with pytest.MonkeyPatch.context() as patch:
        if slow:
            patch.setattr(Job, "quickly", lambda *_: None)
        try:
            found = read(source, on_error="skip", **options)
        except (ValueError, OSError):
            return "refused"
    counts = {"": found.counts, **found.groups, **dict(enumerate(found.slices or []))}
    tallies = {key: [round(float(tally), 9) for tally in one.tallies] for key, one in counts.items()}
    effective = [round(float(total), 9) for total in found.counts.effective_totals]
    times = found.times, found.slice_times, found.slices is None
    return found.rows, found.problems.by_kind, found.counts.assortments, tallies, effective, times, found.format


def agree(source: Any, options: Any) -> None:
    """Ask both ways, which must say the same."""
    assert seen(source, options, slow=False) == seen(source, options, slow=True)
