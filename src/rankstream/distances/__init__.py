"""Distances between a model's choice probabilities and the observed frequencies.

By name: ``make("l2", offers, smoothing=0.1)``; as objects: ``L1, LowNorm, L2, HighNorm, LInf, MaxDifference, KL``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
