"""The array and label types that every module shares."""

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
