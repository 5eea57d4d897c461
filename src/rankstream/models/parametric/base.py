"""The base class of models with a fixed number of parameters, and shared parts of their fits."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from rankstream._core.types import Codes, Label, Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.models.base import finite_array
from rankstream.models.lifts import frozen
from rankstream.models.rankings import DenseModel


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted(DenseModel):
    """A fitted model: its items, and how its fit ended; each kind documents its other attributes.

    Attributes
    ----------
    items : tuple of items
        The items of the model; with prices, items at prices and items without one.
    log_likelihood : float
        Log-likelihood of the fitted choices, in nats, without smoothing and without choices that contradict an order
        of the items.
    iterations : int
        Number of steps of the fit, over all starts.
    converged : bool
        Whether the best start met the tolerance.
    n_parameters : int
        Number of free parameters.
    no_choice_code : int or None
        Number of the item that is in every offer, if there is one.
    """

    items: tuple[Label, ...]
    log_likelihood: float
    iterations: int
    converged: bool
    n_parameters: int
    no_choice_code: int | None = None
    ARRAYS: ClassVar[dict[str, str]]

    @abstractmethod
    def shares(self, indptr: Codes, members: Codes) -> Vec:
        """Return the probability of every coordinate of offers in the model's own item codes."""

    def probabilities(self, assortments: Assortments) -> Vec:
        """Return the choice probability of every coordinate, for any offers of the model's items."""
        code = {item: number for number, item in enumerate(self.items)}
        members = np.array([code.get(item, -1) for item in assortments.items], dtype=np.int64)[assortments.members]
        if members.min() < 0:
            unknown = assortments.items[assortments.members[np.argmin(members)]]
            raise ValueError(
                f"The model has no item {unknown!r}: add it to the items of the Assortments before the fit."
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = self.shares(assortments.indptr, frozen(members))
        if not np.isfinite(shares).all():
            offer = assortments.offers[assortments.owner[np.argmin(np.isfinite(shares))]]
            raise ValueError(
                f"The model cannot predict the offer {offer!r}, because its chain never reaches it: add another item."
            )
        return shares

    def relabel(self, items: Iterable[Label]) -> Self:
        """Return the same model with other names for its items."""
        labels = tuple(items)
        if len(labels) != len(self.items) or len(set(labels)) < len(labels):
            raise ValueError(f"The model has {len(self.items)} items: give as many labels, each once.")
        return replace(self, items=labels).note(**self.about)

    def to_content(self) -> dict[str, Any]:
        """Return the content of a file: every field, arrays as lists."""
        content: dict[str, Any] = {}
        for name in (part.name for part in fields(self) if part.name not in LEFT_OUT):
            value = getattr(self, name)
            content[name] = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        return content | {"items": list(self.items)}

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Self:
        """Return the model that ``to_content`` described."""
        return cls(**cls.fields_in(content))

    @classmethod
    def fields_in(cls, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the checked fields of all kinds, and the arrays of probabilities."""
        items, code = tuple(content["items"]), content["no_choice_code"]
        if code is not None and (type(code) is not int or not 0 <= code < len(items)):
            raise ValueError(f"its no-purchase option is {code!r}, not the number of an item")
        numbers = {name: content[name] for name in ("iterations", "n_parameters")}
        if not all(type(value) is int for value in numbers.values()):
            raise ValueError("its numbers of steps and parameters are not whole numbers")
        arrays = {
            name: probabilities_of(name, content[name], tuple(len(items) if side == "n" else -1 for side in shape))
            for name, shape in cls.ARRAYS.items()
        }
        lengths = {len(arrays[name]) for name, shape in cls.ARRAYS.items() if shape[0] == "k"}
        if len(lengths) > 1:
            raise ValueError(f"its {' and '.join(cls.ARRAYS)} are of different numbers of classes")
        height = float(content["log_likelihood"])
        if np.isnan(height) or type(content["converged"]) is not bool:
            raise ValueError("its log-likelihood is not a number, or it does not say whether it converged")
        known = {"items": items, "no_choice_code": code, "log_likelihood": height, "converged": content["converged"]}
        return known | numbers | arrays


LEFT_OUT = ("items", "heights", "order")
"""Fields that are written differently, or not at all."""


def probabilities_of(name: str, values: Any, shape: tuple[int, ...]) -> Vec:
    """Return numbers of a file as probabilities: at least 0, rows summing to 1."""
    array = finite_array(name, values, shape)
    if (array < 0.0).any() or not np.allclose(array.sum(axis=-1), 1.0, atol=1e-6):
        raise ValueError(f"its {name} are not probabilities with the sum 1")
    return array


def check_start(data: ChoiceCounts, start: Fitted | None) -> None:
    """Check that a fit starts from a model of the same items, in the same order."""
    if start is not None and start.items != data.assortments.items:
        raise ValueError(
            f"The start is a model of the items {', '.join(map(repr, start.items))}: give one of the items to fit."
        )


def data_log_likelihood(counts: ChoiceCounts, probabilities: Vec) -> float:
    """Return the log-likelihood of the choices in nats; -inf if a chosen item has probability 0."""
    chosen = counts.tallies > 0.0
    with np.errstate(divide="ignore"):
        return float(counts.tallies[chosen] @ np.log(probabilities[chosen]))


def fit_facts(data: ChoiceCounts, shares: Vec, steps: int, converged: bool) -> dict[str, Any]:
    """Return the common fields of a fitted model, from its choice probabilities on the fitted offers."""
    offers = data.assortments
    return {
        "items": offers.items, "no_choice_code": offers.no_choice_code, "iterations": steps,
        "converged": bool(converged), "log_likelihood": data_log_likelihood(data, shares),
    }  # fmt: skip


def climb_smooth(
    cost: Callable[[Vec], tuple[float, Vec]], start: Vec, limits: dict[str, Any], watch: Watch, name: str
) -> Any:
    """Minimise a cost with its gradient by scipy's L-BFGS; stop when ``watch``, called after every step, says so."""
    from scipy.optimize import minimize

    steps = 0

    def look(_: Vec) -> None:
        nonlocal steps
        steps += 1
        if watch(f"{name}, step {steps}"):
            raise StopIteration

    return minimize(cost, start, jac=True, method="L-BFGS-B", options={"maxcor": 20, **limits}, callback=look)


@dataclass(frozen=True, eq=False)
class Climb:
    """The result of a climb; ``heights`` are the values along the way, which never fall."""

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
    max_rounds: int,
    watch: Watch = unwatched,
    name: str = "climbing",
) -> Climb:
    """Repeat a step until three of them together gain no more than ``tolerance``.

    ``step`` returns the next point, which is never lower, and the height of the current one. Two steps in a row are
    extrapolated (Varadhan and Roland 2008), further each time that succeeds; a lower point is discarded. ``normalise``
    turns a positive vector into a point. An extrapolated coordinate keeps a part of its last value, so that it stays
    positive. ``watch`` is called after every three steps.
    """
    point, used, heights = start, 0, []
    converged, stopped, longest = False, False, 1.0
    while not converged and not stopped and used < max_rounds:
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
