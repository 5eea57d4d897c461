"""What a change detector is told, and what it tells."""

from dataclasses import dataclass

from rankstream._core.arguments import number_between, whole_number


@dataclass(frozen=True)
class Alarm:
    """A change that was noticed: at which record, since which record the evidence has grown, and how large it was."""

    record: int
    since: int
    statistic: float


@dataclass(frozen=True)
class DetectorSettings:
    """How a ChangeDetector works; see there."""

    half_life: float = 500.0
    threshold: float = 15.0
    epsilon: float = 1e-3
    block: int = 50
    rounds: int = 50
    memory: int = 100
    distance: str = "l2"
    learner: str = "mirror-descent"
    seed: int = 0

    def __post_init__(self) -> None:
        number_between("half_life", self.half_life, 1e-300)
        number_between("threshold", self.threshold, 0.0)
        if not 0.0 < number_between("epsilon", self.epsilon, 0.0, 1.0) < 1.0:
            raise ValueError(f"epsilon is {self.epsilon}: it must lie strictly between 0 and 1.")
        for name in ("block", "rounds", "memory"):
            whole_number(name, getattr(self, name), least=1)
