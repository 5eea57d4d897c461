"""The array and label types that every module shares, and how far their sums can be off."""

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
"""Times the number of terms and the sum of their sizes, at least the rounding error of an inner product."""
