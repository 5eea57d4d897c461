"""Guarantees about a model: after a fit, before it, and for the true probabilities.

``Certificate`` and ``certify`` prove a gap from running means; ``rounds_needed`` and ``guaranteed_gap`` give one in
advance; ``Proof`` bounds the distance of any model without an exact oracle;
``confidence_radii`` and ``confident_gap`` account for sampling error.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
