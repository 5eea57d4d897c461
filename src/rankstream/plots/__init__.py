"""Charts with matplotlib: every function draws on given axes and returns them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
