"""The base class of all models: predictions, substitution, prices, and files."""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from rankstream._core.files import write_whole
from rankstream._core.types import Label, Vec
from rankstream.data import Assortments, PriceLevels, as_offer
from rankstream.models.answers import Substitution, missing_no_choice, substitution
from rankstream.models.fit_warnings import noted
from rankstream.models.nearness import Nearness, compare_offer, seen_offers
from rankstream.models.prices import Elasticities, demand_offers, elasticities, leaving_offer, levels_of, predict_at
from rankstream.models.shrinkage import shrink_prediction

DAMAGE = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, MemoryError)
"""Errors that the content of a modified file can raise."""
BEGINNING = '{"format'
NO_MODEL = "is not a rankstream model: if it is a file of choices, fit a model to it with 'rankstream fit'."


class Model(ABC):
    """A choice model: choice probabilities for any offer of its items, and a file format.

    Several threads may use one model; only ``note`` changes it.
    """

    FORMAT: ClassVar[str]
    VERSION: ClassVar[int] = 1
    items: tuple[Label, ...]
    no_choice_code: int | None

    @property
    def no_choice(self) -> Label | None:
        """The no-purchase option, if there is one: the only item in every offer, or the one that was declared."""
        if self.no_choice_code is not None:
            return self.items[self.no_choice_code]
        read = noted(self.about, "reading")  # a best seller may be in every offer, too
        declared = read.get("no_choice") or ("no choice" if read.get("outside_share") is not None else None)
        return next((item for item in self.items if str(item) == declared), None)

    @abstractmethod
    def probabilities(self, assortments: Assortments) -> Vec:
        """Return the choice probability of every coordinate, for any offers of the model's items."""

    @abstractmethod
    def relabel(self, items: Iterable[Label]) -> Self:
        """Return the same model with other names for its items."""

    @abstractmethod
    def to_content(self) -> dict[str, Any]:
        """Return the content of a file, without format and version."""

    @classmethod
    @abstractmethod
    def from_content(cls, content: Mapping[str, Any]) -> Self:
        """Return the model that ``to_content`` described; raise ValueError or KeyError if it is damaged."""

    def predict(
        self, offer: Iterable[Label], *, forced: bool = False, seen: Literal["model", "shrink"] = "model"
    ) -> dict[Label, float]:
        """Return the choice probabilities of one offer, seen before or not; they sum to 1.

        If the offer lacks the no-purchase option, such as "nothing", it is added: customers can always leave. With
        ``forced=True`` they have to choose one of the given items.

        A model with price levels also takes prices, as in ``{"tea": 3.5, "nothing": None}``, and returns shares under
        the items' own names. Between two levels, shares are interpolated; beyond them, a price is an error.

        ``seen="shrink"`` combines the model with the choices from the same offer, weighted by how well each of them is
        predicted by the others. It predicts better if no ranking model explains the choices (``rationality``), but it
        is no ranking model itself. Models of ``estimate`` and ``fit_within`` store these choices, also in their files.

        Examples
        --------
        >>> from rankstream import RankingModel
        >>> model = RankingModel(["tea", "no"], [("tea", "no"), ("no", "tea")], [0.75, 0.25], no_choice_code=1)
        >>> model.predict(["tea"]), model.predict(["tea"], forced=True)
        ({'tea': 0.75, 'no': 0.25}, {'tea': 1.0})
        """
        labels = offer if isinstance(offer, Mapping) else as_offer("The offer", offer)
        added = None if forced or not labels else missing_no_choice(self, labels)
        if seen not in ("model", "shrink"):
            raise ValueError(f"seen is {seen!r}: choose 'model' or 'shrink'.")
        if isinstance(labels, Mapping):
            if seen == "shrink":
                raise ValueError("seen='shrink' takes items at levels, such as 'tea @ 3.50', not prices.")
            return predict_at(self, labels if added is None else {**labels, added: None})
        single = Assortments([labels if added is None else (*labels, added)])
        shares = dict(zip(single.offers[0], self.probabilities(single).tolist(), strict=True))
        return shares if seen == "model" else shrink_prediction(shares, self.items, self.about)

    def nearness(self, offer: Iterable[Label] | Mapping[Any, Any]) -> Nearness | None:
        """Return how near an offer is to those that the model was fitted to: far from them, predictions extrapolate.

        None for a model that was not fitted by ``estimate`` or ``fit_within``, or to more than 50,000 shares.

        Examples
        --------
        >>> import rankstream as rs
        >>> model = rs.estimate(rs.read_counts("examples/cafe.csv"), method="mnl").model
        >>> model.nearness(["cake", "nothing"]).words
        'Never shown: the nearest offer in the data differs in 1 item. This offer has 1 item; offers in the data ...'
        """
        known = seen_offers(self)
        return compare_offer(offer, known, self.no_choice, self.price_levels) if known else None

    def with_items(self, items: Any) -> Self:
        """Return the model with new items, given their attributes; only for maximum entropy with attributes."""
        raise ValueError(
            "This model cannot take new items: fit it by maximum entropy with attributes=..., to at most 64 items."
        )

    def importance(self, interval: float = 0.95, seed: int = 0) -> Any:
        """Return which attributes explain choice; only for maximum entropy with attributes."""
        raise ValueError("This model has no attributes: fit it by maximum entropy with attributes=....")

    def sample(self, offer: Iterable[Label], size: int, seed: int | np.random.Generator = 0) -> list[Label]:
        """Simulate the choices of ``size`` independent customers from one offer."""
        shares = self.predict(offer)
        weights = np.array(list(shares.values()))
        picks = np.random.default_rng(seed).choice(len(weights), size=size, p=weights / weights.sum())
        labels = list(shares)
        return [labels[pick] for pick in picks]

    def substitution(self, offer: Iterable[Label] | None = None, gone: Iterable[Label] | None = None) -> Substitution:
        """Return what each item's buyers choose when it is removed from an offer (default: all items).

        With price levels, the default is every item at its usual price. With ``gone`` only the rows of these items are
        computed.
        """
        return substitution(self, offer, gone)

    @property
    def price_levels(self) -> PriceLevels | None:
        """The price levels of its items; None for a model without prices."""
        return levels_of(self)

    def demand(self, item: Label, others: Mapping[Any, Any]) -> dict[float, float]:
        """Return a demand curve: the share of an item at each of its price levels, beside other items at their prices.

        Examples
        --------
        >>> from rankstream import RankingModel
        >>> rankings = [("tea @ 3.00", "no", "tea @ 4.00"), ("tea @ 3.00", "tea @ 4.00", "no")]
        >>> model = RankingModel(["tea @ 3.00", "tea @ 4.00", "no"], rankings, [0.25, 0.75])
        >>> model.demand("tea", others={"no": None}), model.predict({"tea": 3.5, "no": None})
        ({3.0: 1.0, 4.0: 0.75}, {'tea': 0.875, 'no': 0.125})
        """
        return {price: float(around.shares(self)[0]) for price, around in demand_offers(self, item, others).items()}

    def elasticities(self, offer: Mapping[Any, Any]) -> Elasticities:
        """Return the arc elasticities of an offer, own and cross, each from an item's level to its next dearer one."""
        return elasticities(self, offer)

    def willingness(self, item: Label, price: Any, no_choice: Label | None = None) -> float:
        """Return the share of customers who prefer an item at a price to leaving.

        ``no_choice`` is the no-purchase option, if the model has none of its own.
        """
        return predict_at(self, leaving_offer(self, item, price, no_choice))[item]

    @property
    def about(self) -> dict[str, Any]:
        """Facts about the fit that ``note`` added, such as data and method; saved with the model."""
        facts: dict[str, Any] = self.__dict__.get("_about", {})
        return facts

    def note(self, /, **facts: Any) -> Self:
        """Add facts to ``about``, such as the method and the data of the fit, and return the model."""
        object.__setattr__(self, "_about", {**self.about, **facts})
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON, to a temporary file that is then renamed, so it is never half written."""
        write_whole(path, self.to_text())

    def to_text(self) -> str:
        """Return the JSON that ``save`` writes."""
        for item in self.items:
            if not can_be_saved(item):
                raise ValueError(
                    f"The item {item!r} of type {type(item).__name__} cannot be saved: use str, int, bool or None."
                )
        about = {"about": self.about} if self.about else {}
        content = {"format": self.FORMAT, "version": self.VERSION, **about, **self.to_content()}
        try:
            text = json.dumps(content, ensure_ascii=False)
        except TypeError as error:
            raise ValueError(f"The model's notes cannot be saved ({error}): use plain values.") from None
        return text + "\n"

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model of this kind that ``save`` wrote; ``load_model`` reads every kind."""
        return cls.read(read_content(path), path)

    @classmethod
    def read(cls, content: Mapping[str, Any], path: str | os.PathLike[str]) -> Self:
        """Return the model of a parsed file; raise a ValueError if it is damaged."""
        if content.get("format") != cls.FORMAT:
            raise ValueError(f"{path} is not a rankstream model of this kind: its format is {content.get('format')!r}.")
        version = content.get("version")
        if type(version) is not int or version < 1:
            raise ValueError(f"{path} is a damaged model file (its version is {version!r}): save the model again.")
        if version > cls.VERSION:
            raise ValueError(
                f"{path} has version {version}, this rankstream reads up to {cls.VERSION}: update rankstream."
            )
        try:
            check_items(content["items"])
            with np.errstate(all="ignore"):  # the checks refuse numbers that are too large
                model = cls.from_content(content)
            about = content.get("about", {})
            if not isinstance(about, dict):
                raise ValueError("its notes are not a table")
        except DAMAGE as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error).rstrip(".") or type(error).__name__
            raise ValueError(f"{path} is a damaged model file ({reason}): save the model again.") from None
        return model.note(**about) if about else model


