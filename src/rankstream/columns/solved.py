"""What the exact approaches answer with."""

from dataclasses import dataclass

from rankstream.models.rankings import RankingModel


@dataclass(frozen=True, eq=False)
class Solved:
    """A model, what it loses (``value``), and the proven ``bound`` that no distribution over rankings undercuts.

    ``proven`` says that the two are as near as was asked for; ``seconds`` how long the parts of the search took.
    """

    model: RankingModel
    value: float
    bound: float
    proven: bool
    iterations: int
    columns: int
    seconds: dict[str, float]

    @property
    def gap(self) -> float:
        """How far the value can be from the least."""
        return self.value - self.bound
