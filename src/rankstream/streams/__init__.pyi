"""The public names; `lazy_loader` imports each when it is first used."""

from .detector import Alarm as Alarm
from .detector import ChangeDetector as ChangeDetector
from .detector import DetectorSettings as DetectorSettings
from .files.checkpoint import Checkpoint as Checkpoint
from .files.checkpoint import load as load
from .files.checkpoint import save as save
from .live import Live as Live
from .live import Record as Record
from .runs.endless import catch_up as catch_up
from .runs.endless import reweigh as reweigh
from .runs.growth import grow as grow
from .sources.parser import record_of as record_of

__all__: list[str]