def read_content(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the parsed JSON of a model file."""
    if not Path(path).is_file():
        raise ValueError(f"There is no model file {path}: give one that 'rankstream fit' or save() wrote.")
    try:
        text = Path(path).read_text(encoding="utf-8")
        content = json.loads(text)
    except UnicodeDecodeError:
        raise ValueError(f"{path} {NO_MODEL}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        if not BEGINNING.startswith(text.lstrip("\ufeff \t\r\n")[: len(BEGINNING)]):
            raise ValueError(f"{path} {NO_MODEL}") from None
        raise ValueError(
            f"{path} is not a complete model file ({error}): it may be truncated, save the model again."
        ) from None
    if not isinstance(content, dict) or not str(content.get("format")).startswith("rankstream-"):
        raise ValueError(f"{path} {NO_MODEL}")
    return content


def check_items(items: Any) -> None:
    """Check the items of a model file."""
    if not (isinstance(items, list) and items and all(can_be_saved(item) for item in items)):
        raise ValueError("its items are not a list of text, whole numbers, true, false and null")
    if len(set(items)) < len(items):
        raise ValueError("its items include a label twice")


def can_be_saved(item: Label) -> bool:
    """Whether a label can be written as JSON and read back."""
    return item is None or isinstance(item, str | int)


def finite_array(name: str, values: Any, shape: tuple[int, ...]) -> Vec:
    """Return numbers of a file as a finite array of this shape (-1: any length)."""
    array = np.array(values, dtype=np.float64)
    if array.size == 0:
        array = array.reshape(shape)
    if array.ndim != len(shape) or any(side not in (-1, found) for side, found in zip(shape, array.shape, strict=True)):
        raise ValueError(f"its {name} are of the shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"its {name} are not all finite")
    return array
