"""Public names of version 0.3 and what they are called now: using one is an error that says so. Gone in 0.5."""

import sys
from collections.abc import Callable
from functools import wraps
from importlib.abc import MetaPathFinder
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
    """Attach the names in a package's stub, as ``lazy_loader.attach_stub`` does; an old name says its new one."""
    find, list_names, public = lazy_loader.attach_stub(package, file)

    def find_name(name: str) -> Any:
        sentence = renamed(f"{package}.{name}")
        if sentence:
            raise AttributeError(sentence)
        return find(name)

    return find_name, list_names, public


def renamed(path: str) -> str:
    """Return the sentence about an old name by its whole path, or nothing about another.

    >>> renamed("rankstream.models")
    ''
    """
    old = path.removeprefix("rankstream.")
    new = NAMES.get(old)
    return "" if new is None else f"rankstream.{old} of version 0.3 is now rankstream.{new}: see docs/upgrading.md."


class _OldNameFinder(MetaPathFinder):
    """Asked last: "from rankstream import name" looks for a module of that name, and drops what ``attach`` raises."""

    def find_spec(self, fullname: str, *_: Any) -> None:
        if sentence := renamed(fullname):
            raise ImportError(sentence)


def old_keywords(**names: str) -> Callable[[T], T]:
    """Refuse the old keywords of a function, or of a class when it is made, with a sentence that has the new ones.

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
        def call(*words: Any, **more: Any) -> Any:
            for old in names.keys() & more.keys():
                raise TypeError(
                    f"{named.__name__}() has no argument {old!r}: since version 0.4 it is called {names[old]!r}."
                )
            return function(*words, **more)

        if not isinstance(target, type):
            return cast("T", call)
        named.__init__ = call
        return target

    return decorate


def watch_imports() -> None:
    """From now on, say the new name where an old one is imported."""
    if not any(isinstance(finder, _OldNameFinder) for finder in sys.meta_path):
        sys.meta_path.append(_OldNameFinder())
