"""Models that keep learning: live models, growth, reweighting, change detection, checkpoints."""

from rankstream._core import old_names

__getattr__, __dir__, __all__ = old_names.attach(__name__, __file__)
