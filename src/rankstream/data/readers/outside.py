"""Assume a share of customers who bought nothing and were not recorded, and show how much the assumption matters."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankstream._core.arguments import number_between
from rankstream._core.types import Label, Vec
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts


def with_outside(
    counts: ChoiceCounts, share: float | Mapping[Any, float], no_choice: Label = "no choice"
) -> ChoiceCounts:
    """Add a no-purchase option to every offer, and assume that this share of customers took it.

    The share is one number, or one for each offer (a mapping from tuples of items). Offers that already have the item
    are unchanged: data take precedence over assumptions.

    Examples
    --------
    >>> counts = ChoiceCounts(Assortments([("tea", "pie")]), [6, 3])
    >>> with_outside(counts, 0.25).tallies
    array([6., 3., 3.])
    """
    before = counts.assortments
    shares = _shares(before, share)
    lacking = np.array([no_choice not in offer for offer in before.offers])
    offers = [(*offer, no_choice) if lacks else offer for offer, lacks in zip(before.offers, lacking, strict=True)]
    items = before.items if no_choice in before.items else (*before.items, no_choice)
    assumed = counts.totals * shares / (1.0 - shares)
    grown = np.insert(counts.tallies, before.indptr[1:][lacking], assumed[lacking])
    return ChoiceCounts(Assortments(offers, items, before.order), grown)


def _shares(assortments: Assortments, share: float | Mapping[Any, float]) -> Vec:
    if not isinstance(share, Mapping):
        return np.full(assortments.n_offers, number_between("The share", share, 0.0, 0.999))
    known = {frozenset(offer): value for offer, value in share.items()}
    for offer in assortments.offers:
        if frozenset(offer) not in known:
            raise ValueError(f"There is no share for the offer {offer!r}: give one for each offer, or one for all.")
    return np.array(
        [number_between(f"The share of {offer!r}", known[frozenset(offer)], 0.0, 0.999) for offer in assortments.offers]
    )


@dataclass(frozen=True)
class Sensitivity:
    """An answer under several assumed shares of people who bought nothing."""

    shares: tuple[float, ...]
    names: tuple[str, ...]
    answers: Vec

    @property
    def spans(self) -> dict[str, float]:
        """How much each number varies between the assumptions."""
        return dict(zip(self.names, np.ptp(self.answers, axis=0).tolist(), strict=True))

    def table(self) -> str:
        """Return a table with one line per assumed share, and one with the spans."""
        width = max(12, *(len(name) + 2 for name in self.names))
        lines = ["assumed share" + "".join(f"{name:>{width}}" for name in self.names)]
        for share, answer in zip(self.shares, self.answers, strict=True):
            lines.append(f"{share:13.0%}" + "".join(f"{value:{width}.4g}" for value in answer))
        lines.append(f"{'span':>13}" + "".join(f"{value:{width}.4g}" for value in self.spans.values()))
        return "\n".join(lines)


def outside_sensitivity(
    counts: ChoiceCounts,
    answer: Callable[[ChoiceCounts], Mapping[str, float]],
    shares: Iterable[float] = (0.1, 0.3, 0.5, 0.7, 0.9),
    no_choice: Label = "no choice",
) -> Sensitivity:
    """Show how an answer, a function of counts, depends on the assumed share.

    Examples
    --------
    >>> counts = ChoiceCounts(Assortments([("tea", "pie")]), [6, 3])
    >>> sensitivity = outside_sensitivity(counts, lambda counts: {"tea": counts.frequencies()[0]}, [0.1, 0.4])
    >>> print(sensitivity.table())
    assumed share         tea
              10%         0.6
              40%         0.4
             span         0.2
    """
    assumed = tuple(shares)
    if not assumed:
        raise ValueError("There are no shares to assume: give some, such as [0.1, 0.5].")
    answers = [dict(answer(with_outside(counts, share, no_choice))) for share in assumed]
    names = tuple(answers[0])
    if not names or any(tuple(numbers) != names for numbers in answers):
        raise ValueError(f"The answers have the names {names!r}, then others: give the same for every share.")
    return Sensitivity(assumed, names, np.array([list(numbers.values()) for numbers in answers], dtype=np.float64))
