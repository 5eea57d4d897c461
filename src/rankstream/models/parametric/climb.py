"""Climbing a likelihood with a slow monotone step, such as one of EM, made fast by squared extrapolation (SQUAREM)."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rankstream._core.types import Vec
from rankstream._core.watch import Watch, unwatched


@dataclass(frozen=True, eq=False)
class Climb:
    """Where a climb ended; ``heights`` are the values at the points it went through and never fall."""

    point: Vec
    steps: int
    converged: bool
    heights: list[float] = field(default_factory=list)
    stopped: bool = False


def climb(
    step: Callable[[Vec], tuple[Vec, float]],
    normalise: Callable[[Vec], Vec],
    start: Vec,
    tolerance: float,
    max_steps: int,
    watch: Watch = unwatched,
    name: str = "climbing",
) -> Climb:
    """Repeat a step until three of them together gain no more than ``tolerance``.

    ``step`` gives the next point, which is never lower, and the height of the one it was given. From two steps in a row
    the point where they lead to is extrapolated (Varadhan and Roland 2008), the further the more often that went
    well; if it is lower it is forgotten.
    ``normalise`` makes a positive vector a point again. An extrapolated coordinate keeps a part of its last value, so
    that no positive number becomes 0 or less. ``watch`` is asked after every three steps.
    """
    point, used, heights = start, 0, []
    converged, stopped, longest = False, False, 1.0
    while not converged and not stopped and used < max_steps:
        first, height = step(point)
        second, next_height = step(first)
        heights += [height, next_height]
        change, bend = first - point, second - 2.0 * first + point
        wanted = float(np.linalg.norm(change)) / max(float(np.linalg.norm(bend)), 1e-300)
        length = max(1.0, min(longest, wanted))
        far = point + 2.0 * length * change + length**2 * bend
        third, far_height = step(normalise(np.maximum(far, 0.1 * second)))
        used += 3
        better = far_height >= next_height
        if length == longest:
            longest = 4.0 * longest if better else max(1.0, longest / 4.0)
        point = third if better else second
        gain = (far_height if better else next_height) - height
        converged = gain <= tolerance and (better or length == 1.0)
        stopped = not converged and watch(f"{name}, step {used:,}")
    return Climb(point, used, converged, heights, stopped)
