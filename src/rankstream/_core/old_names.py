"""Public names of version 0.3 that were renamed: using one raises an error with the new name. To be removed in 0.5."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import lazy_loader

T = TypeVar("T")
NAMES: dict[str, str] = {
    "baselines.fit_column_generation": "baselines.fit",
    "models.Prior": "models.RankingLaw",
    "models.stacked_prior": "models.fit_prior",
    "oracles.BranchOracle": "oracles.SearchOracle",
    "oracles.LazyOracle": "oracles.CachingOracle",
}
"""Old and new names, both as written after ``rankstream.``, such as "models.OldModel": "models.NewModel"."""


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Attach the names in a package's stub, as ``lazy_loader.attach_stub`` does; an old name raises an error."""
    find, list_names, public = lazy_loader.attach_stub(package, file)

    def find_name(name: str) -> Any:
        sentence = renamed(f"{package}.{name}")
        if sentence:
            raise AttributeError(sentence)
        return find(name)

    return find_name, list_names, public


def renamed(path: str) -> str:
    """Return the error message for an old name, given its full path; empty for any other name.

    >>> renamed("rankstream.models")
    ''
    """
    old = path.removeprefix("rankstream.")
    new = NAMES.get(old)
    return "" if new is None else f"rankstream.{old} of version 0.3 is now rankstream.{new}: see docs/upgrading.md."


class _OldNameFinder:
    """Raise the error for "from rankstream import old_name", where Python drops the one that ``attach`` raises."""

    def find_spec(self, fullname: str, *_: Any) -> None:
        if sentence := renamed(fullname):
            raise ImportError(sentence)


def old_keywords(**names: str) -> Callable[[T], T]:
    """Raise a TypeError that names the new keyword when a function or a class gets an old one.

    >>> @old_keywords(seconds="budget")
    ... def work(budget: float) -> float:
    ...     return budget
    >>> work(seconds=3.0)
    Traceback (most recent call last):
    TypeError: work() has no argument 'seconds': since version 0.4 it is called 'budget'.
    """

    def decorate(target: T) -> T:
        named: Any = target
        function = named.__init__ if isinstance(target, type) else named

        @wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            for old in names.keys() & keywords.keys():
                raise TypeError(
                    f"{named.__name__}() has no argument {old!r}: since version 0.4 it is called {names[old]!r}."
                )
            return function(*arguments, **keywords)

        if not isinstance(target, type):
            return cast("T", call)
        named.__init__ = call
        return target

    return decorate


def watch_imports() -> None:
    """Raise an ImportError with the new name when an old one is imported."""
    if not any(isinstance(finder, _OldNameFinder) for finder in sys.meta_path):
        sys.meta_path.append(_OldNameFinder())
