"""The doors: estimate and its methods, fit within seconds, intervals, the scikit-learn face."""

from rankstream._core import old_names

__getattr__, __dir__, __all__ = old_names.attach(__name__, __file__)
