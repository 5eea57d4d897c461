"""Standard errors of shares, substitution and customer types, stored with a model at its fit."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rankstream._core import Label, Progress, Vec
from rankstream.data import Assortments, ChoiceCounts
from rankstream.estimation.intervals import Bootstrap, Share
from rankstream.models.answers import Substitution, favourites, most_chosen, substitution
from rankstream.models.fit_warnings import interval_words
from rankstream.models.prices import everything
from rankstream.solver.runs import Estimate

REPLICATES = 10
"""Warm refits: together at most about half of the time of a fit (``benchmarks/errors.py``)."""
MAX_ERROR_ITEMS = 30
"""Items with stored errors of their substitutes; the table has a row for each, and a column for every item."""


def store_errors(fit: Estimate[Any], counts: ChoiceCounts, seed: int, watch: Progress) -> None:
    """Refit a maximum-entropy model a few times, and store the standard errors of its answers with it.

    Nothing is stored for other methods, for fractional weights, or if ``watch`` ended the refits.
    """
    whole = counts.forgets or bool((counts.tallies == np.floor(counts.tallies)).all())
    if fit.details is None or not whole:
        return
    many = Bootstrap(counts, fit.method, REPLICATES, seed, model=fit.model, first=fit.details, watch=watch)
    if len(many.models) == REPLICATES:
        fit.model.note(errors=describe_errors(many))


def describe_errors(many: Bootstrap) -> dict[str, Any]:
    """Return half the width of 95 % bootstrap intervals over 1.96, for JSON; Student's t widens it for few refits."""
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
    """The stored errors of a model, with the methods of a ``Bootstrap``, for an offer of all items only."""

    model: Any
    content: dict[str, Any]

    @classmethod
    def of(cls, model: Any) -> "StoredErrors | None":
        """Return the stored errors of a model; None if it has none, or they do not match its items."""
        content: Any = getattr(model, "about", {}).get("errors")
        try:
            errors = cls(model, content)
            sizes = (len(errors.gone), len(errors.offer))
            fits = errors._part("shares").shape == sizes[1:] and errors._part("substitution").shape == sizes
            fits = fits and errors.offer == everything(model) and set(errors.gone) <= set(errors.offer)
            return errors if fits and errors.replicates > 1 and errors._types() is not None else None
        except (TypeError, ValueError, KeyError, AttributeError):
            return None

    @property
    def replicates(self) -> int:
        """Number of refits."""
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
        """Return what each item's buyers choose when it is gone, with 95 % intervals where errors are stored."""
        moves = substitution(self.model, self.offer, gone)
        reach = np.full(moves.shares.shape, np.nan)
        reach[[self.offer.index(item) for item in self.gone]] = 1.96 * self._part("substitution")
        low, high = np.maximum(moves.shares - reach, 0.0), np.minimum(moves.shares + reach, 1.0)
        return replace(moves, low=low, high=high, interval_name=interval_words(self.model.about))

    def favourites(self) -> dict[tuple[Label, ...], Share]:
        """Return the customer types by their first two choices, largest first, with 95 % intervals."""
        known = favourites(substitution(self.model, self.offer, self.gone), self.model.no_choice)
        errors = self._types()
        return {key: _share(share, errors[key]) for key, share in known.items() if key in errors}

    def predict(self) -> dict[Label, Share]:
        """Return the shares of all items, with 95 % intervals."""
        shares = self.model.probabilities(Assortments([self.offer], self.model.items)).tolist()
        errors = self._part("shares").tolist()
        return {item: _share(*row) for item, row in zip(self.offer, zip(shares, errors, strict=True), strict=True)}

    def _part(self, name: str) -> Vec:
        return np.array(self.content[name], dtype=np.float64)

    def _types(self) -> dict[tuple[Label, ...], float]:
        return {tuple(key): float(error) for key, error in self.content["types"]}


def _share(share: float, error: float) -> Share:
    return Share(share, max(0.0, share - 1.96 * error), min(1.0, share + 1.96 * error))
