"""Guarantees: what is proven about a model after the fact, before it, and about the true probabilities.

``Certificate`` and ``certify`` prove a gap from running means; ``rounds_needed`` and ``guaranteed_gap`` promise one in
advance; ``fit_bound`` bounds the distance of any model where no oracle is exact, and ``Proof`` goes on doing so;
``confidence_radii`` and ``confident_gap`` bring in the sampling error of the data.
"""

from rankstream._core import old_names

__getattr__, __dir__, __all__ = old_names.attach(__name__, __file__)
