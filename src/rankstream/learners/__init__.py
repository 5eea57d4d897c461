"""Dual players: online learners that price the mismatch between model and data (paper, Section 4.2).

By name: ``make("dual-averaging", horizon)``; the paper's six methods: ``paper_method("FW_dyn", offers, norm="l1")``.
"""

from rankstream._core import old_names

__getattr__, __dir__, __all__ = old_names.attach(__name__, __file__)
