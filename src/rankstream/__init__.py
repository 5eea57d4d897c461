"""rankstream: non-parametric choice models, estimated and certified while the choices arrive."""

import lazy_loader

from rankstream._core.version import VERSION

__version__ = VERSION
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
