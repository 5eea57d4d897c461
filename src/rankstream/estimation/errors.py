"""Standard errors of shares, substitution and customer types, which a model remembers from its fit."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rankstream._core.types import Label, Vec
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.estimation.intervals import Bootstrap, Share
from rankstream.models.answers import Substitution, favourites, most_chosen, substitution
from rankstream.models.fit_warnings import interval_words
from rankstream.models.prices import everything
from rankstream.solver.runs import Estimate

REPLICATES = 10
"""Warm refits: together at most about half of the time of a fit (``benchmarks/errors.py``)."""
MAX_ERROR_ITEMS = 30
"""Items whose substitutes have stored errors: the table grows with their number times that of all items."""


def store_errors(found: Estimate[Any], counts: ChoiceCounts, seed: int, watch: Callable[[int, int], bool]) -> None:
    """Refit a maximum-entropy model a few times, and note how much its answers about everything vary.

    Other methods, weights that are not whole choices, and refits that ``watch`` ended have none.
    """
    whole = counts.forgets or bool((counts.tallies == np.floor(counts.tallies)).all())
    if found.details is None or not whole:
        return
    many = Bootstrap(counts, found.method, REPLICATES, seed, model=found.model, first=found.details, watch=watch)
    if len(many.models) == REPLICATES:
        found.model.note(errors=describe_errors(many))


def describe_errors(many: Bootstrap) -> dict[str, Any]:
    """Half the width of the 95 % intervals of a bootstrap over 1.96, for JSON: for few refits a little more than se."""
    from scipy.special import ndtri, stdtrit

    offer, gone = everything(many.model), most_chosen(many.model, MAX_ERROR_ITEMS)
    wider = float(stdtrit(len(many.models) - 1, 0.975) / ndtri(0.975))
    no_choice = getattr(many.model, "no_choice", None)
    moves = {id(model): substitution(model, offer, gone) for model in (many.model, *many.models)}
    sizes, types, variance = many.type_shares(lambda model: moves[id(model)], no_choice)
    rows = [offer.index(item) for item in gone]
    shares = wider * many.errors(Assortments([offer], many.model.items))
    variance_of_parts = partial(many.misfit.of_parts, buyers=moves[id(many.model)].before[rows, np.newaxis])
    parts = wider * many.errors_of(lambda model: moves[id(model)].shares[rows], variance_of_parts)
    sized = wider * many.errors_of(sizes, variance)
    return {
        "replicates": len(many.models),
        "offer": list(offer),
        "gone": list(gone),
        "shares": np.round(shares, 5).tolist(),
        "substitution": np.round(parts, 5).tolist(),
        "types": [[list(key), round(error, 5)] for key, error in zip(types, sized.tolist(), strict=True)],
    }


@dataclass(frozen=True)
class StoredErrors:
    """The errors that a model remembers, asked as a ``Bootstrap`` is, for everything on offer alone."""

    model: Any
    content: dict[str, Any]

    @classmethod
    def of(cls, model: Any) -> "StoredErrors | None":
        """Those of a model; None where it has none, or others than its items and usual prices need."""
        content: Any = getattr(model, "about", {}).get("errors")
        try:
            found = cls(model, content)
            sizes = (len(found.gone), len(found.offer))
            right = found._part("shares").shape == sizes[1:] and found._part("substitution").shape == sizes
            right = right and found.offer == everything(model) and set(found.gone) <= set(found.offer)
            return found if right and found.replicates > 1 and found._types() is not None else None
        except (TypeError, ValueError, KeyError, AttributeError):
            return None

    @property
    def replicates(self) -> int:
        """How many refits."""
        return int(self.content["replicates"])

    @property
    def offer(self) -> tuple[Label, ...]:
        """Everything on offer."""
        return tuple(self.content["offer"])

    @property
    def gone(self) -> tuple[Label, ...]:
        """The items whose substitutes have errors."""
        return tuple(self.content["gone"])

    def substitution(self, gone: Iterable[Label] | None = None) -> Substitution:
        """Where each item's buyers go when it is gone, with 95 % intervals of the items that have some."""
        found = substitution(self.model, self.offer, gone)
        reach = np.full(found.shares.shape, np.nan)
        reach[[self.offer.index(item) for item in self.gone]] = 1.96 * self._part("substitution")
        low, high = np.maximum(found.shares - reach, 0.0), np.minimum(found.shares + reach, 1.0)
        return replace(found, low=low, high=high, interval_name=interval_words(self.model.about))

    def favourites(self) -> dict[tuple[Label, ...], Share]:
        """The customer types by their first two choices, largest first, with 95 % intervals."""
        known = favourites(substitution(self.model, self.offer, self.gone), self.model.no_choice)
        errors = self._types()
        return {key: _share(share, errors[key]) for key, share in known.items() if key in errors}

    def predict(self) -> dict[Label, Share]:
        """The shares of everything on offer, with 95 % intervals."""
        shares = self.model.probabilities(Assortments([self.offer], self.model.items)).tolist()
        errors = self._part("shares").tolist()
        return {item: _share(*row) for item, row in zip(self.offer, zip(shares, errors, strict=True), strict=True)}

    def _part(self, name: str) -> Vec:
        return np.array(self.content[name], dtype=np.float64)

    def _types(self) -> dict[tuple[Label, ...], float]:
        return {tuple(key): float(error) for key, error in self.content["types"]}


def _share(share: float, error: float) -> Share:
    return Share(share, max(0.0, share - 1.96 * error), min(1.0, share + 1.96 * error))
