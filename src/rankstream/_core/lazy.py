"""Packages that import a name only when it is first asked for, so that nothing is loaded that nobody uses."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def importer(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package whose public names live in these modules (PEP 562).

    A place is the module of the package that has the name; with a final dot, the module is the thing itself.

    >>> importer("json", {"JSONDecoder": "decoder", "reader": "decoder."})("JSONDecoder").__name__
    'JSONDecoder'
    """

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{places[name].rstrip('.')}")
        found = module if places[name].endswith(".") else getattr(module, name)
        setattr(sys.modules[package], name, found)  # so that it is looked for once
        return found

    return find
