"""Array and label types that all modules share, and the rounding error of their sums."""

from collections.abc import Hashable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Label: TypeAlias = Hashable
Vec: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int64]
Bits: TypeAlias = NDArray[np.uint64]
Words: TypeAlias = NDArray[np.uint32]
Bytes: TypeAlias = NDArray[np.int8]
Mask: TypeAlias = NDArray[np.bool_]

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""Multiplied by the number of terms and the sum of their sizes: a bound on the rounding error of an inner product."""
