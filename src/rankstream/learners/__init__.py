"""Dual players: online learners that price the mismatch between model and data (paper, Section 4.2).

By name: ``make("dual-averaging", horizon)``; with a distance: ``match("l1", "follow-the-leader", offers, horizon)``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
