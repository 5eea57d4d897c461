"""Oracles: the cheapest ranking for given costs. ``auto`` picks one for the assortments at hand."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
