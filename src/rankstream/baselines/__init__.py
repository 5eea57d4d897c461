"""What people use instead: estimators from the literature, on the same data and with the same oracle (Appendix B)."""

from rankstream.baselines.rationality import rationality
from rankstream.baselines.registry import FITS, ChoiceModel, fit
from rankstream.baselines.revenue import probability_range, revenue_range
from rankstream.baselines.revenue_approximations import revenue_by_relaxation, revenue_by_sampling

__all__ = [
    "FITS",
    "ChoiceModel",
    "fit",
    "probability_range",
    "rationality",
    "revenue_by_relaxation",
    "revenue_by_sampling",
    "revenue_range",
]
