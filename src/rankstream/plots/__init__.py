"""Pictures, with matplotlib: every function draws on given axes and returns them."""

from rankstream.plots.decisions import earnings_over_time, runners_up, value_by_size
from rankstream.plots.fits import comparison, convergence, frontier, predicted_against_true, shares_over_time
from rankstream.plots.markets import market_map, market_shares
from rankstream.plots.models import BLUE, GREY, ORANGE, predicted_against_observed, segments, substitution
from rankstream.plots.prices import demand
from rankstream.plots.streams import course

__all__ = [
    "BLUE",
    "GREY",
    "ORANGE",
    "comparison",
    "convergence",
    "course",
    "demand",
    "earnings_over_time",
    "frontier",
    "market_map",
    "market_shares",
    "predicted_against_observed",
    "predicted_against_true",
    "runners_up",
    "segments",
    "shares_over_time",
    "substitution",
    "value_by_size",
]
