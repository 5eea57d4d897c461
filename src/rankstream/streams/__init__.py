"""Models that go on: live, growth, reweighing, change detection, checkpoints."""

from typing import TYPE_CHECKING

from rankstream._core.lazy import importer

if TYPE_CHECKING:
    from rankstream.streams.checkpoint import Checkpoint, load, save
    from rankstream.streams.detector import Alarm, ChangeDetector, DetectorSettings
    from rankstream.streams.growth import grow
    from rankstream.streams.live import Live, Record
    from rankstream.streams.records import record_of
    from rankstream.streams.reweighing import catch_up, reweigh

__all__ = [
    "Alarm",
    "ChangeDetector",
    "Checkpoint",
    "DetectorSettings",
    "Live",
    "Record",
    "catch_up",
    "grow",
    "load",
    "record_of",
    "reweigh",
    "save",
]
__getattr__ = importer(
    __name__,
    {
        **dict.fromkeys(("Checkpoint", "load", "save"), "checkpoint"),
        **dict.fromkeys(("Alarm", "ChangeDetector", "DetectorSettings"), "detector"),
        "record_of": "records",
        "grow": "growth",
        **dict.fromkeys(("Live", "Record"), "live"),
        **dict.fromkeys(("catch_up", "reweigh"), "reweighing"),
    },
)
