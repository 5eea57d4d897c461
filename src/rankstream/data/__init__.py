"""Choice data: offers, counts, forgetting, hold-out splits, drift, readers, simulated markets."""

from rankstream._core import old_names

__getattr__, __dir__, __all__ = old_names.attach(__name__, __file__)
