"""Guarantees: what is proven about a model after the fact, before it, and about the true probabilities.

``Certificate`` and ``certify`` prove a gap from running means; ``rounds_needed`` and ``guaranteed_gap`` promise one in
advance; ``fit_bound`` bounds the distance of any model where no oracle is exact, and ``Proof`` goes on doing so;
``confidence_radii`` and ``confident_gap`` bring in the sampling error of the data.
"""

from rankstream.certificate.gap import Certificate, certify, confidence_radii, confident_gap
from rankstream.certificate.guarantees import (
    data_error_bound,
    data_error_rate,
    guaranteed_gap,
    naive_frank_wolfe_bound,
    rounds_needed,
    smoothing_error,
    translate_to_norm,
)
from rankstream.certificate.proof import FitBound, Proof, fit_bound

__all__ = [
    "Certificate",
    "FitBound",
    "Proof",
    "certify",
    "confidence_radii",
    "confident_gap",
    "data_error_bound",
    "data_error_rate",
    "fit_bound",
    "guaranteed_gap",
    "naive_frank_wolfe_bound",
    "rounds_needed",
    "smoothing_error",
    "translate_to_norm",
]
