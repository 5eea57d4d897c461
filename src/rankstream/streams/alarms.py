"""What a change detector is told, and what it reports."""

from dataclasses import dataclass

from rankstream._core.arguments import number_between, whole_number


@dataclass(frozen=True)
class Alarm:
    """A change that was noticed.

    ``record`` is the number of the choice at which it was, ``since`` the one after which the evidence began to grow,
    and ``statistic`` the evidence, in nats.
    """

    record: int
    since: int
    statistic: float


@dataclass(frozen=True)
class DetectorSettings:
    """How a change detector works.

    Parameters
    ----------
    half_life : float
        After how many choices one weighs half in the fast-forgetting copy. A shorter one reacts faster and sees less:
        on n coordinates of m offers the copy's own noise costs about (n - m) / (5.8 * half_life) nats per choice, and
        changes that cost the served model less are noticed late or never.
    threshold : float
        The evidence that a change takes, in nats. If every choice came from the served model, there would be
        e^threshold choices on average before a false alarm, or more.
    epsilon : float
        How much of the uniform choice is mixed into both models when they are scored: no choice is impossible.
    block : int
        After how many choices both models learn.
    rounds : int
        How many rounds of the solver are played for each block.
    memory : int
        For how many rounds all earlier ones count together.
    distance, learner : str
        By name. Offers weigh by their observations where these allow it: "l1" and "l2", with "mirror-descent" or
        "dual-averaging".
    seed : int
        Ties between rankings.

    >>> DetectorSettings(threshold=8.0).block
    50

    """

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
