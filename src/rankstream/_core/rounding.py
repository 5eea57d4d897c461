"""How far sums of floating-point numbers can be off: what proven bounds subtract."""

import numpy as np

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""Times the number of terms and the sum of their sizes, at least the rounding error of an inner product."""
