"""Changes of customer types between two models."""

from dataclasses import asdict, dataclass
from typing import Any

from rankstream._core.arguments import number_between
from rankstream._core.types import Label
from rankstream.models.answers import favourites, most_chosen, substitution
from rankstream.models.prices import everything
from rankstream.models.protocol import Predicts

NEW_TYPE_FRACTION = 0.1  # a type with less than this share of its later one is new; a convention, not tuned
LISTS = ("appeared", "vanished", "grew", "shrank")


@dataclass(frozen=True)
class TypeChange:
    """Customers with the same first two favourites, and their share in both models."""

    ranking: tuple[Label, ...]
    before: float
    after: float

    @property
    def change(self) -> float:
        """The change of their share."""
        return self.after - self.before


@dataclass(frozen=True)
class TypeChanges:
    """The types whose share changed by at least ``least``, largest change first in each list."""

    appeared: tuple[TypeChange, ...]
    vanished: tuple[TypeChange, ...]
    grew: tuple[TypeChange, ...]
    shrank: tuple[TypeChange, ...]
    least: float

    def to_json(self) -> dict[str, list[dict[str, Any]]]:
        """Return the types of each list as plain JSON values."""
        return {
            word: [asdict(change) | {"ranking": list(map(str, change.ranking))} for change in getattr(self, word)]
            for word in LISTS
        }

    def __str__(self) -> str:
        lines = []
        for word in LISTS:
            for change in getattr(self, word):
                ranking = " > ".join(map(str, change.ranking))
                lines.append(f"{word}: {ranking}, {100 * change.before:.1f} % to {100 * change.after:.1f} %")
        return "\n".join(lines) or f"no type changed by {100 * self.least:g} points"


def favourite_changes(
    before: Predicts, after: Predicts, no_choice: Label | None = None, least: float = 0.01, most: int | None = None
) -> TypeChanges:
    """Compare the customer types of two models of any kind; a type shares its first two favourites.

    The favourites are those among the items that both models know, at the first model's usual prices where items have
    prices. Shares are exact, and nothing is drawn: who has a second favourite is who takes it once the first is gone.
    A type appeared if its share before was less than a tenth of that after, and vanished the other way round. This
    describes the two models; it is not a test: ``drift_report`` is about the data.

    Parameters
    ----------
    before, after : models
        Two models with at least two items in common.
    no_choice : item, optional
        The item that stands for taking nothing: who likes it first or second has a shorter ranking.
    least : float
        The least change of a type's share that is reported, between 0 and 1.
    most : int, optional
        Only types whose first favourite is among the ``most`` items that either model chooses most often from
        everything: with thousands of items, all of them take long.

    Examples
    --------
    >>> from rankstream import RankingModel
    >>> items = ["tea", "pie", "no"]
    >>> before = RankingModel(items, [("tea", "no", "pie"), ("no", "tea", "pie")], [0.6, 0.4])
    >>> after = RankingModel(items, [("tea", "pie", "no"), ("no", "pie", "tea")], [0.6, 0.4])
    >>> print(favourite_changes(before, after, "no"))
    appeared: tea > pie, 0.0 % to 60.0 %
    vanished: tea, 60.0 % to 0.0 %
    """
    number_between("least", least, 0.0, 1.0)
    shared = [item for item in everything(before) if item in set(after.items)]
    if len(shared) < 2:
        common = f"only {str(shared[0])!r}" if shared else "no item"
        raise ValueError(f"The models have {common} in common: compare models with the same items.")
    gone = None if most is None else {item for model in (before, after) for item in most_chosen(model, most)}
    then, now = (favourites(substitution(model, shared, gone), no_choice) for model in (before, after))
    return _sorted([TypeChange(key, then.get(key, 0.0), now.get(key, 0.0)) for key in {**now, **then}], least)


def _sorted(changes: list[TypeChange], least: float) -> TypeChanges:
    changes = sorted((one for one in changes if abs(one.change) >= least), key=lambda one: -abs(one.change))
    rose, fell = ([one for one in changes if one.change * sign > 0.0] for sign in (1.0, -1.0))
    return TypeChanges(
        appeared=tuple(one for one in rose if one.before < NEW_TYPE_FRACTION * one.after),
        vanished=tuple(one for one in fell if one.after < NEW_TYPE_FRACTION * one.before),
        grew=tuple(one for one in rose if one.before >= NEW_TYPE_FRACTION * one.after),
        shrank=tuple(one for one in fell if one.after >= NEW_TYPE_FRACTION * one.before),
        least=least,
    )
