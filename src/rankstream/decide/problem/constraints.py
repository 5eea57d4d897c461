"""What every way of deciding can be told of costs and of the offers that are feasible, shown in every signature."""

from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeAlias, TypedDict, TypeVar

from rankstream._core.types import Label
from rankstream.decide.problem.margins import Numbers

P = ParamSpec("P")
R = TypeVar("R")
Pairs: TypeAlias = Iterable[Any] | Mapping[Any, Any]
"""Pairs of items in a list, one pair, or a dict."""


class Constraints(TypedDict, total=False):
    """The keywords; ``best_offer`` says what each means."""

    costs: Numbers | None
    at_most: int | None
    at_least: int | None
    must: Iterable[Label]
    never: Iterable[Label]
    requires: Pairs
    excludes: Pairs
    listing_costs: Numbers | None
    space: Numbers | None
    capacity: float | None
    ladders: Pairs
    present: Any
    changes: int | None
    no_choice: Label | None


def constrained(function: Callable[P, R]) -> Callable[P, R]:
    """Show the keywords of ``Constraints`` in the signature of a function that takes them as ``**constraints``.

    >>> from typing import Unpack
    >>> def pick(model: Any, **constraints: Unpack[Constraints]) -> None: ...
    >>> list(signature(constrained(pick)).parameters)[:3]
    ['model', 'costs', 'at_most']
    """
    own = signature(function)
    lists = {"must", "never", "requires", "excludes", "ladders"}
    shown = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=() if name in lists else None, annotation=kind)
        for name, kind in Constraints.__annotations__.items()
    ]
    named = [one for one in own.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    function.__dict__["__signature__"] = own.replace(parameters=[*named, *shown])
    return function
