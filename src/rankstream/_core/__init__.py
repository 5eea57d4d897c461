"""Internals that all packages share: types, compilation, argument checks, atomic file writes, deadlines."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
