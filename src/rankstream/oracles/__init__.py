"""Oracles: the cheapest ranking for given costs. ``auto`` picks one for the assortments at hand."""

from rankstream._core import old_names

__getattr__, __dir__, __all__ = old_names.attach(__name__, __file__)
