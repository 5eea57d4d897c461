"""rankstream: non-parametric choice models, estimated and certified while the choices arrive."""

from rankstream._core import old_names
from rankstream._core.version import VERSION

__version__ = VERSION
__getattr__, __dir__, __all__ = old_names.attach(__name__, __file__)
old_names.watch_imports()
