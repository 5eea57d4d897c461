"""What a cut is: a half-space that holds every model."""

from dataclasses import dataclass

from rankstream._core.types import Codes, Vec


@dataclass(frozen=True)
class Cut:
    """<``normal``, x at the coordinates ``where``> >= ``least`` for every model x.

    ``depth`` is how far the point is beyond it for which it was made.
    """

    where: Codes
    normal: Vec
    least: float
    depth: float = 0.0
