"""Pictures, with matplotlib: every function draws on given axes and returns them."""

from rankstream.plots.fits import comparison, convergence, frontier, predicted_against_true, shares_over_time
from rankstream.plots.models import BLUE, GREY, ORANGE, predicted_against_observed, segments, substitution

__all__ = [
    "BLUE",
    "GREY",
    "ORANGE",
    "comparison",
    "convergence",
    "frontier",
    "predicted_against_observed",
    "predicted_against_true",
    "segments",
    "shares_over_time",
    "substitution",
]
