"""What is asked of a model to describe it, once, with intervals: shell, reports and service all answer from this."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rankstream._core.types import Label
from rankstream.estimation.errors import StoredErrors
from rankstream.models.answers import Substitution, favourites, most_chosen
from rankstream.models.prices import curves_of, everything, usual_prices
from rankstream.models.rankings import RankingModel

if TYPE_CHECKING:
    from rankstream.estimation.intervals import Bootstrap

MAX_SUBSTITUTED_ITEMS = 100
"""Items for which it is said who gains: the most chosen ones. With thousands of items, all of them take long."""


@dataclass(frozen=True)
class Answers:
    """Substitution, shares and customer types of a model, with intervals from refits or from stored errors.

    Of a model with prices, all of that is where every item is at its usual price. With intervals, types are those of
    first and second choices: of whole rankings the data cannot say how many there are.
    """

    model: Any
    moves: Substitution
    gone: tuple[Label, ...]
    types: dict[Any, Any]
    shares: dict[Any, Any] = field(default_factory=dict)
    replicates: int | None = None
    intervals: Any = None

    @classmethod
    def of(cls, model: Any, intervals: "Bootstrap | str | None" = None, most: int = MAX_SUBSTITUTED_ITEMS) -> "Answers":
        """Ask everything once; ``intervals`` are refits, a sentence that says why there are none, or stored errors."""
        gone, nothing = most_chosen(model, most), model.no_choice
        stored = StoredErrors.of(model) if intervals is None else None
        if stored is not None:
            found = stored.substitution(gone), gone, dict(stored.favourites()), stored.predict(), stored.replicates
            return cls(model, *found)
        if intervals is None or isinstance(intervals, str):
            moves = model.substitution(None, gone)
            return cls(model, moves, gone, dict(favourites(moves, nothing)), intervals=intervals)
        types = dict(intervals.favourites(nothing, gone=gone))
        shares = intervals.predict(everything(model))
        return cls(model, intervals.substitution(gone=gone), gone, types, shares, len(intervals.models), intervals)

    @property
    def origin(self) -> str:
        """Where intervals come from, or why there are none."""
        if self.replicates is None:
            return self.intervals or "There are no intervals: the model has no stored standard errors."
        stored = "" if self.intervals is not None else ", stored when the model was fitted"
        return f"Intervals come from {self.replicates} bootstrap refits{stored}."

    def curves(self, most: int | None = None) -> dict[Any, Any]:
        """Demand by each item's own price, beside the others at usual prices; of all items, or the most chosen."""
        levels = self.model.price_levels
        if levels is None or all(len(prices) < 2 for prices in levels.levels.values()):
            return {}
        whole, refits = usual_prices(self.model), self.intervals
        ask = self.model.demand if refits is None or isinstance(refits, str) else refits.demand
        wanted = whole if most is None else {levels.of(label)[0] for label in most_chosen(self.model, most)}
        return dict(curves_of(self.model, ask, [item for item in whole if item in wanted], whole))

    def rankings(self, top: int) -> list[dict[str, Any]]:
        """Whole rankings with their shares, of a model that has few and no intervals."""
        if self.shares or not isinstance(self.model, RankingModel):
            return []
        return [{"ranking": list(map(str, one.ranking)), "share": one.share} for one in self.model.segments(top)]

    def to_json(self, top: int = 10) -> dict[str, Any]:
        """Return customer types, shares and who gains, as JSON has them."""
        pairs = list(self.types.items())[:top]
        sized = [(key, share._asdict() if hasattr(share, "low") else {"share": share}) for key, share in pairs]
        whole = self.rankings(top)
        return {
            "segments_by": "whole rankings" if whole else "first two choices",
            "replicates": self.replicates,
            "segments": whole or [{"ranking": [str(item) for item in key], **share} for key, share in sized],
            "items": self.moves.to_json(self.gone, self.shares),
        }
