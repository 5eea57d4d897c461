"""Entry points: ``estimate`` and its methods, fits with a budget, intervals, the scikit-learn estimator."""

from rankstream._core import old_names

__getattr__, __dir__, __all__ = old_names.attach(__name__, __file__)
