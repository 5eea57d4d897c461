"""RankingModel: a sparse probability distribution over rankings."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core import Codes, Label, Vec, optional, whole_number
from rankstream.data.assortments import Assortments, plain
from rankstream.models.answers import Segment
from rankstream.models.base import Model
from rankstream.models.prices import everything

if TYPE_CHECKING:
    from rankstream.models.sparse import Frontier


class RankingModel(Model):
    """Rankings of all items, best first, and their probabilities: the non-parametric choice model of Section 2.1.

    Offered a set of items, a customer with a ranking takes the best ranked one. ``no_choice_code`` is the number of the
    item that ends a ranking, if there is one; ``predict`` adds it to offers that lack it.

    Examples
    --------
    >>> rankings = [("tea", "nothing", "pie"), ("pie", "tea", "nothing")]
    >>> model = RankingModel(["tea", "pie", "nothing"], rankings, weights=[0.6, 0.4])
    >>> model.predict(["tea", "pie"])
    {'tea': 0.6, 'pie': 0.4}
    >>> model.predict(["pie", "nothing"])
    {'pie': 0.4, 'nothing': 0.6}
    """

    FORMAT = "rankstream-model"
    orders: Codes
    weights: Vec

    def __init__(
        self,
        items: Iterable[Label],
        rankings: Iterable[Sequence[Label]],
        weights: ArrayLike,
        *,
        no_choice_code: int | None = None,
    ) -> None:
        labels = tuple(plain(item) for item in items)
        code = {item: number for number, item in enumerate(labels)}
        try:
            orders = [[code[item] for item in ranking] for ranking in rankings]
        except KeyError as error:
            raise ValueError(f"A ranking contains {error.args[0]!r}, which is not among the items: add it.") from None
        self._set(labels, orders, weights, no_choice_code)

    @classmethod
    def from_codes(
        cls, items: Iterable[Label], orders: ArrayLike, weights: ArrayLike, no_choice_code: int | None = None
    ) -> "RankingModel":
        """Return a model from item codes instead of labels: one row per ranking, best first."""
        model = cls.__new__(cls)
        model._set(tuple(items), orders, weights, no_choice_code)
        return model

    def _set(self, items: tuple[Label, ...], orders: Any, weights: ArrayLike, no_choice_code: int | None) -> None:
        if len(set(items)) < len(items):
            raise ValueError(f"The items {items!r} include a label twice: list each once.")
        every = list(range(len(items)))
        if not _are_permutations(orders, len(items)):
            for row in orders:
                if sorted(row) != every:
                    raise ValueError(
                        f"The ranking {list(row)} does not order all {len(items)} items exactly once: list each once."
                    )
        if no_choice_code is not None and no_choice_code not in every:
            raise ValueError(f"The no-choice code {no_choice_code} is not that of an item: give 0 to {len(items) - 1}.")
        self.items = items
        self.orders = np.array(orders, dtype=np.int64).reshape(-1, len(items))
        self.weights = np.array(weights, dtype=np.float64)
        if self.weights.shape != (len(self.orders),):
            raise ValueError(
                f"There are {len(self.orders)} rankings but weights of shape {self.weights.shape}: give as many."
            )
        if not (len(self.weights) and np.all(self.weights >= 0.0) and abs(self.weights.sum() - 1.0) <= 1e-9):
            raise ValueError(f"The weights sum to {self.weights.sum()}: they must be at least 0 and sum to 1.")
        self.no_choice_code = no_choice_code
        kind = np.min_scalar_type(len(items))
        self._position = np.ascontiguousarray(np.argsort(self.orders, axis=1).T.astype(kind))  # items x rankings
        for array in (self.orders, self.weights, self._position):
            array.flags.writeable = False

    @property
    def rankings(self) -> list[tuple[Label, ...]]:
        """The rankings as tuples of labels, best first, in the order of the weights."""
        return [tuple(self.items[code] for code in order) for order in self.orders.tolist()]

    def probabilities(self, assortments: Assortments) -> Vec:
        """Return the choice probability of every coordinate: the paper's x, for any offers of the model's items."""
        code = {item: number for number, item in enumerate(self.items)}
        for item in {assortments.items[number] for number in assortments.members.tolist()}:
            if item not in code:
                raise ValueError(f"The model has no item {item!r}: its items are {', '.join(map(repr, code))}.")
        here = np.array([code.get(item, -1) for item in assortments.items])[assortments.members]
        starts = assortments.indptr[:-1]
        out = np.zeros(assortments.n_coordinates)
        chunk = max(1, 2**22 // len(here))
        for first in range(0, len(self.weights), chunk):
            places = self._position[here, first : first + chunk]
            best = np.minimum.reduceat(places, starts, axis=0)
            chosen = (places == best[assortments.owner]).astype(np.float64)
            out += chosen @ self.weights[first : first + chunk]
        return out

    def describe(self, top: int = 10) -> list[str]:
        """Return the rankings of largest weight as readable lines, cut after the no-purchase option.

        Examples
        --------
        >>> RankingModel(["tea", "nothing"], [("tea", "nothing")], [1.0], no_choice_code=1).describe()
        ['100.0 %  tea > (nothing)']
        """
        lines = []
        for row in np.argsort(-self.weights, kind="stable")[:top]:
            names = []
            for item in self.orders[row].tolist():
                if item == self.no_choice_code:
                    names.append(f"({self.items[item]})")
                    break
                names.append(str(self.items[item]))
            lines.append(f"{100 * self.weights[row]:5.1f} %  {' > '.join(names)}")
        return lines

    def segments(self, top: int | None = None, offer: Iterable[Label] | None = None) -> list[Segment]:
        """Return customer types, largest first; rankings that differ only below the no-purchase option are one type.

        They rank the items of ``offer``, by default all items, at their usual prices if they have some.
        """
        whole = everything(self) if offer is None else tuple(offer)
        codes = {self.items.index(item) for item in whole}
        merged: dict[tuple[int, ...], float] = {}
        for order, weight in zip(self.orders.tolist(), self.weights.tolist(), strict=True):
            ranked = order if self.no_choice_code is None else order[: order.index(self.no_choice_code)]
            wanted = tuple(code for code in ranked if code in codes)
            merged[wanted] = merged.get(wanted, 0.0) + weight
        largest = sorted(merged.items(), key=lambda pair: (-pair[1], pair[0]))[:top]
        return [Segment(tuple(self.items[code] for code in wanted), share) for wanted, share in largest]

    def to_frame(self) -> Any:
        """Return a pandas data frame, a row per ranking: its weight, and the items by place."""
        frames = optional("pandas", "A data frame of rankings")
        columns = {f"place {place + 1}": [row[place] for row in self.rankings] for place in range(len(self.items))}
        return frames.DataFrame({"weight": self.weights, **columns})

    def frontier(self, assortments: Assortments | None = None) -> "Frontier":
        """Return how accurate fewer rankings can be: sizes, errors and mixtures, as a table when printed.

        Errors are mean absolute differences from this model's probabilities on the given offers; by default, on all
        offers of two and three items and the offer of all items. ``plots.frontier`` draws it.
        """
        from rankstream.models import sparse

        return sparse.frontier(self._offers(assortments), self.orders, self.weights)

    def sparsify(
        self, tolerance: float | None = None, max_rankings: int | None = None, assortments: Assortments | None = None
    ) -> "RankingModel":
        """Return a model with fewer rankings and new weights: the smallest within a tolerance, or the best of a size.

        The error is that of ``frontier``; with both limits the number of rankings comes first.

        Examples
        --------
        >>> rankings = [("tea", "pie", "rum"), ("tea", "rum", "pie"), ("pie", "tea", "rum")]
        >>> RankingModel(["tea", "pie", "rum"], rankings, [0.59, 0.01, 0.4]).sparsify(max_rankings=2).describe()
        [' 60.0 %  tea > pie > rum', ' 40.0 %  pie > tea > rum']
        """
        from rankstream.models import sparse

        orders, weights = sparse.fewer(self._offers(assortments), self.orders, self.weights, tolerance, max_rankings)
        return RankingModel.from_codes(self.items, orders, weights, self.no_choice_code)

    def _offers(self, assortments: Assortments | None) -> Assortments:
        from rankstream.models import sparse

        if assortments is None:
            return sparse.small_offers(self.items)
        return Assortments(assortments.offers, self.items)  # the codes must be the model's

    def relabel(self, items: Iterable[Label]) -> "RankingModel":
        """Return the same model with other names for its items."""
        same = RankingModel.from_codes(tuple(items), self.orders, self.weights, self.no_choice_code)
        return same.note(**self.about)

    def to_content(self) -> dict[str, Any]:
        """Return the content of a file."""
        return {
            "items": list(self.items),
            "no_choice": self.no_choice_code,
            "rankings": self.orders.tolist(),
            "weights": self.weights.tolist(),
        }

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> "RankingModel":
        """Return the model that ``to_content`` described."""
        code = content["no_choice"]
        if code is not None and type(code) is not int:
            raise ValueError(f"its no-purchase option is {code!r}, not the number of an item")
        return cls.from_codes(content["items"], content["rankings"], content["weights"], code)

    def __reduce__(self) -> tuple[Any, ...]:
        noted = {"_about": self.about} if self.about else None
        return RankingModel.from_codes, (self.items, self.orders, self.weights, self.no_choice_code), noted

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RankingModel):
            return NotImplemented
        return (
            self.items == other.items
            and self.no_choice_code == other.no_choice_code
            and np.array_equal(self.orders, other.orders)
            and np.array_equal(self.weights, other.weights)
        )

    def __hash__(self) -> int:
        return hash((self.items, self.orders.tobytes(), self.weights.tobytes()))

    def __repr__(self) -> str:
        return f"RankingModel({len(self.weights)} rankings of {len(self.items)} items)"


class DenseModel(Model):
    """A model with too many rankings to list: they are drawn."""

    @abstractmethod
    def draw_orders(self, size: int, random: np.random.Generator) -> Codes:
        """Draw independent rankings from the model, best first: one row of item codes each."""

    def draw(self, size: int, seed: int = 0) -> RankingModel:
        """Draw independent rankings from the model, as a RankingModel."""
        orders = self.draw_orders(whole_number("size", size, least=1), np.random.default_rng(seed))
        rows, times = np.unique(orders, axis=0, return_counts=True)
        return RankingModel.from_codes(self.items, rows, times / size, self.no_choice_code)

    def to_rankings(self, size: int = 1000, seed: int = 0) -> RankingModel:
        """Return at most ``size`` rankings with nearly the same probabilities: independent draws."""
        return self.draw(size, seed)

    def segments(self, top: int | None = None, size: int = 1000, seed: int = 0) -> list[Segment]:
        """Return customer types, largest first, among ``size`` rankings drawn from the model."""
        return self.draw(size, seed).segments(top)


def _are_permutations(orders: Any, size: int) -> bool:
    """Whether all rows of a matrix are permutations: a quick check before looking for the wrong row."""
    if not isinstance(orders, np.ndarray) or orders.ndim != 2 or orders.shape[1] != size:
        return False
    return orders.dtype.kind == "i" and bool((np.sort(orders, axis=1) == np.arange(size)).all())
